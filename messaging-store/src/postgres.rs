//! The store on PostgreSQL.
//!
//! What is read comes over a pool of connections ([`reads`]); what is written is gathered and sent in one go over a few
//! others ([`commit`], [`transaction`]). One file per aggregate holds its writes, as functions over the open transaction,
//! and its reads, as the implementation of the port: the files are those of the store on SQLite.

mod accounts;
mod apply;
mod attempts;
mod automations;
mod blob_rows;
mod blobs;
mod campaigns;
mod channels;
mod commit;
mod contacts;
mod counters;
mod counts;
mod custom_fields;
mod events;
mod expected;
mod fault;
mod holds;
mod imports;
mod installation;
mod installation_values;
mod keys;
mod listeners;
mod lists;
mod messages;
mod numbers;
mod open;
mod outbox;
#[cfg(feature = "conformance")]
mod pending;
mod pieces;
mod product_events;
mod provider_links;
mod query;
mod reads;
mod replies;
mod row;
mod sandbox;
mod scan;
mod schema;
mod segments;
mod sending_domains;
mod sign_ins;
mod soft_bounces;
mod suppressions;
mod sweep;
mod templates;
mod transaction;
mod upload_rows;
mod urls;
mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::Changes;
use messaging_core::ports::store::{
    CommitError, CommitObserver, News, Priority, Store, StoreError, StoreGauges, StoreHealth, Topics,
};
use messaging_core::ports::{BlobStore, Uploads};
use tokio::sync::watch;

use self::blob_rows::RowBlobs;
use self::commit::Commits;
use self::query::params;
use self::reads::Reads;
use self::upload_rows::RowUploads;
use crate::observed::Observed;

pub use self::open::PostgresOptions;

/// A database on a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresStore {
    reads: Reads,
    commits: Commits,
    observed: Arc<Observed>,
    health: watch::Sender<StoreHealth>,
    news: watch::Sender<News>,
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let topics = Topics::of(&changes);
        self.commits.commit(changes, priority).await?;
        if !topics.is_empty() {
            self.news.send_modify(|news| news.tell(topics));
        }
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(RowBlobs::new(self.reads.clone()))
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        Arc::new(RowUploads::new(self.reads.clone()))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.reads.one("SELECT 1", params![], |_| Ok(())).await.map(drop)
    }

    fn health(&self) -> StoreHealth {
        *self.health.borrow()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.health.subscribe()
    }

    fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    fn clock_offset_ms(&self) -> i64 {
        0
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        self.observed.set(observer);
    }

    fn gauges(&self) -> StoreGauges {
        StoreGauges::default()
    }

    async fn close(&self) {
        self.commits.close().await;
        self.reads.close();
        self.health.send_replace(StoreHealth::Closed);
    }
}
