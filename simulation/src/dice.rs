//! The only source of randomness of a run.

use std::time::Duration;

/// Repeatable random numbers: `SplitMix64`.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A sequence that depends on `seed` and `stream` alone.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut dice = Self(seed ^ stream.wrapping_mul(0xA076_1D64_78BD_642F));
        dice.next();
        dice
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// An index into a list of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// Returns true `per_mille` times in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// A span from `least` to `most` seconds, in milliseconds.
    pub(crate) fn span(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least * 1000 + self.below((most - least) * 1000 + 1))
    }
}
