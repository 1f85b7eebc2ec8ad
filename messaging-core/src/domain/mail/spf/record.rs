//! Parsing of one SPF record into its terms. Sections are those of RFC 7208; the grammar is in section 12.

use std::net::IpAddr;

use ipnet::IpNet;

/// The version section, with which every SPF record begins.
const VERSION: &str = "v=spf1";

/// Result for the sending host when the mechanism matches (section 4.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qualifier {
    /// `+`, also when none is written: the host may send.
    Pass,
    /// `-`: the host may not send.
    Fail,
    /// `~`: the host probably may not send.
    SoftFail,
    /// `?`: the record makes no statement about the host.
    Neutral,
}

/// Condition that the address of the sending host is tested against (section 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism {
    /// Every address.
    All,
    /// The addresses that the SPF record of this name lets send.
    Include(String),
    /// The addresses of a name; `None` stands for the name of the record itself.
    A(Option<String>, Prefixes),
    /// The addresses of the mail exchangers of a name; `None` stands for the name of the record itself.
    Mx(Option<String>, Prefixes),
    /// Host names found by a reverse look-up of the address; deprecated (section 5.5), so its domain is not kept.
    Ptr,
    /// An address or a block of addresses (`ip4`, `ip6`).
    Net(IpNet),
    /// Every address, if this name resolves to one; otherwise none.
    Exists(String),
}

/// Prefix lengths: the number of leading bits that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefixes {
    /// Prefix length for IPv4 addresses, 0 to 32.
    pub four: u8,
    /// Prefix length for IPv6 addresses, 0 to 128.
    pub six: u8,
}

impl Prefixes {
    /// Returns the block of addresses that share the prefix of an address.
    pub fn around(self, address: IpAddr) -> IpNet {
        let bits = if address.is_ipv4() { self.four } else { self.six };
        IpNet::new(address, bits).unwrap_or_else(|_| IpNet::from(address))
    }
}

/// A mechanism with its qualifier, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Meaning of a match for the sender: pass, fail, soft fail or neutral.
    pub qualifier: Qualifier,
    /// Mechanism that the address of the sending host is compared with.
    pub mechanism: Mechanism,
    /// The directive as it stands in the record, in lower case.
    pub text: String,
}

/// A record up to its `all`; the terms after it are not evaluated, and not parsed here (section 5.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The mechanisms in order.
    pub directives: Vec<Directive>,
    /// Name whose record is evaluated if no directive matched; `None` if there is an `all`, which overrides it (section
    /// 6.1).
    pub redirect: Option<String>,
}

/// Returns the text after the version; `None` if the text is no SPF record (section 4.5).
pub fn strip_version(text: &str) -> Option<&str> {
    let (version, rest) = text.split_at_checked(VERSION.len())?;
    (version.eq_ignore_ascii_case(VERSION) && (rest.is_empty() || rest.starts_with(' '))).then_some(rest)
}

/// Parses the text after the version. The error is the first invalid term, in lower case.
pub fn parse(terms: &str) -> Result<Record, String> {
    let mut record = Record::default();
    for term in terms.split(' ').filter(|term| !term.is_empty()) {
        let text = term.to_ascii_lowercase();
        let fault = || text.clone();
        if let Some((name, value)) = modifier(&text) {
            if name == "redirect" {
                if record.redirect.is_some() || value.is_empty() {
                    return Err(fault());
                }
                record.redirect = Some(without_trailing_dot(value));
            }
            continue;
        }
        let directive = directive(&text).ok_or_else(fault)?;
        let is_all = directive.mechanism == Mechanism::All;
        record.directives.push(directive);
        if is_all {
            record.redirect = None;
            // Modifiers may still follow, but `redirect` is ignored beside `all`, and others (`exp`) do not change the
            // result.
            break;
        }
    }
    Ok(record)
}

/// Returns name and value of a modifier, `name=value` (section 12); `None` for a directive. A directive can have an `=`
/// only in its domain, after a `:`, which no name of a modifier contains.
fn modifier(term: &str) -> Option<(&str, &str)> {
    let (name, value) = term.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    is_name.then_some((name, value))
}

/// Parses a directive in lower case, `[qualifier]mechanism[argument]` (section 4.6.1); `None` if it is invalid.
fn directive(text: &str) -> Option<Directive> {
    let (qualifier, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (Qualifier::Pass, rest),
        Some(("-", rest)) => (Qualifier::Fail, rest),
        Some(("~", rest)) => (Qualifier::SoftFail, rest),
        Some(("?", rest)) => (Qualifier::Neutral, rest),
        _ => (Qualifier::Pass, text),
    };
    let at = rest.find([':', '/']).unwrap_or(rest.len());
    let (name, argument) = rest.split_at(at);
    let domain = || argument.strip_prefix(':').filter(|domain| is_domain(domain)).map(without_trailing_dot);
    let mechanism = match name {
        "all" if argument.is_empty() => Mechanism::All,
        "include" => Mechanism::Include(domain()?),
        "exists" => Mechanism::Exists(domain()?),
        "ptr" if argument.is_empty() || domain().is_some() => Mechanism::Ptr,
        "a" => {
            let (domain, prefixes) = addresses_of(argument)?;
            Mechanism::A(domain, prefixes)
        }
        "mx" => {
            let (domain, prefixes) = addresses_of(argument)?;
            Mechanism::Mx(domain, prefixes)
        }
        "ip4" => Mechanism::Net(block(argument.strip_prefix(':')?).filter(|net| matches!(net, IpNet::V4(_)))?),
        "ip6" => Mechanism::Net(block(argument.strip_prefix(':')?).filter(|net| matches!(net, IpNet::V6(_)))?),
        _ => return None,
    };
    Some(Directive { qualifier, mechanism, text: text.to_owned() })
}

/// Parses the argument of `a` and `mx`, `[:domain][/four][//six]`, with whole addresses as the default; `None` if it is
/// invalid.
fn addresses_of(argument: &str) -> Option<(Option<String>, Prefixes)> {
    let (domain, prefixes) = argument.split_at(argument.find('/').unwrap_or(argument.len()));
    let domain = match domain.strip_prefix(':') {
        Some(domain) => Some(without_trailing_dot(Some(domain).filter(|domain| is_domain(domain))?)),
        None if domain.is_empty() => None,
        None => return None,
    };
    let (four, six) = match prefixes.split_once("//") {
        Some((four, six)) => (four.strip_prefix('/'), Some(six)),
        None => (prefixes.strip_prefix('/'), None),
    };
    let bits = |text: Option<&str>, most: u8| match text {
        None => Some(most),
        Some(text) => text.parse::<u8>().ok().filter(|bits| *bits <= most),
    };
    Some((domain, Prefixes { four: bits(four, 32)?, six: bits(six, 128)? }))
}

/// Parses a block in CIDR notation; an address alone is a block of one.
fn block(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Returns true for a possible domain name, which may have macros in place of labels (section 7): only its length and
/// characters are checked.
fn is_domain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns true if a name has macros, so that it is another one for each sending host or sender (section 7).
pub(super) fn has_macros(domain: &str) -> bool {
    domain.contains('%')
}

/// Returns a domain name without a dot at its end.
fn without_trailing_dot(domain: &str) -> String {
    domain.strip_suffix('.').unwrap_or(domain).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match parse(text) {
            Ok(record) => {
                let one = |directive: &Directive| format!("{:?} {:?}", directive.qualifier, directive.mechanism);
                let redirect = record.redirect.map(|name| format!("redirect {name}"));
                record.directives.iter().map(one).chain(redirect).collect::<Vec<_>>().join("; ")
            }
            Err(term) => format!("bad {term}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_record_is_its_terms_up_to_all() {
        check("", "");
        check(" -ALL", "Fail All");
        check(" ip4:192.0.2.0/24 ip6:2001:db8::1", "Pass Net(192.0.2.0/24); Pass Net(2001:db8::1/128)");
        check(" Include:A.example. ~all include:b", "Pass Include(\"a.example\"); SoftFail All");
        check(
            " a mx:b.example",
            "Pass A(None, Prefixes { four: 32, six: 128 }); Pass Mx(Some(\"b.example\"), Prefixes { four: 32, six: 128 })",
        );
        check(" ?a/24//64", "Neutral A(None, Prefixes { four: 24, six: 64 })");
        check(" a:b.example//64", "Pass A(Some(\"b.example\"), Prefixes { four: 32, six: 64 })");
        check(" redirect=c.example exp=why.example x-y=1", "redirect c.example");
        check(" redirect=c.example all", "Pass All");
        check(" exists:%{i}.d.example ptr", "Pass Exists(\"%{i}.d.example\"); Pass Ptr");
    }

    #[test]
    fn a_term_that_is_none_is_named() {
        for bad in [
            "ip4",
            "ip4:",
            "ip4:1.2.3",
            "ip4:1.2.3.4/33",
            "ip4:::1",
            "ip6:1.2.3.4",
            "include",
            "include:",
            "inclued:a.example",
            "all:x",
            "a:",
            "a/33",
            "a//129",
            "a/x",
            "mx:a/",
            "exists",
            "-",
            "192.0.2.1",
            "redirect=",
        ] {
            check(&format!(" {bad} -all"), &format!("bad {bad}"));
        }
        check(" redirect=a.example redirect=b.example", "bad redirect=b.example");
    }

    #[test]
    fn a_record_begins_with_its_version() {
        for (text, is_record) in [
            ("v=spf1", true),
            ("V=SPF1 -all", true),
            ("v=spf10", false),
            ("v=spf", false),
            (" v=spf1", false),
            ("\u{e4}\u{e4}\u{e4}", false),
        ] {
            assert_eq!(strip_version(text).is_some(), is_record, "{text}");
        }
    }
}
