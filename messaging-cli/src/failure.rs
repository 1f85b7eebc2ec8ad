//! Failures of commands: their texts, their codes for `--json`, and the exit code of the program.

use std::fmt::Display;
use std::io::ErrorKind;

use http::StatusCode;
use messaging_core::error::Chain;
use messaging_http::standalone::StartError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::reply::Reply;

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The API refused the request; the reply holds its error.
    #[error("refused by the API with status {}", .0.status)]
    Refused(Reply),
    /// The command ran without success, and its result is printed already: a failed campaign, a fault of `doctor`.
    #[error("{0}")]
    Unsuccessful(String),
    /// The command ran without success, and nothing is printed yet.
    #[error("{0}")]
    Failed(String),
    /// The command line is wrong, or a file that it names cannot be read.
    #[error("{0}")]
    Usage(String),
    /// A listing broke off after part of it was printed. The printed document tells the failure itself.
    #[error("{0}")]
    Cut(Box<Failure>),
    /// Another failure, with advice.
    #[error("{0}")]
    Advised(Box<Failure>, String),
    /// Neither server nor database can be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The wait of a command ended before the awaited state came; the last known state is printed already.
    #[error("{0}")]
    TimedOut(String),
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

/// The JSON document of a successful reply. Fails with [`Failure::Refused`] for another status.
pub(crate) fn accepted(reply: Reply) -> Result<Value, Failure> {
    accepted_as(reply)
}

/// Like [`accepted`], read as a type. Fails with [`Failure::Unreachable`] if the body is not that type.
pub(crate) fn accepted_as<T: DeserializeOwned>(reply: Reply) -> Result<T, Failure> {
    if !reply.status.is_success() {
        return Err(Failure::Refused(reply));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|_| Failure::Unreachable("the server answered something that is not the API".to_owned()))
}

impl From<messaging_import::Error> for Failure {
    fn from(error: messaging_import::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let text = Chain(&error).to_string();
        if error.is_usage() { Self::Usage(text) } else { Self::Unreachable(text) }
    }
}

impl Failure {
    /// A usage failure.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// Adds advice if the API refused the caller's credentials (status 401 or 403); other failures stay as they are.
    pub(crate) fn advised(self, advice: impl FnOnce() -> String) -> Self {
        let is_about_caller = |status| matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        match self {
            Self::Refused(reply) if is_about_caller(reply.status) => {
                Self::Advised(Box::new(Self::Refused(reply)), advice())
            }
            other => other,
        }
    }

    /// The innermost failure, without [`Failure::Cut`] and [`Failure::Advised`] around it.
    pub(crate) fn cause(&self) -> &Self {
        match self {
            Self::Cut(inner) | Self::Advised(inner, _) => inner.cause(),
            other => other,
        }
    }

    /// A failure to reach something, as `cannot …: cause: cause of that cause`.
    pub(crate) fn unreachable(tried: impl Display, cause: &(dyn std::error::Error + 'static)) -> Self {
        Self::Unreachable(format!("{tried}: {}", Chain(cause)))
    }

    /// The exit code (contract section 22).
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            _ if self.is_closed_pipe() => 0,
            Self::Cut(inner) | Self::Advised(inner, _) => inner.exit_code(),
            Self::Refused(_) | Self::Unsuccessful(_) | Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) | Self::TimedOut(_) | Self::Output(_) => 3,
        }
    }

    /// True if the reader of standard output has closed it, as `| head` does. That is no error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == ErrorKind::BrokenPipe)
    }

    /// The code in the error document of `--json`.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Cut(inner) | Self::Advised(inner, _) => inner.code(),
            Self::Refused(_) => "refused",
            Self::Unsuccessful(_) | Self::Failed(_) => "unsuccessful",
            Self::Usage(_) => "usage",
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut(_) => "timed_out",
            Self::Output(_) => "output",
        }
    }
}
