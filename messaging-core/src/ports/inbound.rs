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

/// An address that every mail host has (RFC 2142): `postmaster` or `abuse` of one of the installation's own names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleAddress {
    /// The address, in lower case.
    pub address: String,
    /// Workspace that forwards mail to the address.
    pub workspace_id: WorkspaceId,
    /// Verified sending domain of that workspace that mail is forwarded from.
    pub domain: String,
}

/// A mail to a [`RoleAddress`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleMail {
    /// Envelope sender; `None` if nobody may reply (RFC 5321 section 4.5.5).
    pub sender: Option<String>,
    /// Address in `Reply-To`, if it is one.
    pub reply_to: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// True if a program sent the mail by itself (RFC 3834).
    pub is_automatic: bool,
    /// Addresses whose mail it was forwarded from before (`X-Loop`).
    pub handed_on: Vec<String>,
    /// Number of hosts that the mail passed (`Received`).
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
    /// Address of the host that sent the mail.
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

/// Knows the return addresses, and stores reports. The engine implements it.
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
    /// Returns the content of a return address; `None` if it is none of this server.
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError>;

    /// Stores a report. It is durable on return; the same report twice has one effect.
    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError>;

    /// Returns the sending domain that an address receives reports about; `None` if there is none. By default there is
    /// none.
    async fn report_address(&self, _address: &str) -> Result<Option<ReportAddress>, StoreError> {
        Ok(None)
    }

    /// Stores a report about a sending domain. It is durable on return; the same report twice counts once.
    async fn receive_domain_report(&self, _to: &ReportAddress, _mail: &ReportMail) -> Result<(), InboundError> {
        Ok(())
    }

    /// Returns the role address that an address is, if its mail is forwarded to people. By default none is.
    async fn role_address(&self, _address: &str) -> Result<Option<RoleAddress>, StoreError> {
        Ok(None)
    }

    /// Forwards a mail. It is durable on return; the same mail twice has one effect. A mail that could loop is accepted
    /// and not forwarded.
    async fn hand_on(&self, _to: &RoleAddress, _mail: RoleMail) -> Result<(), InboundError> {
        Ok(())
    }
}

/// Stores reports of providers about messages, and messages that recipients send over their accounts. The engine
/// implements it.
#[async_trait]
pub trait ProviderSink: Send + Sync + 'static {
    /// Returns the message whose receipts a token is for, if this server gave the token out with a message
    /// ([`ReceiptAddress::token`](super::transport::ReceiptAddress::token)).
    fn receipt_token(&self, token: &str) -> Option<(WorkspaceId, MessageId)>;

    /// Stores a receipt. It is durable on return; the same receipt twice has one effect, and receipts may come in any
    /// order and before the end of the attempt that they are about. An unknown message is no error: it is looked up
    /// again for some minutes.
    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError>;

    /// Stores a recipient's message. It is durable on return; the same message twice has one effect.
    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError>;

    /// True if a channel has this provider with these settings at present, apart from its rate limit. A connection that
    /// a transport keeps with replaced or removed settings has to end.
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
    /// The message to which the provider gave this name when it accepted it, over the account of this channel.
    Provider {
        /// The workspace that has the account.
        workspace_id: WorkspaceId,
        /// The channel of the account.
        channel: Channel,
        /// The provider.
        provider: String,
        /// The provider's name for the message.
        provider_message_id: String,
        /// Other spellings of that name, for a provider that does not keep to one. They are used if no message has the
        /// name itself, and only if they lead to one message alone.
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
