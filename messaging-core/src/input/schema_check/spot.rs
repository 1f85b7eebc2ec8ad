//! Place within a value that a walk has reached.

use crate::violation::{MAX_POINTER, escape};

/// A place in a value. It becomes text only where something is reported: a pointer for each value would cost the names
/// of all that is around it, over and over.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot<'p> {
    /// Where the walk began: a pointer.
    Top(&'p str),
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An item of a list.
    Item(&'p Self, usize),
}

impl Spot<'_> {
    /// Whether this is the whole body.
    pub(super) const fn is_body(&self) -> bool {
        matches!(self, Self::Top(pointer) if pointer.is_empty())
    }

    /// The RFC 6901 pointer of the place; of one that is too long to be reported, a beginning that is too long as well.
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
