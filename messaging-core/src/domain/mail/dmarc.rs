//! DMARC (RFC 9989) and what receivers report of it (RFC 9990): the policy that applies to a domain, and what the
//! reports say about who sends in its name.

pub mod discovery;
pub mod record;
pub mod report;
pub mod verdict;

pub use discovery::{Discovery, Fault, discover, published};
pub use record::{DmarcAction, PolicyRecord, Psd};
