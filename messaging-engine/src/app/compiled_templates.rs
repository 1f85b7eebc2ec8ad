//! Versions of templates, compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::domain::template::compiled::{Compiled, Replaced};
use messaging_core::ids::{TemplateId, WorkspaceId};

/// Versions that are kept compiled.
const CAPACITY: usize = 1_000;

/// Bytes of source of the versions that are kept; compiled they are some times as large.
const MAX_KEPT: usize = 32 << 20;

/// The compiled versions. They never change, so an entry is right for as long as it is kept.
#[derive(Debug, Default)]
pub(crate) struct CompiledVersions(Mutex<VersionCache>);

/// Which version, and what a campaign that sends it puts in place of its parts; `None` outside of campaigns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CompiledKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) template: TemplateId,
    pub(crate) version: u32,
    pub(crate) campaign: Option<Replaced>,
}

#[derive(Debug, Default)]
struct VersionCache {
    entries: HashMap<CompiledKey, Arc<Compiled>>,
    bytes: usize,
}

impl CompiledVersions {
    pub(crate) fn get(&self, key: &CompiledKey) -> Option<Arc<Compiled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entries.get(key).cloned()
    }

    pub(crate) fn put(&self, key: CompiledKey, compiled: &Arc<Compiled>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.entries.len() >= CAPACITY || cache.bytes + compiled.size() > MAX_KEPT {
            *cache = VersionCache::default();
        }
        if cache.entries.insert(key, Arc::clone(compiled)).is_none() {
            cache.bytes += compiled.size();
        }
    }
}
