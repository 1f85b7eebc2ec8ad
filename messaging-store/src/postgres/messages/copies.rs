//! Whom messages copy, and what is left of them when one of those is erased.

use messaging_core::changes::EraseCopy;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::ids::{EventId, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{document, id, revision_param, sql_limit, uuid};
use super::super::sandbox;
use super::super::transaction::Transaction;
use super::rows::note_contact;
use crate::tables::messages::unless_empty;

pub(in super::super) fn list_copies(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    message: MessageId,
    keys: &[CopyKey],
) {
    let keys: Vec<_> = keys.iter().map(|key| Uuid::from_bytes(key.0)).collect();
    transaction.run(
        "INSERT INTO copied_recipients (workspace, key, message) SELECT $1, key, $3 FROM unnest($2::uuid[]) AS keys (key)
         ON CONFLICT DO NOTHING",
        params![uuid(workspace), keys, uuid(message)],
    );
}

pub(in super::super) fn unlist_copy(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    message: MessageId,
    key: CopyKey,
) {
    transaction.run(
        "DELETE FROM copied_recipients WHERE workspace = $1 AND key = $2 AND message = $3",
        params![uuid(workspace), Uuid::from_bytes(key.0), uuid(message)],
    );
}

/// A conflict unless the message is at a revision, and stays so until the commit.
pub(in super::super) fn expect(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    message: MessageId,
    revision: u32,
) {
    transaction.run(
        "SELECT expect_rows((SELECT count(*) FROM (
             SELECT 1 FROM messages WHERE workspace = $1 AND id = $2 AND revision = $3 FOR SHARE) AS held), 1)",
        params![uuid(workspace), uuid(message), revision_param(revision)],
    );
}

pub(in super::super) async fn erase_copy(transaction: &mut Transaction, erasure: &EraseCopy) -> Result<(), Fault> {
    let (workspace, message) = (uuid(erasure.workspace_id), uuid(erasure.message_id));
    note_contact(transaction, erasure.workspace_id, erasure.message_id).await?;
    transaction.run_one(
        "UPDATE messages SET tags = $4, metadata = $5, revision = revision + 1
         WHERE workspace = $1 AND id = $2 AND revision = $3",
        params![
            workspace,
            message,
            revision_param(erasure.revision),
            unless_empty(erasure.tags.is_empty(), &erasure.tags)?,
            unless_empty(erasure.metadata.is_empty(), &erasure.metadata)?,
        ],
    );
    if let Some(content) = &erasure.content {
        transaction.run(
            "UPDATE message_contents SET request = $3 WHERE workspace = $1 AND message = $2",
            params![workspace, message, content.request.to_vec()],
        );
    }
    change_events(transaction, (workspace, message), &erasure.events)?;
    if !erasure.attempts.is_empty() {
        let ids: Vec<_> = erasure.attempts.iter().map(|(id, _)| uuid(*id)).collect();
        let dialogs = erasure.attempts.iter().map(|(_, dialog)| document(dialog));
        transaction.run(
            "UPDATE message_attempts SET doc = left_over.doc FROM unnest($3::uuid[], $4::text[]) AS left_over (id, doc)
             WHERE workspace = $1 AND message = $2 AND message_attempts.id = left_over.id",
            params![workspace, message, ids, dialogs.collect::<Result<Vec<_>, _>>()?],
        );
    }
    if let Some(capture) = &erasure.capture {
        sandbox::put(transaction, capture);
    }
    Ok(())
}

/// Leaves of the meta of events what is left of it.
pub(super) fn change_events(
    transaction: &mut Transaction,
    (workspace, message): (Uuid, Uuid),
    events: &[(Timestamp, EventId, Map<String, Value>)],
) -> Result<(), Fault> {
    if events.is_empty() {
        return Ok(());
    }
    let times: Vec<_> = events.iter().map(|(at, _, _)| at.as_millis()).collect();
    let ids: Vec<_> = events.iter().map(|(_, id, _)| uuid(*id)).collect();
    let metas = events.iter().map(|(_, _, meta)| unless_empty(meta.is_empty(), meta));
    transaction.run(
        "UPDATE message_events e SET meta = left_over.meta
         FROM unnest($3::bigint[], $4::uuid[], $5::text[]) AS left_over (at, id, meta)
         WHERE e.workspace = $1 AND e.message = $2 AND e.at = left_over.at AND e.id = left_over.id",
        params![workspace, message, times, ids, metas.collect::<Result<Vec<_>, _>>()?],
    );
    Ok(())
}

pub(super) async fn copying(
    mut reads: Reads,
    workspace: WorkspaceId,
    key: CopyKey,
    limit: usize,
) -> Result<Vec<MessageId>, Fault> {
    const SQL: &str = "SELECT message FROM copied_recipients WHERE workspace = $1 AND key = $2 LIMIT $3";
    let key = params![uuid(workspace), Uuid::from_bytes(key.0), sql_limit(limit)];
    super::super::query::many(&mut reads, SQL, key, |row| id(row, 0)).await
}
