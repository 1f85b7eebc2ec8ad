//! The suppression list.
//!
//! Contract section 10. Bounces, complaints and unsubscribing recipients add to it automatically.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::suppression::input::SuppressionInput;
use messaging_core::domain::audience::suppression::{
    Suppression, SuppressionFilter, SuppressionReason, SuppressionSource,
};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{SuppressionId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation, Upserted};
use crate::ops::page::Page;

/// A suppression as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Suppression")]
#[non_exhaustive]
pub struct SuppressionView {
    /// Id of the suppression.
    pub id: SuppressionId,
    /// Channel of the suppression.
    pub channel: Channel,
    /// The address as the list spells it; email addresses and phone numbers are masked without `pii:read`.
    pub address: String,
    /// Reason why the address must not be sent to.
    pub reason: SuppressionReason,
    /// Details of the reason.
    pub detail: Option<String>,
    /// Source of the entry: a call of the API, the system, or the recipient.
    pub source: SuppressionSource,
    /// Time when the address was added.
    pub created_at: Timestamp,
}

impl SuppressionView {
    /// Returns the view of a suppression.
    pub(crate) fn of(suppression: Suppression, redactor: Redactor) -> Self {
        let Suppression { id, workspace_id: _, channel, address, reason, detail, source, created_at } = suppression;
        let address = redactor.address(channel, address);
        let detail = detail.map(|detail| redactor.text(detail));
        Self { id, channel, address, reason, detail, source, created_at }
    }
}

/// `POST /workspaces/{workspace_id}/suppressions`
pub struct CreateSuppression;

impl Operation for CreateSuppression {
    const ID: &'static str = "createSuppression";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/suppressions";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "suppression create";
    const SUMMARY: &'static str = "Put an address on the suppression list; one that is listed keeps its record, \
                                   and its reason only rises";
    const LOOKS_UP: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = SuppressionInput;
    type Output = Upserted<SuppressionView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Upserted<SuppressionView>, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let SuppressionInput { channel, address, reason, .. } = call.body;
        if channel == Channel::Viber && !cx.app.viber_service(workspace).await?.sends_to(&address) {
            cx.violations.add("/address", FieldCode::InvalidFormat, "not an address of this channel");
        }
        let Some(reason) = reason.filter(|_| cx.violations.is_empty()) else {
            return Err(std::mem::take(&mut cx.violations).into());
        };
        let address = address::normalize(channel, &address);
        let redactor = cx.redactor();
        let listed = cx.store().suppressed(workspace, channel, std::slice::from_ref(&address)).await?;
        if let Some(stored) = listed.into_iter().next() {
            let record = match stored.record.raised(reason, None) {
                Some(raised) => {
                    cx.change(Write::PutSuppression(raised.clone(), Expect::Revision(stored.revision)));
                    raised
                }
                None => stored.record,
            };
            return Ok(Upserted { created: Some(false), record: SuppressionView::of(record, redactor) });
        }
        let record = Suppression {
            id: cx.new_id(),
            workspace_id: workspace,
            channel,
            address,
            reason,
            detail: None,
            source: SuppressionSource::Api,
            created_at: cx.now,
        };
        cx.change(Write::PutSuppression(record.clone(), Expect::Absent));
        Ok(Upserted { created: Some(true), record: SuppressionView::of(record, redactor) })
    }
}

/// Filters and page of `GET …/suppressions`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct SuppressionQuery {
    /// Suppressions on this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Suppressions of this address, in clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Suppressions for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SuppressionReason>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for SuppressionQuery {}

/// `GET /workspaces/{workspace_id}/suppressions`
pub struct ListSuppressions;

impl Operation for ListSuppressions {
    const ID: &'static str = "listSuppressions";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/suppressions";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "suppression list";
    const SUMMARY: &'static str = "List suppressed addresses, newest first";
    type Path = InWorkspace;
    type Query = SuppressionQuery;
    type Body = Empty;
    type Output = Page<SuppressionView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SuppressionView>, Error> {
        let SuppressionQuery { channel, address, reason, limit, cursor } = call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let filter = SuppressionFilter { channel, address, reason };
        let slice = cx.store().suppressions(call.path.workspace_id, &filter, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |suppression| SuppressionView::of(suppression, redactor)))
    }
}

/// The path of a suppression.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The suppression.
    pub id: SuppressionId,
}

/// `DELETE /workspaces/{workspace_id}/suppressions/{id}`
pub struct DeleteSuppression;

impl Operation for DeleteSuppression {
    const ID: &'static str = "deleteSuppression";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/suppressions/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "suppression delete";
    const SUMMARY: &'static str = "Take an address off the suppression list";
    type Path = SuppressionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let SuppressionPath { workspace_id, id } = call.path;
        cx.store().suppression(workspace_id, id).await?.ok_or(Error::NotFound)?;
        cx.change(Write::DeleteSuppression(workspace_id, id, cx.now));
        Ok(NoContent)
    }
}
