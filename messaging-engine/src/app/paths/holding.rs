//! The sources that a node uses, of those that it has.
//!
//! Two nodes may name one address. One of them, the oldest, counts the messages that a path may have; the others send
//! none over it, and pass mail for it on to that node. When it is gone, the next one reads what it has stored, and
//! continues from there.

use std::sync::atomic::Ordering;

use messaging_core::domain::delivery::ip_pool::source::{NodeSource, SourceAddress, in_use};
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::ports::store::{Store, StoreError, Stored};

use super::rows::read;
use super::{KeptPath, PathKeeper};

impl PathKeeper {
    /// True if this node uses one of these sources.
    pub(crate) fn uses_any(&self, sources: Option<&[SourceAddress]>) -> bool {
        let is_meant = |ip| sources.is_none_or(|sources| sources.contains(&ip));
        (0..self.sources.len()).any(|at| self.uses_at(at) && is_meant(self.sources[at].ip))
    }

    pub(super) fn uses_at(&self, at: usize) -> bool {
        self.uses[at].load(Ordering::Relaxed)
    }

    /// True if another node may have one of the sources: the default one is of each node by itself.
    fn may_share(&self) -> bool {
        self.sources.iter().any(|source| source.ip != SourceAddress::Default)
    }

    /// Looks which nodes live, gives up sources that another one uses, and takes over those that it left.
    pub(crate) async fn look_who_uses_what(&self, store: &dyn Store) -> Result<(), StoreError> {
        if !self.may_share() || !self.is_loaded() {
            return Ok(());
        }
        let live = store.live_sources().await?;
        let used = in_use(&live);
        for at in 0..self.sources.len() {
            let ip = self.sources[at].ip;
            // A node that nobody has seen for a while does not say what it has, and claims nothing either.
            let Some(user) = used.iter().find(|live| live.source.ip == ip && ip != SourceAddress::Default) else {
                continue;
            };
            self.use_or_leave(store, at, user).await?;
        }
        Ok(())
    }

    async fn use_or_leave(&self, store: &dyn Store, at: usize, user: &NodeSource) -> Result<(), StoreError> {
        if user.is_own == self.uses_at(at) {
            return Ok(());
        }
        let source = self.sources[at].ip;
        if !user.is_own {
            tracing::info!(%source, node = user.node, "another node uses an address of this one");
            let _state = self.lock();
            self.uses[at].store(false, Ordering::Relaxed);
            return Ok(());
        }
        let row = store.source_row(source).await?;
        let paths = self.read_paths(store, at, 0).await?;
        let now = self.clock.now();
        let mut state = self.lock();
        // Somebody else may have done it meanwhile, and have counted since.
        if self.uses_at(at) {
            return Ok(());
        }
        if let Some(Stored { record, revision }) = row {
            (state.sources[at].row, state.sources[at].revision) = (record, Some(revision));
        }
        state.paths.retain(|(of, _), _| *of != at);
        for Stored { record, revision } in paths {
            let Ok(site) = SiteName::parse(&record.site) else { continue };
            state.paths.insert((at, site), KeptPath::stored(read(&record), revision, now));
        }
        state.heed_order(at, now);
        self.uses[at].store(true, Ordering::Relaxed);
        drop(state);
        tracing::info!(%source, "this node goes on with an address that another one has left");
        Ok(())
    }
}
