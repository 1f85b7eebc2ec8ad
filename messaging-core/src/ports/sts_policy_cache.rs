//! The port through which transports keep the MTA-STS policies that they fetch.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::domain::mail::mta_sts::StsPolicy;

/// Keeps MTA-STS policies between messages, and over restarts.
///
/// A policy guards against whoever hides it (RFC 8461 section 10.2), so an implementer owes to keep it until it expires. What
/// cannot be read or kept is logged and counts as absent: mail does not wait for it.
#[async_trait]
pub trait StsPolicyCache: Debug + Send + Sync {
    /// The policy that is kept of a domain (lower case, A-labels), also one that has expired.
    async fn policy(&self, domain: &str) -> Option<StsPolicy>;

    /// Keeps a policy in the place of the one before.
    async fn keep(&self, policy: &StsPolicy);
}
