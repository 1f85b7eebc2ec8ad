//! The workspace's settings of the provider `smtp` (contract section 16).

use messaging_core::domain::channel::address::ascii_domain;
use messaging_core::ports::transport::TransportError;
use rustls_pki_types::ServerName;
use serde_json::{Map, Value};

use crate::smtp::{Credentials, Security};

/// A relay and the way to use it. The whole is the key of its connections: after a change of the password no connection
/// with the old one is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Settings {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) credentials: Option<Credentials>,
    pub(super) security: Security,
}

impl Settings {
    pub(super) fn parse(settings: &Map<String, Value>) -> Result<Self, TransportError> {
        let port = port(settings)?;
        Ok(Self {
            host: host(settings)?,
            port,
            credentials: credentials(settings)?,
            security: match text(settings, "tls")? {
                Some("starttls") => Security::StartTls,
                Some("tls") => Security::Tls,
                Some("none") => Security::Plain,
                Some(_) => return Err(misconfigured("tls is not one of starttls, tls, none")),
                // Port 465 is implicit TLS by registration (RFC 8314 section 7.3).
                None if port == 465 => Security::Tls,
                None => Security::StartTls,
            },
        })
    }

    /// Returns true if mail goes to the relay in plain text.
    pub(super) fn is_in_clear(&self) -> bool {
        self.security == Security::Plain
    }
}

fn host(settings: &Map<String, Value>) -> Result<String, TransportError> {
    let host = text(settings, "host")?.ok_or_else(|| misconfigured("host is missing"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = if host.is_ascii() { Some(host.to_ascii_lowercase()) } else { ascii_domain(host) };
    // An accepted host is a DNS name or an IP address, and can be compared with a certificate.
    host.filter(|host| ServerName::try_from(host.as_str()).is_ok())
        .ok_or_else(|| misconfigured("host is neither a name nor an address"))
}

fn port(settings: &Map<String, Value>) -> Result<u16, TransportError> {
    let port = match settings.get("port") {
        Some(Value::Number(number)) => number.as_u64().and_then(|port| u16::try_from(port).ok()),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    port.filter(|&port| port > 0).ok_or_else(|| misconfigured("port is missing or not between 1 and 65535"))
}

fn credentials(settings: &Map<String, Value>) -> Result<Option<Credentials>, TransportError> {
    let given = |name| Ok::<_, TransportError>(text(settings, name)?.filter(|text| !text.is_empty()));
    match (given("username")?, given("password")?) {
        (None, None) => Ok(None),
        // AUTH PLAIN separates user name and password by NUL (RFC 4616).
        (Some(username), Some(password)) if !username.contains('\0') && !password.contains('\0') => {
            Ok(Some(Credentials { username: username.to_owned(), password: password.to_owned() }))
        }
        (Some(_), Some(_)) => Err(misconfigured("username or password has a NUL character")),
        _ => Err(misconfigured("username and password belong together")),
    }
}

fn text<'a>(settings: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, TransportError> {
    match settings.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(misconfigured(&format!("{name} is not a string"))),
    }
}

fn misconfigured(what: &str) -> TransportError {
    TransportError::Misconfigured(what.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Result<Settings, TransportError> {
        Settings::parse(value.as_object().unwrap())
    }

    #[test]
    fn settings_are_read() {
        let full =
            parse(&json!({"host": "SMTP.Example.com", "port": 587, "username": "u", "password": "p", "tls": "none"}))
                .unwrap();
        assert_eq!((full.host.as_str(), full.port, full.security), ("smtp.example.com", 587, Security::Plain));
        assert_eq!(full.credentials.unwrap().username, "u");
        for (host, port, expected) in [
            ("localhost", json!(25), ("localhost", Security::StartTls)),
            ("[::1]", json!("465"), ("::1", Security::Tls)),
            ("mail.exämple.de", json!(587), ("mail.xn--exmple-cua.de", Security::StartTls)),
        ] {
            let settings = parse(&json!({"host": host, "port": port, "username": "", "password": null})).unwrap();
            assert_eq!((settings.host.as_str(), settings.security), expected);
            assert!(settings.credentials.is_none());
        }
    }

    #[track_caller]
    fn check_refused(value: &Value, expected: &str) {
        let error = parse(value).unwrap_err();
        assert!(matches!(&error, TransportError::Misconfigured(text) if text.contains(expected)), "{error}");
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        for host in [json!(null), json!(""), json!("a b"), json!("a\r\nb"), json!("http://a"), json!("a:25"), json!(7)]
        {
            check_refused(&json!({"host": host, "port": 25}), "host");
        }
        for port in [json!(null), json!(0), json!(65536), json!(-1), json!("x"), json!(2.5)] {
            check_refused(&json!({"host": "a.b", "port": port}), "port");
        }
        check_refused(&json!({"host": "a.b", "port": 25, "tls": "ssl"}), "tls");
        check_refused(&json!({"host": "a.b", "port": 25, "username": "u"}), "belong together");
        check_refused(&json!({"host": "a.b", "port": 25, "username": "u\u{0}", "password": "p"}), "NUL");
        check_refused(&json!({"host": "a.b", "port": 25, "username": 1, "password": "p"}), "username");
    }

    #[test]
    fn passwords_are_not_shown() {
        let value = json!({"host": "a.b", "port": 25, "username": "somebody", "password": "hunter2"});
        let shown = format!("{:?}", parse(&value).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("somebody"), "{shown}");
    }
}
