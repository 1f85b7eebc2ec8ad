//! Handler of returned mail: its recipients are return addresses, its content is a report. It also receives reports
//! about sending domains, and mail to the operator (`postmaster`, `abuse`), which is forwarded.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::mail::report::Report;
use messaging_core::error::Chain;
use messaging_core::ports::inbound::{
    InboundError, InboundSink, ReportAddress, ReportMail, ReturnAddress, RoleAddress,
};
use messaging_core::ports::store::StoreError;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::report::mail::Mail;
use super::{domain_report, report, role_mail};
use crate::dkim;
use crate::smtp_server::handler::{ContentLimits, Handler, Reply, Service};

/// Service of the server for returned mail.
pub(super) struct ReturnedMail {
    sink: Arc<dyn InboundSink>,
    room: Room,
}

impl ReturnedMail {
    pub(super) fn new(sink: Arc<dyn InboundSink>) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { sink, room: Room { long: semaphore(LONG_AT_A_TIME), reading: semaphore(READ_AT_A_TIME) } }
    }
}

/// Maximum number of long mails in memory at a time, each of at most 10 MiB.
const LONG_AT_A_TIME: usize = 8;

/// Time to wait for room for a long mail.
const ROOM_WITHIN: Duration = Duration::from_mins(1);

/// Maximum number of domain reports that are parsed at a time: one may have 64 MiB when unpacked.
const READ_AT_A_TIME: usize = 2;

/// Room for long mails, which all clients share.
#[derive(Debug, Clone)]
struct Room {
    long: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

impl Service for ReturnedMail {
    fn begin(&self, client: IpAddr) -> Box<dyn Handler> {
        Box::new(ReturnedMailHandler {
            sink: Arc::clone(&self.sink),
            client,
            room: self.room.clone(),
            held: None,
            sender: None,
            recipients: Vec::new(),
        })
    }
}

/// The handler of one mail on its way.
struct ReturnedMailHandler {
    sink: Arc<dyn InboundSink>,
    client: IpAddr,
    room: Room,
    /// Room for a long mail, while it is in memory.
    held: Option<OwnedSemaphorePermit>,
    sender: Option<String>,
    recipients: Vec<Recipient>,
}

/// Recipient of a mail.
#[derive(Debug, PartialEq, Eq)]
enum Recipient {
    /// The return address of a message.
    Message(ReturnAddress),
    /// The report address of a sending domain.
    Domain(ReportAddress),
    /// The operator.
    Role(RoleAddress),
}

/// Reason why a mail had no effect.
#[derive(Debug)]
enum Failure {
    /// The report cannot be used, now or later.
    Refused(domain_report::Unreadable),
    /// The sender has to send it again later.
    Later,
}

impl From<InboundError> for Failure {
    fn from(error: InboundError) -> Self {
        tracing::error!(error = %Chain(&error), "a mail had no effect");
        Self::Later
    }
}

impl ReturnedMailHandler {
    async fn find(&self, address: &str) -> Result<Option<Recipient>, StoreError> {
        if let Some(known) = self.sink.return_address(address).await? {
            return Ok(Some(Recipient::Message(known)));
        }
        if let Some(known) = self.sink.report_address(address).await? {
            return Ok(Some(Recipient::Domain(known)));
        }
        Ok(self.sink.role_address(address).await?.map(Recipient::Role))
    }

    async fn take_note(&self, report: Report, source: Vec<u8>) -> Result<(), Failure> {
        let source = Bytes::from(source);
        for to in &self.recipients {
            // Effects for one recipient stay: when the mail is sent again, they are not repeated.
            match to {
                Recipient::Message(to) => self.sink.receive(to, &report).await?,
                Recipient::Domain(to) => self.take_domain_report(to, source.clone()).await?,
                Recipient::Role(to) => {
                    let mail = role_mail::read(self.sender.clone(), source.clone());
                    self.sink.hand_on(to, mail).await?;
                }
            }
        }
        Ok(())
    }

    /// Parses a report about a domain, apart from the threads that serve clients, and hands it over.
    async fn take_domain_report(&self, to: &ReportAddress, source: Bytes) -> Result<(), Failure> {
        let Ok(turn) = Arc::clone(&self.room.reading).acquire_owned().await else { return Err(Failure::Later) };
        let (address, client, sender) = (to.clone(), self.client, self.sender.clone());
        let reading = tokio::task::spawn_blocking(move || -> Result<ReportMail, Failure> {
            let _turn = turn;
            let mail = Mail::read(&source);
            let domain = |address: &str| address.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase());
            let mut from = mail.header.all("From");
            let from = from.next().filter(|_| from.next().is_none()).and_then(role_mail::first_address);
            Ok(ReportMail {
                client,
                envelope_domain: sender.as_deref().and_then(domain),
                from_domain: from.as_deref().and_then(domain),
                signatures: dkim::signatures(&source),
                report: domain_report::read(&mail, &address).map_err(Failure::Refused)?,
            })
        });
        let mail = reading.await.unwrap_or_else(|_| {
            tracing::error!("reading a report about a domain panicked");
            Err(Failure::Later)
        })?;
        Ok(self.sink.receive_domain_report(to, &mail).await?)
    }
}

#[async_trait]
impl Handler for ReturnedMailHandler {
    fn greeting(&self) -> &'static str {
        "ESMTP for returned mail"
    }

    async fn mail(&mut self, from: &str, _: usize) -> Reply {
        self.sender = Some(from.to_owned()).filter(|from| !from.is_empty());
        // The sender may have any address: a daemon of another domain, or none.
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
            // The same answer, whatever the fault.
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
        if self.recipients.iter().any(|to| matches!(to, Recipient::Domain(_))) {
            return Ok(ContentLimits { keep: domain_report::MAX_MAIL, limit: domain_report::MAX_MAIL });
        }
        Ok(ContentLimits { keep: report::MAX_READ, limit: usize::MAX })
    }

    async fn make_room(&mut self) -> Result<(), Reply> {
        if self.recipients.iter().any(|to| matches!(to, Recipient::Domain(_))) {
            let waiting = tokio::time::timeout(ROOM_WITHIN, Arc::clone(&self.room.long).acquire_owned());
            let Ok(Ok(held)) = waiting.await else {
                return Err(Reply::Later("452 4.3.1 too many long mails at once, try again later".into()));
            };
            self.held = Some(held);
        }
        Ok(())
    }

    async fn content(&mut self, source: Vec<u8>) -> Reply {
        let reading = tokio::task::spawn_blocking(move || (report::read(&source), source));
        let Ok((report, source)) = reading.await else {
            tracing::error!("reading a mail panicked");
            return Reply::TRY_LATER;
        };
        match self.take_note(report, source).await {
            Ok(()) => Reply::done("250 2.0.0 noted"),
            Err(Failure::Refused(reason)) => Reply::refused(format!("554 5.6.0 {reason}")),
            Err(Failure::Later) => Reply::TRY_LATER,
        }
    }

    fn reset(&mut self) {
        (self.sender, self.recipients, self.held) = (None, Vec::new(), None);
    }
}
