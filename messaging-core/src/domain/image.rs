//! Images of a workspace, which its mail shows by their address.
//!
//! Contract section 26. The type of an image and its size in pixels are read from its first octets ([`header`]): the
//! type that a client declares is not used, because browsers show the served images.

pub mod header;

use serde::{Deserialize, Serialize};

use self::header::{ImageHeader, ImageType};
use crate::ids::{ImageId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum size of an image, in bytes (contract section 26).
pub const MAX_BYTES: usize = 5 << 20;
/// Maximum number of images of a workspace. The contract sets no limit.
pub const MAX_IMAGES: u64 = 1_000;
/// Maximum size of all images of a workspace, in bytes. The contract sets no limit; they are in the database.
pub const MAX_TOTAL_BYTES: u64 = 250 << 20;

/// An image as stored, without its octets, which never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its id.
    pub id: ImageId,
    /// Workspace that owns the image.
    pub workspace_id: WorkspaceId,
    /// Type, read from its octets.
    pub kind: ImageType,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 digest of its octets in 64 hexadecimal digits, lower case. The same octets are one image.
    pub sha256: String,
    /// Time of the upload.
    pub created_at: Timestamp,
}

impl Image {
    /// Returns the image with this header and these octets, uploaded at a time.
    pub fn new(id: ImageId, workspace_id: WorkspaceId, header: ImageHeader, octets: &[u8], now: Timestamp) -> Self {
        let ImageHeader { kind, width, height } = header;
        Self {
            id,
            workspace_id,
            kind,
            width,
            height,
            bytes: octets.len() as u64,
            sha256: sha256(octets),
            created_at: now,
        }
    }
}

/// Returns the SHA-256 digest of octets in hexadecimal digits.
pub fn sha256(octets: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, octets);
    digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Space that the images of a workspace take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageUsage {
    /// Number of images.
    pub images: u64,
    /// Their length in bytes, all together.
    pub bytes: u64,
}

impl ImageUsage {
    /// True if the limits of a workspace allow one more image of this length.
    pub const fn has_room_for(self, bytes: u64) -> bool {
        self.images < MAX_IMAGES && self.bytes + bytes <= MAX_TOTAL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_room_up_to_either_limit() {
        let used = |images, bytes| ImageUsage { images, bytes };
        assert!(used(0, 0).has_room_for(1));
        assert!(used(MAX_IMAGES - 1, 0).has_room_for(1));
        assert!(!used(MAX_IMAGES, 0).has_room_for(1));
        assert!(used(1, MAX_TOTAL_BYTES - 1).has_room_for(1));
        assert!(!used(1, MAX_TOTAL_BYTES).has_room_for(1));
    }

    #[test]
    fn a_digest_has_64_digits() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
