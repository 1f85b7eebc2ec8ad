//! The provider `sandbox`: nothing leaves the server.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::ports::transport::{
    Acceptance, Content, Outcome, Outgoing, Response, Sent, TelegramText, Transport, TransportError, WhatsappContent,
};
use serde_json::json;

use crate::mime;

/// Accepts everything and answers with the bytes that would have gone on the wire.
///
/// An email is captured as its MIME source. The other channels have no common wire format: they are
/// captured as a JSON document with `channel`, `to` and what the channel has, such as `title`, `text` and `buttons`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sandbox;

#[async_trait]
impl Transport for Sandbox {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let captured = match &outgoing.content {
            Content::Email(email) => mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?,
            other => document(outgoing, other),
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

/// The content as people want to see it, under the names of the request (contract section 4.1).
fn document(outgoing: &Outgoing, content: &Content) -> Vec<u8> {
    let mut shown = match content {
        Content::Email(_) => json!({}),
        Content::Sms(sms) => json!({"text": sms.text}),
        Content::Push(push) => {
            json!({"title": push.title, "text": push.text, "image": push.image, "data": push.data})
        }
        Content::Telegram(telegram) => {
            let (text, html) = match &telegram.text {
                TelegramText::Plain(text) => (Some(text), None),
                TelegramText::Html(html) => (None, Some(html)),
            };
            json!({"text": text, "html": html, "buttons": telegram.buttons, "media": telegram.media})
        }
        Content::Whatsapp(whatsapp) => match whatsapp.as_ref() {
            WhatsappContent::Text { text, button, media, .. } => {
                json!({"text": text, "button": button, "media": media})
            }
            WhatsappContent::Template(template) => json!({"provider_template": template}),
        },
        Content::Viber(viber) => json!({"text": viber.text, "button": viber.button, "image": viber.image}),
    };
    shown["channel"] = json!(content.channel());
    shown["to"] = json!(outgoing.recipients.first());
    shown.to_string().into_bytes()
}
