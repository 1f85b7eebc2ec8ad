//! Audience of a campaign: one verdict for each contact that its lists and segments name.
//!
//! Contract sections 12.3 and 12.5. An audience is judged in pieces of 65,536 contact numbers, as sets of bits
//! ([`bits`]): lists, segments and suppressions each give a set, and [`Piece::judge`] puts each contact under the first
//! verdict that applies. [`verdict`] does the same for one contact, and tests compare the sets with it.

pub mod bits;

use std::collections::HashSet;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::bits::Bits;
use crate::domain::audience::contact::{AddressSource, Consent};
use crate::domain::channel::Channel;
use crate::domain::message::channel_content::ViberService;
use crate::ids::{Id as _, WorkspaceId};
use crate::time::Timestamp;

/// Number of contacts of a piece: their numbers have all but the last 16 bits in common.
pub const PIECE: u64 = 1 << 16;

/// Returns the piece that a contact's number belongs to, and its place in it.
#[expect(clippy::cast_possible_truncation, reason = "the last 16 bits")]
pub const fn place_of(number: u64) -> (u64, u16) {
    (number / PIECE, number as u16)
}

/// Returns the number of the contact at a place of a piece.
pub const fn number_at(piece: u64, place: u16) -> u64 {
    piece * PIECE + place as u64
}

/// Verdict on a contact that the lists and segments of a campaign name; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AudienceVerdict {
    /// The contact is on an excluded list.
    Excluded,
    /// The contact has no address for the channel.
    NoAddress,
    /// All addresses of the contact are suppressed.
    Suppressed,
    /// The contact has not agreed to marketing on the channel.
    NoConsent,
    /// Contacts that were created before have all addresses of the contact.
    Duplicate,
    /// The contact gets the campaign.
    Recipient,
}

impl AudienceVerdict {
    /// All of them, in the order in which they apply and of the stored numbers.
    pub const ALL: [Self; 6] =
        [Self::Excluded, Self::NoAddress, Self::Suppressed, Self::NoConsent, Self::Duplicate, Self::Recipient];
}

/// Set of contacts of a frozen audience; each is stored apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AudienceSet {
    /// Contacts that get nothing because of this verdict, which is never [`AudienceVerdict::Recipient`].
    Left(AudienceVerdict),
    /// Recipients that get the campaign at this time or later.
    Recipients(Timestamp),
    /// Recipients, of any time, who belong to the test group of an A/B test.
    TestGroup,
}

/// Facts that the verdict on one contact depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own; together they are the whole input")]
pub struct ContactFacts {
    /// True if the contact is on an excluded list.
    pub is_excluded: bool,
    /// True if the contact has an address for the channel.
    pub has_address: bool,
    /// True if all its addresses for the channel are suppressed.
    pub is_suppressed: bool,
    /// True if the contact agreed to marketing on the channel; see [`agrees`].
    pub has_consent: bool,
    /// True if contacts before it have taken all its addresses; see [`claim`].
    pub is_duplicate: bool,
}

/// Returns the verdict on one contact of the lists and segments.
pub const fn verdict(facts: ContactFacts) -> AudienceVerdict {
    match facts {
        ContactFacts { is_excluded: true, .. } => AudienceVerdict::Excluded,
        ContactFacts { has_address: false, .. } => AudienceVerdict::NoAddress,
        ContactFacts { is_suppressed: true, .. } => AudienceVerdict::Suppressed,
        ContactFacts { has_consent: false, .. } => AudienceVerdict::NoConsent,
        ContactFacts { is_duplicate: true, .. } => AudienceVerdict::Duplicate,
        _ => AudienceVerdict::Recipient,
    }
}

/// Returns true if a contact agreed to marketing on a channel; push and telegram need no consent.
pub fn agrees(channel: Channel, consent: Consent) -> bool {
    match channel {
        Channel::Email => consent.marketing_email == Some(true),
        Channel::Sms | Channel::Whatsapp | Channel::Viber => consent.sms == Some(true),
        Channel::Push | Channel::Telegram => true,
    }
}

/// Returns the addresses of a contact that no contact before it has; `None` if none is left, which makes it a
/// duplicate. To be called in the order of creation, and only for contacts to which no other verdict applies: a contact
/// that gets nothing takes no address.
pub fn claim<A: PartialEq>(addresses: Vec<A>, mut is_taken: impl FnMut(&A) -> bool) -> Option<Vec<A>> {
    let mut free: Vec<A> = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !free.contains(&address) && !is_taken(&address) {
            free.push(address);
        }
    }
    (!free.is_empty()).then_some(free)
}

/// Returns the digest of an address by which duplicates are found: the first 8 octets of SHA-256 of workspace, channel
/// and address. Two addresses of a million have the same with a probability of 3 in 100 million.
pub fn address_digest(workspace: WorkspaceId, channel: Channel, address: &str) -> u64 {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in [&workspace.to_bytes()[..], channel.as_str().as_bytes(), b"\0", address.as_bytes()] {
        context.update(part);
    }
    context.finish().as_ref().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// Returns true if several contacts may have the same address for a channel (on Viber: for the service that sends
/// there): identifiers are unique, attributes are not.
pub const fn shares_addresses(channel: Channel, viber: ViberService) -> bool {
    matches!(AddressSource::of(channel, viber), AddressSource::Attributes)
}

/// Facts about the contacts of a piece, one set for each. Only the contacts in `matched` count.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// Members of the lists and segments.
    pub matched: Bits,
    /// Members of excluded lists.
    pub excluded: Bits,
    /// Contacts with an address for the channel.
    pub addressed: Bits,
    /// Contacts whose addresses are all suppressed.
    pub suppressed: Bits,
    /// Contacts that agreed to marketing on the channel.
    pub consenting: Bits,
    /// Contacts whose addresses are all taken by contacts before them.
    pub duplicates: Bits,
}

/// Addresses of the recipients of a piece, on a channel where several contacts may have the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Digests of the addresses that these recipients take.
    pub taken: Vec<u64>,
    /// Places of recipients, with the digests of those of their addresses that contacts before them have taken: nothing
    /// is sent there.
    pub left_out: Vec<(u16, u64)>,
}

/// A piece sorted by verdict: the sets have nothing in common, and together they are all that matched.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    sets: [Bits; AudienceVerdict::ALL.len()],
}

impl Piece {
    /// Returns the contacts to which none of the first four verdicts applies; duplicates are looked for among them.
    pub fn candidates(&self) -> Bits {
        let mut left = self.matched.clone();
        left.remove_all(&self.excluded);
        left.keep_all(&self.addressed);
        left.remove_all(&self.suppressed);
        left.keep_all(&self.consenting);
        left
    }

    /// Finds the duplicates. `addresses` holds the digests of contacts of the piece in the order of their places,
    /// `taken` those that contacts of earlier pieces have taken. Returns the digests that this piece takes, which are
    /// added to `taken`, and those addresses of its recipients that others have taken.
    pub fn find_duplicates(&mut self, addresses: &[(u16, Vec<u64>)], taken: &mut HashSet<u64>) -> Claims {
        let candidates = self.candidates();
        let mut claims = Claims::default();
        for (place, digests) in addresses.iter().filter(|(place, _)| candidates.contains(*place)) {
            match claim(digests.clone(), |digest| taken.contains(digest)) {
                Some(free) => {
                    let others = digests.iter().filter(|digest| taken.contains(*digest));
                    claims.left_out.extend(others.map(|digest| (*place, *digest)));
                    taken.extend(&free);
                    claims.taken.extend(free);
                }
                None => self.duplicates.insert(*place),
            }
        }
        claims
    }

    /// Puts each contact under the first verdict that applies.
    pub fn judge(&self) -> Judged {
        let mut left = self.matched.clone();
        let mut take = |is_told: &dyn Fn(&mut Bits)| {
            let mut told = left.clone();
            is_told(&mut told);
            left.remove_all(&told);
            told
        };
        let excluded = take(&|bits| bits.keep_all(&self.excluded));
        let no_address = take(&|bits| bits.remove_all(&self.addressed));
        let suppressed = take(&|bits| bits.keep_all(&self.suppressed));
        let no_consent = take(&|bits| bits.remove_all(&self.consenting));
        let duplicates = take(&|bits| bits.keep_all(&self.duplicates));
        Judged { sets: [excluded, no_address, suppressed, no_consent, duplicates, left] }
    }
}

impl Judged {
    /// Returns the contacts under a verdict.
    pub const fn set(&self, verdict: AudienceVerdict) -> &Bits {
        &self.sets[verdict as usize]
    }

    /// Returns the verdict on the contact at a place; `None` if it did not match.
    pub fn verdict_at(&self, place: u16) -> Option<AudienceVerdict> {
        AudienceVerdict::ALL.into_iter().find(|verdict| self.set(*verdict).contains(place))
    }

    /// Returns the number of contacts by verdict.
    pub fn counts(&self) -> AudienceCounts {
        let of = |verdict| u64::from(self.set(verdict).len());
        AudienceCounts {
            recipients: of(AudienceVerdict::Recipient),
            excluded: of(AudienceVerdict::Excluded),
            no_address: of(AudienceVerdict::NoAddress),
            suppressed: of(AudienceVerdict::Suppressed),
            no_consent: of(AudienceVerdict::NoConsent),
            duplicates: of(AudienceVerdict::Duplicate),
        }
    }
}

/// Number of contacts under each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AudienceCounts {
    /// Contacts that get the campaign.
    pub recipients: u64,
    /// Members of excluded lists.
    pub excluded: u64,
    /// Contacts without an address.
    pub no_address: u64,
    /// Contacts whose addresses are suppressed.
    pub suppressed: u64,
    /// Contacts that have not agreed.
    pub no_consent: u64,
    /// Contacts whose addresses other contacts have.
    pub duplicates: u64,
}

impl AudienceCounts {
    /// Returns the number of contacts that the lists and segments name.
    pub const fn matched(&self) -> u64 {
        self.recipients + self.excluded + self.no_address + self.suppressed + self.no_consent + self.duplicates
    }

    /// Returns the answer to a preview; `exact` unless only some contacts were counted.
    pub const fn estimate(&self, exact: bool) -> Estimate {
        let Self { recipients, excluded, no_address, suppressed, no_consent, duplicates } = *self;
        let breakdown = Breakdown { matched: self.matched(), excluded, no_address, suppressed, no_consent, duplicates };
        Estimate { audience_estimate: recipients, exact, breakdown }
    }
}

impl AddAssign for AudienceCounts {
    fn add_assign(&mut self, other: Self) {
        self.recipients += other.recipients;
        self.excluded += other.excluded;
        self.no_address += other.no_address;
        self.suppressed += other.suppressed;
        self.no_consent += other.no_consent;
        self.duplicates += other.duplicates;
    }
}

impl Add for AudienceCounts {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// Estimated audience of a campaign, with the reasons why contacts would not get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AudienceEstimate")]
pub struct Estimate {
    /// Number of contacts that would get the campaign; an estimate unless `exact` is true.
    pub audience_estimate: u64,
    /// True if every contact was counted. Otherwise all numbers are estimated from a sample: a part of the breakdown
    /// that is 0 was not met in the sample, and a contact with the same address as another may count as a recipient.
    pub exact: bool,
    /// Verdicts on all contacts that the lists and segments name.
    pub breakdown: Breakdown,
}

/// Verdicts on all contacts that the lists and segments name: `matched` is the estimate and all others together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AudienceBreakdown")]
pub struct Breakdown {
    /// Members of the lists and segments.
    pub matched: u64,
    /// Members of excluded lists.
    pub excluded: u64,
    /// Contacts without an address.
    pub no_address: u64,
    /// Contacts whose addresses are suppressed.
    pub suppressed: u64,
    /// Contacts that have not agreed.
    pub no_consent: u64,
    /// Contacts whose addresses other contacts have.
    pub duplicates: u64,
}

#[cfg(test)]
mod tests;
