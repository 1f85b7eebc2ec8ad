//! Which targets of redirected links are stored already.
//!
//! The messages of a mailing have the same links. A target is kept until somebody it names is erased, so once
//! it was committed nothing has to be written for it again; without this memory each message would write all
//! of its own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;

/// Beyond this many the memory starts anew; about 1 MB.
const CAPACITY: usize = 20_000;

type Key = (WorkspaceId, UrlKey);

/// Targets that were committed.
#[derive(Debug, Default)]
pub(crate) struct KnownUrls(Mutex<HashSet<Key>>);

impl KnownUrls {
    /// The targets that a set of changes stores.
    pub(crate) fn keys(changes: &Changes) -> Vec<Key> {
        let stored = changes.writes().iter().filter_map(|write| match write {
            Write::PutUrl(workspace, url) => Some((*workspace, UrlKey::of(url))),
            _ => None,
        });
        stored.collect()
    }

    /// The targets that a set of changes removes.
    pub(crate) fn removed(changes: &Changes) -> Vec<Key> {
        let removed = changes.writes().iter().filter_map(|write| match write {
            Write::DeleteUrl(workspace, key) => Some((*workspace, *key)),
            _ => None,
        });
        removed.collect()
    }

    /// Notes targets that are committed now.
    pub(crate) fn add(&self, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() + keys.len() > CAPACITY {
            known.clear();
        }
        known.extend(keys);
    }

    /// Forgets the targets that a set of changes, now committed, removed.
    pub(crate) fn forget(&self, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            known.remove(&key);
        }
    }

    pub(crate) fn knows(&self, key: Key) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
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
        let known = KnownUrls::default();
        let key = |url: &str| UrlKey::of(url);
        let writes = ["a", "b"].map(|url| Write::PutUrl(mine, url.to_owned()));
        known.add(KnownUrls::keys(&writes.into_iter().collect()));
        assert!(known.knows((mine, key("a"))) && known.knows((mine, key("b"))));
        assert!(!known.knows((mine, key("c"))) && !known.knows((other, key("a"))));
        known.forget(KnownUrls::removed(&Changes::from_iter([Write::DeleteUrl(mine, key("b"))])));
        assert!(known.knows((mine, key("a"))) && !known.knows((mine, key("b"))));
        // Full: what was known is forgotten, what comes is kept.
        let many: Vec<_> = (0..CAPACITY).map(|number| (other, key(&number.to_string()))).collect();
        known.add(many);
        assert!(!known.knows((mine, key("a"))) && known.knows((other, key("7"))));
    }
}
