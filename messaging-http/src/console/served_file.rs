//! A file of the console, as it is answered.

use bytes::Bytes;

/// A file, and for how long it may be cached.
pub(super) struct ServedFile {
    pub(super) bytes: Bytes,
    pub(super) compression: Compression,
    pub(super) caching: &'static str,
}

/// Encoding of a file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Unencoded, for all clients.
    Never,
    /// Unencoded; clients that accept gzip get the file compressed.
    NotAsked,
    /// Compressed by gzip.
    Gzip,
}
