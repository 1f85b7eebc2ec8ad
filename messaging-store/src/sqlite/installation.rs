//! The check value of the secret key, and what is sealed under it.

use async_trait::async_trait;
use messaging_core::domain::fence::Fence;
use messaging_core::domain::quarantine::Quarantined;
use messaging_core::domain::secret_key;
use messaging_core::domain::sending_domain::{DkimKey, SendingDomain};
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ports::store::{Installation, KeyHolder, SealedSecret, StoreError};
use rusqlite::Connection;
use serde::de::DeserializeOwned;

use super::SqliteStore;
use super::fault::Fault;
use super::installation_values::{self, HELD_KEYS, KEY_CHECK, NAME, get, set};
use super::row;
use crate::tables::quarantine;

#[async_trait]
impl Installation for SqliteStore {
    async fn key_check(&self) -> Result<Option<String>, StoreError> {
        self.readers.read(|connection| get(connection, KEY_CHECK)).await
    }

    async fn installation_name(&self) -> Result<Option<String>, StoreError> {
        self.readers.point_read(|connection| get(connection, NAME)).await
    }

    async fn fence(&self) -> Result<Option<Fence>, StoreError> {
        self.readers.point_read(installation_values::fence).await
    }

    async fn quarantined(&self, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError> {
        quarantine::newest(&self.0, limit).await
    }

    async fn announce_keys(&self, keys: &[String]) -> Result<(), StoreError> {
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

    async fn key_holders(&self) -> Result<Vec<KeyHolder>, StoreError> {
        let held = self.readers.read(|connection| get(connection, HELD_KEYS)).await?;
        let keys = held.map(|held| held.split(',').map(ToOwned::to_owned).collect());
        Ok(vec![KeyHolder { name: "the server".to_owned(), keys }])
    }

    async fn sealed_secrets(&self, limit: usize) -> Result<Vec<SealedSecret>, StoreError> {
        self.readers
            .read(move |connection| {
                let mut secrets = Vec::new();
                let sql = "SELECT doc FROM sending_domains WHERE json_array_length(doc, '$.dkim') > 0 LIMIT ?1";
                for domain in documents::<SendingDomain>(connection, sql, limit)? {
                    secrets.extend(domain.dkim.into_iter().map(|key| SealedSecret {
                        place: DkimKey::place(domain.id, &key.selector),
                        sealed: key.sealed,
                    }));
                }
                for webhook in documents::<Webhook>(connection, "SELECT doc FROM webhooks LIMIT ?1", limit)? {
                    secrets.push(SealedSecret { place: webhook.secret_place(), sealed: webhook.secret });
                }
                let sql = "SELECT doc FROM channels WHERE instr(doc, ':\"sealed:') > 0 LIMIT ?1";
                for settings in documents::<ChannelSettings>(connection, sql, limit)? {
                    let sealed = secret_key::channel_secrets(&settings).into_iter();
                    let sealed = sealed.map(|(place, sealed)| SealedSecret { place, sealed });
                    secrets.extend(sealed);
                }
                secrets.truncate(limit);
                Ok(secrets)
            })
            .await
    }
}

fn documents<T: DeserializeOwned>(connection: &Connection, sql: &str, limit: usize) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare(sql)?;
    let texts = statement.query_map([row::sql_limit(limit)], |row| row.get::<_, String>(0))?;
    texts.map(|text| Ok(serde_json::from_str(&text?)?)).collect()
}
