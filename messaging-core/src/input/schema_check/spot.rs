//! Place in a value that a walk has reached.

use crate::violation::{MAX_POINTER, escape};

/// A place in a value. It becomes text only when a fault is reported: a pointer for each value would repeat the names
/// of all values around it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot<'p> {
    /// Beginning of the walk: a pointer.
    Top(&'p str),
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An item of a list.
    Item(&'p Self, usize),
}

impl Spot<'_> {
    /// True if this is the whole body.
    pub(super) const fn is_body(&self) -> bool {
        matches!(self, Self::Top(pointer) if pointer.is_empty())
    }

    /// Returns the RFC 6901 pointer of the place; of one that is too long to be reported, a beginning that is too long
    /// as well.
    pub(super) fn pointer(&self) -> String {
        match self {
            Self::Top(pointer) => (*pointer).to_owned(),
            Self::Member(outer, name) => outer.with(&escape(&name[..name.floor_char_boundary(MAX_POINTER)])),
            Self::Item(outer, index) => outer.with(&index.to_string()),
        }
    }

    fn with(&self, step: &str) -> String {
        let outer = self.pointer();
        if outer.len() > MAX_POINTER { outer } else { outer + "/" + step }
    }
}
