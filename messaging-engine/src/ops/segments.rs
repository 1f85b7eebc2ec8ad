//! Segments and their members.
//!
//! Contract section 9. Members are found in the background; see
//! [`jobs::recalculate_segment`](crate::jobs::recalculate_segment).

mod preview;

use std::borrow::Cow;

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, JobWrite, Write};
use messaging_core::domain::audience::contact::ContactFilter;
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::domain::segment::parse::Purpose;
use messaging_core::domain::segment::resolve::SegmentGraph;
use messaging_core::domain::segment::{MAX_SEGMENTS, Segment, SegmentKind, SegmentStatus};
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::input::JUDGED_ALONE;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::{Patch, Replace};
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::recalculate_segment::RecalculateSegment;
use crate::ops::contacts::{self, ContactView};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::uses;
use crate::services::filters::{CheckedFilter, SentFilter};

pub use preview::{ConditionSize, PreviewInput, PreviewReport, PreviewSegment};

/// Maximum number of segments that a refusal to delete a segment names, because their filters use it.
const MAX_NAMED: usize = 100;

/// Filter as it was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FilterInput(pub Value);

impl From<Value> for FilterInput {
    fn from(filter: Value) -> Self {
        Self(filter)
    }
}

impl JsonSchema for FilterInput {
    fn schema_name() -> Cow<'static, str> {
        "Filter".into()
    }

    // The check of bodies finds the mark `JUDGED_ALONE` only in the schema of the member itself.
    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Faults of a filter are found by its parser, which knows far more than a schema could say.
        json_schema!({
            "type": "object",
            "description": "`{}` is every contact. Otherwise a group, `{\"and\": […]}`, `{\"or\": […]}`, `{\"not\": …}`, \
                or a condition with a `type`.",
            JUDGED_ALONE: true,
        })
    }
}

/// A segment as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Segment")]
#[non_exhaustive]
pub struct SegmentView {
    /// Id of the segment.
    pub id: SegmentId,
    /// Name of the segment.
    pub name: String,
    /// Kind of the segment: `dynamic` if its members follow the filter.
    pub kind: SegmentKind,
    /// Filter that the members match.
    pub filter: FilterInput,
    /// State of the segment's members: `ready`, `recalculating`, or `failed` if they could not be calculated.
    pub status: SegmentStatus,
    /// Number of members; null until it was first counted.
    pub size: Option<u64>,
    /// When its members were last calculated as a whole.
    pub calculated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or filter last changed.
    pub updated_at: Timestamp,
}

impl SegmentView {
    fn of(segment: Segment) -> Self {
        let filter = serde_json::from_str(segment.filter.json()).unwrap_or_default();
        Self {
            id: segment.id,
            name: segment.name,
            kind: segment.kind,
            filter: FilterInput(filter),
            status: segment.status,
            size: segment.size,
            calculated_at: segment.calculated_at,
            created_at: segment.created_at,
            updated_at: segment.updated_at,
        }
    }
}

/// `GET /workspaces/{workspace_id}/segments`
pub struct ListSegments;

impl Operation for ListSegments {
    const ID: &'static str = "listSegments";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "segment list";
    const SUMMARY: &'static str = "List segments, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<SegmentView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SegmentView>, Error> {
        let slice = cx.store().segments(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, SegmentView::of))
    }
}

/// A new segment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SegmentInput {
    /// 1 to 200 characters.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// Kind of the segment: `dynamic`, whose members follow the filter, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SegmentKind>,
    /// Filter that the members match; `{}` matches every contact.
    pub filter: FilterInput,
}

impl Input for SegmentInput {}

/// `POST /workspaces/{workspace_id}/segments`
pub struct CreateSegment;

impl Operation for CreateSegment {
    const ID: &'static str = "createSegment";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "segment create";
    const SUMMARY: &'static str = "Create a segment of the contacts that a filter matches";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = SegmentInput;
    type Output = SegmentView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SegmentView, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let SegmentInput { name, kind, filter } = call.body;
        let judged = judge(cx, workspace, &filter, None).await?;
        if cx.app.segment_graph(workspace).await?.iter().count() >= MAX_SEGMENTS {
            cx.violations.add("", FieldCode::TooManyItems, "a workspace has at most 1000 segments");
        }
        let Some(judged) = judged.filter(|_| cx.violations.is_empty()) else { return Err(refused(cx)) };
        let segment = Segment {
            id: cx.new_id(),
            workspace_id: workspace,
            name,
            kind: kind.unwrap_or_default(),
            filter: judged.filter.clone(),
            status: SegmentStatus::Recalculating,
            size: None,
            calculated_at: None,
            created_at: cx.now,
            updated_at: cx.now,
            calculation: 1,
        };
        cx.changes.extend(judged.revision_guards());
        cx.change(Write::PutSegment(Box::new(segment.clone()), Expect::Absent));
        let job = RecalculateSegment::of(&segment).enqueue(cx.new_id(), cx.now);
        cx.change(Write::Job(JobWrite::Enqueue(job)));
        Ok(SegmentView::of(segment))
    }
}

/// Checks a filter of a segment that exists or is to be created.
async fn judge(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    filter: &FilterInput,
    segment: Option<SegmentId>,
) -> Result<Option<CheckedFilter>, Error> {
    let (pointer, purpose) = ("/filter", Purpose::Segment);
    let sent = SentFilter { value: &filter.0, pointer, purpose, segment, lenient: cx.lenient, caller: cx.caller };
    cx.app.judge_filter(workspace, sent, &mut cx.violations).await
}

/// Returns all violations as one error.
fn refused(cx: &mut Context<'_>) -> Error {
    std::mem::take(&mut cx.violations).into()
}

/// The path of an operation on a segment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SegmentPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The segment.
    pub id: SegmentId,
}

/// A segment whose members are recalculated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RecalculatedSegment {
    /// The segment.
    #[serde(flatten)]
    pub segment: SegmentView,
    /// Result of the request: always `recalculating`.
    pub result: RecalculateResult,
}

/// Result of a request to recalculate a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecalculateResult {
    /// The members are being calculated.
    Recalculating,
}

/// `POST /workspaces/{workspace_id}/segments/{id}/recalculate`
pub struct RecalculateSegmentMembers;

impl Operation for RecalculateSegmentMembers {
    const ID: &'static str = "recalculateSegment";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/{id}/recalculate";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "segment recalculate";
    const SUMMARY: &'static str = "Calculate the members of a segment anew";
    type Path = SegmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RecalculatedSegment;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RecalculatedSegment, Error> {
        let stored = cx.store().segment(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        // A running calculation of a dynamic segment reads all changes; if it began again with every request, it might
        // never end.
        let runs = stored.record.status == SegmentStatus::Recalculating;
        let segment = if runs && stored.record.kind == SegmentKind::Dynamic {
            stored.record
        } else {
            let (segment, writes) = cx.app.calculate_anew(stored, cx.now);
            cx.changes.extend(writes);
            segment
        };
        Ok(RecalculatedSegment { segment: SegmentView::of(segment), result: RecalculateResult::Recalculating })
    }
}

/// `GET /workspaces/{workspace_id}/segments/{id}`
pub struct GetSegment;

impl Operation for GetSegment {
    const ID: &'static str = "getSegment";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "segment get";
    const SUMMARY: &'static str = "Show a segment";
    type Path = SegmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SegmentView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SegmentView, Error> {
        let stored = cx.store().segment(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        Ok(SegmentView::of(stored.record))
    }
}

/// A change of a segment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SegmentPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// Filter that members match. Changing it recalculates the members of a dynamic segment.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub filter: Replace<FilterInput>,
    /// Cannot be changed.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub kind: Patch<Value>,
}

impl Input for SegmentPatch {}

/// `PATCH /workspaces/{workspace_id}/segments/{id}`
pub struct UpdateSegment;

impl Operation for UpdateSegment {
    const ID: &'static str = "updateSegment";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "segment update";
    const SUMMARY: &'static str = "Change the name or filter of a segment";
    const LOOKS_UP: bool = true;
    type Path = SegmentPath;
    type Query = Empty;
    type Body = SegmentPatch;
    type Output = SegmentView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SegmentView, Error> {
        let SegmentPath { workspace_id, id } = call.path;
        let stored = cx.store().segment(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let before = stored.record.clone();
        let mut segment = stored.record;
        cx.refuse_change_of("/kind", &call.body.kind, segment.kind);
        if let Some(name) = call.body.name.value() {
            segment.name = name;
        }
        // A filter that is sent back unchanged is not checked again: its author may have the right to see addresses,
        // which this caller may lack.
        let given = call.body.filter.value().filter(|filter| {
            let sent = filter.0.to_string();
            sent != segment.filter.json()
        });
        if let Some(filter) = given {
            let Some(judged) = judge(cx, workspace_id, &filter, Some(id)).await? else { return Err(refused(cx)) };
            if judged.filter != segment.filter {
                segment.filter = judged.filter.clone();
                cx.changes.extend(judged.revision_guards());
            }
        }
        if segment == before {
            return Ok(SegmentView::of(segment));
        }
        segment.updated_at = cx.now;
        let is_dynamic = segment.kind == SegmentKind::Dynamic;
        let begins = segment.filter != before.filter
            // A static segment that is being calculated would get members of both filters.
            && (is_dynamic || before.status == SegmentStatus::Recalculating);
        if !begins {
            cx.change(Write::PutSegment(Box::new(segment.clone()), Expect::Revision(stored.revision)));
            return Ok(SegmentView::of(segment));
        }
        let changed = Stored { record: segment, revision: stored.revision };
        let (segment, writes) = cx.app.calculate_anew(changed, cx.now);
        cx.changes.extend(writes);
        if is_dynamic {
            let dependents = cx.app.segment_graph(workspace_id).await?.dependents(id);
            let writes = cx.app.calculate_all_anew(workspace_id, dependents, cx.now).await?;
            cx.changes.extend(writes);
        }
        Ok(SegmentView::of(segment))
    }
}

/// `DELETE /workspaces/{workspace_id}/segments/{id}`
pub struct DeleteSegment;

impl Operation for DeleteSegment {
    const ID: &'static str = "deleteSegment";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "segment delete";
    const SUMMARY: &'static str = "Delete a segment; its contacts stay";
    type Path = SegmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let SegmentPath { workspace_id, id } = call.path;
        let stored = cx.store().segment(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let graph: SegmentGraph = cx.app.segment_graph(workspace_id).await?;
        let by: Vec<_> = graph.users(id).take(MAX_NAMED).map(|user| user.id.to_string()).collect();
        uses::refuse_used(cx, workspace_id, Reference::Segment(id), by).await?;
        // If another resource comes to name the segment meanwhile, the segment's revision has changed.
        cx.change(Write::PutSegment(Box::new(stored.record), Expect::Revision(stored.revision)));
        cx.change(Write::DeleteSegment(workspace_id, id));
        Ok(NoContent)
    }
}

/// `GET /workspaces/{workspace_id}/segments/{id}/contacts`
pub struct ListSegmentContacts;

impl Operation for ListSegmentContacts {
    const ID: &'static str = "listSegmentContacts";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/{id}/contacts";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "segment contacts";
    const SUMMARY: &'static str = "List the contacts in a segment, newest contact first";
    type Path = SegmentPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ContactView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ContactView>, Error> {
        let SegmentPath { workspace_id, id } = call.path;
        cx.store().segment(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let filter = ContactFilter { segment_id: Some(id), ..ContactFilter::default() };
        contacts::page(cx, workspace_id, &filter, &call.query).await
    }
}
