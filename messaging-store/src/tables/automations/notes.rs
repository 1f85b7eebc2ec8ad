//! Reading and removing notes. They are added where their causes are written.
//!
//! On PostgreSQL transactions commit in another order than that of the numbers of their notes. So the position of a
//! note says, besides its number, which notes with smaller numbers existed when it was read: [`Settled`]. On SQLite all
//! did.

use std::collections::HashMap;

use messaging_core::changes::TakeNotes;
use messaging_core::domain::audience::product_event::{ProductEvent, Properties};
use messaging_core::domain::automation::note::{Cause, Happened, Note};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::filter::MessageEventKind;
use messaging_core::domain::segment::matching::MessageFact;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::{StoreCursor, StoreError};
use serde_json::{Map, Value};

use super::keys::{Of, automation, key_of};
use super::rows::AutomationRows;
use crate::automation_rows::cause;
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::happened::{counted_kind, is_machine};
use crate::pages::sql_limit;
use crate::row::{Row, get as column, id, maybe_id, numbered, or_empty, time};
use crate::sql::{Sql, Value as Param, key, params, sql};

/// The notes up to a number that are known to have existed: the first half of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// All: no transaction that was open then has a smaller number.
    All,
    /// Those of transactions before this one, all of which had ended.
    Before(i64),
    /// Those of this transaction.
    Of(i64),
}

impl Settled {
    /// Value stored in a position; transactions have positive numbers.
    const fn stored(self) -> i64 {
        match self {
            Self::All => 0,
            Self::Before(transaction) => transaction,
            Self::Of(transaction) => -transaction,
        }
    }

    fn place(self, n: i64) -> StoreCursor {
        let mut place = [0; 16];
        place[..8].copy_from_slice(&self.stored().to_be_bytes());
        place[8..].copy_from_slice(&n.to_be_bytes());
        StoreCursor::from_bytes(place)
    }
}

/// Parts of a position: the settled notes, as stored, and the number of the last one.
fn of_place(place: StoreCursor) -> (i64, i64) {
    let number = i128::from_be_bytes(place.to_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "the halves")]
    let halves = ((number >> 64) as i64, number as i64);
    halves
}

/// A note as it is stored.
struct StoredNote {
    n: i64,
    /// The transaction that wrote it.
    transaction: i64,
    /// All transactions before this one had ended.
    open_from: i64,
    note: Note,
    /// Key by which the event of the note is found: the number of a product event, the time of a message's event.
    event: Option<i64>,
}

fn stored_note(row: &dyn Row) -> Result<StoredNote, Fault> {
    let cause = cause(column(row, 3)?, column(row, 6)?).ok_or(Fault::Malformed("a note says nothing"))?;
    let (contact_id, at) = (id(row, 1)?, time(row, 2)?);
    let note = Note { contact_id, cause, at, depth: column(row, 4)?, may_enter: column(row, 5)? };
    let (transaction, open_from) = (column(row, 8)?, column(row, 9)?);
    Ok(StoredNote { n: column(row, 0)?, transaction, open_from, note, event: column(row, 7)? })
}

/// The oldest notes of a shard of the contacts, with their events; notes of contacts that are gone are skipped.
pub(super) async fn oldest<D: Database + AutomationRows>(
    database: &D,
    of: Of,
    shard: u8,
    limit: usize,
) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError> {
    macro_rules! select {
        ($transactions:literal) => {
            concat!(
                "SELECT n.n, c.id, n.at, n.kind, n.depth, n.may_enter, n.what, n.event, ",
                $transactions,
                " FROM automation_notes n {CROSS} JOIN contacts c ON c.n = n.contact WHERE n.automation = ",
                automation!(),
                " AND n.shard = $3 ORDER BY n.n LIMIT $4"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select!("0, 0"),
        postgres: select!("n.tx, pg_snapshot_xmin(pg_current_snapshot())::text::bigint"),
    );
    // Read before the notes, so that all settled notes are among them.
    let settled = database.settled_notes(of.0).await?;
    let mut bounds = key_of(of);
    bounds.extend(params![shard, sql_limit(limit)]);
    let found = database.many(Query::new(SQL, bounds, stored_note)).await?;
    let (kind, notes) = told_at_once(found, settled);
    // An event that is gone by now counts as gone before: notes of a contact that is removed do not stay either.
    let mut events = product_events(database, of.0, &notes).await?;
    let mut facts = message_facts(database, of.0, &notes).await?;
    let told = |stored: StoredNote| {
        let happened = match (&stored.note.cause, stored.event) {
            (Cause::Event(_), Some(n)) => events.remove(&n).map(|event| Happened::Event(Box::new(event))),
            (Cause::Message { .. }, Some(_)) => facts.remove(&stored.n).map(|fact| Happened::Message(Box::new(fact))),
            _ => None,
        };
        (kind.place(stored.n), stored.note, happened)
    };
    Ok(notes.into_iter().map(told).collect())
}

/// Selects, of notes in the order of their numbers, those whose positions exclude notes that did not exist yet. These
/// are all except the notes of transactions that began after one that is still open; if there are no such notes, those
/// of the first transaction. So some are returned whenever there are any.
fn told_at_once(mut found: Vec<StoredNote>, settled: Option<i64>) -> (Settled, Vec<StoredNote>) {
    let Some(first) = found.first() else { return (Settled::All, found) };
    if let Some(settled) = settled
        && first.n <= settled
    {
        found.retain(|note| note.n <= settled);
        return (Settled::All, found);
    }
    let (transaction, open_from) = (first.transaction, first.open_from);
    if found.iter().any(|note| note.transaction < open_from) {
        found.retain(|note| note.transaction < open_from);
        return (Settled::Before(open_from), found);
    }
    found.retain(|note| note.transaction == transaction);
    (Settled::Of(transaction), found)
}

/// Reads the product events of notes, by their numbers.
async fn product_events(
    database: &impl Database,
    workspace: WorkspaceId,
    notes: &[StoredNote],
) -> Result<HashMap<i64, ProductEvent>, StoreError> {
    macro_rules! select {
        ($from:literal) => {
            concat!(
                "SELECT e.n, e.id, names.name, e.at, e.properties, u.unique_id FROM ",
                $from,
                " {CROSS} JOIN event_names names ON names.n = e.name LEFT JOIN event_unique_ids u ON u.event = e.n"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select!("json_each($1) AS wanted CROSS JOIN product_events e ON e.n = wanted.value"),
        postgres: select!("(SELECT * FROM product_events WHERE n = ANY ($1)) e"),
    );
    let of: HashMap<i64, ContactId> = notes
        .iter()
        .filter(|stored| matches!(stored.note.cause, Cause::Event(_)))
        .filter_map(|stored| Some((stored.event?, stored.note.contact_id)))
        .collect();
    if of.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = params![of.keys().copied().collect::<Vec<_>>()];
    let query = Query::new(SQL, wanted, move |row| {
        let n = column(row, 0)?;
        let event = ProductEvent {
            id: id(row, 1)?,
            workspace_id: workspace,
            contact_id: *of.get(&n).ok_or(Fault::Malformed("a row is of no note"))?,
            name: column(row, 2)?,
            occurred_at: time(row, 3)?,
            properties: column::<Option<String>>(row, 4)?.map(Properties::from_json).unwrap_or_default(),
            unique_id: column(row, 5)?,
        };
        Ok((n, event))
    });
    Ok(database.many(query).await?.into_iter().collect())
}

/// Reads the events of messages of notes, by the numbers of the notes.
async fn message_facts(
    database: &impl Database,
    workspace: WorkspaceId,
    notes: &[StoredNote],
) -> Result<HashMap<i64, MessageFact>, StoreError> {
    macro_rules! select {
        ($wanted:literal) => {
            concat!(
                "SELECT wanted.note, e.kind, e.at, e.meta, m.channel, m.campaign, m.automation, m.template FROM ",
                $wanted,
                " {CROSS} JOIN message_events e
                      ON e.workspace = $1 AND e.message = wanted.message AND e.at = wanted.at AND e.id = wanted.id
                  {CROSS} JOIN messages m ON m.workspace = $1 AND m.id = wanted.message"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select!(
            "(SELECT value AS note, unhex($3 ->> key) AS message, $4 ->> key AS at, unhex($5 ->> key) AS id
              FROM json_each($2)) AS wanted"
        ),
        postgres: select!(
            "unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::uuid[]) AS wanted (note, message, at, id)"
        ),
    );
    let (mut numbers, mut messages, mut times, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for stored in notes {
        if let (Cause::Message { event_id, message_id }, Some(at)) = (&stored.note.cause, stored.event) {
            numbers.push(stored.n);
            messages.push(key(*message_id));
            times.push(at);
            ids.push(key(*event_id));
        }
    }
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = params![key(workspace), numbers, Param::List(messages), times, Param::List(ids)];
    let query = Query::new(SQL, wanted, |row| Ok((column::<i64>(row, 0)?, message_fact(row)?)));
    Ok(database.many(query).await?.into_iter().filter_map(|(n, fact)| Some((n, fact?))).collect())
}

fn message_fact(row: &dyn Row) -> Result<Option<MessageFact>, Fault> {
    let Some(event) = counted_kind(numbered(&EventKind::ALL, column(row, 1)?)?) else { return Ok(None) };
    let meta: Map<String, Value> = or_empty(row, 3)?;
    Ok(Some(MessageFact {
        event,
        at: time(row, 2)?,
        is_machine: matches!(event, MessageEventKind::Open | MessageEventKind::Click) && is_machine(&meta),
        url: meta.get("url").and_then(Value::as_str).map(ToOwned::to_owned),
        channel: numbered(&Channel::ALL, column(row, 4)?)?,
        campaign_id: maybe_id(row, 5)?,
        automation_id: maybe_id(row, 6)?,
        template_id: maybe_id(row, 7)?,
    }))
}

/// Removes notes up to a position; fails unless the last one exists.
pub(crate) fn take(on: &mut dyn Statements, take: &TakeNotes) -> Result<(), Fault> {
    macro_rules! delete {
        ($which:literal) => {
            concat!("DELETE FROM automation_notes WHERE automation = ", automation!(), " AND shard = $3 AND ", $which)
        };
    }
    const LAST: Sql = sql!(delete!("n = $4"));
    const OTHERS: Sql = sql!(
        sqlite: delete!("n < $4 AND $5 = 0"),
        postgres: delete!("n < $4 AND CASE WHEN $5::bigint > 0 THEN tx < $5 WHEN $5 < 0 THEN tx = -$5 ELSE true END"),
    );
    let (settled, n) = of_place(take.up_to);
    let mut bounds = key_of((take.workspace_id, take.automation_id));
    bounds.extend(params![take.shard, n]);
    on.run_one(LAST, bounds.clone())?;
    bounds.push(settled.into());
    on.run(OTHERS, bounds)
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;
    use messaging_core::time::Timestamp;

    use super::*;

    fn note(n: i64, transaction: i64) -> StoredNote {
        let (contact_id, at) = (ContactId::from_bytes([1; 16]), Timestamp::from_millis(0));
        let note = Note { contact_id, cause: Cause::Created, at, depth: 0, may_enter: true };
        StoredNote { n, transaction, open_from: 50, note, event: None }
    }

    fn told(notes: &[(i64, i64)], settled: Option<i64>) -> (Settled, Vec<i64>) {
        let found = notes.iter().map(|(n, transaction)| note(*n, *transaction)).collect();
        let (kind, told) = told_at_once(found, settled);
        (kind, told.iter().map(|note| note.n).collect())
    }

    #[test]
    fn whatever_is_told_is_told_from_what_comes_late() {
        assert_eq!(told(&[], None).1, [] as [i64; 0]);
        assert_eq!(told(&[(1, 60), (2, 40), (9, 60)], Some(8)), (Settled::All, vec![1, 2]));
        assert_eq!(told(&[(9, 60), (10, 40)], Some(8)), (Settled::Before(50), vec![10]));
        assert_eq!(told(&[(1, 60), (2, 40), (3, 49)], None), (Settled::Before(50), vec![2, 3]));
        assert_eq!(told(&[(1, 60), (2, 70), (3, 60)], None), (Settled::Of(60), vec![1, 3]));
    }

    #[test]
    fn a_place_says_both() {
        for settled in [Settled::All, Settled::Before(7), Settled::Of(i64::MAX)] {
            for n in [1, i64::MAX] {
                assert_eq!(of_place(settled.place(n)), (settled.stored(), n));
            }
        }
    }
}
