//! Many contacts in one request.

use http::{Method, StatusCode};
use messaging_core::DomainError;
use messaging_core::changes::Changes;
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::limits::MAX_BULK;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::input::items::Items;
use messaging_core::input::{Empty, Input};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::contacts::ContactView;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::parts::{PartLimit, PartReport};
use crate::services::upserting::{CheckedItem, Upserted};

/// Number of contacts of a part; written in about ten milliseconds.
const PART_ITEMS: usize = 500;
/// Bytes of JSON of a part, unless one contact alone is longer.
const PART_BYTES: usize = 512 << 10;

/// Contacts to create or update.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
#[schemars(rename = "BulkContactsInput")]
pub struct BulkInput {
    /// 1 to 1000 contacts, processed in order; each is stored or refused alone.
    #[validate(length(min = 1, max = MAX_BULK))]
    pub contacts: Items<ContactInput>,
}

impl Input for BulkInput {}

/// Results of creating or updating many contacts: totals, and one entry for each contact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "BulkContactsReport")]
pub struct BulkReport {
    /// Number of contacts that were created.
    pub created: usize,
    /// Number of contacts that existed already and were updated.
    pub updated: usize,
    /// Number of contacts that were refused, of which nothing is stored.
    pub failed: usize,
    /// Result of each contact, in the order of the request.
    pub results: Vec<ItemReport>,
}

/// Result for one contact of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "BulkContactResult")]
pub struct ItemReport {
    /// Index of the contact in the request, from 0.
    pub index: usize,
    /// Result for the contact: `created`, `updated`, or `error` if it was refused.
    pub status: ItemStatus,
    /// Id of the contact; left out if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ContactId>,
    /// Reason why the contact was refused; left out if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

/// Result for one contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BulkContactStatus")]
pub enum ItemStatus {
    /// The contact was created.
    Created,
    /// The contact existed already.
    Updated,
    /// The contact was refused.
    Error,
}

/// Error of one refused item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "BulkItemError")]
pub struct ItemError {
    /// Code of the error, for programs; never changes.
    pub code: String,
    /// Text of the error, for people; may change.
    pub message: String,
    /// Details, by code. Pointers are relative to the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ItemError {
    /// Returns the error of an item that was refused.
    pub(crate) fn of(refusal: DomainError) -> Self {
        Self::of_refusal(&Error::from(refusal))
    }

    /// Returns the error of an item, from the error of the API.
    pub(crate) fn of_refusal(error: &Error) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string(), details: error.details() }
    }
}

/// `POST /workspaces/{workspace_id}/contacts/bulk`
pub struct BulkUpsertContacts;

impl Operation for BulkUpsertContacts {
    const ID: &'static str = "bulkUpsertContacts";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/bulk";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact bulk";
    const SUMMARY: &'static str = "Create or update up to 1000 contacts, each independent of the others";
    const IN_PARTS: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = BulkInput;
    type Output = BulkReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<BulkReport, Error> {
        // The operator can name any workspace, also one that does not exist.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let types = cx.app.field_types(workspace).await?;
        let items = call.body.contacts.reading(cx.unknown_members::<ContactView>());
        let mut report = BulkReport { results: Vec::with_capacity(items.len()), ..BulkReport::default() };
        let mut start = 0;
        let mut part = judge_part(&items, start);
        while !part.is_empty() {
            let next = start + part.len();
            // While one part is written, the next one is parsed.
            let reading = async { judge_part(&items, next) };
            let writing = write_part(cx, workspace, &types, (start, part), || judge_part(&items, start));
            let (written, following) = tokio::join!(writing, reading);
            // Contacts that were stored before a failure stay, and the answer is the failure. Repeating the request
            // with its Idempotency-Key replays the parts that were done and does the rest.
            let written = written?;
            start += written.items();
            report.append(written);
            part = if start == next { following } else { judge_part(&items, start) };
        }
        Ok(report)
    }
}

/// Writes the items of a part, which begin at an index of the request. `again` parses them once more, in case contacts
/// changed meanwhile.
async fn write_part(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    types: &FieldTypes,
    (start, items): (usize, Vec<CheckedItem>),
    again: impl Fn() -> Vec<CheckedItem> + Send + Sync,
) -> Result<BulkReport, Error> {
    let app = cx.app;
    let _turn = app.part().await;
    let mut items = Some(items);
    let decide = |limit: PartLimit| {
        let mut items = items.take().unwrap_or_else(&again);
        items.truncate(limit.most);
        async move {
            if limit.is_refused {
                let report = BulkReport::of(start, &[Err(DomainError::NotStorable)]);
                return Ok((Changes::default(), Vec::new(), report));
            }
            let (changes, outcomes) = app.decide_part(workspace, types, items).await?;
            Ok((changes, Vec::new(), BulkReport::of(start, &outcomes)))
        }
    };
    let serialized_resources = || {
        let items = again();
        let readable = items.iter().filter_map(|item| item.as_ref().ok());
        let identifiers = readable.flat_map(|(sent, _)| sent.identifiers());
        identifiers.map(|identifier| ResourceKey::of_identifier(workspace, &identifier)).collect()
    };
    cx.do_part(serialized_resources, decide).await
}

/// Parses the items from `start` on, as many as make a part.
fn judge_part(items: &Items<ContactInput>, start: usize) -> Vec<CheckedItem> {
    let mut bytes = 0;
    let of_part = |index: &usize| {
        bytes += items.length_of(*index);
        *index == start || bytes <= PART_BYTES
    };
    (start..items.len()).take(PART_ITEMS).take_while(of_part).map(|index| items.judge(index)).collect()
}

impl BulkReport {
    /// Reports the outcomes of the contacts from index `start` of the request on.
    fn of(start: usize, outcomes: &[Upserted]) -> Self {
        let mut report = Self::default();
        for (index, outcome) in (start..).zip(outcomes) {
            let (status, id, error) = match outcome {
                Ok((id, true)) => (ItemStatus::Created, Some(*id), None),
                Ok((id, false)) => (ItemStatus::Updated, Some(*id), None),
                Err(error) => (ItemStatus::Error, None, Some(ItemError::of(error.clone()))),
            };
            match status {
                ItemStatus::Created => report.created += 1,
                ItemStatus::Updated => report.updated += 1,
                ItemStatus::Error => report.failed += 1,
            }
            report.results.push(ItemReport { index, status, id, error });
        }
        report
    }

    fn append(&mut self, part: Self) {
        self.created += part.created;
        self.updated += part.updated;
        self.failed += part.failed;
        self.results.extend(part.results);
    }
}

impl PartReport for BulkReport {
    fn items(&self) -> usize {
        self.results.len()
    }
}
