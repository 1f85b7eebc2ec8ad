//! Facts about the contacts of one piece of an audience.

use std::collections::HashMap;

use messaging_core::domain::audience::contact::Consent;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{ContactFacts, Piece, address_digest, agrees};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::audiences::AudiencePiece;

#[derive(Debug, Default)]
pub(crate) struct ScannedPiece {
    pub(crate) facts: Piece,
    zones: HashMap<String, Bits>,
    pub(crate) addresses: Vec<(u16, Vec<u64>)>,
}

impl ScannedPiece {
    /// Notes a contact that matches, without its addresses.
    pub(crate) fn note(&mut self, place: u16, channel: Channel, consent: Option<bool>, zone: Option<&str>) {
        self.facts.matched.insert(place);
        if agrees(channel, Consent { marketing_email: consent, sms: consent }) {
            self.facts.consenting.insert(place);
        }
        let Some(zone) = zone else { return };
        match self.zones.get_mut(zone) {
            Some(bits) => bits.insert(place),
            None => drop(self.zones.insert(zone.to_owned(), Bits::from_iter([place]))),
        }
    }

    /// Notes that a contact has addresses in its attributes; `free` are those that are not suppressed.
    pub(crate) fn note_addresses<'a>(
        &mut self,
        place: u16,
        (workspace, channel): (WorkspaceId, Channel),
        free: impl Iterator<Item = &'a String>,
    ) {
        self.facts.addressed.insert(place);
        let digests: Vec<u64> = free.map(|address| address_digest(workspace, channel, address)).collect();
        if digests.is_empty() {
            self.facts.suppressed.insert(place);
        } else {
            self.addresses.push((place, digests));
        }
    }

    /// Facts about one contact; `None` if it does not match.
    pub(crate) fn facts_at(&self, place: u16) -> Option<ContactFacts> {
        let facts = &self.facts;
        facts.matched.contains(place).then(|| ContactFacts {
            is_excluded: facts.excluded.contains(place),
            has_address: facts.addressed.contains(place),
            is_suppressed: facts.suppressed.contains(place),
            has_consent: facts.consenting.contains(place),
            is_duplicate: false,
        })
    }

    /// Returns the piece; `next` is the number of the piece that follows.
    pub(crate) fn piece(self, piece: u64, next: Option<u64>) -> AudiencePiece {
        let mut zones: Vec<_> = self.zones.into_iter().collect();
        zones.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        AudiencePiece { piece, facts: self.facts, zones, addresses: self.addresses, next }
    }
}
