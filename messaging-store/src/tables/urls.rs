//! Targets of redirected links.

use async_trait::async_trait;
use messaging_core::domain::audience::contact::erasure::Names;
use messaging_core::domain::mail::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, StoreError, Urls};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::get;
use crate::sql::{Sql, key, params, sql};

/// Maximum number of rows that one call reads.
const MAX_SCANNED: usize = 20_000;

/// Number of rows in one read.
const AT_A_TIME: usize = 1000;

/// Stores a target unless it is stored already.
pub(crate) fn put(on: &mut dyn Statements, workspace: WorkspaceId, url: &str) -> Result<(), Fault> {
    on.run(
        sql!("INSERT INTO urls (workspace, key, url) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"),
        params![key(workspace), UrlKey::of(url).0, url],
    )
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, url: UrlKey) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM urls WHERE workspace = $1 AND key = $2"), params![key(workspace), url.0])
}

#[async_trait]
impl<D: Database> Urls for SqlStore<D> {
    async fn url(&self, workspace: WorkspaceId, url: UrlKey) -> Result<Option<String>, StoreError> {
        const SQL: Sql = sql!("SELECT url FROM urls WHERE workspace = $1 AND key = $2");
        self.one(Query::new(SQL, params![key(workspace), url.0], |row| get(row, 0)).point()).await
    }

    async fn urls_naming(
        &self,
        workspace: WorkspaceId,
        names: &Names,
        page: PageRequest,
    ) -> Result<Slice<UrlKey>, StoreError> {
        const SQL: Sql = sql!("SELECT key, url FROM urls WHERE workspace = $1 AND key > $2 ORDER BY key LIMIT $3");
        let mut items: Vec<UrlKey> = Vec::new();
        // No target has the least key.
        let mut after = page.after.map_or([0; 16], StoreCursor::to_bytes);
        for _ in 0..MAX_SCANNED.div_ceil(AT_A_TIME) {
            let names = names.clone();
            let query = Query::new(SQL, params![key(workspace), after, sql_limit(AT_A_TIME)], move |row| {
                Ok((get::<[u8; 16]>(row, 0)?, names.are_in(get(row, 1)?)))
            });
            let rows = self.many(query).await?;
            for (key, _) in rows.iter().filter(|(_, is_named)| *is_named) {
                if items.len() == page.limit {
                    return Ok(Slice { next: items.last().map(|key| StoreCursor::from_bytes(key.0)), items });
                }
                items.push(UrlKey(*key));
            }
            let Some((last, _)) = rows.last().filter(|_| rows.len() == AT_A_TIME) else {
                return Ok(Slice { items, next: None });
            };
            after = *last;
        }
        Ok(Slice { items, next: Some(StoreCursor::from_bytes(after)) })
    }
}
