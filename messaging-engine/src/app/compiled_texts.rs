//! Single texts that are templates, compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::domain::template::text::TextTemplate;

/// Texts that are kept compiled.
const CAPACITY: usize = 1_000;

/// Bytes of source of the texts that are kept.
const MAX_KEPT: usize = 4 << 20;

/// The compiled texts. What a text compiles to follows from it, so an entry is right for as long as it is kept.
#[derive(Debug, Default)]
pub(crate) struct CompiledTexts(Mutex<TextCache>);

#[derive(Debug, Default)]
struct TextCache {
    entries: HashMap<Arc<str>, Arc<TextTemplate>>,
    bytes: usize,
}

impl CompiledTexts {
    pub(crate) fn get(&self, source: &str) -> Option<Arc<TextTemplate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entries.get(source).cloned()
    }

    pub(crate) fn put(&self, source: &str, compiled: &Arc<TextTemplate>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.entries.len() >= CAPACITY || cache.bytes + compiled.size() > MAX_KEPT {
            *cache = TextCache::default();
        }
        if cache.entries.insert(source.into(), Arc::clone(compiled)).is_none() {
            cache.bytes += compiled.size();
        }
    }
}
