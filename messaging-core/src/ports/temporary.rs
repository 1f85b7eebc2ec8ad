//! Stores for a simulation, which are deleted after it.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;

use super::Store;
use super::store::StoreError;

/// Opens stores that are private and deleted when they are dropped.
///
/// An implementer has to return an empty store like that of the product, with its schema, in a place that only the
/// program reads; its data need not survive anything.
#[async_trait]
pub trait TemporaryStores: Debug + Send + Sync {
    /// Opens a new store.
    async fn open(&self) -> Result<TemporaryStore, StoreError>;
}

/// A store that is deleted once this and every handle of it is dropped.
pub struct TemporaryStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Guard that removes the store's files; dropped after the store.
    _guard: Box<dyn Any + Send + Sync>,
}

impl TemporaryStore {
    /// Returns a store with the guard that removes it when it is dropped.
    pub fn new(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> Self {
        Self { store, _guard: Box::new(guard) }
    }
}

impl Debug for TemporaryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporaryStore").field("store", &self.store).finish_non_exhaustive()
    }
}
