//! Stored data of contacts that are about to change.

use std::collections::{BTreeSet, HashMap};

use messaging_core::changes::PutContact;
use messaging_core::domain::audience::contact::fields::{CONTACT_FIELDS, ContactField};
use messaging_core::domain::audience::contact::{Consent, Contact, Identifier};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::query::many;
use super::super::transaction::Transaction;
use crate::row::{get, id, time};
use crate::sql::{Value, key, params};
use crate::tables::contacts::{attributes_text, tags_text, text_columns};

/// A contact as it is stored, locked until the transaction ends.
#[derive(Debug)]
pub(super) struct LockedContact {
    pub(super) n: i64,
    pub(super) revision: u32,
    /// In the order of `CONTACT_FIELDS`.
    texts: [Option<String>; CONTACT_FIELDS.len()],
    tags: Option<String>,
    updated_at: Timestamp,
    consent: Consent,
    /// Only read if a change has to be found.
    attributes: Option<String>,
}

/// Reads contacts by id and locks them; `is_asked`: their changes have to be found.
pub(super) async fn read(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    contacts: Vec<Value>,
    is_asked: bool,
) -> Result<HashMap<ContactId, LockedContact>, Fault> {
    const SQL: &str = concat!(
        "SELECT id, n, revision, tags, updated_at, marketing_email, sms, CASE WHEN $3 THEN attributes END, ",
        text_columns!(),
        " FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ANY ($2)
        ORDER BY n FOR NO KEY UPDATE"
    );
    const TEXTS: usize = 8;
    let held = |row: &Row| {
        let mut texts = [const { None }; CONTACT_FIELDS.len()];
        for field in CONTACT_FIELDS {
            texts[field as usize] = get(row, TEXTS + field as usize)?;
        }
        let held = LockedContact {
            n: get(row, 1)?,
            revision: get(row, 2)?,
            tags: get(row, 3)?,
            updated_at: time(row, 4)?,
            consent: Consent { marketing_email: get(row, 5)?, sms: get(row, 6)? },
            attributes: get(row, 7)?,
            texts,
        };
        Ok((id(row, 0)?, held))
    };
    Ok(many(transaction, SQL, params![key(workspace), contacts, is_asked], held).await?.into_iter().collect())
}

impl LockedContact {
    fn identifiers(&self) -> impl Iterator<Item = Identifier> + '_ {
        let named = |field: ContactField| field.identifier_of(self.texts[field as usize].clone()?);
        CONTACT_FIELDS.into_iter().filter_map(named)
    }

    /// Returns the stored tags, unless they are the same as those of the new contact.
    pub(super) fn other_tags(&self, contact: &Contact) -> Result<Option<Vec<String>>, Fault> {
        if self.tags == tags_text(contact)? {
            return Ok(None);
        }
        Ok(Some(self.tags.as_deref().map(serde_json::from_str).transpose()?.unwrap_or_default()))
    }

    /// Kinds of data in which a contact differs from the stored row.
    pub(super) fn changes(&self, contact: &Contact) -> Result<ReadMask, Fault> {
        let same_fields = CONTACT_FIELDS.into_iter().all(|field| self.texts[field as usize] == *contact.field(field));
        let same_identifiers = same_fields || contact.identifiers().eq(self.identifiers());
        let all = [
            (same_identifiers, ReadMask::SUPPRESSIONS),
            (self.tags == tags_text(contact)?, ReadMask::TAGS),
            (self.updated_at == contact.updated_at, ReadMask::UPDATED_AT),
            (same_fields, ReadMask::FIELDS),
            (self.consent == contact.consent, ReadMask::CONSENT),
            // Some addresses are attributes.
            (self.attributes.as_deref() == attributes_text(contact), ReadMask::ATTRIBUTES | ReadMask::SUPPRESSIONS),
        ];
        let changed = all.into_iter().filter(|(same, _)| !same).map(|(_, mask)| mask);
        Ok(changed.fold(ReadMask::NONE, |all, one| all | one))
    }
}

/// Checks the identifiers in puts that one statement makes at once: a conflict if one is taken before it is free.
/// Returns the numbers of the contacts that give one up which another of them takes; they have to lose theirs before.
pub(super) fn hand_over(puts: &[PutContact], held: &HashMap<ContactId, LockedContact>) -> Result<Vec<i64>, Fault> {
    let mut owners: HashMap<Identifier, ContactId> = HashMap::new();
    for (id, held) in held {
        owners.extend(held.identifiers().map(|identifier| (identifier, *id)));
    }
    let mut given: HashMap<Identifier, i64> = HashMap::new();
    let mut givers = BTreeSet::new();
    for put in puts {
        let contact = put.contact.id;
        let wanted: Vec<Identifier> = put.contact.identifiers().collect();
        if let Some(held) = held.get(&contact) {
            for identifier in held.identifiers().filter(|identifier| !wanted.contains(identifier)) {
                owners.remove(&identifier);
                given.insert(identifier, held.n);
            }
        }
        for identifier in wanted {
            givers.extend(given.get(&identifier));
            if owners.insert(identifier, contact).is_some_and(|owner| owner != contact) {
                return Err(Fault::Conflict);
            }
        }
    }
    Ok(givers.into_iter().collect())
}
