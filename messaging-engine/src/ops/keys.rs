//! Operations that list, create and revoke API keys.
//!
//! Contract section 2.2. A key is shown whole only in the answer to its creation or rotation; the store has a digest of
//! its secret.

pub mod rotation;

use std::collections::HashMap;
use std::net::IpAddr;

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::api_key::usage::{self, MAX_SHOWN, OperationUse};
use messaging_core::domain::security::api_key::{self, ApiKey};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::ip_block::IpBlock;
use messaging_core::domain::security::secret::Secret;
use messaging_core::ids::{ApiKeyId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Role, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// Requests a minute of a key that is created without `rate_limit` (contract section 1.6).
pub(crate) const DEFAULT_RATE_LIMIT: u32 = 600;

/// An API key as answers show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ApiKey")]
#[non_exhaustive]
pub struct ApiKeyView {
    /// Id of the key.
    pub id: ApiKeyId,
    /// Name that the key was given.
    pub name: String,
    /// The part of the key before the dot; enough to recognize it, not to use it.
    pub prefix: String,
    /// Scopes of the key: the operations that it may call.
    pub scopes: Vec<Scope>,
    /// Largest number of requests that the key may make a minute.
    pub rate_limit: u32,
    /// Addresses and CIDR blocks from which the key works; empty means all.
    pub ip_allowlist: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the minute; null means never.
    pub last_used_at: Option<Timestamp>,
    /// When it stops working; null means never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked; null means that it was not.
    pub revoked_at: Option<Timestamp>,
    /// Key whose place it took by a rotation; null means none.
    pub rotated_from: Option<ApiKeyId>,
    /// Key that took its place by a rotation; null means none.
    pub replaced_by: Option<ApiKeyId>,
    /// The last uses of operations, each operation once, the newest first; at most 20. Up to a minute late.
    #[serde(default)]
    pub recent_use: Vec<RecentUse>,
    /// Scopes of the key that it did not need in the last 30 days. Null while that is not known: the key was watched
    /// for less than 30 days, or was not used in that time.
    #[serde(default)]
    pub unused_scopes: Option<Vec<Scope>>,
    /// The fewest scopes that are enough for its use in the last 30 days; null as for `unused_scopes`.
    #[serde(default)]
    pub needed_scopes: Option<Vec<Scope>>,
    /// The whole key. Only in the answer to its creation or to the rotation that made it; it cannot be shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
}

/// The last use of an operation by a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ApiKeyUse")]
#[non_exhaustive]
pub struct RecentUse {
    /// Id of the operation, such as `sendMessage`.
    pub operation: String,
    /// When it was last used.
    pub at: Timestamp,
    /// Address of the caller; null where it is not known, and for whoever may not see personal data.
    pub ip: Option<IpAddr>,
}

/// Circumstances of a call that determine how uses of keys are shown.
struct Seen {
    /// Returns the access that the operation with an id requires; `None` if there is no such operation.
    access_of: fn(&str) -> Option<Access>,
    /// True if the caller may see IP addresses, with `pii:read`.
    shows_addresses: bool,
    /// Time of the call.
    now: Timestamp,
}

impl ApiKeyView {
    /// Returns the view of a stored key. Its `key` is `None`, because the secret is not stored.
    pub fn of(key: ApiKey, last_used_at: Option<Timestamp>) -> Self {
        Self {
            id: key.id,
            name: key.name,
            prefix: key.prefix,
            scopes: key.scopes,
            rate_limit: key.rate_limit,
            ip_allowlist: key.ip_allowlist,
            created_at: key.created_at,
            last_used_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            rotated_from: key.rotated_from,
            replaced_by: key.replaced_by,
            recent_use: Vec::new(),
            unused_scopes: None,
            needed_scopes: None,
            key: None,
        }
    }

    /// Adds the uses of the key, which are given newest first, and the scopes that follow from them.
    fn with_uses(self, uses: &[OperationUse], seen: &Seen) -> Self {
        let found = usage::scopes(&self.scopes, uses, seen.access_of, seen.now);
        let (unused, needed) = found.map(|found| (found.unused, found.needed)).unzip();
        let shown = |used: &OperationUse| RecentUse {
            operation: used.operation.clone(),
            at: used.used_at,
            ip: used.ip.filter(|_| seen.shows_addresses),
        };
        let recent_use = uses.iter().take(MAX_SHOWN).map(shown).collect();
        Self { recent_use, unused_scopes: unused, needed_scopes: needed, ..self }
    }
}

/// `GET /workspaces/{workspace_id}/api-keys`
pub struct ListApiKeys;

impl Operation for ListApiKeys {
    const ID: &'static str = "listApiKeys";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/api-keys";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "key list";
    const SUMMARY: &'static str = "List the API keys of a workspace, revoked ones included";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ApiKeyView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ApiKeyView>, Error> {
        let page = cx.page(&call.query)?;
        let slice = cx.store().api_keys(call.path.workspace_id, page).await?;
        let ids: Vec<_> = slice.items.iter().map(|(key, _)| key.id).collect();
        let mut uses: HashMap<ApiKeyId, Vec<OperationUse>> = HashMap::new();
        for used in cx.store().api_key_uses(call.path.workspace_id, &ids).await? {
            uses.entry(used.key_id).or_default().push(used);
        }
        for of_key in uses.values_mut() {
            of_key.sort_by(|one, other| (other.used_at, &one.operation).cmp(&(one.used_at, &other.operation)));
        }
        let seen = Seen { access_of: cx.access_of, shows_addresses: cx.sees_addresses(), now: cx.now };
        Ok(cx.answer_page(slice, |(key, last_used_at)| {
            let uses = uses.get(&key.id).map_or(&[][..], Vec::as_slice);
            ApiKeyView::of(key, last_used_at).with_uses(uses, &seen)
        }))
    }
}

/// A new API key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ApiKeyInput {
    /// Name of the key, 1 to 100 characters.
    #[validate(length(min = 1, max = 100))]
    pub name: String,
    /// Scopes of the key: the operations that it may call; at least one.
    #[validate(length(min = 1))]
    pub scopes: Vec<Scope>,
    /// Largest number of requests that the key may make a minute, 600 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = 100_000))]
    pub rate_limit: Option<u32>,
    /// IPv4 and IPv6 addresses or CIDR blocks from which it shall work, at most 100; empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = 100))]
    pub ip_allowlist: Option<Vec<IpBlock>>,
    /// When it shall stop working: a time in the future, or never by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Input for ApiKeyInput {}

/// `POST /workspaces/{workspace_id}/api-keys`
pub struct CreateApiKey;

impl Operation for CreateApiKey {
    const ID: &'static str = "createApiKey";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/api-keys";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "key create";
    const SUMMARY: &'static str = "Create an API key; the answer is the only place where the whole key is shown";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ApiKeyInput;
    type Output = ApiKeyView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ApiKeyView, Error> {
        // An operator has access to every workspace id, so the workspace may not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?;
        let ApiKeyInput { name, scopes, rate_limit, ip_allowlist, expires_at } = call.body;
        if expires_at.is_some_and(|end| end <= cx.now) {
            cx.violations.add("/expires_at", FieldCode::OutOfRange, "must be in the future");
        }
        let (prefix, secret) = api_key::generate(cx.app.entropy());
        let text = format!("{prefix}.{secret}");
        let mut once = Vec::new();
        for scope in scopes {
            if !once.contains(&scope) {
                once.push(scope);
            }
        }
        let key = ApiKey {
            id: cx.new_id(),
            workspace_id: workspace.id,
            name,
            prefix,
            secret_digest: Digest::of(&secret),
            scopes: once,
            rate_limit: rate_limit.unwrap_or(DEFAULT_RATE_LIMIT),
            ip_allowlist: ip_allowlist.unwrap_or_default().into_iter().map(Into::into).collect(),
            created_at: cx.now,
            expires_at,
            revoked_at: None,
            rotated_from: None,
            replaced_by: None,
            warned_days: None,
        };
        cx.change(Write::put(key.clone(), Expect::Absent));
        Ok(ApiKeyView { key: Some(text.into()), ..ApiKeyView::of(key, None) })
    }
}

/// Parameters in the path of an operation on one API key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The key.
    pub id: ApiKeyId,
}

/// `DELETE /workspaces/{workspace_id}/api-keys/{id}`
pub struct DeleteApiKey;

impl Operation for DeleteApiKey {
    const ID: &'static str = "deleteApiKey";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/api-keys/{id}";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "key delete";
    const SUMMARY: &'static str = "Revoke an API key; it stops working at once and stays listed";
    type Path = ApiKeyPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let stored = cx.store().api_key(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        // The contract is silent about a key that is revoked already: revoking is repeatable, and the
        // time of the first revocation stays.
        cx.note_before(&ApiKeyView::of(stored.record.clone(), None));
        if stored.record.revoked_at.is_none() {
            let key = ApiKey { revoked_at: Some(cx.now), ..stored.record };
            cx.change(Write::put(key, Expect::Revision(stored.revision)));
        }
        Ok(NoContent)
    }
}
