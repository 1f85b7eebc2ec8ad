//! Listing messages.
//!
//! One index drives a listing: the narrowest that the filter allows. What else the filter asks for is
//! checked row by row, and one call looks at no more than [`MAX_SCANNED`] rows. Tags have no index,
//! because it would make accepting a message dearer than a listing is worth.

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor};
use rusqlite::{Connection, Row, Rows, params};

use super::super::fault::Fault;
use super::super::row::{below, first_id_of, number, numbered};
use crate::several_statuses;
use crate::tables::messages::{message, message_columns};

/// How many rows one call looks at.
const MAX_SCANNED: usize = 20_000;

/// The first status that `messages_by_status` holds; the same number stands in its definition.
const FIRST_INDEXED_STATUS: i64 = 4;

/// The same of `messages_by_campaign_and_status`.
const FIRST_END_OF_CAMPAIGNS: i64 = 5;

macro_rules! listing {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages ",
            $index,
            " WHERE workspace = ?1 AND id < ?2 AND id >= ?4 AND ",
            $condition,
            " ORDER BY id DESC"
        )
    };
}

const BY_CAMPAIGN: &str = listing!("INDEXED BY messages_by_campaign", "campaign = ?3");
const BY_CAMPAIGN_END: &str =
    listing!("INDEXED BY messages_by_campaign_and_status", "campaign = ?3 AND status >= 5 AND status = ?5");
const BY_AUTOMATION: &str = listing!("INDEXED BY messages_by_automation", "automation = ?3");
const BY_CONTACT: &str = listing!("INDEXED BY messages_by_contact", "contact = ?3");
const BY_STATUS: &str = listing!("INDEXED BY messages_by_status", "status >= 4 AND status = ?3");
const BY_ID: &str = listing!("NOT INDEXED", "?3 IS NULL");

/// What the rows of a listing are compared with.
struct Wanted<'a> {
    /// None: any.
    statuses: &'a [i64],
    channel: Option<i64>,
    filter: &'a MessageFilter,
}

pub(super) fn messages(
    connection: &Connection,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    let statuses = several_statuses::numbers(filter);
    if several_statuses::are_listed_apart(filter, &statuses, FIRST_INDEXED_STATUS, FIRST_END_OF_CAMPAIGNS) {
        let each = statuses.chunks(1).map(|status| listing(connection, workspace, filter, status, page));
        return Ok(several_statuses::merged(each.collect::<Result<_, _>>()?, page.limit));
    }
    listing(connection, workspace, filter, &statuses, page)
}

fn listing(
    connection: &Connection,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    statuses: &[i64],
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    let wanted = Wanted { statuses, channel: filter.channel.map(|channel| number(&Channel::ALL, &channel)), filter };
    let whose = workspace.to_bytes();
    let start = below(page).min(filter.until.map_or([0xff; 16], first_id_of));
    let end = filter.since.map_or([0; 16], first_id_of);
    let status = if let [only] = statuses { Some(*only) } else { None };
    let indexed_status = status.filter(|status| *status >= FIRST_INDEXED_STATUS);
    let campaign_end = status.filter(|status| *status >= FIRST_END_OF_CAMPAIGNS);
    let mut statement = connection.prepare_cached(match filter {
        MessageFilter { contact_id: Some(_), .. } => BY_CONTACT,
        MessageFilter { campaign_id: Some(_), .. } if campaign_end.is_some() => BY_CAMPAIGN_END,
        MessageFilter { campaign_id: Some(_), .. } => BY_CAMPAIGN,
        MessageFilter { automation_id: Some(_), .. } => BY_AUTOMATION,
        _ if indexed_status.is_some() => BY_STATUS,
        _ => BY_ID,
    })?;
    let mut rows = match (filter.contact_id, filter.campaign_id, filter.automation_id) {
        (Some(contact), _, _) => statement.query(params![whose, start, contact.to_bytes(), end])?,
        (_, Some(campaign), _) if campaign_end.is_some() => {
            statement.query(params![whose, start, campaign.to_bytes(), end, campaign_end])?
        }
        (_, Some(campaign), _) => statement.query(params![whose, start, campaign.to_bytes(), end])?,
        (_, _, Some(automation)) => statement.query(params![whose, start, automation.to_bytes(), end])?,
        _ => statement.query(params![whose, start, indexed_status, end])?,
    };

    page_of(workspace, &mut rows, page.limit, |row| wanted.matches(row))
}

/// Reads a page of the rows that match, each of `message_columns`, in the order in which they come. Looks at no more
/// than [`MAX_SCANNED`] of them: a page may be short, or empty, and go on.
pub(in super::super) fn page_of(
    workspace: WorkspaceId,
    rows: &mut Rows<'_>,
    limit: usize,
    matches: impl Fn(&Row<'_>) -> Result<bool, Fault>,
) -> Result<Slice<Message>, Fault> {
    let mut items: Vec<Message> = Vec::new();
    let mut scanned = 0;
    while let Some(row) = rows.next()? {
        let matches = matches(row)?;
        if matches && items.len() == limit {
            // The row after the last tells that there is a rest.
            return Ok(Slice {
                next: items.last().map(|message| StoreCursor::from_bytes(message.id.to_bytes())),
                items,
            });
        }
        if matches {
            items.push(message(workspace, row)?);
        }
        scanned += 1;
        if scanned == MAX_SCANNED {
            return Ok(Slice { next: Some(StoreCursor::from_bytes(row.get(0)?)), items });
        }
    }
    Ok(Slice { items, next: None })
}

impl Wanted<'_> {
    /// Checks the cheap columns first; the row is only read further when they agree.
    fn matches(&self, row: &Row<'_>) -> Result<bool, Fault> {
        let equal = |column: usize, wanted: Option<i64>| -> Result<bool, Fault> {
            Ok(match wanted {
                Some(wanted) => row.get::<_, i64>(column)? == wanted,
                None => true,
            })
        };
        let owner = |column: usize, wanted: Option<[u8; 16]>| -> Result<bool, Fault> {
            Ok(match wanted {
                Some(wanted) => row.get::<_, Option<[u8; 16]>>(column)? == Some(wanted),
                None => true,
            })
        };
        Ok((self.statuses.is_empty() || self.statuses.contains(&row.get(1)?))
            && equal(2, self.channel)?
            && owner(9, self.filter.contact_id.map(Id::to_bytes))?
            && owner(10, self.filter.campaign_id.map(Id::to_bytes))?
            && owner(11, self.filter.automation_id.map(Id::to_bytes))?
            && owner(12, self.filter.template_id.map(Id::to_bytes))?
            && self.goes_to(row)?
            && self.has_tag(row)?)
    }

    fn goes_to(&self, row: &Row<'_>) -> Result<bool, Fault> {
        let Some(to) = &self.filter.to else { return Ok(true) };
        let channel = numbered(&Channel::ALL, row.get(2)?)?;
        Ok(address::normalize(channel, &row.get::<_, String>(7)?) == address::normalize(channel, to))
    }

    fn has_tag(&self, row: &Row<'_>) -> Result<bool, Fault> {
        let Some(tag) = &self.filter.tag else { return Ok(true) };
        let Some(text) = row.get_ref(3)?.as_str_or_null().map_err(|_| Fault::Malformed("tags are not text"))? else {
            return Ok(false);
        };
        let tags: Vec<std::borrow::Cow<'_, str>> = serde_json::from_str(text)?;
        Ok(tags.iter().any(|held| held == tag))
    }
}
