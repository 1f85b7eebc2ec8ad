//! The files that are in the program, as `build.rs` lists them.

use bytes::Bytes;

use super::found::{Compression, Found};

/// A file.
pub(super) struct Embedded {
    path: &'static str,
    bytes: &'static [u8],
    /// The same by gzip, where that is shorter.
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The files as they were written, with their paths.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().map(|file| (file.path, file.bytes))
}

/// The page, with the name of the set filled in.
pub(super) fn index(accepts_gzip: bool) -> Found {
    // Asked for again each time, so that it names the set of this program.
    INDEX.encoded(accepts_gzip, "no-cache")
}

/// A file of the set. Its folder is named by its content, so it can be kept for good.
pub(super) fn find(path: &str, accepts_gzip: bool) -> Option<Found> {
    let file = FILES.iter().find(|file| file.path == path)?;
    Some(file.encoded(accepts_gzip, "public, max-age=31536000, immutable"))
}

impl Embedded {
    fn encoded(&self, accepts_gzip: bool, caching: &'static str) -> Found {
        let (bytes, compression) = match self.gzip {
            Some(gzip) if accepts_gzip => (gzip, Compression::Gzip),
            Some(_) => (self.bytes, Compression::NotAsked),
            None => (self.bytes, Compression::Never),
        };
        Found { bytes: Bytes::from_static(bytes), compression, caching }
    }
}
