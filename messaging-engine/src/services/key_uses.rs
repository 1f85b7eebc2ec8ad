//! Noting what API keys are used for.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use messaging_core::changes::{AccountWrite, Changes, Write};
use messaging_core::domain::security::api_key::usage::OperationUse;
use messaging_core::error::Chain;

use crate::app::key_uses::GATHERED_FOR;
use crate::app::{App, Shared};
use crate::caller::Caller;

/// Uses that one commit writes, at most.
const BATCH: usize = 500;

impl App {
    /// Notes that an operation is used, if a key calls it. It is written in the background, once a minute.
    pub(crate) fn note_operation(&self, caller: &Caller, operation: &'static str, ip: Option<IpAddr>) {
        let Caller::Key(key) = caller else { return };
        if self.0.key_uses.note(key.id, operation, ip, self.now()) {
            tokio::spawn(write_every_minute(Arc::downgrade(&self.0)));
        }
    }

    /// Writes what API keys were used for so far: before the store is closed, and in tests.
    pub async fn write_key_uses(&self) {
        self.write_uses(self.0.key_uses.take_early()).await;
    }

    async fn write_uses(&self, uses: Vec<OperationUse>) {
        for batch in uses.chunks(BATCH) {
            let write = Write::Account(AccountWrite::NoteKeyUses(batch.to_vec()));
            if let Err(error) = self.commit_in_background(Changes::from_iter([write])).await {
                tracing::debug!(error = %Chain(&error), uses = batch.len(), "uses of API keys were not noted");
            }
        }
    }
}

/// Writes the uses of each minute until one has none. Does not keep the application.
async fn write_every_minute(app: Weak<Shared>) {
    loop {
        tokio::time::sleep(GATHERED_FOR).await;
        let Some(app) = app.upgrade().map(App) else { return };
        let uses = app.0.key_uses.take();
        if uses.is_empty() {
            return;
        }
        app.write_uses(uses).await;
    }
}
