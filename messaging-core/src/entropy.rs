//! Randomness as a value that is passed in, so that tests can repeat it.

use std::fmt::Debug;
use std::sync::Mutex;

use ring::rand::{SecureRandom, SystemRandom};

/// Fills buffers with unpredictable bytes.
///
/// ```
/// use messaging_core::entropy::{Entropy, SeededEntropy};
///
/// let (mut one, mut other) = ([0; 16], [0; 16]);
/// SeededEntropy::new(7).fill(&mut one);
/// SeededEntropy::new(7).fill(&mut other);
/// assert_eq!(one, other);
/// ```
pub trait Entropy: Debug + Send + Sync {
    /// Fills the whole buffer.
    fn fill(&self, buffer: &mut [u8]);
}

/// The operating system's generator.
#[derive(Debug)]
pub struct SystemEntropy(SystemRandom);

impl Default for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the port")]
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.fill(buffer).expect("the operating system provides randomness");
    }
}

/// Repeatable bytes; for tests and simulations, and never the source of a secret.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<u64>);

impl SeededEntropy {
    /// A sequence that depends on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in buffer.chunks_mut(8) {
            // SplitMix64.
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = *state;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^= word >> 31;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}
