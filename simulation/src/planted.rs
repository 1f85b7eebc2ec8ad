//! Mistakes that are made on purpose, to see that the checks find them.
//!
//! None of them touches the product: they are in the store and the transport of the simulation, where a product
//! with the mistake would behave the same.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// While the store takes no writes the outcome of a job counts as kept, and is not.
    OutcomeForgotten,
    /// What a job commits goes through although its claim was lost.
    LeaseNotChecked,
    /// A transaction is put on record only after its content was taken.
    MarkAfterData,
    /// The count of a list's members is changed by a transaction of its own, after that of the membership.
    CounterOutsideCommit,
    /// The place that making messages of a campaign reached is kept by a commit of its own, after that of the messages.
    PlaceOutsideCommit,
    /// Runs that sent something are kept by a commit of its own, after that of their messages.
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
