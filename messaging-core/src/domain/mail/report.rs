//! Reports that come back by mail: bounces (RFC 3464), complaints (RFC 5965), unsubscribe requests.
//!
//! Parsing them is the matter of whoever receives them; here is what they say.

use crate::domain::delivery::response::Response;

/// What a letter to a return address says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A delivery status notification, or what some hosts send in its place.
    Delivery(Vec<RecipientReport>),
    /// A feedback report.
    Complaint {
        /// `abuse`, `fraud`, … (RFC 5965 section 7.3).
        feedback_type: String,
        /// Who complains, where the report says so.
        recipients: Vec<String>,
    },
    /// Neither: an automatic reply, or a person's letter. It changes nothing.
    Other,
}

/// What a notification says about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientReport {
    /// The addresses it names, the original one first; none where a host names none.
    pub addresses: Vec<String>,
    /// Action that the report gives for this recipient, such as failed or delayed.
    pub action: Action,
    /// The status and the diagnostic, for classification.
    pub response: Response,
}

/// RFC 3464 section 2.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Given up.
    Failed,
    /// Not yet.
    Delayed,
    /// Delivered.
    Delivered,
    /// Passed on to a system that does not report.
    Relayed,
    /// Passed on to several recipients.
    Expanded,
}
