//! Cases for IP pools and the addresses that workspaces may name.

use std::net::IpAddr;

use messaging_core::changes::{DocumentKey, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::{IpGrant, IpPool};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, id, ip, ip_pool};
use super::{all_pages, first, put, refuse};

/// The write that creates a pool.
fn add(pool: &IpPool) -> Write {
    Write::put(pool.clone(), Expect::Absent)
}

/// A pool is found by id and by name, with all fields, and is replaced at its revision alone.
pub async fn pools_round_trip(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let pool = ip_pool(Some(workspace), "marketing");
    put(store, [add(&pool)]).await;
    let found = store.ip_pool(workspace, pool.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&pool, 1));
    assert_eq!(store.ip_pool_by_name(workspace, "marketing").await.unwrap(), Some(found));
    assert_eq!(store.ip_pool_by_name(workspace, "Marketing").await.unwrap(), None);
    let renamed = IpPool { name: "news".to_owned(), ips: vec![ip(9)], updated_at: at(9), ..pool };
    put(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    refuse(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.ip_pool(workspace, renamed.id).await.unwrap().unwrap().record, renamed);
    assert_eq!(store.ip_pool_by_name(workspace, "marketing").await.unwrap(), None);
}

/// A workspace has at most one pool of a name, and so have the shared ones; a deleted name is free again.
pub async fn names_of_pools_are_unique_in_their_workspace(store: &dyn Store) {
    let (mine, other) = (id(), id());
    for owner in [Some(mine), Some(other), None] {
        put(store, [add(&ip_pool(owner, "marketing"))]).await;
        refuse(store, [add(&ip_pool(owner, "marketing"))]).await;
    }
    let pool = store.ip_pool_by_name(mine, "marketing").await.unwrap().unwrap().record;
    put(store, [Write::Delete(DocumentKey::Pool(Some(other), pool.id))]).await;
    assert!(store.ip_pool(mine, pool.id).await.unwrap().is_some());
    for _ in 0..2 {
        put(store, [Write::Delete(DocumentKey::Pool(Some(mine), pool.id))]).await;
    }
    assert_eq!(store.ip_pool(mine, pool.id).await.unwrap(), None);
    refuse(store, [Write::put(pool, Expect::Revision(1))]).await;
    put(store, [add(&ip_pool(Some(mine), "marketing"))]).await;
}

/// A shared pool is there for every workspace beside its own; a pool of the same name hides it.
pub async fn shared_pools_are_there_for_everybody(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let (shared, own) = (ip_pool(None, "shared"), ip_pool(Some(mine), "own"));
    put(store, [add(&shared), add(&own)]).await;
    let names = async |workspace| {
        let pools = store.ip_pools(workspace, first(9)).await.unwrap().items;
        pools.into_iter().map(|pool| pool.name).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(mine).await, names(other).await),
        (vec!["own".to_owned(), "shared".to_owned()], vec!["shared".to_owned()])
    );
    for workspace in [mine, other] {
        assert_eq!(store.ip_pool(workspace, shared.id).await.unwrap().unwrap().record, shared);
        assert_eq!(store.ip_pool_by_name(workspace, "shared").await.unwrap().unwrap().record, shared);
    }
    let hiding = ip_pool(Some(mine), "shared");
    put(store, [add(&hiding)]).await;
    assert_eq!(store.ip_pool_by_name(mine, "shared").await.unwrap().unwrap().record, hiding);
    let all = store.shared_ip_pools(9).await.unwrap();
    assert_eq!(all.iter().map(|stored| (&stored.record, stored.revision)).collect::<Vec<_>>(), [(&shared, 1)]);
    put(store, [Write::Delete(DocumentKey::Pool(None, shared.id))]).await;
    assert_eq!(store.shared_ip_pools(9).await.unwrap(), []);
}

/// The pools of all workspaces are listed by id, page by page.
pub async fn all_pools_are_listed_in_order(store: &dyn Store) {
    let pools = [Some(id()), None, Some(id())].map(|owner| ip_pool(owner, "one"));
    put(store, pools.iter().rev().map(add).collect::<Vec<_>>()).await;
    assert_eq!(store.all_ip_pools(None, 9).await.unwrap(), pools);
    assert_eq!(store.all_ip_pools(None, 2).await.unwrap(), pools[..2]);
    assert_eq!(store.all_ip_pools(Some(pools[1].id), 9).await.unwrap(), pools[2..]);
}

/// The pages of a listing neither skip nor repeat a pool while others are added.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let new = |n: usize| ip_pool(n.is_multiple_of(2).then_some(workspace), &format!("{}", id::<WorkspaceId>()));
    let mut expected = Vec::new();
    for n in 0..5 {
        let pool = new(n);
        put(store, [add(&pool)]).await;
        expected.insert(0, pool);
    }
    let add_more = async || put(store, [add(&new(0)), add(&new(1))]).await;
    let listed = all_pages(2, async |page| store.ip_pools(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A pool cannot be read through another workspace, nor moved to it, nor shared.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let pool = ip_pool(Some(mine), "marketing");
    put(store, [add(&pool)]).await;
    assert_eq!(store.ip_pool(other, pool.id).await.unwrap(), None);
    assert_eq!(store.ip_pool_by_name(other, "marketing").await.unwrap(), None);
    assert_eq!(store.ip_pools(other, first(10)).await.unwrap().items, []);
    for owner in [Some(other), None] {
        refuse(store, [Write::put(IpPool { workspace_id: owner, ..pool.clone() }, Expect::Revision(1))]).await;
    }
}

/// An address is released to one workspace once, keeps the time of that, and is listed by its text until it is taken back.
pub async fn addresses_are_granted_and_revoked(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let six: IpAddr = "2001:db8::1".parse().unwrap();
    let grant = |workspace_id, ip, time| IpGrant { workspace_id, ip, granted_at: at(time) };
    let write = |grant| Write::Source(SourceWrite::Grant(grant));
    put(store, [write(grant(mine, ip(2), 1)), write(grant(mine, ip(1), 2)), write(grant(mine, six, 3))]).await;
    put(store, [write(grant(mine, ip(1), 9)), write(grant(other, ip(3), 4))]).await;
    let all = [grant(mine, six, 3), grant(mine, ip(1), 2), grant(mine, ip(2), 1)];
    assert_eq!(store.ip_grants(mine, None, 9).await.unwrap(), all);
    assert_eq!(store.ip_grants(mine, None, 1).await.unwrap(), all[..1]);
    assert_eq!(store.ip_grants(mine, Some(six), 9).await.unwrap(), all[1..]);
    let mut granted = store.granted_ips(mine, &[ip(3), ip(2), six, ip(4)]).await.unwrap();
    granted.sort_by_key(|grant| grant.ip);
    assert_eq!(granted, [grant(mine, ip(2), 1), grant(mine, six, 3)]);
    assert_eq!(store.granted_ips(mine, &[]).await.unwrap(), []);
    for _ in 0..2 {
        put(store, [Write::Source(SourceWrite::Revoke(mine, ip(2))), Write::Source(SourceWrite::Revoke(other, ip(1)))])
            .await;
    }
    assert_eq!(store.ip_grants(mine, None, 9).await.unwrap(), all[..2]);
    assert_eq!(store.ip_grants(other, None, 9).await.unwrap(), [grant(other, ip(3), 4)]);
}
