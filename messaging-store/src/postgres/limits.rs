//! Exchange of the use of shared limits between processes.
//!
//! Each process has a row for every bucket that it took from, with the sum of its takings. Others read the rows and
//! compute the growth since their last look. A row that was unchanged for two minutes is ignored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use messaging_core::ports::clock::{Entropy as _, SystemEntropy};
use messaging_core::ports::store::{SharedLimits, StoreError, Taking};

use super::fault::Fault;
use super::reads::Reads;
use crate::row::get;
use crate::sql::params;

/// Maximum number of rows in one look: rows of further buckets are not read.
const MAX_ROWS: i64 = 100_000;

/// Id of a process, or of a bucket.
type Id = [u8; 16];

/// Announces the takings of this process, and reads those of others.
#[derive(Debug)]
pub(super) struct Limits {
    reads: Reads,
    /// Id of this process.
    process: Id,
    /// Sums of other processes as they were read last.
    seen: Mutex<HashMap<(Id, Id), i64>>,
}

impl Limits {
    pub(super) fn new(reads: Reads) -> Self {
        let mut process = [0; 16];
        SystemEntropy::default().fill(&mut process);
        Self { reads, process, seen: Mutex::default() }
    }

    /// Returns the growth of the sums of other processes.
    fn growth(&self, rows: Vec<Row>) -> Vec<Taking> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *seen);
        let mut taken = Vec::new();
        for Row { bucket, process, limit, sum } in rows {
            seen.insert((bucket, process), sum);
            let tokens = sum - before.get(&(bucket, process)).copied().unwrap_or(0);
            if let Some(tokens) = u32::try_from(tokens).ok().filter(|tokens| *tokens > 0) {
                taken.push(Taking { bucket, limit, tokens });
            }
        }
        taken
    }
}

/// The sum that another process took from a bucket.
struct Row {
    bucket: [u8; 16],
    process: Id,
    limit: u32,
    sum: i64,
}

#[async_trait]
impl SharedLimits for Limits {
    async fn exchange(&self, taken: &[Taking]) -> Result<Vec<Taking>, StoreError> {
        const ADD: &str = "WITH told AS (
                SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS t (bucket, full_at, taken)
            ), added AS (
                INSERT INTO takings (bucket, process, full_at, taken, changed_at)
                SELECT bucket, $1, full_at, taken, clock_timestamp() FROM told ORDER BY bucket
                ON CONFLICT (bucket, process) DO UPDATE SET taken = takings.taken + excluded.taken,
                    full_at = excluded.full_at, changed_at = excluded.changed_at
                RETURNING 1
            ), gone AS (
                DELETE FROM takings WHERE ctid = ANY (ARRAY (
                    SELECT ctid FROM takings WHERE changed_at < clock_timestamp() - interval '10 minutes'
                    LIMIT 1000 FOR UPDATE SKIP LOCKED
                )) RETURNING 1
            )
            SELECT bucket, process, full_at, taken FROM takings
            WHERE process <> $1 AND changed_at > clock_timestamp() - interval '2 minutes' LIMIT $5";
        let buckets: Vec<_> = taken.iter().map(|taking| taking.bucket).collect();
        let limits: Vec<_> = taken.iter().map(|taking| i64::from(taking.limit)).collect();
        let tokens: Vec<_> = taken.iter().map(|taking| i64::from(taking.tokens)).collect();
        let key = params![self.process, buckets, limits, tokens, MAX_ROWS];
        let rows = self.reads.many(ADD, key, |row| -> Result<Row, Fault> {
            Ok(Row { bucket: get(row, 0)?, process: get(row, 1)?, limit: get(row, 2)?, sum: get(row, 3)? })
        });
        Ok(self.growth(rows.await?))
    }
}
