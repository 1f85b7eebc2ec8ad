//! Names that a sending domain may have, and names below it.
//!
//! Contract section 14. Where it is silent: names are accepted with spaces around them, in any case, in Unicode or
//! A-labels, with or without a final dot, and stored in the form of DNS.

use std::net::IpAddr;

use crate::domain::channel::address::ascii_domain;
use crate::domain::mail::free_mail;
use crate::domain::mail::public_suffix::known_suffix;
use crate::domain::mail::sending_domain::BOUNCE_LABEL;
use crate::violation::FieldCode;

pub use crate::domain::mail::public_suffix::organizational;

/// Maximum length of a name, in octets of its A-labels. A return address, `bounce+TOKEN@bounce.<domain>`, must fit the
/// limits of SMTP (RFC 5321 section 4.5.3.1.3), and its token uses up the local part.
pub const MAX_LENGTH: usize = 180;

/// Reason why a name cannot be a sending domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// The text is no domain name.
    #[error("is not a domain name such as mail.example.org")]
    Malformed,
    /// The name is longer than `MAX_LENGTH` octets.
    #[error("must have at most {MAX_LENGTH} octets as A-labels")]
    TooLong,
    /// The name is a public suffix: everybody can register names below it.
    #[error("is a public suffix, below which anybody registers names")]
    PublicSuffix,
    /// The name belongs to a mailbox provider: everybody can have an address there.
    #[error("belongs to a mailbox provider; use a domain whose DNS records are yours")]
    FreeMail,
    /// The name is not below the sending domain.
    #[error("must be one label, or a name under the domain")]
    NotBelow,
    /// The name is the bounce domain, which cannot be an alias.
    #[error("is the bounce domain, which cannot be an alias")]
    BounceDomain,
}

impl Unsuitable {
    /// Returns the field code.
    pub const fn code(self) -> FieldCode {
        match self {
            Self::Malformed | Self::NotBelow => FieldCode::InvalidFormat,
            Self::TooLong => FieldCode::TooLong,
            Self::PublicSuffix | Self::FreeMail | Self::BounceDomain => FieldCode::NotAllowed,
        }
    }
}

/// Parses a sending domain into the form in which it is stored: lower case, A-labels.
pub fn parse(text: &str) -> Result<String, Unsuitable> {
    let text = text.trim();
    let text = text.strip_suffix('.').unwrap_or(text);
    let Some(name) = ascii_domain(text) else {
        // One label is no sending domain; if it is a top-level domain, that is the better answer.
        let lower = text.to_ascii_lowercase();
        return Err(if known_suffix(&lower) == Some(&*lower) {
            Unsuitable::PublicSuffix
        } else {
            Unsuitable::Malformed
        });
    };
    if name.len() > MAX_LENGTH {
        return Err(Unsuitable::TooLong);
    }
    if known_suffix(&name) == Some(&*name) {
        return Err(Unsuitable::PublicSuffix);
    }
    if free_mail::covers(&name) {
        return Err(Unsuitable::FreeMail);
    }
    Ok(name)
}

/// Parses the host of tracking links: `text` is one label, or a name under `domain`, which is as [`parse`] returns it.
pub fn parse_below(text: &str, domain: &str) -> Result<String, Unsuitable> {
    let text = text.trim();
    let text = text.strip_suffix('.').unwrap_or(text);
    let full = if text.contains(['.', '\u{3002}']) { text.to_owned() } else { format!("{text}.{domain}") };
    let name = ascii_domain(&full).ok_or(Unsuitable::Malformed)?;
    if name.len() > MAX_LENGTH + 64 {
        return Err(Unsuitable::TooLong);
    }
    let below = name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.')).ok_or(Unsuitable::NotBelow)?;
    if below == BOUNCE_LABEL { Err(Unsuitable::BounceDomain) } else { Ok(name) }
}

/// Last labels of names that mean something on one machine or in one network only (RFC 6761, RFC 6762, and names that
/// systems and clouds give machines by themselves).
const LOCAL_SUFFIXES: [&str; 6] = ["localhost", "localdomain", "local", "internal", "lan", "invalid"];

/// Returns true if others could look up a host name: it has several labels, is no address, and is not a name of this
/// machine's own network. A receiver refuses mail of a host whose name it cannot look up (RFC 5321 section 2.3.5).
pub fn is_fully_qualified(name: &str) -> bool {
    ascii_domain(name).is_some_and(|name| name.rsplit('.').next().is_some_and(|last| !LOCAL_SUFFIXES.contains(&last)))
}

/// Returns an address as the labels of a name, the last part first: for PTR below `in-addr.arpa` and `ip6.arpa` (RFC
/// 1035 section 3.5, RFC 3596 section 2.5) and for blocklists (RFC 5782 section 2).
pub fn reversed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(address) => {
            let nibbles = address.octets().into_iter().flat_map(|octet| [octet >> 4, octet & 15]);
            nibbles.rev().map(|nibble| format!("{nibble:x}")).collect::<Vec<_>>().join(".")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reversed_part_by_part() {
        assert_eq!(reversed("192.0.2.17".parse().unwrap()), "17.2.0.192");
        assert_eq!(
            reversed("2001:db8::1".parse().unwrap()),
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2"
        );
    }

    #[test]
    fn a_fully_qualified_name_can_be_looked_up_from_outside() {
        for name in ["mx.example.org", "a.b.example", "MX.Service.test", "acme.com"] {
            assert!(is_fully_qualified(name), "{name}");
        }
        for name in [
            "",
            "vm",
            "localhost",
            "localhost.localdomain",
            "printer.local",
            "ip-10-0-0-1.ec2.internal",
            "nas.lan",
            "192.0.2.1",
            "a..b",
        ] {
            assert!(!is_fully_qualified(name), "{name}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Unsuitable>) {
        assert_eq!(parse(text).as_deref(), expected.as_ref().map(|name| *name), "{text}");
    }

    #[test]
    fn names_are_kept_as_dns_spells_them() {
        check("acme.com", Ok("acme.com"));
        check("  Mail.ACME.com. ", Ok("mail.acme.com"));
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("XN--BCHER-KVA.example", Ok("xn--bcher-kva.example"));
        check("acme.test", Ok("acme.test"));
        check("me.github.io", Ok("me.github.io"));
        for bad in ["", " ", ".", "acme", "localhost", "a..b", "-a.com", "a_b.com", "a b.com", "127.0.0.1", "a.com/x"] {
            check(bad, Err(Unsuitable::Malformed));
        }
        for bad in ["x@acme.com", "acme.com..", "http://acme.com", "xn--0.com", "a\u{0}.com"] {
            check(bad, Err(Unsuitable::Malformed));
        }
    }

    #[test]
    fn length_is_that_of_the_a_labels() {
        let name = |length: usize| format!("{0}.{0}.{1}.com", "a".repeat(60), "b".repeat(length - 126));
        check(&name(MAX_LENGTH), Ok(&name(MAX_LENGTH)));
        check(&name(MAX_LENGTH + 1), Err(Unsuitable::TooLong));
    }

    #[test]
    fn public_suffixes_and_mailbox_providers_are_refused() {
        for suffix in ["com", "CO.UK", "github.io", "рф", "xn--p1ai", "foo.ck"] {
            check(suffix, Err(Unsuitable::PublicSuffix));
        }
        for provider in ["gmail.com", "Mail.Yahoo.co.jp", "x.y.web.de"] {
            check(provider, Err(Unsuitable::FreeMail));
        }
    }

    #[test]
    fn a_tracking_host_is_below_the_domain() {
        let check = |text: &str, expected: Result<&str, Unsuitable>| {
            assert_eq!(parse_below(text, "acme.com").as_deref(), expected.as_ref().map(|name| *name), "{text}");
        };
        check("links", Ok("links.acme.com"));
        check(" Links.Acme.com. ", Ok("links.acme.com"));
        check("a.b.acme.com", Ok("a.b.acme.com"));
        check("ü", Ok("xn--tda.acme.com"));
        for elsewhere in ["acme.com", "links.example.org", "linksacme.com", "a.b"] {
            check(elsewhere, Err(Unsuitable::NotBelow));
        }
        for bad in ["", "a b", "_x", ".acme.com", "a..acme.com"] {
            check(bad, Err(Unsuitable::Malformed));
        }
        check("bounce", Err(Unsuitable::BounceDomain));
    }

    #[test]
    fn the_organizational_domain_is_the_registered_one() {
        for (domain, expected) in [
            ("acme.com", "acme.com"),
            ("eu.mail.acme.co.uk", "acme.co.uk"),
            ("mail.acme.test", "acme.test"),
            ("a.me.github.io", "me.github.io"),
        ] {
            assert_eq!(organizational(domain), expected);
        }
    }
}
