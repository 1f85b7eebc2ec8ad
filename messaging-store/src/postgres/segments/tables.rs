//! Questions about contacts that other tables answer: lists, segments, suppressions and events.
//!
//! Each question is one statement for all contacts of a batch. It returns the places of the contacts for which the
//! answer is yes, or rows that are tested here, if core decides about values in them.

use std::collections::HashMap;

use messaging_core::domain::audience::subscription::SubscriptionStatus;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::filter::{Count, EventLeaf, Leaf, MessageEventKind, MessageLeaf, Within};
use messaging_core::domain::segment::value_test::ValueTest;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{ListId, SegmentId, WorkspaceId};
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::query::{Params, params};
use super::super::reads::Snapshot;
use super::super::row::{get, number, uuid};
use super::values::{CandidateContact, ColumnSelection, addresses, want_addresses};
use crate::tables::soft_bounces::digest;

/// Tests of members of a JSON object: the keys from the outside in.
type Members = Vec<(Vec<String>, ValueTest)>;

/// A question about another table.
#[derive(Debug)]
pub(super) enum InTable {
    /// Membership of a list, by number.
    List(i64),
    /// Record on a public list, by number, of a contact that was asked to confirm.
    Unconfirmed(i64),
    /// Record on a public list, by number, of a contact that has left.
    Left(i64),
    /// Membership of a segment, by number.
    Segment(i64),
    /// Suppression of any address of the contact in a channel.
    Suppressed(Channel),
    /// Number of product events of a name, given by its number, that the contact has in a span.
    Events { name: i64, span: Span, count: Count, properties: Members },
    /// Number of events of messages to the contact in a span.
    Messages { of: Box<OfMessages>, span: Span, count: Count, url: Members },
}

/// Selects the messages and the kind of their events that count.
#[derive(Debug)]
pub(super) struct OfMessages {
    channel: Option<i64>,
    campaign: Option<Uuid>,
    automation: Option<Uuid>,
    template: Option<Uuid>,
    kind: i64,
    /// True if machines may cause events of this kind; those that a machine caused do not count.
    by_machines: bool,
}

/// Time span in which events must have happened, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    from: i64,
    until: i64,
    /// Counts from the entry of the contact into the automation instead.
    since_entry: bool,
}

/// A leaf of a filter after the names in it were looked up.
#[derive(Debug)]
pub(super) enum OfLeaf {
    /// The leaf has the same result for every contact.
    Always(bool),
    /// The leaf holds if the answer to the question is this.
    Asked(InTable, bool),
}

/// Numbers of the lists, segments and events that leaves name.
#[derive(Debug, Default)]
pub(super) struct Names {
    lists: HashMap<ListId, i64>,
    segments: HashMap<SegmentId, i64>,
    events: HashMap<String, i64>,
}

impl Names {
    /// Looks up the numbers of everything that some leaves name.
    pub(super) async fn of(on: &mut Snapshot, workspace_number: i64, leaves: &[&Leaf]) -> Result<Self, Fault> {
        const LISTS: &str = "SELECT id, n FROM lists WHERE workspace_number = $1 AND id = ANY($2) AND NOT removed";
        const SEGMENTS: &str =
            "SELECT id, n FROM segments WHERE workspace_number = $1 AND id = ANY($2) AND NOT removed";
        const EVENTS: &str = "SELECT name, n FROM event_names WHERE workspace_number = $1 AND name = ANY($2)";
        let (mut lists, mut segments, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for leaf in leaves {
            match leaf {
                Leaf::List { id, .. } => lists.push(uuid(*id)),
                Leaf::Segment { id, .. } => segments.push(uuid(*id)),
                Leaf::Event(event) => events.push(event.name.clone()),
                _ => {}
            }
        }
        let mut names = Self::default();
        if lists.is_empty() && segments.is_empty() && events.is_empty() {
            return Ok(names);
        }
        let queries = vec![
            (LISTS, params![workspace_number, lists]),
            (SEGMENTS, params![workspace_number, segments]),
            (EVENTS, params![workspace_number, events]),
        ];
        let found = on.rows_of_each(queries).await?;
        let [lists, segments, events] = found.as_slice() else { return Ok(names) };
        for row in lists {
            names.lists.insert(super::super::row::id(row, 0)?, get(row, 1)?);
        }
        for row in segments {
            names.segments.insert(super::super::row::id(row, 0)?, get(row, 1)?);
        }
        for row in events {
            names.events.insert(get(row, 0)?, get(row, 1)?);
        }
        Ok(names)
    }
}

impl OfLeaf {
    /// Translates a leaf that is not about a value. A list or segment that does not exist has no members, and a name
    /// that does not exist has no events. `is_ask`: the question is about a contact of an automation, who may have
    /// entered it.
    pub(super) fn new(
        leaf: &Leaf,
        names: &Names,
        present: &Present,
        is_ask: bool,
        wanted: &mut ColumnSelection,
    ) -> Self {
        match leaf {
            Leaf::List { id, member, status } => {
                let in_table = match status {
                    SubscriptionStatus::Unconfirmed => InTable::Unconfirmed,
                    SubscriptionStatus::Confirmed => InTable::List,
                    SubscriptionStatus::Left => InTable::Left,
                };
                Self::membership(names.lists.get(id).copied().map(in_table), *member)
            }
            Leaf::Segment { id, member } => {
                Self::membership(names.segments.get(id).map(|n| InTable::Segment(*n)), *member)
            }
            Leaf::Suppression(channel, suppressed) => {
                want_addresses(*channel, wanted);
                Self::Asked(InTable::Suppressed(*channel), *suppressed)
            }
            Leaf::Event(event) => Self::events(event, names, present, is_ask),
            Leaf::Message(message) => Self::messages(message, present, is_ask),
            Leaf::Field(..) | Leaf::Attribute(..) | Leaf::Tags { .. } | Leaf::Consent(..) => Self::Always(false),
        }
    }

    fn membership(of: Option<InTable>, member: bool) -> Self {
        of.map_or(Self::Always(!member), |of| Self::Asked(of, member))
    }

    fn events(leaf: &EventLeaf, names: &Names, present: &Present, is_ask: bool) -> Self {
        let none = leaf.count.holds(0);
        let Some(name) = names.events.get(&leaf.name) else { return Self::Always(none) };
        if leaf.count == Count::AtLeast(0) {
            return Self::Always(true);
        }
        let properties =
            leaf.properties.iter().map(|one| (one.path.clone(), ValueTest::new(&one.test, present))).collect();
        let span = Span::of(leaf.within, present, is_ask);
        Self::Asked(InTable::Events { name: *name, span, count: leaf.count, properties }, true)
    }

    fn messages(leaf: &MessageLeaf, present: &Present, is_ask: bool) -> Self {
        if leaf.count == Count::AtLeast(0) {
            return Self::Always(true);
        }
        let kind = event_kind(leaf.event);
        let of = OfMessages {
            channel: leaf.channel.map(|channel| number(&Channel::ALL, &channel)),
            campaign: leaf.campaign_id.map(uuid),
            automation: leaf.automation_id.map(uuid),
            template: leaf.template_id.map(uuid),
            kind: number(&EventKind::ALL, &kind),
            by_machines: matches!(kind, EventKind::Open | EventKind::Click),
        };
        let url = leaf.url_contains.iter().map(|part| (vec!["url".to_owned()], ValueTest::contains(part))).collect();
        let span = Span::of(leaf.within, present, is_ask);
        Self::Asked(InTable::Messages { of: Box::new(of), span, count: leaf.count, url }, true)
    }
}

impl Span {
    fn of(within: Option<Within>, present: &Present, is_ask: bool) -> Self {
        let always = Self { from: i64::MIN, until: i64::MAX, since_entry: false };
        match within {
            None => always,
            Some(Within::SinceEntry) if is_ask => Self { since_entry: true, ..always },
            Some(within) => {
                let moments = within.moments(present.now, &present.zone);
                Self { from: *moments.start(), until: *moments.end(), since_entry: false }
            }
        }
    }
}

/// Contacts that a question is about, as parameters: numbers, ids, and the ids of events after which and up to which
/// events count. Their places are counted from 1.
pub(super) struct Columns {
    numbers: Vec<i64>,
    ids: Vec<Uuid>,
    after: Vec<Option<Uuid>>,
    up_to: Vec<Option<Uuid>>,
}

impl Columns {
    pub(super) fn of<'a>(candidates: impl Iterator<Item = &'a CandidateContact>) -> Self {
        let mut columns = Self { numbers: Vec::new(), ids: Vec::new(), after: Vec::new(), up_to: Vec::new() };
        for one in candidates {
            columns.numbers.push(one.n);
            columns.ids.push(one.id);
            columns.after.push(one.after);
            columns.up_to.push(one.up_to);
        }
        columns
    }
}

/// Smallest and largest number that satisfy the count, and the number of rows that are enough to decide.
fn bounds(count: Count) -> (i64, i64, i64) {
    match count {
        Count::AtLeast(least) => (i64::from(least), i64::from(least), i64::from(least)),
        Count::AtMost(most) => (0, i64::from(most), i64::from(most) + 1),
        Count::Exactly(number) => (i64::from(number), i64::from(number), i64::from(number) + 1),
    }
}

/// SQL of the product events of a contact; takes parameters 1 to 7.
macro_rules! events_sql {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM product_events e WHERE e.contact = c.n AND e.name = $4::bigint
              AND e.at BETWEEN $5::bigint AND $6::bigint
              AND (c.up_to IS NULL OR e.id <= c.up_to) AND (NOT $7::boolean OR e.id > c.after)"
        )
    };
}

/// SQL of the events of messages to a contact; takes parameters 1 to 13. The fences keep the order: messages of a
/// contact first, then the events of each.
macro_rules! messages_sql {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM (SELECT m.id FROM messages m WHERE m.workspace = $4::uuid AND m.contact = c.id
                 AND ($5::bigint IS NULL OR m.channel = $5) AND ($6::uuid IS NULL OR m.campaign = $6)
                 AND ($7::uuid IS NULL OR m.automation = $7) AND ($8::uuid IS NULL OR m.template = $8) OFFSET 0) m
              CROSS JOIN LATERAL (SELECT e.meta FROM message_events e
                 WHERE e.workspace = $4 AND e.message = m.id AND e.at BETWEEN $9::bigint AND $10::bigint
                 AND e.kind = $11::bigint
                 AND (c.up_to IS NULL OR e.id <= c.up_to) AND (NOT $12::boolean OR e.id > c.after)
                 AND NOT ($13::boolean AND CASE WHEN strpos(e.meta, '\"machine\":true') > 0
                     THEN coalesce((e.meta::json -> 'machine')::text = 'true', false) ELSE false END)
                 OFFSET 0) e"
        )
    };
}

/// The contacts as a table, with the ids of their spans in parameters 2 and 3.
macro_rules! asked_sql {
    () => {
        "unnest($1::bigint[], $2::uuid[], $3::uuid[]) WITH ORDINALITY AS c (n, after, up_to, place)"
    };
}

/// Like `asked_sql`, with the ids of the contacts in parameter 14.
macro_rules! asked_by_id_sql {
    () => {
        "unnest($1::bigint[], $2::uuid[], $3::uuid[], $14::uuid[]) WITH ORDINALITY AS c (n, after, up_to, id, place)"
    };
}

impl InTable {
    /// For membership of a group, returns the statement that reads its members in a range of numbers, and the number of
    /// the group.
    pub(super) const fn members_sql(&self) -> Option<(&'static str, i64)> {
        match self {
            Self::List(n) => {
                Some(("SELECT contact FROM list_members WHERE list = $1 AND contact BETWEEN $2 AND $3", *n))
            }
            Self::Unconfirmed(n) => Some((
                "SELECT contact FROM list_subscriptions WHERE list = $1 AND status = 0 AND contact BETWEEN $2 AND $3",
                *n,
            )),
            Self::Left(n) => Some((
                "SELECT contact FROM list_subscriptions WHERE list = $1 AND status = 2 AND contact BETWEEN $2 AND $3",
                *n,
            )),
            Self::Segment(n) => {
                Some(("SELECT contact FROM segment_members WHERE segment = $1 AND contact BETWEEN $2 AND $3", *n))
            }
            Self::Suppressed(_) | Self::Events { .. } | Self::Messages { .. } => None,
        }
    }

    /// Returns the statement that returns places, unless rows are to be tested here.
    pub(super) fn places(
        &self,
        workspace: WorkspaceId,
        columns: &Columns,
        candidates: &[&CandidateContact],
    ) -> Result<Option<(&'static str, Params)>, Fault> {
        const LIST: &str = "SELECT c.place FROM unnest($1::bigint[]) WITH ORDINALITY AS c (n, place)
            JOIN list_members m ON m.list = $2 AND m.contact = c.n";
        const UNCONFIRMED: &str = "SELECT c.place FROM unnest($1::bigint[]) WITH ORDINALITY AS c (n, place)
            JOIN list_subscriptions m ON m.list = $2 AND m.contact = c.n AND m.status = 0";
        const LEFT: &str = "SELECT c.place FROM unnest($1::bigint[]) WITH ORDINALITY AS c (n, place)
            JOIN list_subscriptions m ON m.list = $2 AND m.contact = c.n AND m.status = 2";
        const SEGMENT: &str = "SELECT c.place FROM unnest($1::bigint[]) WITH ORDINALITY AS c (n, place)
            JOIN segment_members m ON m.segment = $2 AND m.contact = c.n";
        const SUPPRESSED: &str = "SELECT a.place FROM unnest($1::bigint[], $2::bytea[]) AS a (place, digest)
            JOIN suppressions s ON s.workspace = $3 AND s.channel = $4::bigint AND s.digest = a.digest";
        Ok(match self {
            Self::List(n) => Some((LIST, params![columns.numbers.clone(), *n])),
            Self::Unconfirmed(n) => Some((UNCONFIRMED, params![columns.numbers.clone(), *n])),
            Self::Left(n) => Some((LEFT, params![columns.numbers.clone(), *n])),
            Self::Segment(n) => Some((SEGMENT, params![columns.numbers.clone(), *n])),
            Self::Suppressed(channel) => {
                let (mut places, mut digests) = (Vec::new(), Vec::new());
                for (place, one) in (1_i64..).zip(candidates) {
                    let of_contact = addresses(*channel, &one.row)?;
                    places.extend(std::iter::repeat_n(place, of_contact.len()));
                    digests.extend(of_contact.iter().map(|address| digest(address)));
                }
                let channel = number(&Channel::ALL, channel);
                Some((SUPPRESSED, params![places, digests, uuid(workspace), channel]))
            }
            Self::Events { name, span, count, properties } if properties.is_empty() => {
                const SQL: &str = concat!(
                    "SELECT c.place FROM ",
                    asked_sql!(),
                    " WHERE (SELECT count(*) FROM (",
                    events_sql!("1"),
                    " LIMIT $8::bigint) AS counted) BETWEEN $9::bigint AND $10::bigint"
                );
                let mut params = event_params(columns, *name, *span);
                push_bounds(&mut params, *count);
                Some((SQL, params))
            }
            Self::Messages { of, span, count, url } if url.is_empty() => {
                const SQL: &str = concat!(
                    "SELECT c.place FROM ",
                    asked_by_id_sql!(),
                    " WHERE (SELECT count(*) FROM (",
                    messages_sql!("1"),
                    " LIMIT $15::bigint) AS counted) BETWEEN $16::bigint AND $17::bigint"
                );
                let mut params = message_params(columns, workspace, of, *span);
                push_bounds(&mut params, *count);
                Some((SQL, params))
            }
            Self::Events { .. } | Self::Messages { .. } => None,
        })
    }

    /// Returns the places for which the question holds, counted from 0, if rows are tested here.
    pub(super) async fn tested(
        &self,
        on: &mut Snapshot,
        workspace: WorkspaceId,
        columns: &Columns,
    ) -> Result<Vec<usize>, Fault> {
        const EVENTS: &str = concat!(
            "SELECT c.place, e.* FROM ",
            asked_sql!(),
            " CROSS JOIN LATERAL (",
            events_sql!("e.properties"),
            ") e"
        );
        const MESSAGES: &str = concat!(
            "SELECT c.place, e.* FROM ",
            asked_by_id_sql!(),
            " CROSS JOIN LATERAL (",
            messages_sql!("e.meta"),
            ") e"
        );
        let (sql, params, tests, count) = match self {
            Self::Events { name, span, count, properties } => {
                (EVENTS, event_params(columns, *name, *span), properties, *count)
            }
            Self::Messages { of, span, count, url } => {
                (MESSAGES, message_params(columns, workspace, of, *span), url, *count)
            }
            Self::List(_) | Self::Unconfirmed(_) | Self::Left(_) | Self::Segment(_) | Self::Suppressed(_) => {
                return Ok(Vec::new());
            }
        };
        let mut found = vec![0; columns.numbers.len()];
        on.each_row(sql, params, |row| {
            let json = get::<Option<&str>>(row, 1)?;
            for (path, test) in tests {
                if !test.of_member(json, path)? {
                    return Ok(());
                }
            }
            found[place(row)?] += 1;
            Ok(())
        })
        .await?;
        Ok((0..found.len()).filter(|place| count.holds(found[*place])).collect())
    }
}

/// The place in the first column, counted from 0.
pub(super) fn place(row: &tokio_postgres::Row) -> Result<usize, Fault> {
    let place = usize::try_from(get::<i64>(row, 0)? - 1);
    place.map_err(|_| Fault::Malformed("a place was not asked for"))
}

fn event_params(columns: &Columns, name: i64, span: Span) -> Params {
    let Span { from, until, since_entry } = span;
    let Columns { numbers, after, up_to, .. } = columns;
    params![numbers.clone(), after.clone(), up_to.clone(), name, from, until, since_entry]
}

fn message_params(columns: &Columns, workspace: WorkspaceId, of: &OfMessages, span: Span) -> Params {
    let Span { from, until, since_entry } = span;
    let Columns { numbers, ids, after, up_to } = columns;
    let mut params = params![numbers.clone(), after.clone(), up_to.clone(), uuid(workspace)];
    params.extend(params![of.channel, of.campaign, of.automation, of.template, from, until, of.kind]);
    params.extend(params![since_entry, of.by_machines, ids.clone()]);
    params
}

fn push_bounds(params: &mut Params, count: Count) {
    let (least, most, enough) = bounds(count);
    params.extend(params![enough, least, most]);
}

const fn event_kind(kind: MessageEventKind) -> EventKind {
    match kind {
        MessageEventKind::Sent => EventKind::Sent,
        MessageEventKind::Delivered => EventKind::Delivered,
        MessageEventKind::Open => EventKind::Open,
        MessageEventKind::Click => EventKind::Click,
        MessageEventKind::Bounce => EventKind::Bounce,
        MessageEventKind::Complaint => EventKind::Complaint,
        MessageEventKind::Unsubscribe => EventKind::Unsubscribe,
    }
}
