//! Errors of rules, and errors printed with their causes.

use std::fmt;

use crate::ids::ContactId;
use crate::violation::{Position, Violations};

/// A refusal by a rule. `messaging-engine` turns it into the answer of contract section 1.4.
///
/// No variant carries a rejected value, an address, a key or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The body is not a JSON object; with the syntax error, if it is not JSON.
    #[error("the body is not a JSON object")]
    NotAnObject(Option<JsonFault>),
    /// Members that break their rules.
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
    #[error("the link was used already or has expired: ask for a new link, or sign in again")]
    LinkExpired,
    /// No sender was given and none can be derived.
    #[error("give from_email, or verify exactly one sending domain")]
    SenderMissing,
    /// The sender's domain is not a verified domain of the workspace.
    #[error("the sender's domain is not a verified sending domain of this workspace")]
    SenderDomainNotVerified,
    /// The database cannot store it, however often it is retried.
    #[error("the database cannot hold this; look for a value that is unusually long, and see the server's log")]
    NotStorable,
}

/// Position and reason of a JSON syntax error, in words that quote nothing of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule} at line {}, column {}", position.line, position.column)]
pub struct JsonFault {
    rule: String,
    /// The line, and the byte within it; both count from 1.
    pub position: Position,
}

impl JsonFault {
    /// Returns the parser's finding; `None` for an error that is not of the syntax.
    pub fn of(error: &serde_json::Error) -> Option<Self> {
        if !error.is_syntax() && !error.is_eof() {
            return None;
        }
        let text = error.to_string();
        let (rule, _) = text.rsplit_once(" at line ")?;
        // Before the first byte the parser counts from 0.
        let position = Position { line: error.line().max(1), column: error.column().max(1) };
        Some(Self { rule: rule.to_owned(), position })
    }
}

impl DomainError {
    /// Returns the code of contract section 1.4.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject(_) => "invalid_json",
            Self::Invalid(_) => "validation_failed",
            Self::IdentifierConflict { .. } => "identifier_conflict",
            Self::LinkExpired => "link_expired",
            Self::SenderMissing => "sender_missing",
            Self::SenderDomainNotVerified => "sender_domain_not_verified",
            Self::NotStorable => "internal_error",
        }
    }
}

impl From<Violations> for DomainError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

/// Prints an error and its causes, one after another, for a log line.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_one(f, self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            f.write_str(": ")?;
            write_one(f, error)?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Prints one error. JSON errors quote the unexpected text, which may be personal data: only the position of these is
/// printed.
fn write_one(f: &mut fmt::Formatter<'_>, error: &(dyn std::error::Error + 'static)) -> fmt::Result {
    match error.downcast_ref::<serde_json::Error>() {
        Some(json) => write!(f, "malformed JSON at line {}, column {}", json.line(), json.column()),
        None => write!(f, "{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot be read")]
    struct Unreadable(#[source] serde_json::Error);

    #[test]
    fn places_count_from_one() {
        for (text, line, column) in [("", 1, 1), ("{", 1, 1), ("{\"a\":1,}", 1, 8), ("{\n\n,", 3, 1)] {
            let fault = JsonFault::of(&serde_json::from_str::<serde_json::Value>(text).unwrap_err()).unwrap();
            assert_eq!((fault.position.line, fault.position.column), (line, column), "{text:?}");
        }
    }

    #[test]
    fn a_chain_does_not_repeat_what_json_held() {
        let error = serde_json::from_str::<u32>(r#""ann@example.org""#).unwrap_err();
        assert!(error.to_string().contains("ann@"), "{error}");
        let error = Unreadable(error);
        let told = Chain(&error).to_string();
        assert!(!told.contains("ann@") && told.contains("line 1"), "{told}");
    }
}
