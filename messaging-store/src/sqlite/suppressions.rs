//! The suppression list.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::suppression::{Suppression, SuppressionFilter};
use messaging_core::ids::{Id as _, SuppressionId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, StoreError, Stored, Suppressions};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::address_digest::digest;
use super::fault::{Fault, expect_one};
use super::interests::Interests;
use super::query::one;
use super::row::{below, document, number, record, slice, sql_limit, stored};
use super::segments::tell_of_address;

/// How many rows one call of a listing looks at.
const MAX_SCANNED: usize = 20_000;

pub(super) fn put(
    connection: &Connection,
    interests: &mut Interests,
    suppression: &Suppression,
    expect: Expect,
) -> Result<(), Fault> {
    let (workspace, channel) = (suppression.workspace_id.to_bytes(), number(&Channel::ALL, &suppression.channel));
    let doc = document(suppression)?;
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO suppressions (workspace, channel, digest, address, revision, doc)
                 VALUES (?1, ?2, ?3, ?4, 1, ?5)",
            )?
            .execute(params![workspace, channel, digest(&suppression.address), suppression.address, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE suppressions SET doc = ?4, revision = revision + 1
                 WHERE workspace = ?1 AND channel = ?2 AND digest = ?3 AND revision = ?5",
            )?
            .execute(params![workspace, channel, digest(&suppression.address), doc, revision])?,
    })?;
    match expect {
        Expect::Absent => tell(connection, interests, suppression, suppression.created_at),
        Expect::Revision(_) => Ok(()),
    }
}

fn tell(
    connection: &Connection,
    interests: &mut Interests,
    suppression: &Suppression,
    at: Timestamp,
) -> Result<(), Fault> {
    let address = (suppression.channel, suppression.address.as_str());
    tell_of_address(connection, interests, suppression.workspace_id, address, at)
}

pub(super) fn delete(
    connection: &Connection,
    interests: &mut Interests,
    workspace: WorkspaceId,
    id: SuppressionId,
    at: Timestamp,
) -> Result<(), Fault> {
    let is_followed = interests.read_masks.in_mask(connection, workspace, ReadMask::SUPPRESSIONS)?.is_some();
    if is_followed || interests.listeners.is_any(connection, workspace)? {
        let sql = "SELECT doc FROM suppressions WHERE workspace = ?1 AND id = ?2";
        let held: Option<Suppression> =
            one(connection, sql, params![workspace.to_bytes(), id.to_string()], |row| record(row, 0))?;
        if let Some(held) = held {
            tell(connection, interests, &held, at)?;
        }
    }
    connection
        .prepare_cached("DELETE FROM suppressions WHERE workspace = ?1 AND id = ?2")?
        .execute(params![workspace.to_bytes(), id.to_string()])?;
    Ok(())
}

#[async_trait]
impl Suppressions for SqliteStore {
    async fn suppressed_anywhere(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
    ) -> Result<Vec<Suppression>, StoreError> {
        const SQL: &str = "SELECT doc FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND digest = ?3";
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let addresses = addresses.to_vec();
        self.readers
            .point_read(move |connection| {
                // Locked once instead of once for every look-up.
                let connection = connection.unchecked_transaction()?;
                let mut found = Vec::new();
                for (channel, address) in addresses {
                    let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), digest(&address)];
                    found.extend(one(&connection, SQL, key, |row| record(row, 0))?);
                }
                Ok(found)
            })
            .await
    }

    async fn suppressed(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: &[String],
    ) -> Result<Vec<Stored<Suppression>>, StoreError> {
        const SQL: &str =
            "SELECT revision, doc FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND digest = ?3";
        let addresses = addresses.to_vec();
        self.readers
            .point_read(move |connection| {
                let (workspace, channel) = (workspace.to_bytes(), number(&Channel::ALL, &channel));
                let mut found = Vec::new();
                for address in addresses {
                    found.extend(one(connection, SQL, params![workspace, channel, digest(&address)], |row| {
                        stored(row)
                    })?);
                }
                Ok(found)
            })
            .await
    }

    async fn suppression(
        &self,
        workspace: WorkspaceId,
        id: SuppressionId,
    ) -> Result<Option<Stored<Suppression>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM suppressions WHERE workspace = ?1 AND id = ?2";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, params![workspace.to_bytes(), id.to_string()], |row| stored(row))
            })
            .await
    }

    async fn suppressions(
        &self,
        workspace: WorkspaceId,
        filter: &SuppressionFilter,
        page: PageRequest,
    ) -> Result<Slice<Suppression>, StoreError> {
        let filter = filter.clone();
        self.readers
            .read(move |connection| match filter.candidates() {
                Some(candidates) => pick(connection, workspace, &candidates, &filter, &page),
                None => scan(connection, workspace, &filter, &page),
            })
            .await
    }
}

/// The few rows of an address.
fn pick(
    connection: &Connection,
    workspace: WorkspaceId,
    candidates: &[(Channel, String)],
    filter: &SuppressionFilter,
    page: &PageRequest,
) -> Result<Slice<Suppression>, Fault> {
    const SQL: &str = "SELECT doc FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND digest = ?3";
    let mut found: Vec<Suppression> = Vec::new();
    for (channel, address) in candidates {
        let key = params![workspace.to_bytes(), number(&Channel::ALL, channel), digest(address)];
        found.extend(one(connection, SQL, key, |row| record(row, 0))?);
    }
    found.retain(|one| filter.matches(one) && one.id.to_bytes() < below(page));
    found.sort_unstable_by_key(|one| std::cmp::Reverse(one.id));
    Ok(slice(found, page.limit, |one: &Suppression| one.id.to_bytes()))
}

/// All rows from the newest on, as many as one call looks at.
fn scan(
    connection: &Connection,
    workspace: WorkspaceId,
    filter: &SuppressionFilter,
    page: &PageRequest,
) -> Result<Slice<Suppression>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT doc FROM suppressions WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3")?;
    let start = SuppressionId::from_bytes(below(page)).to_string();
    let mut rows = statement.query(params![workspace.to_bytes(), start, sql_limit(MAX_SCANNED)])?;
    let mut items: Vec<Suppression> = Vec::new();
    let (mut scanned, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let suppression: Suppression = record(row, 0)?;
        let matches = filter.matches(&suppression);
        if matches && items.len() == page.limit {
            // The row after the last tells that there is a rest.
            return Ok(Slice { next: items.last().map(place), items });
        }
        last = Some(place(&suppression));
        items.extend(matches.then_some(suppression));
        scanned += 1;
    }
    Ok(Slice { next: if scanned == MAX_SCANNED { last } else { None }, items })
}

fn place(suppression: &Suppression) -> StoreCursor {
    StoreCursor::from_bytes(suppression.id.to_bytes())
}
