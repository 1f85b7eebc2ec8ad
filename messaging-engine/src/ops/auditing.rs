//! The entries of operations in audit logs, which are committed with their changes.
//!
//! Contract section 24. An entry shows the resource as it was and as it is. As it was, it is read by the operation that
//! reads it, right before the recorded one runs, or told by the operation itself where none reads it
//! ([`Context::note_before`]). As it is, the answer shows it.

use http::Method;
use messaging_core::changes::Write;
use messaging_core::domain::channel::provider::MASK;
use messaging_core::domain::security::account::MemberStatus;
use messaging_core::domain::security::audit::changes::{AuditChange, Detail, between, secrets_given};
use messaging_core::domain::security::audit::{Actor, ActorKind, Resource};
use messaging_core::domain::security::secret_members::shown;
use messaging_core::ids::{Id as _, UserId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, StoreError};
use serde_json::{Map, Value};

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::audit_notes::AuditNotes;
use crate::ops::context::{Context, Request};
use crate::ops::endpoint::Endpoint;
use crate::ops::operation::Answer;
use crate::ops::recordings::{After, REFUSED_SIGN_IN, Recording};
use crate::services::auditing::{Recorded, actor_of};

/// Workspaces of a person that are told of a sign-in, at most.
const MAX_WORKSPACES: usize = 20;

/// The parameter of paths that names the workspace.
const WORKSPACE: &str = "workspace_id";

/// Members of a resource that have its id, the first that there is.
const IDS: [&str; 3] = ["id", "user_id", "import_id"];

/// Members of a resource that name it, the first that there is.
const NAMES: [&str; 6] = ["name", "domain", "email", "url", "key", "channel"];

/// A call that is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditedCall<'a> {
    /// The application.
    pub(super) app: &'a App,
    /// The operation.
    pub(super) endpoint: &'static Endpoint,
    /// Whoever calls.
    pub(super) caller: &'a Caller,
    /// The workspace that the call is about, where it is about one.
    pub(super) workspace: Option<WorkspaceId>,
    /// The request.
    pub(super) request: &'a Request<'a>,
}

/// Whoever calls.
fn actor(caller: &Caller) -> Actor {
    match caller {
        Caller::Key(key) => Actor { kind: ActorKind::Key, id: Some(key.id.to_string()), name: Some(key.name.clone()) },
        Caller::Session(session) => actor_of(&session.user),
        Caller::Operator(_) => Actor::unnamed(ActorKind::Command),
        Caller::Anonymous => Actor::unnamed(ActorKind::User),
    }
}

/// The body of an answer, if it is JSON.
pub(super) fn body_of(answer: &Answer) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

/// The writes that record an operation.
pub(super) async fn writes(
    call: &AuditedCall<'_>,
    recording: &Recording,
    notes: AuditNotes,
    answer: &Answer,
) -> Result<Vec<Write>, Error> {
    let AuditedCall { app, endpoint, caller, request, .. } = *call;
    let sent: Option<Value> = serde_json::from_slice(&request.body).ok();
    let is_removed = (endpoint.method)() == Method::DELETE;
    let after = match recording.after {
        After::Answer => body_of(answer).filter(|_| !is_removed),
        After::Body => sent.clone(),
        After::Nothing => None,
    };
    let mut changes = Vec::new();
    if recording.after != After::Nothing {
        changes = between(notes.before.as_ref(), after.as_ref(), recording.detail);
        add_secrets(&mut changes, sent.as_ref());
    }
    let actor = notes.user.as_ref().map_or_else(|| actor(caller), |(_, actor)| actor.clone());
    let created = body_of(answer).filter(|_| recording.creates);
    let state = created.as_ref().or(notes.before.as_ref()).or(after.as_ref());
    let resource = resource(recording, request, state, &actor);
    let logs = logs(call, &notes, &resource).await?;
    let recorded = Recorded {
        actor,
        operation: recording.operation.to_owned(),
        resource,
        changes,
        ip: request.client_ip,
        request_id: request.request_id.map(ToOwned::to_owned),
    };
    Ok(app.record_entry(&logs, &recorded).await?)
}

/// Adds the secrets that were sent and that no state of the resource shows.
fn add_secrets(changes: &mut Vec<AuditChange>, sent: Option<&Value>) {
    let given = sent.map(|sent| secrets_given(sent, MASK)).unwrap_or_default();
    for secret in given {
        if changes.iter().all(|change| change.pointer != secret.pointer) {
            changes.push(secret);
        }
    }
}

/// The resource of an entry: named by the path, or else by its state, and one that is created always by its state. What
/// concerns a person and names nobody concerns whoever calls.
fn resource(recording: &Recording, request: &Request<'_>, state: Option<&Value>, actor: &Actor) -> Resource {
    let kind = recording.kind.to_owned();
    let empty = Map::new();
    let members = state.and_then(Value::as_object).unwrap_or(&empty);
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let in_path = || id_in_path(&request.path_parameters, kind == "workspace");
    let in_state = || IDS.iter().find_map(|name| text(name));
    let id = if recording.creates { in_state() } else { in_path().or_else(in_state) };
    if id.is_none() && matches!(recording.kind, "user" | "member") {
        return Resource { kind, id: actor.id.clone(), name: actor.name.clone() };
    }
    let name = NAMES.iter().find_map(|name| text(name)).filter(|_| recording.detail == Detail::Values).map(shown);
    Resource { kind, id, name }
}

/// The resource that the parameters of a path name: by its id, or by all parameters but the workspace.
fn id_in_path(parameters: &[(String, String)], is_workspace: bool) -> Option<String> {
    if let Some((_, id)) = parameters.iter().find(|(name, _)| name == "id") {
        return Some(id.clone());
    }
    let named = parameters.iter().filter(|(name, _)| is_workspace || name != WORKSPACE);
    let parts: Vec<_> = named.map(|(_, value)| value.as_str()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The logs that an entry belongs to.
async fn logs(
    call: &AuditedCall<'_>,
    notes: &AuditNotes,
    resource: &Resource,
) -> Result<Vec<Option<WorkspaceId>>, StoreError> {
    let AuditedCall { app, caller, workspace, .. } = *call;
    let is_own = resource.kind == "workspace";
    let of_resource = || resource.id.as_deref().filter(|_| is_own).and_then(|id| id.parse().ok());
    let of_call = workspace.or(notes.workspace).or_else(of_resource);
    // What becomes of a workspace is known after it is gone.
    let is_for_operators = is_own || matches!(caller, Caller::Operator(_));
    match (of_call, caller) {
        (Some(workspace), _) => Ok([Some(workspace)].into_iter().chain(is_for_operators.then_some(None)).collect()),
        (None, Caller::Session(session)) if matches!(resource.kind.as_str(), "user" | "session" | "factor") => {
            of_person(app, session.user.id).await
        }
        (None, _) => match &notes.user {
            Some((user, _)) => of_person(app, *user).await,
            None => Ok(vec![None]),
        },
    }
}

/// The logs that tell of a person's sign-ins: that of the installation, and those of the workspaces that they open.
pub(super) async fn of_person(app: &App, user: UserId) -> Result<Vec<Option<WorkspaceId>>, StoreError> {
    let page = PageRequest { after: None, limit: MAX_WORKSPACES };
    let found = app.store().workspaces_of(user, MemberStatus::Active, page).await?.items;
    Ok([None].into_iter().chain(found.into_iter().map(|(workspace, _)| Some(workspace.id))).collect())
}

/// Records that a sign-in was refused. One whose email nobody has takes the same way, so that the time does not tell.
pub(super) async fn record_refused_sign_in(cx: &Context<'_>, email: &str) -> Result<(), Error> {
    let user = cx.store().user_by_email(email).await?.map(|stored| stored.record);
    let logs = of_person(cx.app, user.as_ref().map_or(UserId::from_bytes([0; 16]), |user| user.id)).await?;
    // A password may have been typed in the place of the email, so what nobody has is not kept.
    let actor = user.as_ref().map_or(Actor::unnamed(ActorKind::User), actor_of);
    let recorded = Recorded {
        operation: REFUSED_SIGN_IN.to_owned(),
        resource: Resource { kind: "user".to_owned(), id: actor.id.clone(), name: actor.name.clone() },
        actor,
        changes: Vec::new(),
        ip: cx.client_ip,
        request_id: cx.request_id.map(ToOwned::to_owned),
    };
    let writes = cx.app.record_entry(&logs, &recorded).await?;
    cx.app.commit(writes.into_iter().collect()).await.map_err(|error| error.into_store_error().into())
}
