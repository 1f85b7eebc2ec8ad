//! The port to the DNS, for the records of sending domains.
//!
//! Transports route mail by their own lookups, which do not use this port.

use std::fmt::Debug;
use std::net::IpAddr;

use async_trait::async_trait;

/// Looks up DNS records.
///
/// An implementer has to return fresh answers, not from a cache, because somebody may have just changed a record; in
/// bounded time.
///
/// A resolver that knows a single record, for a test:
///
/// ```
/// use std::net::IpAddr;
///
/// use async_trait::async_trait;
/// use messaging_core::ports::resolver::{LookupError, Resolver};
///
/// #[derive(Debug)]
/// struct Zone;
///
/// #[async_trait]
/// impl Resolver for Zone {
///     async fn txt(&self, name: &str) -> Result<Vec<String>, LookupError> {
///         Ok((name == "example.org").then(|| "v=spf1 -all".to_owned()).into_iter().collect())
///     }
///     async fn mx(&self, _: &str) -> Result<Vec<(u16, String)>, LookupError> {
///         Ok(Vec::new())
///     }
///     async fn cname(&self, _: &str) -> Result<Option<String>, LookupError> {
///         Ok(None)
///     }
///     async fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, LookupError> {
///         Ok(Vec::new())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), LookupError> {
/// assert_eq!(Zone.txt("example.org").await?, ["v=spf1 -all"]);
/// // A name without records is no error.
/// assert!(Zone.txt("example.com").await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Resolver: Debug + Send + Sync {
    /// Looks up the TXT records of a name, the strings of each joined; empty if there are none.
    async fn txt(&self, name: &str) -> Result<Vec<String>, LookupError>;
    /// Looks up the mail exchangers of a name with their preference, lower first, without a final dot.
    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, LookupError>;
    /// Returns the target of the name's CNAME record, without a final dot; `None` if there is no such record.
    async fn cname(&self, name: &str) -> Result<Option<String>, LookupError>;
    /// Looks up the addresses of a name; empty if there are none.
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError>;
    /// Looks up the names of an address (PTR) without a final dot, in lower case; empty if there are none. Needed only
    /// for the checks of the operator: a resolver without such lookups returns an error, as this default does.
    async fn names(&self, address: IpAddr) -> Result<Vec<String>, LookupError> {
        let _ = address;
        Err(LookupError("this resolver looks no addresses up".to_owned()))
    }
}

/// There is no answer, which says nothing about the record. A name that does not exist has no records and is no error.
#[derive(Debug, thiserror::Error)]
#[error("the name could not be looked up: {0}")]
pub struct LookupError(pub String);

/// A resolver without lookups, for an application that has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoResolver;

#[async_trait]
impl Resolver for NoResolver {
    async fn txt(&self, _name: &str) -> Result<Vec<String>, LookupError> {
        Err(none())
    }

    async fn mx(&self, _name: &str) -> Result<Vec<(u16, String)>, LookupError> {
        Err(none())
    }

    async fn cname(&self, _name: &str) -> Result<Option<String>, LookupError> {
        Err(none())
    }

    async fn addresses(&self, _name: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(none())
    }

    async fn names(&self, _address: IpAddr) -> Result<Vec<String>, LookupError> {
        Err(none())
    }
}

fn none() -> LookupError {
    LookupError("no resolver is installed".to_owned())
}
