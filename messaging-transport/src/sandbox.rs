//! The provider `sandbox`: nothing leaves the server.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::message::simulator::{SimulatedDevice, simulate_device};
use messaging_core::ports::inbound::{ProviderSink, ReceiptLink};
use messaging_core::ports::transport::{
    Acceptance, Answer, Content, Outcome, OutcomeClass, Outgoing, ProviderAnswer, Response, Sent, TelegramText,
    Transport, TransportError, WhatsappContent,
};
use serde_json::json;

use crate::mime;

/// Transport that accepts everything and returns the bytes that would have gone on the wire.
///
/// An email is captured as its MIME source. The other channels have no common wire format: they are captured as a JSON
/// document with `channel`, `to` and the members of the channel, such as `title`, `text` and `buttons`. Some recipients
/// are simulated devices: see [`simulate_device`].
#[derive(Clone, Default)]
pub struct Sandbox {
    /// Sink for the receipts of simulated recipients that read a message.
    sink: Arc<OnceLock<Weak<dyn ProviderSink>>>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Returns the outcome of a recipient who was admitted.
    async fn answer(&self, outgoing: &Outgoing, recipient: &str) -> Outcome {
        let channel = outgoing.content.channel();
        match simulate_device(channel, recipient) {
            None => Outcome::accepted(Acceptance::Delivered, accepted()),
            Some(SimulatedDevice { outcome, reads: false }) => outcome,
            Some(SimulatedDevice { outcome, reads: true }) => self.read(outgoing, outcome).await,
        }
    }

    /// Reports that the recipient reads the message. The receipt names the message by the provider's id, which becomes
    /// known with the commit of the delivery: so it counts after that.
    async fn read(&self, outgoing: &Outgoing, outcome: Outcome) -> Outcome {
        let Some(answer) = outcome.answer().cloned() else { return outcome };
        let name = format!("sandbox-{}", outgoing.message_id);
        let about = ReceiptLink::Provider {
            workspace_id: outgoing.workspace_id,
            channel: outgoing.content.channel(),
            provider: NAME.to_owned(),
            provider_message_id: name.clone(),
            spellings: Vec::new(),
        };
        let read = OutcomeClass::Accepted(Acceptance::Delivered);
        let receipt = Receipt::Read(Answer::new(read, Response::of_text("read")));
        if let Some(sink) = self.sink.get().and_then(Weak::upgrade)
            && let Err(error) = sink.receive_receipt(&about, &receipt).await
        {
            tracing::warn!(message_id = %outgoing.message_id, error = %error, "a simulated receipt is lost");
        }
        answer.provider(ProviderAnswer { message_id: Some(name), ..ProviderAnswer::default() }).into()
    }
}

/// Name of the provider.
const NAME: &str = "sandbox";

#[async_trait]
impl Transport for Sandbox {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let captured = match &outgoing.content {
            Content::Email(email) => mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?,
            other => document(outgoing, other),
        };
        let admitted = outgoing.last_look.begin(&outgoing.recipients).await;
        let mut outcomes = Vec::with_capacity(admitted.len());
        for (recipient, admitted) in outgoing.recipients.iter().zip(admitted) {
            outcomes.push(match admitted.refusal() {
                Some(refusal) => refusal,
                None => self.answer(outgoing, recipient).await,
            });
        }
        if !outcomes.iter().any(Outcome::is_accepted) {
            return Ok(Sent { outcomes, ..Sent::default() });
        }
        Ok(Sent { outcomes, captured: Some(Bytes::from(captured)), ..Sent::default() })
    }

    fn attach(&self, sink: Weak<dyn ProviderSink>) {
        // The first sink that was attached stays.
        let _ = self.sink.set(sink);
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

/// Returns the content as JSON, with the member names of the request (contract section 4.1).
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
