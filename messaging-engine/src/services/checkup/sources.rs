//! Looking whether the mail of every sending domain has an address to leave from.

use messaging_core::domain::delivery::ip_pool::source::NodeSource;
use messaging_core::domain::delivery::ip_pool::{IpPool, MailKind, Usable, pool_of, usable_sources};
use messaging_core::domain::installation::checkup::{CheckReport, SourcelessDomain, judge_sources};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Domains that are looked at, the first by name.
const MAX_DOMAINS: usize = 10_000;

impl App {
    /// The check of sources; `None` where there are no pools, because then mail leaves from every address.
    pub(super) async fn check_sources(&self) -> Result<Option<CheckReport>, StoreError> {
        let pools = self.ip_pools().await?;
        if pools.is_empty() {
            return Ok(None);
        }
        let live = self.store().live_sources().await?;
        let domains = self.store().all_domains(MAX_DOMAINS).await?;
        let sourceless: Vec<_> = domains.iter().filter_map(|domain| without_source(domain, &pools, &live)).collect();
        Ok(Some(judge_sources(live.len(), &sourceless)))
    }
}

/// The domain, if mail of a kind has no address; with the pool of that kind.
fn without_source(domain: &SendingDomain, pools: &[IpPool], live: &[NodeSource]) -> Option<SourcelessDomain> {
    let named = [MailKind::Transactional, MailKind::Marketing]
        .map(|kind| pool_of(kind, domain.ip_pool_id, domain.marketing_ip_pool_id));
    let lacks = |pool| match usable_sources(domain.workspace_id, pool, pools, live) {
        Usable::Sources(usable) => usable.is_empty(),
        Usable::NoPool => true,
    };
    let pool = named.into_iter().find(|pool| lacks(*pool))?;
    let name = |id| pools.iter().find(|pool| pool.id == id).map_or_else(|| id.to_string(), |pool| pool.name.clone());
    Some(SourcelessDomain { domain: domain.domain.clone(), pool: pool.map(name) })
}
