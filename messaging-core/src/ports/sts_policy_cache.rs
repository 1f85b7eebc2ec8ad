//! The port through which transports keep the MTA-STS policies that they fetch.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::domain::mail::mta_sts::StsPolicy;

/// Whether a policy is kept of a domain is not known at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the MTA-STS policies that are kept cannot be read")]
pub struct PolicyUnread;

/// Keeps MTA-STS policies between messages, and over restarts.
///
/// A policy guards against whoever hides it (RFC 8461 section 10.2), so an implementer owes to keep it until it expires, and
/// never to say that there is none where it could not look.
#[async_trait]
pub trait StsPolicyCache: Debug + Send + Sync {
    /// The policy that is kept of a domain (lower case, A-labels), also one that has expired; `Err` where it could not be
    /// read, which the implementer logs.
    async fn policy(&self, domain: &str) -> Result<Option<StsPolicy>, PolicyUnread>;

    /// Keeps a policy in the place of the one before. One that cannot be kept is logged; mail does not wait for it.
    async fn keep(&self, policy: &StsPolicy);
}
