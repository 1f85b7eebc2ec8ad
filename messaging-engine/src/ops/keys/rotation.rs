//! The operation that replaces an API key by a new one.
//!
//! Contract section 2.2. Both keys are written in one commit: there is never a new key beside an old one that does not
//! end, nor an old one that ends without a new one.

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::api_key;
use messaging_core::domain::security::api_key::rotation::{
    DEFAULT_OVERLAP_HOURS, KeyIdentity, MAX_OVERLAP_HOURS, Rotated, rotate,
};
use messaging_core::domain::security::digest::Digest;
use messaging_core::input::{BodyKind, Empty, Input};
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Role};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiKeyPath, ApiKeyView};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// A rotation of an API key.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RotationInput {
    /// Hours for which the old key still works, 0 to 720, 24 by default; never beyond the end that it has anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 0, max = MAX_OVERLAP_HOURS))]
    pub overlap_hours: Option<u32>,
}

impl Input for RotationInput {
    const BODY: BodyKind = BodyKind::Optional;
}

/// `POST /workspaces/{workspace_id}/api-keys/{id}/rotate`
pub struct RotateApiKey;

impl Operation for RotateApiKey {
    const ID: &'static str = "rotateApiKey";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/api-keys/{id}/rotate";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "key rotate";
    const SUMMARY: &'static str = "Replace an API key by a new one with the same rights, shown once; the old one works for 24 hours more by default";
    const ANSWERS_SECRET: bool = true;
    type Path = ApiKeyPath;
    type Query = Empty;
    type Body = RotationInput;
    type Output = ApiKeyView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ApiKeyView, Error> {
        let ApiKeyPath { workspace_id, id } = call.path;
        let Stored { record: key, revision } = cx.store().api_key(workspace_id, id).await?.ok_or(Error::NotFound)?;
        // Whoever makes a key hands out no rights that they do not have.
        key.scopes.iter().try_for_each(|scope| cx.caller.needs(workspace_id, *scope))?;
        let hours = call.body.overlap_hours.unwrap_or(DEFAULT_OVERLAP_HOURS);
        let (prefix, secret) = api_key::generate(cx.app.entropy());
        let text = format!("{prefix}.{secret}");
        let identity = KeyIdentity { id: cx.new_id(), prefix, secret_digest: Digest::of(&secret) };
        cx.note_before(&ApiKeyView::of(key.clone(), None));
        let Rotated { old, new } = rotate(key, identity, Duration::from_hours(hours.into()), cx.now)
            .map_err(|status| Error::InvalidState { status: status.as_str(), allowed: &["active"] })?;
        cx.change(Write::put(old, Expect::Revision(revision)));
        cx.change(Write::put(new.clone(), Expect::Absent));
        Ok(ApiKeyView { key: Some(text.into()), ..ApiKeyView::of(new, None) })
    }
}
