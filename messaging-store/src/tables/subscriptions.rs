//! Subscriptions of contacts to public lists. Members are in `list_members`.

use messaging_core::changes::Expect;
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::database::Query;
use crate::database::open_commit::OpenCommit;
use crate::fault::Fault;
use crate::pages::{below, number, one_more, sql_limit};
use crate::row::{Row, document, get, id, record, time};
use crate::sql::{Sql, Value, key, params, sql};

/// The part of a record that no query reads.
#[derive(Serialize, Deserialize)]
struct Doc {
    proof: Proof,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    brought_contact: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_weekly: bool,
}

/// The number of the workspace in `$1`.
macro_rules! workspace_number {
    () => {
        "(SELECT number FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// The columns that [`subscription`] reads, of lists and contacts of the workspace in `$1`.
macro_rules! select {
    () => {
        concat!(
            "SELECT s.revision, s.status, s.since, s.doc, l.id, c.id
             FROM lists l JOIN list_subscriptions s ON s.list = l.n JOIN contacts c ON c.n = s.contact
             WHERE l.workspace_number = ",
            workspace_number!(),
            " AND NOT l.removed AND "
        )
    };
}

pub(crate) async fn put(on: &mut impl OpenCommit, subscription: &Subscription, expect: Expect) -> Result<(), Fault> {
    macro_rules! insert {
        ($locked:literal) => {
            concat!(
                "INSERT INTO list_subscriptions (list, contact, revision, status, since, doc)
                 SELECT l.n, c.n, 1, $4, $5, $6 FROM lists l, contacts c
                 WHERE l.workspace_number = ",
                workspace_number!(),
                " AND l.id = $2 AND NOT l.removed AND c.workspace_number = ",
                workspace_number!(),
                " AND c.id = $3 ",
                $locked,
                " ON CONFLICT (list, contact) DO NOTHING"
            )
        };
    }
    // List and contact are locked, so that neither is removed before the record is visible.
    const INSERT: Sql = sql!(sqlite: insert!(""), postgres: insert!("FOR KEY SHARE OF l, c"));
    const UPDATE: Sql = sql!(concat!(
        "UPDATE list_subscriptions SET status = $4, since = $5, doc = $6, revision = revision + 1
         WHERE list = (SELECT n FROM lists WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2 AND NOT removed) AND contact = (SELECT n FROM contacts WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $3) AND revision = $7"
    ));
    let Subscription { workspace_id, list_id, contact_id, status, since, proof, asked, brought_contact, is_weekly } =
        subscription;
    let doc =
        Doc { proof: proof.clone(), asked: asked.clone(), brought_contact: *brought_contact, is_weekly: *is_weekly };
    let status = number(&SubscriptionStatus::ALL, status);
    let mut row = params![key(*workspace_id), key(*list_id), key(*contact_id), status, *since, document(&doc)?];
    match expect {
        Expect::Absent => on.statements().run_one(INSERT, row)?,
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.statements().run_one(UPDATE, row)?;
        }
    }
    on.note(*workspace_id, *contact_id, ReadMask::LISTS).await
}

pub(crate) async fn forget(
    on: &mut impl OpenCommit,
    workspace: WorkspaceId,
    (list, contact): (ListId, ContactId),
) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!(
        "DELETE FROM list_subscriptions WHERE list = (SELECT n FROM lists WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2) AND contact = (SELECT n FROM contacts WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $3)"
    ));
    on.statements().run(SQL, params![key(workspace), key(list), key(contact)])?;
    on.note(workspace, contact, ReadMask::LISTS).await
}

fn subscription(workspace_id: WorkspaceId, row: &dyn Row) -> Result<Stored<Subscription>, Fault> {
    let status = SubscriptionStatus::ALL.get(get::<usize>(row, 1)?).copied();
    let Doc { proof, asked, brought_contact, is_weekly } = record(row, 3)?;
    let record = Subscription {
        workspace_id,
        list_id: id(row, 4)?,
        contact_id: id(row, 5)?,
        status: status.ok_or(Fault::Malformed("a status of a subscription is none"))?,
        since: time(row, 2)?,
        proof,
        asked,
        brought_contact,
        is_weekly,
    };
    Ok(Stored { record, revision: get(row, 0)? })
}

/// Query of the subscriptions of some contacts to some lists.
pub(super) fn among(workspace: WorkspaceId, lists: &[ListId], contacts: &[ContactId]) -> Query<Stored<Subscription>> {
    const SQL: Sql = sql!(
        sqlite: concat!(
            select!(),
            "l.id IN (SELECT unhex(value) FROM json_each($2)) AND c.id IN (SELECT unhex(value) FROM json_each($3))
             AND c.workspace_number = l.workspace_number"
        ),
        postgres: concat!(select!(), "l.id = ANY ($2) AND c.id = ANY ($3) AND c.workspace_number = l.workspace_number"),
    );
    let lists = Value::List(lists.iter().copied().map(key).collect());
    let contacts = Value::List(contacts.iter().copied().map(key).collect());
    Query::new(SQL, params![key(workspace), lists, contacts], move |row| subscription(workspace, row))
}

/// Query of the subscriptions of one contact to all lists.
pub(super) fn of(workspace: WorkspaceId, contact: ContactId, limit: usize) -> Query<Stored<Subscription>> {
    const SQL: Sql = sql!(concat!(
        select!(),
        "s.contact = (SELECT n FROM contacts WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $2) LIMIT $3"
    ));
    let of = params![key(workspace), key(contact), sql_limit(limit)];
    Query::new(SQL, of, move |row| subscription(workspace, row))
}

/// Query of a page, and one more, of the subscriptions with a status on a list, newest contact first.
pub(super) fn listing(
    workspace: WorkspaceId,
    list: ListId,
    status: SubscriptionStatus,
    page: &PageRequest,
) -> Query<Subscription> {
    const SQL: Sql = sql!(concat!(select!(), "l.id = $2 AND s.status = $3 AND c.id < $4 ORDER BY c.id DESC LIMIT $5"));
    let status = number(&SubscriptionStatus::ALL, &status);
    let bounds = params![key(workspace), key(list), status, below(page), one_more(page)];
    Query::new(SQL, bounds, move |row| Ok(subscription(workspace, row)?.record))
}

/// Query of old subscriptions that wait for confirmation, of all workspaces.
pub(super) fn unconfirmed(before: Timestamp, limit: usize) -> Query<Stored<Subscription>> {
    const SQL: Sql = sql!(
        "SELECT s.revision, s.status, s.since, s.doc, l.id, c.id, w.workspace
         FROM list_subscriptions s JOIN lists l ON l.n = s.list JOIN contacts c ON c.n = s.contact
         JOIN workspace_numbers w ON w.number = l.workspace_number
         WHERE s.status = 0 AND s.since < $1 AND NOT l.removed ORDER BY s.since LIMIT $2"
    );
    Query::new(SQL, params![before, sql_limit(limit)], |row| subscription(id(row, 6)?, row))
}
