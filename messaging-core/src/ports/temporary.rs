//! Stores that live as long as a simulation.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;

use super::Store;
use super::store::StoreError;

/// Opens stores that nobody else sees and that are gone when they are dropped.
///
/// An implementer owes a store like that of the product, with its schema and empty, in a place that only the program
/// reads; what it holds need not survive anything.
#[async_trait]
pub trait TemporaryStores: Debug + Send + Sync {
    /// A new one.
    async fn open(&self) -> Result<TemporaryStore, StoreError>;
}

/// A store that is gone once this and every handle of it is dropped.
pub struct TemporaryStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What removes the store's files; dropped after it.
    _guard: Box<dyn Any + Send + Sync>,
}

impl TemporaryStore {
    /// A store, and what removes it when it is dropped.
    pub fn new(store: Arc<dyn Store>, guard: impl Any + Send + Sync) -> Self {
        Self { store, _guard: Box::new(guard) }
    }
}

impl Debug for TemporaryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporaryStore").field("store", &self.store).finish_non_exhaustive()
    }
}
