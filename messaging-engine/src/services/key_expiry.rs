//! Warnings that API keys end soon.
//!
//! A key remembers the last warning of it, and the commit that writes this also writes the webhook deliveries:
//! whichever process looks, and however the clock is set, each warning is given once.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::security::api_key::{ApiKey, expiry};
use messaging_core::domain::webhook::EventType;
use messaging_core::ports::store::{CommitError, StoreError, Stored};
use messaging_core::time::Timestamp;
use serde_json::{Value, json};

use crate::app::App;

impl App {
    /// Warns of the keys whose warning is due, at most `limit`; answers how many were looked at.
    pub(crate) async fn warn_of_ending_keys(&self, limit: usize) -> Result<u64, StoreError> {
        let now = self.now();
        let due = self.store().api_keys_to_warn_of(now, limit).await?;
        let mut looked_at = 0;
        for Stored { record, revision } in due {
            let (key, warns) = expiry::look(record, now);
            // Also where nobody is warned: the store then knows when to look again.
            let mut changes = Changes::from_iter([Write::put(key.clone(), Expect::Revision(revision))]);
            let end = key.expires_at.filter(|_| warns);
            if end.is_some() {
                changes.extend(self.tell_of_ending(&key, now).await?);
            }
            match self.commit_in_background(changes).await {
                Ok(()) => {
                    looked_at += 1;
                    if let Some(end) = end {
                        let (days, expires_at) = (expiry::days_left(end, now), end);
                        tracing::warn!(key = %key.id, workspace = %key.workspace_id, %expires_at, days, "an API key ends soon");
                    }
                }
                // Somebody else warned of it, or changed it: that is looked at again.
                Err(CommitError::Conflict) => {}
                Err(error) => return Err(error.into_store_error()),
            }
        }
        Ok(looked_at)
    }

    async fn tell_of_ending(&self, key: &ApiKey, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        let last_used_at = self.store().api_key_last_used(key.workspace_id, key.id).await?;
        let data = json!({
            "key_id": key.id,
            "name": key.name,
            "prefix": key.prefix,
            "expires_at": key.expires_at,
            "days": key.expires_at.map(|end| expiry::days_left(end, now)),
            "last_used_at": last_used_at,
        });
        let Value::Object(data) = data else { return Ok(Vec::new()) };
        self.tell_of_record(key.workspace_id, EventType::KeyExpiring, &data, now).await
    }
}
