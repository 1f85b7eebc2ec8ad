//! The health of a store: whether it takes writes, and if not, why.
//!
//! A message whose outcome cannot be stored must not leave, because it would leave again. So the state of
//! the store is published, and looked at before work is claimed and before the wire is touched.

/// Whether a store takes writes, and if not, why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreHealth {
    /// The store takes writes.
    #[default]
    Healthy,
    /// Free space is below the reserve: what adds is refused. Work goes on, its outcomes still fit.
    BelowReserve,
    /// Less than half of the reserve is free: no new work is begun, so that the outcomes of what is in work
    /// and a checkpoint fit.
    ReserveUsed,
    /// A write found no space.
    Full,
    /// A write failed.
    IoError,
    /// Another program holds the write lock.
    Locked,
    /// A sync failed; the log is being made whole before anything else is written.
    SyncFailed,
    /// After a failed sync the log could not be made whole: nothing can be written until the process has
    /// been started again.
    Broken,
    /// Another server has made itself the owner of the database: this one must not write any more.
    Displaced,
    /// The store was closed.
    Closed,
}

impl StoreHealth {
    /// Every state, for metrics.
    pub const ALL: [Self; 10] = [
        Self::Healthy,
        Self::BelowReserve,
        Self::ReserveUsed,
        Self::Full,
        Self::IoError,
        Self::Locked,
        Self::SyncFailed,
        Self::Broken,
        Self::Displaced,
        Self::Closed,
    ];

    /// Whether everything is as it should be; what `/health` tells.
    pub const fn is_healthy(self) -> bool {
        matches!(self, Self::Healthy)
    }

    /// Whether it is for want of space that something is refused.
    pub const fn lacks_space(self) -> bool {
        matches!(self, Self::BelowReserve | Self::ReserveUsed | Self::Full)
    }

    /// Whether jobs are claimed and messages may leave: their outcomes can be stored.
    pub const fn takes_work(self) -> bool {
        matches!(self, Self::Healthy | Self::BelowReserve)
    }

    /// True if the store will not recover in this process.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Broken | Self::Displaced | Self::Closed)
    }

    /// The label in metrics and log lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::BelowReserve => "below_reserve",
            Self::ReserveUsed => "reserve_used",
            Self::Full => "full",
            Self::IoError => "io_error",
            Self::Locked => "locked",
            Self::SyncFailed => "sync_failed",
            Self::Broken => "broken",
            Self::Displaced => "displaced",
            Self::Closed => "closed",
        }
    }
}

/// Sizes of a store, as it saw them last, at most some seconds ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Bytes of the database without its log.
    pub database_bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Bytes that are free on the disk of the database; `None` when the system does not say.
    pub disk_free_bytes: Option<u64>,
}
