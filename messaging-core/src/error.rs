//! What a rule refuses, and errors printed with their causes.

use std::fmt;

use crate::ids::ContactId;
use crate::violation::Violations;

/// What a rule refuses. `messaging-engine` turns it into the answer of contract section 1.4.
///
/// No variant carries a rejected value, an address, a key or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// Members break their rules.
    #[error("{}", .0.summary())]
    Invalid(Violations),
    /// An identifier belongs to another contact.
    #[error("another contact has this identifier")]
    IdentifierConflict {
        /// The member that gives the identifier.
        pointer: &'static str,
        /// The contact that has it.
        contact_id: ContactId,
    },
    /// The link was used, or its time is over.
    #[error("the link was used already, or is too old")]
    LinkExpired,
    /// No sender was given and none can be derived.
    #[error("give from_email, or verify exactly one sending domain")]
    SenderMissing,
    /// The sender's domain is not a verified domain of the workspace.
    #[error("the sender's domain is not a verified sending domain of this workspace")]
    SenderDomainNotVerified,
}

impl DomainError {
    /// The code of contract section 1.4.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "invalid_json",
            Self::Invalid(_) => "validation_failed",
            Self::IdentifierConflict { .. } => "identifier_conflict",
            Self::LinkExpired => "link_expired",
            Self::SenderMissing => "sender_missing",
            Self::SenderDomainNotVerified => "sender_domain_not_verified",
        }
    }
}

impl From<Violations> for DomainError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

/// Prints an error and its causes, one after another: what a log line wants.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
