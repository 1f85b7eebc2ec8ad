//! What holds for the database as a whole: rows of the table `installation`, by name.

use async_trait::async_trait;
use messaging_core::domain::secret_key;
use messaging_core::domain::sending_domain::{DkimKey, SendingDomain};
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ports::store::{Installation, SealedSecret, StoreError};
use rusqlite::{Connection, OptionalExtension as _};
use serde::de::DeserializeOwned;

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::row;

/// The token of the program that does the jobs.
pub(super) const OWNER: &str = "owner";

/// Nearly the latest time that a job was dated at, in milliseconds.
pub(super) const LATEST: &str = "latest";

/// The check value of the secret key.
const KEY_CHECK: &str = "key_check";

/// Reads a value.
pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<String>, Fault> {
    let value = connection
        .prepare_cached("SELECT value FROM installation WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(value)
}

/// Writes a value over whatever there is.
pub(super) fn set(connection: &Connection, name: &str, value: &str) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO installation (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute([name, value])?;
    Ok(())
}

/// Keeps the check value of the secret key, unless there is one.
pub(super) fn put_key_check(connection: &Connection, check: &str) -> Result<(), Fault> {
    let rows = connection
        .prepare_cached("INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING")?
        .execute([KEY_CHECK, check])?;
    expect_one(rows)
}

#[async_trait]
impl Installation for SqliteStore {
    async fn key_check(&self) -> Result<Option<String>, StoreError> {
        self.readers.read(|connection| get(connection, KEY_CHECK)).await
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
                    let sealed = settings.config.iter().filter_map(|(member, value)| {
                        let sealed = value.as_str().filter(|text| secret_key::is_sealed(text))?;
                        Some(SealedSecret {
                            place: secret_key::channel_secret_place(&settings, member),
                            sealed: sealed.to_owned(),
                        })
                    });
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
