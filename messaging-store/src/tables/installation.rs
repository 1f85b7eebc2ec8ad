//! Values that apply to the whole database, such as the installation's name, and the secrets that are encrypted with its
//! secret key.

use async_trait::async_trait;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::installation::quarantine::Quarantined;
use messaging_core::domain::mail::auto_dns::KeptDnsAccount;
use messaging_core::domain::mail::sending_domain::{DkimKey, SendingDomain};
use messaging_core::domain::security::factor::{Factor, FactorProof};
use messaging_core::domain::security::secret_key;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ports::store::{Installation, KeyHolder, SealedSecret, StoreError};
use serde::de::DeserializeOwned;

use super::quarantine;
use crate::database::open_commit::OpenCommit;
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, record};
use crate::sql::{Sql, params, sql};

// Names of the rows of the table `installation`.

/// Row with the check value of the secret key.
pub(crate) const KEY_CHECK: &str = "key_check";

/// Row with the id of the secret key that encrypts secrets; absent until the first key is rotated.
pub(crate) const SECRET_KEY: &str = "secret_key";

/// Row with the name of the installation.
pub(crate) const NAME: &str = "name";

/// Row with the fence in the form of [`Fence::to_text`]; absent if the installation is not fenced.
pub(crate) const FENCE: &str = "fence";

/// Methods that each database implements in its own way: on PostgreSQL there may be other processes.
#[async_trait]
pub(crate) trait Processes {
    /// See [`Installation::announce_keys`].
    async fn announce_held_keys(&self, keys: &[String]) -> Result<(), StoreError>;

    /// See [`Installation::key_holders`].
    async fn holders_of_keys(&self) -> Result<Vec<KeyHolder>, StoreError>;

    /// Stores the source addresses of this process, as JSON.
    async fn announce_own_sources(&self, sources: String) -> Result<(), StoreError>;

    /// Returns the announced sources of the living processes, in the order of their starts.
    async fn sources_of_nodes(&self) -> Result<Vec<SaidSources>, StoreError>;

    /// See [`Sources::lane_of_node`](messaging_core::ports::store::Sources::lane_of_node).
    async fn lane_claimed_by(&self, lane: &Lane, joined: i64) -> Result<Option<Lane>, StoreError>;
}

/// Announced sources of a process.
pub(crate) struct SaidSources {
    /// Its name.
    pub(crate) node: String,
    /// The number of its start.
    pub(crate) joined: i64,
    /// True if it is this process.
    pub(crate) is_own: bool,
    /// The sources, as JSON.
    pub(crate) sources: String,
}

/// Stores the check value of the secret key. Fails with a conflict if there is one.
pub(crate) fn put_key_check(on: &mut dyn Statements, check: &str) -> Result<(), Fault> {
    put_first(on, KEY_CHECK, check)
}

/// Replaces the name `before` of the installation. Fails with a conflict if it has another name.
pub(crate) fn put_name(on: &mut dyn Statements, name: &str, before: Option<&str>) -> Result<(), Fault> {
    let Some(before) = before else { return put_first(on, NAME, name) };
    on.run_one(sql!("UPDATE installation SET value = $2 WHERE name = $1 AND value = $3"), params![NAME, name, before])
}

/// Replaces the fence `before`; `None` is no fence. Fails with a conflict if the stored fence is another. It reads the
/// stored text first, because several texts can mean the same fence.
pub(crate) async fn put_fence(
    on: &mut impl OpenCommit,
    fence: Option<Fence>,
    before: Option<Fence>,
) -> Result<(), Fault> {
    const FOUND: Sql = sql!(
        sqlite: "SELECT value FROM installation WHERE name = $1",
        postgres: "SELECT value FROM installation WHERE name = $1 FOR UPDATE",
    );
    let found = on.one(Query::new(FOUND, params![FENCE], |row| get::<String>(row, 0))).await?;
    if found.map(|text| Fence::parse(&text)) != before {
        return Err(Fault::Conflict);
    }
    let on = on.statements();
    match (fence.map(Fence::to_text), before) {
        (Some(text), None) => put_first(on, FENCE, &text),
        (Some(text), Some(_)) => {
            on.run_one(sql!("UPDATE installation SET value = $2 WHERE name = $1"), params![FENCE, text])
        }
        (None, _) => on.run(sql!("DELETE FROM installation WHERE name = $1"), params![FENCE]),
    }
}

/// Stores a value. Fails with a conflict if there is one.
fn put_first(on: &mut dyn Statements, name: &str, value: &str) -> Result<(), Fault> {
    on.run(sql!("INSERT INTO installation (name, value) VALUES ($1, $2)"), params![name, value])
}

/// The query of a value. It uses the primary key, since it may run for every message.
fn value(name: &str) -> Query<String> {
    const SQL: Sql = sql!("SELECT value FROM installation WHERE name = $1");
    Query::new(SQL, params![name], |row| get(row, 0)).point()
}

/// The documents of a query whose only parameter is the limit.
async fn documents<T>(database: &impl Database, sql: Sql, limit: usize) -> Result<Vec<T>, StoreError>
where
    T: DeserializeOwned + Send + 'static,
{
    database.many(Query::new(sql, params![sql_limit(limit)], |row| record(row, 0))).await
}

#[async_trait]
impl<D: Database + Processes> Installation for SqlStore<D> {
    async fn key_check(&self) -> Result<Option<String>, StoreError> {
        self.one(value(KEY_CHECK)).await
    }

    async fn installation_name(&self) -> Result<Option<String>, StoreError> {
        self.one(value(NAME).shared()).await
    }

    async fn fence(&self) -> Result<Option<Fence>, StoreError> {
        Ok(self.one(value(FENCE).shared()).await?.map(|text| Fence::parse(&text)))
    }

    async fn quarantined(&self, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError> {
        quarantine::newest(&self.0, limit).await
    }

    async fn announce_keys(&self, keys: &[String]) -> Result<(), StoreError> {
        self.announce_held_keys(keys).await
    }

    async fn key_holders(&self) -> Result<Vec<KeyHolder>, StoreError> {
        self.holders_of_keys().await
    }

    async fn sealed_secrets(&self, limit: usize) -> Result<Vec<SealedSecret>, StoreError> {
        const DOMAINS: Sql =
            sql!(r#"SELECT doc FROM sending_domains WHERE doc LIKE '%"dkim":[_"%' OR doc LIKE '%:"sealed:%' LIMIT $1"#);
        const WEBHOOKS: Sql = sql!("SELECT doc FROM webhooks LIMIT $1");
        const CHANNELS: Sql = sql!(r#"SELECT doc FROM channels WHERE doc LIKE '%:"sealed:%' LIMIT $1"#);
        const FACTORS: Sql = sql!(r#"SELECT doc FROM factors WHERE doc LIKE '%:"sealed:%' LIMIT $1"#);
        let mut secrets = Vec::new();
        for SendingDomain { id, dkim, dns_account, .. } in documents(&self.0, DOMAINS, limit).await? {
            let account =
                |account: KeptDnsAccount| SealedSecret { place: KeptDnsAccount::place(id), sealed: account.sealed };
            secrets.extend(dns_account.map(account));
            let place = |key: &DkimKey| DkimKey::place(id, &key.selector);
            secrets.extend(dkim.into_iter().map(|key| SealedSecret { place: place(&key), sealed: key.sealed }));
        }
        for webhook in documents::<Webhook>(&self.0, WEBHOOKS, limit).await? {
            secrets.push(SealedSecret { place: webhook.secret_place(), sealed: webhook.secret });
        }
        for settings in documents::<ChannelSettings>(&self.0, CHANNELS, limit).await? {
            let sealed = secret_key::channel_secrets(&settings).into_iter();
            secrets.extend(sealed.map(|(place, sealed)| SealedSecret { place, sealed }));
        }
        for factor in documents::<Factor>(&self.0, FACTORS, limit).await? {
            let place = Factor::place(factor.user_id, factor.id);
            if let FactorProof::Totp { sealed, .. } = factor.proof {
                secrets.push(SealedSecret { place, sealed });
            }
        }
        secrets.truncate(limit);
        Ok(secrets)
    }
}
