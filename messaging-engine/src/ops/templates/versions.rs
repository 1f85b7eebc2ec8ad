//! Earlier versions of a template.

use std::borrow::Cow;

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::template::Template;
use messaging_core::ids::{TemplateId, WorkspaceId};
use messaging_core::input::{Empty, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{TemplatePath, TemplateView};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// A version as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TemplateVersion")]
#[non_exhaustive]
pub struct VersionView {
    /// Number of the version.
    pub version: u32,
    /// Name in this version.
    pub name: String,
    /// Subject in this version.
    pub subject: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Number of the version that it is a copy of.
    pub reverted_from: Option<u32>,
}

/// `GET /workspaces/{workspace_id}/templates/{id}/versions`
pub struct ListTemplateVersions;

impl Operation for ListTemplateVersions {
    const ID: &'static str = "listTemplateVersions";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}/versions";
    const ACCESS: Access = Access::Scope(Scope::TemplatesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template versions";
    const SUMMARY: &'static str = "List the versions of a template, newest first";
    type Path = TemplatePath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<VersionView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<VersionView>, Error> {
        let TemplatePath { workspace_id, id } = call.path;
        cx.store().template_head(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let slice = cx.store().template_versions(workspace_id, id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, |template| VersionView {
            version: template.version,
            name: template.design.name,
            subject: template.design.subject,
            created_at: template.updated_at,
            reverted_from: template.reverted_from,
        }))
    }
}

/// The path of a version.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct TemplateVersionPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The template.
    pub id: TemplateId,
    /// The number of the version.
    #[serde(deserialize_with = "number")]
    pub version: u32,
}

/// Parses a number in a path, which has one spelling only.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    let number = text.parse::<u32>().ok().filter(|number| number.to_string() == *text);
    number.ok_or_else(|| de::Error::custom("not a number"))
}

/// A template after an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RevertedTemplate {
    /// The template.
    #[serde(flatten)]
    pub template: TemplateView,
    /// Result of the action: `reverted`.
    pub result: Reverted,
}

/// Result of reverting a template (contract section 1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TemplateResult")]
pub enum Reverted {
    /// A copy of an earlier version is the current one.
    Reverted,
}

/// `POST /workspaces/{workspace_id}/templates/{id}/revert/{version}`
pub struct RevertTemplate;

impl Operation for RevertTemplate {
    const ID: &'static str = "revertTemplate";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}/revert/{version}";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template revert";
    const SUMMARY: &'static str = "Copy an earlier version of a template into a new one";
    type Path = TemplateVersionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RevertedTemplate;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RevertedTemplate, Error> {
        let TemplateVersionPath { workspace_id, id, version } = call.path;
        let current = cx.store().template(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let earlier = cx.store().template_version(workspace_id, id, version).await?.ok_or(Error::NotFound)?;
        let number = current.record.version.checked_add(1).ok_or_else(|| Error::internal("too many versions"))?;
        let next = Template { version: number, reverted_from: Some(version), updated_at: cx.now, ..earlier };
        cx.change(Write::put(Box::new(next.clone()), Expect::Revision(current.revision)));
        Ok(RevertedTemplate { template: TemplateView::of(next), result: Reverted::Reverted })
    }
}
