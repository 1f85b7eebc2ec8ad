//! Submission by SMTP: the checks of a request and its acceptance, for messages that come as mail.
//!
//! Keys, allowlists, rate limits, memory and the operation are those of `POST /messages`: only the refusals are SMTP's
//! (contract section 22, "Submission").

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::error::Chain;
use messaging_core::ids::MessageId;
use messaging_core::violation::{At, FieldCode, Violations};
use messaging_engine::ops::{self, Endpoint, Operation as _, messages::SendMessage};
use messaging_engine::{Caller, Error};
use messaging_transport::submission::{Refusal, Room, SubmissionSink, Submitter};

use crate::body::Sender;
use crate::pipeline::{Pipeline, owner_of};

/// The sink of mail submitted by SMTP: it passes messages to the pipeline of the HTTP server.
pub(crate) struct MailSubmissionSink {
    pipeline: Arc<Pipeline>,
    endpoint: &'static Endpoint,
}

impl MailSubmissionSink {
    pub(crate) fn new(pipeline: Arc<Pipeline>) -> Self {
        let is_send = |endpoint: &&Endpoint| endpoint.id == SendMessage::ID;
        let endpoint = ops::all().iter().find(is_send).expect("the operation is one of all");
        Self { pipeline, endpoint }
    }
}

#[async_trait]
impl SubmissionSink for MailSubmissionSink {
    async fn sign_in(&self, key: &str, client: IpAddr) -> Result<Box<dyn Submitter>, Refusal> {
        let Self { ref pipeline, endpoint } = *self;
        let program = Program {
            pipeline: Arc::clone(pipeline),
            endpoint,
            key: key.to_owned(),
            client,
            octets: AtomicUsize::new(0),
        };
        program.caller().await.map_err(|error| refusal(&error))?;
        Ok(Box::new(program))
    }
}

/// A program that has signed in. Its key is looked up again at every step, because a connection may outlast the key.
struct Program {
    pipeline: Arc<Pipeline>,
    endpoint: &'static Endpoint,
    key: String,
    client: IpAddr,
    /// The length of the message, if it is long.
    octets: AtomicUsize,
}

impl Program {
    async fn caller(&self) -> Result<Caller, Error> {
        match self.pipeline.app.authenticate(&self.key).await? {
            caller @ Caller::Key(_) => Ok(caller),
            // A session belongs to a person at a browser.
            _ => Err(Error::InvalidCredentials),
        }
    }

    /// Checks 2, 3 and 5 to 7 of contract section 1.3.
    async fn admitted(&self) -> Result<Caller, Error> {
        let caller = self.caller().await?;
        if !caller.admits(self.client) {
            return Err(Error::IpNotAllowed);
        }
        let admitted = self.pipeline.app.admit(caller, self.endpoint, &[], None).await?;
        Ok(admitted.caller().clone())
    }

    fn sender(&self, caller: &Caller) -> Sender {
        Sender { owner: owner_of(caller, caller.workspace()), network: CallerNetwork::of(self.client) }
    }

    async fn accept(&self, message: MessageInput, idempotency_key: Option<String>) -> Result<MessageId, Error> {
        let caller = self.admitted().await?;
        let Pipeline { app, budget, .. } = &*self.pipeline;
        let _turn = budget.turn(self.octets.swap(0, Relaxed), self.sender(&caller)).await?;
        let sending = app.send_once(message, idempotency_key, &caller);
        Ok(self.pipeline.survive(sending, self.endpoint.id, "").await?.message_id)
    }
}

#[async_trait]
impl Submitter for Program {
    async fn may_send(&self) -> Result<(), Refusal> {
        self.admitted().await.map(drop).map_err(|error| refusal(&error))
    }

    async fn count(&self) -> Result<(), Refusal> {
        let caller = self.admitted().await.map_err(|error| refusal(&error))?;
        self.octets.store(0, Relaxed);
        self.pipeline.take_token(&caller, &mut None).map(drop).map_err(|error| refusal(&error))
    }

    async fn make_room(&self, octets: usize) -> Result<Room, Refusal> {
        let caller = self.admitted().await.map_err(|error| refusal(&error))?;
        self.octets.store(octets, Relaxed);
        let room = self.pipeline.budget.hold(octets as u64, self.sender(&caller)).await;
        Ok(Box::new(room.map_err(|error| refusal(&error))?))
    }

    async fn submit(&self, message: MessageInput, idempotency_key: Option<String>) -> Result<MessageId, Refusal> {
        let outcome = self.accept(message, idempotency_key).await;
        let code = outcome.as_ref().err().map(Error::code);
        tracing::debug!(message_id = outcome.as_ref().ok().map(tracing::field::display), code, "a mail was submitted");
        outcome.map_err(|error| refusal(&error))
    }
}

/// The SMTP refusal of an error: reply code, enhanced status code, and the error's code with its message.
fn refusal(error: &Error) -> Refusal {
    if let Error::Internal(cause) = error {
        tracing::error!(error = %Chain(cause.as_ref()), "a submitted mail failed");
    }
    let text = format!("{}: {error}", error.code());
    match error {
        Error::MissingCredentials | Error::InvalidCredentials => Refusal::new(535, "5.7.8", text),
        Error::ScopeRequired(_)
        | Error::WorkspaceForbidden
        | Error::SessionRequired
        | Error::RoleForbidden
        | Error::IpNotAllowed
        | Error::SenderNotVerified(_)
        | Error::Unprocessable(_) => Refusal::new(550, "5.7.1", text),
        Error::RateLimited { retry_after } => {
            Refusal::new(451, "4.7.1", format!("{text}, come back in {retry_after} s"))
        }
        Error::Unavailable { .. }
        | Error::OutcomeUnknown { .. }
        | Error::IdempotencyInProgress
        | Error::Internal(_) => Refusal::new(451, "4.3.0", text),
        Error::PayloadTooLarge { .. } => Refusal::new(552, "5.3.4", text),
        Error::Validation(violations) => invalid(violations),
        Error::IdempotencyKeyReused => {
            Refusal::new(550, "5.6.0", "idempotency_key_reused: another mail was sent with this Message-ID")
        }
        _ => Refusal::new(550, "5.6.0", text),
    }
}

/// The refusal of a message with violations, named by the first one.
fn invalid(violations: &Violations) -> Refusal {
    let Some(first) = violations.as_slice().first() else { return Refusal::new(550, "5.6.0", "validation_failed") };
    let (At::Pointer(place) | At::Parameter(place)) = &first.at;
    let more = match violations.as_slice().len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let text = format!("validation_failed: {place}: {}{more}", first.message);
    let member = place.split('/').nth(1).unwrap_or_default();
    let (code, enhanced) = match (member, first.code) {
        ("cc" | "bcc", FieldCode::TooManyItems) => (452, "4.5.3"),
        ("to" | "cc" | "bcc" | "from_email" | "reply_to", _) => (553, "5.1.3"),
        ("html" | "text" | "attachments", FieldCode::TooLong | FieldCode::TooLarge) => (552, "5.3.4"),
        ("headers", FieldCode::NotAllowed) => (550, "5.7.1"),
        _ => (550, "5.6.0"),
    };
    Refusal::new(code, enhanced, text)
}
