//! Preview of a template: its parts, rendered with given variables and for a contact.

use std::sync::Arc;

use http::{Method, StatusCode};
use messaging_core::domain::campaign::archive::ARCHIVE_PATH;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::sms;
use messaging_core::domain::limits::MAX_SUBJECT;
use messaging_core::domain::mail::tracking::{PREFERENCES_PATH, UNSUBSCRIBE_PATH};
use messaging_core::domain::message::message_input::check_variables;
use messaging_core::domain::template::compiled::Compiled;
use messaging_core::domain::template::engine::RenderFault;
use messaging_core::domain::template::saving::Made;
use messaging_core::domain::template::values::{ContactValues, Values};
use messaging_core::domain::template::{MAX_PREHEADER, Template};
use messaging_core::ids::{Id as _, MessageId, TemplateId, WorkspaceId};
use messaging_core::input::{BodyKind, Empty, Input};
use messaging_core::patch::Patch;
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{TemplateInput, TemplatePath};
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::templates::Unrendered;

/// Data to preview a template with.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
#[schemars(rename = "TemplatePreviewInput")]
pub struct PreviewInput {
    /// Values for the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Map<String, Value>>,
    /// Contact whose data is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// Unsaved subject, in place of the stored one.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_SUBJECT))]
    pub subject: Patch<String>,
    /// Unsaved preheader, in place of the stored one.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_PREHEADER))]
    pub preheader: Patch<String>,
    /// Unsaved HTML, in place of the stored one.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub html: Patch<String>,
    /// Unsaved MJML, in place of the stored one.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub mjml: Patch<String>,
    /// Unsaved text, in place of the stored one.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub text: Patch<String>,
}

impl Input for PreviewInput {
    const BODY: BodyKind = BodyKind::Optional;

    fn check(&self, violations: &mut Violations) {
        check_variables(self.variables.as_ref(), violations);
    }
}

/// The rendered parts of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TemplatePreview {
    /// The subject.
    pub subject: Option<String>,
    /// The preheader.
    pub preheader: Option<String>,
    /// The HTML as it is sent, except for tracking.
    pub html: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// Number of parts in which a text message is sent, each of which is paid for; left out on other channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u32>,
    /// Names of variables that have a value neither in `variables` nor in the contact.
    pub missing_variables: Vec<String>,
}

impl PreviewInput {
    /// Takes the unsaved parts as a change of the template; `None` if there are none.
    fn change_of(&mut self, template: &Template) -> Option<TemplateInput> {
        let [subject, preheader, html, mjml, text] =
            [&mut self.subject, &mut self.preheader, &mut self.html, &mut self.mjml, &mut self.text]
                .map(std::mem::take);
        if [&subject, &preheader, &html, &mjml, &text].into_iter().all(Patch::is_absent) {
            return None;
        }
        let mut change = TemplateInput::new(template.design.name.clone());
        change.channel = Some(template.channel);
        Some(TemplateInput { subject, preheader, html, mjml, text, ..change })
    }
}

/// `POST /workspaces/{workspace_id}/templates/{id}/preview`
pub struct PreviewTemplate;

impl Operation for PreviewTemplate {
    const ID: &'static str = "previewTemplate";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/templates/{id}/preview";
    const ACCESS: Access = Access::Scope(Scope::TemplatesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "template preview";
    const SUMMARY: &'static str = "Show what a template would say";
    const LOOKS_UP: bool = true;
    // The preview may contain data of a contact.
    const ANSWERS_SECRET: bool = true;
    type Path = TemplatePath;
    type Query = Empty;
    type Body = PreviewInput;
    type Output = TemplatePreview;

    // The operation changes nothing.
    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, mut call: Call<Self>) -> Result<TemplatePreview, Error> {
        let TemplatePath { workspace_id, id } = call.path;
        let head = cx.store().template_head(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let change = call.body.change_of(&head);
        if let Some(change) = &change {
            change.check(&mut cx.violations);
        }
        let variables = call.body.variables.unwrap_or_default();
        let mut values = Values::new(&variables)
            .system("message_id", MessageId::from_bytes([0; 16]).to_string())
            .system("unsubscribe_url", format!("{}{UNSUBSCRIBE_PATH}preview", cx.app.settings().public_url))
            .system("preferences_url", format!("{}{PREFERENCES_PATH}preview", cx.app.settings().public_url))
            .system("archive_url", format!("{}{ARCHIVE_PATH}preview", cx.app.settings().public_url));
        if let Some(workspace) = cx.app.workspace(workspace_id).await? {
            values = values.system_member("workspace", "name", workspace.name.clone());
        }
        if let Some(contact_id) = call.body.contact_id.filter(|id| !id.is_empty()) {
            let found = match contact_id.parse() {
                Ok(contact) => cx.store().contact(workspace_id, contact).await?,
                Err(_) => None,
            };
            match found {
                None => {
                    let rule = "no such contact in this workspace";
                    cx.violations.add("/contact_id", FieldCode::NotFound, rule);
                }
                Some(stored) => {
                    values = values.contact(&ContactValues::shown(&stored.record, cx.redactor()));
                }
            }
        }
        if !cx.violations.is_empty() {
            return Err(std::mem::take(&mut cx.violations).into());
        }
        let (compiled, variables) = match change {
            Some(change) => unsaved(cx, workspace_id, id, change).await?,
            None => (cx.app.compiled_template(workspace_id, id, head.version).await.map_err(refused)?, head.variables),
        };
        let missing_variables = variables.into_iter().filter(|name| !values.has_value_at(name)).collect();
        let rendering = cx.app.render(&compiled, values).await.map_err(refused)?;
        let text = rendering.text.as_ref().filter(|_| head.channel == Channel::Sms);
        let segments = text.and_then(|text| u32::try_from(sms::size(text).segments).ok());
        Ok(TemplatePreview {
            segments,
            subject: rendering.subject,
            preheader: rendering.preheader,
            html: rendering.html,
            text: rendering.text,
            missing_variables,
        })
    }
}

/// Compiles a template with an unsaved change; returns it with the names of its variables.
async fn unsaved(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    id: TemplateId,
    change: TemplateInput,
) -> Result<(Arc<Compiled>, Vec<String>), Error> {
    let current = cx.store().template(workspace, id).await?.ok_or(Error::NotFound)?.record;
    let mut design = current.design.clone();
    change.apply(&mut design);
    let Made { design, ready, variables, warnings, parts } = cx.app.make_template(current.channel, design).await?;
    let template = Template { design, ready, variables: variables.clone(), warnings, parts, ..current };
    Ok((cx.app.compiled_draft(template).await.map_err(refused)?, variables))
}

/// Turns a failed rendering into an error: a fault of the template or the values is reported at its place.
fn refused(cause: Unrendered) -> Error {
    match cause {
        Unrendered::Failed { part, fault } => {
            let (code, position) = match &fault {
                RenderFault::Limits => (FieldCode::OutOfRange, None),
                RenderFault::TooLong => (FieldCode::TooLarge, None),
                RenderFault::Failed(fault) => (FieldCode::Syntax, fault.position),
            };
            let mut violations = Violations::new();
            violations.add_at(part.pointer(), code, fault, position);
            violations.into()
        }
        Unrendered::Busy => Error::Unavailable { retry_after: 1 },
        Unrendered::Store(error) => error.into(),
        Unrendered::Gone => Error::NotFound,
        Unrendered::Broken | Unrendered::Unsendable(_) => Error::internal(cause),
    }
}
