//! Databases that live as long as a simulation.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::temporary::{TemporaryStore, TemporaryStores};

use crate::files::make_directory;
use crate::{SqliteOptions, SqliteStore};

/// Opens databases in directories of their own below one directory, and removes each with its store.
///
/// They are written without waiting for the disk. Files left by a process that did not end orderly are removed by the
/// next one that uses the directory.
#[derive(Debug)]
pub struct TemporaryDatabases {
    directory: PathBuf,
    opened: AtomicU64,
}

impl TemporaryDatabases {
    /// Databases below a directory that belongs to this process alone: its content is removed. The directory is created
    /// with the first database and removed with the last one.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        if let Err(error) = fs::remove_dir_all(&directory)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(directory = %directory.display(), %error, "what an earlier process left cannot be removed");
        }
        Self { directory, opened: AtomicU64::new(0) }
    }
}

#[async_trait]
impl TemporaryStores for TemporaryDatabases {
    async fn open(&self) -> Result<TemporaryStore, StoreError> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let directory = self.directory.join(number.to_string());
        let guard = DirectoryGuard { above: self.directory.clone(), directory };
        let opening = tokio::task::spawn_blocking(move || {
            make_directory(&guard.directory).map_err(|error| StoreError::Failed(Box::new(error)))?;
            let mut options = SqliteOptions::new(guard.directory.join("messaging.db"));
            options.temporary = true;
            options.readers = 1;
            let store = SqliteStore::open(options).map_err(|error| StoreError::Failed(Box::new(error)))?;
            Ok(TemporaryStore::new(Arc::new(store), guard))
        });
        opening.await.map_err(|error| StoreError::Failed(Box::new(error)))?
    }
}

/// The directory of a database; removed with its files when dropped.
struct DirectoryGuard {
    above: PathBuf,
    directory: PathBuf,
}

impl Drop for DirectoryGuard {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            tracing::warn!(directory = %self.directory.display(), %error, "a temporary database cannot be removed");
        }
        // The directory above is not empty while there are other databases.
        let _ = fs::remove_dir(&self.above);
    }
}
