//! Messages of a campaign, by what became of them.

use messaging_core::domain::message::milestones::Seen;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::campaigns::Wanted;
use messaging_core::ports::store::{PageRequest, Slice, StoreError};
use uuid::Uuid;

use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{below_id, get, number, one_more, slice, small, uuid};
use super::super::scan::{Listing, page_of};
use crate::tables::messages::{message, message_columns};

/// The first status that `message_states_by_campaign` holds; the same number stands in its definition.
const FIRST_INDEXED_STATUS: usize = 5;

pub(super) async fn list(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    wanted: Wanted,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    const ALL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages WHERE workspace = $1 AND id < $2 AND campaign = $4 ORDER BY id DESC LIMIT $3"
    );
    let statuses = match wanted {
        Wanted::Seen(seen) if seen != Seen::default() => {
            return list_seen(reads, workspace, campaign, seen, page).await;
        }
        Wanted::Statuses(statuses) if statuses >> FIRST_INDEXED_STATUS << FIRST_INDEXED_STATUS == statuses => {
            return list_ends(reads, workspace, campaign, statuses, page).await;
        }
        Wanted::Statuses(statuses) => statuses,
        Wanted::All | Wanted::Seen(_) => u16::MAX,
    };
    let params = move |below: Uuid, piece: i64| params![uuid(workspace), below, piece, uuid(campaign)];
    let found = page_of(reads, Listing { sql: ALL, params }, below_id(page), page.limit, |row| {
        let is_wanted = statuses.checked_shr(small(row, 1)?).unwrap_or(0) & 1 == 1;
        if is_wanted { message(workspace, row).map(Some) } else { Ok(None) }
    });
    Ok(found.await?)
}

/// Of which all of this was seen. Found by the first of it.
async fn list_seen(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    seen: Seen,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    // A row for each that was seen: fewer tell that there is no rest.
    const SQL: &str = concat!(
        "SELECT message, ",
        message_columns!(after_id),
        " FROM (SELECT message FROM campaign_engagements
                WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $4 AND NOT removed)
                    AND seen = $5 AND message < $2 ORDER BY message DESC LIMIT $3) AS seen_messages
          LEFT JOIN messages ON workspace = $1 AND id = message ORDER BY message DESC"
    );
    let first = i16::from(seen.each().next().unwrap_or_default().bits());
    let params = move |below: Uuid, piece: i64| params![uuid(workspace), below, piece, uuid(campaign), first];
    let found = page_of(reads, Listing { sql: SQL, params }, below_id(page), page.limit, |row| {
        let is_there = get::<Option<i64>>(row, 1)?.is_some();
        Ok(if is_there { Some(message(workspace, row)?).filter(|one| one.milestones.seen.has(seen)) } else { None })
    });
    Ok(found.await?)
}

/// Of statuses that are few messages of a campaign, each found by itself.
async fn list_ends(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    statuses: u16,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM unnest($5::bigint[]) AS wanted (state) CROSS JOIN LATERAL (
              SELECT message FROM message_states
              WHERE workspace = $1 AND campaign = $4 AND status = state AND status >= 5 AND message < $2
              ORDER BY message DESC LIMIT $3) AS ends
          JOIN messages ON messages.workspace = $1 AND id = message ORDER BY id DESC LIMIT $3"
    );
    let all = MessageStatus::ALL.iter().map(|status| number(&MessageStatus::ALL, status));
    let wanted: Vec<i64> = all.filter(|status| statuses & 1 << status != 0).collect();
    let bounds = params![uuid(workspace), below_id(page), one_more(page), uuid(campaign), wanted];
    let found = reads.many(SQL, bounds, |row| message(workspace, row)).await?;
    Ok(slice(found, page.limit, |message| message.id.to_bytes()))
}
