//! Operations that create, list, show, change and erase contacts.
//!
//! Contract section 6. [`messaging_core::domain::audience::contact`] decides which contact a request means and how it
//! changes; this module decides who is shown which addresses in clear.

mod bulk;
mod explain;
mod export;
mod merge;

use std::collections::HashSet;

use http::{Method, StatusCode};
use messaging_core::domain::audience::contact::identity_resolver::UpsertContext;
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::contact::{Consent, Contact, ContactFilter, IdentifierKind};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::search::{MAX_SEARCH, MIN_SEARCH, Search};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{ContactId, ListId, SegmentId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation, Upserted};
use crate::ops::page::Page;
use crate::services::subscribing::Admitting;
use crate::services::upserting::writes;

pub use bulk::{BulkInput, BulkReport, BulkUpsertContacts, ItemError, ItemReport, ItemStatus};
pub use explain::{
    ContactExplanation, ExplainCode, ExplainContact, ExplainQuery, ExplainReason, TransactionalExplanation,
};
pub use export::{ContactExport, EventView, ExportContact};
pub use merge::{MergeContacts, MergeInput};

/// A contact as answers show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Contact")]
#[non_exhaustive]
pub struct ContactView {
    /// Id of the contact.
    pub id: ContactId,
    /// Your own id of the contact.
    pub external_id: Option<String>,
    /// Its email address; masked for a caller without the scope `pii:read`.
    pub email: Option<String>,
    /// Its phone number; masked for a caller without the scope `pii:read`.
    pub phone: Option<String>,
    /// Your own data about the contact.
    pub attributes: Map<String, Value>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its language tag, such as `en-US`.
    pub locale: Option<String>,
    /// Its IANA time zone, such as `Europe/Berlin`.
    pub timezone: Option<String>,
    /// The lists it is on.
    pub list_ids: Vec<ListId>,
    /// Consent of the contact to marketing, by kind of channel.
    pub consent: Consent,
    /// Channels on which an address of the contact is on the suppression list.
    pub suppressed_channels: Vec<Channel>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed; joining and leaving lists does not count.
    pub updated_at: Timestamp,
}

impl ContactView {
    /// The view of a contact. `suppressed` holds normalized addresses with their channels: all suppressed ones of this
    /// contact, and possibly of others. `viber` says what the contact's addresses on Viber are: its phone number or the
    /// ids that a bot knows.
    fn of(contact: Contact, suppressed: &HashSet<(Channel, String)>, viber: ViberService, redactor: Redactor) -> Self {
        let is_suppressed = |channel: &Channel| {
            let spelled = |address: &String| (*channel, address::normalize(*channel, address));
            contact.addresses(*channel, viber).iter().any(|address| suppressed.contains(&spelled(address)))
        };
        let suppressed_channels = Channel::ALL.into_iter().filter(is_suppressed).collect();
        let shown = |channel, text: Option<String>| text.map(|text| redactor.address(channel, text));
        Self {
            id: contact.id,
            external_id: contact.external_id,
            email: shown(Channel::Email, contact.email),
            phone: shown(Channel::Sms, contact.phone),
            attributes: contact.attributes.into_members(),
            tags: contact.tags,
            locale: contact.locale,
            timezone: contact.timezone,
            list_ids: contact.list_ids,
            consent: contact.consent,
            suppressed_channels,
            created_at: contact.created_at,
            updated_at: contact.updated_at,
        }
    }
}

/// The views of contacts of one workspace, in the same order, with addresses masked as the caller's scopes require.
pub(super) async fn views(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    contacts: Vec<Contact>,
) -> Result<Vec<ContactView>, Error> {
    let addresses: Vec<_> = contacts.iter().flat_map(Contact::all_addresses).collect();
    let suppressed = cx.store().suppressed_anywhere(workspace, &addresses).await?;
    let suppressed = suppressed.into_iter().map(|listed| (listed.channel, listed.address)).collect();
    let (viber, redactor) = (cx.app.viber_service(workspace).await?, cx.redactor());
    Ok(contacts.into_iter().map(|contact| ContactView::of(contact, &suppressed, viber, redactor)).collect())
}

/// The view of one contact; see [`views`].
pub(super) async fn view(cx: &Context<'_>, contact: Contact) -> Result<ContactView, Error> {
    let workspace = contact.workspace_id;
    views(cx, workspace, vec![contact]).await?.pop().ok_or(Error::NotFound)
}

/// `POST /workspaces/{workspace_id}/contacts`
pub struct UpsertContact;

impl Operation for UpsertContact {
    const ID: &'static str = "upsertContact";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "contact upsert";
    const SUMMARY: &'static str = "Create a contact, or update the one that has one of the identifiers";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ContactInput;
    type Output = Upserted<ContactView>;

    fn serialized_resources(_path: &str, call: &Call<Self>) -> Vec<ResourceKey> {
        let workspace = call.path.workspace_id;
        call.body.identifiers().map(|identifier| ResourceKey::of_identifier(workspace, &identifier)).collect()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Upserted<ContactView>, Error> {
        // An operator has access to every workspace id, so the workspace may not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let types = cx.app.field_types(workspace).await?;
        let mut identities = cx.app.identities(workspace, &types, std::iter::once(&call.body), None).await?;
        let on = UpsertContext { workspace_id: workspace, new_id: cx.new_id(), now: cx.now };
        let decision = identities.upsert(call.body, std::mem::take(&mut cx.violations), &IdentifierKind::ALL, on)?;
        let (created, contact) = (Some(decision.created), Contact::clone(&decision.contact));
        let admitting = Admitting::by_api(identities.left());
        for write in cx.app.with_subscriptions(workspace, writes(decision, cx.now), &admitting).await? {
            cx.change(write);
        }
        Ok(Upserted { created, record: view(cx, contact).await? })
    }
}

/// Filters of `GET …/contacts`, all of which a contact must match, and the page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct ContactQuery {
    /// Only the contact with this email address, given unmasked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Only the contact with this external id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Only the contact with this phone number, given unmasked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Only contacts with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only contacts on this list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_id: Option<ListId>,
    /// Only contacts in this segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_id: Option<SegmentId>,
    /// Only contacts that were changed at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_since: Option<Timestamp>,
    /// Only contacts with this text, in any case, in their email address, phone number, external id, first or last
    /// name; for a caller without the scope `pii:read` in their external id. 2 to 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = MIN_SEARCH, max = MAX_SEARCH))]
    pub q: Option<String>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for ContactQuery {}

/// A page of the contacts that match a filter, newest first.
pub(super) async fn page(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    filter: &ContactFilter,
    query: &PageQuery,
) -> Result<Page<ContactView>, Error> {
    let slice = cx.store().contacts(workspace, filter, cx.page(query)?).await?;
    let next = slice.next;
    let data = views(cx, workspace, slice.items).await?;
    Ok(cx.answer_page(messaging_core::ports::store::Slice { items: data, next }, |view| view))
}

/// `GET /workspaces/{workspace_id}/contacts`
pub struct ListContacts;

impl Operation for ListContacts {
    const ID: &'static str = "listContacts";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact list";
    const SUMMARY: &'static str = "List contacts, newest first";
    type Path = InWorkspace;
    type Query = ContactQuery;
    type Body = Empty;
    type Output = Page<ContactView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ContactView>, Error> {
        let ContactQuery { email, external_id, phone, tag, list_id, segment_id, updated_since, q, limit, cursor } =
            call.query;
        let email = email.map(|email| address::normalize(Channel::Email, &email));
        let search = q.map(|q| Search::new(&q, cx.sees_addresses()));
        let filter = ContactFilter { email, external_id, phone, tag, list_id, segment_id, updated_since, search };
        page(cx, call.path.workspace_id, &filter, &PageQuery::of(limit, cursor)).await
    }
}

/// Parameters in the path of an operation on one contact.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ContactPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The contact.
    pub id: ContactId,
}

/// `GET /workspaces/{workspace_id}/contacts/{id}`
pub struct GetContact;

impl Operation for GetContact {
    const ID: &'static str = "getContact";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact get";
    const SUMMARY: &'static str = "Show a contact";
    type Path = ContactPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ContactView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContactView, Error> {
        let ContactPath { workspace_id, id } = call.path;
        let stored = cx.store().contact(workspace_id, id).await?.ok_or(Error::NotFound)?;
        view(cx, stored.record).await
    }
}

/// `PATCH /workspaces/{workspace_id}/contacts/{id}`
pub struct UpdateContact;

impl Operation for UpdateContact {
    const ID: &'static str = "updateContact";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact update";
    const SUMMARY: &'static str = "Change a contact";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = ContactPath;
    type Query = Empty;
    type Body = ContactInput;
    type Output = ContactView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContactView, Error> {
        let ContactPath { workspace_id, id } = call.path;
        let stored = cx.store().contact(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let types = cx.app.field_types(workspace_id).await?;
        let mut identities = cx.app.identities(workspace_id, &types, std::iter::once(&call.body), Some(id)).await?;
        let decision = identities.update(stored, call.body, std::mem::take(&mut cx.violations), cx.now)?;
        let contact = Contact::clone(&decision.contact);
        let admitting = Admitting::by_api(identities.left());
        for write in cx.app.with_subscriptions(workspace_id, writes(decision, cx.now), &admitting).await? {
            cx.change(write);
        }
        view(cx, contact).await
    }
}

/// `DELETE /workspaces/{workspace_id}/contacts/{id}`
pub struct DeleteContact;

impl Operation for DeleteContact {
    const ID: &'static str = "deleteContact";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "contact delete";
    const SUMMARY: &'static str = "Erase a contact, with the addresses and contents of its messages";
    type Path = ContactPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let ContactPath { workspace_id, id } = call.path;
        let contact = cx.store().contact(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        // The contact is deleted in this commit. Its messages may be too many for one commit, so the job erases them.
        for write in cx.app.erasure(&contact) {
            cx.change(write);
        }
        Ok(NoContent)
    }
}
