//! MTA-STS policies, as transports keep them: in the store.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::mail::mta_sts::StsPolicy;
use messaging_core::ports::store::Priority;
use messaging_core::ports::sts_policy_cache::PolicyUnread;
use messaging_core::ports::{Store, StsPolicyCache};

/// Keeps MTA-STS policies in a store. Transports remember those that they use in memory, so each is read once.
#[derive(Debug)]
pub struct StoredPolicies(Arc<dyn Store>);

impl StoredPolicies {
    /// Keeps policies in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl StsPolicyCache for StoredPolicies {
    async fn policy(&self, domain: &str) -> Result<Option<StsPolicy>, PolicyUnread> {
        self.0.sts_policy(domain).await.map_err(|error| {
            tracing::warn!(%error, "an MTA-STS policy cannot be read");
            PolicyUnread
        })
    }

    async fn keep(&self, policy: &StsPolicy) {
        let changes = Changes::from_iter([Write::PutStsPolicy(Box::new(policy.clone()))]);
        if let Err(error) = self.0.commit(changes, Priority::Background).await {
            tracing::warn!(%error, "an MTA-STS policy cannot be kept");
        }
    }
}
