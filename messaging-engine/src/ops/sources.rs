//! Sources of mail and their paths, as the operator sees and changes them.
//!
//! Contract section 14.1. A node keeps the states of its own sources in memory and stores them; a change here is a
//! write that every node is notified of ([`SourceWrite::OrderSource`], [`SourceWrite::OrderPath`]), so that the node
//! continues from it. It also counts for an address that a node does not have yet.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{NodeSource, PathRow, SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::delivery::path::{BrakeReason, PathStatus};
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::Stored;
use messaging_core::scope::Access;
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::services::sources::{day_of, path_report, path_state, with_state};

/// Number of paths of a source that are shown, the busiest of the day.
const MAX_PATHS: usize = 50;

/// Name of the listing's order, which cursors are bound to.
const CURSOR_PART: &str = "by start of the node";

/// Position of a source in the listing: the number of its node's start, and its index among the sources of the node. A
/// node announces its sources once, and a new node has a larger number than all others: nothing is inserted before a
/// cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListPlace(i64, u64);

impl ListPlace {
    /// Returns the positions of all sources, which are ordered by node.
    fn of_all(live: &[NodeSource]) -> Vec<Self> {
        let mut places: Vec<Self> = Vec::with_capacity(live.len());
        for source in live {
            let before = places.last().filter(|last| last.0 == source.joined);
            places.push(Self(source.joined, before.map_or(0, |last| last.1 + 1)));
        }
        places
    }

    fn read(octets: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(octets);
        let half = |shift: u32| u64::try_from((both >> shift) & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        Self(half(64).cast_signed(), half(0))
    }

    fn to_octets(self) -> [u8; 16] {
        ((u128::from(self.0.cast_unsigned()) << 64) | u128::from(self.1)).to_be_bytes()
    }
}

/// A source of mail as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Source")]
#[non_exhaustive]
pub struct SourceView {
    /// Address of the source, or `default` for the one that the system of the node chooses.
    pub ip: SourceAddress,
    /// EHLO name of the address; null if no running node has it.
    pub name: Option<String>,
    /// Node that has the address; null if none does.
    pub node: Option<String>,
    /// State of the source: `warming`: sends little more each day, over each path as far as warmed up; `warm`: no
    /// warm-up limits it; `resting`: sends nothing for a while; `stopped`: sends nothing until an operator resumes it.
    pub status: SourceStatus,
    /// Level of its warm-up, from 0.
    pub level: u32,
    /// Time at which mail last left from it; null if none has.
    pub last_used_at: Option<Timestamp>,
    /// Paths with most mail sent today; at most 50.
    pub paths: Vec<PathView>,
}

/// Path as shown: the source, and the site that its mail is sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourcePath")]
#[non_exhaustive]
pub struct PathView {
    /// Operator of the recipients' exchangers, such as `gmail`, or the domain of the exchangers.
    pub site: String,
    /// State of the path: `ok`: at its full rate; `slowed`: at a lower one; `resting`: nothing until a time; `stopped`:
    /// nothing until an operator resumes it.
    pub status: PathStatus,
    /// Messages a minute that may be sent over it; null without a limit.
    pub rate_per_minute: Option<u32>,
    /// End of its rest; null unless it rests.
    pub until: Option<Timestamp>,
    /// Reason for which the path is not `ok`; null also if an operator stopped it.
    pub reason: Option<BrakeReason>,
    /// Reply of the site, or the figures, behind the reason.
    pub evidence: Option<String>,
    /// Number of messages that left over it today (UTC).
    pub sent_today: u32,
    /// Number of messages that may leave over it today; null without a limit.
    pub allowed_today: Option<u32>,
}

impl PathView {
    fn of(rules: &SiteRules, row: &PathRow, now: Timestamp) -> Self {
        let report = path_report(rules, row, now);
        Self {
            site: row.site.clone(),
            status: report.status,
            rate_per_minute: report.rate_per_minute,
            until: report.until,
            reason: report.reason,
            evidence: report.evidence,
            sent_today: report.sent_today,
            allowed_today: report.allowed_today,
        }
    }
}

/// Returns the view of a source; `live` is the source on its running node, if one has it.
async fn view(cx: &Context<'_>, row: &SourceRow, live: Option<&NodeSource>) -> Result<SourceView, Error> {
    let paths = cx.store().busiest_paths(row.ip, day_of(cx.now), MAX_PATHS).await?;
    Ok(SourceView {
        ip: row.ip,
        name: live.map(|live| live.source.name.clone()),
        node: live.map(|live| live.node.clone()),
        status: row.shown(),
        level: row.level,
        last_used_at: row.last_used_at,
        paths: paths.iter().map(|row| PathView::of(cx.app.site_rules(), row, cx.now)).collect(),
    })
}

/// `GET /system/sources`
pub struct ListSources;

impl Operation for ListSources {
    const ID: &'static str = "listSources";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/system/sources";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "source list";
    const SUMMARY: &'static str =
        "List the addresses that mail leaves from, by node, with warm-up, brakes and the busiest paths";
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<SourceView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SourceView>, Error> {
        let after = match &call.query.cursor {
            Some(text) => Some(cx.read_cursor_in(CURSOR_PART, text).map(ListPlace::read).ok_or(Error::InvalidCursor)?),
            None => None,
        };
        let limit = cx.page(&PageQuery::of(call.query.limit, None))?.limit;
        let known = cx.app.known_sources().await?;
        let mut rest: Vec<_> = ListPlace::of_all(known.live()).into_iter().zip(known.live()).collect();
        rest.retain(|(place, _)| after.is_none_or(|after| *place > after));
        let has_more = rest.len() > limit;
        rest.truncate(limit);
        let mut data = Vec::new();
        for (_, live) in &rest {
            let ip = live.source.ip;
            let row = known.row(ip).cloned().unwrap_or_else(|| SourceRow::new(ip, cx.now));
            data.push(view(cx, &row, Some(live)).await?);
        }
        let last = rest.last().filter(|_| has_more);
        Ok(Page { data, next_cursor: last.map(|(place, _)| cx.cursor_in(CURSOR_PART, place.to_octets())) })
    }
}

/// The path of an operation on a source.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SourceParameters {
    /// Address of the source, or `default`.
    pub ip: String,
}

/// A change of a source.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SourcePatch {
    /// New state: `warming`, `warm` or `stopped`; required. `resting` only if it rests already, which is automatic.
    #[validate(required)]
    pub status: Option<SourceStatus>,
}

impl Input for SourcePatch {}

/// `PATCH /system/sources/{ip}`
pub struct UpdateSource;

impl Operation for UpdateSource {
    const ID: &'static str = "updateSource";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/system/sources/{ip}";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "source set";
    const SUMMARY: &'static str =
        "Say that receivers know an address already, have it warm up, or stop everything that leaves from it";
    // An unknown source is 404 before a missing status is 422.
    const LOOKS_UP: bool = true;
    type Path = SourceParameters;
    type Query = Empty;
    type Body = SourcePatch;
    type Output = SourceView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SourceView, Error> {
        let ip: SourceAddress = call.path.ip.parse().map_err(|_| Error::NotFound)?;
        let live = live_source(cx, ip).await?;
        let stored = cx.store().source_row(ip).await?;
        let expect = stored.as_ref().map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
        // An address may be known to receivers, or be kept from sending, before a node has it.
        let is_ahead = ip != SourceAddress::Default
            && matches!(call.body.status, Some(SourceStatus::Warm | SourceStatus::Stopped));
        let known = match stored {
            Some(stored) => stored.record,
            None if live.is_some() || is_ahead => SourceRow::new(ip, cx.now),
            None => return Err(Error::NotFound),
        };
        let mut row = known.clone();
        let refusal = "a source rests by itself; set warming, warm or stopped";
        if let Some(status) = ordered(cx, call.body.status, known.shown(), &[SourceStatus::Resting], refusal) {
            (row.status, row.found) = (status, None);
        }
        if row != known || expect == Expect::Absent {
            row.updated_at = cx.now;
            cx.change(Write::Source(SourceWrite::OrderSource(row.clone(), expect)));
        }
        view(cx, &row, live.as_ref()).await
    }
}

/// The path of an operation on a path of a source.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PathParameters {
    /// Address of the source, or `default`.
    pub ip: String,
    /// Site, as `GET /system/sources` names it.
    pub site: String,
}

/// A change of a path.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PathPatch {
    /// New state: `ok`, which releases its brake, or `stopped`; required. `slowed` and `resting` only if it is so
    /// already, which is automatic.
    #[validate(required)]
    pub status: Option<PathStatus>,
}

impl Input for PathPatch {}

/// `PATCH /system/sources/{ip}/paths/{site}`
pub struct UpdatePath;

impl Operation for UpdatePath {
    const ID: &'static str = "updateSourcePath";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/system/sources/{ip}/paths/{site}";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "source set-path";
    const SUMMARY: &'static str =
        "Release the brake of one address at one site, or stop what leaves from it to the site";
    // An unknown path is 404 before a missing status is 422.
    const LOOKS_UP: bool = true;
    type Path = PathParameters;
    type Query = Empty;
    type Body = PathPatch;
    type Output = PathView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<PathView, Error> {
        let ip: SourceAddress = call.path.ip.parse().map_err(|_| Error::NotFound)?;
        let found = cx.store().path_row(ip, &call.path.site).await?;
        let Stored { record, revision } = found.ok_or(Error::NotFound)?;
        let mut state = path_state(&record);
        let status = state.status(cx.now);
        let by_themselves = [PathStatus::Slowed, PathStatus::Resting];
        let refusal = "a path is braked by itself; set ok or stopped";
        match ordered(cx, call.body.status, status, &by_themselves, refusal) {
            Some(PathStatus::Ok) => state.release(),
            Some(PathStatus::Stopped) => state.stop(),
            _ => {}
        }
        let rules = cx.app.site_rules();
        let row = with_state(rules, record.clone(), &state, cx.now);
        let shown = PathView::of(rules, &row, cx.now);
        if row.state != record.state {
            cx.change(Write::Source(SourceWrite::OrderPath(Box::new(row), Expect::Revision(revision))));
        }
        Ok(shown)
    }
}

/// Returns the new state; `None` if nothing changes. A shown state can be sent back; other states that come
/// `by_themselves` cannot be set. A missing state is a violation already.
fn ordered<S: Copy + PartialEq>(
    cx: &mut Context<'_>,
    order: Option<S>,
    shown: S,
    by_themselves: &[S],
    refusal: &str,
) -> Option<S> {
    let order = order?;
    if !by_themselves.contains(&order) {
        return Some(order);
    }
    if order != shown {
        cx.violations.add("/status", FieldCode::NotAllowed, refusal);
    }
    None
}

/// Returns the source of a running node with an address; of several the one of the oldest node.
async fn live_source(cx: &Context<'_>, ip: SourceAddress) -> Result<Option<NodeSource>, Error> {
    let live = cx.store().live_sources().await?;
    Ok(live.into_iter().find(|live| live.source.ip == ip))
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::ip_pool::source::NamedSource;

    use super::*;

    #[test]
    fn a_place_is_the_same_whatever_nodes_come_and_go() {
        let named = |text: &str| NamedSource { ip: text.parse().unwrap(), name: "mx.example.org".to_owned() };
        let live = |joined, text| NodeSource { joined, ..NodeSource::own(&named(text)) };
        let (one, two, three) = (live(3, "192.0.2.1"), live(3, "192.0.2.2"), live(7, "192.0.2.1"));
        let all = ListPlace::of_all(&[one, two, three.clone()]);
        assert_eq!(all, [ListPlace(3, 0), ListPlace(3, 1), ListPlace(7, 0)]);
        assert!(all.is_sorted());
        assert_eq!(ListPlace::of_all(&[three]), [ListPlace(7, 0)]);
        for place in [ListPlace(0, 0), ListPlace(7, 1), ListPlace(i64::MAX, u64::MAX)] {
            assert_eq!(ListPlace::read(place.to_octets()), place);
        }
    }
}
