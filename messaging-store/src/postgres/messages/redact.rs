//! Messages of merged and erased contacts.

use std::collections::HashSet;

use messaging_core::changes::{AttributeMessage, RedactMessage};
use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Slice};

use super::super::fault::Fault;
use super::super::outbox;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{below_id, number, revision_param, uuid};
use super::super::scan::{Listing, page_of};
use super::super::transaction::Transaction;
use super::copies::change_events;

use super::rows::note_contact;
use crate::tables::messages::{message, message_columns, unless_empty};

pub(in super::super) async fn attribute(transaction: &mut Transaction, change: &AttributeMessage) -> Result<(), Fault> {
    const SQL: &str = "UPDATE messages SET contact = $4 WHERE workspace = $1 AND id = $2 AND contact = $3";
    let workspace = change.workspace_id;
    let row = params![uuid(workspace), uuid(change.message_id), uuid(change.from), uuid(change.to)];
    if outbox::read_mask_in(transaction, workspace, ReadMask::MESSAGES).await?.is_none() {
        transaction.run(SQL, row);
    } else if transaction.execute(SQL, row).await? == 1 {
        for contact in [change.from, change.to] {
            outbox::note_contact(transaction, workspace, contact, ReadMask::MESSAGES).await?;
        }
    }
    Ok(())
}

pub(in super::super) async fn redact(transaction: &mut Transaction, redaction: &RedactMessage) -> Result<(), Fault> {
    let (workspace, message) = (uuid(redaction.workspace_id), uuid(redaction.message_id));
    // Its address may have been that of another contact than the one it is attributed to.
    note_contact(transaction, redaction.workspace_id, redaction.message_id).await?;
    transaction.run_one(
        "UPDATE messages SET recipient = '', contact = NULL, metadata = NULL, tags = $4,
             hold_reason = NULL, hold_until = NULL, hold_since = NULL,
             status = $5, updated_at = $6, revision = revision + 1
         WHERE workspace = $1 AND id = $2 AND revision = $3",
        params![
            workspace,
            message,
            revision_param(redaction.revision),
            unless_empty(redaction.tags.is_empty(), &redaction.tags)?,
            number(&MessageStatus::ALL, &redaction.status),
            redaction.updated_at.as_millis(),
        ],
    );
    let sql = "DELETE FROM message_contents WHERE workspace = $1 AND message = $2";
    transaction.run(sql, params![workspace, message]);
    change_events(transaction, (workspace, message), &redaction.events)?;
    let sql = "DELETE FROM message_attempts WHERE workspace = $1 AND message = $2";
    transaction.run(sql, params![workspace, message]);
    let sql = "DELETE FROM captures WHERE workspace = $1 AND message = $2";
    transaction.run(sql, params![workspace, message]);
    Ok(())
}

pub(super) async fn messages_to(
    reads: &Reads,
    workspace: WorkspaceId,
    addresses: &HashSet<(Channel, String)>,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    );
    let listing = Listing { sql: SQL, params: |below, piece| params![uuid(workspace), below, piece] };
    page_of(reads, listing, below_id(page), page.limit, |row| {
        let message = message(workspace, row)?;
        let address = address::normalize(message.channel, &message.to);
        Ok(addresses.contains(&(message.channel, address)).then_some(message))
    })
    .await
}
