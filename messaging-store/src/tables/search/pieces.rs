//! Number of blocks that a search reads at once.

/// Maximum number of blocks that one call examines.
pub(super) const MAX_BLOCKS: usize = 16_384;
/// Number of blocks in the first read, and the maximum in later ones.
pub(super) const PIECES: (usize, usize) = (256, 8_192);

/// Number of blocks to read after a read of `piece` blocks, in a call that has examined `seen`.
pub(super) fn next_piece(piece: usize, seen: usize) -> usize {
    piece.saturating_mul(4).min(PIECES.1).min(MAX_BLOCKS.saturating_sub(seen))
}
