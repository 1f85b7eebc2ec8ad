//! The check value of the secret key, and what is sealed under it.

use async_trait::async_trait;
use messaging_core::domain::fence::Fence;
use messaging_core::domain::quarantine::Quarantined;
use messaging_core::domain::secret_key;
use messaging_core::domain::sending_domain::{DkimKey, SendingDomain};
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ports::store::{Installation, KeyHolder, SealedSecret, StoreError};

use super::PostgresStore;
use super::installation_values::{FENCE, KEY_CHECK, NAME, get, get_shared};
use super::query::params;
use super::row::{get as get_column, record, sql_limit};
use crate::tables::quarantine;

#[async_trait]
impl Installation for PostgresStore {
    async fn key_check(&self) -> Result<Option<String>, StoreError> {
        Ok(get(&mut self.reads.clone(), KEY_CHECK).await?)
    }

    async fn installation_name(&self) -> Result<Option<String>, StoreError> {
        get_shared(&self.reads, NAME).await
    }

    async fn fence(&self) -> Result<Option<Fence>, StoreError> {
        Ok(get_shared(&self.reads, FENCE).await?.map(|text| Fence::parse(&text)))
    }

    async fn quarantined(&self, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError> {
        quarantine::newest(&self.0, limit).await
    }

    async fn announce_keys(&self, keys: &[String]) -> Result<(), StoreError> {
        Ok(self.membership.announce_keys(keys).await?)
    }

    async fn key_holders(&self) -> Result<Vec<KeyHolder>, StoreError> {
        const SQL: &str = "SELECT name, keys FROM nodes ORDER BY term";
        self.reads
            .many(SQL, params![], |row| {
                let keys = get_column::<Option<String>>(row, 1)?;
                let keys = keys.map(|keys| keys.split(',').map(ToOwned::to_owned).collect());
                Ok(KeyHolder { name: get_column(row, 0)?, keys })
            })
            .await
    }

    async fn sealed_secrets(&self, limit: usize) -> Result<Vec<SealedSecret>, StoreError> {
        const DOMAINS: &str = "SELECT doc FROM sending_domains WHERE strpos(doc, '\"dkim\":[{') > 0 LIMIT $1";
        const WEBHOOKS: &str = "SELECT doc FROM webhooks LIMIT $1";
        const CHANNELS: &str = "SELECT doc FROM channels WHERE strpos(doc, ':\"sealed:') > 0 LIMIT $1";
        let most = sql_limit(limit);
        let mut secrets = Vec::new();
        for domain in self.reads.many(DOMAINS, params![most], |row| record::<SendingDomain>(row, 0)).await? {
            let id = domain.id;
            secrets.extend(
                domain
                    .dkim
                    .into_iter()
                    .map(|key| SealedSecret { place: DkimKey::place(id, &key.selector), sealed: key.sealed }),
            );
        }
        for webhook in self.reads.many(WEBHOOKS, params![most], |row| record::<Webhook>(row, 0)).await? {
            secrets.push(SealedSecret { place: webhook.secret_place(), sealed: webhook.secret });
        }
        for settings in self.reads.many(CHANNELS, params![most], |row| record::<ChannelSettings>(row, 0)).await? {
            let sealed = secret_key::channel_secrets(&settings).into_iter();
            secrets.extend(sealed.map(|(place, sealed)| SealedSecret { place, sealed }));
        }
        secrets.truncate(limit);
        Ok(secrets)
    }
}
