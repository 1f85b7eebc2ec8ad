//! Targets of redirected links that are known to be stored.
//!
//! The messages of a mailing have the same links. A target is kept until a person it names is erased, so once it was
//! committed nothing has to be written for it again; without this cache each message would write all of its own.
//! Another process may erase a target, so entries expire.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::changes::{Changes, DocumentKey, Write};
use messaging_core::domain::mail::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Monotonic;

/// Number of targets beyond which the cache is cleared; about 1 MB.
const CAPACITY: usize = 20_000;

/// Time that a target counts as stored. A store normally reports that another process has removed some; this is for
/// when the report is lost.
const LIFETIME: Duration = Duration::from_mins(1);

type Key = (WorkspaceId, UrlKey);

/// Targets that were committed, with the time until which they count as stored.
#[derive(Debug, Default)]
pub(crate) struct KnownUrls(Mutex<HashMap<Key, Monotonic>>);

impl KnownUrls {
    /// Returns the targets that a set of changes stores.
    pub(crate) fn keys(changes: &Changes) -> Vec<Key> {
        let stored = changes.writes().iter().filter_map(|write| match write {
            Write::PutUrl(workspace, url) => Some((*workspace, UrlKey::of(url))),
            _ => None,
        });
        stored.collect()
    }

    /// Returns the targets that a set of changes removes.
    pub(crate) fn removed(changes: &Changes) -> Vec<Key> {
        let removed = changes.writes().iter().filter_map(|write| match write {
            Write::Delete(DocumentKey::Url(workspace, key)) => Some((*workspace, *key)),
            _ => None,
        });
        removed.collect()
    }

    /// Adds targets that are committed now.
    pub(crate) fn add(&self, keys: Vec<Key>, now: Monotonic) {
        if keys.is_empty() {
            return;
        }
        let mut known = self.lock();
        if known.len() + keys.len() > CAPACITY {
            known.clear();
        }
        known.extend(keys.into_iter().map(|key| (key, now + LIFETIME)));
    }

    /// Drops the targets that a set of changes, now committed, removed.
    pub(crate) fn forget(&self, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        let mut known = self.lock();
        for key in keys {
            known.remove(&key);
        }
    }

    /// Clears the cache: another process has removed some targets.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn knows(&self, key: Key, now: Monotonic) -> bool {
        self.lock().get(&key).is_some_and(|until| now < *until)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Monotonic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messaging_core::ids::IdSource;
    use messaging_core::ports::clock::SeededEntropy;
    use messaging_core::time::Timestamp;

    #[test]
    fn what_was_committed_is_known_for_its_workspace() {
        let (ids, entropy, now) = (IdSource::default(), SeededEntropy::new(1), Timestamp::from_millis(0));
        let (mine, other): (WorkspaceId, WorkspaceId) = (ids.next(now, &entropy), ids.next(now, &entropy));
        let (known, start) = (KnownUrls::default(), Monotonic::new(Duration::ZERO));
        let key = |url: &str| UrlKey::of(url);
        let writes = ["a", "b"].map(|url| Write::PutUrl(mine, url.to_owned()));
        known.add(KnownUrls::keys(&writes.into_iter().collect()), start);
        assert!(known.knows((mine, key("a")), start) && known.knows((mine, key("b")), start));
        assert!(!known.knows((mine, key("c")), start) && !known.knows((other, key("a")), start));
        assert!(!known.knows((mine, key("a")), start + LIFETIME));
        known.forget(KnownUrls::removed(&Changes::from_iter([Write::Delete(DocumentKey::Url(mine, key("b")))])));
        assert!(known.knows((mine, key("a")), start) && !known.knows((mine, key("b")), start));
        // When the cache is full, known targets are dropped, and new ones kept.
        let many: Vec<_> = (0..CAPACITY).map(|number| (other, key(&number.to_string()))).collect();
        known.add(many, start);
        assert!(!known.knows((mine, key("a")), start) && known.knows((other, key("7")), start));
    }
}
