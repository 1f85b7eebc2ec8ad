//! The log of requests: which are kept, with which parts, and the removal of secrets.
//!
//! Contract section 24.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::secret_members::hide_secrets_and;
use crate::ids::{ApiKeyId, RequestId, UserId, WorkspaceId};
use crate::time::Timestamp;

/// Time for which requests are kept.
pub const KEPT: Duration = Duration::from_hours(7 * 24);

/// Maximum number of requests of a workspace that are kept.
pub const KEPT_ROWS: usize = 100_000;

/// Maximum size of a stored body, in bytes; a larger one is not stored, because secrets in a part of it would not be
/// found.
pub const MAX_BODY: usize = 16 << 10;

/// Maximum number of characters of a path that are kept.
pub const MAX_PATH: usize = 500;

/// Maximum number of characters of a program's name that are kept.
pub const MAX_USER_AGENT: usize = 200;

/// Setting of a workspace: the requests that are kept with their bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestLog {
    /// Every request, with bodies.
    All,
    /// Requests that change something and requests that fail, with bodies.
    Writes,
    /// Requests that fail, with bodies; those that change something without.
    #[default]
    Failures,
    /// No requests.
    Off,
}

/// Part of a request that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The request is not logged.
    Nothing,
    /// The request without its bodies.
    Summary,
    /// The request with its bodies.
    Bodies,
}

impl RequestLog {
    /// True for the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the part that is kept of a request that reads or writes and succeeds or fails.
    pub const fn keeps(self, is_write: bool, is_failure: bool) -> Kept {
        match (self, is_write, is_failure) {
            (Self::All, ..) | (Self::Writes, true, _) | (Self::Writes | Self::Failures, _, true) => Kept::Bodies,
            (Self::Failures, true, false) => Kept::Summary,
            (Self::Writes | Self::Failures, false, false) | (Self::Off, ..) => Kept::Nothing,
        }
    }
}

/// A request, with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Place in the log.
    pub key: RequestId,
    /// Workspace that it was about.
    pub workspace_id: WorkspaceId,
    /// Id in `X-Request-Id`, which the caller may have chosen.
    pub id: String,
    /// When it was answered.
    pub at: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path below the version prefix, without the query.
    pub path: String,
    /// Id of the operation.
    pub operation: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// Code of the error.
    pub code: Option<String>,
    /// Duration, in milliseconds.
    pub duration_ms: u64,
    /// Bytes of its body.
    pub request_bytes: u64,
    /// API key that it was made with.
    pub key_id: Option<ApiKeyId>,
    /// Person who made it.
    pub user_id: Option<UserId>,
    /// Address of the caller.
    pub ip: Option<IpAddr>,
    /// Program that made it, as it names itself.
    pub user_agent: Option<String>,
    /// Its Idempotency-Key.
    pub idempotency_key: Option<String>,
    /// Id of the resource that the path names, or that was created.
    pub resource_id: Option<String>,
}

/// Bodies of a request and its answer as JSON texts, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedBodies {
    /// Body of the request.
    pub request: Option<String>,
    /// Body of the answer.
    pub response: Option<String>,
}

impl LoggedBodies {
    /// True if both are absent.
    pub const fn is_empty(&self) -> bool {
        self.request.is_none() && self.response.is_none()
    }
}

/// Filters of a listing of requests; absent ones match every request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Made with this key.
    pub key_id: Option<ApiKeyId>,
    /// Made by this person.
    pub user_id: Option<UserId>,
    /// HTTP method.
    pub method: Option<String>,
    /// Beginning of the path.
    pub path: Option<String>,
    /// Statuses from the first to the second.
    pub status: Option<(u16, u16)>,
    /// At this time and later.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Its Idempotency-Key.
    pub idempotency_key: Option<String>,
}

/// Parses the statuses that a text names: one, such as `422`, or a class, such as `4xx`.
pub fn statuses(text: &str) -> Option<(u16, u16)> {
    let class = text.strip_suffix("xx").filter(|class| class.len() == 1);
    let (first, last) = match class {
        Some(class) => class.parse().ok().map(|class: u16| (class * 100, class * 100 + 99))?,
        None => text.parse().ok().map(|status: u16| (status, status))?,
    };
    (100..=599).contains(&first).then_some((first, last))
}

/// Returns the part of a body that is kept: a JSON text without secrets. `None` for one that is no JSON, and for one
/// that is too long. `of_settings` are the names of secrets of providers that the program brings.
pub fn body(bytes: &[u8], of_settings: &BTreeSet<&str>) -> Option<String> {
    if bytes.is_empty() || bytes.len() > MAX_BODY {
        return None;
    }
    let mut value: Value = serde_json::from_slice(bytes).ok()?;
    hide_secrets_and(&mut value, of_settings);
    let text = value.to_string();
    // The replacements of secrets may be longer than they are.
    (text.len() <= 2 * MAX_BODY).then_some(text)
}

/// Returns the code of an error and the id of a resource that an answer names.
pub fn named_in(answer: &[u8]) -> (Option<String>, Option<String>) {
    if answer.is_empty() || answer.len() > MAX_BODY {
        return (None, None);
    }
    let Ok(value) = serde_json::from_slice::<Value>(answer) else { return (None, None) };
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    (value.pointer("/error/code").and_then(text), value.get("id").and_then(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_keeps_what_it_says() {
        use Kept::{Bodies, Nothing, Summary};
        // A read that succeeds and one that fails, a write that succeeds and one that fails.
        let table = [
            (RequestLog::All, [Bodies, Bodies, Bodies, Bodies]),
            (RequestLog::Writes, [Nothing, Bodies, Bodies, Bodies]),
            (RequestLog::Failures, [Nothing, Bodies, Summary, Bodies]),
            (RequestLog::Off, [Nothing, Nothing, Nothing, Nothing]),
        ];
        for (setting, expected) in table {
            let found = [(false, false), (false, true), (true, false), (true, true)]
                .map(|(is_write, is_failure)| setting.keeps(is_write, is_failure));
            assert_eq!(found, expected, "{setting:?}");
        }
    }

    #[test]
    fn statuses_are_one_or_a_class() {
        for (text, expected) in [
            ("422", Some((422, 422))),
            ("4xx", Some((400, 499))),
            ("5xx", Some((500, 599))),
            ("6xx", None),
            ("0xx", None),
            ("99", None),
            ("600", None),
            ("xx", None),
            ("44xx", None),
            ("four", None),
            ("", None),
        ] {
            assert_eq!(statuses(text), expected, "{text}");
        }
    }

    #[test]
    fn bodies_are_kept_without_secrets_or_not_at_all() {
        for (given, kept) in [
            (r#"{"name":"A","password":"hunter22"}"#, Some(r#"{"name":"A","password":"•••"}"#)),
            (r#"{"error":{"code":"not_found"}}"#, Some(r#"{"error":{"code":"not_found"}}"#)),
            ("[1]", Some("[1]")),
            ("no JSON", None),
            ("", None),
        ] {
            assert_eq!(body(given.as_bytes(), &BTreeSet::new()).as_deref(), kept, "{given}");
        }
        let long = format!("\"{}\"", "x".repeat(MAX_BODY));
        assert_eq!(body(long.as_bytes(), &BTreeSet::new()), None);
    }

    #[test]
    fn codes_and_ids_are_found_in_answers() {
        let named = |answer: &str| named_in(answer.as_bytes());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(named(r#"{"error":{"code":"not_found"}}"#), (text("not_found"), None));
        assert_eq!(named(r#"{"error":"scope required: *"}"#), (None, None));
        assert_eq!(named(r#"{"id":"tpl_1","name":"A"}"#), (None, text("tpl_1")));
        assert_eq!(named(""), (None, None));
    }
}
