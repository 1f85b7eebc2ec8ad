//! Messages of a campaign, by status or engagement.

use std::cmp::Reverse;
use std::sync::Arc;

use messaging_core::domain::message::milestones::EngagementFlags;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::ports::store::{PageRequest, Slice, StoreError};

use crate::database::scan::{Listing, Pick, page_of};
use crate::database::{Database, Query};
use crate::pages::{below, number, one_more, slice};
use crate::row::{Row, get};
use crate::sql::{Params, Sql, key, params, sql};
use crate::tables::messages::{message, message_columns};

/// First status that the index of messages by campaign and status holds; its definition contains the same number.
const FIRST_INDEXED_STATUS: usize = 5;

pub(super) async fn list(
    database: &impl Database,
    workspace: WorkspaceId,
    campaign: CampaignId,
    wanted: CampaignMessageFilter,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    const ALL: Sql = sql!(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages {INDEXED BY messages_by_campaign}
          WHERE workspace = $1 AND id < $2 AND campaign = $4 ORDER BY id DESC LIMIT $3"
    ));
    let statuses = match wanted {
        CampaignMessageFilter::Engaged(seen) if seen != EngagementFlags::default() => {
            return list_seen(database, workspace, campaign, seen, page).await;
        }
        CampaignMessageFilter::Statuses(statuses)
            if statuses >> FIRST_INDEXED_STATUS << FIRST_INDEXED_STATUS == statuses =>
        {
            return list_ends(database, workspace, campaign, statuses, page).await;
        }
        CampaignMessageFilter::Statuses(statuses) => statuses,
        CampaignMessageFilter::All | CampaignMessageFilter::Engaged(_) => u16::MAX,
    };
    let params = move |below: [u8; 16], piece: i64| params![key(workspace), below, piece, key(campaign)];
    let pick: Pick<Message> = Arc::new(move |row: &dyn Row| {
        let is_wanted = statuses.checked_shr(get(row, 1)?).unwrap_or(0) & 1 == 1;
        if is_wanted { message(workspace, row).map(Some) } else { Ok(None) }
    });
    page_of(database, Listing { sql: ALL, params, pick }, below(page), page.limit).await
}

/// Selects a row for each message with an engagement, even if the message is deleted: a page with fewer rows than its
/// limit is therefore the last.
macro_rules! seen {
    ($within:literal, $behind:literal) => {
        concat!(
            "SELECT message, ",
            message_columns!(after_id),
            " FROM (SELECT message FROM campaign_engagements
                    WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $4 AND NOT removed)
                        AND seen = $5 AND message < $2",
            $within,
            ") AS seen_messages LEFT JOIN messages ON workspace = $1 AND id = message ORDER BY message DESC",
            $behind
        )
    };
}

/// Lists the messages that have all engagements in `seen`; the first of these finds the rows, the others filter them.
async fn list_seen(
    database: &impl Database,
    workspace: WorkspaceId,
    campaign: CampaignId,
    seen: EngagementFlags,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    // With the limit in the subquery, SQLite would sort the result once more.
    const SQL: Sql = sql!(sqlite: seen!("", " LIMIT $3"), postgres: seen!(" ORDER BY message DESC LIMIT $3", ""));
    let first = seen.iter().next().unwrap_or_default().bits();
    let params = move |below: [u8; 16], piece: i64| params![key(workspace), below, piece, key(campaign), first];
    let pick: Pick<Message> = Arc::new(move |row: &dyn Row| {
        let is_there = get::<Option<i64>>(row, 1)?.is_some();
        Ok(if is_there { Some(message(workspace, row)?).filter(|one| one.milestones.seen.has(seen)) } else { None })
    });
    page_of(database, Listing { sql: SQL, params, pick }, below(page), page.limit).await
}

/// Lists the messages with these statuses, which few messages of a campaign have; each status is looked up by itself.
async fn list_ends(
    database: &impl Database,
    workspace: WorkspaceId,
    campaign: CampaignId,
    statuses: u16,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    // All statuses are read at one moment, so that a message that changes its status is neither missed nor found twice.
    const SQL: Sql = sql!(
        sqlite: concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages INDEXED BY messages_by_campaign_and_status
              WHERE workspace = $1 AND campaign = $4 AND id < $2 AND status = $5 AND status >= 5
              ORDER BY id DESC LIMIT $3"
        ),
        postgres: concat!(
            "SELECT ",
            message_columns!(),
            " FROM unnest($5::bigint[]) AS wanted (state) CROSS JOIN LATERAL (
                  SELECT message FROM message_states
                  WHERE workspace = $1 AND campaign = $4 AND status = state AND status >= 5 AND message < $2
                  ORDER BY message DESC LIMIT $3) AS ends
              JOIN messages ON messages.workspace = $1 AND id = message ORDER BY id DESC LIMIT $3"
        ),
    );
    let all = MessageStatus::ALL.iter().map(|status| number(&MessageStatus::ALL, status));
    let wanted: Vec<Params> = all.filter(|status| statuses & 1 << status != 0).map(|status| params![status]).collect();
    let bounds = params![key(workspace), below(page), one_more(page), key(campaign)];
    let query = Query::new(SQL, bounds, move |row| message(workspace, row));
    let mut found = database.gathered(query, wanted).await?;
    found.sort_by_key(|message| Reverse(message.id));
    Ok(slice(found, page.limit, |message| message.id.to_bytes()))
}
