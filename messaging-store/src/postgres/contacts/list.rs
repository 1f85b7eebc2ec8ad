//! Listing contacts.
//!
//! One index drives a listing: that of an identifier, else of the members of a list, else of a segment, else of a tag,
//! else of the contacts themselves. The rest of the filter is checked row by row, and one call checks at most 20,000
//! rows. The query returns the last of these even if it does not match, because the next page begins after it. The
//! numbers of a workspace's contacts are one range, which bounds every such listing on both sides, so that a forged
//! cursor reaches no other workspace.

use messaging_core::domain::audience::contact::{Contact, ContactFilter, Identifier};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Slice};

use super::super::fault::Fault;
use super::super::query::{many, one};
use super::super::reads::Reads;
use crate::pages::{numbered_place, one_more, place_number};
use crate::row::get;
use crate::sql::{Params, key, params};
use crate::tables::contacts::{CONTACT_COLUMNS, contact, contact_columns, identifier, matches};

/// SQL of the number of the workspace whose id is `$1`.
macro_rules! workspace_number {
    () => {
        "(SELECT number FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// Query of the contacts that the column `$column` of some rows names, with `$2` as the end of the previous page, `$3`
/// as the time of the oldest change, `$4` as the limit and `$5` as a tag. The columns of a contact are followed by two:
/// true if the contact matches, and true if it is the last one that this call checks.
macro_rules! listing {
    ($column:literal, $from:expr, $and:literal) => {
        concat!(
            "SELECT ",
            contact_columns!(postgres),
            ", c.matches, m.place = 20000 FROM (
                 SELECT ",
            $column,
            " AS contact, row_number() OVER (ORDER BY ",
            $column,
            " DESC) AS place
                 FROM ",
            $from,
            " ",
            $column,
            " >= ",
            workspace_number!(),
            " << 40
                     AND ",
            $column,
            " < least($2, (",
            workspace_number!(),
            " + 1) << 40)
                 ORDER BY ",
            $column,
            " DESC LIMIT 20000
             ) m CROSS JOIN LATERAL (
                 SELECT *, ($3::bigint IS NULL OR updated_at >= $3)
                     AND ($5::text IS NULL OR EXISTS (SELECT 1 FROM tag_members
                         WHERE tag_members.contact = contacts.n AND tag_members.tag = (SELECT n FROM tags
                             WHERE workspace_number = ",
            workspace_number!(),
            " AND tag = $5))) ",
            $and,
            " AS matches
                 FROM contacts WHERE contacts.n = m.contact OFFSET 0
             ) c WHERE c.matches OR m.place = 20000 ORDER BY m.contact DESC LIMIT $4"
        )
    };
}

/// SQL of the rows of the members of the list `$6`, for `listing`.
macro_rules! of_list {
    () => {
        concat!(
            "list_members WHERE list = (SELECT n FROM lists WHERE workspace_number = ",
            workspace_number!(),
            " AND id = $6 AND NOT removed) AND "
        )
    };
}

/// Query of the contact whose identifier in a column is `$2`, if its number is below `$3`.
macro_rules! by_identifier {
    ($column:literal) => {
        concat!(
            "SELECT ",
            contact_columns!(postgres),
            " FROM contacts c WHERE c.workspace_number = ",
            workspace_number!(),
            " AND c.",
            $column,
            " = $2 AND c.n < $3"
        )
    };
}

const OF_LIST: &str = listing!("contact", of_list!(), "");
const OF_LIST_IN_SEGMENT: &str = listing!(
    "contact",
    of_list!(),
    "AND EXISTS (SELECT 1 FROM segment_members WHERE segment_members.contact = contacts.n AND segment = (SELECT n
        FROM segments WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $7
            AND NOT removed))"
);
const OF_SEGMENT: &str = listing!(
    "contact",
    concat!(
        "segment_members WHERE segment = (SELECT n FROM segments WHERE workspace_number = ",
        workspace_number!(),
        " AND id = $6 AND NOT removed) AND "
    ),
    ""
);
const OF_TAG: &str = listing!(
    "contact",
    concat!(
        "tag_members WHERE tag = (SELECT n FROM tags WHERE workspace_number = ",
        workspace_number!(),
        " AND tag = $5) AND "
    ),
    ""
);
const ALL: &str = listing!("n", "contacts WHERE ", "");

const BY_EXTERNAL_ID: &str = by_identifier!("external_id");
const BY_EMAIL: &str = by_identifier!("email");
const BY_PHONE: &str = by_identifier!("phone");

pub(super) async fn contacts(
    reads: &Reads,
    workspace: WorkspaceId,
    filter: &ContactFilter,
    page: &PageRequest,
) -> Result<Slice<Contact>, Fault> {
    let start = page.after.map_or(i64::MAX, place_number);
    if let Some(identifier) = identifier(filter) {
        let items = identified(reads, workspace, filter, &identifier, start).await?.into_iter().collect();
        return Ok(Slice { items, next: None });
    }
    let since = filter.updated_since.map(messaging_core::time::Timestamp::as_millis);
    let mut wanted: Params = params![key(workspace), start, since, one_more(page), filter.tag.clone()];
    let sql = match (filter.list_id, filter.segment_id, &filter.tag) {
        (Some(list), None, _) => {
            wanted.push(key(list));
            OF_LIST
        }
        (Some(list), Some(segment), _) => {
            wanted.push(key(list));
            wanted.push(key(segment));
            OF_LIST_IN_SEGMENT
        }
        (None, Some(segment), _) => {
            wanted.push(key(segment));
            OF_SEGMENT
        }
        (None, None, Some(_)) => OF_TAG,
        (None, None, None) => ALL,
    };
    let rows = many(&mut reads.clone(), sql, wanted, |row| {
        let (n, stored) = contact(workspace, row)?;
        Ok((n, stored.record, get::<bool>(row, CONTACT_COLUMNS)?, get::<bool>(row, CONTACT_COLUMNS + 1)?))
    })
    .await?;
    let mut items = Vec::with_capacity(rows.len().min(page.limit));
    let mut last = 0;
    for (n, record, is_match, is_end) in rows {
        if is_match && items.len() == page.limit {
            // A match beyond the limit shows that there is a next page.
            return Ok(Slice { items, next: Some(numbered_place(last)) });
        }
        if is_match {
            items.push(record);
            last = n;
        }
        if is_end {
            return Ok(Slice { items, next: Some(numbered_place(n)) });
        }
    }
    Ok(Slice { items, next: None })
}

/// Returns the contact that has an identifier, if it matches the rest of the filter and its number is below `start`.
async fn identified(
    reads: &Reads,
    workspace: WorkspaceId,
    filter: &ContactFilter,
    identifier: &Identifier,
    start: i64,
) -> Result<Option<Contact>, Fault> {
    const IN_SEGMENT: &str = "SELECT 1 FROM segment_members WHERE contact = $3 AND segment = (SELECT n FROM segments
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2
            AND NOT removed)";
    let (sql, text) = match identifier {
        Identifier::ExternalId(text) => (BY_EXTERNAL_ID, text),
        Identifier::Email(text) => (BY_EMAIL, text),
        Identifier::Phone(text) => (BY_PHONE, text),
    };
    let wanted = params![key(workspace), text.clone(), start];
    let on = &mut reads.clone();
    let Some((n, stored)) = one(on, sql, wanted, |row| contact(workspace, row)).await? else { return Ok(None) };
    if !matches(filter, &stored.record) {
        return Ok(None);
    }
    if let Some(segment) = filter.segment_id
        && one(on, IN_SEGMENT, params![key(workspace), key(segment), n], |_| Ok(())).await?.is_none()
    {
        return Ok(None);
    }
    Ok(Some(stored.record))
}
