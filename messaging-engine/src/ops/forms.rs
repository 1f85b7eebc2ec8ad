//! Forms by which readers subscribe to public lists.
//!
//! Contract section 23. What readers do with them is in [`services::forms`](crate::services::forms).

use std::fmt::Write as _;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::form::{
    Form, FormField, FormTheme, MAX_FIELDS, MAX_FORMS, MAX_LISTS, MAX_ORIGINS, TRAP, check_fields, check_origins,
    check_redirect, check_theme, with_email,
};
use messaging_core::domain::audience::reader_texts::{Language, ReaderText, escaped};
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::ids::{FormId, ListId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::{Patch, Replace};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// A form as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Form")]
#[non_exhaustive]
pub struct FormView {
    /// Its id.
    pub id: FormId,
    /// Title of its page.
    pub name: String,
    /// Public lists that it subscribes to.
    pub list_ids: Vec<ListId>,
    /// Fields that it asks for.
    pub fields: Vec<FormField>,
    /// Page that the reader is sent to afterwards.
    pub redirect_url: Option<String>,
    /// Origins whose pages may post to it by script (CORS).
    pub allowed_origins: Vec<String>,
    /// Look of its page.
    pub theme: FormTheme,
    /// Address of its page, which also takes posts.
    pub url: String,
    /// HTML of the form for a page of your own.
    pub embed: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl FormView {
    fn of(form: Form, app: &App) -> Self {
        let url = app.form_url(form.workspace_id, form.id);
        let embed = embed(&form, &url);
        let Form {
            id,
            workspace_id: _,
            name,
            list_ids,
            fields,
            redirect_url,
            allowed_origins,
            theme,
            created_at,
            updated_at,
        } = form;
        Self { id, name, list_ids, fields, redirect_url, allowed_origins, theme, url, embed, created_at, updated_at }
    }
}

/// The HTML of a form for pages of others. It needs no script; our page follows a post of it.
fn embed(form: &Form, url: &str) -> String {
    let mut html = format!("<form action=\"{}\" method=\"post\">\n", escaped(url));
    for field in &form.fields {
        let own = || match field.field.as_str() {
            "email" => ReaderText::FormEmail.in_language(Language::English).to_owned(),
            "phone" => ReaderText::FormPhone.in_language(Language::English).to_owned(),
            other => other.trim_start_matches("attributes.").to_owned(),
        };
        let label = escaped(&field.label.clone().unwrap_or_else(own));
        let kind = match field.field.as_str() {
            "email" => "email",
            "phone" => "tel",
            _ => "text",
        };
        let required = if field.required { " required" } else { "" };
        let name = escaped(&field.field);
        let _ = writeln!(html, "  <label>{label} <input type=\"{kind}\" name=\"{name}\"{required}></label>");
    }
    let button = escaped(ReaderText::FormButton.in_language(Language::English));
    let _ = write!(
        html,
        "  <input type=\"text\" name=\"{TRAP}\" tabindex=\"-1\" autocomplete=\"off\" aria-hidden=\"true\" \
         style=\"position:absolute;left:-10000px\">\n  <button type=\"submit\">{button}</button>\n</form>"
    );
    html
}

/// `GET /workspaces/{workspace_id}/forms`
pub struct ListForms;

impl Operation for ListForms {
    const ID: &'static str = "listForms";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/forms";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "form list";
    const SUMMARY: &'static str = "List the forms with which readers subscribe, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<FormView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<FormView>, Error> {
        let slice = cx.store().forms(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, |form| FormView::of(form, cx.app)))
    }
}

/// A new form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FormInput {
    /// Title of its page, 1 to 200 characters.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// 1 to 20 public lists.
    #[validate(length(min = 1, max = MAX_LISTS))]
    pub list_ids: Vec<String>,
    /// Up to 20 fields; the email address comes first where it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_FIELDS), nested)]
    pub fields: Option<Vec<FormField>>,
    /// Page that the reader is sent to afterwards; the server's own page unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// Up to 20 sites whose pages may post to it by script, such as `https://www.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_ORIGINS))]
    pub allowed_origins: Option<Vec<String>>,
    /// Look of its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    pub theme: Option<FormTheme>,
}

impl Input for FormInput {
    fn check(&self, violations: &mut Violations) {
        check_fields(self.fields.as_deref().unwrap_or_default(), violations);
        check_origins(self.allowed_origins.as_deref().unwrap_or_default(), violations);
        self.redirect_url.iter().for_each(|url| check_redirect(url, violations));
        self.theme.iter().for_each(|theme| check_theme(theme, violations));
    }
}

/// Reads the public lists that a member names; one that is not there, or private, is a violation.
pub(super) async fn read_lists(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    member: &str,
    texts: &[String],
) -> Result<Vec<ListId>, Error> {
    let named: Vec<Option<ListId>> = texts.iter().map(|text| text.parse().ok()).collect();
    let ids: Vec<_> = named.iter().flatten().copied().collect();
    let known = cx.store().lists_among(workspace, &ids).await?;
    let public = cx.store().public_lists_among(workspace, &ids).await?;
    let mut lists = Vec::with_capacity(ids.len());
    for (index, id) in named.into_iter().enumerate() {
        let pointer = format!("{member}/{index}");
        match id {
            Some(id) if lists.contains(&id) => {
                cx.violations.add(pointer, FieldCode::Duplicate, "names a list that is given already");
            }
            Some(id) if public.contains(&id) => lists.push(id),
            Some(id) if known.contains(&id) => {
                cx.violations.add(
                    pointer,
                    FieldCode::NotAllowed,
                    "the list is private: set its `visibility` to `public` first",
                );
            }
            _ => cx.violations.add(pointer, FieldCode::NotFound, "this workspace has no such list"),
        }
    }
    Ok(lists)
}

/// `POST /workspaces/{workspace_id}/forms`
pub struct CreateForm;

impl Operation for CreateForm {
    const ID: &'static str = "createForm";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/forms";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "form create";
    const SUMMARY: &'static str = "Create a form with which readers subscribe to public lists";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = FormInput;
    type Output = FormView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<FormView, Error> {
        // The operator can name any workspace, also one that is not there.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let FormInput { name, list_ids, fields, redirect_url, allowed_origins, theme } = call.body;
        let list_ids = read_lists(cx, workspace, "/list_ids", &list_ids).await?;
        let page = PageRequest { after: None, limit: MAX_FORMS };
        if cx.store().forms(workspace, page).await?.items.len() >= MAX_FORMS {
            let message = format_args!("a workspace has at most {MAX_FORMS} forms; delete one first");
            return Err(refuse("/name", FieldCode::TooManyItems, message).into());
        }
        let form = Form {
            id: cx.new_id(),
            workspace_id: workspace,
            name,
            list_ids,
            fields: with_email(fields.unwrap_or_default()),
            redirect_url,
            allowed_origins: allowed_origins.unwrap_or_default(),
            theme: theme.unwrap_or_default(),
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.change(Write::put(form.clone(), Expect::Absent));
        Ok(FormView::of(form, cx.app))
    }
}

/// The path of an operation on a form.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct FormPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The form.
    pub id: FormId,
}

/// `GET /workspaces/{workspace_id}/forms/{id}`
pub struct GetForm;

impl Operation for GetForm {
    const ID: &'static str = "getForm";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/forms/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "form get";
    const SUMMARY: &'static str = "Show a form with its address and its HTML";
    type Path = FormPath;
    type Query = Empty;
    type Body = Empty;
    type Output = FormView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<FormView, Error> {
        let stored = cx.store().form(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        Ok(FormView::of(stored.record, cx.app))
    }
}

/// A change of a form.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[setters(default)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FormPatch {
    /// Title of its page, 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// All lists of the form from now on, 1 to 20 public ones.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_LISTS))]
    pub list_ids: Replace<Vec<String>>,
    /// All fields of the form from now on.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(max = MAX_FIELDS), nested)]
    pub fields: Replace<Vec<FormField>>,
    /// Page that the reader is sent to afterwards; null for the server's own page.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub redirect_url: Patch<String>,
    /// All sites whose pages may post to it by script.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(max = MAX_ORIGINS))]
    pub allowed_origins: Replace<Vec<String>>,
    /// Look of its page.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(nested)]
    pub theme: Replace<FormTheme>,
}

impl Input for FormPatch {
    fn check(&self, violations: &mut Violations) {
        if let Some(fields) = self.fields.as_value() {
            check_fields(fields, violations);
        }
        if let Some(origins) = self.allowed_origins.as_value() {
            check_origins(origins, violations);
        }
        if let Some(url) = self.redirect_url.as_value() {
            check_redirect(url, violations);
        }
        if let Some(theme) = self.theme.as_value() {
            check_theme(theme, violations);
        }
    }
}

/// `PATCH /workspaces/{workspace_id}/forms/{id}`
pub struct UpdateForm;

impl Operation for UpdateForm {
    const ID: &'static str = "updateForm";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/forms/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "form update";
    const SUMMARY: &'static str = "Change a form; its address stays";
    const LOOKS_UP: bool = true;
    type Path = FormPath;
    type Query = Empty;
    type Body = FormPatch;
    type Output = FormView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<FormView, Error> {
        let FormPath { workspace_id, id } = call.path;
        let Stored { record, revision } = cx.store().form(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let FormPatch { name, list_ids, fields, redirect_url, allowed_origins, theme } = call.body;
        let mut form = record.clone();
        if let Some(texts) = list_ids.value() {
            form.list_ids = read_lists(cx, workspace_id, "/list_ids", &texts).await?;
        }
        form.name = name.value().unwrap_or(form.name);
        form.fields = fields.value().map_or(form.fields, with_email);
        redirect_url.apply(&mut form.redirect_url);
        form.allowed_origins = allowed_origins.value().unwrap_or(form.allowed_origins);
        form.theme = theme.value().unwrap_or(form.theme);
        if form != record {
            form.updated_at = cx.now;
            cx.change(Write::put(form.clone(), Expect::Revision(revision)));
        }
        Ok(FormView::of(form, cx.app))
    }
}

/// `DELETE /workspaces/{workspace_id}/forms/{id}`
pub struct DeleteForm;

impl Operation for DeleteForm {
    const ID: &'static str = "deleteForm";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/forms/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "form delete";
    const SUMMARY: &'static str = "Delete a form; its subscribers stay";
    type Path = FormPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let FormPath { workspace_id, id } = call.path;
        cx.store().form(workspace_id, id).await?.ok_or(Error::NotFound)?;
        cx.change(Write::Delete(DocumentKey::Form(workspace_id, id)));
        Ok(NoContent)
    }
}
