//! MTA-STS policies of domains of recipients, which all workspaces share.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::mail::mta_sts::StsPolicy;
use crate::time::Timestamp;

/// Reads of MTA-STS policies.
#[async_trait]
pub trait StsPolicies {
    /// The policy that is kept of a domain (lower case, A-labels), also one that has expired.
    async fn sts_policy(&self, domain: &str) -> Result<Option<StsPolicy>, StoreError>;
    /// Removes up to `limit` policies that expired before a time; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_sts_policies(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
