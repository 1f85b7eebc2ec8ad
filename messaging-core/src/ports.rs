//! What core needs from outside, as traits.

pub mod clock;
pub mod transport;
