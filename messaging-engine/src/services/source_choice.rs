//! The sources that a message may leave from, by the pools of its sending domain.

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::ip_pool::source::{NodeSource, SourceAddress};
use messaging_core::domain::delivery::ip_pool::{IpPool, MailKind, Usable, pool_of, usable_sources};
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::message::Message;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Pools that are read at a time.
const READ_AT_ONCE: usize = 500;

/// Pools that are read in all.
const MAX_POOLS: usize = 20_000;

impl App {
    /// The sources of this process that an email may leave from; `None` for all of them.
    pub(crate) async fn sources_for(&self, message: &Message) -> Result<Option<Arc<[SourceAddress]>>, StoreError> {
        if message.channel != Channel::Email {
            return Ok(None);
        }
        let is_marketing = message.campaign_id.is_some() || message.automation_id.is_some();
        let kind = if is_marketing { MailKind::Marketing } else { MailKind::Transactional };
        let from = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok());
        self.sources_from(message.workspace_id, from.as_ref(), kind).await
    }

    /// The same for mail of a kind from an address of a workspace.
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
        let domains = self.sending_domains(workspace).await?;
        let domain = from.and_then(|from| responsible(&domains, &from.ascii_domain()));
        let pool = domain.and_then(|domain| pool_of(kind, domain.ip_pool_id, domain.marketing_ip_pool_id));
        let own = self.paths().sources().iter();
        let own: Vec<_> =
            own.map(|source| NodeSource { source: source.as_ref().clone(), node: String::new() }).collect();
        let usable: Arc<[SourceAddress]> = match usable_sources(workspace, pool, &pools, &own) {
            Usable::Sources(usable) => usable.into_iter().map(|source| source.ip).collect(),
            Usable::NoPool => Arc::from([]),
        };
        Ok(Some(usable))
    }

    /// The live sources that mail of a workspace may leave from where its domain names no pool.
    pub(crate) async fn sources_of(
        &self,
        workspace: WorkspaceId,
        live: &[NodeSource],
    ) -> Result<Vec<SourceAddress>, StoreError> {
        let pools = self.ip_pools().await?;
        Ok(match usable_sources(workspace, None, &pools, live) {
            Usable::Sources(usable) => usable.into_iter().map(|source| source.ip).collect(),
            Usable::NoPool => Vec::new(),
        })
    }

    /// The IP pools of all workspaces, as of the last second.
    async fn ip_pools(&self) -> Result<Arc<Vec<IpPool>>, StoreError> {
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
