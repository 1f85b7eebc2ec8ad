//! Places to go on from, as stores name them.

use serde::{Deserialize, Serialize};

/// A place in a listing, in the log of events or in a piece of upkeep: what comes after it is asked for next.
///
/// Only the store that made it knows what its 16 bytes mean (an id, a row's number, a transaction's): nobody else
/// makes one, orders two or counts with them. It is kept in payloads of jobs and, sealed, handed to callers, so a store
/// goes on understanding those that earlier versions of it made. One that comes from elsewhere leads to some other
/// place of the same listing and never out of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreCursor([u8; 16]);

impl StoreCursor {
    /// For stores: a place, in bytes that only the store reads again.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes that it was made of, to be kept or sealed.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}
