//! Set of places of a piece, which has 65,536 of them.
//!
//! In memory it is a bitmap of 8 KiB, so that set operations on whole pieces are loops over words. Stored it is the
//! shortest of the bitmap, the sorted list of its places, and the sorted list of the places not in it, with 16 bits a
//! place. This is one container of a Roaring bitmap without what those need to hold many: a key of pieces, headers, and
//! containers that change their kind. The crate `roaring` would add those bytes to each row, and its containers are
//! private.

use std::fmt;

/// Bits of a word.
const WORD: usize = 64;

/// Words of a set.
const WORDS: usize = 1024;

/// Bytes of a stored bitmap.
const BITMAP_BYTES: usize = WORDS * 8;

/// A set of places.
#[derive(Clone, PartialEq, Eq)]
pub struct Bits {
    words: Box<[u64]>,
}

/// Error: the bytes are neither a bitmap nor a rising list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a stored set of places")]
pub struct MalformedBits;

impl Default for Bits {
    fn default() -> Self {
        Self { words: vec![0; WORDS].into_boxed_slice() }
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({} of 65536)", self.len())
    }
}

impl FromIterator<u16> for Bits {
    fn from_iter<I: IntoIterator<Item = u16>>(places: I) -> Self {
        let mut bits = Self::default();
        for place in places {
            bits.insert(place);
        }
        bits
    }
}

const fn word_and_bit(place: u16) -> (usize, u64) {
    (place as usize / WORD, 1 << (place as usize % WORD))
}

#[expect(clippy::cast_possible_truncation, reason = "there are 65,536 bits")]
const fn place_at(word: usize, bit: u32) -> u16 {
    (word * WORD) as u16 + bit as u16
}

impl Bits {
    /// Returns the set of all places.
    pub fn full() -> Self {
        Self { words: vec![u64::MAX; WORDS].into_boxed_slice() }
    }

    /// Adds a place.
    pub fn insert(&mut self, place: u16) {
        let (word, bit) = word_and_bit(place);
        self.words[word] |= bit;
    }

    /// Removes a place.
    pub fn remove(&mut self, place: u16) {
        let (word, bit) = word_and_bit(place);
        self.words[word] &= !bit;
    }

    /// Returns true if a place is in the set.
    pub fn contains(&self, place: u16) -> bool {
        let (word, bit) = word_and_bit(place);
        self.words[word] & bit != 0
    }

    /// Returns the number of places in the set, 0 to 65,536.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns true if no place is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Adds the places of another set.
    pub fn add_all(&mut self, other: &Self) {
        self.each(other, |mine, theirs| mine | theirs);
    }

    /// Keeps only the places that are in another set too.
    pub fn keep_all(&mut self, other: &Self) {
        self.each(other, |mine, theirs| mine & theirs);
    }

    /// Removes the places of another set.
    pub fn remove_all(&mut self, other: &Self) {
        self.each(other, |mine, theirs| mine & !theirs);
    }

    fn each(&mut self, other: &Self, word: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine = word(*mine, *theirs);
        }
    }

    /// Returns the number of places in the set that are less than `place`.
    pub fn rank(&self, place: u16) -> u32 {
        let (word, bit) = word_and_bit(place);
        let whole: u32 = self.words[..word].iter().map(|word| word.count_ones()).sum();
        whole + (self.words[word] & (bit - 1)).count_ones()
    }

    /// Returns the place with `rank` places of the set before it: the first for 0.
    pub fn select(&self, rank: u32) -> Option<u16> {
        let mut left = rank;
        for (index, word) in self.words.iter().enumerate() {
            let here = word.count_ones();
            if left < here {
                let mut rest = *word;
                for _ in 0..left {
                    rest &= rest - 1;
                }
                return Some(place_at(index, rest.trailing_zeros()));
            }
            left -= here;
        }
        None
    }

    /// Iterates over the places from `from` on, rising.
    pub fn iter_from(&self, from: u16) -> impl Iterator<Item = u16> + '_ {
        let (first, bit) = word_and_bit(from);
        let words = self.words.iter().copied().enumerate().skip(first);
        words.flat_map(move |(index, word)| {
            let mut rest = if index == first { word & !(bit - 1) } else { word };
            std::iter::from_fn(move || {
                let place = (rest != 0).then(|| place_at(index, rest.trailing_zeros()))?;
                rest &= rest - 1;
                Some(place)
            })
        })
    }

    /// Iterates over the places, rising.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.iter_from(0)
    }

    /// Returns the set of all places that are not in this one.
    pub fn complement(&self) -> Self {
        Self { words: self.words.iter().map(|word| !word).collect() }
    }

    /// Encodes the set for storage: as a sorted list of places while that is shorter than the bitmap, else as the list
    /// of the places that are not in the set and a zero while that is shorter, else as the bitmap; 8 KiB at most.
    /// Integers are little-endian. The length tells which form it is.
    pub fn encode(&self) -> Vec<u8> {
        let list = |of: &Self| of.iter().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let length = self.len() as usize;
        if length * 2 < BITMAP_BYTES {
            list(self)
        } else if (WORDS * WORD - length) * 2 + 1 < BITMAP_BYTES {
            let mut bytes = list(&self.complement());
            bytes.push(0);
            bytes
        } else {
            self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
        }
    }

    /// Decodes a set that [`Bits::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedBits> {
        if bytes.len() == BITMAP_BYTES {
            let (words, _) = bytes.as_chunks::<8>();
            return Ok(Self { words: words.iter().map(|word| u64::from_le_bytes(*word)).collect() });
        }
        let (places, rest) = bytes.as_chunks::<2>();
        let places = || places.iter().map(|place| u16::from_le_bytes(*place));
        let rises = places().zip(places().skip(1)).all(|(one, next)| one < next);
        match rest {
            [] if bytes.len() < BITMAP_BYTES && rises => Ok(places().collect()),
            [0] if bytes.len() < BITMAP_BYTES && rises => Ok(places().collect::<Self>().complement()),
            _ => Err(MalformedBits),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_shorter_form_is_stored() {
        let every = |step: usize| (0..=u16::MAX).step_by(step).collect::<Bits>();
        assert_eq!(Bits::default().encode().len(), 0);
        assert_eq!(Bits::full().encode(), [0]);
        assert_eq!(every(16).len(), 4096);
        assert_eq!(every(16).encode().len(), 8192);
        let mut one_less = every(16);
        one_less.remove(0);
        assert_eq!(one_less.encode().len(), 8190);
        assert_eq!(every(17).complement().encode().len(), every(17).encode().len() + 1);
        assert_eq!(every(16).complement().encode().len(), 8192);
        assert_eq!(one_less.complement().encode().len(), 8191);
        for bits in [Bits::default(), Bits::full(), every(16), one_less, every(17), every(1000)] {
            assert_eq!(Bits::decode(&bits.complement().encode()), Ok(bits.complement()));
            assert_eq!(Bits::decode(&bits.encode()), Ok(bits));
        }
    }

    #[test]
    fn what_was_not_stored_is_refused() {
        for bytes in [&[1_u8][..], &[1, 0, 1, 0], &[2, 0, 1, 0, 0], &[0; 8190], &[0; 8194], &[0; 8191], &[0; 8193]] {
            assert_eq!(Bits::decode(bytes), Err(MalformedBits), "{}", bytes.len());
        }
    }

    #[test]
    fn the_ends_are_places_like_others() {
        let bits: Bits = [0, 63, 64, u16::MAX].into_iter().collect();
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, u16::MAX]);
        assert_eq!(bits.iter_from(u16::MAX).collect::<Vec<_>>(), [u16::MAX]);
        assert_eq!((bits.rank(u16::MAX), bits.select(3), bits.select(4)), (3, Some(u16::MAX), None));
        assert_eq!((Bits::full().len(), Bits::full().select(65_535)), (65_536, Some(u16::MAX)));
    }

    /// Sets from a few to very many places, in clusters and spread.
    fn places() -> impl Strategy<Value = BTreeSet<u16>> {
        let spread = prop::collection::btree_set(any::<u16>(), 0..300);
        let runs = prop::collection::vec((any::<u16>(), 0_u16..6000), 0..4).prop_map(|runs| {
            runs.into_iter().flat_map(|(start, length)| start..=start.saturating_add(length)).collect::<BTreeSet<_>>()
        });
        (spread, runs).prop_map(|(mut spread, runs)| {
            spread.extend(runs);
            spread
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sets_are_sets(one in places(), other in places(), from in any::<u16>(), rank in 0_usize..7000) {
            let (a, b): (Bits, Bits) = (one.iter().copied().collect(), other.iter().copied().collect());
            prop_assert_eq!(Bits::decode(&a.encode()), Ok(a.clone()));
            prop_assert_eq!(a.len() as usize, one.len());
            prop_assert_eq!(Bits::decode(&a.complement().encode()), Ok(a.complement()));
            prop_assert_eq!(a.complement().complement(), a.clone());
            prop_assert!(a.iter().eq(one.iter().copied()));
            prop_assert!(a.iter_from(from).eq(one.range(from..).copied()));
            prop_assert_eq!(a.rank(from) as usize, one.range(..from).count());
            prop_assert_eq!(a.select(u32::try_from(rank).unwrap()), one.iter().nth(rank).copied());
            let after = |change: fn(&mut Bits, &Bits)| {
                let mut changed = a.clone();
                change(&mut changed, &b);
                changed.iter().collect::<BTreeSet<_>>()
            };
            prop_assert_eq!(after(Bits::add_all), &one | &other);
            prop_assert_eq!(after(Bits::keep_all), &one & &other);
            prop_assert_eq!(after(Bits::remove_all), &one - &other);
        }
    }
}
