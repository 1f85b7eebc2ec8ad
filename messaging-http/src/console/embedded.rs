//! The files that are in the program, as `build.rs` lists them: compressed, and only so.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;

use super::served_file::{Compression, ServedFile};

/// A file, by gzip.
pub(super) struct Embedded {
    path: &'static str,
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The files as they were written, with their paths.
pub(super) fn files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    FILES.iter().map(|file| (file.path, file.plain()))
}

/// The page, with the name of the set filled in.
pub(super) fn index(accepts_gzip: bool) -> ServedFile {
    // Asked for again each time, so that it names the set of this program.
    INDEX.encoded(accepts_gzip, "no-cache")
}

/// A file of the set. Its folder is named by its content, so it can be kept for good.
pub(super) fn find(path: &str, accepts_gzip: bool) -> Option<ServedFile> {
    let file = FILES.iter().find(|file| file.path == path)?;
    Some(file.encoded(accepts_gzip, "public, max-age=31536000, immutable"))
}

impl Embedded {
    /// The bytes of the file, not compressed.
    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        // `build.rs` made it, and a test reads all of them.
        let _ = GzDecoder::new(self.gzip).read_to_end(&mut plain);
        plain
    }

    fn encoded(&self, accepts_gzip: bool, caching: &'static str) -> ServedFile {
        let (bytes, compression) = if accepts_gzip {
            (Bytes::from_static(self.gzip), Compression::Gzip)
        } else {
            (self.plain().into(), Compression::NotAsked)
        };
        ServedFile { bytes, compression, caching }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn files_are_what_was_written_without_lines_that_are_comments() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        for (path, bytes) in files() {
            let written = fs::read(folder.join(path)).unwrap();
            let is_script = Path::new(path).extension().is_some_and(|extension| extension == "js");
            if !is_script || path.starts_with("vendor/") {
                assert_eq!(written, bytes, "{path}");
                continue;
            }
            let (written, text) = (String::from_utf8(written).unwrap(), String::from_utf8(bytes).unwrap());
            let mut left = text.lines().peekable();
            for line in written.lines() {
                let is_comment = ["//", "/**", "*"].iter().any(|start| line.trim_start().starts_with(start));
                assert!(left.next_if_eq(&line).is_some() || is_comment, "{path}: {line}");
            }
            assert_eq!(left.next(), None, "{path}");
        }
    }
}
