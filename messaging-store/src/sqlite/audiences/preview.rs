//! Counting an audience without freezing it.
//!
//! Like the preview of a segment: parts that are spread over all contacts, so that what is too large for the time is
//! estimated from everywhere.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use messaging_core::domain::campaign::audience::{AudienceCounts, PIECE, claim, shares_addresses};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};
use rusqlite::Connection;

use super::super::fault::Fault;
use super::scan::{Found, LOOK, Scan};
use crate::sampling::{estimated, is_over, is_small, scaled, spread};

/// More addresses than these are not compared with one another.
const MAX_ADDRESSES: usize = 100_000;

/// What is asked, and what was found so far.
pub(super) struct Count {
    workspace: WorkspaceId,
    query: Arc<AudienceQuery>,
    counted: Option<Counted>,
}

struct Counted {
    /// The numbers that contacts had when counting began.
    first: i64,
    last: i64,
    /// How many contacts there are.
    contacts: u64,
    /// How many numbers a part has.
    width: i64,
    /// How many parts were looked at.
    parts: i64,
    /// How many numbers stood in them.
    seen: i64,
    counts: AudienceCounts,
    /// Whoever nothing but a duplicate address could stop, and the addresses.
    addresses: Vec<(i64, Vec<u64>)>,
    /// How many addresses these are.
    kept: usize,
}

impl Count {
    pub(super) fn new(workspace: WorkspaceId, query: &Arc<AudienceQuery>) -> Self {
        Self { workspace, query: Arc::clone(query), counted: None }
    }

    /// Looks at some more contacts; answers whether that was all.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        let connection = &*connection.unchecked_transaction()?;
        let Some(mut scan) = Scan::begin(connection, self.workspace, &self.query)? else { return Ok(true) };
        let counted = match &mut self.counted {
            Some(counted) => counted,
            None => self.counted.insert(Counted::begin(&scan)?),
        };
        let all = counted.parts_of_all();
        let began = Instant::now();
        while counted.parts < all {
            counted.look(&mut scan, spread(counted.parts, all))?;
            counted.parts += 1;
            if counted.parts < all && began.elapsed() >= LOOK {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether what was counted since then is enough for an estimate.
    pub(super) fn is_over(&self, began: Instant) -> bool {
        is_over(self.counted.as_ref().map_or(0, |counted| counted.contacts), began)
    }

    pub(super) fn preview(self) -> AudiencePreview {
        let shares = shares_addresses(self.query.channel, self.query.viber);
        let Some(counted) = self.counted else {
            return AudiencePreview { counts: AudienceCounts::default(), exact: true, knows_duplicates: true };
        };
        let exact = counted.parts == counted.parts_of_all();
        let knows_duplicates = !shares || (exact && counted.kept <= MAX_ADDRESSES);
        let mut counts = if exact { counted.counts } else { counted.estimate() };
        if shares && knows_duplicates {
            counts.duplicates = duplicates(counted.addresses);
            counts.recipients -= counts.duplicates;
        }
        AudiencePreview { counts, exact, knows_duplicates }
    }
}

impl Counted {
    fn begin(scan: &Scan<'_>) -> Result<Self, Fault> {
        let bounds = scan.bounds()?;
        let contacts = scan.contacts()?;
        Ok(Self {
            first: *bounds.start(),
            last: *bounds.end(),
            contacts,
            // A set is passed by as a whole; filters are evaluated one contact at a time, which few contacts stand.
            width: if scan.evaluates() && !is_small(contacts) { scan.step() } else { PIECE.cast_signed() },
            parts: 0,
            seen: 0,
            counts: AudienceCounts::default(),
            addresses: Vec::new(),
            kept: 0,
        })
    }

    const fn parts_of_all(&self) -> i64 {
        (self.last - self.first) / self.width + 1
    }

    fn look(&mut self, scan: &mut Scan<'_>, part: i64) -> Result<(), Fault> {
        let start = self.first + part * self.width;
        let end = self.last.min(start + self.width - 1);
        let mut found = Found::default();
        scan.read(&(start..=end), &mut found)?;
        self.seen += end - start + 1;
        if !found.facts.matched.is_empty() {
            self.counts += found.facts.judge().counts();
        }
        if self.kept <= MAX_ADDRESSES && !found.addresses.is_empty() {
            let candidates = found.facts.candidates();
            let piece = start - start % PIECE.cast_signed();
            for (place, digests) in found.addresses {
                if candidates.contains(place) {
                    self.kept += digests.len();
                    self.addresses.push((piece + i64::from(place), digests));
                }
            }
        }
        Ok(())
    }

    fn estimate(&self) -> AudienceCounts {
        let all = (self.last - self.first + 1).unsigned_abs();
        let of = |count| scaled(count, all, self.seen.unsigned_abs());
        let AudienceCounts { recipients, excluded, no_address, suppressed, no_consent, duplicates } = self.counts;
        AudienceCounts {
            recipients: estimated(recipients, all, self.seen.unsigned_abs()),
            excluded: of(excluded),
            no_address: of(no_address),
            suppressed: of(suppressed),
            no_consent: of(no_consent),
            duplicates: of(duplicates),
        }
    }
}

/// How many have only addresses that contacts before them have.
fn duplicates(mut addresses: Vec<(i64, Vec<u64>)>) -> u64 {
    addresses.sort_unstable_by_key(|(contact, _)| *contact);
    let mut taken = HashSet::new();
    let mut duplicates = 0;
    for (_, digests) in addresses {
        match claim(digests, |digest| taken.contains(digest)) {
            Some(free) => taken.extend(free),
            None => duplicates += 1,
        }
    }
    duplicates
}
