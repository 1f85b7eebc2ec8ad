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

use crate::app::App;

/// Beyond this many the memory starts anew; about 1 MB.
const CAPACITY: usize = 20_000;

type Key = (WorkspaceId, UrlKey);

/// Targets that were committed.
#[derive(Debug, Default)]
pub(super) struct KnownUrls(Mutex<HashSet<Key>>);

impl KnownUrls {
    /// The targets that a set of changes stores.
    pub(super) fn keys(changes: &Changes) -> Vec<Key> {
        let stored = changes.writes().iter().filter_map(|write| match write {
            Write::PutUrl(workspace, url) => Some((*workspace, UrlKey::of(url))),
            _ => None,
        });
        stored.collect()
    }

    /// The targets that a set of changes removes.
    pub(super) fn removed(changes: &Changes) -> Vec<Key> {
        let removed = changes.writes().iter().filter_map(|write| match write {
            Write::DeleteUrl(workspace, key) => Some((*workspace, *key)),
            _ => None,
        });
        removed.collect()
    }

    /// Notes targets that are committed now.
    pub(super) fn add(&self, keys: Vec<Key>) {
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
    pub(super) fn forget(&self, keys: Vec<Key>) {
        if keys.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            known.remove(&key);
        }
    }

    fn knows(&self, key: Key) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}

impl App {
    /// The writes that store targets of redirected links, without those that are known to be stored. They
    /// are to be committed before the message leaves.
    pub fn store_urls(&self, workspace: WorkspaceId, urls: Vec<String>) -> Vec<Write> {
        let is_news = |url: &String| !self.known_urls().knows((workspace, UrlKey::of(url)));
        urls.into_iter().filter(is_news).map(|url| Write::PutUrl(workspace, url)).collect()
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
