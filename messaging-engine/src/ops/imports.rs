//! Imports of contacts from files.
//!
//! Contract section 6.4. The file itself goes to `upload_url`, see
//! [`App::receive_upload`](crate::App::receive_upload).

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::changes::{Expect, JobWrite, Write};
use messaging_core::domain::audience::contact::IdentifierKind;
use messaging_core::domain::audience::import::columns::{ColumnTarget, Mapping};
use messaging_core::domain::audience::import::report::{PIECE_ROWS, Report};
use messaging_core::domain::audience::import::{Import, ImportState, ImportStatus, MAX_BYTES};
use messaging_core::domain::audience::subscription::NewStatus;
use messaging_core::domain::limits::MAX_FILENAME;
use messaging_core::ids::{ImportId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, escape};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::imports::ExpireImport;
use crate::ops::context::Context;
use crate::ops::operation::{Answer, Call, InWorkspace, Operation, Output, OutputKind};
use crate::ops::page::Page;

/// Number of columns that a mapping may name.
const MAX_MAPPED: usize = 1000;

/// Size of a mapping in bytes.
const MAX_MAPPING_BYTES: usize = 64 << 10;

/// Media type of the upload, and of the report.
const CSV: &str = "text/csv";

/// Pieces of the report that are read at a time.
const PIECES: usize = 20;

/// An import as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Import")]
#[non_exhaustive]
pub struct ImportView {
    /// Id of the import.
    pub import_id: ImportId,
    /// Status of the import, from `awaiting_upload` to `completed`, `failed` or `expired`.
    pub status: ImportStatus,
    /// Name of the file, as it was given when the import was created.
    pub filename: String,
    /// Size of the file in bytes, as it was given when the import was created.
    pub size_bytes: u64,
    /// Address to send the file to, without credentials; null once the file has come or the time is over, and for
    /// callers who may only read.
    pub upload_url: Option<String>,
    /// HTTP method of the upload.
    pub upload_method: String,
    /// Headers that the upload must have.
    pub upload_headers: BTreeMap<String, String>,
    /// Time when the link stops working.
    pub expires_at: Timestamp,
    /// Rows in the file, the header not counted; null until they are counted.
    pub total_rows: Option<u64>,
    /// Number of rows that created a contact.
    pub created: u64,
    /// Number of rows that updated an existing contact.
    pub updated: u64,
    /// Number of rows that were refused.
    pub failed: u64,
    /// Reason why the file cannot be read.
    pub failure_reason: Option<String>,
    /// Time when the import was requested.
    pub created_at: Timestamp,
    /// Time when the import ended.
    pub finished_at: Option<Timestamp>,
}

impl ImportView {
    /// Returns the view of an import at a time, with the link for the upload as long as that works.
    pub fn of(import: Import, now: Timestamp, upload_url: Option<String>) -> Self {
        let (status, expires_at) = (import.status(now), import.expires_at());
        let (finished_at, failure_reason) = match import.end() {
            (None, _) if status == ImportStatus::Expired => (Some(expires_at), None),
            (at, reason) => (at, reason.map(ToOwned::to_owned)),
        };
        Self {
            import_id: import.id,
            status,
            filename: import.filename,
            size_bytes: import.size_bytes,
            upload_url: upload_url.filter(|_| status == ImportStatus::AwaitingUpload),
            upload_method: Method::PUT.to_string(),
            upload_headers: BTreeMap::from([("Content-Type".to_owned(), CSV.to_owned())]),
            expires_at,
            total_rows: import.total_rows,
            created: import.created,
            updated: import.updated,
            failed: import.failed,
            failure_reason,
            created_at: import.created_at,
            finished_at,
        }
    }

    /// Returns the view of an import for the caller. The link is as good as a right to change contacts.
    fn shown(cx: &Context<'_>, import: Import) -> Self {
        let may_upload = cx.caller.covers(import.workspace_id, Scope::ContactsWrite);
        let url = may_upload.then(|| {
            let token = cx.app.link_key().upload(import.workspace_id, import.id);
            format!("{}/uploads/{token}", cx.app.settings().public_url)
        });
        let shown = Self::of(import, cx.now, url);
        // The reason may name a column, and column names come from the file.
        Self { failure_reason: shown.failure_reason.map(|reason| cx.redactor().text(reason)), ..shown }
    }
}

/// A file of contacts that will be uploaded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImportInput {
    /// Name of the file, 1 to 255 characters.
    #[validate(length(min = 1, max = MAX_FILENAME))]
    pub filename: String,
    /// Size of the file in bytes, at most 100 MiB.
    #[validate(range(min = 1, max = MAX_BYTES))]
    pub size_bytes: u64,
    /// SHA-256 digest of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// Meaning of columns, by their header: `email`, `phone`, `external_id`, `locale`, `timezone`, `tags`, `list_ids`,
    /// `consent.marketing_email`, `consent.sms`, `attributes.<key>`, or null to skip one. The header itself gives the
    /// meaning of columns that are not named here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<BTreeMap<String, Option<String>>>,
    /// Identifiers by which an existing contact is looked up, in this order; `external_id`, `email`, `phone` unless
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 3))]
    pub dedup_keys: Option<Vec<IdentifierKind>>,
    /// Status that contacts get on the public lists that rows name; `unconfirmed` sends each a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NewStatus>,
}

impl Input for ImportInput {
    fn check(&self, violations: &mut Violations) {
        if self.sha256.is_empty() {
            violations.add("/sha256", FieldCode::Required, "is required");
        } else if self.sha256.len() != 64 || !self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            violations.add("/sha256", FieldCode::InvalidFormat, "must be 64 hexadecimal digits");
        }
        let mapping = self.mapping.iter().flatten();
        let bytes: usize =
            mapping.clone().map(|(header, target)| header.len() + target.as_ref().map_or(0, String::len)).sum();
        if self.mapping.as_ref().is_some_and(|mapping| mapping.len() > MAX_MAPPED) {
            violations.add("/mapping", FieldCode::TooManyItems, "at most 1000 columns");
        } else if bytes > MAX_MAPPING_BYTES {
            violations.add("/mapping", FieldCode::TooLarge, "at most 64 KiB");
        } else {
            for (header, target) in mapping {
                if let Some(Err(rule)) = target.clone().map(ColumnTarget::try_from) {
                    violations.add(format!("/mapping/{}", escape(header)), FieldCode::UnknownValue, rule);
                }
            }
        }
        let mut seen = HashSet::new();
        for (index, key) in self.dedup_keys.iter().flatten().enumerate() {
            if !seen.insert(*key) {
                violations.add(format!("/dedup_keys/{index}"), FieldCode::Duplicate, "is there already");
            }
        }
    }
}

impl ImportInput {
    fn into_import(self, id: ImportId, workspace_id: WorkspaceId, now: Timestamp) -> Result<Import, Error> {
        let understood = |(header, target): (String, Option<String>)| {
            Ok((header, target.map(ColumnTarget::try_from).transpose().map_err(Error::internal)?))
        };
        let mapping =
            self.mapping.unwrap_or_default().into_iter().map(understood).collect::<Result<Mapping, Error>>()?;
        Ok(Import {
            id,
            workspace_id,
            filename: self.filename,
            size_bytes: self.size_bytes,
            sha256: self.sha256.to_ascii_lowercase(),
            mapping,
            dedup_keys: self.dedup_keys.unwrap_or_else(|| IdentifierKind::ALL.to_vec()),
            status_on_lists: self.status.unwrap_or_default(),
            state: ImportState::AwaitingUpload,
            total_rows: None,
            created: 0,
            updated: 0,
            failed: 0,
            created_at: now,
        })
    }
}

/// `POST /workspaces/{workspace_id}/contacts/import`
pub struct CreateImport;

impl Operation for CreateImport {
    const ID: &'static str = "createImport";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/import";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "import create";
    const SUMMARY: &'static str = "Announce a file of contacts and get a link to upload it";
    // The link works without credentials.
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ImportInput;
    type Output = ImportView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ImportView, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let import = call.body.into_import(cx.new_id(), workspace, cx.now)?;
        let job = ExpireImport::of(&import).enqueue(cx.new_id(), import.expires_at());
        cx.change(Write::put(Box::new(import.clone()), Expect::Absent));
        cx.change(Write::Job(JobWrite::Enqueue(job)));
        Ok(ImportView::shown(cx, import))
    }
}

/// `GET /workspaces/{workspace_id}/contacts/imports`
pub struct ListImports;

impl Operation for ListImports {
    const ID: &'static str = "listImports";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/imports";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "import list";
    const SUMMARY: &'static str = "List the imports of contacts, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ImportView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ImportView>, Error> {
        let slice = cx.store().imports(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, |import| ImportView::shown(cx, import)))
    }
}

/// The path of an operation on an import.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ImportPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The import.
    pub id: ImportId,
}

/// `GET /workspaces/{workspace_id}/contacts/imports/{id}`
pub struct GetImport;

impl Operation for GetImport {
    const ID: &'static str = "getImport";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/imports/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "import get";
    const SUMMARY: &'static str = "Show an import and how far it has come";
    type Path = ImportPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ImportView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ImportView, Error> {
        let ImportPath { workspace_id, id } = call.path;
        let stored = cx.store().import(workspace_id, id).await?.ok_or(Error::NotFound)?;
        Ok(ImportView::shown(cx, stored.record))
    }
}

/// Report on the refused rows of an import, as CSV: `row,column,code,message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowErrorReport(pub Bytes);

impl Output for RowErrorReport {
    const KIND: OutputKind = OutputKind::Document(&[CSV]);

    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        let content_type = Some("text/csv; charset=utf-8");
        Ok(Answer { content_type, body: self.0.clone(), ..Answer::empty(success) })
    }

    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self(Bytes::copy_from_slice(body)))
    }
}

/// Choice of the first row in the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct ErrorsQuery {
    /// Starts after this row. A long report is answered in parts; the last line of a part says where the next one
    /// begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_row: Option<u64>,
}

impl Input for ErrorsQuery {}

/// `GET /workspaces/{workspace_id}/contacts/imports/{id}/errors`
pub struct ListImportErrors;

impl Operation for ListImportErrors {
    const ID: &'static str = "listImportErrors";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/imports/{id}/errors";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "import errors";
    const SUMMARY: &'static str = "Show which rows of an import were refused, as CSV";
    type Path = ImportPath;
    type Query = ErrorsQuery;
    type Body = Empty;
    type Output = RowErrorReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RowErrorReport, Error> {
        let ImportPath { workspace_id, id } = call.path;
        cx.store().import(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let after_row = call.query.after_row.unwrap_or(0);
        let mut report = Report::after(after_row);
        // A piece that begins before the row may reach beyond it.
        let mut after = after_row.saturating_sub(PIECE_ROWS as u64);
        loop {
            let mut pieces = cx.store().row_errors(workspace_id, id, after, PIECES).await?;
            for piece in &mut pieces {
                // Cell values are not repeated, but column names come from the file.
                piece.lines = cx.redactor().text(std::mem::take(&mut piece.lines));
                if !report.add(piece) {
                    return Ok(RowErrorReport(report.cut().into()));
                }
            }
            match pieces.last() {
                Some(last) if pieces.len() == PIECES => after = last.first_row,
                _ => return Ok(RowErrorReport(report.finish().into())),
            }
        }
    }
}
