//! Webhooks: registered, listed, changed, paused, resumed, deleted.
//!
//! Contract section 15. Deliveries are in [`deliveries`], the events themselves in [`events`].

pub mod deliveries;
pub mod events;

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::limits::MAX_URL;
use messaging_core::domain::security::secret::Secret;
use messaging_core::domain::security::signature;
use messaging_core::domain::webhook::{MAX_WEBHOOKS, Topic, Webhook, WebhookStatus};
use messaging_core::ids::{WebhookId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Replace;
use messaging_core::ports::fetch::UrlFault;
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::FieldCode;

use http::{Method, StatusCode};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Unprocessable};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// Number of topics that a webhook may list; there are not that many different ones.
const MAX_TOPICS: u64 = 100;

/// A webhook as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Webhook")]
#[non_exhaustive]
pub struct WebhookView {
    /// Id of the webhook.
    pub id: WebhookId,
    /// URL that events are sent to.
    pub url: String,
    /// Types of events that the webhook receives.
    pub events: Vec<Topic>,
    /// Status of the webhook: events are sent while it is `active`.
    pub status: WebhookStatus,
    /// True if it gets addresses in clear: false once a caller without `pii:read` has given its URL.
    pub pii: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Secret that signs the webhook's requests. Only in the answer that creates it; it cannot be shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
}

impl WebhookView {
    fn of(webhook: Webhook) -> Self {
        let Webhook { id, url, events, status, pii, created_at, updated_at, .. } = webhook;
        Self { id, url, events, status, pii, created_at, updated_at, secret: None }
    }
}

/// A webhook after an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebhookAction {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// Result of the action: `paused` or `resumed`.
    pub result: WebhookResult,
}

/// Result of an action on a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookResult {
    /// The webhook is not called for the time being.
    Paused,
    /// The webhook is called again.
    Resumed,
}

/// The path of an operation on a webhook.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct WebhookPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The webhook.
    pub id: WebhookId,
}

async fn find(cx: &Context<'_>, path: WebhookPath) -> Result<Stored<Webhook>, Error> {
    cx.store().webhook(path.workspace_id, path.id).await?.ok_or(Error::NotFound)
}

/// Checks the text of a URL; returns a breach of the rules of contract section 15.4, which is reported after field
/// errors.
fn check_url(cx: &mut Context<'_>, url: &str) -> Option<Unprocessable> {
    match cx.app.fetch().check(url) {
        Ok(()) => None,
        Err(UrlFault::Malformed) => {
            cx.violations.add("/url", FieldCode::InvalidFormat, UrlFault::Malformed);
            None
        }
        Err(UrlFault::NotAllowed) => Some(Unprocessable::UrlNotAllowed),
    }
}

/// Refuses a webhook with topics of the audit log or of keys if the caller may not read them: they are for owners and
/// admins.
fn require_audit_reader(cx: &Context<'_>, workspace: WorkspaceId, events: &[Topic]) -> Result<(), Error> {
    let is_for_admins = events.iter().any(|topic| topic.is_administrative());
    if is_for_admins { cx.caller.needs(workspace, Scope::All) } else { Ok(()) }
}

/// Refuses a request with the faults that were found, those of fields before `refusal`.
fn refuse(cx: &mut Context<'_>, refusal: Option<Unprocessable>) -> Result<(), Error> {
    std::mem::take(&mut cx.violations).into_result()?;
    refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
}

/// Returns each topic once.
fn distinct(topics: Vec<Topic>) -> Vec<Topic> {
    let mut kept = Vec::new();
    for topic in topics {
        if !kept.contains(&topic) {
            kept.push(topic);
        }
    }
    kept
}

/// `GET /workspaces/{workspace_id}/webhooks`
pub struct ListWebhooks;

impl Operation for ListWebhooks {
    const ID: &'static str = "listWebhooks";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks";
    const ACCESS: Access = Access::Scope(Scope::WebhooksRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook list";
    const SUMMARY: &'static str = "List webhooks, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<WebhookView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<WebhookView>, Error> {
        let slice = cx.store().webhooks(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, WebhookView::of))
    }
}

/// A new webhook.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookInput {
    /// An absolute https URL of a public host.
    #[validate(length(min = 1, max = MAX_URL))]
    pub url: String,
    /// Types of events that the webhook receives; `*` for all events of messages. `audit.recorded` and
    /// `api_key.expiring` need the rights of an admin, or scope `*`.
    #[validate(length(min = 1, max = MAX_TOPICS))]
    pub events: Vec<Topic>,
    /// `paused` to hold events until it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<FirstStatus>,
}

/// Status that a new webhook may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NewWebhookStatus")]
pub enum FirstStatus {
    /// Events are sent.
    Active,
    /// Events are held until it is resumed.
    Paused,
}

impl Input for WebhookInput {}

/// `POST /workspaces/{workspace_id}/webhooks`
pub struct CreateWebhook;

impl Operation for CreateWebhook {
    const ID: &'static str = "createWebhook";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "webhook create";
    const SUMMARY: &'static str = "Register a URL that is told of events; the answer shows its secret, once";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = WebhookInput;
    type Output = WebhookView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookView, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let WebhookInput { url, events, status } = call.body;
        let refusal = check_url(cx, &url);
        let page = messaging_core::ports::store::PageRequest { after: None, limit: MAX_WEBHOOKS };
        if cx.store().webhooks(workspace, page).await?.items.len() >= MAX_WEBHOOKS {
            let message = format!("a workspace has at most {MAX_WEBHOOKS} webhooks");
            cx.violations.add("/url", FieldCode::TooManyItems, message);
        }
        require_audit_reader(cx, workspace, &events)?;
        refuse(cx, refusal)?;
        let secret = signature::new_secret(cx.app.entropy());
        let mut webhook = Webhook {
            id: cx.new_id(),
            workspace_id: workspace,
            url,
            events: distinct(events),
            status: match status {
                Some(FirstStatus::Paused) => WebhookStatus::Paused,
                Some(FirstStatus::Active) | None => WebhookStatus::Active,
            },
            pii: cx.sees_addresses(),
            secret: String::new(),
            previous_secret: None,
            draining: false,
            created_at: cx.now,
            updated_at: cx.now,
        };
        webhook.secret = cx.app.vault().seal(&webhook.secret_place(), secret.expose(), cx.app.entropy());
        cx.change(Write::put(Box::new(webhook.clone()), Expect::Absent));
        Ok(WebhookView { secret: Some(secret), ..WebhookView::of(webhook) })
    }
}

/// `GET /workspaces/{workspace_id}/webhooks/{id}`
pub struct GetWebhook;

impl Operation for GetWebhook {
    const ID: &'static str = "getWebhook";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}";
    const ACCESS: Access = Access::Scope(Scope::WebhooksRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook get";
    const SUMMARY: &'static str = "Show a webhook";
    type Path = WebhookPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WebhookView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookView, Error> {
        Ok(WebhookView::of(find(cx, call.path).await?.record))
    }
}

/// `DELETE /workspaces/{workspace_id}/webhooks/{id}`
pub struct DeleteWebhook;

impl Operation for DeleteWebhook {
    const ID: &'static str = "deleteWebhook";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "webhook delete";
    const SUMMARY: &'static str = "Delete a webhook; what was not delivered to it yet will not be";
    type Path = WebhookPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        find(cx, call.path).await?;
        cx.change(Write::Delete(DocumentKey::Webhook(call.path.workspace_id, call.path.id)));
        Ok(NoContent)
    }
}

/// A change of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookPatch {
    /// An absolute https URL of a public host.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_URL))]
    pub url: Replace<String>,
    /// Types of events that the webhook receives; `*` for all events of messages. `audit.recorded` and
    /// `api_key.expiring` need the rights of an admin, or scope `*`.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_TOPICS))]
    pub events: Replace<Vec<Topic>>,
}

impl Input for WebhookPatch {}

/// `PATCH /workspaces/{workspace_id}/webhooks/{id}`
pub struct UpdateWebhook;

impl Operation for UpdateWebhook {
    const ID: &'static str = "updateWebhook";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook update";
    const SUMMARY: &'static str = "Change the URL or the events of a webhook";
    const LOOKS_UP: bool = true;
    type Path = WebhookPath;
    type Query = Empty;
    type Body = WebhookPatch;
    type Output = WebhookView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookView, Error> {
        let Stored { record: mut webhook, revision } = find(cx, call.path).await?;
        let before = webhook.clone();
        let url = call.body.url.value();
        let refusal = url.as_deref().and_then(|url| check_url(cx, url));
        refuse(cx, refusal)?;
        if let Some(url) = url.filter(|url| *url != webhook.url) {
            webhook.url = url;
            // A caller who names the receiver may not have it sent more than they may read themselves (contract section
            // 2.4).
            webhook.pii &= cx.sees_addresses();
        }
        if let Some(events) = call.body.events.value() {
            webhook.events = distinct(events);
        }
        if webhook != before {
            require_audit_reader(cx, webhook.workspace_id, &webhook.events)?;
            webhook.updated_at = cx.now;
            cx.change(Write::put(Box::new(webhook.clone()), Expect::Revision(revision)));
        }
        Ok(WebhookView::of(webhook))
    }
}

/// `POST /workspaces/{workspace_id}/webhooks/{id}/pause`
pub struct PauseWebhook;

impl Operation for PauseWebhook {
    const ID: &'static str = "pauseWebhook";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/pause";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "webhook pause";
    const SUMMARY: &'static str = "Stop calling a webhook; events are held for 7 days";
    type Path = WebhookPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WebhookAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookAction, Error> {
        let Stored { record: mut webhook, revision } = find(cx, call.path).await?;
        if webhook.status != WebhookStatus::Active {
            return Err(Error::InvalidState { status: webhook.status.as_str(), allowed: &["active"] });
        }
        webhook.status = WebhookStatus::Paused;
        webhook.updated_at = cx.now;
        cx.change(Write::put(Box::new(webhook.clone()), Expect::Revision(revision)));
        Ok(WebhookAction { webhook: WebhookView::of(webhook), result: WebhookResult::Paused })
    }
}

/// `POST /workspaces/{workspace_id}/webhooks/{id}/resume`
pub struct ResumeWebhook;

impl Operation for ResumeWebhook {
    const ID: &'static str = "resumeWebhook";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/resume";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "webhook resume";
    const SUMMARY: &'static str = "Call a paused or disabled webhook again; what was held is sent, oldest first";
    type Path = WebhookPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WebhookAction;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookAction, Error> {
        let Stored { record: mut webhook, revision } = find(cx, call.path).await?;
        if webhook.status == WebhookStatus::Active {
            return Err(Error::InvalidState { status: webhook.status.as_str(), allowed: &["paused", "disabled"] });
        }
        webhook.status = WebhookStatus::Active;
        webhook.updated_at = cx.now;
        if let Some(job) = cx.app.start_draining(&mut webhook) {
            cx.change(job);
        }
        cx.change(Write::put(Box::new(webhook.clone()), Expect::Revision(revision)));
        Ok(WebhookAction { webhook: WebhookView::of(webhook), result: WebhookResult::Resumed })
    }
}

/// `POST /workspaces/{workspace_id}/webhooks/{id}/rotate-secret`
pub struct RotateWebhookSecret;

impl Operation for RotateWebhookSecret {
    const ID: &'static str = "rotateWebhookSecret";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/webhooks/{id}/rotate-secret";
    const ACCESS: Access = Access::Scope(Scope::WebhooksWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "webhook rotate-secret";
    const SUMMARY: &'static str = "Give a webhook a new secret; for 24 hours the old one signs too";
    const ANSWERS_SECRET: bool = true;
    type Path = WebhookPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WebhookView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WebhookView, Error> {
        let Stored { record: mut webhook, revision } = find(cx, call.path).await?;
        let secret = signature::new_secret(cx.app.entropy());
        let sealed = cx.app.vault().seal(&webhook.secret_place(), secret.expose(), cx.app.entropy());
        webhook.rotate(sealed, cx.now);
        cx.change(Write::put(Box::new(webhook.clone()), Expect::Revision(revision)));
        Ok(WebhookView { secret: Some(secret), ..WebhookView::of(webhook) })
    }
}
