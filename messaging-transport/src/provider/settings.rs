//! Access to a provider's settings.

use messaging_core::ports::fetch::{Fetch, UrlFault};
use messaging_core::ports::transport::{SettingsFault, TransportError};
use serde_json::{Map, Value};

/// Settings of a provider. An empty or `null` member counts as absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Settings<'a> {
    /// Returns an optional text.
    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, TransportError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(misconfigured(&format!("{name} is not a string"))),
        }
    }

    /// Returns a required text.
    pub(crate) fn required(self, name: &str) -> Result<&'a str, TransportError> {
        self.text(name)?.ok_or_else(|| misconfigured(&format!("{name} is missing")))
    }

    /// Returns the base URL of the provider's API, without a slash at its end: `api_base`, or the provider's own.
    pub(crate) fn api_base(self, own: &'a str) -> Result<&'a str, TransportError> {
        Ok(self.text("api_base")?.unwrap_or(own).trim_end_matches('/'))
    }
}

/// Returns the error for settings that cannot work; `what` names the fault, and never holds a value.
pub(crate) fn misconfigured(what: &str) -> TransportError {
    TransportError::Misconfigured(what.to_owned())
}

/// Judges the URL in a setting before it is stored. Malformed URLs are found elsewhere.
pub(crate) fn check_url(
    fetch: &dyn Fetch,
    settings: &Map<String, Value>,
    member: &'static str,
) -> Result<(), SettingsFault> {
    match settings.get(member).and_then(Value::as_str).filter(|url| !url.is_empty()).map(|url| fetch.check(url)) {
        Some(Err(UrlFault::NotAllowed)) => {
            Err(SettingsFault { member, message: "must be https and not a private address or this machine" })
        }
        _ => Ok(()),
    }
}
