//! Export of everything stored about one contact, for the person's request to see it.

use http::{Method, StatusCode};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::product_event::{ProductEvent, Properties};
use messaging_core::domain::message::MessageFilter;
use messaging_core::ids::{ContactId, EventId, WorkspaceId};
use messaging_core::input::Empty;
use messaging_core::ports::store::PageRequest;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContactPath, ContactView, view};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::lists::MembershipView;
use crate::ops::messages::{self, MessageReport};
use crate::ops::operation::{Call, Operation};
use crate::ops::suppressions::SuppressionView;

/// Number of messages in an export, the newest. The contract sets no limit; this one bounds the answer.
const MAX_MESSAGES: usize = 10_000;
/// Number of product events in an export, the newest, unless they are long.
const MAX_EVENTS: usize = 10_000;
/// Bytes of properties after which an export has no further event.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// Number of messages or events read at a time.
const PAGE: usize = 200;

/// Everything stored about one contact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ContactExport {
    /// The contact.
    pub contact: ContactView,
    /// Memberships of the contact, and the public lists that it has left or is asked to confirm.
    pub memberships: Vec<MembershipView>,
    /// Product events of the contact, newest first, at most 10000, and fewer if their properties are over 16 MiB.
    pub events: Vec<EventView>,
    /// Messages attributed to it, newest first, at most 10000.
    pub messages: Vec<MessageReport>,
    /// Suppressions of its addresses.
    pub suppressions: Vec<SuppressionView>,
}

/// A product event as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProductEvent")]
#[non_exhaustive]
pub struct EventView {
    /// Id of the event.
    pub event_id: EventId,
    /// Name of the product event, as the workspace's program sent it.
    pub name: String,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Properties of the event.
    pub properties: Properties,
    /// Unique id that the caller gave it; removed 7 days after the event arrived.
    pub unique_id: Option<String>,
}

impl EventView {
    fn of(event: ProductEvent) -> Self {
        let ProductEvent { id, workspace_id: _, contact_id: _, name, occurred_at, properties, unique_id } = event;
        Self { event_id: id, name, occurred_at, properties, unique_id }
    }
}

/// `GET /workspaces/{workspace_id}/contacts/{id}/export`
pub struct ExportContact;

impl Operation for ExportContact {
    const ID: &'static str = "exportContact";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/{id}/export";
    const ACCESS: Access = Access::Scopes(Scope::ContactsRead, Scope::PiiRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact export";
    const SUMMARY: &'static str = "Show everything that is kept about a contact";
    type Path = ContactPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ContactExport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContactExport, Error> {
        let ContactPath { workspace_id, id } = call.path;
        let contact = cx.store().contact(workspace_id, id).await?.ok_or(Error::NotFound)?.record;
        let listed = cx.store().suppressed_anywhere(workspace_id, &contact.all_addresses()).await?;
        let filter = MessageFilter { contact_id: Some(id), ..MessageFilter::default() };
        let mut page = PageRequest { after: None, limit: PAGE };
        let mut exported = Vec::new();
        loop {
            let slice = cx.store().messages(workspace_id, &filter, page).await?;
            for message in slice.items {
                exported.push(messages::report(cx, message).await?);
            }
            if slice.next.is_none() || exported.len() >= MAX_MESSAGES {
                break;
            }
            page.after = slice.next;
        }
        Ok(ContactExport {
            memberships: memberships(cx, &contact).await?,
            contact: view(cx, contact).await?,
            events: events(cx, workspace_id, id).await?,
            messages: exported,
            suppressions: listed.into_iter().map(|listed| SuppressionView::of(listed, cx.redactor())).collect(),
        })
    }
}

/// Returns the memberships of a contact, with their records.
async fn memberships(cx: &Context<'_>, contact: &Contact) -> Result<Vec<MembershipView>, Error> {
    let mut records = cx.app.records_of(contact.workspace_id, contact.id).await?;
    let of_lists = contact.list_ids.iter().map(|list| match records.remove(list) {
        Some(stored) => MembershipView::of(stored.record, cx.redactor()),
        None => MembershipView::unrecorded(*list),
    });
    let mut all: Vec<_> = of_lists.collect();
    all.extend(records.into_values().map(|stored| MembershipView::of(stored.record, cx.redactor())));
    all.sort_by_key(|membership| membership.list_id);
    Ok(all)
}

/// Returns the newest events of a contact.
async fn events(cx: &Context<'_>, workspace: WorkspaceId, contact: ContactId) -> Result<Vec<EventView>, Error> {
    let mut page = PageRequest { after: None, limit: PAGE };
    let (mut shown, mut bytes) = (Vec::new(), 0);
    loop {
        let slice = cx.store().product_events(workspace, contact, page).await?;
        for event in slice.items {
            bytes += event.properties.json().len();
            if bytes > MAX_EVENT_BYTES {
                return Ok(shown);
            }
            shown.push(EventView::of(event));
        }
        if slice.next.is_none() || shown.len() >= MAX_EVENTS {
            return Ok(shown);
        }
        page.after = slice.next;
    }
}
