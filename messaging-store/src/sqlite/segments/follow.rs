//! Following the changes of contacts.
//!
//! Notes are read together with whom the changed contacts match now, in one moment of the database. Then each
//! note is taken away together with what it leads to, if its mark is still the one that was read: a contact
//! that changed once more keeps its note and is looked at again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, Moved};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::interests::Interests;
use super::super::listeners::Happened;
use super::super::lists;
use super::super::numbers::{BY_EMAIL, BY_PHONE, COUNT_BITS, segment_number, workspace_number};
use super::super::query::{many, one};
use super::super::row::{id, number, numbered, sql_limit};
use super::compile::compile;
use super::evaluate::Evaluation;
use super::members::{Moving, count, is_there};
use super::outbox::{WorkspaceReadMask, note};
use super::probe;
use crate::segment_moves::compare;

/// How long one look may take: others wait for the thread meanwhile.
const LOOK: Duration = Duration::from_millis(25);
/// How many contacts are looked at together.
const PIECE: usize = 200;
/// How many addresses are looked for together.
const MAX_ADDRESSES: usize = 1000;

/// A note that was read, and what it leads to.
#[derive(Debug)]
pub(super) struct Followed {
    contact: i64,
    id: ContactId,
    mark: i64,
    /// By how many automations in a row it was caused.
    depth: u8,
    /// The number of a segment, and whether the contact becomes a member of it, as of when.
    moves: Vec<(i64, SegmentId, bool, Timestamp)>,
}

/// A note.
struct Note {
    contact: i64,
    id: ContactId,
    mask: ReadMask,
    mark: i64,
    depth: u8,
}

/// Reads up to `limit` entries of the outbox and what they lead to. Also answers whether there are more.
pub(super) fn look(
    connection: &Connection,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<Followed>, bool), Fault> {
    let began = Instant::now();
    let connection = &*connection.unchecked_transaction()?;
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok((Vec::new(), false)) };
    let outbox = outbox(connection, workspace_number, limit.saturating_add(1))?;
    let more = outbox.len() > limit;
    let outbox = &outbox[..outbox.len().min(limit)];
    let mut followed: Vec<Followed> = Vec::with_capacity(outbox.len());
    for piece in outbox.chunks(PIECE) {
        if !followed.is_empty() && began.elapsed() >= LOOK {
            return Ok((followed, true));
        }
        let begin = followed.len();
        followed.extend(piece.iter().map(|note| {
            let Note { contact, id, mark, depth, .. } = *note;
            Followed { contact, id, mark, depth, moves: Vec::new() }
        }));
        for (segment, query) in segments {
            let mask = query.filter.reads().mask;
            let changed = piece.iter().filter(|note| note.mask.intersects(mask));
            let contacts: Vec<i64> = changed.map(|note| note.contact).collect();
            if contacts.is_empty() {
                continue;
            }
            let Some((n, moves)) = moves(connection, workspace, *segment, query, &contacts)? else { continue };
            for (contact, member) in moves {
                // Both are in the order of the numbers.
                if let Ok(place) = followed[begin..].binary_search_by_key(&contact, |one| one.contact) {
                    followed[begin + place].moves.push((n, *segment, member, query.now));
                }
            }
        }
    }
    Ok((followed, more))
}

fn outbox(connection: &Connection, workspace_number: i64, limit: usize) -> Result<Vec<Note>, Fault> {
    const SQL: &str = "SELECT n.contact, c.id, n.read_mask, n.mark, n.depth
        FROM changed_contacts n CROSS JOIN contacts c ON c.n = n.contact
        WHERE n.contact BETWEEN ?1 AND ?2 ORDER BY n.contact LIMIT ?3";
    let range = params![workspace_number << COUNT_BITS, ((workspace_number + 1) << COUNT_BITS) - 1, sql_limit(limit)];
    many(connection, SQL, range, |row| {
        let mask = ReadMask::from_bits(row.get(2)?);
        Ok(Note { contact: row.get(0)?, id: id(row, 1)?, mask, mark: row.get(3)?, depth: row.get(4)? })
    })
}

/// The number of a segment, and who has to become a member of it or cease to be one.
type OfSegment = (i64, Vec<(i64, bool)>);

/// Who of some contacts has to become or cease to be a member; `None` when there is no such segment.
fn moves(
    connection: &Connection,
    workspace: WorkspaceId,
    segment: SegmentId,
    query: &MemberQuery,
    contacts: &[i64],
) -> Result<Option<OfSegment>, Fault> {
    const HELD: &str = "SELECT m.contact FROM json_each(?2) j CROSS JOIN segment_members m
        WHERE m.segment = ?1 AND m.contact = j.value ORDER BY m.contact";
    let Some(n) = segment_number(connection, workspace, segment)? else { return Ok(None) };
    let Some(compiled) = compile(connection, workspace, query, [&query.filter])? else { return Ok(None) };
    let wanted = Evaluation::of_some(connection, compiled)?.among(contacts)?;
    let held = many(connection, HELD, params![n, serde_json::to_string(contacts)?], |row| Ok(row.get(0)?))?;
    let mut moves = Vec::new();
    compare(&wanted, &held, &mut moves);
    Ok(Some((n, moves)))
}

/// How many of the first may be written together: so many entries, or so many moves.
pub(super) fn slice(followed: &[Followed], outbox: usize, moves: usize) -> usize {
    let mut sum = 0;
    let fit = followed.iter().take(outbox).take_while(|one| {
        let fits = sum < moves;
        sum += one.moves.len();
        fits
    });
    fit.count()
}

/// Takes entries of the outbox away and writes what they lead to; answers who moved.
pub(super) fn write(
    connection: &Connection,
    interests: &mut Interests,
    workspace: WorkspaceId,
    followed: &[Followed],
) -> Result<Vec<Moved>, Fault> {
    let mut take = connection.prepare_cached("DELETE FROM changed_contacts WHERE contact = ?1 AND mark = ?2")?;
    // A contact that is gone has no note.
    let mut writing = Moving::new(connection, false)?;
    let mut moved = Vec::new();
    for one in followed {
        if take.execute([one.contact, one.mark])? == 0 {
            continue;
        }
        interests.caused_at(one.depth);
        for (n, segment, member, at) in &one.moves {
            if !is_there(connection, *n)? {
                continue;
            }
            if writing.write(*n, one.contact, *member)? {
                let happened = Happened::Segment { id: *segment, member: *member, is_silent: false };
                interests.listeners.hear(connection, workspace, one.contact, *at, happened)?;
                count(connection, *n, if *member { 1 } else { -1 })?;
                moved.push(Moved { segment: *segment, contact: one.id, member: *member });
            }
        }
    }
    Ok(moved)
}

/// Who was found to have one of the addresses that changed.
pub(super) struct Traced {
    workspace_number: i64,
    /// The addresses that were looked for.
    addresses: Vec<i64>,
    /// Up to which contact.
    looked_through: i64,
    contacts: Vec<(i64, Change)>,
    is_end: bool,
}

/// When an address came onto the suppression list or off it, and by how many automations in a row that was caused.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Milliseconds; 0 where it was noted before this was.
    at: i64,
    depth: u8,
}

/// An address that is looked for: its row, the address, its change, up to which contact.
type Sought = (i64, (Channel, String), Change, i64);

/// Looks for addresses that came onto the suppression list or off it, and that no index finds. `None` when
/// there are none.
pub(super) fn trace(connection: &Connection, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    const ADDRESSES: &str = "SELECT n, channel, address, at, depth, looked_through FROM changed_addresses
        WHERE workspace_number = ?1 ORDER BY looked_through DESC, n LIMIT ?2";
    const CONTACTS: &str = "SELECT n, attributes FROM contacts WHERE n > ?1 AND n <= ?2 ORDER BY n";
    let began = Instant::now();
    let connection = &*connection.unchecked_transaction()?;
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(None) };
    let sought: Vec<Sought> =
        many(connection, ADDRESSES, params![workspace_number, sql_limit(MAX_ADDRESSES)], |row| {
            let address = (numbered(&Channel::ALL, row.get(1)?)?, row.get(2)?);
            Ok((row.get(0)?, address, Change { at: row.get(3)?, depth: row.get(4)? }, row.get(5)?))
        })?;
    // Those that were looked for furthest; others are looked for afterwards, from where they are.
    let Some(from) = sought.first().map(|(.., looked_through)| *looked_through) else { return Ok(None) };
    let sought: Vec<_> = sought.into_iter().take_while(|(.., looked_through)| *looked_through == from).collect();
    // Of several changes of an address the last one counts: what it is by then is what is asked.
    let wanted: HashMap<_, _> = sought.iter().map(|(_, address, change, _)| (address.clone(), *change)).collect();
    let channels: Vec<Channel> =
        Channel::ALL.into_iter().filter(|one| wanted.keys().any(|(of, _)| of == one)).collect();

    let last = ((workspace_number + 1) << COUNT_BITS) - 1;
    let mut statement = connection.prepare_cached(CONTACTS)?;
    let mut rows = statement.query([from.max(workspace_number << COUNT_BITS), last])?;
    let (mut contacts, mut looked_through, mut is_end) = (Vec::new(), from, true);
    while let Some(row) = rows.next()? {
        looked_through = row.get(0)?;
        for channel in &channels {
            for address in probe::addresses(*channel, row.get_ref(1)?)? {
                contacts.extend(wanted.get(&(*channel, address)).map(|change| (looked_through, *change)));
            }
        }
        if began.elapsed() >= LOOK {
            is_end = false;
            break;
        }
    }
    let addresses = sought.iter().map(|(n, ..)| *n).collect();
    Ok(Some(Traced { workspace_number, addresses, looked_through, contacts, is_end }))
}

/// Notes the contacts that were found, for segments and automations, and how far the search has come.
pub(super) fn write_traced(
    connection: &Connection,
    interests: &mut Interests,
    workspace: WorkspaceId,
    traced: &Traced,
) -> Result<(), Fault> {
    let read_mask = WorkspaceReadMask::of_workspace_number(connection, traced.workspace_number)?;
    let mut is_there = connection.prepare_cached("SELECT 1 FROM contacts WHERE n = ?1")?;
    for (contact, Change { at, depth }) in &traced.contacts {
        if !is_there.exists([contact])? {
            continue;
        }
        interests.caused_at(*depth);
        note(connection, read_mask.caused_at(*depth), *contact, ReadMask::SUPPRESSIONS)?;
        if *at > 0 {
            let happened = Happened::Changed { dates: false };
            interests.listeners.hear(connection, workspace, *contact, Timestamp::from_millis(*at), happened)?;
        }
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

/// A removed list whose members are not let go yet, if a dynamic segment reads lists. They are noted as they
/// go.
pub(super) fn removed_list(connection: &Connection, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(None) };
    if WorkspaceReadMask::of_workspace_number(connection, workspace_number)?.in_any(ReadMask::LISTS).is_empty() {
        return Ok(None);
    }
    lists::removed(connection, workspace_number)
}

/// Tells segments and automations that an address came onto the suppression list or off it. Whose it is is found at once
/// where an index finds it, and otherwise by the job that follows changes, which looks through the contacts.
pub(in super::super) fn tell_of_address(
    connection: &Connection,
    interests: &mut Interests,
    workspace: WorkspaceId,
    (channel, address): (Channel, &str),
    at: Timestamp,
) -> Result<(), Fault> {
    const TRACE: &str = "INSERT INTO changed_addresses (workspace_number, channel, address, looked_through, at, depth)
        VALUES (?1, ?2, ?3, 0, ?4, ?5)";
    let read_mask = interests.read_masks.in_mask(connection, workspace, ReadMask::SUPPRESSIONS)?;
    if read_mask.is_none() && !interests.listeners.hears_changes(connection, workspace)? {
        return Ok(());
    }
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(()) };
    let by_column = match channel {
        Channel::Email => Some(BY_EMAIL),
        Channel::Sms | Channel::Whatsapp => Some(BY_PHONE),
        // A business sends to phone numbers, and a bot to no such thing.
        Channel::Viber => address::is_e164(address).then_some(BY_PHONE),
        Channel::Telegram | Channel::Push => None,
    };
    let Some(sql) = by_column else {
        let row =
            params![workspace_number, number(&Channel::ALL, &channel), address, at.as_millis(), interests.depth()];
        connection.prepare_cached(TRACE)?.execute(row)?;
        return Ok(());
    };
    let found: Option<i64> = one(connection, sql, params![workspace_number, address], |row| Ok(row.get(0)?))?;
    let Some(contact) = found else { return Ok(()) };
    if let Some(read_mask) = read_mask {
        note(connection, read_mask, contact, ReadMask::SUPPRESSIONS)?;
    }
    interests.listeners.hear(connection, workspace, contact, at, Happened::Changed { dates: false })
}
