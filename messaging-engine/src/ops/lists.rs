//! Lists of contacts and their members.
//!
//! Contract section 7.

use std::collections::HashMap;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::contact::ContactFilter;
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::limits::{MAX_BULK, MAX_NAME};
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::Replace;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::contacts::{self, ContactView};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::uses;

/// A list as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "List")]
#[non_exhaustive]
pub struct ListView {
    /// Its id.
    pub id: ListId,
    /// Its name.
    pub name: String,
    /// Number of contacts on the list.
    pub contact_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name last changed.
    pub updated_at: Timestamp,
}

impl ListView {
    fn of(list: ContactList) -> Self {
        let ContactList { id, workspace_id: _, name, contact_count, created_at, updated_at } = list;
        Self { id, name, contact_count, created_at, updated_at }
    }
}

/// `GET /workspaces/{workspace_id}/lists`
pub struct ListLists;

impl Operation for ListLists {
    const ID: &'static str = "listLists";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "list list";
    const SUMMARY: &'static str = "List the contact lists, newest first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ListView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ListView>, Error> {
        let slice = cx.store().lists(call.path.workspace_id, cx.page(&call.query)?).await?;
        Ok(cx.answer_page(slice, ListView::of))
    }
}

/// A new list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ListInput {
    /// 1 to 200 characters; several lists may have one name.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
}

impl Input for ListInput {}

/// `POST /workspaces/{workspace_id}/lists`
pub struct CreateList;

impl Operation for CreateList {
    const ID: &'static str = "createList";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::CREATED;
    const CLI: &'static str = "list create";
    const SUMMARY: &'static str = "Create a list of contacts";
    type Path = InWorkspace;
    type Query = Empty;
    type Body = ListInput;
    type Output = ListView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ListView, Error> {
        // The operator can name any workspace, also one that is not there.
        let workspace = cx.app.workspace(call.path.workspace_id).await?.ok_or(Error::NotFound)?.id;
        let list = ContactList {
            id: cx.new_id(),
            workspace_id: workspace,
            name: call.body.name,
            contact_count: 0,
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.change(Write::put(list.clone(), Expect::Absent));
        Ok(ListView::of(list))
    }
}

/// The path of an operation on a list.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ListPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The list.
    pub id: ListId,
}

/// `GET /workspaces/{workspace_id}/lists/{id}`
pub struct GetList;

impl Operation for GetList {
    const ID: &'static str = "getList";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "list get";
    const SUMMARY: &'static str = "Show a list";
    type Path = ListPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ListView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ListView, Error> {
        let stored = cx.store().list(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        Ok(ListView::of(stored.record))
    }
}

/// A change of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ListPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
}

impl Input for ListPatch {}

/// `PATCH /workspaces/{workspace_id}/lists/{id}`
pub struct UpdateList;

impl Operation for UpdateList {
    const ID: &'static str = "updateList";
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "list update";
    const SUMMARY: &'static str = "Rename a list";
    // So that an unknown list is 404 before a broken name is 422.
    const LOOKS_UP: bool = true;
    type Path = ListPath;
    type Query = Empty;
    type Body = ListPatch;
    type Output = ListView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ListView, Error> {
        let stored = cx.store().list(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        let mut list = stored.record;
        if let Some(name) = call.body.name.value().filter(|name| *name != list.name) {
            list.name = name;
            list.updated_at = cx.now;
            cx.change(Write::put(list.clone(), Expect::Revision(stored.revision)));
        }
        Ok(ListView::of(list))
    }
}

/// `DELETE /workspaces/{workspace_id}/lists/{id}`
pub struct DeleteList;

impl Operation for DeleteList {
    const ID: &'static str = "deleteList";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/lists/{id}";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "list delete";
    const SUMMARY: &'static str = "Delete a list; its contacts stay";
    type Path = ListPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let ListPath { workspace_id, id } = call.path;
        cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?;
        uses::refuse_used(cx, workspace_id, Reference::List(id), Vec::new()).await?;
        cx.change(Write::Delete(DocumentKey::List(workspace_id, id)));
        Ok(NoContent)
    }
}

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
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ContactView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ContactView>, Error> {
        let ListPath { workspace_id, id } = call.path;
        cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let filter = ContactFilter { list_id: Some(id), ..ContactFilter::default() };
        contacts::page(cx, workspace_id, &filter, &call.query).await
    }
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
}

impl Input for MembersInput {}

/// What adding contacts to a list did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[schemars(rename = "ListMembersReport")]
pub struct MembersReport {
    /// How many are new on the list.
    pub added: usize,
    /// How many were on it already, or named twice.
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
        cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let named: Vec<Option<ContactId>> = call.body.contact_ids.iter().map(|text| text.parse().ok()).collect();
        let ids: Vec<_> = named.iter().flatten().copied().collect();
        let mut members: HashMap<_, _> = cx.store().memberships(workspace_id, id, &ids).await?.into_iter().collect();
        let mut report = MembersReport { added: 0, already_member: 0 };
        for (index, contact) in named.into_iter().enumerate() {
            match contact.and_then(|contact| members.get_mut(&contact).map(|is_member| (contact, is_member))) {
                None => {
                    let rule = "no such contact in this workspace";
                    cx.violations.add(format!("/contact_ids/{index}"), FieldCode::NotFound, rule);
                }
                Some((_, is_member)) if *is_member => report.already_member += 1,
                Some((contact, is_member)) => {
                    *is_member = true;
                    report.added += 1;
                    cx.change(Write::JoinList(workspace_id, id, contact, cx.now));
                }
            }
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
        cx.store().list(workspace_id, id).await?.ok_or(Error::NotFound)?;
        let found = cx.store().memberships(workspace_id, id, &[contact_id]).await?;
        let (_, is_member) = found.first().ok_or(Error::NotFound)?;
        if *is_member {
            cx.change(Write::LeaveList(workspace_id, id, contact_id, cx.now));
        }
        Ok(NoContent)
    }
}
