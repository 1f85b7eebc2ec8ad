//! Storing rows of messages, and noting that one has changed.

use messaging_core::domain::message::Message;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, MessageId, WorkspaceId};

use super::super::fault::Fault;
use super::super::outbox;
use super::super::query::{one, params};
use super::super::row::{maybe_id, uuid};
use super::super::transaction::Transaction;
use crate::tables::messages::{message_columns, values};

/// Stores a message without its content.
pub(in super::super) fn insert_row(transaction: &mut Transaction, message: &Message) -> Result<(), Fault> {
    const SQL: &str = concat!(
        "INSERT INTO messages (workspace, ",
        message_columns!(),
        ") SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
             $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::uuid[], $12::uuid[], $13::uuid[], $14::uuid[],
             $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
             $22::bigint[], $23::bigint[], $24::bigint[], $25::uuid[], $26::boolean[])"
    );
    transaction.add_row(SQL, values(message)?);
    Ok(())
}

/// Notes that the events of messages changed for the contact of a message.
pub(super) async fn note_contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<(), Fault> {
    const SQL: &str = "SELECT contact FROM messages WHERE workspace = $1 AND id = $2";
    if outbox::read_mask_in(transaction, workspace, ReadMask::MESSAGES).await?.is_none() {
        return Ok(());
    }
    let key = params![uuid(workspace), uuid(message)];
    let contact: Option<ContactId> = one(transaction, SQL, key, |row| maybe_id(row, 0)).await?.flatten();
    match contact {
        Some(contact) => outbox::note_contact(transaction, workspace, contact, ReadMask::MESSAGES).await,
        None => Ok(()),
    }
}
