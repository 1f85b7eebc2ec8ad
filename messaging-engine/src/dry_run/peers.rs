//! Peers of a dry run in place of real ones: nothing leaves the process.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use messaging_core::ids::MessageId;
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use messaging_core::ports::transport::{Acceptance, Outcome, Outgoing, Response, Sent, Transport, TransportError};

/// Provider of all channels of a dry run.
pub(super) const PROVIDER: &str = "simulation";

/// Seed of the ids in a dry run; they are not shown.
pub(super) const SEED: u64 = 14;

/// Transport that takes every message; its delivery is reported afterwards, as a provider does.
#[derive(Debug, Default)]
pub(super) struct Outbox(Mutex<Vec<MessageId>>);

impl Outbox {
    /// Returns the messages that were sent since the last call.
    pub(super) fn take(&self) -> Vec<MessageId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Transport for Outbox {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let accepted = || Outcome::accepted(Acceptance::Relayed, Response::of_text("simulated"));
        let admitted = outgoing.last_look.begin(&outgoing.recipients).await;
        let outcomes: Vec<_> = admitted.into_iter().map(|one| one.refusal().unwrap_or_else(accepted)).collect();
        if outcomes.iter().any(Outcome::is_accepted) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(outgoing.message_id);
        }
        Ok(Sent { outcomes, ..Sent::default() })
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// HTTP client that calls nobody and reports success: webhook nodes take `next`.
#[derive(Debug)]
pub(super) struct NobodyCalled;

#[async_trait]
impl Fetch for NobodyCalled {
    fn check(&self, _url: &str) -> Result<(), UrlFault> {
        Ok(())
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let (status, headers, body) = (StatusCode::OK, HeaderMap::new(), Bytes::new());
        Ok(Fetched { url: request.url, status, headers, body, truncated: false })
    }
}
