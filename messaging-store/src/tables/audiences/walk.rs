//! Reading a piece of an audience.
//!
//! A look is one snapshot, and all facts about a contact are found in one look. So a piece is of one moment unless it
//! takes longer than a look, as it may with filters; then each contact is of one moment, but not all of the same, and
//! the same holds for two pieces. Holding one snapshot for as long as slow filters take would keep the database from
//! cleaning up.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use messaging_core::domain::campaign::audience::{PIECE, number_at, place_of};
use messaging_core::ports::store::audiences::AudiencePiece;

use super::scanned_piece::ScannedPiece;
use crate::fault::Fault;

/// Finds the contacts of an audience, in one snapshot.
pub(crate) trait Scanning {
    /// Range of the numbers of the contacts of the workspace, up to the newest.
    async fn bounds(&mut self) -> Result<RangeInclusive<i64>, Fault>;

    /// Returns the first contact of a range that may match.
    async fn first_in(&mut self, range: &RangeInclusive<i64>) -> Result<Option<i64>, Fault>;

    /// Adds the facts about the first contacts of a range, which belong to one piece. Returns the start of the rest of
    /// the range; `None` if the range is done.
    async fn read_first(
        &mut self,
        range: &RangeInclusive<i64>,
        scanned: &mut ScannedPiece,
    ) -> Result<Option<i64>, Fault>;
}

/// Facts found so far about a piece; `None` stands for the first piece with a contact that may match.
pub(crate) struct Walk {
    piece: Option<u64>,
    /// The first contact number that was not examined.
    start: Option<i64>,
    scanned: ScannedPiece,
    next: Option<u64>,
}

impl Walk {
    pub(crate) fn new(piece: Option<u64>) -> Self {
        Self { piece, start: None, scanned: ScannedPiece::default(), next: None }
    }

    /// Examines some more contacts; returns true if those were the last.
    pub(crate) async fn go_on(&mut self, scan: &mut impl Scanning, look: Duration) -> Result<bool, Fault> {
        let bounds = scan.bounds().await?;
        let piece = if let Some(piece) = self.piece {
            piece
        } else {
            let first = scan.first_in(&bounds).await?.unwrap_or(*bounds.start());
            *self.piece.insert(place_of(first.cast_unsigned()).0)
        };
        // A piece of another workspace has no contacts of this one.
        let Ok(first) = i64::try_from(u128::from(piece) * u128::from(PIECE)) else { return Ok(true) };
        let last = number_at(piece, u16::MAX).cast_signed().min(*bounds.end());
        let mut start = self.start.unwrap_or(first).max(*bounds.start());
        // The preparation does not count, so that every look makes progress.
        let began = Instant::now();
        while start <= last {
            let Some(rest) = scan.read_first(&(start..=last), &mut self.scanned).await? else { break };
            start = rest;
            self.start = Some(start);
            if began.elapsed() >= look {
                return Ok(false);
            }
        }
        let rest = number_at(piece + 1, 0).cast_signed().max(*bounds.start())..=*bounds.end();
        self.next = scan.first_in(&rest).await?.map(|next| place_of(next.cast_unsigned()).0);
        Ok(true)
    }

    pub(crate) fn into_piece(self) -> AudiencePiece {
        self.scanned.piece(self.piece.unwrap_or(0), self.next)
    }
}
