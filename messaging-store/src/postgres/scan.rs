//! Listings of which only some rows are wanted.
//!
//! Rows are read in the order of their ids, from the newest on, a piece at a time, and looked at here: what decides is
//! often core's to say.

use messaging_core::ports::store::{Slice, StoreCursor};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Fault;
use super::query::{Params, Queries as _};
use super::reads::Reads;
use super::row::{get, sql_limit};

/// How many rows one call of a listing looks at.
const MAX_SCANNED: usize = 20_000;

/// How many rows are read at once at most.
const MAX_PIECE: usize = 2_000;

/// A listing: a statement whose first column is the id, and its parameters for the rows below an id, at most so many.
pub(super) struct Listing<F> {
    pub(super) sql: &'static str,
    pub(super) params: F,
}

/// Reads a page of the rows below `start` that `pick` takes. Looks at no more than [`MAX_SCANNED`] of them: a page may be
/// short, or empty, and go on.
pub(super) async fn page_of<T>(
    reads: &Reads,
    listing: Listing<impl Fn(Uuid, i64) -> Params>,
    start: Uuid,
    limit: usize,
    pick: impl Fn(&Row) -> Result<Option<T>, Fault>,
) -> Result<Slice<T>, Fault> {
    let mut reads = reads.clone();
    let (mut items, mut last_item) = (Vec::new(), None);
    let (mut below, mut scanned) = (start, 0);
    // One more than wanted tells whether there is a rest.
    let mut piece = limit.saturating_add(1).min(MAX_PIECE);
    loop {
        piece = piece.min(MAX_SCANNED - scanned);
        let rows = reads.rows(listing.sql, (listing.params)(below, sql_limit(piece))).await?;
        for row in &rows {
            below = get(row, 0)?;
            if let Some(item) = pick(row)? {
                if items.len() == limit {
                    return Ok(Slice { items, next: last_item.map(place) });
                }
                items.push(item);
                last_item = Some(below);
            }
        }
        scanned += rows.len();
        if rows.len() < piece {
            return Ok(Slice { items, next: None });
        }
        if scanned == MAX_SCANNED {
            return Ok(Slice { items, next: Some(place(below)) });
        }
        piece = piece.saturating_mul(4).min(MAX_PIECE);
    }
}

fn place(id: Uuid) -> StoreCursor {
    StoreCursor::from_bytes(id.into_bytes())
}
