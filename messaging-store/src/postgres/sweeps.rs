//! Writes outside of changes that decide nothing: what removes old rows.

use messaging_core::ports::store::StoreError;

use super::PostgresStore;
use super::fault::Fault;
use super::query::{Params, params};

impl PostgresStore {
    /// Runs one statement and answers how many rows it touched. Nobody waits for the disk: a crash may undo it.
    pub(super) async fn sweep(&self, sql: &'static str, values: Params) -> Result<u64, StoreError> {
        Ok(self.try_sweep(sql, values).await?)
    }

    async fn try_sweep(&self, sql: &'static str, values: Params) -> Result<u64, Fault> {
        let mut transaction = self.writes.begin().await?;
        transaction.run("SET LOCAL synchronous_commit = off", params![]);
        let touched = transaction.execute(sql, values).await?;
        transaction.commit().await?;
        Ok(touched)
    }
}
