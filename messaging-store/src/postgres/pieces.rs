//! Bytes in rows of a size that suits the database.

/// Maximum number of bytes in a row.
pub(crate) const PIECE: usize = 256 << 10;

/// Number of rows that are sent before the first is answered.
pub(super) const SENT_AT_A_TIME: usize = 16;

/// Splits bytes that begin at a position into pieces, each with its own position.
pub(super) fn pieces(at: i64, bytes: &[u8]) -> impl Iterator<Item = (i64, Vec<u8>)> {
    let place = move |n: usize| at.saturating_add(super::row::sql_limit(n * PIECE));
    bytes.chunks(PIECE).enumerate().map(move |(n, piece)| (place(n), piece.to_vec()))
}
