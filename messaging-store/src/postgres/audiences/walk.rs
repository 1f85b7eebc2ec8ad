//! Reading a piece of an audience.
//!
//! A look is one snapshot, and all that is told of a contact is found in one look. So a piece is of one moment unless it
//! takes longer than a look, as it may with filters; then its contacts are, as are those of two pieces. Holding one
//! snapshot for as long as slow filters take would keep the database from tidying up.

use std::time::{Duration, Instant};

use messaging_core::domain::campaign::audience::{PIECE, number_at, place_of};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePiece, AudienceQuery};

use super::super::fault::Fault;
use super::super::reads::{Reads, Snapshot};
use super::scan::Scan;
use crate::tables::audiences::found::Found;

/// How long one snapshot may be looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// What is asked, and what was found so far.
struct Walk<'a> {
    workspace: WorkspaceId,
    query: &'a AudienceQuery,
    piece: Option<u64>,
    /// The first number that was not looked at.
    start: Option<i64>,
    found: Found,
    next: Option<u64>,
}

/// What is known of the contacts of a piece; of the first one in which somebody may match with `None`.
pub(super) async fn piece(
    reads: &Reads,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    piece: Option<u64>,
) -> Result<AudiencePiece, Fault> {
    let mut walk = Walk { workspace, query, piece, start: None, found: Found::default(), next: None };
    loop {
        let mut on = reads.snapshot().await?;
        let is_all = walk.go_on(&mut on).await?;
        on.end().await?;
        if is_all {
            return Ok(walk.found());
        }
    }
}

impl Walk<'_> {
    /// Looks at some more contacts; answers whether that was all.
    async fn go_on(&mut self, on: &mut Snapshot) -> Result<bool, Fault> {
        let Some(scan) = Scan::begin(on, self.workspace, self.query).await? else { return Ok(true) };
        let bounds = scan.bounds(on).await?;
        let piece = if let Some(piece) = self.piece {
            piece
        } else {
            let first = scan.first_in(on, &bounds).await?.unwrap_or(*bounds.start());
            *self.piece.insert(place_of(first.cast_unsigned()).0)
        };
        // A piece of another workspace has no contacts of this one.
        let Ok(first) = i64::try_from(u128::from(piece) * u128::from(PIECE)) else { return Ok(true) };
        let last = number_at(piece, u16::MAX).cast_signed().min(*bounds.end());
        let mut start = self.start.unwrap_or(first).max(*bounds.start());
        // What was needed before does not count, so that every look gets somewhere.
        let began = Instant::now();
        while start <= last {
            let rest = scan.read(on, &(start..=last), &mut self.found).await?;
            let Some(rest) = rest else { break };
            start = rest;
            self.start = Some(start);
            if began.elapsed() >= LOOK {
                return Ok(false);
            }
        }
        let rest = number_at(piece + 1, 0).cast_signed().max(*bounds.start())..=*bounds.end();
        self.next = scan.first_in(on, &rest).await?.map(|next| place_of(next.cast_unsigned()).0);
        Ok(true)
    }

    fn found(self) -> AudiencePiece {
        self.found.piece(self.piece.unwrap_or(0), self.next)
    }
}
