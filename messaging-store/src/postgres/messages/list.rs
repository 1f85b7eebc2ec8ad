//! Listing messages.
//!
//! One index drives a listing: the narrowest that the filter allows. What else the filter asks for is
//! checked row by row, and one call looks at no more than so many rows. Tags have no index,
//! because it would make accepting a message dearer than a listing is worth.

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::query::{Params, params};
use super::super::reads::Reads;
use super::super::row::{below, first_id_of, get, number, numbered, uuid};
use super::super::scan::{Listing, page_of};

use crate::several_statuses;
use crate::tables::messages::{message, message_columns};

/// The first status that `message_states` holds; the same number stands in its triggers.
const FIRST_INDEXED_STATUS: i64 = 4;

/// The same of `message_states_by_campaign`.
const FIRST_END_OF_CAMPAIGNS: i64 = 5;

macro_rules! listing {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages WHERE workspace = $1 AND id < $2 AND id >= $4 AND ",
            $condition,
            " ORDER BY id DESC LIMIT $3"
        )
    };
    (by_state $condition:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM (SELECT message FROM message_states WHERE workspace = $1 AND message < $2 AND message >= $4 AND ",
            $condition,
            " ORDER BY message DESC LIMIT $3) AS states
              CROSS JOIN LATERAL (SELECT * FROM messages WHERE workspace = $1 AND id = message OFFSET 0) AS found
              ORDER BY message DESC"
        )
    };
}

const BY_CAMPAIGN: &str = listing!("campaign = $5");
const BY_CAMPAIGN_END: &str = listing!(by_state "campaign = $5 AND status >= 5 AND status = $6");
const BY_AUTOMATION: &str = listing!("automation = $5");
const BY_CONTACT: &str = listing!("contact = $5");
const BY_STATUS: &str = listing!(by_state "status = $5");
const BY_ID: &str = listing!("true");

/// What the rows of a listing are compared with.
struct Wanted<'a> {
    /// None: any.
    statuses: &'a [i64],
    channel: Option<i64>,
    filter: &'a MessageFilter,
}

pub(super) async fn messages(
    reads: &Reads,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    let statuses = several_statuses::numbers(filter);
    if several_statuses::are_listed_apart(filter, &statuses, FIRST_INDEXED_STATUS, FIRST_END_OF_CAMPAIGNS) {
        let mut each = Vec::with_capacity(statuses.len());
        for status in statuses.chunks(1) {
            each.push(listing(reads, workspace, filter, status, page).await?);
        }
        return Ok(several_statuses::merged(each, page.limit));
    }
    listing(reads, workspace, filter, &statuses, page).await
}

async fn listing(
    reads: &Reads,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    statuses: &[i64],
    page: &PageRequest,
) -> Result<Slice<Message>, Fault> {
    let wanted = Wanted { statuses, channel: filter.channel.map(|channel| number(&Channel::ALL, &channel)), filter };
    let start = below(page).min(filter.until.map_or([0xff; 16], first_id_of));
    let end = Uuid::from_bytes(filter.since.map_or([0; 16], first_id_of));
    let status = if let [only] = statuses { Some(*only) } else { None };
    let indexed_status = status.filter(|status| *status >= FIRST_INDEXED_STATUS);
    let campaign_end = status.filter(|status| *status >= FIRST_END_OF_CAMPAIGNS);
    let key = |of: Uuid| -> Params { params![of] };
    let (sql, by): (_, Box<dyn Fn() -> Params + Send + Sync>) =
        match (filter.contact_id, filter.campaign_id, filter.automation_id) {
            (Some(contact), _, _) => (BY_CONTACT, Box::new(move || key(uuid(contact)))),
            (_, Some(campaign), _) => match campaign_end {
                Some(status) => (BY_CAMPAIGN_END, Box::new(move || params![uuid(campaign), status])),
                None => (BY_CAMPAIGN, Box::new(move || key(uuid(campaign)))),
            },
            (_, _, Some(automation)) => (BY_AUTOMATION, Box::new(move || key(uuid(automation)))),
            _ => match indexed_status {
                Some(status) => (BY_STATUS, Box::new(move || params![status])),
                None => (BY_ID, Box::new(Vec::new)),
            },
        };
    let params = move |below: Uuid, piece: i64| {
        let mut params = params![uuid(workspace), below, piece, end];
        params.extend(by());
        params
    };
    page_of(reads, Listing { sql, params }, Uuid::from_bytes(start), page.limit, |row| {
        if wanted.matches(row)? { message(workspace, row).map(Some) } else { Ok(None) }
    })
    .await
}

impl Wanted<'_> {
    /// Checks the cheap columns first; the row is only read further when they agree.
    fn matches(&self, row: &Row) -> Result<bool, Fault> {
        let equal = |column: usize, wanted: Option<i64>| -> Result<bool, Fault> {
            Ok(match wanted {
                Some(wanted) => get::<i64>(row, column)? == wanted,
                None => true,
            })
        };
        Ok((self.statuses.is_empty() || self.statuses.contains(&get(row, 1)?))
            && equal(2, self.channel)?
            && owned(row, 9, self.filter.contact_id)?
            && owned(row, 10, self.filter.campaign_id)?
            && owned(row, 11, self.filter.automation_id)?
            && owned(row, 12, self.filter.template_id)?
            && self.goes_to(row)?
            && self.has_tag(row)?)
    }

    fn goes_to(&self, row: &Row) -> Result<bool, Fault> {
        let Some(to) = &self.filter.to else { return Ok(true) };
        let channel = numbered(&Channel::ALL, get(row, 2)?)?;
        Ok(address::normalize(channel, get(row, 7)?) == address::normalize(channel, to))
    }

    fn has_tag(&self, row: &Row) -> Result<bool, Fault> {
        let Some(tag) = &self.filter.tag else { return Ok(true) };
        let Some(text) = get::<Option<&str>>(row, 3)? else { return Ok(false) };
        let tags: Vec<std::borrow::Cow<'_, str>> = serde_json::from_str(text)?;
        Ok(tags.iter().any(|held| held == tag))
    }
}

/// Whether a column holds the id that is wanted, if one is.
fn owned(row: &Row, column: usize, wanted: Option<impl Id>) -> Result<bool, Fault> {
    Ok(match wanted {
        Some(wanted) => get::<Option<Uuid>>(row, column)? == Some(uuid(wanted)),
        None => true,
    })
}
