//! Searching contacts and messages by a piece of text.
//!
//! Contract section 26. A [`Search`] is compared with two texts of a row: one that every reader may see, and one only
//! for callers with `pii:read`. There are many rows, so stores keep the texts of neighboring rows together, in lower
//! case, in one row of an index ([`SearchTexts`]), and read the rows themselves only if a block contains the searched
//! text. The submodules [`contacts`] and [`messages`] define the searched texts and the blocks that hold them.

pub mod contacts;
pub mod messages;

/// Minimum length of a searched text, in characters.
pub const MIN_SEARCH: u64 = 2;
/// Maximum length of a searched text, in characters.
pub const MAX_SEARCH: u64 = 100;

/// Separator between the texts of one row, which have no control characters.
const BETWEEN_TEXTS: char = '\u{1f}';
/// Terminator of the texts of a row.
const BEHIND_ROW: char = '\u{1e}';

/// A text to search for, with the permission of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    needle: String,
    sees_addresses: bool,
}

impl Search {
    /// Returns a search for a text, in any case. Texts that are masked for the caller are only searched if
    /// `sees_addresses`.
    pub fn new(text: &str, sees_addresses: bool) -> Self {
        Self { needle: text.to_lowercase(), sees_addresses }
    }

    /// Returns the text in lower case.
    pub fn needle(&self) -> &str {
        &self.needle
    }

    /// True if texts with addresses and names are searched too.
    pub const fn sees_addresses(&self) -> bool {
        self.sees_addresses
    }

    /// True if texts, or a block of them, contain the searched text.
    pub fn is_in(&self, shown: &str, hidden: &str) -> bool {
        shown.contains(&self.needle) || self.sees_addresses && hidden.contains(&self.needle)
    }
}

/// The texts of the rows of a block, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchTexts {
    /// Texts for every reader of the rows.
    pub shown: String,
    /// Addresses and names.
    pub hidden: String,
}

impl SearchTexts {
    /// True if no row was added.
    pub const fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }
}

/// Adds the texts of a row, without control characters, so that a match never spans two texts.
fn add_row<'a>(block: &mut String, texts: impl IntoIterator<Item = Option<&'a str>>) {
    for (place, text) in texts.into_iter().flatten().enumerate() {
        if place > 0 {
            block.push(BETWEEN_TEXTS);
        }
        block.extend(text.to_lowercase().chars().filter(|character| !character.is_control()));
    }
    block.push(BEHIND_ROW);
}
