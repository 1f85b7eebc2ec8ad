//! The port for returned data: bounces, complaints and requests to unsubscribe by mail, and receipts and recipients'
//! messages from providers.
//!
//! It is handed over as data. The receiver has proved its origin (the token in an address, a signature over a request)
//! and parsed it; the meaning is decided by core.

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

/// A return address of this server, with the content of its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnAddress {
    /// The message's workspace.
    pub workspace_id: WorkspaceId,
    /// The message that carried the address.
    pub message_id: MessageId,
    /// Purpose of mail to the address.
    pub purpose: ReturnPurpose,
    /// The one recipient that it concerns; `None` if the address is part of content that all recipients share.
    pub recipient: Option<RecipientTag>,
}

/// An address that every mail host has (RFC 2142): `postmaster` or `abuse` at the host name, at the installation's name
/// or at the bounce domain of a verified sending domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleAddress {
    /// The address, in lower case.
    pub address: String,
    /// Workspace that forwards the mail sent to the address.
    pub workspace_id: WorkspaceId,
    /// Verified sending domain of that workspace, used in the `From` address of the forwarded mail.
    pub domain: String,
}

/// A mail to a [`RoleAddress`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleMail {
    /// Envelope sender; `None` for the null sender (RFC 5321 section 4.5.5).
    pub sender: Option<String>,
    /// First address in `Reply-To`, or in `From` if the mail has no `Reply-To`.
    pub reply_to: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// True if a program sent the mail by itself (`Auto-Submitted`, RFC 3834).
    pub is_automatic: bool,
    /// Addresses that have forwarded the mail before (`X-Loop`).
    pub handed_on: Vec<String>,
    /// Number of hosts that the mail passed (`Received` fields).
    pub hops: usize,
    /// The whole mail, as it arrived.
    pub source: Bytes,
}

/// An address of this server that receives reports about a sending domain.
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

/// A mail with a report about a sending domain, and evidence of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMail {
    /// IP address of the host that sent the mail.
    pub client: IpAddr,
    /// The domain of the envelope sender; `None` for the null sender.
    pub envelope_domain: Option<String>,
    /// The domain of the `From` field; `None` if there is not exactly one.
    pub from_domain: Option<String>,
    /// Signatures of the mail with a correct body hash; their keys were not looked up yet.
    pub signatures: Vec<ReceivedSignature>,
    /// The report.
    pub report: DomainReport,
}

/// Receiver of mail to this server: resolves its addresses, and stores reports. The engine implements it.
///
/// A sink that knows no address, and so accepts no mail:
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
    /// Returns the content of a return address; `None` if the address is no return address of this server.
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError>;

    /// Stores a report, which is durable on return. Storing the same report twice has one effect.
    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError>;

    /// Returns the sending domain that an address receives reports about; `None` if there is none, as by default.
    async fn report_address(&self, _address: &str) -> Result<Option<ReportAddress>, StoreError> {
        Ok(None)
    }

    /// Stores a report about a sending domain, which is durable on return. The same report twice counts once.
    async fn receive_domain_report(&self, _to: &ReportAddress, _mail: &ReportMail) -> Result<(), InboundError> {
        Ok(())
    }

    /// Returns the role address that a text names, if mail to it is forwarded; `None` otherwise, and by default.
    async fn role_address(&self, _address: &str) -> Result<Option<RoleAddress>, StoreError> {
        Ok(None)
    }

    /// Forwards a mail by a message that is durable on return. The same mail twice is forwarded once. A mail that could
    /// loop is accepted and not forwarded.
    async fn hand_on(&self, _to: &RoleAddress, _mail: RoleMail) -> Result<(), InboundError> {
        Ok(())
    }
}

/// Receiver of providers' reports about messages, and of messages that recipients send to a provider's account. The
/// engine implements it.
#[async_trait]
pub trait ProviderSink: Send + Sync + 'static {
    /// Returns the message whose receipts carry a token, if this server made the token
    /// ([`ReceiptAddress::token`](super::transport::ReceiptAddress::token)).
    fn receipt_token(&self, token: &str) -> Option<(WorkspaceId, MessageId)>;

    /// Stores a receipt, which is durable on return. The same receipt twice has one effect. Receipts may come in any
    /// order, and before the end of the attempt that they are about. An unknown message is no error: it is looked up
    /// again for some minutes.
    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError>;

    /// Stores a recipient's message, which is durable on return. The same message twice has one effect.
    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError>;

    /// Returns true if a channel has this provider with these settings at present; its rate limit may differ. A
    /// transport closes a connection whose settings were replaced or removed.
    async fn has_settings(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        settings: &Map<String, Value>,
    ) -> Result<bool, InboundError>;
}

/// Message that a receipt is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptLink {
    /// The message whose token the receipt brought.
    Message {
        /// The workspace.
        workspace_id: WorkspaceId,
        /// The message.
        message_id: MessageId,
    },
    /// The message that the provider accepted under this id, through the account of this channel.
    Provider {
        /// The workspace that has the account.
        workspace_id: WorkspaceId,
        /// The channel of the account.
        channel: Channel,
        /// The provider.
        provider: String,
        /// The provider's id of the message.
        provider_message_id: String,
        /// Other spellings of that id, for a provider that does not always use the same. They are tried if no message
        /// has the id itself, and count only if they lead to exactly one message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        spellings: Vec<String>,
    },
}

/// A report was not stored; the sender has to repeat it later.
#[derive(Debug, thiserror::Error)]
#[error("failed to keep a report")]
pub struct InboundError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl InboundError {
    /// Returns an error with its cause.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
