//! Reading a piece of an audience.
//!
//! A look is one snapshot, and all that is told of a contact is found in one look. So a piece is of one moment unless it
//! takes longer than a look, as it may with filters; then its contacts are, as are those of two pieces. Holding one
//! snapshot for as long as slow filters take would keep the log from starting over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_core::domain::campaign::audience::{PIECE, number_at, place_of};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePiece, AudienceQuery};
use rusqlite::Connection;

use super::super::fault::Fault;
use super::scan::Scan;
use crate::tables::audiences::found::Found;

/// What is asked, and what was found so far.
pub(super) struct Walk {
    workspace: WorkspaceId,
    query: Arc<AudienceQuery>,
    piece: Option<u64>,
    /// The first number that was not looked at.
    start: Option<i64>,
    found: Found,
    next: Option<u64>,
}

impl Walk {
    pub(super) fn new(workspace: WorkspaceId, query: &Arc<AudienceQuery>, piece: Option<u64>) -> Self {
        Self { workspace, query: Arc::clone(query), piece, start: None, found: Found::default(), next: None }
    }

    /// Looks at some more contacts; answers whether that was all.
    pub(super) fn go_on(&mut self, connection: &Connection, look: Duration) -> Result<bool, Fault> {
        let connection = &*connection.unchecked_transaction()?;
        let Some(mut scan) = Scan::begin(connection, self.workspace, &self.query)? else { return Ok(true) };
        let bounds = scan.bounds()?;
        let piece = if let Some(piece) = self.piece {
            piece
        } else {
            let first = scan.first_in(&bounds)?.unwrap_or(*bounds.start());
            *self.piece.insert(place_of(first.cast_unsigned()).0)
        };
        // A piece of another workspace has no contacts of this one.
        let Ok(first) = i64::try_from(u128::from(piece) * u128::from(PIECE)) else { return Ok(true) };
        let last = number_at(piece, u16::MAX).cast_signed().min(*bounds.end());
        let mut start = self.start.unwrap_or(first).max(*bounds.start());
        // What was needed before does not count, so that every look gets somewhere.
        let began = Instant::now();
        while start <= last {
            let end = last.min(start + scan.step() - 1);
            scan.read(&(start..=end), &mut self.found)?;
            start = end + 1;
            self.start = Some(start);
            if start <= last && began.elapsed() >= look {
                return Ok(false);
            }
        }
        let rest = number_at(piece + 1, 0).cast_signed().max(*bounds.start())..=*bounds.end();
        self.next = scan.first_in(&rest)?.map(|next| place_of(next.cast_unsigned()).0);
        Ok(true)
    }

    pub(super) fn found(self) -> AudiencePiece {
        self.found.piece(self.piece.unwrap_or(0), self.next)
    }
}
