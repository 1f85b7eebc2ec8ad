//! Following the changes of contacts: what is read, and what it leads to.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, Moved};
use messaging_core::time::Timestamp;

use super::super::fault::Fault;
use super::super::listeners::{self, Happened};
use super::super::outbox::{note, read_mask, read_mask_in};
use super::super::query::{many, one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::{get, uuid};
use super::super::transaction::Transaction;
use super::evaluate::{Evaluation, present};
use super::members::{change, lock_alone, segment_exists};
use crate::tables::segments::follow::{self, FollowedNote, Matching};
use crate::tables::segments::trace::{self, Change, Traced};

impl Matching for Snapshot {
    const LOOK: Duration = Duration::from_millis(100);
    const PIECE: usize = 500;

    async fn matching(
        &mut self,
        workspace: WorkspaceId,
        query: &MemberQuery,
        contacts: &[i64],
    ) -> Result<Option<Vec<i64>>, Fault> {
        match Evaluation::new(self, workspace, &present(query), [&query.filter]).await? {
            Some(evaluation) => Ok(Some(evaluation.among(self, contacts).await?)),
            None => Ok(None),
        }
    }
}

pub(super) async fn look(
    reads: &Reads,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<FollowedNote>, bool), Fault> {
    let mut on = reads.snapshot().await?;
    let found = follow::look(&mut on, workspace, segments, limit).await?;
    on.end().await?;
    Ok(found)
}

pub(super) async fn trace(reads: &Reads, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    let mut on = reads.snapshot().await?;
    let traced = trace::trace(&mut on, workspace).await?;
    on.end().await?;
    Ok(traced)
}

/// Takes entries of the outbox away and writes what they lead to; answers who moved.
pub(super) async fn write(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    followed: &[FollowedNote],
) -> Result<Vec<Moved>, Fault> {
    const TAKE: &str = "WITH held AS (
            SELECT n.contact FROM unnest($1::bigint[], $2::bigint[]) AS u (contact, mark)
            JOIN changed_contacts n ON n.contact = u.contact AND n.mark = u.mark ORDER BY n.contact FOR UPDATE OF n
        )
        DELETE FROM changed_contacts WHERE contact IN (SELECT contact FROM held) RETURNING contact";
    lock_alone(transaction, workspace);
    // A contact that is gone has no note.
    let (contacts, marks): (Vec<i64>, Vec<i64>) = followed.iter().map(|one| (one.contact, one.mark)).unzip();
    let taken = many(transaction, TAKE, params![contacts, marks], |row| get::<i64>(row, 0)).await?;
    let taken: HashSet<i64> = taken.into_iter().collect();
    let mut by_segment: BTreeMap<i64, Vec<(i64, bool)>> = BTreeMap::new();
    for one in followed.iter().filter(|one| taken.contains(&one.contact)) {
        for by in &one.moves {
            by_segment.entry(by.segment).or_default().push((one.contact, by.member));
        }
    }
    let mut changed: HashSet<(i64, i64)> = HashSet::new();
    for (segment, moves) in by_segment {
        if segment_exists(transaction, segment).await? {
            for member in [true, false] {
                let contacts = change(transaction, segment, &moves, member).await?;
                changed.extend(contacts.into_iter().map(|contact| (segment, contact)));
            }
        }
    }
    let is_heard = listeners::is_any(transaction, workspace).await?;
    let mut moved = Vec::new();
    for one in followed {
        transaction.depth = one.depth;
        for by in one.moves.iter().filter(|by| changed.contains(&(by.segment, one.contact))) {
            if is_heard {
                let happened = Happened::Segment { id: by.id, member: by.member, is_silent: false };
                listeners::hear(transaction, workspace, one.contact, by.at, happened).await?;
            }
            moved.push(one.moved(by));
        }
    }
    Ok(moved)
}

/// Notes the contacts that were found, for segments and automations, and how far the search has come.
pub(super) async fn write_traced(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    traced: &Traced,
) -> Result<(), Fault> {
    const THERE: &str = "SELECT n FROM contacts WHERE n = ANY($1) FOR KEY SHARE";
    let contacts: Vec<i64> = traced.contacts.iter().map(|(contact, _)| *contact).collect();
    let there = many(transaction, THERE, params![contacts], |row| get::<i64>(row, 0)).await?;
    let there: HashSet<i64> = there.into_iter().collect();
    let read_mask = read_mask(transaction, workspace).await?;
    for (contact, Change { at, depth }) in traced.contacts.iter().filter(|(contact, _)| there.contains(contact)) {
        transaction.depth = *depth;
        if let Some(read_mask) = read_mask {
            note(transaction, read_mask.caused_at(*depth), *contact, ReadMask::SUPPRESSIONS);
        }
        listeners::hear(transaction, workspace, *contact, *at, Happened::Changed { dates: false }).await?;
    }
    let addresses = traced.addresses.clone();
    if traced.is_end {
        transaction.run("DELETE FROM changed_addresses WHERE n = ANY($1)", params![addresses]);
    } else {
        let sql = "UPDATE changed_addresses SET looked_through = $2 WHERE n = ANY($1)";
        transaction.run(sql, params![addresses, traced.looked_through]);
    }
    Ok(())
}

/// Tells segments and automations that an address came onto the suppression list or off it. Whose it is is found at once
/// where an index finds it, and otherwise by the job that follows changes, which looks through the contacts.
pub(in super::super) async fn tell_of_address(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    (channel, address): (Channel, &str),
    at: Timestamp,
) -> Result<(), Fault> {
    const BY_EMAIL: &str = "SELECT n FROM contacts WHERE email = $2
        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)";
    const BY_PHONE: &str = "SELECT n FROM contacts WHERE phone = $2
        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)";
    let read_mask = read_mask_in(transaction, workspace, ReadMask::SUPPRESSIONS).await?;
    if read_mask.is_none() && !listeners::hears_changes(transaction, workspace).await? {
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
        let (sql, row) = trace::seek(workspace, (channel, address), Change { at, depth: transaction.depth });
        transaction.run(sql.postgres, row);
        return Ok(());
    };
    let found = one(transaction, sql, params![uuid(workspace), address], |row| get::<i64>(row, 0)).await?;
    let Some(contact) = found else { return Ok(()) };
    if let Some(read_mask) = read_mask {
        note(transaction, read_mask, contact, ReadMask::SUPPRESSIONS);
    }
    listeners::hear(transaction, workspace, contact, at, Happened::Changed { dates: false }).await
}
