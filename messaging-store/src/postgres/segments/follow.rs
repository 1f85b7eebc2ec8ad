//! Following the changes of contacts.
//!
//! Notes are read together with whom the changed contacts match now, in one moment of the database. Then each
//! note is taken away together with what it leads to, if its mark is still the one that was read: a contact
//! that changed once more keeps its note and is looked at again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, Moved};
use messaging_core::time::Timestamp;

use super::super::fault::Fault;
use super::super::listeners::{self, Happened};
use super::super::numbers::{COUNT_BITS, segment_number, workspace_number};
use super::super::outbox::{self, mask_of, note, read_mask, read_mask_in};
use super::super::query::{Queries as _, many, one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::{get, id, number, numbered, small, sql_limit, time};
use super::super::transaction::Transaction;
use super::evaluate::{Evaluation, PIECE, present};
use super::members::{change, is_there, lock_alone};
use super::values::attribute_addresses;
use crate::segment_moves::compare;

/// How long one snapshot may be looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How many contacts are looked at together.
const CONTACTS: usize = 500;
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
pub(super) async fn look(
    reads: &Reads,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<Followed>, bool), Fault> {
    let mut on = reads.snapshot().await?;
    let found = looked(&mut on, workspace, segments, limit).await?;
    on.end().await?;
    Ok(found)
}

async fn looked(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> Result<(Vec<Followed>, bool), Fault> {
    let began = Instant::now();
    let Some(workspace_number) = workspace_number(on, workspace).await? else { return Ok((Vec::new(), false)) };
    let outbox = outbox(on, workspace_number, limit.saturating_add(1)).await?;
    let more = outbox.len() > limit;
    let outbox = &outbox[..outbox.len().min(limit)];
    let mut followed: Vec<Followed> = Vec::with_capacity(outbox.len());
    for piece in outbox.chunks(CONTACTS) {
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
            let Some((n, moves)) = moves(on, workspace, *segment, query, &contacts).await? else { continue };
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

async fn outbox(on: &mut Snapshot, workspace_number: i64, limit: usize) -> Result<Vec<Note>, Fault> {
    const SQL: &str = "SELECT n.contact, c.id, n.read_mask, n.mark, n.depth
        FROM changed_contacts n JOIN contacts c ON c.n = n.contact
        WHERE n.contact BETWEEN $1 AND $2 ORDER BY n.contact LIMIT $3";
    let range = params![workspace_number << COUNT_BITS, ((workspace_number + 1) << COUNT_BITS) - 1, sql_limit(limit)];
    many(on, SQL, range, |row| {
        let mask = mask_of(get(row, 2)?);
        Ok(Note { contact: get(row, 0)?, id: id(row, 1)?, mask, mark: get(row, 3)?, depth: small(row, 4)? })
    })
    .await
}

/// The number of a segment, and who has to become a member of it or cease to be one.
type OfSegment = (i64, Vec<(i64, bool)>);

/// Who of some contacts has to become or cease to be a member; `None` when there is no such segment.
async fn moves(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    segment: SegmentId,
    query: &MemberQuery,
    contacts: &[i64],
) -> Result<Option<OfSegment>, Fault> {
    const HELD: &str = "SELECT contact FROM segment_members WHERE segment = $1 AND contact = ANY($2) ORDER BY contact";
    let Some(n) = segment_number(on, workspace, segment).await? else { return Ok(None) };
    let evaluation = Evaluation::new(on, workspace, &present(query), [&query.filter]).await?;
    let Some(evaluation) = evaluation else { return Ok(None) };
    let wanted = evaluation.among(on, contacts).await?;
    let held = many(on, HELD, params![n, contacts.to_vec()], |row| get::<i64>(row, 0)).await?;
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
pub(super) async fn write(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    followed: &[Followed],
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
        for (segment, _, member, _) in &one.moves {
            by_segment.entry(*segment).or_default().push((one.contact, *member));
        }
    }
    let mut changed: HashSet<(i64, i64)> = HashSet::new();
    for (segment, moves) in by_segment {
        if is_there(transaction, segment).await? {
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
        for (n, segment, member, at) in &one.moves {
            if !changed.contains(&(*n, one.contact)) {
                continue;
            }
            if is_heard {
                let happened = Happened::Segment { id: *segment, member: *member, is_silent: false };
                listeners::hear(transaction, workspace, one.contact, *at, happened).await?;
            }
            moved.push(Moved { segment: *segment, contact: one.id, member: *member });
        }
    }
    Ok(moved)
}

/// Who was found to have one of the addresses that changed.
pub(super) struct Traced {
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
    at: Timestamp,
    depth: u8,
}

/// An address that is looked for: its row, the address, its change, up to which contact.
type Sought = (i64, (Channel, String), Change, i64);

/// Looks for addresses that came onto the suppression list or off it, and that no index finds. `None` when
/// there are none.
pub(super) async fn trace(reads: &Reads, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    let mut on = reads.snapshot().await?;
    let traced = traced(&mut on, workspace).await?;
    on.end().await?;
    Ok(traced)
}

async fn traced(on: &mut Snapshot, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    const ADDRESSES: &str = "SELECT n, channel, address, at, depth, looked_through FROM changed_addresses
        WHERE workspace_number = $1 ORDER BY looked_through DESC, n LIMIT $2";
    const CONTACTS: &str = "SELECT n, attributes FROM contacts WHERE n > $1 AND n <= $2 ORDER BY n LIMIT $3";
    let began = Instant::now();
    let Some(workspace_number) = workspace_number(on, workspace).await? else { return Ok(None) };
    let sought: Vec<Sought> = many(on, ADDRESSES, params![workspace_number, sql_limit(MAX_ADDRESSES)], |row| {
        let address = (numbered(&Channel::ALL, get(row, 1)?)?, get(row, 2)?);
        Ok((get(row, 0)?, address, Change { at: time(row, 3)?, depth: small(row, 4)? }, get(row, 5)?))
    })
    .await?;
    // Those that were looked for furthest; others are looked for afterwards, from where they are.
    let Some(from) = sought.first().map(|(.., looked_through)| *looked_through) else { return Ok(None) };
    let sought: Vec<_> = sought.into_iter().take_while(|(.., looked_through)| *looked_through == from).collect();
    // Of several changes of an address the last one counts: what it is by then is what is asked.
    let wanted: HashMap<_, _> = sought.iter().map(|(_, address, change, _)| (address.clone(), *change)).collect();
    let channels: Vec<Channel> =
        Channel::ALL.into_iter().filter(|one| wanted.keys().any(|(of, _)| of == one)).collect();
    let addresses = sought.iter().map(|(n, ..)| *n).collect();
    let last = ((workspace_number + 1) << COUNT_BITS) - 1;
    let looked_through = from.max(workspace_number << COUNT_BITS);
    let mut traced = Traced { addresses, looked_through, contacts: Vec::new(), is_end: false };
    while !traced.is_end && began.elapsed() < LOOK {
        let rows = on.rows(CONTACTS, params![traced.looked_through, last, sql_limit(PIECE)]).await?;
        traced.is_end = rows.len() < PIECE;
        for row in &rows {
            traced.looked_through = get(row, 0)?;
            for channel in &channels {
                for address in attribute_addresses(*channel, get(row, 1)?)? {
                    let change = wanted.get(&(*channel, address));
                    traced.contacts.extend(change.map(|change| (traced.looked_through, *change)));
                }
            }
        }
    }
    Ok(Some(traced))
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

/// A removed list whose members are not let go yet, if a dynamic segment reads lists. They are noted as they go.
pub(super) async fn removed_list(reads: &Reads, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT l.n FROM workspace_numbers w JOIN lists l ON l.workspace_number = w.number AND l.removed
        WHERE w.workspace = $1 AND w.read_mask & $2 <> 0 LIMIT 1";
    let bounds = params![super::super::row::uuid(workspace), outbox::mask_param(ReadMask::LISTS)];
    one(&mut reads.clone(), SQL, bounds, |row| get(row, 0)).await
}

/// Tells segments and automations that an address came onto the suppression list or off it. Whose it is is found at once
/// where an index finds it, and otherwise by the job that follows changes, which looks through the contacts.
pub(in super::super) async fn tell_of_address(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    (channel, address): (Channel, &str),
    at: Timestamp,
) -> Result<(), Fault> {
    const TRACE: &str = "INSERT INTO changed_addresses (workspace_number, channel, address, looked_through, at, depth)
        SELECT number, $2, $3, 0, $4, $5 FROM workspace_numbers WHERE workspace = $1";
    const BY_EMAIL: &str = "SELECT n FROM contacts WHERE email = $2
        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)";
    const BY_PHONE: &str = "SELECT n FROM contacts WHERE phone = $2
        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)";
    let read_mask = read_mask_in(transaction, workspace, ReadMask::SUPPRESSIONS).await?;
    if read_mask.is_none() && !listeners::hears_changes(transaction, workspace).await? {
        return Ok(());
    }
    let key = super::super::row::uuid(workspace);
    let by_column = match channel {
        Channel::Email => Some(BY_EMAIL),
        Channel::Sms | Channel::Whatsapp => Some(BY_PHONE),
        // A business sends to phone numbers, and a bot to no such thing.
        Channel::Viber => address::is_e164(address).then_some(BY_PHONE),
        Channel::Telegram | Channel::Push => None,
    };
    let Some(sql) = by_column else {
        let (channel, depth) = (number(&Channel::ALL, &channel), i64::from(transaction.depth));
        transaction.run(TRACE, params![key, channel, address.to_owned(), at.as_millis(), depth]);
        return Ok(());
    };
    let found = one(transaction, sql, params![key, address.to_owned()], |row| get::<i64>(row, 0)).await?;
    let Some(contact) = found else { return Ok(()) };
    if let Some(read_mask) = read_mask {
        note(transaction, read_mask, contact, ReadMask::SUPPRESSIONS);
    }
    listeners::hear(transaction, workspace, contact, at, Happened::Changed { dates: false }).await
}
