//! Which secret keys the process holds.

use async_trait::async_trait;
use messaging_core::ports::store::{KeyHolder, StoreError};

use super::Sqlite;
use super::installation_values::{HELD_KEYS, get, set};
use crate::tables::installation::Processes;

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
}
