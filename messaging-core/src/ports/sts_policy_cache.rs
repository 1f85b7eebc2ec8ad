//! The port through which transports keep the MTA-STS policies that they fetch.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::domain::mail::mta_sts::StsPolicy;

/// The store could not tell whether it has a policy of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the MTA-STS policies that are kept cannot be read")]
pub struct PolicyUnread;

/// Keeps MTA-STS policies between messages, and over restarts.
///
/// A policy guards against an attacker who hides it (RFC 8461 section 10.2), so an implementer has to keep it until it
/// expires, and must never report that there is none if it could not look.
#[async_trait]
pub trait StsPolicyCache: Debug + Send + Sync {
    /// Returns the stored policy of a domain (lower case, A-labels), also an expired one; `Err` if it could not be
    /// read, which the implementer logs.
    async fn policy(&self, domain: &str) -> Result<Option<StsPolicy>, PolicyUnread>;

    /// Stores a policy in place of an earlier one. A failure is logged; mail does not wait for it.
    async fn keep(&self, policy: &StsPolicy);
}
