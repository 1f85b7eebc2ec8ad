//! Letting go what belongs to removed campaigns, and sends that no cap asks for any more.

use messaging_core::domain::delivery::recipient_time::frequency_cap::WEEK;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::super::audiences;
use super::super::fault::Fault;
use super::super::query::one;
use super::super::sweep::{begin_undurably, end, sweep};
use super::super::transaction::Transaction;
use super::super::writes::Writes;
use crate::pages::sql_limit;
use crate::row::get;
use crate::sql::params;

/// Removes rows of a removed campaign, `$1`, at most `$2`; in their order.
const OF_A_CAMPAIGN: [&str; 8] = [
    "DELETE FROM campaign_waiting WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_waiting WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_engagements WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_engagements WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_progress WHERE campaign = $1 AND $2::bigint > 0",
    "DELETE FROM campaign_counts WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_counts WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_link_counts WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_link_counts WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_links WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_links WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_activity WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_activity WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    // The last: from then on its id is free.
    "DELETE FROM campaigns WHERE n = $1 AND $2::bigint > 0",
];

/// Lets rows of removed campaigns go, and when there are none, the campaigns; answers how many went.
pub(super) async fn removed_campaigns(writes: &Writes, limit: usize) -> Result<u64, StoreError> {
    let limit = sql_limit(limit).unsigned_abs();
    let mut forgotten = 0;
    while forgotten < limit {
        let mut transaction = begin_undurably(writes).await?;
        let gone = rows_of_one(&mut transaction, limit - forgotten).await;
        match end(transaction, gone).await? {
            0 => break,
            gone => forgotten += gone,
        }
    }
    Ok(forgotten)
}

/// Lets go up to `limit` rows of one removed campaign; answers how many went.
async fn rows_of_one(transaction: &mut Transaction, limit: u64) -> Result<u64, Fault> {
    // Whoever adds rows to a campaign keeps it locked until they are there: who has it alone sees all that there will be.
    const REMOVED: &str = "SELECT n FROM campaigns WHERE removed ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED";
    let removed: Option<i64> = one(transaction, REMOVED, params![], |row| get(row, 0)).await?;
    let mut forgotten = 0;
    if let Some(n) = removed {
        for sql in audiences::FORGET_CAMPAIGN.into_iter().chain(OF_A_CAMPAIGN) {
            let room = i64::try_from(limit.saturating_sub(forgotten)).unwrap_or(i64::MAX);
            forgotten += transaction.execute(sql, params![n, room]).await?;
        }
    }
    Ok(forgotten)
}

/// Lets sends go that are so old that no cap counts them; answers how many.
pub(super) async fn contact_sends(writes: &Writes, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM contact_sends WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM contact_sends WHERE week <= $1::bigint / 604800 AND last_at <= $1
        ORDER BY week LIMIT $2 FOR UPDATE SKIP LOCKED))";
    if limit == 0 {
        return Ok(0);
    }
    sweep(writes, SQL, params![(now - WEEK).as_seconds(), sql_limit(limit)]).await
}
