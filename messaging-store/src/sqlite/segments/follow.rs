//! Following the changes of contacts: what is read, and what it leads to.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, Moved};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::change_subscribers::ChangeSubscribers;
use super::super::fault::Fault;
use super::super::listeners::Happened;
use super::super::numbers::{BY_EMAIL, BY_PHONE, workspace_number};
use super::super::query::one;
use super::compile::compile;
use super::evaluate::Evaluation;
use super::members::{MembershipWriter, add_to_member_count, segment_exists};
use super::outbox::note;
use crate::database::{Statements as _, at_once};
use crate::tables::segments::follow::{self, FollowedNote, Matching};
use crate::tables::segments::trace::{self, Change, Traced};

impl Matching for &Connection {
    /// Others wait for the thread meanwhile.
    const LOOK: Duration = Duration::from_millis(25);
    const PIECE: usize = 200;

    async fn matching(
        &mut self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        contacts: &[i64],
    ) -> Result<Option<Vec<i64>>, Fault> {
        let Some(compiled) = compile(self, workspace, query, [&query.filter])? else { return Ok(None) };
        Evaluation::of_some(self, compiled)?.among(contacts).map(Some)
    }
}

pub(super) fn look(
    connection: &Connection,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<FollowedNote>, bool), Fault> {
    let transaction = connection.unchecked_transaction()?;
    at_once(follow::look(&mut &*transaction, workspace, segments, limit))
}

pub(super) fn trace(connection: &Connection, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    let transaction = connection.unchecked_transaction()?;
    at_once(trace::trace(&mut &*transaction, workspace))
}

/// Takes entries of the outbox away and writes what they lead to; answers who moved.
pub(super) fn write(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    followed: &[FollowedNote],
) -> Result<Vec<Moved>, Fault> {
    let mut take = connection.prepare_cached("DELETE FROM changed_contacts WHERE contact = ?1 AND mark = ?2")?;
    // A contact that is gone has no note.
    let mut writing = MembershipWriter::new(connection, false)?;
    let mut moved = Vec::new();
    for one in followed {
        if take.execute([one.contact, one.mark])? == 0 {
            continue;
        }
        subscribers.caused_at(one.depth);
        for by in &one.moves {
            if segment_exists(connection, by.segment)? && writing.write(by.segment, one.contact, by.member)? {
                let happened = Happened::Segment { id: by.id, member: by.member, is_silent: false };
                subscribers.listeners.hear(connection, workspace, one.contact, by.at, happened)?;
                add_to_member_count(connection, by.segment, if by.member { 1 } else { -1 })?;
                moved.push(one.moved(by));
            }
        }
    }
    Ok(moved)
}

/// Notes the contacts that were found, for segments and automations, and how far the search has come.
pub(super) fn write_traced(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    traced: &Traced,
) -> Result<(), Fault> {
    let read_mask = subscribers.read_masks.of(connection, workspace)?;
    let mut is_there = connection.prepare_cached("SELECT 1 FROM contacts WHERE n = ?1")?;
    for (contact, Change { at, depth }) in &traced.contacts {
        if !is_there.exists([contact])? {
            continue;
        }
        subscribers.caused_at(*depth);
        if let Some(read_mask) = read_mask {
            note(connection, read_mask.caused_at(*depth), *contact, ReadMask::SUPPRESSIONS)?;
        }
        subscribers.listeners.hear(connection, workspace, *contact, *at, Happened::Changed { dates: false })?;
    }
    let sql = if traced.is_end {
        "DELETE FROM changed_addresses WHERE n = ?1 AND ?2 IS NOT NULL"
    } else {
        "UPDATE changed_addresses SET looked_through = ?2 WHERE n = ?1"
    };
    let mut statement = connection.prepare_cached(sql)?;
    for address in &traced.addresses {
        statement.execute([*address, traced.looked_through])?;
    }
    Ok(())
}

/// Tells segments and automations that an address came onto the suppression list or off it. Whose it is is found at once
/// where an index finds it, and otherwise by the job that follows changes, which looks through the contacts.
pub(in super::super) fn tell_of_address(
    connection: &Connection,
    subscribers: &mut ChangeSubscribers,
    workspace: WorkspaceId,
    (channel, address): (Channel, &str),
    at: Timestamp,
) -> Result<(), Fault> {
    let read_mask = subscribers.read_masks.in_mask(connection, workspace, ReadMask::SUPPRESSIONS)?;
    if read_mask.is_none() && !subscribers.listeners.hears_changes(connection, workspace)? {
        return Ok(());
    }
    let by_column = match channel {
        Channel::Email => Some(BY_EMAIL),
        Channel::Sms | Channel::Whatsapp => Some(BY_PHONE),
        // A business sends to phone numbers, and a bot to no such thing.
        Channel::Viber => address::is_e164(address).then_some(BY_PHONE),
        Channel::Telegram | Channel::Push => None,
    };
    let Some(sql) = by_column else {
        let (sql, row) = trace::seek(workspace, (channel, address), Change { at, depth: subscribers.depth() });
        return (&*connection).run(sql, row);
    };
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    let found: Option<i64> = one(connection, sql, params![workspace_number, address], |row| Ok(row.get(0)?))?;
    let Some(contact) = found else { return Ok(()) };
    if let Some(read_mask) = read_mask {
        note(connection, read_mask, contact, ReadMask::SUPPRESSIONS)?;
    }
    subscribers.listeners.hear(connection, workspace, contact, at, Happened::Changed { dates: false })
}
