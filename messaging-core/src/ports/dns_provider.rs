//! The port to whoever hosts the zone of a sending domain (contract section 14.5).

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::mail::auto_dns::{DnsCredentials, HostRecords};
use crate::domain::mail::dns_record::RecordType;

/// A service or server that hosts zones.
///
/// An implementer owes: bounded time for each call, bounded pages and bodies, and to go to no address that is not public
/// unless the installation permits it.
#[async_trait]
pub trait DnsProvider: Debug + Send + Sync {
    /// The zone that holds a domain, lower case A-labels: of the zones of the account the one with the longest name that
    /// the domain is, or is below. Nothing is changed.
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError>;
}

/// A zone of an account.
#[async_trait]
pub trait DnsZone: Debug + Send + Sync {
    /// Its name, lower case, without a final dot.
    fn name(&self) -> &str;

    /// The records at a name in the zone, as the provider has them now and not as a cache remembers them.
    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError>;

    /// Puts `after` in the place of `before`, all values of one type at a name. Values that stand in both stay as they
    /// are, and nothing else in the zone is touched. [`DnsProviderError::Changed`] when the zone has other values than
    /// `before` by now, and then nothing is done as far as the provider can tell.
    async fn replace(
        &self,
        host: &str,
        kind: RecordType,
        before: &[String],
        after: &[String],
    ) -> Result<(), DnsProviderError>;
}

/// A provider did not do what it was asked for. Texts are the provider's own words, bounded, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsProviderError {
    /// The credentials are wrong, or may not do this.
    #[error("{0}")]
    Credentials(String),
    /// The server may not be called, because its address is not public.
    #[error("{0}")]
    Blocked(String),
    /// The account has no zone for the domain.
    #[error("the account has no zone that the domain is in")]
    NoZone,
    /// No answer, or one that says that another try may work.
    #[error("{0}")]
    Away(String),
    /// The same, and the provider says how long to wait before: asked too often, or at work on itself.
    #[error("{0}")]
    Later(String, Duration),
    /// The request was understood and refused.
    #[error("{0}")]
    Refused(String),
    /// The records are others by now.
    #[error("the records were changed by somebody else at the same time")]
    Changed,
}

/// Whether a name is `zone` or below it; both are in lower case and without a final dot.
pub fn is_in_zone(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
