//! Preview of the audience that a campaign would have if it began now.

use std::sync::Arc;

use http::{Method, StatusCode};
use messaging_core::domain::campaign::audience::Estimate;
use messaging_core::domain::campaign::check::judge_found;
use messaging_core::domain::campaign::input::AudiencePreviewInput;
use messaging_core::input::Empty;
use messaging_core::scope::{Access, Scope};
use messaging_core::violation::Violations;

use super::refuse;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};

/// `POST /workspaces/{workspace_id}/campaigns/preview-audience`
pub struct PreviewAudience;

impl Operation for PreviewAudience {
    const ID: &'static str = "previewAudience";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/preview-audience";
    const ACCESS: Access = Access::Scope(Scope::CampaignsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign preview-audience";
    const SUMMARY: &'static str = "Count who would get a campaign now, and why others would not; an estimate where \
                                   counting takes longer than half a second";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = AudiencePreviewInput;
    type Output = Estimate;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Estimate, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let AudiencePreviewInput { channel, audience } = call.body;
        let mut found = Violations::new();
        let audience = audience.read(&mut found);
        let references = cx.app.find_references(workspace, audience.references()).await?;
        judge_found(channel, &references, &mut found);
        refuse(cx, found)?;
        let query = Arc::new(cx.app.audience_query(workspace, channel, &audience, false).await?);
        let preview = cx.store().preview_audience(workspace, &query).await?;
        Ok(preview.counts.estimate(preview.exact && preview.knows_duplicates))
    }
}
