//! Lists of contacts and their members.
//!
//! Contract sections 7 and 23.

mod members;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::list::{ContactList, MAX_PUBLIC, OptIn, Visibility};
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::limits::MAX_NAME;
use messaging_core::ids::{ListId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::patch::{Patch, Replace};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;
use crate::ops::uses;

pub use self::members::{
    AddListContacts, ListListContacts, ListMemberQuery, ListMemberView, MembersInput, MembersReport, MembershipView,
    ProofView, RemoveListContact,
};

/// Characters of the text for readers.
const MAX_DESCRIPTION: u64 = 500;

/// A list as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "List")]
#[non_exhaustive]
pub struct ListView {
    /// Its id.
    pub id: ListId,
    /// Its name.
    pub name: String,
    /// Visibility for its readers: `private` or `public`.
    pub visibility: Visibility,
    /// Opt-in of new subscribers: members at once (`single`), or after following a link in a mail (`double`).
    pub opt_in: OptIn,
    /// Text for its readers.
    pub description: Option<String>,
    /// Number of confirmed members.
    pub contact_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or settings last changed.
    pub updated_at: Timestamp,
}

impl ListView {
    fn of(list: ContactList) -> Self {
        let ContactList {
            id,
            workspace_id: _,
            name,
            visibility,
            opt_in,
            description,
            contact_count,
            created_at,
            updated_at,
        } = list;
        Self { id, name, visibility, opt_in, description, contact_count, created_at, updated_at }
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
    /// `public` for a list that faces its readers; `private` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// `double` asks who subscribes to follow a link in a mail; `single` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_in: Option<OptIn>,
    /// Text for its readers, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(max = MAX_DESCRIPTION))]
    pub description: Option<String>,
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
        let visibility = call.body.visibility.unwrap_or_default();
        if visibility == Visibility::Public {
            leave_room(cx, workspace).await?;
        }
        let list = ContactList {
            id: cx.new_id(),
            workspace_id: workspace,
            name: call.body.name,
            visibility,
            opt_in: call.body.opt_in.unwrap_or_default(),
            description: call.body.description.filter(|text| !text.is_empty()),
            contact_count: 0,
            created_at: cx.now,
            updated_at: cx.now,
        };
        cx.change(Write::put(list.clone(), Expect::Absent));
        Ok(ListView::of(list))
    }
}

/// Refuses a public list beyond the number that a workspace may have.
async fn leave_room(cx: &Context<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    if cx.store().public_lists(workspace, MAX_PUBLIC).await?.len() < MAX_PUBLIC {
        return Ok(());
    }
    let message = format_args!("a workspace has at most {MAX_PUBLIC} public lists");
    Err(refuse("/visibility", FieldCode::TooManyItems, message).into())
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
    /// Visibility for its readers. The records of a list that becomes private are kept, and count when it is public
    /// again.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub visibility: Replace<Visibility>,
    /// Opt-in of new subscribers: members at once (`single`), or after following a link in a mail (`double`).
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub opt_in: Replace<OptIn>,
    /// Text for its readers, at most 500 characters; null for none.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_DESCRIPTION))]
    pub description: Patch<String>,
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
    const SUMMARY: &'static str = "Rename a list, or change how it faces its readers";
    // So that an unknown list is 404 before a broken name is 422.
    const LOOKS_UP: bool = true;
    type Path = ListPath;
    type Query = Empty;
    type Body = ListPatch;
    type Output = ListView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ListView, Error> {
        let stored = cx.store().list(call.path.workspace_id, call.path.id).await?.ok_or(Error::NotFound)?;
        let mut list = stored.record.clone();
        let ListPatch { name, visibility, opt_in, description } = call.body;
        list.name = name.value().unwrap_or(list.name);
        list.visibility = visibility.value().unwrap_or(list.visibility);
        list.opt_in = opt_in.value().unwrap_or(list.opt_in);
        description.apply(&mut list.description);
        list.description = list.description.filter(|text| !text.is_empty());
        if list.is_public() && !stored.record.is_public() {
            leave_room(cx, call.path.workspace_id).await?;
        }
        if list != stored.record {
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
