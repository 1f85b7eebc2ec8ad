//! Audit logs: who changed what.
//!
//! Contract section 24. A workspace's log is for its owner and admins, the installation's for operators. The latter
//! records acts that concern no workspace, or more than one: sign-ins, the operators' actions, and every command of the
//! operator.

use http::{Method, StatusCode};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::security::audit::{AuditEntry, AuditFilter, csv};
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::PageRequest;
use messaging_core::scope::{Access, Role};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Answer, Call, InWorkspace, Operation, Output, OutputKind};
use crate::ops::page::Page;

/// Entries that one answer as CSV has, at most.
const MAX_CSV_ENTRIES: usize = 10_000;

/// Entries that are read at a time for it.
const CSV_PAGE: usize = 500;

/// The media type of CSV.
const CSV: &str = "text/csv; charset=utf-8";

/// Query of a listing of entries.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct AuditQuery {
    /// Only entries of this user or key, or of actors of this kind: `user`, `key`, `command` or `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub actor: Option<String>,
    /// Only entries of this operation, such as `createApiKey`, or of this command, such as `admin set-name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub operation: Option<String>,
    /// Only entries about this resource, by its id, or about resources of this kind, such as `template`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 100))]
    pub resource: Option<String>,
    /// Only entries at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// At most this many items; ignored for CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for AuditQuery {
    fn check(&self, violations: &mut Violations) {
        if self.since.zip(self.until).is_some_and(|(since, until)| until <= since) {
            violations.add_parameter("until", FieldCode::OutOfRange, "must be later than `since`");
        }
    }
}

/// Entries of an audit log: a page of them as JSON, or up to 10,000 as CSV.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AuditListing {
    /// A page.
    Page(Page<AuditEntry>),
    /// CSV with a line of names first.
    Csv(String),
}

impl Output for AuditListing {
    const KIND: OutputKind = OutputKind::Json;

    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        <Page<AuditEntry> as Output>::schema(generator)
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        match self {
            Self::Page(page) => page.to_answer(success),
            Self::Csv(text) => {
                Ok(Answer { content_type: Some(CSV), body: text.clone().into(), ..Answer::empty(success) })
            }
        }
    }

    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        Page::from_body(body).map(Self::Page)
    }
}

async fn list(cx: &Context<'_>, log: Option<WorkspaceId>, query: AuditQuery) -> Result<AuditListing, Error> {
    let AuditQuery { actor, operation, resource, since, until, limit, cursor } = query;
    let filter = AuditFilter { actor, operation, resource, since, until };
    if cx.wants_csv {
        return all(cx, log, &filter).await.map(|entries| AuditListing::Csv(csv::text(&entries)));
    }
    let page = cx.page(&PageQuery::of(limit, cursor))?;
    let slice = cx.store().audit_entries(log, &filter, page).await?;
    Ok(AuditListing::Page(cx.answer_page(slice, |entry| entry)))
}

/// The newest entries that pass a filter, as many as an answer may have.
async fn all(cx: &Context<'_>, log: Option<WorkspaceId>, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Error> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let limit = CSV_PAGE.min(MAX_CSV_ENTRIES - entries.len());
        let slice = cx.store().audit_entries(log, filter, PageRequest { after, limit }).await?;
        entries.extend(slice.items);
        after = slice.next;
        if after.is_none() || entries.len() >= MAX_CSV_ENTRIES {
            return Ok(entries);
        }
    }
}

/// `GET /workspaces/{workspace_id}/audit`
pub struct ListAudit;

impl Operation for ListAudit {
    const ID: &'static str = "listAudit";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/audit";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "audit list";
    const SUMMARY: &'static str =
        "List who changed what in a workspace, newest first; with `Accept: text/csv` as CSV, up to 10,000 lines";
    type Path = InWorkspace;
    type Query = AuditQuery;
    type Body = Empty;
    type Output = AuditListing;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AuditListing, Error> {
        list(cx, Some(call.path.workspace_id), call.query).await
    }
}

/// `GET /system/audit`
pub struct ListSystemAudit;

impl Operation for ListSystemAudit {
    const ID: &'static str = "listSystemAudit";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/system/audit";
    const ACCESS: Access = Access::Operator;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "system audit";
    const SUMMARY: &'static str = "List sign-ins, the operators' actions and commands, newest first; with `Accept: text/csv` as CSV, up to 10,000 lines";
    type Path = Empty;
    type Query = AuditQuery;
    type Body = Empty;
    type Output = AuditListing;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AuditListing, Error> {
        list(cx, None, call.query).await
    }
}
