//! Preview of a filter.

use http::{Method, StatusCode};
use messaging_core::domain::segment::filter::{Condition, Filter};
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::contacts::{self, ContactView};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::segments::{FilterInput, judge, refused};

/// Number of contacts that are shown.
const SAMPLE: usize = 20;
/// Number of conditions that are counted alone: each costs as much as the filter.
const MAX_CONDITIONS: usize = 20;

/// Filter to preview.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
#[schemars(rename = "SegmentPreviewInput")]
pub struct PreviewInput {
    /// Filter that is evaluated.
    pub filter: FilterInput,
}

impl Input for PreviewInput {}

/// Contacts that a filter matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "SegmentPreview")]
pub struct PreviewReport {
    /// Number of matching contacts; an estimate where counting all would take longer than half a second.
    pub size_estimate: u64,
    /// True if every contact was evaluated. Otherwise the sizes are estimated from some of them, and are never 0.
    pub exact: bool,
    /// At most 20 of the matching contacts, newest first.
    pub sample: Vec<ContactView>,
    /// Numbers of contacts that match each of the first 20 conditions alone, estimated likewise.
    pub conditions: Vec<ConditionSize>,
}

/// Number of contacts that match one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ConditionSize {
    /// JSON pointer to the condition in the request.
    pub pointer: String,
    /// Number of contacts that match this condition alone.
    pub size: u64,
}

/// `POST /workspaces/{workspace_id}/segments/preview`
pub struct PreviewSegment;

impl Operation for PreviewSegment {
    const ID: &'static str = "previewSegment";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/segments/preview";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "segment preview";
    const SUMMARY: &'static str = "Count whom a filter matches, and show some of them";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = PreviewInput;
    type Output = PreviewReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<PreviewReport, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let Some(judged) = judge(cx, workspace, &call.body.filter, None).await? else { return Err(refused(cx)) };
        let leaves = judged.filter.tree().leaves().take(MAX_CONDITIONS);
        let alone = leaves.map(|leaf| judged.graph.resolve(&Filter::Where(Condition::Leaf(leaf.clone()))));
        let conditions = alone.collect::<Result<Vec<_>, _>>().map_err(Error::internal)?;
        let query = cx.app.member_query(workspace, judged.resolved).await?;
        let preview = cx.store().preview(workspace, &query, &conditions, SAMPLE).await?;
        let sizes = judged.leaves.into_iter().zip(preview.sizes);
        Ok(PreviewReport {
            size_estimate: preview.size,
            exact: preview.exact,
            sample: contacts::views(cx, workspace, preview.sample).await?,
            conditions: sizes.map(|(pointer, size)| ConditionSize { pointer, size }).collect(),
        })
    }
}
