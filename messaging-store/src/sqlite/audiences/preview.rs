//! Counting an audience without freezing it.
//!
//! As in the preview of a segment, parts are examined that are spread over all contacts, so that an audience that is
//! too large for the time limit is estimated from all parts.

use std::sync::Arc;
use std::time::Instant;

use messaging_core::domain::campaign::audience::{PIECE, place_of};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};
use rusqlite::Connection;

use super::super::fault::Fault;
use super::scan::{LOOK, Scan};
use crate::sampling::{is_over, is_small, spread};
use crate::tables::audiences::scanned_piece::ScannedPiece;
use crate::tables::audiences::tally::{Tally, nobody};

/// A preview in progress: the question, and the result so far.
pub(super) struct Count {
    workspace: WorkspaceId,
    query: Arc<AudienceQuery>,
    progress: Option<PreviewProgress>,
}

struct PreviewProgress {
    /// Range of the numbers of contacts when counting began.
    first: i64,
    last: i64,
    /// The number of contacts in the workspace.
    contacts: u64,
    /// Number of contact numbers in a part.
    width: i64,
    /// Number of parts examined so far.
    parts: i64,
    /// Number of contact numbers in those parts.
    seen: i64,
    tally: Tally,
}

impl Count {
    pub(super) fn new(workspace: WorkspaceId, query: &Arc<AudienceQuery>) -> Self {
        Self { workspace, query: Arc::clone(query), progress: None }
    }

    /// Examines some more contacts; returns true if those were the last.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let connection = &*connection.unchecked_transaction()?;
        let Some(mut scan) = Scan::begin(connection, self.workspace, &self.query)? else { return Ok(true) };
        let progress = match &mut self.progress {
            Some(progress) => progress,
            None => self.progress.insert(PreviewProgress::begin(&scan)?),
        };
        let all = progress.parts_of_all();
        let began = Instant::now();
        while progress.parts < all {
            progress.look(&mut scan, spread(progress.parts, all))?;
            progress.parts += 1;
            if progress.parts < all && began.elapsed() >= LOOK {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if the preview ends with an estimate now: its time is over and the workspace is not small.
    pub(super) fn is_over(&self, began: Instant) -> bool {
        is_over(self.progress.as_ref().map_or(0, |progress| progress.contacts), began)
    }

    pub(super) fn preview(self) -> AudiencePreview {
        let Some(progress) = self.progress else { return nobody() };
        let is_part = progress.parts < progress.parts_of_all();
        let all = (progress.last - progress.first + 1).unsigned_abs();
        progress.tally.preview(&self.query, is_part.then(|| (progress.seen.unsigned_abs(), all)))
    }
}

impl PreviewProgress {
    fn begin(scan: &Scan<'_>) -> Result<Self, Fault> {
        let bounds = scan.bounds()?;
        let contacts = scan.contacts()?;
        Ok(Self {
            first: *bounds.start(),
            last: *bounds.end(),
            contacts,
            // Sets are stepped over as a whole; filters are evaluated contact by contact, of which few fit a step.
            width: if scan.evaluates() && !is_small(contacts) { scan.step() } else { PIECE.cast_signed() },
            parts: 0,
            seen: 0,
            tally: Tally::default(),
        })
    }

    const fn parts_of_all(&self) -> i64 {
        (self.last - self.first) / self.width + 1
    }

    fn look(&mut self, scan: &mut Scan<'_>, part: i64) -> Result<(), Fault> {
        let start = self.first + part * self.width;
        let end = self.last.min(start + self.width - 1);
        let mut scanned = ScannedPiece::default();
        scan.read(&(start..=end), &mut scanned)?;
        self.seen += end - start + 1;
        self.tally.add(scanned, place_of(start.cast_unsigned()).0);
        Ok(())
    }
}
