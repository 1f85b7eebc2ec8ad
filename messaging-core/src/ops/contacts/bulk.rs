//! Many contacts in one request.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use validator::Validate;

use crate::app::upserting::{Judged, Upserted};
use crate::domain::contact::input::ContactInput;
use crate::error::{Chain, Error};
use crate::ids::ContactId;
use crate::ops::contacts::ContactView;
use crate::ops::context::Context;
use crate::ops::input::{Empty, Input};
use crate::ops::items::Items;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::scope::{Access, Scope};

/// Contacts of a part; written in about ten milliseconds.
const PART_ITEMS: usize = 500;
/// Bytes of JSON of a part, unless one contact alone is longer.
const PART_BYTES: usize = 512 << 10;

/// Contacts to create or update.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct BulkInput {
    /// 1 to 1000 contacts, done in order; each is refused or done alone.
    #[validate(length(min = 1, max = 1000))]
    pub contacts: Items<ContactInput>,
}

impl Input for BulkInput {}

/// What became of the contacts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkReport {
    /// How many are new.
    pub created: usize,
    /// How many were there already.
    pub updated: usize,
    /// How many were refused.
    pub failed: usize,
    /// Each, in the order of the request.
    pub results: Vec<ItemReport>,
}

/// What became of one contact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemReport {
    /// Its place in the request, from 0.
    pub index: usize,
    /// What became of it.
    pub status: ItemStatus,
    /// The contact, unless it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ContactId>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

/// What can become of one contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// It is new.
    Created,
    /// It was there already.
    Updated,
    /// It was refused.
    Error,
}

/// Why one item of a list was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemError {
    /// What went wrong; never changes.
    pub code: String,
    /// The same for people; may change.
    pub message: String,
    /// More, by code. Pointers are relative to the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ItemError {
    /// What an item's refusal says.
    pub(crate) fn of(error: &Error) -> Self {
        if let Error::Internal(source) = error {
            tracing::error!(error = %Chain(source.as_ref()), "an item of a list failed");
        }
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
        // The operator can name any workspace, also one that is not there.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let items = call.body.contacts.reading(cx.unknown_members::<ContactView>());
        let mut report = BulkReport { created: 0, updated: 0, failed: 0, results: Vec::with_capacity(items.len()) };
        let mut start = 0;
        let mut part = judge_part(&items, start);
        while !part.is_empty() {
            let next = start + part.len();
            // While one part is written, the next is read.
            let reading = async { judge_part(&items, next) };
            let writing = cx.app.upsert_part(workspace, part, || judge_part(&items, start));
            let (written, following) = tokio::join!(writing, reading);
            // What was written before a failure stays. The answer is the failure, which no
            // Idempotency-Key remembers: repeating the request does the rest.
            for outcome in written? {
                report.add(&outcome);
            }
            (start, part) = (next, following);
        }
        Ok(report)
    }
}

/// Reads the items from `start` on, as many as make a part.
fn judge_part(items: &Items<ContactInput>, start: usize) -> Vec<Judged> {
    let mut bytes = 0;
    let of_part = |index: &usize| {
        bytes += items.length_of(*index);
        *index == start || bytes <= PART_BYTES
    };
    (start..items.len()).take(PART_ITEMS).take_while(of_part).map(|index| items.judge(index)).collect()
}

impl BulkReport {
    fn add(&mut self, outcome: &Upserted) {
        let (status, id) = match outcome {
            Ok((id, true)) => (ItemStatus::Created, *id),
            Ok((id, false)) => (ItemStatus::Updated, *id),
            Err(error) => return self.refuse(ItemError::of(error)),
        };
        match status {
            ItemStatus::Created => self.created += 1,
            _ => self.updated += 1,
        }
        let index = self.results.len();
        self.results.push(ItemReport { index, status, id: Some(id), error: None });
    }

    fn refuse(&mut self, error: ItemError) {
        self.failed += 1;
        let index = self.results.len();
        self.results.push(ItemReport { index, status: ItemStatus::Error, id: None, error: Some(error) });
    }
}
