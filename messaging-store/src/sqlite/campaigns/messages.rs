//! Messages of a campaign, by what became of them.

use messaging_core::domain::message::milestones::Seen;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::campaigns::Wanted;
use messaging_core::ports::store::{PageRequest, Slice};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::messages::page_of;
use super::super::query::many;
use super::super::row::{below, number, one_more, slice};
use crate::tables::messages::{message, message_columns};

/// The first status that `messages_by_campaign_and_status` holds; the same number stands in its definition.
const FIRST_INDEXED_STATUS: usize = 5;

pub(super) fn list(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    wanted: Wanted,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    const ALL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages INDEXED BY messages_by_campaign WHERE workspace = ?1 AND campaign = ?2 AND id < ?3
          ORDER BY id DESC"
    );
    let statuses = match wanted {
        Wanted::Seen(seen) if seen != Seen::default() => return list_seen(connection, workspace, campaign, seen, page),
        Wanted::Statuses(statuses) if statuses >> FIRST_INDEXED_STATUS << FIRST_INDEXED_STATUS == statuses => {
            return list_ends(connection, workspace, campaign, statuses, page);
        }
        Wanted::Statuses(statuses) => statuses,
        Wanted::All | Wanted::Seen(_) => u16::MAX,
    };
    let mut statement = connection.prepare_cached(ALL)?;
    let mut rows = statement.query(params![workspace.to_bytes(), campaign.to_bytes(), below(page)])?;
    page_of(workspace, &mut rows, page.limit, |row| Ok(statuses.checked_shr(row.get(1)?).unwrap_or(0) & 1 == 1))
}

/// Of which all of this was seen. Found by the first of it.
fn list_seen(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    seen: Seen,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM (SELECT message FROM campaign_engagements
                WHERE campaign = (SELECT n FROM campaigns WHERE workspace = ?1 AND id = ?2 AND NOT removed)
                    AND seen = ?4 AND message < ?3) AS seen_messages
          CROSS JOIN messages ON workspace = ?1 AND id = message ORDER BY message DESC"
    );
    let first = seen.each().next().unwrap_or_default();
    let mut statement = connection.prepare_cached(SQL)?;
    let bounds = params![workspace.to_bytes(), campaign.to_bytes(), below(page), first.bits()];
    let mut rows = statement.query(bounds)?;
    page_of(workspace, &mut rows, page.limit, |row| Ok(Seen::from_bits(row.get(18)?).has(seen)))
}

/// Of statuses that are few messages of a campaign, each found by itself.
fn list_ends(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    statuses: u16,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages INDEXED BY messages_by_campaign_and_status
          WHERE workspace = ?1 AND campaign = ?2 AND id < ?3 AND status = ?4 AND status >= 5 ORDER BY id DESC LIMIT ?5"
    );
    let mut found = Vec::new();
    // Of one moment: a message that changes its status is neither missed nor found twice.
    let connection = connection.unchecked_transaction()?;
    for status in MessageStatus::ALL.iter().map(|status| number(&MessageStatus::ALL, status)) {
        if statuses & 1 << status != 0 {
            let bounds = params![workspace.to_bytes(), campaign.to_bytes(), below(page), status, one_more(page)];
            found.extend(many(&connection, SQL, bounds, |row| message(workspace, row))?);
        }
    }
    found.sort_by_key(|message| std::cmp::Reverse(message.id));
    Ok(slice(found, page.limit, |message| message.id.to_bytes()))
}
