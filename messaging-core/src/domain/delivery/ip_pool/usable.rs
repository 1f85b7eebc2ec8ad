//! Choice of the sources that a message may leave from.

use std::net::IpAddr;

use super::IpPool;
use super::source::NodeSource;
use crate::ids::{PoolId, WorkspaceId};

/// Kind of a message, by which its domain chooses the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailKind {
    /// A message that was sent by itself.
    Transactional,
    /// Mail of a campaign or an automation.
    Marketing,
}

/// Returns the pool of a message, of those that its sending domain names: marketing mail leaves from the second where
/// there is one. `None` where the domain names none for it.
pub const fn pool_of(kind: MailKind, pool: Option<PoolId>, marketing_pool: Option<PoolId>) -> Option<PoolId> {
    match (kind, marketing_pool) {
        (MailKind::Marketing, Some(_)) => marketing_pool,
        _ => pool,
    }
}

/// Sources that a message may leave from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usable<'a> {
    /// Live sources, in their order. Empty when no live node has one.
    Sources(Vec<&'a NodeSource>),
    /// No source, because the pool does not exist or belongs to another workspace.
    NoPool,
}

/// Returns the live sources that a message of a workspace may leave from, given the pool that its domain names for it
/// and the pools of all workspaces.
///
/// With a pool these are its addresses. Without one they are all that no pool of another workspace holds, including the
/// default source of a node, which no pool can name; a shared pool reserves nothing.
pub fn usable_sources<'a>(
    workspace: WorkspaceId,
    pool: Option<PoolId>,
    pools: &[IpPool],
    live: &'a [NodeSource],
) -> Usable<'a> {
    let named = pool.map(|id| pools.iter().find(|pool| pool.id == id && pool.is_open_to(workspace)));
    let is_allowed = |ip: IpAddr| match named {
        Some(pool) => pool.is_some_and(|pool| pool.ips.contains(&ip)),
        None => !pools.iter().any(|pool| !pool.is_open_to(workspace) && pool.ips.contains(&ip)),
    };
    if let Some(None) = named {
        return Usable::NoPool;
    }
    let is_usable = |live: &&NodeSource| live.source.ip.ip().map_or(pool.is_none(), is_allowed);
    Usable::Sources(live.iter().filter(is_usable).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delivery::ip_pool::source::{NamedSource, SourceAddress};
    use crate::ids::Id as _;
    use crate::time::Timestamp;

    const MINE: u8 = 1;
    const OTHER: u8 = 2;

    fn workspace(n: u8) -> WorkspaceId {
        WorkspaceId::from_bytes([n; 16])
    }

    fn id(n: u8) -> PoolId {
        PoolId::from_bytes([n; 16])
    }

    /// Returns the address that ends with a number.
    fn ip(n: u8) -> IpAddr {
        IpAddr::from([203, 0, 113, n])
    }

    fn pool(n: u8, owner: Option<u8>, ips: &[u8]) -> IpPool {
        IpPool {
            id: id(n),
            workspace_id: owner.map(workspace),
            name: format!("pool {n}"),
            ips: ips.iter().copied().map(ip).collect(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        }
    }

    fn live(ip: SourceAddress) -> NodeSource {
        let source = NamedSource { ip, name: "mx.example.org".to_owned() };
        NodeSource { source, node: "one".to_owned(), joined: 1, is_own: false }
    }

    #[track_caller]
    fn check(pool: Option<u8>, pools: &[IpPool], expected: Option<&[u8]>) {
        let live: Vec<_> = (1..=4).map(|n| live(ip(n).into())).chain([live(SourceAddress::Default)]).collect();
        let usable = match usable_sources(workspace(MINE), pool.map(id), pools, &live) {
            Usable::NoPool => None,
            // 0 stands for the default source.
            Usable::Sources(sources) => Some(
                sources
                    .iter()
                    .map(|live| match live.source.ip.ip() {
                        Some(IpAddr::V4(ip)) => ip.octets()[3],
                        _ => 0,
                    })
                    .collect::<Vec<_>>(),
            ),
        };
        assert_eq!(usable.as_deref(), expected);
    }

    #[test]
    fn a_pool_has_its_live_addresses_and_nobody_has_those_of_others() {
        let pools = [
            pool(1, Some(MINE), &[1, 2]),
            pool(2, Some(OTHER), &[2, 3]),
            pool(3, None, &[3, 4]),
            pool(4, Some(MINE), &[9]),
            pool(5, Some(MINE), &[]),
        ];
        check(Some(1), &pools, Some(&[1, 2]));
        check(Some(2), &pools, None);
        check(Some(3), &pools, Some(&[3, 4]));
        check(Some(4), &pools, Some(&[]));
        check(Some(5), &pools, Some(&[]));
        check(Some(6), &pools, None);
        // Without a pool: all that no other workspace holds. A shared pool reserves nothing.
        check(None, &pools, Some(&[1, 4, 0]));
        check(None, &[], Some(&[1, 2, 3, 4, 0]));
        check(None, &[pool(2, Some(OTHER), &[1, 2, 3, 4])], Some(&[0]));
    }

    #[test]
    fn marketing_mail_leaves_from_its_own_pool_where_there_is_one() {
        use MailKind::{Marketing, Transactional};
        let chosen = |kind, pool: Option<u8>, marketing: Option<u8>| pool_of(kind, pool.map(id), marketing.map(id));
        for (pool, marketing, transactional, campaign) in [
            (None, None, None, None),
            (Some(1), None, Some(1), Some(1)),
            (None, Some(2), None, Some(2)),
            (Some(1), Some(2), Some(1), Some(2)),
        ] {
            assert_eq!(chosen(Transactional, pool, marketing), transactional.map(id));
            assert_eq!(chosen(Marketing, pool, marketing), campaign.map(id));
        }
    }
}
