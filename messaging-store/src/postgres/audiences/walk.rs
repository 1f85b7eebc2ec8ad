//! Reading a piece of an audience, a snapshot at a time.

use std::ops::RangeInclusive;
use std::time::Duration;

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePiece, AudienceQuery};

use super::super::fault::Fault;
use super::super::reads::{Reads, Snapshot};
use super::scan::Scan;
use crate::tables::audiences::scanned_piece::ScannedPiece;
use crate::tables::audiences::walk::{Scanning, Walk};

/// Maximum time for reading one snapshot.
pub(super) const LOOK: Duration = Duration::from_millis(100);

struct InSnapshot<'a> {
    scan: Scan,
    on: &'a mut Snapshot,
}

impl Scanning for InSnapshot<'_> {
    async fn bounds(&mut self) -> Result<RangeInclusive<i64>, Fault> {
        self.scan.bounds(self.on).await
    }

    async fn first_in(&mut self, range: &RangeInclusive<i64>) -> Result<Option<i64>, Fault> {
        self.scan.first_in(self.on, range).await
    }

    async fn read_first(
        &mut self,
        range: &RangeInclusive<i64>,
        scanned: &mut ScannedPiece,
    ) -> Result<Option<i64>, Fault> {
        self.scan.read(self.on, range, scanned).await
    }
}

/// Returns the facts about the contacts of a piece; `None` stands for the first piece with a contact that may match.
pub(super) async fn piece(
    reads: &Reads,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    piece: Option<u64>,
) -> Result<AudiencePiece, Fault> {
    let mut walk = Walk::new(piece);
    loop {
        let mut on = reads.snapshot().await?;
        let is_all = match Scan::begin(&mut on, workspace, query).await? {
            Some(scan) => walk.go_on(&mut InSnapshot { scan, on: &mut on }, LOOK).await?,
            None => true,
        };
        on.end().await?;
        if is_all {
            return Ok(walk.into_piece());
        }
    }
}
