//! What returned mail does: its recipients are return addresses, its content is a report. Mail to the operator
//! (`postmaster`, `abuse`) comes here too, and is handed on.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::mail::report::Report;
use messaging_core::error::Chain;
use messaging_core::ports::inbound::{InboundError, InboundSink, ReturnAddress, RoleAddress};
use messaging_core::ports::store::StoreError;

use super::{report, role_mail};
use crate::smtp_server::handler::{ContentLimits, Handler, Reply, Service};

/// The service of a server for returned mail.
pub(super) struct ReturnedMail(Arc<dyn InboundSink>);

impl ReturnedMail {
    pub(super) fn new(sink: Arc<dyn InboundSink>) -> Self {
        Self(sink)
    }
}

impl Service for ReturnedMail {
    fn begin(&self, _: IpAddr) -> Box<dyn Handler> {
        Box::new(ReturnedMailHandler { sink: Arc::clone(&self.0), sender: None, recipients: Vec::new() })
    }
}

/// The handler of one mail on its way.
struct ReturnedMailHandler {
    sink: Arc<dyn InboundSink>,
    sender: Option<String>,
    recipients: Vec<Recipient>,
}

/// Whom a mail is for.
#[derive(Debug, PartialEq, Eq)]
enum Recipient {
    /// A message of ours.
    Message(ReturnAddress),
    /// The operator.
    Role(RoleAddress),
}

impl ReturnedMailHandler {
    async fn find(&self, address: &str) -> Result<Option<Recipient>, StoreError> {
        if let Some(known) = self.sink.return_address(address).await? {
            return Ok(Some(Recipient::Message(known)));
        }
        Ok(self.sink.role_address(address).await?.map(Recipient::Role))
    }

    async fn take_note(&self, report: Report, source: Vec<u8>) -> Result<(), InboundError> {
        let source = Bytes::from(source);
        for to in &self.recipients {
            // What one recipient had done to it stays done: when the mail comes again, that has no
            // second effect.
            match to {
                Recipient::Message(to) => self.sink.receive(to, &report).await?,
                Recipient::Role(to) => {
                    let mail = role_mail::read(self.sender.clone(), source.clone());
                    self.sink.hand_on(to, mail).await?;
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Handler for ReturnedMailHandler {
    fn greeting(&self) -> &'static str {
        "ESMTP for returned mail"
    }

    async fn mail(&mut self, from: &str, _: usize) -> Reply {
        self.sender = Some(from.to_owned()).filter(|from| !from.is_empty());
        // Whoever sends may have any name: a daemon of another domain, or none.
        Reply::done("250 2.1.0 ok")
    }

    async fn recipient(&mut self, address: &str, most: usize) -> Reply {
        if self.recipients.len() >= most {
            return Reply::refused("452 4.5.3 too many recipients");
        }
        match self.find(address).await {
            Ok(Some(known)) => {
                if !self.recipients.contains(&known) {
                    self.recipients.push(known);
                }
                Reply::done("250 2.1.5 ok")
            }
            // One answer, whatever is wrong with it.
            Ok(None) => Reply::refused("550 5.1.1 no such address"),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "a return address could not be looked up");
                Reply::TRY_LATER
            }
        }
    }

    fn has_recipients(&self) -> bool {
        !self.recipients.is_empty()
    }

    async fn data(&mut self) -> Result<ContentLimits, Reply> {
        if self.recipients.iter().any(|to| matches!(to, Recipient::Role(_))) {
            return Ok(ContentLimits { keep: role_mail::MAX_SIZE, limit: role_mail::MAX_SIZE });
        }
        Ok(ContentLimits { keep: report::MAX_READ, limit: usize::MAX })
    }

    async fn content(&mut self, source: Vec<u8>) -> Reply {
        let reading = tokio::task::spawn_blocking(move || (report::read(&source), source));
        let Ok((report, source)) = reading.await else {
            tracing::error!("reading a mail panicked");
            return Reply::TRY_LATER;
        };
        match self.take_note(report, source).await {
            Ok(()) => Reply::done("250 2.0.0 noted"),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "a mail had no effect");
                Reply::TRY_LATER
            }
        }
    }

    fn reset(&mut self) {
        (self.sender, self.recipients) = (None, Vec::new());
    }
}
