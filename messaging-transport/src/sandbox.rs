//! The provider `sandbox`: nothing leaves the server.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ports::transport::{
    Acceptance, Content, Outcome, Outgoing, Response, Sent, TextMessage, Transport, TransportError,
};
use serde_json::json;

use crate::mime;

/// Accepts everything and answers with the bytes that would have gone on the wire.
///
/// An email is captured as its MIME source. The other channels have no common wire format: they are
/// captured as a JSON document with `channel`, `to`, `title`, `text` and `html`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sandbox;

#[async_trait]
impl Transport for Sandbox {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let captured = match &outgoing.content {
            Content::Email(email) => mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?,
            Content::Text(message) => document(outgoing, message),
        };
        let admitted = outgoing.last_look.begin(&outgoing.recipients).await;
        let outcomes: Vec<_> = admitted
            .into_iter()
            .map(|one| one.refusal().unwrap_or_else(|| Outcome::accepted(Acceptance::Delivered, accepted())))
            .collect();
        if !outcomes.iter().any(Outcome::is_accepted) {
            return Ok(Sent { outcomes, ..Sent::default() });
        }
        Ok(Sent { outcomes, captured: Some(Bytes::from(captured)), ..Sent::default() })
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn accepted() -> Response {
    Response {
        code: Some(250),
        enhanced: Some("2.0.0".into()),
        text: "2.0.0 captured".into(),
        host: Some("sandbox".into()),
    }
}

fn document(outgoing: &Outgoing, message: &TextMessage) -> Vec<u8> {
    let TextMessage { channel, title, text, html } = message;
    let to = outgoing.recipients.first();
    json!({"channel": channel, "to": to, "title": title, "text": text, "html": html}).to_string().into_bytes()
}
