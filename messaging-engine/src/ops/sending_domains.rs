//! Sending domains: added, listed, changed, deleted.
//!
//! Contract section 14. Checks of DNS records are in [`verification`], publishing them in [`auto_dns`], the view of a
//! domain in [`report`], and the reports of receivers on its mail in [`dmarc`] and [`tls_reports`].

pub mod auto_dns;
pub mod dmarc;
pub mod report;
pub mod tls_reports;
pub mod verification;

use messaging_core::changes::{Document, DocumentKey, Expect, JobWrite, Write};
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::mail::dns_record::UNNAMED;
use messaging_core::domain::mail::domain_name::{self, Unsuitable};
use messaging_core::domain::mail::sending_domain::{Check, SendingDomain};
use messaging_core::domain::mail::verification::SANDBOX_DOMAIN;
use messaging_core::ids::{DomainId, PoolId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::{Patch, Replace};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::violation::{FieldCode, Violations, refuse};

use http::{Method, StatusCode};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::jobs::verify_domain::VerifyDomain;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::uses;
use crate::services::dkim::ALGORITHMS;
use crate::services::lookups::MAX_LOOKED_AT;

use report::SendingDomainReport;

/// Number of domains of a workspace from which they are counted exactly: cached look-ups are a second old, and making
/// keys is so slow that the rest cannot be used up in that time.
const COUNTED_FROM: usize = MAX_LOOKED_AT - 100;

/// The path of a sending domain.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct DomainPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The domain.
    pub id: DomainId,
}

/// `GET /workspaces/{workspace_id}/sending-domains`
pub struct ListSendingDomains;

impl Operation for ListSendingDomains {
    const ID: &'static str = "listSendingDomains";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain list";
    const SUMMARY: &'static str = "List the sending domains of a workspace";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<SendingDomainReport>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SendingDomainReport>, Error> {
        let page = cx.page(&call.query)?;
        let slice = cx.store().domains(call.path.workspace_id, page).await?;
        let here = cx.app.installation().await?;
        let key = cx.app.link_key();
        Ok(cx.answer_page(slice, |domain| SendingDomainReport::of(&domain, &here, &key)))
    }
}

/// A new sending domain.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SendingDomainInput {
    /// Domain whose DNS records you can publish; no public suffix, and none of a mailbox provider. Senders may be at
    /// the domain or below it.
    #[validate(length(min = 1))]
    pub domain: String,
    /// The host of tracking links: one label, or a name under the domain. Without one, links lead to this
    /// server's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_subdomain: Option<String>,
}

impl Input for SendingDomainInput {
    fn check(&self, violations: &mut Violations) {
        match domain_name::parse(&self.domain) {
            Ok(domain) => {
                let tracking = self.tracking_subdomain.as_deref();
                if let Some(Err(reason)) = tracking.map(|text| domain_name::parse_below(text, &domain)) {
                    violations.add("/tracking_subdomain", reason.code(), reason);
                }
            }
            Err(reason) => violations.add("/domain", reason.code(), reason),
        }
    }
}

/// `POST /workspaces/{workspace_id}/sending-domains`
pub struct CreateSendingDomain;

impl Operation for CreateSendingDomain {
    const ID: &'static str = "createSendingDomain";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "domain create";
    const SUMMARY: &'static str = "Add a sending domain and get the DNS records to publish";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = SendingDomainInput;
    type Output = SendingDomainReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SendingDomainReport, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let unsuitable = |pointer: &'static str| move |reason: Unsuitable| refuse(pointer, reason.code(), reason);
        let name = domain_name::parse(&call.body.domain).map_err(unsuitable("/domain"))?;
        let tracking_subdomain = match &call.body.tracking_subdomain {
            Some(text) => Some(domain_name::parse_below(text, &name).map_err(unsuitable("/tracking_subdomain"))?),
            None => None,
        };
        let here = cx.app.installation().await?;
        if here.hostname == UNNAMED && !cx.app.settings().allow_unqualified_name {
            return Err(Error::SettingNeeded { setting: "hostname", cure: NAME_IT });
        }
        if cx.store().domain_by_name(workspace, &name).await?.is_some() {
            return Err(Error::AlreadyExists);
        }
        if name == SANDBOX_DOMAIN {
            let message = "is kept for `messaging dev`, which adds it";
            return Err(refuse("/domain", FieldCode::NotAllowed, message).into());
        }
        leave_room(cx, workspace).await?;
        let keys = cx.app.make_dkim_keys(ALGORITHMS).await?;
        let mut domain = SendingDomain::new(cx.new_id(), workspace, &name, cx.now);
        domain.tracking_subdomain = tracking_subdomain;
        domain.dkim = cx.app.seal_dkim_keys(&keys, domain.id, cx.now);
        cx.change(Write::put(domain.clone(), Expect::Absent));
        cx.change(Write::Job(JobWrite::Enqueue(VerifyDomain::of(&domain).first(cx.new_id(), &domain, cx.now))));
        Ok(SendingDomainReport::of(&domain, &here, &cx.app.link_key()))
    }
}

/// Advice to the operator of an installation without a fully qualified name.
const NAME_IT: &str = "the DNS records would name a host that nobody can look up; start the server with a fully qualified \
                       --hostname such as mx.example.org, or give the installation a name with `messaging admin set-name`";

/// Refuses a domain beyond the number that look-ups return.
async fn leave_room(cx: &mut Context<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    if cx.app.sending_domains(workspace).await?.len() < COUNTED_FROM {
        return Ok(());
    }
    let stored = cx.store().workspace(workspace).await?.ok_or(Error::NotFound)?;
    let page = PageRequest { after: None, limit: MAX_LOOKED_AT };
    if cx.store().domains(workspace, page).await?.items.len() >= MAX_LOOKED_AT {
        let message = format_args!("a workspace has at most {MAX_LOOKED_AT} sending domains; delete one first");
        return Err(refuse("/domain", FieldCode::NotAllowed, message).into());
    }
    // Of several domains that are added at the same moment all but one run again and count anew.
    cx.change(Write::put(stored.record, Expect::Revision(stored.revision)));
    Ok(())
}

/// `GET /workspaces/{workspace_id}/sending-domains/{id}`
pub struct GetSendingDomain;

impl Operation for GetSendingDomain {
    const ID: &'static str = "getSendingDomain";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain get";
    const SUMMARY: &'static str = "Get a sending domain with its records as they were last seen";
    type Path = DomainPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SendingDomainReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SendingDomainReport, Error> {
        let domain = find(cx, call.path).await?.record;
        Ok(SendingDomainReport::of(&domain, &cx.app.installation().await?, &cx.app.link_key()))
    }
}

/// A change of a sending domain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SendingDomainPatch {
    /// True if HTML email gets a tracking pixel.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub open_tracking: Replace<bool>,
    /// True if links of HTML email are redirected to count clicks.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub click_tracking: Replace<bool>,
    /// True if messages of the domain leave over TLS alone: without TLS they wait, and fail when they expire.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub require_tls: Replace<bool>,
    /// The host of tracking links: one label, or a name under the domain; null for this server's own
    /// address. A new one is used once its record is verified.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub tracking_subdomain: Patch<String>,
    /// IP pool that mail of the domain leaves from, one of the workspace or a shared one; null for all addresses that
    /// no pool of another workspace holds.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub ip_pool_id: Patch<String>,
    /// IP pool of campaign and automation mail; null where it leaves like all other mail.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub marketing_ip_pool_id: Patch<String>,
}

impl Input for SendingDomainPatch {}

/// `PATCH /workspaces/{workspace_id}/sending-domains/{id}`
pub struct UpdateSendingDomain;

impl Operation for UpdateSendingDomain {
    const ID: &'static str = "updateSendingDomain";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain update";
    const SUMMARY: &'static str =
        "Change the tracking of a sending domain, its IP pools, or whether its mail needs TLS";
    // An unknown domain is 404 before a wrong tracking host or pool is 422.
    const LOOKS_UP: bool = true;
    type Path = DomainPath;
    type Query = Empty;
    type Body = SendingDomainPatch;
    type Output = SendingDomainReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SendingDomainReport, Error> {
        let Stored { record, revision } = find(cx, call.path).await?;
        let mut domain = record.clone();
        if let Some(open_tracking) = call.body.open_tracking.value() {
            domain.open_tracking = open_tracking;
        }
        if let Some(click_tracking) = call.body.click_tracking.value() {
            domain.click_tracking = click_tracking;
        }
        if let Some(require_tls) = call.body.require_tls.value() {
            domain.require_tls = require_tls;
        }
        match call.body.tracking_subdomain {
            Patch::Absent => {}
            Patch::Null => domain.tracking_subdomain = None,
            Patch::Set(text) => match domain_name::parse_below(&text, &domain.domain) {
                Ok(host) => domain.tracking_subdomain = Some(host),
                Err(reason) => cx.violations.add("/tracking_subdomain", reason.code(), reason),
            },
        }
        if domain.tracking_subdomain != record.tracking_subdomain {
            domain.tracking = Check::default();
        }
        let marketing = (call.body.marketing_ip_pool_id, &mut domain.marketing_ip_pool_id);
        for (pointer, (sent, member)) in
            [("/ip_pool_id", (call.body.ip_pool_id, &mut domain.ip_pool_id)), ("/marketing_ip_pool_id", marketing)]
        {
            choose_pool(cx, call.path.workspace_id, pointer, sent, member).await?;
        }
        if domain != record {
            cx.change(Write::put(domain.clone(), Expect::Revision(revision)));
        }
        Ok(SendingDomainReport::of(&domain, &cx.app.installation().await?, &cx.app.link_key()))
    }
}

/// Applies a request's choice of a pool to a domain.
async fn choose_pool(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    pointer: &str,
    sent: Patch<String>,
    member: &mut Option<PoolId>,
) -> Result<(), Error> {
    let sent = match sent {
        Patch::Absent => return Ok(()),
        Patch::Null => None,
        Patch::Set(text) => {
            let found = match text.parse() {
                Ok(id) => cx.store().ip_pool(workspace, id).await?,
                Err(_) => None,
            };
            let Some(Stored { record, revision }) = found else {
                cx.violations.add(
                    pointer,
                    FieldCode::NotFound,
                    "no IP pool of this workspace has this id, nor a shared one",
                );
                return Ok(());
            };
            let id = record.id;
            if *member != Some(id) && !cx.changes.writes().iter().any(|write| puts_pool(write, id)) {
                // The commit conflicts if the pool is deleted meanwhile.
                cx.change(Write::put(record, Expect::Revision(revision)));
            }
            Some(id)
        }
    };
    *member = sent;
    Ok(())
}

fn puts_pool(write: &Write, id: PoolId) -> bool {
    matches!(write, Write::Put(Document::Pool(pool), _) if pool.id == id)
}

/// `DELETE /workspaces/{workspace_id}/sending-domains/{id}`
///
/// A campaign that is scheduled, sending or paused, or an active automation, keeps the domains of its senders from
/// being deleted. Other messages that wait to be sent from the domain fail, as the contract requires for a domain that
/// is not verified.
pub struct DeleteSendingDomain;

impl Operation for DeleteSendingDomain {
    const ID: &'static str = "deleteSendingDomain";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "domain delete";
    const SUMMARY: &'static str = "Delete a sending domain and its keys; messages that wait to be sent from it fail";
    type Path = DomainPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let domain = find(cx, call.path).await?.record;
        uses::refuse_used(cx, domain.workspace_id, Reference::Domain(domain.id), Vec::new()).await?;
        cx.change(Write::Delete(DocumentKey::Domain(domain.workspace_id, domain.id)));
        Ok(NoContent)
    }
}

/// Returns the domain of a path.
async fn find(cx: &Context<'_>, path: DomainPath) -> Result<Stored<SendingDomain>, Error> {
    cx.store().domain(path.workspace_id, path.id).await?.ok_or(Error::NotFound)
}
