//! Settings as a workspace gave them.

use messaging_core::ports::fetch::{Fetch, UrlFault};
use messaging_core::ports::transport::{SettingsFault, TransportError};
use serde_json::{Map, Value};

/// The settings of a provider. What is empty or `null` is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Settings<'a> {
    /// A text that may be left out.
    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, TransportError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(misconfigured(&format!("{name} is not a string"))),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(self, name: &str) -> Result<&'a str, TransportError> {
        self.text(name)?.ok_or_else(|| misconfigured(&format!("{name} is missing")))
    }

    /// Where the API of the provider is, without a slash at its end: `api_base`, or the provider's own.
    pub(crate) fn api_base(self, own: &'a str) -> Result<&'a str, TransportError> {
        Ok(self.text("api_base")?.unwrap_or(own).trim_end_matches('/'))
    }
}

/// Settings that cannot work, and what is wrong with them. Never holds a value.
pub(crate) fn misconfigured(what: &str) -> TransportError {
    TransportError::Misconfigured(what.to_owned())
}

/// Judges the text of a setting that holds a URL, before it is stored. What is malformed is found out elsewhere.
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
