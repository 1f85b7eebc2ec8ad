//! Operations on templates: list, create, get, update, delete.
//!
//! Contract section 11. The request body is [`TemplateInput`]; [`versions`], [`import`] and [`preview`] have the other
//! operations.

pub mod import;
mod input;
pub mod preview;
pub mod versions;

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::template::saving::Made;
use messaging_core::domain::template::warning::Warning;
use messaging_core::domain::template::{Design, Template};
use messaging_core::ids::{TemplateId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Patch;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, refuse};

use http::{Method, StatusCode};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::uses;

pub use input::TemplateInput;

/// A template with its bodies; listings show it without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Template")]
#[non_exhaustive]
pub struct TemplateView {
    /// Id of the template.
    pub id: TemplateId,
    /// Name of the template.
    pub name: String,
    /// The channel it is for.
    pub channel: Channel,
    /// The subject of an email, the title of a push message.
    pub subject: Option<String>,
    /// Preview text that mail programs show after the subject.
    pub preheader: Option<String>,
    /// The sender's display name.
    pub from_name: Option<String>,
    /// The sender.
    pub from_email: Option<String>,
    /// Address that replies to an email go to.
    pub reply_to: Option<String>,
    /// HTML body; made from `mjml` if there is one.
    pub html: Option<String>,
    /// MJML source of the HTML body.
    pub mjml: Option<String>,
    /// Plain text body.
    pub text: Option<String>,
    /// Names of the variables: first the declared ones, then others that the template uses.
    pub variables: Vec<String>,
    /// True if rules of style sheets are moved into the elements when sending; `html` shows them unmoved.
    pub inline_css: bool,
    /// Problems that may keep the mail out of the inbox.
    pub warnings: Vec<Warning>,
    /// Number of this version, counted from 1; every change makes a new one.
    pub version: u32,
    /// Time at which the template was created.
    pub created_at: Timestamp,
    /// Time at which this version was made.
    pub updated_at: Timestamp,
}

impl TemplateView {
    fn of(template: Template) -> Self {
        let Design { name, subject, preheader, from_name, from_email, reply_to, html, mjml, text, inline_css, .. } =
            template.design;
        Self {
            id: template.id,
            name,
            channel: template.channel,
            subject,
            preheader,
            from_name,
            from_email,
            reply_to,
            html,
            mjml,
            text,
            variables: template.variables,
            inline_css,
            warnings: template.warnings,
            version: template.version,
            created_at: template.created_at,
            updated_at: template.updated_at,
        }
    }
}

/// A template in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TemplateSummary {
    /// Id of the template.
    pub id: TemplateId,
    /// Name of the template.
    pub name: String,
    /// The channel it is for.
    pub channel: Channel,
    /// The subject of an email, the title of a push message.
    pub subject: Option<String>,
    /// Preview text that mail programs show after the subject.
    pub preheader: Option<String>,
    /// The sender's display name.
    pub from_name: Option<String>,
    /// The sender.
    pub from_email: Option<String>,
    /// Address that replies to an email go to.
    pub reply_to: Option<String>,
    /// Names of the variables: first the declared ones, then others that the template uses.
    pub variables: Vec<String>,
    /// True if rules of style sheets are moved into the elements when sending.
    pub inline_css: bool,
    /// Problems that may keep the mail out of the inbox.
    pub warnings: Vec<Warning>,
    /// Number of the current version, counted from 1; every change makes a new one.
    pub version: u32,
    /// Time at which the template was created.
    pub created_at: Timestamp,
    /// Time at which this version was made.
    pub updated_at: Timestamp,
}

impl TemplateSummary {
    fn of(template: Template) -> Self {
        let TemplateView {
            id,
            name,
            channel,
            subject,
            preheader,
            from_name,
            from_email,
            reply_to,
            html: _,
            mjml: _,
            text: _,
            variables,
            inline_css,
            warnings,
            version,
            created_at,
            updated_at,
        } = TemplateView::of(template);
        Self {
            id,
            name,
            channel,
            subject,
            preheader,
            from_name,
            from_email,
            reply_to,
            variables,
            inline_css,
            warnings,
            version,
            created_at,
            updated_at,
        }
    }
}

/// Creates a template. Fails with [`Error::NotFound`] if the workspace does not exist, and with the violations of a
/// design that cannot be compiled.
async fn create(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    channel: Channel,
    design: Design,
) -> Result<TemplateView, Error> {
    // The operator may name a workspace that does not exist.
    let workspace = cx.app.workspace(workspace).await?.ok_or(Error::NotFound)?.id;
    let Made { design, ready, variables, warnings, parts } = cx.app.make_template(channel, design).await?;
    let template = Template {
        id: cx.new_id(),
        workspace_id: workspace,
        channel,
        version: 1,
        reverted_from: None,
        design,
        ready,
        variables,
        warnings,
        parts,
        created_at: cx.now,
        updated_at: cx.now,
    };
    cx.change(Write::put(Box::new(template.clone()), Expect::Absent));
    Ok(TemplateView::of(template))
}

/// Filter and page of a listing of templates.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct TemplateQuery {
    /// Only templates for this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for TemplateQuery {}

/// `GET /workspaces/{workspace_id}/templates`
pub struct ListTemplates;

impl Operation for ListTemplates {
    const ID: &'static str = "listTemplates";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates";
    const ACCESS: Access = Access::Scope(Scope::TemplatesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template list";
    const SUMMARY: &'static str = "List the templates without their bodies, newest first";
    type Path = InWorkspace;
    type Query = TemplateQuery;
    type Body = Empty;
    type Output = Page<TemplateSummary>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<TemplateSummary>, Error> {
        let TemplateQuery { channel, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let slice = cx.store().templates(call.path.workspace_id, channel, page).await?;
        Ok(cx.answer_page(slice, TemplateSummary::of))
    }
}

/// `POST /workspaces/{workspace_id}/templates`
pub struct CreateTemplate;

impl Operation for CreateTemplate {
    const ID: &'static str = "createTemplate";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "template create";
    const SUMMARY: &'static str = "Create a template";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = TemplateInput;
    type Output = TemplateView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TemplateView, Error> {
        let missing = || refuse("/channel", FieldCode::Required, "is required");
        let channel = call.body.channel.ok_or_else(missing)?;
        let mut design = Design { inline_css: true, ..Design::default() };
        call.body.apply(&mut design);
        create(cx, call.path.workspace_id, channel, design).await
    }
}

/// The path of an operation on a template.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct TemplatePath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The template.
    pub id: TemplateId,
}

/// Choice of the version of a template.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct VersionQuery {
    /// Number of the version; the current one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

impl Input for VersionQuery {}

/// `GET /workspaces/{workspace_id}/templates/{id}`
pub struct GetTemplate;

impl Operation for GetTemplate {
    const ID: &'static str = "getTemplate";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}";
    const ACCESS: Access = Access::Scope(Scope::TemplatesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template get";
    const SUMMARY: &'static str = "Show a template, or an earlier version of it";
    type Path = TemplatePath;
    type Query = VersionQuery;
    type Body = Empty;
    type Output = TemplateView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TemplateView, Error> {
        let TemplatePath { workspace_id, id } = call.path;
        let current = cx.store().template(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let Some(version) = call.query.version.filter(|version| *version != current.version) else {
            return Ok(TemplateView::of(current));
        };
        let earlier = cx.store().template_version(workspace_id, id, version).await?.ok_or(Error::NotFound)?;
        Ok(TemplateView::of(earlier))
    }
}

/// `PATCH /workspaces/{workspace_id}/templates/{id}`
pub struct UpdateTemplate;

impl Operation for UpdateTemplate {
    const ID: &'static str = "updateTemplate";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template update";
    const SUMMARY: &'static str = "Change a template; a change makes the next version";
    const LOOKS_UP: bool = true;
    type Path = TemplatePath;
    type Query = Empty;
    type Body = TemplateInput;
    type Output = TemplateView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<TemplateView, Error> {
        let stored = cx.store().template(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        let current = stored.record;
        if call.body.channel.is_some_and(|channel| channel != current.channel) {
            cx.violations.add("/channel", FieldCode::Immutable, "a template stays with its channel");
        }
        if !cx.violations.is_empty() {
            return Err(std::mem::take(&mut cx.violations).into());
        }
        let mut design = current.design.clone();
        let mut body = call.body;
        // A view also lists the variables that were found in the template. A client that sends the list back must not
        // declare them.
        if body.variables.as_value() == Some(&current.variables) {
            body.variables = Patch::Absent;
        }
        body.apply(&mut design);
        if design == current.design {
            return Ok(TemplateView::of(current));
        }
        let Made { design, ready, variables, warnings, parts } = cx.app.make_template(current.channel, design).await?;
        if design == current.design {
            return Ok(TemplateView::of(current));
        }
        let version = current.version.checked_add(1).ok_or_else(|| Error::internal("too many versions"))?;
        let next = Template {
            version,
            reverted_from: None,
            design,
            ready,
            variables,
            warnings,
            parts,
            updated_at: cx.now,
            ..current
        };
        cx.change(Write::put(Box::new(next.clone()), Expect::Revision(stored.revision)));
        Ok(TemplateView::of(next))
    }
}

/// `DELETE /workspaces/{workspace_id}/templates/{id}`
pub struct DeleteTemplate;

impl Operation for DeleteTemplate {
    const ID: &'static str = "deleteTemplate";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}";
    const ACCESS: Access = Access::Scope(Scope::TemplatesWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "template delete";
    const SUMMARY: &'static str = "Delete a template; messages that were accepted with it are still sent";
    type Path = TemplatePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let TemplatePath { workspace_id, id } = call.path;
        cx.store().template_head(workspace_id, id).await?.ok_or(Error::NotFound)?;
        uses::refuse_used(cx, workspace_id, Reference::Template(id), Vec::new()).await?;
        cx.change(Write::DeleteTemplate(workspace_id, id, cx.now));
        Ok(NoContent)
    }
}
