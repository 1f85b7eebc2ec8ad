//! Cached MTA-STS policies of recipient domains (RFC 8461).

use async_trait::async_trait;
use messaging_core::domain::mail::mta_sts::StsPolicy;
use messaging_core::ports::store::{StoreError, StsPolicies};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{document, record};
use crate::sql::{Sql, params, sql};

/// Stores the policy of a domain in place of an earlier one.
pub(crate) fn put(on: &mut dyn Statements, policy: &StsPolicy) -> Result<(), Fault> {
    on.run(
        sql!(
            "INSERT INTO sts_policies (domain, expires_at, doc) VALUES ($1, $2, $3)
             ON CONFLICT (domain) DO UPDATE SET expires_at = excluded.expires_at, doc = excluded.doc"
        ),
        params![policy.domain.as_str(), policy.expires_at, document(policy)?],
    )
}

#[async_trait]
impl<D: Database> StsPolicies for SqlStore<D> {
    async fn sts_policy(&self, domain: &str) -> Result<Option<StsPolicy>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM sts_policies WHERE domain = $1");
        self.one(Query::new(SQL, params![domain], |row| record(row, 0)).point()).await
    }

    async fn forget_sts_policies(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ANY: Sql = sql!("SELECT 1 FROM sts_policies WHERE expires_at < $1 LIMIT 1");
        const SQL: Sql = sql!(
            "DELETE FROM sts_policies WHERE domain IN (
                SELECT domain FROM sts_policies WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
        );
        // Usually no policy has expired, and no write transaction is needed.
        if self.one(Query::new(ANY, params![before], |_| Ok(())).point()).await?.is_none() {
            return Ok(0);
        }
        self.sweep(SQL, params![before, sql_limit(limit)]).await
    }
}
