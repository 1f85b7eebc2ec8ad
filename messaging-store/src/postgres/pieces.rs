//! Bytes in rows of a size that the database takes well.

/// The bytes of a row, at most.
pub(crate) const PIECE: usize = 256 << 10;

/// How many rows are sent before the first is answered.
pub(super) const SENT_AT_A_TIME: usize = 16;

/// The pieces of bytes that begin at a place, each with its own place.
pub(super) fn pieces(at: i64, bytes: &[u8]) -> impl Iterator<Item = (i64, Vec<u8>)> {
    let place = move |n: usize| at.saturating_add(super::row::sql_limit(n * PIECE));
    bytes.chunks(PIECE).enumerate().map(move |(n, piece)| (place(n), piece.to_vec()))
}
