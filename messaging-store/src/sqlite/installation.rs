//! Which secret keys the process holds, and which sources it has.

use async_trait::async_trait;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::store::{KeyHolder, StoreError};

use super::Sqlite;
use super::installation_values::{HELD_KEYS, OWN_SOURCES, get, set};
use crate::tables::installation::{Processes, SaidSources};

/// Name of the only node.
const NODE: &str = "local";

#[async_trait]
impl Processes for Sqlite {
    async fn announce_held_keys(&self, keys: &[String]) -> Result<(), StoreError> {
        if !self.does_the_work() {
            return Ok(());
        }
        let keys = keys.join(",");
        let known = self.readers.read(|connection| get(connection, HELD_KEYS)).await?;
        if known.as_ref() == Some(&keys) {
            return Ok(());
        }
        // A power cut may undo it, and ends this process as well.
        self.writer.undurably(move |connection| set(connection, HELD_KEYS, &keys)).await
    }

    async fn holders_of_keys(&self) -> Result<Vec<KeyHolder>, StoreError> {
        let held = self.readers.read(|connection| get(connection, HELD_KEYS)).await?;
        let keys = held.map(|held| held.split(',').map(ToOwned::to_owned).collect());
        Ok(vec![KeyHolder { name: "the server".to_owned(), keys }])
    }

    async fn announce_own_sources(&self, sources: String) -> Result<(), StoreError> {
        if !self.does_the_work() {
            return Ok(());
        }
        // A power cut may undo it, and ends this process as well.
        self.writer.undurably(move |connection| set(connection, OWN_SOURCES, &sources)).await
    }

    async fn sources_of_nodes(&self) -> Result<Vec<SaidSources>, StoreError> {
        let sources = self.readers.read(|connection| get(connection, OWN_SOURCES)).await?;
        let said = |sources| SaidSources { node: NODE.to_owned(), joined: 0, is_own: self.does_the_work(), sources };
        Ok(sources.map(said).into_iter().collect())
    }

    async fn lane_claimed_by(&self, _: &Lane, _: i64) -> Result<Option<Lane>, StoreError> {
        Ok(None)
    }
}
