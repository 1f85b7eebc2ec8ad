//! DMARC (RFC 9989) and the reports of receivers (RFC 9990): the policy that applies to a domain, and the meaning of
//! the reports on senders in its name.

pub mod discovery;
pub mod record;
pub mod report;
pub mod verdict;

pub use discovery::{Discovery, Fault, discover, published};
pub use record::{DmarcAction, PolicyRecord, Psd};
