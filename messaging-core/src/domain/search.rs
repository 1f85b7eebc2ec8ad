//! Searching contacts and messages by a piece of text.
//!
//! Contract section 26. A [`Search`] is compared with two texts of a row: one that everybody may read, and one that only
//! callers with `pii:read` may. Rows are many, so stores keep the texts of some neighbors together, in lower case, in one
//! row of an index ([`SearchTexts`]), and look at the rows themselves only where a block has what is looked for. Beside this
//! file: [`contacts`] and [`messages`], what of them is searched and in which blocks it is kept.

pub mod contacts;
pub mod messages;

/// Characters of what is looked for, at least.
pub const MIN_SEARCH: u64 = 2;
/// Characters of what is looked for, at most.
pub const MAX_SEARCH: u64 = 100;

/// Stands between the texts of one row, which have no control characters.
const BETWEEN_TEXTS: char = '\u{1f}';
/// Stands behind the texts of a row.
const BEHIND_ROW: char = '\u{1e}';

/// A text to look for, and the right of whoever looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    needle: String,
    sees_addresses: bool,
}

impl Search {
    /// A search for a text, whatever its case. Only who `sees_addresses` searches what they would be shown masked.
    pub fn new(text: &str, sees_addresses: bool) -> Self {
        Self { needle: text.to_lowercase(), sees_addresses }
    }

    /// The text in lower case.
    pub fn needle(&self) -> &str {
        &self.needle
    }

    /// True if texts with addresses and names are searched too.
    pub const fn sees_addresses(&self) -> bool {
        self.sees_addresses
    }

    /// True if texts, or a block of them, have what is looked for.
    pub fn is_in(&self, shown: &str, hidden: &str) -> bool {
        shown.contains(&self.needle) || self.sees_addresses && hidden.contains(&self.needle)
    }
}

/// The texts of the rows of a block, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchTexts {
    /// Texts that everybody may read who may read the rows.
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

/// Adds the texts of a row, without control characters, so that no text reaches into another.
fn add_row<'a>(block: &mut String, texts: impl IntoIterator<Item = Option<&'a str>>) {
    for (place, text) in texts.into_iter().flatten().enumerate() {
        if place > 0 {
            block.push(BETWEEN_TEXTS);
        }
        block.extend(text.to_lowercase().chars().filter(|character| !character.is_control()));
    }
    block.push(BEHIND_ROW);
}
