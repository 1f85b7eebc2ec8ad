//! Accounts at DNS providers: their credentials, and the form in which they are stored.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::DomainId;
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Maximum number of octets of a credential.
const MAX_LENGTH: usize = 512;

/// Maximum number of records of replaced keys that wait to be removed.
const MAX_RETIRED: usize = 32;

/// Host of a zone, or the protocol that its name server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DnsProvider")]
pub enum DnsProviderName {
    /// Cloudflare, with an API token that may edit the zone's DNS.
    Cloudflare,
    /// A name server that takes updates by RFC 2136 signed with TSIG (RFC 8945), such as BIND or Knot.
    Rfc2136,
    /// `DigitalOcean`, with a token that may write domains.
    DigitalOcean,
    /// Hetzner, with a token of the Cloud console that may read and write.
    Hetzner,
    /// Amazon Route 53.
    Route53,
}

impl DnsProviderName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cloudflare, Self::Rfc2136, Self::DigitalOcean, Self::Hetzner, Self::Route53];

    /// Returns the name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cloudflare => "cloudflare",
            Self::Rfc2136 => "rfc2136",
            Self::DigitalOcean => "digitalocean",
            Self::Hetzner => "hetzner",
            Self::Route53 => "route53",
        }
    }

    /// Returns the members of [`DnsCredentials`] that the provider takes, each with true if it is required.
    const fn members(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::Cloudflare | Self::DigitalOcean | Self::Hetzner => &[("api_token", true)],
            Self::Route53 => &[("access_key_id", true), ("secret_access_key", true)],
            Self::Rfc2136 => {
                &[("server", true), ("zone", false), ("key_name", true), ("key_secret", true), ("algorithm", true)]
            }
        }
    }
}

/// The message digest of TSIG (RFC 8945 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TsigAlgorithm")]
pub enum TsigAlgorithm {
    /// HMAC with SHA-256.
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
    /// HMAC with SHA-512.
    #[serde(rename = "hmac-sha512")]
    HmacSha512,
}

/// Credentials of an account at a DNS provider: `api_token` for cloudflare, digitalocean and hetzner; `access_key_id`
/// and `secret_access_key` for route53; the others for rfc2136.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DnsCredentials {
    /// Token of the provider's API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token: Option<String>,
    /// Id of an access key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Secret of that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<String>,
    /// Primary name server of the zone, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The zone; asked of the server unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Name of the TSIG key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The key, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<String>,
    /// Message digest of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<TsigAlgorithm>,
}

/// Shows nothing of the credentials.
impl fmt::Debug for DnsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DnsCredentials").finish_non_exhaustive()
    }
}

impl DnsCredentials {
    /// Checks that the members are those that a provider takes; faults are at `/credentials`.
    pub fn check(&self, provider: DnsProviderName, violations: &mut Violations) {
        for (name, is_given, text) in self.given() {
            let pointer = format!("/credentials/{name}");
            match provider.members().iter().find(|(member, _)| *member == name) {
                None if is_given => {
                    let message = format_args!("is not taken by the provider {}", provider.name());
                    violations.add(pointer, FieldCode::UnknownField, message);
                }
                Some((_, true)) if !is_given || text.is_some_and(str::is_empty) => {
                    violations.add(pointer, FieldCode::Required, "is required");
                }
                Some(_) if text.is_some_and(|text| text.len() > MAX_LENGTH) => {
                    let message = format_args!("must have at most {MAX_LENGTH} octets");
                    violations.add(pointer, FieldCode::TooLong, message);
                }
                Some(_) if text.is_some_and(|text| !fits(name, text)) => {
                    violations.add(pointer, FieldCode::InvalidFormat, wanted(name));
                }
                _ => {}
            }
        }
    }

    /// Returns each member by name, with true if it is given, and its text.
    fn given(&self) -> [(&'static str, bool, Option<&str>); 8] {
        [
            ("api_token", self.api_token.is_some(), self.api_token.as_deref()),
            ("access_key_id", self.access_key_id.is_some(), self.access_key_id.as_deref()),
            ("secret_access_key", self.secret_access_key.is_some(), self.secret_access_key.as_deref()),
            ("server", self.server.is_some(), self.server.as_deref()),
            ("zone", self.zone.is_some(), self.zone.as_deref()),
            ("key_name", self.key_name.is_some(), self.key_name.as_deref()),
            ("key_secret", self.key_secret.is_some(), self.key_secret.as_deref()),
            ("algorithm", self.algorithm.is_some(), None),
        ]
    }

    /// Returns host and port of `server`; `None` if it is not of this form.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = self.server.as_deref()?.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_host =
            !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_".contains(&byte));
        // An IPv6 address must be in brackets, or its last group would be taken for the port.
        let is_bracketed = !bare.contains(':') || bare.len() != host.len();
        let port = port.parse().ok().filter(|port| *port != 0)?;
        (is_host && is_bracketed).then_some((bare, port))
    }

    /// Returns the octets of `key_secret`.
    pub fn key(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.key_secret.as_deref()?).ok().filter(|key| !key.is_empty())
    }
}

/// Returns true if a text has the form of the member with this name.
fn fits(name: &str, text: &str) -> bool {
    match name {
        "server" => DnsCredentials { server: Some(text.to_owned()), ..Default::default() }.host_and_port().is_some(),
        "key_secret" => STANDARD.decode(text).is_ok_and(|key| !key.is_empty()),
        "zone" | "key_name" => {
            let name = text.strip_suffix('.').unwrap_or(text);
            let is_label = |label: &str| {
                (1..=63).contains(&label.len())
                    && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            };
            name.len() <= 253 && name.split('.').all(is_label)
        }
        // These are sent in headers.
        _ => text.bytes().all(|byte| byte.is_ascii_graphic()),
    }
}

const fn wanted(name: &str) -> &'static str {
    match name.as_bytes() {
        b"server" => "must be host:port, such as ns1.example.org:53",
        b"key_secret" => "must be the key in base64",
        b"zone" | b"key_name" => "must be a domain name",
        _ => "must be visible ASCII characters",
    }
}

/// An account at a DNS provider that is stored for a sending domain, so that new keys are published without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDnsAccount {
    /// The provider.
    pub provider: DnsProviderName,
    /// [`DnsCredentials`] as JSON, sealed for [`KeptDnsAccount::place`].
    pub sealed: String,
    /// Records of replaced keys that are still to be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<RetiredKeyRecord>,
}

/// The TXT record of a key that no longer signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKeyRecord {
    /// Name of the record.
    pub host: String,
    /// Text of the record.
    pub value: String,
}

impl KeptDnsAccount {
    /// Returns the name under which the vault seals the credentials.
    pub fn place(domain: DomainId) -> String {
        format!("dns/{domain}")
    }

    /// Adds a record that is to be removed. If there are too many, the oldest is dropped, and stays in the zone.
    pub fn retire(&mut self, host: String, value: String) {
        let record = RetiredKeyRecord { host, value };
        if self.retired.contains(&record) {
            return;
        }
        if self.retired.len() >= MAX_RETIRED {
            self.retired.remove(0);
        }
        self.retired.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(provider: DnsProviderName, credentials: serde_json::Value, expected: &[(&str, FieldCode)]) {
        let credentials: DnsCredentials = serde_json::from_value(credentials).unwrap();
        let mut violations = Violations::new();
        credentials.check(provider, &mut violations);
        let found: Vec<_> = violations.as_slice().iter().map(|one| format!("{:?} {:?}", one.at, one.code)).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (pointer, code) in expected {
            let is_there = |one: &String| {
                one.contains(&format!("/credentials/{pointer}\"")) && one.ends_with(&format!("{code:?}"))
            };
            assert!(found.iter().any(is_there), "{pointer} {code:?}: {found:?}");
        }
    }

    #[test]
    fn each_provider_takes_its_own_members() {
        use DnsProviderName::{Cloudflare, Hetzner, Rfc2136, Route53};
        use FieldCode::{InvalidFormat, Required, UnknownField};
        let json = |text: &str| serde_json::from_str(text).unwrap();
        check(Cloudflare, json(r#"{"api_token":"t"}"#), &[]);
        check(Cloudflare, json("{}"), &[("api_token", Required)]);
        check(Hetzner, json(r#"{"api_token":""}"#), &[("api_token", Required)]);
        check(Hetzner, json(r#"{"api_token":"a b"}"#), &[("api_token", InvalidFormat)]);
        check(Hetzner, json(r#"{"api_token":"t","zone":"a.test"}"#), &[("zone", UnknownField)]);
        check(Route53, json(r#"{"access_key_id":"A"}"#), &[("secret_access_key", Required)]);
        let good = r#"{"server":"ns.acme.test:53","key_name":"k.","key_secret":"c2VjcmV0","algorithm":"hmac-sha512"}"#;
        check(Rfc2136, json(good), &[]);
        check(
            Rfc2136,
            json(r#"{"server":"ns.acme.test","key_name":"a b","key_secret":"!"}"#),
            &[
                ("server", InvalidFormat),
                ("key_name", InvalidFormat),
                ("key_secret", InvalidFormat),
                ("algorithm", Required),
            ],
        );
    }

    #[test]
    fn a_server_is_host_and_port() {
        let read = |server: &str| {
            let credentials = DnsCredentials { server: Some(server.to_owned()), ..Default::default() };
            credentials.host_and_port().map(|(host, port)| format!("{host} {port}"))
        };
        assert_eq!(read("ns1.acme.test:5353").as_deref(), Some("ns1.acme.test 5353"));
        assert_eq!(read("[2001:db8::1]:53").as_deref(), Some("2001:db8::1 53"));
        for bad in ["", ":53", "ns1", "ns1:0", "ns1:70000", "a b:53", "2001:db8::1:53", "http://a:53"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
