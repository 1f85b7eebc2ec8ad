//! Revisions of stored records, and expectations of writes.

/// A stored record and the revision it was read at.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    /// The record.
    pub record: T,
    /// The revision of the record, which [`Expect::Revision`] takes.
    pub revision: u32,
}

/// Condition for a put to succeed; otherwise the commit is a conflict and nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing with this key.
    Absent,
    /// The record at this revision, the one that was read.
    Revision(u32),
}
