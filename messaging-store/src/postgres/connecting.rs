//! Connecting, on the runtime that opened the store.
//!
//! A connection is driven by a task. A program may have several runtimes, some of which stand still while one of their
//! threads waits; a connection that was made on one of those would stand still as well, whoever uses it.

use deadpool_postgres::Connect;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections on a runtime.
pub(super) struct OnRuntime {
    runtime: Handle,
    tls: MakeRustlsConnect,
}

impl OnRuntime {
    /// On the present runtime.
    pub(super) fn present(tls: MakeRustlsConnect) -> Self {
        Self { runtime: Handle::current(), tls }
    }
}

impl Connect for OnRuntime {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (config, tls) = (config.clone(), self.tls.clone());
        let connecting = self.runtime.spawn(async move {
            let (client, connection) = config.connect(tls).await?;
            let driving = tokio::spawn(async move {
                // Whoever used it hears of the failure, too.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to the database ended");
                }
            });
            Ok((client, driving))
        });
        Box::pin(async move {
            match connecting.await {
                Ok(outcome) => outcome,
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                // The runtime ends, and with it everything that could wait for this.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
