//! Listing messages.
//!
//! One index drives a listing: the narrowest that the filter allows. The rest of the filter is checked row by row, and
//! one call reads a limited number of rows. Tags have no index, because its cost for every accepted message exceeds its
//! use for listings.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError};

use super::rows::{message, message_columns};
use crate::database::Database;
use crate::database::scan::{Listing, page_of};
use crate::fault::Fault;
use crate::pages::{below, first_id_of, number};
use crate::row::{Row, get, numbered};
use crate::several_statuses;
use crate::sql::{Params, Sql, key, params, sql};

/// First status in the index of messages by status; its definition has the same number.
const FIRST_INDEXED_STATUS: i64 = 4;

/// First status in the index of messages by campaign and status.
const FIRST_END_OF_CAMPAIGNS: i64 = 5;

/// Lists the rows that meet a condition. PostgreSQL has the messages in some states in a table of their own,
/// `message_states`.
macro_rules! listing {
    ($index:literal $condition:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages {",
            $index,
            "} WHERE workspace = $1 AND id < $2 AND id >= $4 AND ",
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

const BY_CAMPAIGN: Sql = sql!(listing!("INDEXED BY messages_by_campaign" "campaign = $5"));
const BY_CAMPAIGN_END: Sql = sql!(
    sqlite: listing!("INDEXED BY messages_by_campaign_and_status" "campaign = $5 AND status >= 5 AND status = $6"),
    postgres: listing!(by_state "campaign = $5 AND status >= 5 AND status = $6"),
);
const BY_AUTOMATION: Sql = sql!(listing!("INDEXED BY messages_by_automation" "automation = $5"));
const BY_CONTACT: Sql = sql!(listing!("INDEXED BY messages_by_contact" "contact = $5"));
const BY_STATUS: Sql = sql!(
    sqlite: listing!("INDEXED BY messages_by_status" "status >= 4 AND status = $5"),
    postgres: listing!(by_state "status = $5"),
);
const BY_ID: Sql = sql!(listing!("NOT INDEXED" "true"));

/// Conditions on the rows of a listing.
#[derive(Clone)]
pub(crate) struct MessageMatcher {
    /// Statuses by number; any if empty.
    statuses: Vec<i64>,
    channel: Option<i64>,
    filter: MessageFilter,
}

pub(super) async fn messages(
    database: &impl Database,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    let statuses = several_statuses::numbers(filter);
    if !several_statuses::are_listed_apart(filter, &statuses, FIRST_INDEXED_STATUS, FIRST_END_OF_CAMPAIGNS) {
        return listing(database, workspace, filter, statuses, page).await;
    }
    let mut each = Vec::with_capacity(statuses.len());
    for status in statuses {
        each.push(listing(database, workspace, filter, vec![status], page).await?);
    }
    Ok(several_statuses::merged(each, page.limit))
}

async fn listing(
    database: &impl Database,
    workspace: WorkspaceId,
    filter: &MessageFilter,
    statuses: Vec<i64>,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    let (start, end) = span(filter, page);
    let status = if let [only] = statuses[..] { Some(only) } else { None };
    let indexed_status = status.filter(|status| *status >= FIRST_INDEXED_STATUS);
    let campaign_end = status.filter(|status| *status >= FIRST_END_OF_CAMPAIGNS);
    let (sql, by): (Sql, Params) = match (filter.contact_id, filter.campaign_id, filter.automation_id) {
        (Some(contact), _, _) => (BY_CONTACT, params![key(contact)]),
        (_, Some(campaign), _) => match campaign_end {
            Some(status) => (BY_CAMPAIGN_END, params![key(campaign), status]),
            None => (BY_CAMPAIGN, params![key(campaign)]),
        },
        (_, _, Some(automation)) => (BY_AUTOMATION, params![key(automation)]),
        _ => match indexed_status {
            Some(status) => (BY_STATUS, params![status]),
            None => (BY_ID, Vec::new()),
        },
    };
    let params = move |below: [u8; 16], piece: i64| {
        let mut params = params![key(workspace), below, piece, end];
        params.extend_from_slice(&by);
        params
    };
    let matcher = MessageMatcher { statuses, ..MessageMatcher::new(filter) };
    let pick = move |row: &dyn Row| if matcher.matches(row)? { message(workspace, row).map(Some) } else { Ok(None) };
    page_of(database, Listing { sql, params, pick: Arc::new(pick) }, start, page.limit).await
}

/// Range of the ids of a page of a listing: below the first, from the second on.
pub(crate) fn span(filter: &MessageFilter, page: &PageRequest) -> ([u8; 16], [u8; 16]) {
    let start = below(page).min(filter.until.map_or([0xff; 16], first_id_of));
    (start, filter.since.map_or([0; 16], first_id_of))
}

/// A page of the messages between two ids that match, including the search, as far as it concerns their rows.
pub(crate) async fn rows_between(
    database: &impl Database,
    workspace: WorkspaceId,
    matcher: MessageMatcher,
    (start, end): ([u8; 16], [u8; 16]),
    limit: usize,
) -> Result<Slice<Message>, StoreError> {
    let params = move |below: [u8; 16], piece: i64| params![key(workspace), below, piece, end];
    let pick = move |row: &dyn Row| {
        let found = if matcher.matches(row)? { Some(message(workspace, row)?) } else { None };
        let search = matcher.filter.search.as_ref();
        Ok(found.filter(|message| search.is_none_or(|search| search.finds_row(message))))
    };
    page_of(database, Listing { sql: BY_ID, params, pick: Arc::new(pick) }, start, limit).await
}

impl MessageMatcher {
    /// Conditions of a filter on the rows of a listing, without its search.
    pub(crate) fn new(filter: &MessageFilter) -> Self {
        let channel = filter.channel.map(|channel| number(&Channel::ALL, &channel));
        Self { statuses: several_statuses::numbers(filter), channel, filter: filter.clone() }
    }

    /// Checks the cheap columns first; further columns are only read if they match.
    pub(crate) fn matches(&self, row: &dyn Row) -> Result<bool, Fault> {
        let filter = &self.filter;
        Ok((self.statuses.is_empty() || self.statuses.contains(&get(row, 1)?))
            && (self.channel.is_none() || self.channel == get(row, 2)?)
            && is_of(row, 9, filter.contact_id)?
            && is_of(row, 10, filter.campaign_id)?
            && is_of(row, 11, filter.automation_id)?
            && is_of(row, 12, filter.template_id)?
            && self.goes_to(row)?
            && self.has_tag(row)?)
    }

    fn goes_to(&self, row: &dyn Row) -> Result<bool, Fault> {
        let Some(to) = &self.filter.to else { return Ok(true) };
        let channel = numbered(&Channel::ALL, get(row, 2)?)?;
        Ok(address::normalize(channel, get(row, 7)?) == address::normalize(channel, to))
    }

    fn has_tag(&self, row: &dyn Row) -> Result<bool, Fault> {
        let Some(tag) = &self.filter.tag else { return Ok(true) };
        let Some(text) = get::<Option<&str>>(row, 3)? else { return Ok(false) };
        let tags: Vec<Cow<'_, str>> = serde_json::from_str(text)?;
        Ok(tags.iter().any(|held| held == tag))
    }
}

/// Returns true if a column holds the id `wanted`, or if that is `None`.
fn is_of(row: &dyn Row, column: usize, wanted: Option<impl Id>) -> Result<bool, Fault> {
    Ok(match wanted {
        Some(wanted) => get::<Option<[u8; 16]>>(row, column)? == Some(wanted.to_bytes()),
        None => true,
    })
}

pub(super) async fn messages_to(
    database: &impl Database,
    workspace: WorkspaceId,
    addresses: HashSet<(Channel, String)>,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages {NOT INDEXED} WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    ));
    let params = |below: [u8; 16], piece: i64| params![key(workspace), below, piece];
    let pick = move |row: &dyn Row| {
        let message = message(workspace, row)?;
        let address = address::normalize(message.channel, &message.to);
        Ok(addresses.contains(&(message.channel, address)).then_some(message))
    };
    page_of(database, Listing { sql: SQL, params, pick: Arc::new(pick) }, below(page), page.limit).await
}
