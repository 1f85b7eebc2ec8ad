//! Listings that select some of the rows they read.
//!
//! Rows are read in the order of their ids, from the newest on, a piece at a time, and selected here, because often
//! core decides about them.

use std::sync::Arc;

use messaging_core::ports::store::{Slice, StoreCursor, StoreError};

use super::{Database, Query};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{Row, get};
use crate::sql::{Params, Sql};

/// Maximum number of rows that one call of a listing reads.
const MAX_SCANNED: usize = 20_000;

/// Maximum number of rows in one read.
const MAX_PIECE: usize = 2_000;

/// Function that makes an item from a row, or skips it.
pub(crate) type Pick<T> = Arc<dyn Fn(&dyn Row) -> Result<Option<T>, Fault> + Send + Sync>;

/// A listing: a statement whose first column is the id, its parameters for at most a number of rows below an id, and
/// the function that selects rows.
pub(crate) struct Listing<P, T> {
    pub(crate) sql: Sql,
    pub(crate) params: P,
    pub(crate) pick: Pick<T>,
}

/// Reads a page of the rows below `start` that a listing selects. Reads at most [`MAX_SCANNED`] rows: a page may be
/// short, or empty, and still have a next one.
pub(crate) async fn page_of<T, P>(
    database: &impl Database,
    listing: Listing<P, T>,
    start: [u8; 16],
    limit: usize,
) -> Result<Slice<T>, StoreError>
where
    T: Send + 'static,
    P: Fn([u8; 16], i64) -> Params + Send + Sync,
{
    let (mut items, mut last_item) = (Vec::new(), None);
    let (mut below, mut scanned) = (start, 0);
    // One more than wanted shows if there is a rest.
    let mut piece = limit.saturating_add(1).min(MAX_PIECE);
    loop {
        piece = piece.min(MAX_SCANNED - scanned);
        let pick = Arc::clone(&listing.pick);
        let query = Query::new(listing.sql, (listing.params)(below, sql_limit(piece)), move |row| {
            Ok((get::<[u8; 16]>(row, 0)?, pick(row)?))
        });
        let rows = database.many(query).await?;
        let found = rows.len();
        for (id, item) in rows {
            below = id;
            let Some(item) = item else { continue };
            if items.len() == limit {
                return Ok(Slice { items, next: last_item.map(StoreCursor::from_bytes) });
            }
            items.push(item);
            last_item = Some(below);
        }
        scanned += found;
        if found < piece {
            return Ok(Slice { items, next: None });
        }
        if scanned == MAX_SCANNED {
            return Ok(Slice { items, next: Some(StoreCursor::from_bytes(below)) });
        }
        piece = piece.saturating_mul(4).min(MAX_PIECE);
    }
}
