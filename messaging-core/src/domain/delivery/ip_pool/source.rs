//! Sources, the addresses of nodes that mail leaves from, and the stored state of them and of their paths.
//!
//! Contract section 14.1. A source belongs to the operator; a path is a source and the site that its mail goes to. The
//! stored state outlives the process: the next node that has the address continues with it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parse_ip;
use crate::domain::delivery::path::PathStatus;
use crate::time::Timestamp;

/// Maximum number of sources of a node.
pub const MAX_SOURCES: usize = 100;

/// Text of [`SourceAddress::Default`].
const DEFAULT: &str = "default";

/// The text is neither an IP address nor `default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IP address")]
pub struct MalformedSource;

/// The address of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceAddress {
    /// The address that the system of the node chooses: the only source of a node that names none. No pool can name it.
    Default,
    /// An address of the node, see [`parse_ip`].
    Ip(IpAddr),
}

impl SourceAddress {
    /// Returns the address, if it is known.
    pub const fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Default => None,
            Self::Ip(ip) => Some(ip),
        }
    }
}

impl From<IpAddr> for SourceAddress {
    fn from(ip: IpAddr) -> Self {
        Self::Ip(ip.to_canonical())
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str(DEFAULT),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

impl FromStr for SourceAddress {
    type Err = MalformedSource;

    fn from_str(text: &str) -> Result<Self, MalformedSource> {
        if text == DEFAULT { Ok(Self::Default) } else { parse_ip(text).map(Self::Ip).ok_or(MalformedSource) }
    }
}

impl Serialize for SourceAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SourceAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for SourceAddress {
    fn schema_name() -> Cow<'static, str> {
        "SourceAddress".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// A source as its node names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedSource {
    /// The address; a node has each once.
    pub ip: SourceAddress,
    /// Host name that the source greets with (EHLO).
    pub name: String,
}

/// A source of a live node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSource {
    /// The source.
    pub source: NamedSource,
    /// The name of the node.
    pub node: String,
    /// Number of the node's start: a node that started later has a larger one, and no two are equal. 0 in an
    /// installation on SQLite.
    pub joined: i64,
    /// True for a source of the process that asks.
    pub is_own: bool,
}

impl NodeSource {
    /// Returns a source of the process itself.
    pub fn own(source: &NamedSource) -> Self {
        Self { source: source.clone(), node: String::new(), joined: 0, is_own: true }
    }
}

/// Returns the sources that mail may leave from. If several nodes name one address, the one that has lived longest uses
/// it, and the others as soon as it is gone, so that warm-up and limits of a path are counted once. `default` is
/// another address on every node.
pub fn in_use(live: &[NodeSource]) -> Vec<&NodeSource> {
    let mut named: HashMap<SourceAddress, &NodeSource> = HashMap::new();
    for one in live.iter().filter(|one| one.source.ip != SourceAddress::Default) {
        let first = named.entry(one.source.ip).or_insert(one);
        if one.joined < first.joined {
            *first = one;
        }
    }
    let is_first = |one: &&NodeSource| named.get(&one.source.ip).is_none_or(|first| first.joined == one.joined);
    live.iter().filter(is_first).collect()
}

/// State of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// The source is new, or was not used for long, and sends little more each day.
    #[default]
    Warming,
    /// The source sends as much as sites take.
    Warm,
    /// The source sends nothing until a time.
    Resting,
    /// The source sends nothing until the operator says otherwise.
    Stopped,
}

impl SourceStatus {
    /// Returns the state that follows from the paths in use, each with its status and true while it warms up: at rest
    /// while none of them sends and one continues by itself, warm once none warms up. `None` where nothing follows.
    pub fn of_paths(paths: &[(PathStatus, bool)]) -> Option<Self> {
        let rests = |(status, _): &(PathStatus, bool)| *status == PathStatus::Resting;
        let is_still = |path: &(PathStatus, bool)| rests(path) || path.0 == PathStatus::Stopped;
        if paths.iter().any(rests) && paths.iter().all(is_still) {
            return Some(Self::Resting);
        }
        let is_warm = !paths.is_empty() && paths.iter().all(|(_, is_warming)| !is_warming);
        is_warm.then_some(Self::Warm)
    }
}

/// Stored state of a source, whatever node has the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRow {
    /// The address, by which the row is found.
    pub ip: SourceAddress,
    /// State of the source as a whole, as the operator ordered it: never at rest.
    pub status: SourceStatus,
    /// State that the node found by its paths ([`SourceStatus::of_paths`]); `None` where it is the ordered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SourceStatus>,
    /// Level of its warm-up, from 0.
    pub level: u32,
    /// Time at which mail left from it last; `None` if none has.
    pub last_used_at: Option<Timestamp>,
    /// Time of the last write of the row.
    pub updated_at: Timestamp,
}

impl SourceRow {
    /// Returns the row of a new source.
    pub const fn new(ip: SourceAddress, now: Timestamp) -> Self {
        Self { ip, status: SourceStatus::Warming, found: None, level: 0, last_used_at: None, updated_at: now }
    }

    /// Returns the state to show: the one that the node found, unless the operator stopped the source.
    pub fn shown(&self) -> SourceStatus {
        match self.status {
            SourceStatus::Stopped => SourceStatus::Stopped,
            ordered => self.found.unwrap_or(ordered),
        }
    }
}

/// Stored state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRow {
    /// The address of the source; with the site it is the key.
    pub ip: SourceAddress,
    /// The site.
    pub site: String,
    /// The state as JSON, which stores do not read.
    pub state: String,
    /// Messages that left over the path on `day`.
    pub sent_today: u64,
    /// The day of `sent_today`, counted from 1970-01-01 in UTC.
    pub day: i64,
    /// True while the path is stopped until a person acts: such a row is not deleted, however old it is.
    pub is_stopped: bool,
    /// Time of the last write of the row.
    pub updated_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_what_its_paths_are() {
        use PathStatus::{Ok, Resting, Slowed, Stopped};
        #[track_caller]
        fn check(paths: &[(PathStatus, bool)], expected: Option<SourceStatus>) {
            assert_eq!(SourceStatus::of_paths(paths), expected, "{paths:?}");
        }
        check(&[], None);
        check(&[(Ok, true)], None);
        check(&[(Ok, false), (Slowed, false)], Some(SourceStatus::Warm));
        check(&[(Ok, false), (Slowed, true)], None);
        check(&[(Resting, true)], Some(SourceStatus::Resting));
        check(&[(Resting, false), (Stopped, false)], Some(SourceStatus::Resting));
        check(&[(Resting, true), (Ok, true)], None);
        check(&[(Resting, false), (Ok, false)], Some(SourceStatus::Warm));
        // Nothing continues by itself where a person has to act.
        check(&[(Stopped, true)], None);
    }

    #[test]
    fn a_source_that_was_stopped_is_stopped_whatever_its_paths_are() {
        use SourceStatus::{Resting, Stopped, Warm, Warming};

        let at = Timestamp::from_millis(0);
        let row = |status, found| SourceRow { status, found, ..SourceRow::new(SourceAddress::Default, at) };
        assert_eq!(row(Warming, None).shown(), Warming);
        assert_eq!(row(Warming, Some(Warm)).shown(), Warm);
        assert_eq!(row(Warm, Some(Resting)).shown(), Resting);
        assert_eq!(row(Stopped, Some(Resting)).shown(), Stopped);
        // Rows of earlier versions have no such member.
        let old: SourceRow = serde_json::from_value(serde_json::json!({"ip": "default", "status": "warm", "level": 3,
            "last_used_at": null, "updated_at": "2026-03-01T12:00:00.000Z"}))
        .unwrap();
        assert_eq!((old.shown(), old.found), (Warm, None));
    }

    #[test]
    fn of_nodes_that_name_one_address_the_oldest_uses_it() {
        let live = |joined, text: &str| NodeSource {
            source: NamedSource { ip: text.parse().unwrap(), name: "mx.example.org".to_owned() },
            node: format!("n{joined}"),
            joined,
            is_own: false,
        };
        let all =
            [live(7, "192.0.2.1"), live(7, "default"), live(3, "192.0.2.2"), live(3, "192.0.2.1"), live(9, "default")];
        let used: Vec<_> = in_use(&all).into_iter().map(|one| (one.joined, one.source.ip.to_string())).collect();
        let expected = [(7, "default"), (3, "192.0.2.2"), (3, "192.0.2.1"), (9, "default")];
        assert_eq!(used, expected.map(|(joined, ip)| (joined, ip.to_owned())));
        assert_eq!(in_use(&all[..1]), [&all[0]]);
    }

    #[test]
    fn a_source_is_named_by_its_address_or_as_the_default() {
        let parsed = |text: &str| text.parse::<SourceAddress>().map(|source| source.to_string());
        assert_eq!(parsed("default").as_deref(), Ok("default"));
        assert_eq!(parsed("2001:DB8::7").as_deref(), Ok("2001:db8::7"));
        assert_eq!(parsed("::ffff:192.0.2.1").as_deref(), Ok("192.0.2.1"));
        assert_eq!(parsed("mail.example.org"), Err(MalformedSource));
        let source = SourceAddress::from("::ffff:192.0.2.1".parse::<IpAddr>().unwrap());
        assert_eq!(serde_json::to_string(&source).unwrap(), r#""192.0.2.1""#);
        assert_eq!(serde_json::from_str::<SourceAddress>(r#""192.0.2.1""#).unwrap(), source);
        serde_json::from_str::<SourceAddress>(r#""192.0.2""#).unwrap_err();
    }
}
