//! How many blocks a search reads at once.

/// Blocks that one call looks at.
pub(super) const MAX_BLOCKS: usize = 16_384;
/// Blocks that are read at once at first, and at most.
pub(super) const PIECES: (usize, usize) = (256, 8_192);

/// The number of blocks that are read after `piece`, of which a call has looked at `seen`.
pub(super) fn next_piece(piece: usize, seen: usize) -> usize {
    piece.saturating_mul(4).min(PIECES.1).min(MAX_BLOCKS.saturating_sub(seen))
}
