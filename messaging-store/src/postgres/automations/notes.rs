//! Notes, as they are read and worked off. They are made by [`listeners`].
//!
//! Transactions commit in another order than that of the numbers of their notes. So the place of a note says, besides its
//! number, which of those with smaller numbers were there when it was read: [`Settled`].

use std::collections::HashMap;

use messaging_core::changes::TakeNotes;
use messaging_core::domain::automation::note::{Cause, Happened, Note};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::product_event::{ProductEvent, Properties};
use messaging_core::domain::segment::filter::MessageEventKind;
use messaging_core::domain::segment::matching::MessageFact;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{StoreCursor, StoreError};
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::listeners::{self, counted_kind, is_machine};
use super::super::query::{Queries, many, params};
use super::super::reads::Reads;
use super::super::row::{get as column, id, maybe_id, numbered, or_empty, small, sql_limit, time, uuid};
use super::super::transaction::Transaction;
use super::runs::Of;
use crate::automation_rows::cause;

/// Which notes up to a number are known to have been there: the first half of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// All: nobody who was making notes then has a smaller number.
    All,
    /// Those of transactions before this one: all of them had ended.
    Before(i64),
    /// Those of this transaction.
    Of(i64),
}

impl Settled {
    /// As it is stored in a place; transactions have positive numbers.
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

/// What a place says: which notes are settled, as stored, and the number of the last one.
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
    /// What finds its event.
    event: Option<i64>,
}

fn stored_note(row: &Row) -> Result<StoredNote, Fault> {
    let cause = cause(column(row, 3)?, column(row, 6)?).ok_or(Fault::Malformed("a note says nothing"))?;
    let note =
        Note { contact_id: id(row, 1)?, cause, at: time(row, 2)?, depth: small(row, 4)?, may_enter: column(row, 5)? };
    let (transaction, open_from) = (column(row, 8)?, column(row, 9)?);
    Ok(StoredNote { n: column(row, 0)?, transaction, open_from, note, event: column(row, 7)? })
}

/// The oldest notes of a share of the contacts, with what they tell of; those of contacts that are gone are passed by.
pub(super) async fn oldest(
    reads: &Reads,
    of: Of,
    shard: u8,
    limit: usize,
) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError> {
    const SQL: &str = "SELECT n.n, c.id, n.at, n.kind::bigint, n.depth::bigint, n.may_enter, n.what, n.event, n.tx,
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        FROM automation_notes n JOIN contacts c ON c.n = n.contact
        WHERE n.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND n.shard = $3 ORDER BY n.n LIMIT $4";
    // Before the notes: what is settled then is among them.
    let settled = listeners::settled_up_to(&mut reads.clone(), of.0).await?;
    let mut snapshot = reads.snapshot().await?;
    let bounds = params![uuid(of.0), uuid(of.1), i16::from(shard), sql_limit(limit)];
    let found = many(&mut snapshot, SQL, bounds, stored_note).await?;
    let (kind, notes) = told_at_once(found, settled);
    let mut events = product_events(&mut snapshot, of.0, &notes).await?;
    let mut facts = message_facts(&mut snapshot, of.0, &notes).await?;
    snapshot.end().await?;
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

/// Of notes in the order of their numbers, those whose places can tell them from what was not there yet. That are all but
/// for those of transactions that began before one that is still open; when there are no others, those of the first
/// transaction. So some are told whenever there are any.
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

/// The product events that notes tell of, by their numbers.
async fn product_events(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    notes: &[StoredNote],
) -> Result<HashMap<i64, ProductEvent>, Fault> {
    const SQL: &str = "SELECT e.n, e.id, names.name, e.at, e.properties, u.unique_id
        FROM product_events e JOIN event_names names ON names.n = e.name
        LEFT JOIN event_unique_ids u ON u.event = e.n
        WHERE e.n = ANY ($1)";
    let of: HashMap<i64, &Note> = notes
        .iter()
        .filter(|stored| matches!(stored.note.cause, Cause::Event(_)))
        .filter_map(|stored| Some((stored.event?, &stored.note)))
        .collect();
    if of.is_empty() {
        return Ok(HashMap::new());
    }
    let events = many(on, SQL, params![of.keys().copied().collect::<Vec<_>>()], |row| {
        let n = column::<i64>(row, 0)?;
        let note = of.get(&n).ok_or(Fault::Malformed("a row is of no note"))?;
        let event = ProductEvent {
            id: id(row, 1)?,
            workspace_id: workspace,
            contact_id: note.contact_id,
            name: column(row, 2)?,
            occurred_at: time(row, 3)?,
            properties: column::<Option<String>>(row, 4)?.map(Properties::from_json).unwrap_or_default(),
            unique_id: column(row, 5)?,
        };
        Ok((n, event))
    });
    Ok(events.await?.into_iter().collect())
}

/// The events of messages that notes tell of, by the numbers of the notes.
async fn message_facts(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    notes: &[StoredNote],
) -> Result<HashMap<i64, MessageFact>, Fault> {
    const SQL: &str = "SELECT wanted.note, e.kind, e.at, e.meta, m.channel, m.campaign, m.automation, m.template
        FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::uuid[]) AS wanted (note, message, at, id)
        JOIN message_events e
            ON e.workspace = $1 AND e.message = wanted.message AND e.at = wanted.at AND e.id = wanted.id
        JOIN messages m ON m.workspace = $1 AND m.id = wanted.message";
    let (mut numbers, mut messages, mut times, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for stored in notes {
        if let (Cause::Message { event_id, message_id }, Some(at)) = (&stored.note.cause, stored.event) {
            numbers.push(stored.n);
            messages.push(uuid(*message_id));
            times.push(at);
            ids.push(uuid(*event_id));
        }
    }
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let columns = params![uuid(workspace), numbers, messages, times, ids];
    let facts = many(on, SQL, columns, |row| Ok((column::<i64>(row, 0)?, message_fact(row)?)));
    Ok(facts.await?.into_iter().filter_map(|(n, fact)| Some((n, fact?))).collect())
}

fn message_fact(row: &Row) -> Result<Option<MessageFact>, Fault> {
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

/// Takes notes away up to a place, which must be there.
pub(in super::super) fn take(transaction: &mut Transaction, take: &TakeNotes) {
    const LAST: &str = "DELETE FROM automation_notes
        WHERE automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND shard = $3 AND n = $4";
    const OTHERS: &str = "DELETE FROM automation_notes
        WHERE automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND shard = $3 AND n < $4
            AND CASE WHEN $5::bigint > 0 THEN tx < $5 WHEN $5 < 0 THEN tx = -$5 ELSE true END";
    let (settled, n) = of_place(take.up_to);
    listeners::share(transaction, take.workspace_id);
    let key = || params![uuid(take.workspace_id), uuid(take.automation_id), i16::from(take.shard), n];
    transaction.run_one(LAST, key());
    let mut bounds = key();
    bounds.push(settled.into());
    transaction.run(OTHERS, bounds);
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::{ContactId, Id as _};
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
