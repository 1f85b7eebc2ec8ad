//! Reasons why somebody is not signed in by single sign-on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of an error's name that are logged.
const MAX_ERROR_WORD: usize = 60;

/// Reason why somebody was not signed in by single sign-on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignOnRefusal {
    /// The answer is not that to the sign-in which this browser began in the last ten minutes.
    #[error("The sign-in took longer than ten minutes, or began in another browser or tab. Please try again.")]
    Expired,
    /// The person cancelled, or the provider refused them.
    #[error("The sign-in was cancelled, or you may not use this application. Ask whoever manages your accounts.")]
    Cancelled,
    /// The provider does not answer, or not as one.
    #[error("The sign-in service does not answer. Please try again in a few minutes.")]
    Unreachable,
    /// The provider refused the code, or reported a fault of its own.
    #[error("The sign-in service did not confirm the sign-in. Please try again.")]
    Provider,
    /// The ID token is none that counts.
    #[error("The answer of the sign-in service could not be verified. The log of the server says why.")]
    Token,
    /// The provider names no email.
    #[error("The sign-in service names no email address of yours. Ask whoever manages your accounts.")]
    EmailMissing,
    /// The provider has not verified the email.
    #[error("The sign-in service has not verified your email address. Ask whoever manages your accounts.")]
    EmailUnverified,
    /// Nobody here has the email, and no group of theirs opens anything.
    #[error("You have no account here. Ask an administrator of your workspace for an invitation.")]
    NoAccount,
    /// The server itself could not do it.
    #[error("The server could not complete the sign-in. Please try again in a minute.")]
    Failed,
    /// Too many sign-ins at one moment.
    #[error("Too many people sign in at the moment. Please try again in a minute.")]
    Busy,
}

impl SignOnRefusal {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Expired,
        Self::Cancelled,
        Self::Unreachable,
        Self::Provider,
        Self::Token,
        Self::EmailMissing,
        Self::EmailUnverified,
        Self::NoAccount,
        Self::Failed,
        Self::Busy,
    ];

    /// The word for links and the log.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Unreachable => "unreachable",
            Self::Provider => "provider",
            Self::Token => "token",
            Self::EmailMissing => "email_missing",
            Self::EmailUnverified => "email_unverified",
            Self::NoAccount => "no_account",
            Self::Failed => "failed",
            Self::Busy => "busy",
        }
    }
}

/// The name of an error as far as it can be logged: others wrote it.
pub(super) fn error_word(error: &str) -> String {
    error.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(MAX_ERROR_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_word() {
        let word = |refusal: SignOnRefusal| serde_json::to_value(refusal).unwrap();
        for refusal in SignOnRefusal::ALL {
            assert_eq!(word(refusal), refusal.code());
        }
    }

    #[test]
    fn only_the_word_of_an_error_is_logged() {
        assert_eq!(error_word("invalid_grant"), "invalid_grant");
        assert_eq!(error_word("<a href=x>ann@example.com\n"), "ahrefxannexamplecom");
        assert_eq!(error_word(&"x".repeat(1000)).len(), MAX_ERROR_WORD);
    }
}
