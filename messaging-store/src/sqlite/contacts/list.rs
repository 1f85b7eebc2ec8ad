//! Listing contacts.
//!
//! One index drives a listing, the first of these that the filter names: an identifier, the members of a list, of a
//! segment, of a tag; without any, the table of contacts. The rest of the filter is checked row by row, and one call
//! reads at most [`MAX_SCANNED`] rows. Contacts are numbered in the order of their creation, so a page begins after a
//! number. The numbers of a workspace are a range; every listing is limited to it on both sides, so that a forged place
//! reaches no other workspace.

use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Slice, Stored};
use rusqlite::{Connection, Rows, params};

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, list_number, segment_number, workspace_number};
use super::super::query::one;
use super::rows::{identified, numbered};
use super::tags;
use crate::pages::{numbered_place, place_number};
use crate::row::time;
use crate::tables::contacts::{contact, contact_columns, identifier, matches};

/// Maximum number of rows that one call reads.
const MAX_SCANNED: usize = 20_000;

/// Columns of a contact. Its lists are only looked up if it was changed at or after `?4`.
macro_rules! columns {
    () => {
        concat!(contact_columns!(), "CASE WHEN c.updated_at >= ?4 THEN ", contact_columns!(lists of sqlite), " END")
    };
}

const OF_LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM list_members m CROSS JOIN contacts c ON c.n = m.contact
     WHERE m.list = ?1 AND m.contact >= ?2 AND m.contact < ?3 ORDER BY m.contact DESC"
);
const OF_SEGMENT: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM segment_members m CROSS JOIN contacts c ON c.n = m.contact
     WHERE m.segment = ?1 AND m.contact >= ?2 AND m.contact < ?3 ORDER BY m.contact DESC"
);
const OF_TAG: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM tag_members m CROSS JOIN contacts c ON c.n = m.contact
     WHERE m.tag = ?1 AND m.contact >= ?2 AND m.contact < ?3 ORDER BY m.contact DESC"
);
const ALL: &str = concat!("SELECT ", columns!(), " FROM contacts c WHERE c.n >= ?2 AND c.n < ?3 ORDER BY c.n DESC");

/// A filter with the number of its segment.
struct ContactMatcher<'a> {
    segment: Option<i64>,
    filter: &'a ContactFilter,
}

pub(super) fn contacts(
    connection: &Connection,
    workspace: WorkspaceId,
    filter: &ContactFilter,
    page: &PageRequest,
) -> Result<Slice<Contact>, Fault> {
    let nothing = Slice { items: Vec::new(), next: None };
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(nothing) };
    let list = match filter.list_id {
        Some(id) => match list_number(connection, workspace, id)? {
            Some(list) => Some(list),
            None => return Ok(nothing),
        },
        None => None,
    };
    let segment = match filter.segment_id {
        Some(id) => match segment_number(connection, workspace, id)? {
            Some(segment) => Some(segment),
            None => return Ok(nothing),
        },
        None => None,
    };
    let tag = match &filter.tag {
        Some(tag) => match tags::number(connection, workspace_number, tag)? {
            Some(tag) => Some(tag),
            None => return Ok(nothing),
        },
        None => None,
    };
    // The numbers of the workspace, whatever place the caller gives.
    let (lowest, end) = (workspace_number << COUNT_BITS, (workspace_number + 1) << COUNT_BITS);
    let start = match page.after {
        Some(place) => place_number(place).min(end),
        None => end,
    };
    let matcher = ContactMatcher { segment, filter };
    if let Some(identifier) = identifier(filter) {
        let mut items = Vec::new();
        if let Some(n) = identified(connection, workspace_number, &identifier)?.filter(|n| *n < start)
            && let Some(Stored { record, .. }) = numbered(connection, workspace, n)?
            && matcher.matches(connection, n, &record)?
        {
            items.push(record);
        }
        return Ok(Slice { items, next: None });
    }
    let sql = match (list, segment, tag) {
        (Some(_), _, _) => OF_LIST,
        (None, Some(_), _) => OF_SEGMENT,
        (None, None, Some(_)) => OF_TAG,
        (None, None, None) => ALL,
    };
    let since = filter.updated_since.map_or(i64::MIN, messaging_core::time::Timestamp::as_millis);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query(params![list.or(segment).or(tag), lowest, start, since])?;
    matcher.collect(connection, workspace, rows, page.limit)
}

impl ContactMatcher<'_> {
    fn collect(
        &self,
        connection: &Connection,
        workspace: WorkspaceId,
        mut rows: Rows<'_>,
        limit: usize,
    ) -> Result<Slice<Contact>, Fault> {
        let mut items = Vec::new();
        let (mut scanned, mut last) = (0, 0);
        while let Some(row) = rows.next()? {
            scanned += 1;
            // The cheap column first; the row is only read further if it matches.
            let is_recent = match self.filter.updated_since {
                Some(since) => time(row, 4)? >= since,
                None => true,
            };
            if is_recent {
                let (n, stored) = contact(workspace, row)?;
                if self.matches(connection, n, &stored.record)? {
                    if items.len() == limit {
                        // One match more than the page holds: another page follows.
                        return Ok(Slice { items, next: Some(numbered_place(last)) });
                    }
                    items.push(stored.record);
                    last = n;
                }
            }
            if scanned == MAX_SCANNED {
                return Ok(Slice { items, next: Some(numbered_place(row.get(0)?)) });
            }
        }
        Ok(Slice { items, next: None })
    }

    fn matches(&self, connection: &Connection, n: i64, contact: &Contact) -> Result<bool, Fault> {
        const IN_SEGMENT: &str = "SELECT 1 FROM segment_members WHERE segment = ?1 AND contact = ?2";
        if !matches(self.filter, contact) {
            return Ok(false);
        }
        let Some(segment) = self.segment else { return Ok(true) };
        Ok(one(connection, IN_SEGMENT, [segment, n], |_| Ok(()))?.is_some())
    }
}
