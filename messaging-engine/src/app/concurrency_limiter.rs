//! Limit on the requests that a webhook's receiver gets at the same time.
//!
//! A lane's window limits the claimed jobs, which may be many, because a claim costs the store as much as some jobs.
//! The requests to the receiver are limited here: few enough that their connections are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::ids::WebhookId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of concurrent requests to one receiver.
const IN_FLIGHT: usize = 32;

/// Number of webhooks without waiting calls that are remembered.
const REMEMBERED: usize = 1024;

/// A semaphore for each webhook.
#[derive(Debug, Default)]
pub(crate) struct ConcurrencyLimiter(Mutex<HashMap<WebhookId, Arc<Semaphore>>>);

impl ConcurrencyLimiter {
    /// Waits for the turn to call a webhook.
    pub(crate) async fn pass(&self, webhook: WebhookId) -> OwnedSemaphorePermit {
        let gate = {
            let mut webhook_limiter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if webhook_limiter.len() >= REMEMBERED {
                webhook_limiter.retain(|_, gate| Arc::strong_count(gate) > 1);
            }
            Arc::clone(webhook_limiter.entry(webhook).or_insert_with(|| Arc::new(Semaphore::new(IN_FLIGHT))))
        };
        gate.acquire_owned().await.expect("the semaphore is never closed")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use messaging_core::ids::Id as _;

    #[tokio::test]
    async fn a_receiver_gets_so_many_requests_and_others_their_own() {
        let webhook_limiter = ConcurrencyLimiter::default();
        let (one, other) = (WebhookId::from_bytes([1; 16]), WebhookId::from_bytes([2; 16]));
        let mut permits = Vec::new();
        for _ in 0..IN_FLIGHT {
            permits.push(webhook_limiter.pass(one).await);
        }
        assert!(webhook_limiter.pass(one).now_or_never().is_none());
        assert!(webhook_limiter.pass(other).now_or_never().is_some());
        permits.pop();
        assert!(webhook_limiter.pass(one).now_or_never().is_some());
    }

    #[tokio::test]
    async fn gates_in_use_are_not_forgotten() {
        let webhook_limiter = ConcurrencyLimiter::default();
        let busy = webhook_limiter.pass(WebhookId::from_bytes([0xFF; 16])).await;
        for number in 0..2 * REMEMBERED as u128 {
            drop(webhook_limiter.pass(WebhookId::from_bytes(number.to_be_bytes())).await);
        }
        assert!(webhook_limiter.0.lock().unwrap().len() <= REMEMBERED);
        assert!(webhook_limiter.0.lock().unwrap().contains_key(&WebhookId::from_bytes([0xFF; 16])));
        drop(busy);
    }
}
