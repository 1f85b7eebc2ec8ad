//! Counts of a preview of an audience.

use std::collections::HashSet;

use messaging_core::domain::campaign::audience::{AudienceCounts, claim, number_at, shares_addresses};
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};

use super::scanned_piece::ScannedPiece;
use crate::sampling::{estimated, scaled};

/// Number of addresses up to which duplicates are searched for.
const MAX_ADDRESSES: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: AudienceCounts,
    /// Contacts whom nothing but a duplicate address may exclude, with the digests of their addresses.
    addresses: Vec<(u64, Vec<u64>)>,
    /// Number of digests in `addresses`.
    kept: usize,
}

impl Tally {
    /// Adds the counts of a piece.
    pub(crate) fn add(&mut self, scanned: ScannedPiece, piece: u64) {
        if !scanned.facts.matched.is_empty() {
            self.counts += scanned.facts.judge().counts();
        }
        if self.kept <= MAX_ADDRESSES && !scanned.addresses.is_empty() {
            let candidates = scanned.facts.candidates();
            for (place, digests) in scanned.addresses {
                if candidates.contains(place) {
                    self.kept += digests.len();
                    self.addresses.push((number_at(piece, place), digests));
                }
            }
        }
    }

    /// Result of the preview. `part` is the number of contacts examined and the number of all, by which counts are
    /// estimated; `None` if all were examined.
    pub(crate) fn preview(self, query: &AudienceQuery, part: Option<(u64, u64)>) -> AudiencePreview {
        let shares = shares_addresses(query.channel, query.viber);
        let exact = part.is_none();
        let knows_duplicates = !shares || (exact && self.kept <= MAX_ADDRESSES);
        let mut counts = part.map_or(self.counts, |(seen, all)| estimate(self.counts, seen, all));
        if shares && knows_duplicates {
            counts.duplicates = duplicates(self.addresses);
            counts.recipients -= counts.duplicates;
        }
        AudiencePreview { counts, exact, knows_duplicates }
    }
}

/// The preview of a workspace without contacts.
pub(crate) fn nobody() -> AudiencePreview {
    AudiencePreview { counts: AudienceCounts::default(), exact: true, knows_duplicates: true }
}

fn estimate(counts: AudienceCounts, seen: u64, all: u64) -> AudienceCounts {
    let of = |count| scaled(count, all, seen);
    let AudienceCounts { recipients, excluded, no_address, suppressed, no_consent, duplicates } = counts;
    AudienceCounts {
        recipients: estimated(recipients, all, seen),
        excluded: of(excluded),
        no_address: of(no_address),
        suppressed: of(suppressed),
        no_consent: of(no_consent),
        duplicates: of(duplicates),
    }
}

/// Number of contacts all of whose addresses belong to earlier contacts.
fn duplicates(mut addresses: Vec<(u64, Vec<u64>)>) -> u64 {
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
