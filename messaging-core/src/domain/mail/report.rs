//! Content of reports that come back by mail: bounces (RFC 3464) and complaints (RFC 5965).
//!
//! The receiver parses them (messaging-transport, `inbound/report.rs`); this is the result.

use crate::domain::delivery::response::Response;

/// Content of a mail to a return address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A delivery status notification, or a bounce in another form, as some hosts send it.
    Delivery(Vec<RecipientReport>),
    /// A feedback report.
    Complaint {
        /// `abuse`, `fraud`, … (RFC 5965 section 7.3).
        feedback_type: String,
        /// Addresses of the recipients who complained; empty if the report does not name them.
        recipients: Vec<String>,
    },
    /// Any other mail, such as an automatic reply or a mail by a person. It changes nothing.
    Other,
}

/// Report of a notification about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientReport {
    /// Addresses that the report gives for the recipient, the original one first; may be empty.
    pub addresses: Vec<String>,
    /// Action that the report gives for this recipient, such as failed or delayed.
    pub action: Action,
    /// Status code and diagnostic text, for classification.
    pub response: Response,
}

/// Field `Action` of a report (RFC 3464 section 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The host has given up.
    Failed,
    /// The host has not delivered the message yet and keeps trying.
    Delayed,
    /// Delivered.
    Delivered,
    /// Passed on to a system that does not report.
    Relayed,
    /// Passed on to several recipients.
    Expanded,
}
