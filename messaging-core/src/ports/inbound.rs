//! Where what comes back is handed over: by mail bounces, complaints and requests to unsubscribe; from providers
//! receipts, and messages of recipients.
//!
//! It is handed over as data. Whoever receives it has proved where it comes from (the token in an address, a signature
//! over a request) and read what it says; what that means is decided here.

use std::net::IpAddr;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::StoreError;
use crate::domain::channel::Channel;
use crate::domain::channel::inbound_message::InboundMessage;
use crate::domain::channel::receipt::Receipt;
use crate::domain::mail::dmarc::report::DomainReport;
use crate::domain::mail::link_token::{RecipientTag, ReportPurpose, ReturnPurpose};
use crate::domain::mail::received_signature::ReceivedSignature;
use crate::domain::mail::report::Report;
use crate::ids::{DomainId, MessageId, WorkspaceId};

/// An address that we made, and what its token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnAddress {
    /// The message's workspace.
    pub workspace_id: WorkspaceId,
    /// The message that carried the address.
    pub message_id: MessageId,
    /// What mail to the address is about.
    pub purpose: ReturnPurpose,
    /// The one recipient whom it concerns; `None` where the address stands in content that all recipients share.
    pub recipient: Option<RecipientTag>,
}

/// An address that every mail host has (RFC 2142): `postmaster` or `abuse` of one of the installation's own names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleAddress {
    /// The address, in lower case.
    pub address: String,
    /// The workspace that hands on what comes there.
    pub workspace_id: WorkspaceId,
    /// The verified sending domain of that workspace that it is handed on from.
    pub domain: String,
}

/// A mail to a [`RoleAddress`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleMail {
    /// The address of its envelope; `None` of what nobody may answer to (RFC 5321 section 4.5.5).
    pub sender: Option<String>,
    /// Whom its header names to answer to, if that is an address.
    pub reply_to: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// Whether a program wrote it by itself (RFC 3834).
    pub is_automatic: bool,
    /// The addresses whose mail it was handed on from before (`X-Loop`).
    pub handed_on: Vec<String>,
    /// The hosts that it went through (`Received`).
    pub hops: usize,
    /// All of it, as it arrived.
    pub source: Bytes,
}

/// An address of ours that receives reports about a sending domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportAddress {
    /// Workspace that owns the domain.
    pub workspace_id: WorkspaceId,
    /// The domain.
    pub domain_id: DomainId,
    /// Name of the domain, lower case A-labels.
    pub domain: String,
    /// Kind of the reports.
    pub purpose: ReportPurpose,
}

/// A mail with a report about a sending domain, and what tells whose mail it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMail {
    /// The address of the host that brought the mail.
    pub client: IpAddr,
    /// The domain of the envelope sender; `None` for the null sender.
    pub envelope_domain: Option<String>,
    /// The domain of the `From` field; `None` if there is not exactly one.
    pub from_domain: Option<String>,
    /// Signatures of the mail whose body hash is right; their keys were not looked up yet.
    pub signatures: Vec<ReceivedSignature>,
    /// The report.
    pub report: DomainReport,
}

/// Knows the return addresses, and keeps what reports say. The engine is one.
///
/// One that knows no address, and so takes no mail:
///
/// ```
/// use async_trait::async_trait;
/// use messaging_core::domain::mail::report::Report;
/// use messaging_core::ports::inbound::{InboundError, InboundSink, ReturnAddress};
/// use messaging_core::ports::store::StoreError;
///
/// struct Closed;
///
/// #[async_trait]
/// impl InboundSink for Closed {
///     async fn return_address(&self, _: &str) -> Result<Option<ReturnAddress>, StoreError> {
///         Ok(None)
///     }
///
///     async fn receive(&self, _: &ReturnAddress, _: &Report) -> Result<(), InboundError> {
///         Err(InboundError::new("nobody listens"))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// assert!(Closed.return_address("bounce@example.org").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait InboundSink: Send + Sync + 'static {
    /// What an address says, if it is a return address of ours.
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError>;

    /// Takes note of a report. When it returns, that is durable; the same report twice has one effect.
    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError>;

    /// What an address says, if it receives reports about a sending domain. By default none does.
    async fn report_address(&self, _address: &str) -> Result<Option<ReportAddress>, StoreError> {
        Ok(None)
    }

    /// Takes note of a report about a sending domain. When it returns, that is durable; the same report twice counts once.
    async fn receive_domain_report(&self, _to: &ReportAddress, _mail: &ReportMail) -> Result<(), InboundError> {
        Ok(())
    }

    /// What an address says, if mail to it is handed on to people. By default none is.
    async fn role_address(&self, _address: &str) -> Result<Option<RoleAddress>, StoreError> {
        Ok(None)
    }

    /// Hands a mail on. When it returns, that is durable; the same mail twice has one effect. What could go in a circle is
    /// taken and not handed on.
    async fn hand_on(&self, _to: &RoleAddress, _mail: RoleMail) -> Result<(), InboundError> {
        Ok(())
    }
}

/// Keeps what providers say of messages, and what recipients send over their accounts. The engine is one.
#[async_trait]
pub trait ProviderSink: Send + Sync + 'static {
    /// The message whose receipts a token is for, if it is one that we gave out with a message
    /// ([`ReceiptAddress::token`](super::transport::ReceiptAddress::token)).
    fn receipt_token(&self, token: &str) -> Option<(WorkspaceId, MessageId)>;

    /// Takes note of a receipt. When it returns, that is durable; the same receipt twice has one effect, and receipts
    /// may come in any order and before the attempt that they are about has ended. A message that nobody knows is no
    /// error: it is looked for once more for some minutes.
    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError>;

    /// Takes note of what a recipient sent. When it returns, that is durable; the same twice has one effect.
    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError>;

    /// Whether a channel has this provider with these settings at present, but for how fast messages leave. A connection
    /// that a transport keeps by settings which were replaced or removed has to end.
    async fn has_settings(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        settings: &Map<String, Value>,
    ) -> Result<bool, InboundError>;
}

/// Which message a receipt is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptLink {
    /// The one whose token the receipt brought.
    Message {
        /// The workspace.
        workspace_id: WorkspaceId,
        /// The message.
        message_id: MessageId,
    },
    /// The one that the provider named so when it took it, over the account of this channel.
    Provider {
        /// The workspace that has the account.
        workspace_id: WorkspaceId,
        /// The channel of the account.
        channel: Channel,
        /// The provider.
        provider: String,
        /// Its name for the message.
        provider_message_id: String,
        /// Other spellings of that name, for a provider that does not keep to one. They count where no message has the
        /// name itself, and only if they lead to one message alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        spellings: Vec<String>,
    },
}

/// A report was not kept; whoever brought it shall bring it again later.
#[derive(Debug, thiserror::Error)]
#[error("failed to keep a report")]
pub struct InboundError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl InboundError {
    /// With what prevented it.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
