//! Workspaces.
//!
//! Contract section 3.

use std::collections::{BTreeMap, HashSet};

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::page_texts::PageTexts;
use messaging_core::domain::campaign::archive::{Archive, MAX_LISTS, ReaderSettings, archive_url};
use messaging_core::domain::channel::inbound_message::opts_in;
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::domain::security::account::{Member, MemberStatus, Workspace, WorkspaceEnd};
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::{Patch, Replace};
use messaging_core::scope::{Access, Role};
use messaging_core::time::{Timestamp, zone};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::Settings;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::forms;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::page::Page;

/// A workspace as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Workspace")]
#[non_exhaustive]
pub struct WorkspaceView {
    /// Id of the workspace.
    pub id: WorkspaceId,
    /// Name of the workspace.
    pub name: String,
    /// Always `free`: a self-hosted installation has no plans.
    pub plan: String,
    /// Region where the data is, as configured for the installation.
    pub data_region: String,
    /// IANA name of the time zone.
    pub timezone: String,
    /// Words besides STOP that opt out of messages when one of them is sent alone, as a text message or on WhatsApp.
    pub opt_out_keywords: Vec<String>,
    /// API requests that are logged: `failures`, unless set otherwise.
    pub request_log: RequestLog,
    /// True if members without a second factor have no access; API keys are not affected.
    pub require_second_factor: bool,
    /// Public archive of campaigns.
    pub archive: Archive,
    /// Address of the archive; null unless it is enabled.
    pub archive_url: Option<String>,
    /// Texts that replace the built-in ones on pages for readers, by language and key.
    pub page_texts: PageTexts,
    /// Time when the workspace is removed with all its data; null unless it is under deletion.
    pub deletes_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

impl WorkspaceView {
    /// Returns the view of a workspace.
    pub fn of(workspace: Workspace, settings: &Settings) -> Self {
        let ReaderSettings { archive, page_texts } = workspace.readers;
        Self {
            id: workspace.id,
            name: workspace.name,
            plan: "free".to_owned(),
            data_region: settings.data_region.clone(),
            timezone: workspace.timezone,
            opt_out_keywords: workspace.opt_out_keywords,
            request_log: workspace.request_log,
            require_second_factor: workspace.require_second_factor,
            archive_url: archive.enabled.then(|| archive_url(&settings.public_url, workspace.id)),
            archive,
            page_texts,
            deletes_at: workspace.end.map(|end| end.deletes_at),
            created_at: workspace.created_at,
        }
    }
}

/// `GET /workspaces`
pub struct ListWorkspaces;

impl Operation for ListWorkspaces {
    const ID: &'static str = "listWorkspaces";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces";
    const ACCESS: Access = Access::AnyCredential;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "workspace list";
    const SUMMARY: &'static str = "List the workspaces that the credentials open";
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<WorkspaceView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<WorkspaceView>, Error> {
        let page = cx.page(&call.query)?;
        let settings = cx.app.settings();
        if let Caller::Session(session) = cx.caller {
            let mut slice = cx.store().workspaces_of(session.user.id, MemberStatus::Active, page).await?;
            // A workspace that requires a second factor opens with it; until then `GET /auth/me` lists it and says so.
            slice.items.retain(|(workspace, _)| session.user.second_factor || !workspace.require_second_factor);
            return Ok(cx.answer_page(slice, |(workspace, _)| WorkspaceView::of(workspace, settings)));
        }
        let only = cx.store().workspace(cx.workspace()?).await?;
        Ok(Page::only(only.map(|stored| WorkspaceView::of(stored.record, settings)).into_iter().collect()))
    }
}

/// A new workspace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkspaceInput {
    /// 1 to 200 characters.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
}

impl Input for WorkspaceInput {}

/// `POST /workspaces`
pub struct CreateWorkspace;

impl Operation for CreateWorkspace {
    const ID: &'static str = "createWorkspace";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces";
    const ACCESS: Access = Access::Session;
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "workspace create";
    const SUMMARY: &'static str = "Create a workspace; the caller becomes its owner";
    type Path = Empty;
    type Query = Empty;
    type Body = WorkspaceInput;
    type Output = WorkspaceView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WorkspaceView, Error> {
        let Caller::Session(session) = cx.caller else { return Err(Error::SessionRequired) };
        let workspace = Workspace {
            id: cx.new_id(),
            name: call.body.name,
            timezone: "UTC".to_owned(),
            opt_out_keywords: Vec::new(),
            request_log: RequestLog::default(),
            require_second_factor: false,
            readers: ReaderSettings::default(),
            end: None,
            created_at: cx.now,
        };
        let owner = Member::active(workspace.id, session.user.id, Role::Owner, cx.now);
        cx.change(Write::put(workspace.clone(), Expect::Absent));
        cx.change(Write::put(owner, Expect::Absent));
        Ok(WorkspaceView::of(workspace, cx.app.settings()))
    }
}

/// A change of a workspace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkspacePatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// IANA name of the time zone; null means UTC.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub timezone: Patch<String>,
    /// Words besides STOP and its variants that opt out of messages when one of them is sent alone, as a text message
    /// or on WhatsApp; at most 20 of 1 to 40 characters, in any case. Null means none.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_KEYWORDS))]
    pub opt_out_keywords: Patch<Vec<String>>,
    /// API requests that are logged with their bodies: `all`, `writes` (and failures), `failures`, which also logs
    /// writes without bodies, or `off`. Null means `failures`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub request_log: Patch<RequestLog>,
    /// True if members without a second factor have access only to their own account. The caller needs one to set it.
    /// Null means false.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub require_second_factor: Patch<bool>,
    /// Public archive of campaigns; replaces all its settings. Null means that there is none.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(nested)]
    pub archive: Patch<ArchiveInput>,
    /// Texts that replace the built-in ones on pages for readers, by language and key, of at most 500 characters each;
    /// replaces all of them. Null means the built-in texts.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub page_texts: Patch<BTreeMap<String, BTreeMap<String, String>>>,
}

/// An archive of campaigns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[setters(default)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ArchiveInput {
    /// True if the archive is public; false unless given.
    #[serde(default)]
    pub enabled: bool,
    /// Title of the archive, 1 to 200 characters; the name of the workspace unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub title: Option<String>,
    /// Up to 100 public lists whose campaigns it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_LISTS))]
    pub lists: Option<Vec<String>>,
    /// True if search engines may list it; false unless given.
    #[serde(default)]
    pub indexed: bool,
}

/// Number of opt-out words of a workspace.
const MAX_KEYWORDS: u64 = 20;

/// Characters of an opt-out word.
const MAX_KEYWORD: usize = 40;

impl Input for WorkspacePatch {
    fn check(&self, violations: &mut Violations) {
        if let Patch::Set(timezone) = &self.timezone
            && zone(timezone).is_none()
        {
            violations.add("/timezone", FieldCode::InvalidFormat, "is not an IANA time zone name");
        }
        if let Patch::Set(keywords) = &self.opt_out_keywords {
            check_keywords(keywords, violations);
        }
        if let Patch::Set(texts) = &self.page_texts {
            PageTexts::read(texts, "/page_texts", violations);
        }
    }
}

fn check_keywords(keywords: &[String], violations: &mut Violations) {
    let mut known = HashSet::new();
    for (place, keyword) in keywords.iter().enumerate() {
        let (at, keyword) = (format!("/opt_out_keywords/{place}"), keyword.trim());
        if keyword.is_empty() {
            violations.add(at, FieldCode::Required, "must not be empty");
        } else if keyword.chars().count() > MAX_KEYWORD {
            violations.add(at, FieldCode::TooLong, format!("must have at most {MAX_KEYWORD} characters"));
        } else if keyword.chars().any(char::is_control) {
            violations.add(at, FieldCode::InvalidFormat, "must not contain control characters");
        } else if opts_in(keyword) {
            violations.add(at, FieldCode::Conflict, "takes an opt-out back, so it cannot opt out");
        } else if !known.insert(keyword.to_uppercase()) {
            violations.add(at, FieldCode::Duplicate, "is there already");
        }
    }
}

/// `PATCH /workspaces/{workspace_id}`
pub struct UpdateWorkspace;

impl Operation for UpdateWorkspace {
    const ID: &'static str = "updateWorkspace";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}";
    const ACCESS: Access = Access::SessionRole(Role::Admin);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "workspace update";
    const SUMMARY: &'static str = "Change a workspace's name and settings, its archive and the texts of its pages";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = WorkspacePatch;
    type Output = WorkspaceView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WorkspaceView, Error> {
        let stored = cx.store().workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?;
        cx.note_before(&WorkspaceView::of(stored.record.clone(), cx.app.settings()));
        let mut workspace = stored.record.clone();
        if let Some(name) = call.body.name.value() {
            workspace.name = name;
        }
        match call.body.timezone {
            Patch::Absent => {}
            // Clearing the zone sets the default.
            Patch::Null => "UTC".clone_into(&mut workspace.timezone),
            Patch::Set(name) => workspace.timezone = zone(&name).map_or(name, |(_, spelled)| spelled),
        }
        match call.body.opt_out_keywords {
            Patch::Absent => {}
            Patch::Null => workspace.opt_out_keywords.clear(),
            Patch::Set(words) => workspace.opt_out_keywords = words.iter().map(|word| word.trim().to_owned()).collect(),
        }
        match call.body.request_log {
            Patch::Absent => {}
            Patch::Null => workspace.request_log = RequestLog::default(),
            Patch::Set(setting) => workspace.request_log = setting,
        }
        match call.body.require_second_factor {
            Patch::Absent => {}
            Patch::Null | Patch::Set(false) => workspace.require_second_factor = false,
            Patch::Set(true) => {
                if has_no_factor(cx.caller) {
                    cx.violations.add("/require_second_factor", FieldCode::NotAllowed, FACTOR_FIRST);
                }
                workspace.require_second_factor = true;
            }
        }
        match call.body.archive {
            Patch::Absent => {}
            Patch::Null => workspace.readers.archive = Archive::default(),
            Patch::Set(archive) => workspace.readers.archive = read_archive(cx, workspace.id, archive).await?,
        }
        match call.body.page_texts {
            Patch::Absent => {}
            Patch::Null => workspace.readers.page_texts = PageTexts::default(),
            Patch::Set(texts) => {
                workspace.readers.page_texts = PageTexts::read(&texts, "/page_texts", &mut Violations::new());
            }
        }
        if workspace.timezone != stored.record.timezone {
            let segments = cx.app.segments_with_zone(workspace.id).await?;
            cx.changes.extend(cx.app.calculate_all_anew(workspace.id, segments, cx.now).await?);
        }
        if workspace != stored.record {
            cx.change(Write::put(workspace.clone(), Expect::Revision(stored.revision)));
        }
        Ok(WorkspaceView::of(workspace, cx.app.settings()))
    }
}

/// Reason for which callers are kept from locking themselves out.
const FACTOR_FIRST: &str = "would lock you out: add a second factor to your own account first, with POST /auth/factors";

/// Returns true for a person without a second factor.
fn has_no_factor(caller: &Caller) -> bool {
    matches!(caller, Caller::Session(session) if !session.user.second_factor)
}

/// Reads an archive; a list that does not exist, or is private, is a violation.
async fn read_archive(cx: &mut Context<'_>, workspace: WorkspaceId, sent: ArchiveInput) -> Result<Archive, Error> {
    let ArchiveInput { enabled, title, lists, indexed } = sent;
    let lists = forms::read_lists(cx, workspace, "/archive/lists", &lists.unwrap_or_default()).await?;
    Ok(Archive { enabled, title, lists, indexed })
}

/// Name of a workspace that is to be deleted, as a protection from deleting another one by mistake.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkspaceDeletion {
    /// The name of the workspace, to the letter.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
}

impl Input for WorkspaceDeletion {}

/// Scheduled deletion of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WorkspaceDeletionReport {
    /// Time when the workspace is removed with all its data; until then `restoreWorkspace` cancels the deletion.
    pub deletes_at: Timestamp,
}

/// `DELETE /workspaces/{workspace_id}`
pub struct DeleteWorkspace;

impl Operation for DeleteWorkspace {
    const ID: &'static str = "deleteWorkspace";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}";
    const ACCESS: Access = Access::SessionRole(Role::Owner);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "workspace delete";
    const SUMMARY: &'static str = "Delete a workspace with everything in it, in seven days";
    const UNTIL_THE_END: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = WorkspaceDeletion;
    type Output = WorkspaceDeletionReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WorkspaceDeletionReport, Error> {
        let stored = cx.store().workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?;
        cx.note_before(&WorkspaceView::of(stored.record.clone(), cx.app.settings()));
        if call.body.name != stored.record.name {
            cx.violations.add(
                "/name",
                FieldCode::Conflict,
                "is not the name of the workspace; send its name exactly as it is shown",
            );
        }
        if let Some(end) = stored.record.end {
            cx.changes.extend(cx.app.see_to_the_end(stored.record.id, end.deletes_at));
            return Ok(WorkspaceDeletionReport { deletes_at: end.deletes_at });
        }
        let deletes_at = cx.now + WorkspaceEnd::GRACE;
        cx.changes.extend(cx.app.set_end(&stored, deletes_at));
        Ok(WorkspaceDeletionReport { deletes_at })
    }
}

/// `POST /workspaces/{workspace_id}/restore`
pub struct RestoreWorkspace;

impl Operation for RestoreWorkspace {
    const ID: &'static str = "restoreWorkspace";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/restore";
    const ACCESS: Access = Access::SessionRole(Role::Owner);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "workspace restore";
    const SUMMARY: &'static str = "Take back that a workspace is deleted, until it is";
    const UNTIL_THE_END: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = Empty;
    type Output = WorkspaceView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<WorkspaceView, Error> {
        let stored = cx.store().workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?;
        cx.note_before(&WorkspaceView::of(stored.record.clone(), cx.app.settings()));
        let mut workspace = stored.record;
        if let Some(end) = workspace.end.take() {
            if !end.is_revocable(cx.now) {
                return Err(Error::NotFound);
            }
            cx.change(Write::put(workspace.clone(), Expect::Revision(stored.revision)));
        }
        Ok(WorkspaceView::of(workspace, cx.app.settings()))
    }
}
