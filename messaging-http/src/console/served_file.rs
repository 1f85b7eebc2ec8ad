//! A file that is answered.

use bytes::Bytes;

/// A file and how it may be kept.
pub(super) struct ServedFile {
    pub(super) bytes: Bytes,
    pub(super) compression: Compression,
    pub(super) caching: &'static str,
}

/// How a file's bytes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// As they are, for everybody.
    Never,
    /// As they are; others, who take it, get them compressed.
    NotAsked,
    /// By gzip.
    Gzip,
}
