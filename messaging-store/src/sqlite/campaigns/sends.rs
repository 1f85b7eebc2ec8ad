//! When marketing messages to contacts began.

use messaging_core::changes::{ContactSends, Expect};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::numbers::contact_number;
use super::super::query::one;
use super::super::row::number;
use crate::send_times::{from_bytes, seconds, to_bytes};

/// The times in a column, in their order.
pub(super) fn times(bytes: &[u8]) -> Result<Vec<Timestamp>, Fault> {
    from_bytes(bytes).ok_or(Fault::Malformed("times of sends are of four bytes"))
}

pub(in super::super) fn put(connection: &Connection, sends: &ContactSends, expect: Expect) -> Result<(), Fault> {
    let n = contact_number(connection, sends.workspace_id, sends.contact_id)?.ok_or(Fault::Conflict)?;
    let channel = number(&Channel::ALL, &sends.channel);
    let times: Vec<u32> = sends.times.iter().copied().map(seconds).collect();
    let bytes = to_bytes(&times);
    expect_one(match expect {
        // The first revision is a time, so that a row that was let go and came again is not taken for the one that was
        // read before.
        Expect::Absent => connection
            .prepare_cached("INSERT INTO contact_sends (contact, channel, revision, times) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![n, channel, times.last().copied().unwrap_or(1), bytes])?,
        // A row without times stays until it is let go, for the same reason.
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE contact_sends SET revision = (revision + 1) & 0xFFFFFFFF, times = ?3
                 WHERE contact = ?1 AND channel = ?2 AND revision = ?4",
            )?
            .execute(params![n, channel, bytes, revision])?,
    })
}

pub(super) fn get(
    connection: &Connection,
    workspace: WorkspaceId,
    contact: ContactId,
    channel: Channel,
) -> Result<Option<Stored<ContactSends>>, Fault> {
    const SQL: &str = "SELECT revision, times FROM contact_sends WHERE contact = ?1 AND channel = ?2";
    // One transaction, locked once.
    let connection = connection.unchecked_transaction()?;
    let Some(n) = contact_number(&connection, workspace, contact)? else { return Ok(None) };
    one(&connection, SQL, params![n, number(&Channel::ALL, &channel)], |row| {
        let bytes = row.get_ref(1)?.as_blob().map_err(|_| Fault::Malformed("times of sends are no bytes"))?;
        let record = ContactSends { workspace_id: workspace, contact_id: contact, channel, times: times(bytes)? };
        Ok(Stored { record, revision: row.get(0)? })
    })
}

/// Lets go what is known of a contact that is removed.
pub(in super::super) fn delete_of(connection: &Connection, contact: i64) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM contact_sends WHERE contact = ?1")?.execute([contact])?;
    Ok(())
}
