//! Handler of a submitting client: sign-in, envelope, and handing over the mail.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::channel::address::EmailAddress;

use super::mail::{self, Envelope};
use super::refusal::Refusal;
use super::sink::{Room, SubmissionSink, Submitter};
use crate::smtp_server::handler::{ContentLimits, Handler, Reply, Service};

/// Service of the submission server.
pub(super) struct Submitting(Arc<dyn SubmissionSink>);

impl Submitting {
    pub(super) fn new(sink: Arc<dyn SubmissionSink>) -> Self {
        Self(sink)
    }
}

impl Service for Submitting {
    fn begin(&self, client: IpAddr) -> Box<dyn Handler> {
        Box::new(Client {
            sink: Arc::clone(&self.0),
            address: client.to_canonical(),
            submitter: None,
            envelope: Envelope::default(),
            announced: 0,
            room: None,
        })
    }
}

/// A client, and the message that it is submitting.
struct Client {
    sink: Arc<dyn SubmissionSink>,
    address: IpAddr,
    submitter: Option<Box<dyn Submitter>>,
    envelope: Envelope,
    /// Size in octets that the client announced with SIZE; 0 if it announced none.
    announced: usize,
    room: Option<Room>,
}

/// Room reserved for a message of unannounced size: the maximum size of a message, in octets.
const UNANNOUNCED: usize = 25 << 20;

/// Octets by which a message may exceed twice the announced size: some clients count before line ends become two
/// octets.
const TOLERANCE: usize = 64 * 1024;

impl Client {
    /// Returns the maximum size of the message, in octets.
    fn most(&self) -> usize {
        match self.announced {
            0 => UNANNOUNCED,
            announced => announced.saturating_mul(2).saturating_add(TOLERANCE).min(UNANNOUNCED),
        }
    }

    fn submitter(&self) -> Result<&dyn Submitter, Refusal> {
        self.submitter.as_deref().ok_or_else(|| Refusal::new(530, "5.7.0", "sign in with AUTH first"))
    }

    async fn accept(&mut self, source: Vec<u8>) -> Result<String, Refusal> {
        let envelope = std::mem::take(&mut self.envelope);
        let reading = tokio::task::spawn_blocking(move || mail::read(&source, &envelope)).await;
        let read = reading.unwrap_or_else(|_| {
            tracing::error!("reading a mail panicked");
            Err(Refusal::TRY_LATER)
        })?;
        let id = self.submitter()?.submit(read.message, read.idempotency_key).await?;
        Ok(format!("250 2.0.0 {id} queued"))
    }
}

#[async_trait]
impl Handler for Client {
    fn greeting(&self) -> &'static str {
        "ESMTP for submission"
    }

    fn wants_sign_in(&self) -> bool {
        true
    }

    async fn sign_in(&mut self, password: &str) -> Reply {
        match self.sink.sign_in(password, self.address).await {
            Ok(submitter) => {
                self.submitter = Some(submitter);
                Reply::done("235 2.7.0 signed in")
            }
            Err(refusal) => refusal.into_reply(),
        }
    }

    async fn mail(&mut self, from: &str, size: usize) -> Reply {
        let allowed = match self.submitter() {
            Ok(submitter) => submitter.may_send().await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = allowed {
            return refusal.into_reply();
        }
        self.envelope.from = Some(from.to_owned()).filter(|from| !from.is_empty());
        self.announced = size;
        Reply::done("250 2.1.0 ok")
    }

    async fn recipient(&mut self, address: &str, most: usize) -> Reply {
        let recipients = &mut self.envelope.recipients;
        if EmailAddress::parse(address).is_err() {
            return Reply::refused("553 5.1.3 not an email address");
        }
        if !recipients.iter().any(|known| known == address) {
            if recipients.len() >= most {
                return Reply::Later("452 4.5.3 too many recipients".into());
            }
            recipients.push(address.to_owned());
        }
        Reply::done("250 2.1.5 ok")
    }

    fn has_recipients(&self) -> bool {
        !self.envelope.recipients.is_empty()
    }

    async fn data(&mut self) -> Result<ContentLimits, Reply> {
        let counted = match self.submitter() {
            Ok(submitter) => submitter.count().await,
            Err(refusal) => Err(refusal),
        };
        counted.map_err(Refusal::into_reply)?;
        Ok(ContentLimits { keep: usize::MAX, limit: self.most() })
    }

    async fn make_room(&mut self) -> Result<(), Reply> {
        let octets = self.most();
        let room = match self.submitter() {
            Ok(submitter) => submitter.make_room(octets).await,
            Err(refusal) => Err(refusal),
        };
        self.room = Some(room.map_err(Refusal::into_reply)?);
        Ok(())
    }

    async fn content(&mut self, source: Vec<u8>) -> Reply {
        self.accept(source).await.map_or_else(Refusal::into_reply, Reply::done)
    }

    fn reset(&mut self) {
        self.envelope = Envelope::default();
        (self.announced, self.room) = (0, None);
    }
}
