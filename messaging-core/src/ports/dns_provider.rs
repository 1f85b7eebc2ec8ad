//! The port to the DNS provider of a sending domain's zone (contract section 14.5).

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::mail::auto_dns::{DnsCredentials, HostRecords};
use crate::domain::mail::dns_record::RecordType;

/// A service or server that hosts zones.
///
/// An implementer has to bound the time of each call, its pages and bodies, and to connect to public addresses only,
/// unless the installation permits others.
#[async_trait]
pub trait DnsProvider: Debug + Send + Sync {
    /// Returns the zone that holds a domain, lower case A-labels: of the zones of the account the one with the longest
    /// name that the domain equals, or is below. Nothing is changed.
    async fn zone(&self, credentials: &DnsCredentials, domain: &str) -> Result<Box<dyn DnsZone>, DnsProviderError>;
}

/// A zone of an account.
#[async_trait]
pub trait DnsZone: Debug + Send + Sync {
    /// Returns its name, lower case, without a final dot.
    fn name(&self) -> &str;

    /// Returns the records at a name in the zone, as the provider has them now, without a cache.
    async fn at(&self, host: &str) -> Result<HostRecords, DnsProviderError>;

    /// Replaces `before` by `after`, all values of one type at a name. Values in both stay as they are, and nothing
    /// else in the zone is touched. Returns [`DnsProviderError::Changed`] if the zone has other values than `before` by
    /// now; then nothing is changed as far as the provider can tell.
    async fn replace(
        &self,
        host: &str,
        kind: RecordType,
        before: &[String],
        after: &[String],
    ) -> Result<(), DnsProviderError>;
}

/// A failure of a provider. Texts are the provider's own words, bounded, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsProviderError {
    /// The credentials are wrong, or do not permit this.
    #[error("{0}")]
    Credentials(String),
    /// The server may not be called, because its address is not public.
    #[error("{0}")]
    Blocked(String),
    /// The account has no zone for the domain.
    #[error("the account has no zone that the domain is in")]
    NoZone,
    /// No answer, or one that says that a retry may work.
    #[error("{0}")]
    Away(String),
    /// Like `Away`, with the provider's time to wait: too many requests, or maintenance.
    #[error("{0}")]
    Later(String, Duration),
    /// The request was understood and refused.
    #[error("{0}")]
    Refused(String),
    /// The records have changed.
    #[error("the records were changed by somebody else at the same time")]
    Changed,
}

/// True if a name is `zone` or below it; both are in lower case and without a final dot.
pub fn is_in_zone(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
