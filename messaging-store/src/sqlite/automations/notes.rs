//! Notes, as they are read and worked off. They are made by [`listeners`](super::super::listeners).

use messaging_core::changes::TakeNotes;
use messaging_core::domain::automation::note::{Cause, Note};
use messaging_core::ids::{EventId, Id, ListId, MessageId, SegmentId};
use messaging_core::ports::store::StoreCursor;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::listeners::kinds;
use super::super::numbers::automation_number;
use super::super::query::many;
use super::super::row::{id, numbered_place, place_number, sql_limit, time};
use super::runs::Of;

/// The id at a place of the ids of a note.
fn part<I: Id>(what: &[u8], place: usize) -> Result<I, Fault> {
    let bytes = what.as_chunks::<16>().0.get(place).ok_or(Fault::Malformed("a note names too little"))?;
    Ok(I::from_bytes(*bytes))
}

fn cause(kind: i64, what: &[u8]) -> Result<Cause, Fault> {
    Ok(match kind {
        kinds::EVENT => Cause::Event(part::<EventId>(what, 0)?),
        kinds::MESSAGE => {
            Cause::Message { event_id: part::<EventId>(what, 0)?, message_id: part::<MessageId>(what, 1)? }
        }
        kinds::CREATED => Cause::Created,
        kinds::CHANGED => Cause::Changed,
        kinds::LIST_ADDED => Cause::ListAdded(part::<ListId>(what, 0)?),
        kinds::SEGMENT_ENTERED => Cause::SegmentEntered(part::<SegmentId>(what, 0)?),
        kinds::SEGMENT_LEFT => Cause::SegmentLeft(part::<SegmentId>(what, 0)?),
        _ => return Err(Fault::Malformed("a number stands for nothing")),
    })
}

/// The oldest notes of a share of the contacts; those of contacts that were erased are passed by.
pub(super) fn oldest(
    connection: &Connection,
    of: Of,
    shard: u8,
    limit: usize,
) -> Result<Vec<(StoreCursor, Note)>, Fault> {
    const SQL: &str = "SELECT n.n, c.id, n.at, n.kind, n.depth, n.may_enter, n.what
        FROM automation_notes n CROSS JOIN contacts c ON c.n = n.contact
        WHERE n.automation = (SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0)
            AND n.shard = ?3 ORDER BY n.n LIMIT ?4";
    many(connection, SQL, params![of.0.to_bytes(), of.1.to_bytes(), shard, sql_limit(limit)], |row| {
        let what = row.get_ref(6)?.as_blob().map_err(|_| Fault::Malformed("ids are no bytes"))?;
        let note = Note {
            contact_id: id(row, 1)?,
            cause: cause(row.get(3)?, what)?,
            at: time(row, 2)?,
            depth: row.get(4)?,
            may_enter: row.get(5)?,
        };
        Ok((numbered_place(row.get(0)?), note))
    })
}

/// Takes notes away up to a place, which must be there.
pub(in super::super) fn take(connection: &Connection, take: &TakeNotes) -> Result<(), Fault> {
    const LAST: &str = "SELECT 1 FROM automation_notes WHERE automation = ?1 AND shard = ?2 AND n = ?3";
    const ALL: &str = "DELETE FROM automation_notes WHERE automation = ?1 AND shard = ?2 AND n <= ?3";
    let n = automation_number(connection, take.workspace_id, take.automation_id)?.ok_or(Fault::Conflict)?;
    let key = params![n, take.shard, place_number(take.up_to)];
    if !connection.prepare_cached(LAST)?.exists(key)? {
        return Err(Fault::Conflict);
    }
    connection.prepare_cached(ALL)?.execute(key)?;
    Ok(())
}
