//! Messages of campaigns that wait to be released: rows of the table `campaign_waiting`.

use messaging_core::changes::{NewWaiting, WaitingKey};
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::super::fault::Fault;
use super::super::reads::Reads;
use super::super::transaction::Transaction;
use crate::row::{get, time};
use crate::sql::{Params, key, params};
use crate::tables::messages::insert_row;

/// Inserts waiting rows of a campaign if it exists. The campaign's row is locked, so that nobody deletes it before the
/// transaction ends.
const INSERT: &str = "WITH campaign AS (
        SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
    )
    INSERT INTO campaign_waiting (campaign, track, due_at, message)
    SELECT n, track, due_at, message FROM campaign
    CROSS JOIN unnest($3::smallint[], $4::bigint[], $5::uuid[]) AS waiting (track, due_at, message)
    ORDER BY track, due_at, message";

/// Stores new messages and lets them wait to be released. A conflict if the campaign does not exist.
pub(in super::super) fn insert(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    campaign: CampaignId,
    waiting: &[NewWaiting],
) -> Result<(), Fault> {
    let key_of = |new: &NewWaiting| WaitingKey { track: new.track, due_at: new.due_at, message_id: new.message.id };
    let keys: Vec<_> = waiting.iter().map(key_of).collect();
    if keys.is_empty() {
        expect_there(transaction, workspace, campaign);
        return Ok(());
    }
    transaction.run_exactly(keys.len(), INSERT, columns(workspace, campaign, &keys));
    waiting.iter().try_for_each(|new| insert_row(transaction, &new.message))
}

/// Deletes the waiting rows of messages. A conflict if the campaign does not exist, or if one of the messages does not
/// wait.
pub(in super::super) fn take(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    campaign: CampaignId,
    keys: &[WaitingKey],
) {
    const DELETE: &str = "DELETE FROM campaign_waiting AS w
        USING unnest($3::smallint[], $4::bigint[], $5::uuid[]) AS taken (track, due_at, message)
        WHERE w.campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND w.track = taken.track AND w.due_at = taken.due_at AND w.message = taken.message";
    if keys.is_empty() {
        expect_there(transaction, workspace, campaign);
    } else {
        transaction.run_exactly(keys.len(), DELETE, columns(workspace, campaign, keys));
    }
}

/// Lets a stored message wait again. A conflict if the campaign does not exist, or if the message waits already.
pub(in super::super) fn put(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    campaign: CampaignId,
    waiting: WaitingKey,
) {
    transaction.run_one(INSERT, columns(workspace, campaign, &[waiting]));
}

/// A conflict unless the campaign exists. Needed where there are no rows, because the statements above check it only
/// through the number of rows that they touch.
fn expect_there(transaction: &mut Transaction, workspace: WorkspaceId, campaign: CampaignId) {
    let sql = "SELECT expect_rows(
        (SELECT count(*) FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed), 1)";
    transaction.run(sql, params![key(workspace), key(campaign)]);
}

/// The parameters `$1` to `$5` of the statements above: the campaign, and one array for each column of the keys.
fn columns(workspace: WorkspaceId, campaign: CampaignId, keys: &[WaitingKey]) -> Params {
    params![
        key(workspace),
        key(campaign),
        keys.iter().map(|one| i16::from(one.track)).collect::<Vec<_>>(),
        keys.iter().map(|one| one.due_at.as_millis()).collect::<Vec<_>>(),
        keys.iter().map(|one| key(one.message_id)).collect::<Vec<_>>(),
    ]
}

/// The tracks of a campaign on which messages wait, each with the time at which its first is due. Looks up the first
/// row of each track in the index, instead of reading all rows.
pub(super) async fn tracks(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
) -> Result<Vec<(u8, Timestamp)>, StoreError> {
    const SQL: &str = "WITH RECURSIVE campaign AS (
            SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed
        ), firsts (track, due_at) AS (
            (SELECT track, due_at FROM campaign_waiting WHERE campaign = (SELECT n FROM campaign)
                ORDER BY track, due_at LIMIT 1)
            UNION ALL
            SELECT next.track, next.due_at FROM firsts CROSS JOIN LATERAL (
                SELECT track, due_at FROM campaign_waiting
                WHERE campaign = (SELECT n FROM campaign) AND track > firsts.track ORDER BY track, due_at LIMIT 1
            ) AS next
        )
        SELECT track::bigint, due_at FROM firsts ORDER BY track";
    reads.many(SQL, params![key(workspace), key(campaign)], |row| Ok((get(row, 0)?, time(row, 1)?))).await
}
