//! The port to the authoritative name servers of a zone, which are asked past every cache.
//!
//! Records that were just written are read back from them (contract section 14.5). Everything else that core looks up
//! in the DNS goes through the [`Resolver`](super::Resolver).

use std::fmt::Debug;

use async_trait::async_trait;

use super::resolver::LookupError;
use crate::domain::mail::dns_record::RecordType;

/// A question about the records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuestion {
    /// The name, lower case, without a final dot.
    pub host: String,
    /// Type of the records.
    pub kind: RecordType,
}

/// The answers of one name server.
#[derive(Debug)]
pub struct ServerAnswers {
    /// Name of the server, lower case, without a final dot.
    pub server: String,
    /// For each question, in their order, the values as in [`HostRecords`](crate::domain::mail::auto_dns::HostRecords),
    /// none where the name or the type is not there, or the reason why the server gave no authoritative answer.
    pub answers: Vec<Result<Vec<String>, LookupError>>,
}

/// Asks the authoritative name servers of zones.
///
/// An implementer owes: answers of the servers that the zone itself is delegated to, not of those of an alias, at most
/// six of them; bounded time and bounded answers; and to go to no address that is not public unless the installation
/// permits it.
#[async_trait]
pub trait NameServers: Debug + Send + Sync {
    /// Returns the answers of each name server of `zone`, at least one server. Names of the questions are the zone's or
    /// below it. Fails when no name server can be found.
    async fn ask(&self, zone: &str, questions: &[RecordQuestion]) -> Result<Vec<ServerAnswers>, LookupError>;
}

/// Finds no name server: the default of an application that cannot ask them. Records are then read back from the
/// resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNameServers;

#[async_trait]
impl NameServers for NoNameServers {
    async fn ask(&self, _zone: &str, _questions: &[RecordQuestion]) -> Result<Vec<ServerAnswers>, LookupError> {
        Err(LookupError("none can be asked here".to_owned()))
    }
}
