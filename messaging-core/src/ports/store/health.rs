//! The health of a store: whether it accepts writes, and if not, why.
//!
//! A message whose outcome cannot be stored must not leave, because it would leave again. So the state of the store is
//! published, and checked before work is claimed and before anything is sent.

/// Health of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreHealth {
    /// The store accepts writes.
    #[default]
    Healthy,
    /// Free space is below the reserve: commits that add data are refused. Work continues, its outcomes still fit.
    BelowReserve,
    /// Less than half of the reserve is free: no new work is begun, so that the outcomes of running work and a
    /// checkpoint fit.
    ReserveUsed,
    /// A write found no space.
    Full,
    /// A write failed.
    IoError,
    /// Another program holds the write lock.
    Locked,
    /// A sync failed; the log is being repaired before anything else is written.
    SyncFailed,
    /// After a failed sync the log could not be repaired: nothing can be written until the process is restarted.
    Broken,
    /// Another server has become the owner of the database: this one must not write any more.
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

    /// True if the store accepts writes without a restriction; for `/health`.
    pub const fn is_healthy(self) -> bool {
        matches!(self, Self::Healthy)
    }

    /// True if writes are refused for lack of space.
    pub const fn lacks_space(self) -> bool {
        matches!(self, Self::BelowReserve | Self::ReserveUsed | Self::Full)
    }

    /// True if jobs are claimed and messages may leave: their outcomes can be stored.
    pub const fn takes_work(self) -> bool {
        matches!(self, Self::Healthy | Self::BelowReserve)
    }

    /// True if the store will not recover in this process.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Broken | Self::Displaced | Self::Closed)
    }

    /// Returns the label for metrics and log lines.
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

/// Sizes of a store, as last measured, at most some seconds ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Bytes of the database without its log.
    pub database_bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Free bytes on the disk of the database; `None` if the system does not report them.
    pub disk_free_bytes: Option<u64>,
}
