//! Cursors of listings, as stores make them.

use serde::{Deserialize, Serialize};

/// A position in a listing, in the log of events or in a piece of upkeep, after which the next read begins.
///
/// Only the store that made it knows the meaning of its 16 bytes (an id, a row's number, a transaction's): no other
/// code makes one, orders two or calculates with them. It is kept in payloads of jobs and, sealed, given to callers, so
/// a store still accepts cursors of its earlier versions. A cursor from another source leads to some other position of
/// the same listing and never out of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreCursor([u8; 16]);

impl StoreCursor {
    /// Returns the cursor of a position, in bytes that only the store reads again.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes, to be kept or sealed.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}
