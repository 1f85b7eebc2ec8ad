//! Members of lists: showing, adding and removing them.
//!
//! Contract sections 7 and 23.

use std::collections::HashMap;

use http::{Method, StatusCode};
use messaging_core::changes::Write;
use messaging_core::domain::audience::contact::ContactFilter;
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::audience::subscription::{
    Admission, NewStatus, Proof, Subscription, SubscriptionAct, SubscriptionStatus, admit,
};
use messaging_core::domain::limits::{MAX_BULK, MAX_PAGE_SIZE};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{ContactId, FormId, ListId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::{Slice, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListPath;
use crate::error::Error;
use crate::ops::contacts::{self, ContactView};
use crate::ops::context::Context;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::ops::page::Page;
use crate::services::subscribing::Admitting;

/// Proof of the act that gave a membership its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MembershipProof")]
#[non_exhaustive]
pub struct ProofView {
    /// The act: `api`, `import`, `form`, `confirmation`, `preferences` or `unsubscribe`.
    pub how: SubscriptionAct,
    /// When it happened.
    pub at: Timestamp,
    /// Address that the reader's request came from; null without the scope `pii:read`.
    pub ip: Option<String>,
    /// Program that sent the reader's request; null without the scope `pii:read`.
    pub user_agent: Option<String>,
    /// The form by which the reader subscribed.
    pub form_id: Option<FormId>,
}

/// Membership of a list, current or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Membership")]
#[non_exhaustive]
pub struct MembershipView {
    /// The list.
    pub list_id: ListId,
    /// Status of the membership: `confirmed`, or on public lists `unconfirmed` or `left`.
    pub status: SubscriptionStatus,
    /// Time of the act that gave it this status; null if not recorded.
    pub since: Option<Timestamp>,
    /// Proof of that act; null if not recorded, as on private lists.
    pub proof: Option<ProofView>,
}

impl MembershipView {
    /// Returns a member without a recorded proof.
    pub(crate) const fn unrecorded(list_id: ListId) -> Self {
        Self { list_id, status: SubscriptionStatus::Confirmed, since: None, proof: None }
    }

    /// Returns the view of a recorded subscription.
    pub(crate) fn of(subscription: Subscription, redactor: Redactor) -> Self {
        let Proof { how, at, ip, user_agent, form_id } = subscription.proof;
        let (ip, user_agent) =
            if redactor.is_clear() { (ip.map(|ip| ip.to_string()), user_agent) } else { (None, None) };
        Self {
            list_id: subscription.list_id,
            status: subscription.status,
            since: Some(subscription.since),
            proof: Some(ProofView { how, at, ip, user_agent, form_id }),
        }
    }
}

/// A contact with its membership of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListMember")]
#[non_exhaustive]
pub struct ListMemberView {
    /// The contact.
    #[serde(flatten)]
    pub contact: ContactView,
    /// Membership of the contact on the list.
    pub membership: MembershipView,
}

/// Choice of the members that are listed, and of the page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct ListMemberQuery {
    /// Status of the contacts that are listed; `confirmed` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SubscriptionStatus>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for ListMemberQuery {}

/// `GET /workspaces/{workspace_id}/lists/{id}/contacts`
pub struct ListListContacts;

impl Operation for ListListContacts {
    const ID: &'static str = "listListContacts";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}/contacts";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "list contacts";
    const SUMMARY: &'static str = "List the contacts on a list, newest contact first";
    type Path = ListPath;
    type Query = ListMemberQuery;
    type Body = Empty;
    type Output = Page<ListMemberView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ListMemberView>, Error> {
        let ListPath { workspace_id, id } = call.path;
        let list = cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let ListMemberQuery { status, limit, cursor } = call.query;
        let query = PageQuery::of(limit, cursor);
        match status.unwrap_or(SubscriptionStatus::Confirmed) {
            SubscriptionStatus::Confirmed => confirmed(cx, list, &query).await,
            // On a private list no contact has such a status.
            _ if !list.is_public() => Ok(Page::only(Vec::new())),
            status => recorded(cx, workspace_id, (id, status), &query).await,
        }
    }
}

/// Returns a page of the members of a list.
async fn confirmed(cx: &Context<'_>, list: ContactList, query: &PageQuery) -> Result<Page<ListMemberView>, Error> {
    let (workspace, id) = (list.workspace_id, list.id);
    let filter = ContactFilter { list_id: Some(id), ..ContactFilter::default() };
    let Page { data, next_cursor } = contacts::page(cx, workspace, &filter, query).await?;
    let ids: Vec<_> = data.iter().map(|contact| contact.id).collect();
    let lists = if list.is_public() { vec![id] } else { Vec::new() };
    let mut records = cx.app.records(workspace, &lists, &ids).await?;
    let member = |contact: ContactView| {
        let record = records.remove(&(id, contact.id)).map(|stored| stored.record);
        // A record with another status is older than the membership that was read before it.
        let record = record.filter(|record| record.status == SubscriptionStatus::Confirmed);
        let unrecorded = || MembershipView::unrecorded(id);
        ListMemberView {
            membership: record.map_or_else(unrecorded, |it| MembershipView::of(it, cx.redactor())),
            contact,
        }
    };
    Ok(Page { data: data.into_iter().map(member).collect(), next_cursor })
}

/// Returns a page of the contacts that are recorded with another status.
async fn recorded(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    (list, status): (ListId, SubscriptionStatus),
    query: &PageQuery,
) -> Result<Page<ListMemberView>, Error> {
    let slice = cx.store().subscriptions(workspace, list, status, cx.page(query)?).await?;
    let (mut found, mut memberships) = (Vec::new(), Vec::new());
    for subscription in slice.items {
        // A contact that was erased meanwhile is left out.
        if let Some(Stored { record, .. }) = cx.store().contact(workspace, subscription.contact_id).await? {
            found.push(record);
            memberships.push(MembershipView::of(subscription, cx.redactor()));
        }
    }
    let shown = contacts::views(cx, workspace, found).await?;
    let items = shown.into_iter().zip(memberships);
    let items = items.map(|(contact, membership)| ListMemberView { contact, membership }).collect();
    Ok(cx.answer_page(Slice { items, next: slice.next }, |member| member))
}

/// Contacts to add to a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
#[schemars(rename = "ListMembersInput")]
pub struct MembersInput {
    /// 1 to 1000 contacts.
    #[validate(length(min = 1, max = MAX_BULK))]
    pub contact_ids: Vec<String>,
    /// Status that they get on a public list; `unconfirmed` sends each a confirmation. `confirmed` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NewStatus>,
    /// True to add contacts again that have left the public list; otherwise they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resubscribe: Option<bool>,
}

impl Input for MembersInput {}

/// Result of adding contacts to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "ListMembersReport")]
pub struct MembersReport {
    /// Number of contacts that were added.
    pub added: usize,
    /// Number of contacts that were on the list already, or were named twice.
    pub already_member: usize,
}

/// `POST /workspaces/{workspace_id}/lists/{id}/contacts`
pub struct AddListContacts;

impl Operation for AddListContacts {
    const ID: &'static str = "addListContacts";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}/contacts";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "list add";
    const SUMMARY: &'static str = "Add contacts to a list";
    const LOOKS_UP: bool = true;
    type Path = ListPath;
    type Query = Empty;
    type Body = MembersInput;
    type Output = MembersReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<MembersReport, Error> {
        let ListPath { workspace_id, id } = call.path;
        let list = cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let MembersInput { contact_ids, status, resubscribe } = call.body;
        if status == Some(NewStatus::Unconfirmed) && !list.is_public() {
            cx.violations.add("/status", FieldCode::NotAllowed, "members of a private list are confirmed");
        }
        let (status, takes_back) = (status.unwrap_or_default(), resubscribe == Some(true));
        let named: Vec<Option<ContactId>> = contact_ids.iter().map(|text| text.parse().ok()).collect();
        let ids: Vec<_> = named.iter().flatten().copied().collect();
        let mut members: HashMap<_, _> = cx.store().memberships(workspace_id, id, &ids).await?.into_iter().collect();
        let lists = if list.is_public() { vec![id] } else { Vec::new() };
        let records = cx.app.records(workspace_id, &lists, &ids).await?;
        let (mut report, mut joins) = (MembersReport { added: 0, already_member: 0 }, Vec::new());
        for (index, contact) in named.into_iter().enumerate() {
            let found = contact.and_then(|contact| members.get_mut(&contact).map(|is_member| (contact, is_member)));
            let Some((contact, is_member)) = found else {
                let rule = "no such contact in this workspace";
                cx.violations.add(format!("/contact_ids/{index}"), FieldCode::NotFound, rule);
                continue;
            };
            let known = records.get(&(id, contact)).map(|stored| stored.record.status);
            match admit(status.into(), known, *is_member, takes_back) {
                Admission::Stays => report.already_member += 1,
                Admission::Refused => {
                    let rule = "the contact has left this list; resubscribe true takes it back";
                    cx.violations.add(format!("/contact_ids/{index}"), FieldCode::NotAllowed, rule);
                }
                Admission::Becomes(_) => {
                    *is_member = true;
                    report.added += 1;
                    joins.push(Write::JoinList(workspace_id, id, contact, cx.now));
                }
            }
        }
        let admitting = Admitting::to_list(status, takes_back);
        for write in cx.app.with_subscriptions(workspace_id, joins, &admitting).await? {
            cx.change(write);
        }
        Ok(report)
    }
}

/// The path of a membership.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ListMemberPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The list.
    pub id: ListId,
    /// The contact.
    pub contact_id: ContactId,
}

/// `DELETE /workspaces/{workspace_id}/lists/{id}/contacts/{contact_id}`
pub struct RemoveListContact;

impl Operation for RemoveListContact {
    const ID: &'static str = "removeListContact";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}/contacts/{contact_id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "list remove";
    const SUMMARY: &'static str = "Take a contact off a list, if it is on it";
    type Path = ListMemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let ListMemberPath { workspace_id, id, contact_id } = call.path;
        let list = cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let found = cx.store().memberships(workspace_id, id, &[contact_id]).await?;
        let (_, is_member) = found.first().ok_or(Error::NotFound)?;
        if *is_member || list.is_public() {
            let leave = vec![Write::LeaveList(workspace_id, id, contact_id, cx.now)];
            for write in cx.app.with_subscriptions(workspace_id, leave, &Admitting::by_automation()).await? {
                cx.change(write);
            }
        }
        Ok(NoContent)
    }
}
