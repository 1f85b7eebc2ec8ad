//! Client side of SMTP (RFC 5321), which the providers that speak it share.
//!
//! [`SmtpRelay`](crate::SmtpRelay) talks to one relay with a login, [`DirectDelivery`](crate::DirectDelivery) to the
//! mail exchangers of the recipients. Their common parts are here: opening a session, one mail transaction, extensions
//! that a message needs and the peer lacks, connections kept between messages, and transcripts.
//!
//! Commands are pipelined where the peer allows it (RFC 2920), and every wait is bounded (see
//! [`Timeouts`]).

mod answers;
mod content;
mod envelope;
mod pool;
mod recipient;
mod reply;
mod session;
mod timeouts;
pub(crate) mod tls;
mod transaction;
mod transcript;
mod wire;

use messaging_core::ports::transport::Outcome;

pub(crate) use answers::Answers;
pub(crate) use content::WireContent;
pub(crate) use envelope::{DECIDED_HERE, Envelope};
pub(crate) use pool::{Limits, Pool};
pub(crate) use recipient::Recipient;
pub(crate) use session::{Credentials, OpenError, Opener, Peer, Security, Session, clean_name};
pub use timeouts::Timeouts;
pub(crate) use tls::{Tls, Trust};
pub(crate) use transaction::Failure;
pub(crate) use transcript::Transcript;

/// Returns the outcome of a recipient that `host` answered with this reply of one line, such as `550 5.1.1 no such
/// user`; `None` if it is no reply, or not a final one (3yz). For transports and doubles that have replies without a
/// session.
pub fn outcome_of(reply: &str, host: &str) -> Option<Outcome> {
    reply::Collector::default().push(reply.as_bytes()).ok().flatten()?.outcome(host)
}
