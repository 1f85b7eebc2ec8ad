//! The receiver of webhooks, which behaves by chance.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use messaging_core::ports::Fetch;
use messaging_core::ports::fetch::{FetchError, FetchRequest, Fetched, UrlFault};
use serde_json::Value;

use crate::life::Life;

/// Calls receivers on behalf of one life of a process.
#[derive(Debug)]
pub(crate) struct Receiver {
    life: Arc<Life>,
}

impl Receiver {
    pub(crate) const fn new(life: Arc<Life>) -> Self {
        Self { life }
    }
}

#[async_trait]
impl Fetch for Receiver {
    fn check(&self, _url: &str) -> Result<(), UrlFault> {
        Ok(())
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let world = &self.life.world;
        let rates = &world.plan.receiver;
        self.life.point("call of a webhook").await;
        if world.strikes(rates.slow) {
            let span = world.draw(|dice| dice.span(1, 14));
            world.ledger().count_fault("slow receiver");
            tokio::time::sleep(span).await;
        }
        if world.strikes(rates.unreachable) {
            world.ledger().count_fault("receiver unreachable");
            return Err(FetchError::Connection);
        }
        let status = if world.strikes(rates.refused) { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        if let Some(key) = request.headers.get("idempotency-key").and_then(|key| key.to_str().ok()) {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let run = body["run_id"].as_str().unwrap_or_default();
            self.life.note(format_args!("node {} is called with {key} of {run}: {status}", request.url));
            world.ledger().call(run, key, status.is_success());
        }
        let event = request.headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        if !event.is_empty() {
            self.life.note(format_args!("webhook {} gets {event}: {status}", request.url));
        }
        if status.is_success() && !event.is_empty() {
            world.ledger().receive(&request.url, event);
        }
        if world.strikes(rates.reply_lost) {
            world.ledger().count_fault("receiver's answer lost");
            return Err(FetchError::NoAnswer);
        }
        self.life.point("answer of a webhook").await;
        Ok(Fetched { url: request.url, status, headers: HeaderMap::new(), body: Bytes::new(), truncated: false })
    }
}
