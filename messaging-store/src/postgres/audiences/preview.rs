//! Counting an audience without freezing it.
//!
//! As in the preview of a segment, contacts are examined in parts whose order spreads them over all contacts, so that
//! an audience too large for the time limit is estimated from contacts of every age.

use std::ops::RangeInclusive;
use std::time::Instant;

use messaging_core::domain::campaign::audience::{number_at, place_of};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};

use super::super::fault::Fault;
use super::super::query::{one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::count;
use super::super::segments::{Parts, contact_count};
use super::scan::Scan;
use super::walk::LOOK;
use crate::sampling::is_over;
use crate::tables::audiences::scanned_piece::ScannedPiece;
use crate::tables::audiences::tally::{Tally, nobody};

/// Approximate number of contacts in a part if no filter is evaluated.
const PART: i64 = 8192;
/// Approximate number of contacts in a part if filters are evaluated.
const FILTERED_PART: i64 = 512;

/// State of a preview: the parts to examine, and the counts so far.
struct PreviewProgress {
    parts: Parts,
    /// Number of contacts in the workspace.
    contacts: u64,
    /// Ranges of contact numbers that were examined.
    seen: Vec<RangeInclusive<i64>>,
    tally: Tally,
}

/// Counts the contacts of an audience by verdict, or estimates the counts once the time limit is over.
pub(super) async fn preview(
    reads: &Reads,
    workspace: WorkspaceId,
    query: &AudienceQuery,
) -> Result<AudiencePreview, Fault> {
    let began = Instant::now();
    let mut progress = None;
    loop {
        let mut on = reads.snapshot().await?;
        let is_all = go_on(&mut on, workspace, query, &mut progress).await?;
        if is_all || is_over(progress.as_ref().map_or(0, |progress| progress.contacts), began) {
            let preview = match progress {
                Some(progress) => progress.preview(&mut on, query).await?,
                None => nobody(),
            };
            on.end().await?;
            return Ok(preview);
        }
        on.end().await?;
    }
}

/// Examines more contacts, for about `LOOK`; returns true if none are left.
async fn go_on(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    progress: &mut Option<PreviewProgress>,
) -> Result<bool, Fault> {
    let Some(scan) = Scan::begin(on, workspace, query).await? else { return Ok(true) };
    let progress = match progress {
        Some(progress) => progress,
        None => progress.insert(PreviewProgress::begin(on, &scan).await?),
    };
    let began = Instant::now();
    while began.elapsed() < LOOK
        && let Some(part) = progress.parts.next()
    {
        progress.look(on, &scan, part).await?;
    }
    Ok(progress.parts.is_empty())
}

impl PreviewProgress {
    async fn begin(on: &mut Snapshot, scan: &Scan) -> Result<Self, Fault> {
        let contacts = contact_count(on, scan.workspace_number).await?;
        let of_each = if scan.evaluates() { FILTERED_PART } else { PART };
        let parts = Parts::new(on, scan.workspace_number, contacts, of_each).await?;
        Ok(Self { parts, contacts, seen: Vec::new(), tally: Tally::default() })
    }

    /// Examines the first contacts of a part, as far as they are in one piece of the audience; puts the rest back.
    async fn look(&mut self, on: &mut Snapshot, scan: &Scan, part: RangeInclusive<i64>) -> Result<(), Fault> {
        let (start, end) = part.into_inner();
        let Some(first) = scan.first_in(on, &(start..=end)).await? else {
            self.seen.push(start..=end);
            return Ok(());
        };
        let (piece, _) = place_of(first.cast_unsigned());
        let last = end.min(number_at(piece, u16::MAX).cast_signed());
        let mut scanned = ScannedPiece::default();
        let rest = scan.read(on, &(first..=last), &mut scanned).await?.unwrap_or(last + 1);
        self.seen.push(start..=rest - 1);
        if rest <= end {
            self.parts.put_back(rest..=end);
        }
        self.tally.add(scanned, piece);
        Ok(())
    }

    async fn preview(self, on: &mut Snapshot, query: &AudienceQuery) -> Result<AudiencePreview, Fault> {
        let is_part = !self.parts.is_empty();
        let part = if is_part { Some((self.contacts_seen(on).await?, self.contacts)) } else { None };
        Ok(self.tally.preview(query, part))
    }

    /// Returns the number of contacts in the ranges that were examined.
    async fn contacts_seen(&self, on: &mut Snapshot) -> Result<u64, Fault> {
        const SEEN: &str = "SELECT coalesce(sum(c.number), 0)::bigint
            FROM unnest($1::bigint[], $2::bigint[]) AS r (first, last)
            CROSS JOIN LATERAL (SELECT count(*) AS number FROM contacts WHERE n BETWEEN r.first AND r.last) c";
        let (first, last): (Vec<i64>, Vec<i64>) = self.seen.iter().map(|range| (*range.start(), *range.end())).unzip();
        Ok(one(on, SEEN, params![first, last], |row| count(row, 0)).await?.unwrap_or(0))
    }
}
