//! Custom fields: attributes with a declared type.
//!
//! Contract section 8. Values that a contact has already are not looked at: a type holds for what is sent
//! from then on.

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::contact::attributes;
use messaging_core::domain::audience::custom_field::{CustomField, FieldType, MAX_FIELDS};
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::ids::{FieldId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Patch;
use messaging_core::ports::store::PageRequest;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// A custom field as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CustomField")]
#[non_exhaustive]
pub struct CustomFieldView {
    /// Its id.
    pub id: FieldId,
    /// The key of the attribute.
    pub key: String,
    /// Type of the field's values.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Name of the field that people are shown.
    pub label: Option<String>,
    /// When it was declared.
    pub created_at: Timestamp,
}

impl CustomFieldView {
    fn of(field: CustomField) -> Self {
        let CustomField { id, workspace_id: _, key, kind, label, created_at } = field;
        Self { id, key, kind, label, created_at }
    }
}

/// `GET /workspaces/{workspace_id}/custom-fields`
pub struct ListCustomFields;

impl Operation for ListCustomFields {
    const ID: &'static str = "listCustomFields";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/custom-fields";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "custom-field list";
    const SUMMARY: &'static str = "List the custom fields, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<CustomFieldView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<CustomFieldView>, Error> {
        let slice = cx.store().custom_fields(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, CustomFieldView::of))
    }
}

/// A new custom field.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CustomFieldInput {
    /// The key of the attribute: 1 to 64 letters, digits, underscores and hyphens, not a digit first.
    #[validate(length(min = 1, max = 64))]
    pub key: String,
    /// Type of the field's values; required.
    // An option only so that an unknown type does not keep the key from being judged.
    #[serde(rename = "type")]
    #[validate(required)]
    pub kind: Option<FieldType>,
    /// Name for people, 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub label: Option<String>,
}

impl Input for CustomFieldInput {
    fn check(&self, violations: &mut Violations) {
        if !attributes::is_key(&self.key) {
            let rule = "a key has 1 to 64 letters, digits, underscores and hyphens and does not begin with a digit";
            violations.add("/key", FieldCode::InvalidFormat, rule);
        }
    }
}

/// `POST /workspaces/{workspace_id}/custom-fields`
pub struct CreateCustomField;

impl Operation for CreateCustomField {
    const ID: &'static str = "createCustomField";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/custom-fields";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "custom-field create";
    const SUMMARY: &'static str = "Declare the type of an attribute";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = CustomFieldInput;
    type Output = CustomFieldView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CustomFieldView, Error> {
        // The operator can name any workspace, also one that is not there.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let CustomFieldInput { key, kind, label } = call.body;
        let page = PageRequest { after: None, limit: MAX_FIELDS };
        let fields = cx.store().custom_fields(workspace, page).await?.items;
        if fields.iter().any(|field| field.key == key) {
            return Err(Error::AlreadyExists);
        }
        if fields.len() >= MAX_FIELDS {
            let rule = "a workspace has at most 1000 custom fields";
            return Err(messaging_core::violation::refuse("/key", FieldCode::TooManyItems, rule).into());
        }
        let kind =
            kind.ok_or_else(|| messaging_core::violation::refuse("/type", FieldCode::Required, "is required"))?;
        let field = CustomField { id: cx.new_id(), workspace_id: workspace, key, kind, label, created_at: cx.now };
        cx.change(Write::put(field.clone(), Expect::Absent));
        Ok(CustomFieldView::of(field))
    }
}

/// The path of an operation on a custom field.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct CustomFieldPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The field.
    pub id: FieldId,
}

/// A change of a custom field.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CustomFieldPatch {
    /// Name for people, 1 to 200 characters; null removes it.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub label: Patch<String>,
    /// Cannot be changed.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub key: Patch<Value>,
    /// Cannot be changed.
    #[serde(rename = "type", default, skip_serializing_if = "Patch::is_absent")]
    pub kind: Patch<Value>,
}

impl Input for CustomFieldPatch {}

/// `PATCH /workspaces/{workspace_id}/custom-fields/{id}`
pub struct UpdateCustomField;

impl Operation for UpdateCustomField {
    const ID: &'static str = "updateCustomField";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/custom-fields/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "custom-field update";
    const SUMMARY: &'static str = "Change what people call a custom field";
    // So that an unknown field is 404 before a broken label is 422.
    const LOOKS_UP: bool = true;
    type Path = CustomFieldPath;
    type Query = Empty;
    type Body = CustomFieldPatch;
    type Output = CustomFieldView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CustomFieldView, Error> {
        let CustomFieldPath { workspace_id, id } = call.path;
        let stored = cx.store().custom_field(workspace_id, id).await?.ok_or(Error::NotFound)?;
        cx.note_before(&CustomFieldView::of(stored.record.clone()));
        let mut field = stored.record.clone();
        cx.refuse_change_of("/key", &call.body.key, &field.key);
        cx.refuse_change_of("/type", &call.body.kind, field.kind);
        call.body.label.apply(&mut field.label);
        if field != stored.record {
            cx.change(Write::put(field.clone(), Expect::Revision(stored.revision)));
        }
        Ok(CustomFieldView::of(field))
    }
}

/// `DELETE /workspaces/{workspace_id}/custom-fields/{id}`
pub struct DeleteCustomField;

impl Operation for DeleteCustomField {
    const ID: &'static str = "deleteCustomField";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/custom-fields/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "custom-field delete";
    const SUMMARY: &'static str = "Forget the type of an attribute; its values stay";
    type Path = CustomFieldPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let CustomFieldPath { workspace_id, id } = call.path;
        let stored = cx.store().custom_field(workspace_id, id).await?.ok_or(Error::NotFound)?;
        cx.note_before(&CustomFieldView::of(stored.record));
        cx.change(Write::Delete(DocumentKey::Field(workspace_id, id)));
        Ok(NoContent)
    }
}
