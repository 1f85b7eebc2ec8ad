//! Messages of contacts that are merged or erased, and erasure of people whom a message copies (`cc`, `bcc`).

use messaging_core::changes::{AttributeMessage, EraseCopy, RedactMessage};
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, EventId, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use super::rows::unless_empty;
use crate::database::open_commit::OpenCommit;
use crate::database::{Query, Statements};
use crate::fault::Fault;
use crate::pages::number;
use crate::row::{document, maybe_id};
use crate::sql::{Sql, key, params, sql};
use crate::tables::{sandbox, search};

/// Attributes a message of a merged contact to the contact that remains.
pub(crate) async fn attribute(on: &mut impl OpenCommit, change: &AttributeMessage) -> Result<(), Fault> {
    const SQL: Sql = sql!("UPDATE messages SET contact = $4 WHERE workspace = $1 AND id = $2 AND contact = $3");
    let workspace = change.workspace_id;
    let row = params![key(workspace), key(change.message_id), key(change.from), key(change.to)];
    if !on.is_followed(workspace, ReadMask::MESSAGES).await? {
        return on.statements().run(SQL, row);
    }
    if on.execute(SQL, row).await? == 1 {
        for contact in [change.from, change.to] {
            on.note(workspace, contact, ReadMask::MESSAGES).await?;
        }
    }
    Ok(())
}

/// The contact of a message; `None` if no segment of the workspace has a condition on messages.
async fn followed_contact(
    on: &mut impl OpenCommit,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<Option<ContactId>, Fault> {
    const SQL: Sql = sql!("SELECT contact FROM messages WHERE workspace = $1 AND id = $2");
    if !on.is_followed(workspace, ReadMask::MESSAGES).await? {
        return Ok(None);
    }
    let query = Query::new(SQL, params![key(workspace), key(message)], |row| maybe_id(row, 0));
    Ok(on.one(query).await?.flatten())
}

/// Removes personal data from a message whose contact is erased: its content, addresses, attempts and captured source.
/// Fails with a conflict if the message has another revision than expected.
pub(crate) async fn redact(on: &mut impl OpenCommit, redaction: &RedactMessage) -> Result<(), Fault> {
    // Deletes nothing if the message has another revision, so that a conflict changes nothing.
    const DELETE_CONTENT: Sql = sql!(
        sqlite: "DELETE FROM message_contents
            WHERE n = (SELECT content FROM messages WHERE workspace = $1 AND id = $2 AND revision = $3)",
        postgres: "DELETE FROM message_contents WHERE workspace = $1 AND message = $2
            AND EXISTS (SELECT 1 FROM messages WHERE workspace = $1 AND id = $2 AND revision = $3)",
    );
    macro_rules! redact {
        ($content:literal) => {
            concat!(
                "UPDATE messages SET recipient = '', contact = NULL, metadata = NULL, tags = $4, ",
                $content,
                "hold_reason = NULL, hold_until = NULL, hold_since = NULL, status = $5, updated_at = $6,
                     revision = revision + 1
                 WHERE workspace = $1 AND id = $2 AND revision = $3"
            )
        };
    }
    const REDACT: Sql = sql!(sqlite: redact!("content = NULL, "), postgres: redact!(""));
    const DELETE_ATTEMPTS: Sql = sql!("DELETE FROM message_attempts WHERE workspace = $1 AND message = $2");
    // On SQLite a source that is kept in a file is deleted after the commit.
    const DELETE_CAPTURE: Sql = sql!("DELETE FROM captures WHERE workspace = $1 AND message = $2");
    let (workspace, message) = (redaction.workspace_id, redaction.message_id);
    let of_message = || params![key(workspace), key(message)];
    // The message may be attributed to another contact than the one that is erased.
    let contact = followed_contact(on, workspace, message).await?;
    let statements = on.statements();
    statements.run(DELETE_CONTENT, params![key(workspace), key(message), redaction.revision])?;
    statements.run_one(
        REDACT,
        params![
            key(workspace),
            key(message),
            redaction.revision,
            unless_empty(redaction.tags.is_empty(), &redaction.tags)?,
            number(&MessageStatus::ALL, &redaction.status),
            redaction.updated_at,
        ],
    )?;
    search::index_anew(statements, workspace, message)?;
    change_events(statements, (workspace, message), &redaction.events)?;
    statements.run(DELETE_ATTEMPTS, of_message())?;
    statements.run(DELETE_CAPTURE, of_message())?;
    match contact {
        Some(contact) => on.note(workspace, contact, ReadMask::MESSAGES).await,
        None => Ok(()),
    }
}

/// Records the recipients in `cc` and `bcc` of a message, by keyed digests of their addresses, so that erasure finds it.
pub(crate) fn list_copies(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    message: MessageId,
    keys: &[CopyKey],
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT OR IGNORE INTO copied_recipients (workspace, key, message) VALUES ($1, $2, $3)",
        postgres: "INSERT INTO copied_recipients (workspace, key, message)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) ON CONFLICT DO NOTHING",
    );
    keys.iter().try_for_each(|copy| on.gather(SQL, params![key(workspace), copy.0, key(message)]))
}

/// Removes the record of a copied recipient.
pub(crate) fn unlist_copy(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    message: MessageId,
    copy: CopyKey,
) -> Result<(), Fault> {
    on.run(
        sql!("DELETE FROM copied_recipients WHERE workspace = $1 AND key = $2 AND message = $3"),
        params![key(workspace), copy.0, key(message)],
    )
}

/// Fails with a conflict unless the message has this revision, and keeps it so until the commit.
pub(crate) fn expect(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    message: MessageId,
    revision: u32,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "SELECT count(*) FROM messages WHERE workspace = $1 AND id = $2 AND revision = $3",
        postgres: "SELECT count(*) FROM (
            SELECT 1 FROM messages WHERE workspace = $1 AND id = $2 AND revision = $3 FOR SHARE) AS held",
    );
    on.expect(1, SQL, params![key(workspace), key(message), revision])
}

/// Replaces the parts of a message that named a copied recipient who is erased: tags, metadata, content, events, attempts,
/// and the captured source. `is_in_file` answers if a source is large enough to be kept in a file, as on SQLite; the file
/// was written before.
pub(crate) async fn erase_copy(
    on: &mut impl OpenCommit,
    erasure: &EraseCopy,
    is_in_file: fn(&[u8]) -> bool,
) -> Result<(), Fault> {
    const MESSAGE: Sql = sql!(
        "UPDATE messages SET tags = $4, metadata = $5, revision = revision + 1
         WHERE workspace = $1 AND id = $2 AND revision = $3"
    );
    const CONTENT: Sql = sql!(
        sqlite: "UPDATE message_contents SET request = $3
            WHERE n = (SELECT content FROM messages WHERE workspace = $1 AND id = $2)",
        postgres: "UPDATE message_contents SET request = $3 WHERE workspace = $1 AND message = $2",
    );
    const ATTEMPT: Sql = sql!(
        sqlite: "UPDATE message_attempts SET doc = $4 WHERE workspace = $1 AND message = $2 AND id = $3",
        postgres: "UPDATE message_attempts a SET doc = left_over.doc
            FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[]) AS left_over (workspace, message, id, doc)
            WHERE a.workspace = left_over.workspace AND a.message = left_over.message AND a.id = left_over.id",
    );
    let (workspace, message) = (erasure.workspace_id, erasure.message_id);
    let contact = followed_contact(on, workspace, message).await?;
    let statements = on.statements();
    statements.run_one(
        MESSAGE,
        params![
            key(workspace),
            key(message),
            erasure.revision,
            unless_empty(erasure.tags.is_empty(), &erasure.tags)?,
            unless_empty(erasure.metadata.is_empty(), &erasure.metadata)?,
        ],
    )?;
    if let Some(content) = &erasure.content {
        statements.run(CONTENT, params![key(workspace), key(message), content.request.clone()])?;
        search::index_anew(statements, workspace, message)?;
    }
    change_events(statements, (workspace, message), &erasure.events)?;
    for (id, dialog) in &erasure.attempts {
        statements.gather(ATTEMPT, params![key(workspace), key(message), key(*id), document(dialog)?])?;
    }
    if let Some(capture) = &erasure.capture {
        sandbox::put(statements, capture, is_in_file(&capture.source))?;
    }
    match contact {
        Some(contact) => on.note(workspace, contact, ReadMask::MESSAGES).await,
        None => Ok(()),
    }
}

/// Replaces the metadata of events by what remains after erasure.
fn change_events(
    on: &mut dyn Statements,
    (workspace, message): (WorkspaceId, MessageId),
    events: &[(Timestamp, EventId, Map<String, Value>)],
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE message_events SET meta = $5 WHERE workspace = $1 AND message = $2 AND at = $3 AND id = $4",
        postgres: "UPDATE message_events e SET meta = left_over.meta
            FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::text[])
                AS left_over (workspace, message, at, id, meta)
            WHERE e.workspace = left_over.workspace AND e.message = left_over.message AND e.at = left_over.at
                AND e.id = left_over.id",
    );
    for (at, id, meta) in events {
        let meta = unless_empty(meta.is_empty(), meta)?;
        on.gather(SQL, params![key(workspace), key(message), *at, key(*id), meta])?;
    }
    Ok(())
}
