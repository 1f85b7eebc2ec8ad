//! Send calls of other services, so that a program written for one of them sends through this server once its base URL
//! is changed.
//!
//! Contract section 18. A request passes the same checks as any other one, and then its body is translated into that of
//! [`SendAllMessages`], so nothing here decides about a message. Members without a counterpart are refused by name: a
//! message without them would be another message. Errors are worded as by the other service, and name the members that
//! were sent.
//!
//! Each other service has a file like [`resend`], and a variant of [`DropIn`] for each of its calls.

mod idempotency;
mod members;
mod resend;
mod sendgrid;
mod translation;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use messaging_core::error::JsonFault;
use messaging_core::ids::MessageId;
use messaging_engine::Error;
use messaging_engine::ops::messages::batch::{AcceptedMessages, SendAllMessages};
use messaging_engine::ops::{Answer, Endpoint};

use crate::reply::{self, Reply};

pub(crate) use idempotency::idempotency_key;
pub(crate) use translation::Translated;

/// Bodies up to this length are translated on the thread that serves the request.
const SHORT: usize = 64 << 10;

/// A call of another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropIn {
    /// Resend, one email.
    ResendSend,
    /// Resend, several.
    ResendBatch,
    /// SendGrid.
    SendgridSend,
}

impl DropIn {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::ResendSend, Self::ResendBatch, Self::SendgridSend];

    /// The path, at the root of the server.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::ResendSend => "/emails",
            Self::ResendBatch => "/emails/batch",
            Self::SendgridSend => "/v3/mail/send",
        }
    }

    /// The operation that carries out the translated request.
    pub(crate) fn endpoint() -> &'static Endpoint {
        Endpoint::row::<SendAllMessages>()
    }

    /// Translates the request; a long one on another thread than those that serve requests.
    pub(crate) async fn translate(self, body: Bytes, headers: &HeaderMap) -> Result<Translated, Error> {
        if body.len() <= SHORT {
            return self.translated(&body, headers);
        }
        let headers = headers.clone();
        let translating = move || self.translated(&body, &headers);
        tokio::task::spawn_blocking(translating).await.map_err(Error::internal)?
    }

    fn translated(self, body: &Bytes, headers: &HeaderMap) -> Result<Translated, Error> {
        let body = serde_json::from_slice(body).map_err(|error| Error::InvalidJson(JsonFault::of(&error)))?;
        match self {
            Self::ResendSend => resend::one(body),
            Self::ResendBatch => resend::several(body, headers),
            Self::SendgridSend => sendgrid::send(body),
        }
    }

    /// The answer to a translated request. Of a refusal only its members are translated back.
    pub(crate) fn answer(self, translated: &Translated, outcome: Result<Answer, Error>) -> Result<Reply, Error> {
        let answer = outcome.map_err(|error| translated.named_back(error))?;
        let accepted: AcceptedMessages = serde_json::from_slice(&answer.body).map_err(Error::internal)?;
        let ids: Vec<_> = accepted.messages.iter().map(|message| message.message_id).collect();
        let mut reply = self.accepted(&ids, translated.check_only());
        if answer.replayed {
            reply::add_replayed(&mut reply);
        }
        Ok(reply)
    }

    /// The answer for accepted messages.
    fn accepted(self, ids: &[MessageId], check_only: bool) -> Reply {
        match self {
            Self::ResendSend => resend::accepted_one(ids),
            Self::ResendBatch => resend::accepted_several(ids),
            Self::SendgridSend if check_only => reply::bare(StatusCode::OK),
            Self::SendgridSend => sendgrid::accepted(ids),
        }
    }

    /// A refusal in the form of the service.
    pub(crate) fn refusal(self, error: &Error) -> Reply {
        let mut reply = match self {
            Self::ResendSend | Self::ResendBatch => resend::refusal(error),
            Self::SendgridSend => sendgrid::refusal(error),
        };
        reply::add_cause(&mut reply, error);
        reply
    }
}
