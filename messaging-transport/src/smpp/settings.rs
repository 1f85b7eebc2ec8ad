//! Settings of an account at a message center.

use std::fmt;

use messaging_core::ports::transport::TransportError;
use serde_json::{Map, Value};

use crate::provider::{Settings, misconfigured};

/// Maximum octets of the name and the password in a bind (SMPP 3.4 section 4.1.5).
const MAX_SYSTEM_ID: usize = 15;
const MAX_PASSWORD: usize = 8;

/// An account. After a change of the password the session that was bound with the old one is not used.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) system_id: String,
    pub(super) password: String,
    pub(super) sender: String,
    pub(super) is_tls: bool,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Account {
    pub(super) fn read(settings: &Map<String, Value>) -> Result<Self, TransportError> {
        let texts = Settings(settings);
        let port = settings.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let is_tls = match settings.get("tls") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => return Err(misconfigured("tls is not true or false")),
        };
        Ok(Self {
            host: texts.required("host")?.to_owned(),
            port: port.filter(|&port| port > 0).ok_or_else(|| misconfigured("port is not between 1 and 65535"))?,
            system_id: fitting(texts.required("system_id")?, "system_id", MAX_SYSTEM_ID)?,
            password: fitting(texts.required("password")?, "password", MAX_PASSWORD)?,
            sender: texts.required("sender")?.to_owned(),
            is_tls,
        })
    }
}

fn fitting(text: &str, name: &str, limit: usize) -> Result<String, TransportError> {
    if text.is_ascii() && text.len() <= limit && !text.contains('\0') {
        Ok(text.to_owned())
    } else {
        Err(misconfigured(&format!("{name} has more than {limit} characters or others than ASCII")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_without_their_values() {
        let good = json!({"host": "smsc.example", "port": 2775, "system_id": "acme", "password": "passw0rd",
            "sender": "ACME", "tls": true});
        let account = Account::read(good.as_object().unwrap()).unwrap();
        assert_eq!((account.port, account.is_tls), (2775, true));
        assert!(!format!("{account:?}").contains("passw0rd"));
        for (name, value) in [
            ("host", json!(null)),
            ("port", json!(0)),
            ("port", json!(65536)),
            ("system_id", json!("0123456789abcdef")),
            ("password", json!("123456789")),
            ("password", json!("pässword")),
            ("sender", json!("")),
            ("tls", json!("yes")),
        ] {
            let mut settings = good.as_object().unwrap().clone();
            settings.insert(name.to_owned(), value.clone());
            let error = Account::read(&settings).unwrap_err().to_string();
            assert!(error.contains(name), "{name} {value}: {error}");
            assert!(value.as_str().is_none_or(|value| value.is_empty() || !error.contains(value)), "{error}");
        }
    }
}
