//! Addresses that mail leaves from, as they are given.

use std::fmt;
use std::net::{IpAddr, TcpListener};
use std::str::FromStr;

use messaging_core::domain::delivery::ip_pool::source::{MAX_SOURCES, NamedSource};
use messaging_core::domain::delivery::source;
use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use super::machine_name::is_hostname;

/// A source as it is given: `IP` or `IP=NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceArg {
    /// The address.
    pub address: IpAddr,
    /// The name in EHLO; `None` for `--hostname`.
    pub name: Option<String>,
}

impl FromStr for SourceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (address, name) = text.split_once('=').map_or((text, None), |(address, name)| (address, Some(name)));
        let address = address.trim();
        let address = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(address);
        let address: IpAddr = address.parse().map_err(|_| {
            "expected an address, or an address and a name such as 203.0.113.7=m1.example.org".to_owned()
        })?;
        if let Some(fault) = source::fault_of(address) {
            return Err(format!("{address} {fault}"));
        }
        let name = name.map(str::trim);
        if let Some(name) = name.filter(|name| !is_hostname(name)) {
            return Err(format!("{name:?} is no domain name such as m1.example.org"));
        }
        Ok(Self { address, name: name.map(str::to_ascii_lowercase) })
    }
}

impl fmt::Display for SourceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}={name}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

impl TryFrom<String> for SourceArg {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SourceArg> for String {
    fn from(source: SourceArg) -> Self {
        source.to_string()
    }
}

/// The sources of the node: the given ones, each once, with their names or that of the machine.
pub(super) fn sources(given: Option<Vec<SourceArg>>, hostname: &str) -> Result<Vec<NamedSource>, SettingsError> {
    let given = given.unwrap_or_default();
    if given.len() > MAX_SOURCES {
        return Err(SettingsError::TooManySources);
    }
    let mut sources: Vec<NamedSource> = Vec::with_capacity(given.len());
    for SourceArg { address, name } in given {
        if sources.iter().any(|known| known.ip.ip() == Some(address)) {
            return Err(SettingsError::SameSource(address));
        }
        sources.push(NamedSource { ip: address.into(), name: name.unwrap_or_else(|| hostname.to_owned()) });
    }
    Ok(sources)
}

/// Checks that sockets can be bound to the addresses, so that mail does not find out later that they are not there.
pub(crate) fn bind_each(sources: &[NamedSource]) -> Result<(), (IpAddr, std::io::Error)> {
    for address in sources.iter().filter_map(|source| source.ip.ip()) {
        TcpListener::bind((address, 0)).map_err(|error| (address, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = text.parse::<SourceArg>().map_or_else(|fault| format!("! {fault}"), |source| source.to_string());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn sources_are_an_address_and_perhaps_a_name() {
        check("203.0.113.7", "203.0.113.7");
        check(" 203.0.113.7 = M1.example.org ", "203.0.113.7=m1.example.org");
        check("2001:DB8::7=m6.example.org", "2001:db8::7=m6.example.org");
        check("[2001:db8::7]", "2001:db8::7");
        check("0.0.0.0", "! 0.0.0.0 stands for no address in particular");
        check("224.0.0.1", "! 224.0.0.1 is the address of a group");
        check("203.0.113.7=", "! \"\" is no domain name such as m1.example.org");
        check("203.0.113.7=a b", "! \"a b\" is no domain name such as m1.example.org");
        let no_address = "! expected an address, or an address and a name such as 203.0.113.7=m1.example.org";
        for text in ["", "m1.example.org", "203.0.113.7:25", "203.0.113", "=m1.example.org"] {
            check(text, no_address);
        }
    }

    #[test]
    fn each_address_is_a_source_once() {
        let given = |texts: &[&str]| Some(texts.iter().map(|text| text.parse().unwrap()).collect());
        let named = sources(given(&["127.0.0.2", "127.0.0.3=b.test"]), "a.test").unwrap();
        let shown: Vec<_> = named.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["127.0.0.2 (a.test)", "127.0.0.3 (b.test)"]);
        assert_eq!(sources(None, "a.test").unwrap(), []);
        let twice = sources(given(&["127.0.0.2", "127.0.0.2=b.test"]), "a.test");
        assert!(matches!(twice, Err(SettingsError::SameSource(_))));
        let many: Vec<_> = (0..=MAX_SOURCES).map(|at| format!("10.0.{}.{}", at / 256, at % 256)).collect();
        let many = sources(given(&many.iter().map(String::as_str).collect::<Vec<_>>()), "a.test");
        assert!(matches!(many, Err(SettingsError::TooManySources)));
    }

    #[test]
    fn an_address_of_another_machine_cannot_be_bound() {
        let source = |text: &str| NamedSource { ip: text.parse().unwrap(), name: "a.test".to_owned() };
        bind_each(&[NamedSource::by_system("a.test"), source("127.0.0.1")]).unwrap();
        // Of the block that is kept for documentation, which no machine has (RFC 5737).
        let (address, _) = bind_each(&[source("127.0.0.1"), source("203.0.113.7")]).unwrap_err();
        assert_eq!(address.to_string(), "203.0.113.7");
    }
}
