//! The sources that a message may leave from, by the pools of its sending domain.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::ip_pool::source::{NodeSource, SourceAddress, in_use};
use messaging_core::domain::delivery::ip_pool::{IpPool, MailKind, Usable, pool_of, usable_sources};
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::message::Message;
use messaging_core::ids::{Id as _, PoolId, WorkspaceId};
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Number of pools that are read at a time.
const READ_AT_ONCE: usize = 500;

/// Largest number of pools that are read in all.
const MAX_POOLS: usize = 20_000;

/// Process that uses an address that a message may leave from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceHolder {
    /// This process.
    Own,
    /// The process with this number ([`NodeSource::joined`]).
    Node(i64),
    /// No running process.
    Nobody,
}

/// Returns the kind of a message, by which its domain chooses the pool.
fn kind_of(message: &Message) -> MailKind {
    let is_marketing = message.campaign_id.is_some() || message.automation_id.is_some();
    if is_marketing { MailKind::Marketing } else { MailKind::Transactional }
}

/// Returns the address that a message is from.
fn sender_of(message: &Message) -> Option<EmailAddress> {
    message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok())
}

impl App {
    /// Returns the sources of this process that an email may leave from; `None` for all of them.
    pub(crate) async fn sources_for(&self, message: &Message) -> Result<Option<Arc<[SourceAddress]>>, StoreError> {
        if message.channel != Channel::Email {
            return Ok(None);
        }
        self.sources_from(message.workspace_id, sender_of(message).as_ref(), kind_of(message)).await
    }

    /// Returns the process that uses an address that a message may leave from. `Own` may have become true a moment ago.
    pub(crate) async fn source_holder_for(&self, message: &Message) -> Result<SourceHolder, StoreError> {
        let load = async { self.store().live_sources().await };
        let live = self.lookups().live_sources.look(self.now(), load).await?;
        let used: Vec<_> = in_use(&live).into_iter().cloned().collect();
        let pools = self.ip_pools().await?;
        let from = sender_of(message);
        let pool = self.pool_from(message.workspace_id, from.as_ref(), kind_of(message)).await?;
        let pool = pool.filter(|_| !pools.is_empty());
        let Usable::Sources(usable) = usable_sources(message.workspace_id, pool, &pools, &used) else {
            return Ok(SourceHolder::Nobody);
        };
        if usable.iter().any(|live| live.is_own) {
            return Ok(SourceHolder::Own);
        }
        // Messages take turns among the nodes, each by its own number.
        let [.., number] = message.id.to_bytes();
        let chosen = usable.get(usize::from(number) % usable.len().max(1));
        Ok(chosen.map_or(SourceHolder::Nobody, |live| SourceHolder::Node(live.joined)))
    }

    /// Returns the sources of this process for mail of a kind from an address of a workspace; `None` for all of them.
    pub(crate) async fn sources_from(
        &self,
        workspace: WorkspaceId,
        from: Option<&EmailAddress>,
        kind: MailKind,
    ) -> Result<Option<Arc<[SourceAddress]>>, StoreError> {
        let pools = self.ip_pools().await?;
        if pools.is_empty() {
            return Ok(None);
        }
        let pool = self.pool_from(workspace, from, kind).await?;
        let own: Vec<_> = self.paths().sources().iter().map(|source| NodeSource::own(source)).collect();
        let usable: Arc<[SourceAddress]> = match usable_sources(workspace, pool, &pools, &own) {
            Usable::Sources(usable) => usable.into_iter().map(|live| live.source.ip).collect(),
            Usable::NoPool => Arc::from([]),
        };
        Ok(Some(usable))
    }

    /// Returns the pool that the sending domain of an address names for mail of a kind.
    async fn pool_from(
        &self,
        workspace: WorkspaceId,
        from: Option<&EmailAddress>,
        kind: MailKind,
    ) -> Result<Option<PoolId>, StoreError> {
        let domains = self.sending_domains(workspace).await?;
        let domain = from.and_then(|from| responsible(&domains, &from.ascii_domain()));
        Ok(domain.and_then(|domain| pool_of(kind, domain.ip_pool_id, domain.marketing_ip_pool_id)))
    }

    /// Returns the live sources that mail of a workspace may leave from if its domain names no pool.
    pub(crate) async fn sources_of(
        &self,
        workspace: WorkspaceId,
        live: &[NodeSource],
    ) -> Result<Vec<SourceAddress>, StoreError> {
        let pools = self.ip_pools().await?;
        Ok(match usable_sources(workspace, None, &pools, live) {
            Usable::Sources(usable) => usable.into_iter().map(|live| live.source.ip).collect(),
            Usable::NoPool => Vec::new(),
        })
    }

    /// Returns the IP pools of all workspaces, at most a second old.
    pub(super) async fn ip_pools(&self) -> Result<Arc<Vec<IpPool>>, StoreError> {
        let load = async {
            let mut pools: Vec<IpPool> = Vec::new();
            while pools.len() < MAX_POOLS {
                let page = self.store().all_ip_pools(pools.last().map(|pool| pool.id), READ_AT_ONCE).await?;
                let is_last = page.len() < READ_AT_ONCE;
                pools.extend(page);
                if is_last {
                    break;
                }
            }
            Ok(pools)
        };
        self.lookups().ip_pools.look(self.now(), load).await
    }
}
