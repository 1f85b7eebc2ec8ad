//! Stores contacts, many with one statement.
//!
//! The result is that of storing them one after another, but consecutive contacts are written together: first, contacts
//! give up the identifiers that others of them take; then all that exist are updated; then new ones are inserted; last,
//! their tags are written. A contact that occurs again begins another group.

use std::collections::{HashMap, HashSet};

use messaging_core::changes::{Expect, PutContact};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

use super::super::fault::Fault;
use super::super::listeners::{self, Happened};
use super::super::outbox;
use super::super::query::many;
use super::super::transaction::Transaction;
use super::locked_contact::{self, LockedContact};
use super::tags::TagMoves;
use crate::row::get;
use crate::sql::{Params, Value, key, params};
use crate::tables::contacts::{attributes_text, tags_text};
use crate::tables::lists::number_workspace;

/// Stores contacts in order, in groups of consecutive contacts of one workspace in which none occurs twice.
pub(in super::super) async fn put(transaction: &mut Transaction, puts: &[PutContact]) -> Result<(), Fault> {
    let mut rest = puts;
    while let Some(first) = rest.first() {
        let workspace = first.contact.workspace_id;
        let mut seen = HashSet::new();
        let is_next = |put: &&PutContact| put.contact.workspace_id == workspace && seen.insert(put.contact.id);
        let count = rest.iter().take_while(is_next).count();
        let (together, others) = rest.split_at(count);
        put_together(transaction, workspace, together).await?;
        rest = others;
    }
    Ok(())
}

/// Stores a group of contacts of one workspace, none of which occurs twice. Where dynamic segments or automations read
/// contacts, it also notes what changed of each.
async fn put_together(transaction: &mut Transaction, workspace: WorkspaceId, puts: &[PutContact]) -> Result<(), Fault> {
    let read_mask = outbox::read_mask(transaction, workspace).await?;
    let is_heard = listeners::is_any(transaction, workspace).await?;
    let is_asked = is_heard || read_mask.is_some();
    let (new, changed): (Vec<&PutContact>, Vec<&PutContact>) =
        puts.iter().partition(|put| put.expect == Expect::Absent);
    let mut tags = TagMoves::default();
    let mut held = HashMap::new();
    if !changed.is_empty() {
        let ids = changed.iter().map(|put| key(put.contact.id)).collect();
        held = locked_contact::read(transaction, workspace, ids, is_asked).await?;
        for put in &changed {
            expect(&held, put, &mut tags)?;
        }
        let givers = locked_contact::hand_over(puts, &held)?;
        update(transaction, &changed, &held, givers)?;
    }
    let mut numbers = HashMap::new();
    if !new.is_empty() {
        numbers = insert(transaction, workspace, &new, is_asked).await?;
        for put in &new {
            tags.add(put.contact.id, put.contact.tags.iter());
        }
    }
    tags.write(transaction, workspace);
    if !is_asked {
        return Ok(());
    }
    let changes = changes(puts, &held, &numbers)?;
    if let Some(read_mask) = read_mask {
        outbox::note_many(transaction, read_mask, &changes);
    }
    if is_heard { tell(transaction, workspace, puts, &changes).await } else { Ok(()) }
}

/// Adds the tags that an existing contact gets and loses to `tags`. The error is `Fault::Conflict` if the contact is
/// not stored at the expected revision.
fn expect(held: &HashMap<ContactId, LockedContact>, put: &PutContact, tags: &mut TagMoves) -> Result<(), Fault> {
    let contact = &put.contact;
    let Some(held) = held.get(&contact.id).filter(|held| put.expect == Expect::Revision(held.revision)) else {
        return Err(Fault::Conflict);
    };
    if let Some(held) = held.other_tags(contact)? {
        tags.remove(contact.id, held.iter().filter(|tag| !contact.tags.contains(tag)));
        tags.add(contact.id, contact.tags.iter().filter(|tag| !held.contains(tag)));
    }
    Ok(())
}

/// Updates contacts that exist. The identifiers of `givers`, by their numbers, are cleared first, because others of the
/// same group take some of them and identifiers are unique.
fn update(
    transaction: &mut Transaction,
    changed: &[&PutContact],
    held: &HashMap<ContactId, LockedContact>,
    givers: Vec<i64>,
) -> Result<(), Fault> {
    const GIVE: &str = "UPDATE contacts SET external_id = NULL, email = NULL, phone = NULL WHERE n = ANY ($1)";
    const UPDATE: &str = "UPDATE contacts c SET revision = c.revision + 1, updated_at = u.updated_at,
            marketing_email = u.marketing_email, sms = u.sms, external_id = u.external_id, email = u.email,
            phone = u.phone, locale = u.locale, timezone = u.timezone, tags = u.tags, attributes = u.attributes
        FROM unnest($11::bigint[], $1::bigint[], $2::boolean[], $3::boolean[], $4::text[], $5::text[], $6::text[],
            $7::text[], $8::text[], $9::text[], $10::text[])
            AS u(n, updated_at, marketing_email, sms, external_id, email, phone, locale, timezone, tags, attributes)
        WHERE c.n = u.n";
    if !givers.is_empty() {
        transaction.run(GIVE, params![givers]);
    }
    let mut params = fields(changed)?;
    let numbers: Vec<i64> = changed.iter().filter_map(|put| held.get(&put.contact.id)).map(|held| held.n).collect();
    params.push(numbers.into());
    transaction.run_exactly(changed.len(), UPDATE, params);
    Ok(())
}

/// Inserts new contacts. Answers their numbers (`contacts.n`) by id where `is_asked`; otherwise nothing, which saves a
/// round trip.
async fn insert(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    new: &[&PutContact],
    is_asked: bool,
) -> Result<HashMap<ContactId, i64>, Fault> {
    macro_rules! insert {
        () => {
            "INSERT INTO contacts (n, workspace_number, id, revision, created_at, updated_at, marketing_email, sms,
                external_id, email, phone, locale, timezone, tags, attributes)
            SELECT (w.number << 40) | nextval('contact_numbers'), w.number, u.id, 1, u.created_at, u.updated_at,
                u.marketing_email, u.sms, u.external_id, u.email, u.phone, u.locale, u.timezone, u.tags, u.attributes
            FROM workspace_numbers w CROSS JOIN unnest($12::uuid[], $13::bigint[], $1::bigint[], $2::boolean[],
                $3::boolean[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
                WITH ORDINALITY AS u(id, created_at, updated_at, marketing_email, sms, external_id, email, phone,
                    locale, timezone, tags, attributes, place)
            WHERE w.workspace = $11 ORDER BY u.place"
        };
    }
    const RETURNING: &str = concat!(insert!(), " RETURNING n");
    number_workspace(transaction, workspace)?;
    let mut params = fields(new)?;
    let ids: Vec<Value> = new.iter().map(|put| key(put.contact.id)).collect();
    let created: Vec<i64> = new.iter().map(|put| put.contact.created_at.as_millis()).collect();
    params.extend(params![key(workspace), ids, created]);
    transaction.counts.add_contacts(workspace, i64::try_from(new.len()).unwrap_or(i64::MAX));
    if !is_asked {
        transaction.run_exactly(new.len(), insert!(), params);
        return Ok(HashMap::new());
    }
    let numbers: Vec<i64> = many(transaction, RETURNING, params, |row| get(row, 0)).await?;
    if numbers.len() != new.len() {
        return Err(Fault::Conflict);
    }
    Ok(new.iter().map(|put| put.contact.id).zip(numbers).collect())
}

/// The stored fields of contacts, one array for each column: the parameters `$1` to `$10` of both statements.
fn fields(puts: &[&PutContact]) -> Result<Params, Fault> {
    fn column<T>(puts: &[&PutContact], of: impl Fn(&Contact) -> T) -> Vec<T> {
        puts.iter().map(|put| of(&put.contact)).collect()
    }
    let tags = puts.iter().map(|put| tags_text(&put.contact)).collect::<Result<Vec<_>, _>>()?;
    Ok(params![
        column(puts, |contact| contact.updated_at.as_millis()),
        column(puts, |contact| contact.consent.marketing_email),
        column(puts, |contact| contact.consent.sms),
        column(puts, |contact| contact.external_id.clone()),
        column(puts, |contact| contact.email.clone()),
        column(puts, |contact| contact.phone.clone()),
        column(puts, |contact| contact.locale.clone()),
        column(puts, |contact| contact.timezone.clone()),
        tags,
        column(puts, |contact| attributes_text(contact).map(str::to_owned)),
    ])
}

/// For each contact its number and what of it changed; of a new contact that is everything.
fn changes(
    puts: &[PutContact],
    held: &HashMap<ContactId, LockedContact>,
    numbers: &HashMap<ContactId, i64>,
) -> Result<Vec<(i64, ReadMask)>, Fault> {
    let change = |put: &PutContact| match (held.get(&put.contact.id), numbers.get(&put.contact.id)) {
        (Some(held), _) => Ok((held.n, held.changes(&put.contact)?)),
        (None, Some(n)) => Ok((*n, ReadMask::ALL)),
        (None, None) => Err(Fault::Malformed("a contact has no number")),
    };
    puts.iter().map(change).collect()
}

/// Makes notes for automations of the contacts that were created or changed, in the order of `puts`.
async fn tell(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    puts: &[PutContact],
    changes: &[(i64, ReadMask)],
) -> Result<(), Fault> {
    for (PutContact { contact, expect }, (n, changed)) in puts.iter().zip(changes) {
        if *expect == Expect::Absent {
            listeners::hear(transaction, workspace, *n, contact.created_at, Happened::Created).await?;
        } else if !changed.is_empty() {
            // Moments that automations wait for follow from dates, which are attributes, and the time zone, which is a
            // field.
            let dates = changed.intersects(ReadMask::ATTRIBUTES | ReadMask::FIELDS);
            listeners::hear(transaction, workspace, *n, contact.updated_at, Happened::Changed { dates }).await?;
        }
    }
    Ok(())
}
