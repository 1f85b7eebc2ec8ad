//! Events of messages: written, read, and passed on to segments and automations.

use messaging_core::domain::message::{EventKind, MessageEvent};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{AutomationId, ContactId, MessageId, WorkspaceId};

use super::rows::unless_empty;
use crate::database::Query;
use crate::database::open_commit::OpenCommit;
use crate::fault::Fault;
use crate::happened::{Happened, MessageHappened, counted_kind, is_machine, trigger};
use crate::pages::number;
use crate::row::{Row, get, id, maybe_id, numbered, or_empty, time};
use crate::sql::{Params, Sql, key, params, sql};

pub(crate) async fn append(on: &mut impl OpenCommit, event: &MessageEvent) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO message_events (workspace, message, at, id, kind, meta) VALUES ($1, $2, $3, $4, $5, $6)",
        postgres: "INSERT INTO message_events (workspace, message, at, id, kind, meta)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[])",
    );
    let row = params![
        key(event.workspace_id),
        key(event.message_id),
        event.at,
        key(event.id),
        number(&EventKind::ALL, &event.kind),
        unless_empty(event.meta.is_empty(), &event.meta)?,
    ];
    on.statements().gather(SQL, row)?;
    tell(on, event).await
}

/// Tells segments and automations of an event, if it is of a kind that they know: a message is accepted without a look.
async fn tell(on: &mut impl OpenCommit, event: &MessageEvent) -> Result<(), Fault> {
    const MESSAGE: Sql =
        sql!("SELECT contact, campaign, template, automation FROM messages WHERE workspace = $1 AND id = $2");
    const CONTACT: Sql = sql!(
        "SELECT n FROM contacts
         WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2"
    );
    let Some(kind) = counted_kind(event.kind) else { return Ok(()) };
    let workspace = event.workspace_id;
    if !on.is_followed(workspace, ReadMask::MESSAGES).await? && !on.is_heard(workspace).await? {
        return Ok(());
    }
    let message = Query::new(MESSAGE, params![key(workspace), key(event.message_id)], |row| {
        let source = (maybe_id(row, 1)?, maybe_id(row, 2)?, maybe_id::<AutomationId>(row, 3)?);
        Ok((maybe_id::<ContactId>(row, 0)?, source))
    });
    let Some((Some(contact), (campaign_id, template_id, automation))) = on.one(message).await? else { return Ok(()) };
    // Whatever becomes of the message of a run was caused by it.
    let before = on.depth();
    if automation.is_some() {
        let depth = depth_of_run(on, event.message_id).await?;
        on.caused_at(before.max(depth));
    }
    on.note(workspace, contact, ReadMask::MESSAGES).await?;
    let contact = Query::new(CONTACT, params![key(workspace), key(contact)], |row| get(row, 0));
    if !is_machine(&event.meta)
        && let Some(contact) = on.one(contact).await?
    {
        let happened = MessageHappened {
            event_id: event.id,
            message_id: event.message_id,
            at: event.at,
            trigger: trigger(kind),
            campaign_id,
            template_id,
        };
        on.hear(workspace, contact, event.id.made_at(), Happened::Message(&happened)).await?;
    }
    on.caused_at(before);
    Ok(())
}

/// By how many automations in a row the run was caused that sent a message.
async fn depth_of_run(on: &mut impl OpenCommit, message: MessageId) -> Result<u8, Fault> {
    const SQL: Sql = sql!(
        "SELECT r.depth FROM automation_messages m
         {CROSS} JOIN automation_runs r ON r.automation = m.automation AND r.id = m.run WHERE m.message = $1"
    );
    Ok(on.one(Query::new(SQL, params![key(message)], |row| get(row, 0))).await?.unwrap_or(0))
}

/// The query of a message's events.
pub(super) fn of_message(workspace: WorkspaceId, message: MessageId, sql: Sql, bounds: Params) -> Query<MessageEvent> {
    Query::new(sql, bounds, move |row| event(workspace, message, row)).point()
}

/// An event from the columns id, at, kind, meta.
fn event(workspace: WorkspaceId, message: MessageId, row: &dyn Row) -> Result<MessageEvent, Fault> {
    Ok(MessageEvent {
        id: id(row, 0)?,
        workspace_id: workspace,
        message_id: message,
        kind: numbered(&EventKind::ALL, get(row, 2)?)?,
        at: time(row, 1)?,
        meta: or_empty(row, 3)?,
    })
}
