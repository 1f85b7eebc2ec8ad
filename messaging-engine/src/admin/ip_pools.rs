//! IP pools that all workspaces share, and the addresses that workspaces may name in their own.

use std::net::{IpAddr, Ipv6Addr};

use messaging_core::changes::{Changes, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::{IpGrant, IpPool, MAX_IPS, MAX_POOLS, parse_ip};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::ids::{PoolId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, Stored};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations, refuse};
use serde::{Deserialize, Serialize};

use super::accounts::Listing;
use crate::app::App;
use crate::error::Error;
use crate::jobs::work_on_queue::WorkOnQueue;
use crate::ops::ip_pools::{IpPoolView, read_ips, removal};
use crate::ops::{Page, PageQuery};
use crate::services::auditing::Command;

/// Longest name of a pool, in characters.
const MAX_NAME: usize = 100;

/// Maximum number of sending domains, of all workspaces, that are searched before a pool is deleted. Mail of a domain
/// beyond it waits if its pool is gone.
const MAX_DOMAINS: usize = 100_000;

/// An address that a workspace may name in its IP pools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrantReport {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The address.
    pub ip: IpAddr,
    /// Time at which the address was released to the workspace.
    pub granted_at: Timestamp,
}

impl GrantReport {
    fn of(grant: IpGrant) -> Self {
        Self { workspace_id: grant.workspace_id, ip: grant.ip, granted_at: grant.granted_at }
    }
}

/// A new pool that all workspaces share.
#[derive(Debug, Clone)]
pub struct SharedPoolInput {
    /// Name of 1 to 100 characters, unique among the shared pools.
    pub name: String,
    /// 1 to 100 addresses.
    pub ips: Vec<String>,
}

/// A change of a pool that all workspaces share; a member that is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct SharedPoolChange {
    /// Name of 1 to 100 characters, unique among the shared pools.
    pub name: Option<String>,
    /// Addresses that replace all present ones, 1 to 100.
    pub ips: Option<Vec<String>>,
}

/// Adds a violation for each broken rule of the members, and returns the valid addresses.
fn check(name: Option<&str>, ips: Option<&[String]>, violations: &mut Violations) -> Vec<IpAddr> {
    match name.map(|name| name.chars().count()) {
        Some(0) => violations.add("/name", FieldCode::Required, "is required"),
        Some(length) if length > MAX_NAME => {
            violations.add("/name", FieldCode::TooLong, format_args!("has more than {MAX_NAME} characters"));
        }
        _ => {}
    }
    let Some(ips) = ips else { return Vec::new() };
    if ips.is_empty() {
        violations.add("/ips", FieldCode::Required, "name at least one address");
    } else if ips.len() > MAX_IPS {
        violations.add("/ips", FieldCode::TooManyItems, format_args!("a pool has at most {MAX_IPS} addresses"));
    }
    read_ips(ips, violations)
}

/// Creates a pool that every workspace may use and none may change.
pub async fn create_shared_pool(app: &App, input: &SharedPoolInput) -> Result<IpPoolView, Error> {
    let mut violations = Violations::new();
    let ips = check(Some(&input.name), Some(&input.ips), &mut violations);
    violations.into_result()?;
    let known = app.known_sources().await?;
    app.until_committed(|| async {
        let shared = app.store().shared_ip_pools(MAX_POOLS).await?;
        if shared.iter().any(|stored| stored.record.name == input.name) {
            return Err(Error::AlreadyExists);
        }
        if shared.len() >= MAX_POOLS {
            let message = format_args!("there are at most {MAX_POOLS} shared pools; delete one first");
            return Err(refuse("/name", FieldCode::TooManyItems, message).into());
        }
        let now = app.now();
        let pool = IpPool {
            id: app.new_id(now),
            workspace_id: None,
            name: input.name.clone(),
            ips: ips.clone(),
            created_at: now,
            updated_at: now,
        };
        let changes = Changes::from_iter([Write::put(pool.clone(), Expect::Absent)]);
        let view = IpPoolView::of(pool, &known);
        let command = of_pool("admin ip-pool create", &view).after(&view);
        Ok((app.record_command(changes, command).await?, view))
    })
    .await
}

/// Returns the pools that all workspaces share, newest first.
pub async fn list_shared_pools(app: &App) -> Result<Page<IpPoolView>, Error> {
    let known = app.known_sources().await?;
    let shared = app.store().shared_ip_pools(MAX_POOLS).await?;
    Ok(Page::only(shared.into_iter().map(|stored| IpPoolView::of(stored.record, &known)).collect()))
}

/// Returns the shared pool with an id.
async fn shared(app: &App, id: PoolId) -> Result<Stored<IpPool>, Error> {
    let all = app.store().shared_ip_pools(MAX_POOLS).await?;
    all.into_iter().find(|stored| stored.record.id == id).ok_or(Error::NotFound)
}

/// Changes a pool that all workspaces share.
pub async fn update_shared_pool(app: &App, id: PoolId, change: &SharedPoolChange) -> Result<IpPoolView, Error> {
    let mut violations = Violations::new();
    let ips = check(change.name.as_deref(), change.ips.as_deref(), &mut violations);
    violations.into_result()?;
    let known = app.known_sources().await?;
    app.until_committed(|| async {
        let Stored { record, revision } = shared(app, id).await?;
        let mut pool = record.clone();
        if let Some(name) = change.name.as_ref().filter(|name| **name != record.name) {
            let all = app.store().shared_ip_pools(MAX_POOLS).await?;
            if all.iter().any(|stored| stored.record.name == *name) {
                return Err(Error::AlreadyExists);
            }
            pool.name.clone_from(name);
        }
        if change.ips.is_some() {
            pool.ips.clone_from(&ips);
        }
        let mut changes = Changes::default();
        if pool != record {
            pool.updated_at = app.now();
            changes.push(Write::put(pool.clone(), Expect::Revision(revision)));
        }
        if pool.ips != record.ips {
            let now = app.now();
            changes.push(Write::Job(WorkOnQueue::find_source(None, app.new_id(now), now)));
        }
        let view = IpPoolView::of(pool, &known);
        let command = of_pool("admin ip-pool update", &view).before(&IpPoolView::of(record, &known)).after(&view);
        Ok((app.record_command(changes, command).await?, view))
    })
    .await
}

/// Deletes a pool that all workspaces share, unless a sending domain names it.
pub async fn delete_shared_pool(app: &App, id: PoolId) -> Result<IpPoolView, Error> {
    let known = app.known_sources().await?;
    app.until_committed(|| async {
        let Stored { record, revision } = shared(app, id).await?;
        let domains: Vec<SendingDomain> = app.store().all_domains(MAX_DOMAINS).await?;
        let writes = removal(record.clone(), revision, &domains)?;
        let view = IpPoolView::of(record, &known);
        let command = of_pool("admin ip-pool delete", &view).before(&view);
        Ok((app.record_command(Changes::from_iter(writes), command).await?, view))
    })
    .await
}

/// Returns the audit entry of a command on a shared pool.
fn of_pool(operation: &'static str, pool: &IpPoolView) -> Command {
    Command::new(operation, "ip_pool", Some(pool.id.to_string()), Some(&pool.name))
}

/// Returns the audit entry of a command on an address that a workspace may name.
fn of_grant(operation: &'static str, grant: &GrantReport) -> Command {
    Command::new(operation, "ip_grant", Some(grant.ip.to_string()), None).within(grant.workspace_id)
}

/// Parses the address that a command names.
fn read_ip(text: &str) -> Result<IpAddr, Error> {
    parse_ip(text).ok_or_else(|| refuse("/ip", FieldCode::InvalidFormat, "is not an IPv4 or IPv6 address").into())
}

/// Lets a workspace name an address in its IP pools. Changes nothing if the workspace may name it already.
pub async fn grant_ip(app: &App, workspace: WorkspaceId, ip: &str) -> Result<GrantReport, Error> {
    let ip = read_ip(ip)?;
    app.until_committed(|| async {
        app.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
        if let Some(known) = find_grant(app, workspace, ip).await? {
            return Ok((Changes::default(), GrantReport::of(known)));
        }
        let grant = IpGrant { workspace_id: workspace, ip, granted_at: app.now() };
        let changes = Changes::from_iter([Write::Source(SourceWrite::Grant(grant))]);
        let report = GrantReport::of(grant);
        let command = of_grant("admin ip-grant add", &report).after(&report);
        Ok((app.record_command(changes, command).await?, report))
    })
    .await
}

/// Takes an address back from a workspace, unless one of its IP pools names the address. A pool that begins to name it
/// at the same moment keeps it.
pub async fn revoke_ip(app: &App, workspace: WorkspaceId, ip: &str) -> Result<GrantReport, Error> {
    let ip = read_ip(ip)?;
    app.until_committed(|| async {
        let grant = find_grant(app, workspace, ip).await?.ok_or(Error::NotFound)?;
        let page = PageRequest { after: None, limit: 2 * MAX_POOLS };
        let pools = app.store().ip_pools(workspace, page).await?.items;
        let naming = pools.iter().filter(|pool| !pool.is_shared() && pool.ips.contains(&ip));
        let by: Vec<_> = naming.map(|pool| pool.id.to_string()).collect();
        if !by.is_empty() {
            return Err(Error::InUse { by });
        }
        let revoke = Write::Source(SourceWrite::Revoke(workspace, ip));
        let report = GrantReport::of(grant);
        let command = of_grant("admin ip-grant remove", &report).before(&report);
        Ok((app.record_command(Changes::from_iter([revoke]), command).await?, report))
    })
    .await
}

async fn find_grant(app: &App, workspace: WorkspaceId, ip: IpAddr) -> Result<Option<IpGrant>, Error> {
    Ok(app.store().granted_ips(workspace, &[ip]).await?.pop())
}

/// Returns the addresses that a workspace may name in its IP pools, sorted as text.
pub async fn list_grants(app: &App, workspace: WorkspaceId, page: &PageQuery) -> Result<Page<GrantReport>, Error> {
    app.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
    let listing = Listing { app, name: "ip-grants" };
    let PageRequest { after, limit } = listing.request(page)?;
    let after = after.map(|place| IpAddr::from(Ipv6Addr::from(place.to_bytes())).to_canonical());
    let mut items = app.store().ip_grants(workspace, after, limit.saturating_add(1)).await?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|grant| place_of(grant.ip));
    Ok(listing.page(Slice { items, next }, GrantReport::of))
}

/// Returns the cursor of an address in a listing.
fn place_of(ip: IpAddr) -> StoreCursor {
    let octets = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    StoreCursor::from_bytes(octets)
}
