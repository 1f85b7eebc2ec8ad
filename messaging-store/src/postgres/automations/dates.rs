//! Moments that follow from dates of contacts.

use messaging_core::changes::{DateFire, PutDateFires};
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::listeners;
use super::super::query::{Queries, many, one, params};
use super::super::reads::Reads;
use super::super::row::{get as column, id, sql_limit, time, uuid};
use super::super::transaction::Transaction;
use super::look_up;
use super::runs::Of;

pub(in super::super) async fn put(transaction: &mut Transaction, put: &PutDateFires) -> Result<(), Fault> {
    const SQL: &str = "WITH people AS (
            SELECT n, id FROM contacts WHERE id = ANY ($3)
                AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $2)
            ORDER BY n FOR KEY SHARE
        )
        INSERT INTO automation_date_fires (automation, contact, due_at, taken)
        SELECT $1, people.n, fire.due_at, false FROM unnest($3::uuid[], $4::bigint[]) AS fire (contact, due_at)
        JOIN people ON people.id = fire.contact ORDER BY people.n, fire.due_at
        ON CONFLICT DO NOTHING RETURNING contact, due_at";
    let workspace = put.workspace_id;
    listeners::share(transaction, workspace);
    let automation = look_up::automation(transaction, workspace, put.automation_id).await?.ok_or(Fault::Conflict)?;
    let people: Vec<Uuid> = put.fires.iter().map(|fire| uuid(fire.contact_id)).collect();
    let times: Vec<i64> = put.fires.iter().map(|fire| fire.due_at.as_millis()).collect();
    let columns = params![automation, uuid(workspace), people, times];
    let kept = many(transaction, SQL, columns, |row| Ok((column(row, 0)?, time(row, 1)?))).await?;
    for (contact, due_at) in kept {
        listeners::due(transaction, workspace, automation, contact, due_at).await?;
    }
    Ok(())
}

pub(in super::super) fn take(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    automation: AutomationId,
    fire: &DateFire,
) {
    transaction.run_one(
        "UPDATE automation_date_fires SET taken = true
         WHERE automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
             AND contact = (SELECT n FROM contacts WHERE id = $3
                 AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
             AND due_at = $4 AND NOT taken",
        params![uuid(workspace), uuid(automation), uuid(fire.contact_id), fire.due_at.as_millis()],
    );
}

pub(super) async fn due(
    reads: &Reads,
    of: Of,
    shard: u8,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DateFire>, StoreError> {
    const SQL: &str = "SELECT c.id, f.due_at FROM automation_date_fires f JOIN contacts c ON c.n = f.contact
        WHERE f.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND f.contact & 3 = $3 AND f.due_at <= $4 AND NOT f.taken ORDER BY f.due_at, f.contact LIMIT $5";
    let bounds = params![uuid(of.0), uuid(of.1), i64::from(shard), now.as_millis(), sql_limit(limit)];
    reads.many(SQL, bounds, |row| Ok(DateFire { contact_id: id(row, 0)?, due_at: time(row, 1)? })).await
}

pub(super) async fn next_due(on: &mut impl Queries, automation: i64, shard: u8) -> Result<Option<Timestamp>, Fault> {
    const SQL: &str = "SELECT f.due_at FROM automation_date_fires f JOIN contacts c ON c.n = f.contact
        WHERE f.automation = $1 AND f.contact & 3 = $2 AND NOT f.taken ORDER BY f.due_at LIMIT 1";
    one(on, SQL, params![automation, i64::from(shard)], |row| time(row, 0)).await
}
