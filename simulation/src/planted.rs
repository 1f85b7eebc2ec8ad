//! Mistakes made on purpose, to show that the checks find them.
//!
//! None of them touches the product: they are in the store and the transport of the simulation, where a product
//! with the mistake would behave the same.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// While the store accepts no writes, the outcome of a job counts as stored, and is not.
    OutcomeForgotten,
    /// A job commits successfully although its claim was lost.
    LeaseNotChecked,
    /// A transaction is put on record only after its content was accepted.
    MarkAfterData,
    /// The count of a list's members is changed in a separate transaction, after that of the membership.
    CounterOutsideCommit,
    /// The progress of a campaign's fan-out is stored by a separate commit, after that of the messages.
    PlaceOutsideCommit,
    /// Runs that sent something are stored by a separate commit, after that of their messages.
    RunOutsideCommit,
}

impl Planted {
    /// Every mistake.
    pub const ALL: [Self; 6] = [
        Self::OutcomeForgotten,
        Self::LeaseNotChecked,
        Self::MarkAfterData,
        Self::CounterOutsideCommit,
        Self::PlaceOutsideCommit,
        Self::RunOutsideCommit,
    ];
}
