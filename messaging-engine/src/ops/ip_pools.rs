//! IP pools: named sets of the addresses that mail leaves from.
//!
//! Contract section 14.2. Pools that the operator shares are shown here and changed by [`admin`](crate::admin) alone.

use std::net::IpAddr;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::delivery::ip_pool::source::SourceStatus;
use messaging_core::domain::delivery::ip_pool::{IpPool, MAX_IPS, MAX_POOLS, parse_ip};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::ids::{DomainId, PoolId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Replace;
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::jobs::work_on_queue::WorkOnQueue;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::services::lookups::MAX_LOOKED_AT;
use crate::services::sources::KnownSources;

/// Longest name of a pool, in characters.
const MAX_NAME: u64 = 100;

/// [`MAX_IPS`] in the type that rules of members take.
const MOST_IPS: u64 = MAX_IPS as u64;

/// State of an address of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolSourceStatus {
    /// No running node has the address: no mail leaves from it.
    Absent,
    /// The address is new, or was not used for long, and sends little more each day.
    Warming,
    /// The address sends as much as sites accept.
    Warm,
    /// The address sends nothing for a while.
    Resting,
    /// The address sends nothing until the operator resumes it.
    Stopped,
}

impl From<Option<SourceStatus>> for PoolSourceStatus {
    fn from(status: Option<SourceStatus>) -> Self {
        match status {
            None => Self::Absent,
            Some(SourceStatus::Warming) => Self::Warming,
            Some(SourceStatus::Warm) => Self::Warm,
            Some(SourceStatus::Resting) => Self::Resting,
            Some(SourceStatus::Stopped) => Self::Stopped,
        }
    }
}

/// An address of a pool with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IpPoolSource")]
#[non_exhaustive]
pub struct PoolSource {
    /// The address.
    pub ip: IpAddr,
    /// State of the address; `absent` if no running node has it.
    pub status: PoolSourceStatus,
}

/// An IP pool as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IpPool")]
#[non_exhaustive]
pub struct IpPoolView {
    /// Id of the pool.
    pub id: PoolId,
    /// Name of the pool, unique in the workspace.
    pub name: String,
    /// Addresses that mail leaves from.
    pub ips: Vec<IpAddr>,
    /// True for a pool of the operator, which every workspace may use and none may change.
    pub shared: bool,
    /// The addresses with their states, in the same order.
    pub sources: Vec<PoolSource>,
    /// Time at which the pool was made.
    pub created_at: Timestamp,
    /// Time of the latest change of the pool.
    pub updated_at: Timestamp,
}

impl IpPoolView {
    /// Returns the view of a pool.
    pub(crate) fn of(pool: IpPool, known: &KnownSources) -> Self {
        let source = |ip: &IpAddr| PoolSource { ip: *ip, status: known.status_of(*ip).into() };
        Self {
            id: pool.id,
            shared: pool.is_shared(),
            name: pool.name,
            sources: pool.ips.iter().map(source).collect(),
            ips: pool.ips,
            created_at: pool.created_at,
            updated_at: pool.updated_at,
        }
    }
}

/// `GET /workspaces/{workspace_id}/ip-pools`
pub struct ListIpPools;

impl Operation for ListIpPools {
    const ID: &'static str = "listIpPools";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/ip-pools";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "pool list";
    const SUMMARY: &'static str = "List the IP pools of a workspace and those that all share, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<IpPoolView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<IpPoolView>, Error> {
        let slice = cx.store().ip_pools(call.path.workspace_id, cx.page(&call.query)?).await?;
        let known = cx.app.known_sources().await?;
        Ok(cx.answer_page(slice, |pool| IpPoolView::of(pool, &known)))
    }
}

/// A new IP pool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IpPoolInput {
    /// 1 to 100 characters; no other pool of the workspace has the name, and no shared one.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// 1 to 100 addresses, IPv4 or IPv6, that the operator has released to the workspace. One that no node has yet is
    /// shown as absent until one does.
    #[validate(length(min = 1, max = MOST_IPS))]
    pub ips: Vec<String>,
}

impl Input for IpPoolInput {
    fn check(&self, violations: &mut Violations) {
        read_ips(&self.ips, violations);
    }
}

/// Parses the addresses of a pool; the fault of one is reported at its place in `/ips`.
pub(crate) fn read_ips(texts: &[String], violations: &mut Violations) -> Vec<IpAddr> {
    let mut ips = Vec::with_capacity(texts.len().min(MAX_IPS));
    // Addresses beyond the limit are one violation, which the member's own rule reports.
    for (place, text) in texts.iter().enumerate().take(MAX_IPS) {
        let pointer = format!("/ips/{place}");
        match parse_ip(text) {
            None => violations.add(pointer, FieldCode::InvalidFormat, "is not an IPv4 or IPv6 address"),
            Some(ip) if ips.contains(&ip) => {
                violations.add(pointer, FieldCode::Duplicate, "is in the list already");
            }
            Some(ip) => ips.push(ip),
        }
    }
    ips
}

/// `POST /workspaces/{workspace_id}/ip-pools`
pub struct CreateIpPool;

impl Operation for CreateIpPool {
    const ID: &'static str = "createIpPool";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/ip-pools";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "pool create";
    const SUMMARY: &'static str = "Make an IP pool of addresses that the operator released to the workspace";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = IpPoolInput;
    type Output = IpPoolView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<IpPoolView, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let ips = read_ips(&call.body.ips, &mut cx.violations);
        require_grants(cx, workspace, &ips).await?;
        if cx.store().ip_pool_by_name(workspace, &call.body.name).await?.is_some() {
            return Err(Error::AlreadyExists);
        }
        leave_room(cx, workspace).await?;
        let pool = IpPool {
            id: cx.new_id(),
            workspace_id: Some(workspace),
            name: call.body.name,
            ips,
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.change(Write::put(pool.clone(), Expect::Absent));
        Ok(IpPoolView::of(pool, &cx.app.known_sources().await?))
    }
}

/// Adds a violation for each address that the operator has not released to the workspace.
async fn require_grants(cx: &mut Context<'_>, workspace: WorkspaceId, ips: &[IpAddr]) -> Result<(), Error> {
    if cx.app.settings().grants_every_source {
        return Ok(());
    }
    let granted = cx.store().granted_ips(workspace, ips).await?;
    for (place, ip) in ips.iter().enumerate().filter(|(_, ip)| granted.iter().all(|grant| grant.ip != **ip)) {
        let message = format_args!(
            "was not released to the workspace; the operator does that with `messaging admin grant-ip --workspace \
             {workspace} --ip {ip}`"
        );
        cx.violations.add(format!("/ips/{place}"), FieldCode::NotAllowed, message);
    }
    Ok(())
}

/// Refuses a pool beyond the number that a workspace may have.
async fn leave_room(cx: &mut Context<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    // Shared pools are listed beside its own.
    let page = PageRequest { after: None, limit: 2 * MAX_POOLS };
    let pools = cx.store().ip_pools(workspace, page).await?.items;
    if pools.iter().filter(|pool| !pool.is_shared()).count() >= MAX_POOLS {
        let message = format_args!("a workspace has at most {MAX_POOLS} IP pools; delete one first");
        return Err(refuse("/name", FieldCode::TooManyItems, message).into());
    }
    Ok(())
}

/// The path of an IP pool.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct IpPoolPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The pool.
    pub id: PoolId,
}

/// `GET /workspaces/{workspace_id}/ip-pools/{id}`
pub struct GetIpPool;

impl Operation for GetIpPool {
    const ID: &'static str = "getIpPool";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/ip-pools/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "pool get";
    const SUMMARY: &'static str = "Show an IP pool with the states of its addresses";
    type Path = IpPoolPath;
    type Query = Empty;
    type Body = Empty;
    type Output = IpPoolView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<IpPoolView, Error> {
        let pool = find(cx, call.path).await?.record;
        Ok(IpPoolView::of(pool, &cx.app.known_sources().await?))
    }
}

/// A change of an IP pool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IpPoolPatch {
    /// 1 to 100 characters; no other pool of the workspace has the name, and no shared one.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// All addresses of the pool from now on, 1 to 100, that the operator has released to the workspace.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MOST_IPS))]
    pub ips: Replace<Vec<String>>,
}

impl Input for IpPoolPatch {}

/// `PATCH /workspaces/{workspace_id}/ip-pools/{id}`
pub struct UpdateIpPool;

impl Operation for UpdateIpPool {
    const ID: &'static str = "updateIpPool";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/ip-pools/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "pool update";
    const SUMMARY: &'static str = "Rename an IP pool, or name other addresses";
    // An unknown pool is 404 before a malformed address is 422.
    const LOOKS_UP: bool = true;
    type Path = IpPoolPath;
    type Query = Empty;
    type Body = IpPoolPatch;
    type Output = IpPoolView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<IpPoolView, Error> {
        let Stored { record, revision } = find(cx, call.path).await?;
        let workspace = call.path.workspace_id;
        let mut pool = record.clone();
        if let Some(texts) = call.body.ips.value() {
            pool.ips = read_ips(&texts, &mut cx.violations);
            // Indexes are those of the request if all addresses could be parsed.
            if pool.ips.len() == texts.len() {
                require_grants(cx, workspace, &pool.ips).await?;
            }
        }
        refuse_shared(&record)?;
        if let Some(name) = call.body.name.value().filter(|name| *name != record.name) {
            if cx.store().ip_pool_by_name(workspace, &name).await?.is_some() {
                return Err(Error::AlreadyExists);
            }
            pool.name = name;
        }
        if pool != record {
            pool.updated_at = cx.now;
            cx.change(Write::put(pool.clone(), Expect::Revision(revision)));
        }
        if pool.ips != record.ips {
            let found = WorkOnQueue::find_source(Some(workspace), cx.new_id(), cx.now);
            cx.change(Write::Job(found));
        }
        Ok(IpPoolView::of(pool, &cx.app.known_sources().await?))
    }
}

/// `DELETE /workspaces/{workspace_id}/ip-pools/{id}`
pub struct DeleteIpPool;

impl Operation for DeleteIpPool {
    const ID: &'static str = "deleteIpPool";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/ip-pools/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "pool delete";
    const SUMMARY: &'static str = "Delete an IP pool that no sending domain names";
    type Path = IpPoolPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let Stored { record, revision } = find(cx, call.path).await?;
        refuse_shared(&record)?;
        let page = PageRequest { after: None, limit: MAX_LOOKED_AT };
        let domains = cx.store().domains(call.path.workspace_id, page).await?.items;
        cx.changes.extend(removal(record, revision, &domains)?);
        Ok(NoContent)
    }
}

/// Returns the writes that remove a pool, given the domains that could name it. A domain that comes to name it
/// meanwhile has written the pool at its revision as well, so that the commit conflicts and is decided again.
pub(crate) fn removal(pool: IpPool, revision: u32, domains: &[SendingDomain]) -> Result<[Write; 2], Error> {
    let naming = domains.iter().filter(|domain| domain.names_pool(pool.id)).map(|domain| domain.id);
    let by: Vec<_> = naming.take(MAX_NAMED).map(|id: DomainId| id.to_string()).collect();
    if !by.is_empty() {
        return Err(Error::InUse { by });
    }
    let key = DocumentKey::Pool(pool.workspace_id, pool.id);
    Ok([Write::put(pool, Expect::Revision(revision)), Write::Delete(key)])
}

/// Largest number of ids that an answer `in_use` contains.
const MAX_NAMED: usize = 100;

/// Refuses to change a pool that all workspaces share: the operator changes it with `messaging admin`.
const fn refuse_shared(pool: &IpPool) -> Result<(), Error> {
    if pool.is_shared() { Err(Error::InvalidState { status: "shared", allowed: &["own"] }) } else { Ok(()) }
}

/// Returns the pool of a path, of the workspace or shared.
async fn find(cx: &Context<'_>, path: IpPoolPath) -> Result<Stored<IpPool>, Error> {
    cx.store().ip_pool(path.workspace_id, path.id).await?.ok_or(Error::NotFound)
}
