//! Which secret keys the processes hold, and which sources they have.

use async_trait::async_trait;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::store::{KeyHolder, StoreError};

use super::Postgres;
use super::places::lane_in;
use crate::row::get as get_column;
use crate::sql::params;
use crate::tables::installation::{Processes, SaidSources};

#[async_trait]
impl Processes for Postgres {
    async fn announce_held_keys(&self, keys: &[String]) -> Result<(), StoreError> {
        Ok(self.membership.announce_keys(keys).await?)
    }

    async fn holders_of_keys(&self) -> Result<Vec<KeyHolder>, StoreError> {
        const SQL: &str = "SELECT name, keys FROM nodes ORDER BY term";
        self.reads
            .many(SQL, params![], |row| {
                let keys = get_column::<Option<String>>(row, 1)?;
                let keys = keys.map(|keys| keys.split(',').map(ToOwned::to_owned).collect());
                Ok(KeyHolder { name: get_column(row, 0)?, keys })
            })
            .await
    }

    async fn announce_own_sources(&self, sources: String) -> Result<(), StoreError> {
        Ok(self.membership.announce_sources(sources).await?)
    }

    async fn sources_of_nodes(&self) -> Result<Vec<SaidSources>, StoreError> {
        // The last process of all is declared dead by nobody.
        const SQL: &str = "SELECT term, name, sources FROM nodes
            WHERE sources IS NOT NULL AND seen_at >= now_ms() - $1 ORDER BY term";
        let (key, own) = (params![self.membership.dead_after_ms()], self.writes.term());
        let said = |row: &tokio_postgres::Row| {
            let joined = get_column(row, 0)?;
            let is_own = joined == own;
            Ok(SaidSources { node: get_column(row, 1)?, joined, is_own, sources: get_column(row, 2)? })
        };
        self.reads.many(SQL, key, said).await
    }

    async fn lane_claimed_by(&self, lane: &Lane, joined: i64) -> Result<Option<Lane>, StoreError> {
        const SQL: &str = "SELECT place FROM places WHERE term = $1";
        let places: Vec<i16> = self.reads.many(SQL, params![joined], |row| get_column(row, 0)).await?;
        Ok(lane_in(lane, &places))
    }
}
