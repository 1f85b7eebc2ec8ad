//! The one way to run an operation: [`App::admit`], then [`Admitted::run`]. The HTTP server, the command line on a
//! database, [`App::run`] and the tests all use it.

mod inbound;
mod run;

use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{BodyKind, Input};
use messaging_core::scope::Access;
use messaging_core::violation::{FieldCode, Violations};

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::invoke::{Invocation, invoke};
use crate::ops::messages::batch::SendAllMessages;
use crate::ops::messages::{AcceptedMessage, SendMessage};
use crate::ops::runnable::{Runnable, Typed};
use crate::ops::{self, Answer, Endpoint, Operation, Output as _, Request};

pub use run::{BodyPart, PathPart, Prepared, Remote, Run, Set, Unset, WorkspacePath};

/// The path parameter that names the workspace.
const WORKSPACE: &str = "workspace_id";

/// A caller who may run an operation, and the workspace: the proof that checks 5 to 7 were made.
#[derive(Debug, Clone)]
pub struct Admitted<'a> {
    app: &'a App,
    endpoint: &'static Endpoint,
    caller: Caller,
    workspace: Option<WorkspaceId>,
}

impl App {
    /// Checks whether a caller may run an operation, and in which workspace. `path` holds the parameters of the path,
    /// `in_header` is the value of `X-Workspace-Id`.
    pub async fn admit(
        &self,
        caller: Caller,
        endpoint: &'static Endpoint,
        path: &[(String, String)],
        in_header: Option<&str>,
    ) -> Result<Admitted<'_>, Error> {
        let in_path = if endpoint.is_in_workspace() { parameter(path, WORKSPACE) } else { None };
        let (caller, workspace) = self.admit_caller(caller, endpoint.access, in_path, in_header).await?;
        let admitted = Admitted { app: self, endpoint, caller, workspace };
        admitted.refuse_at_the_end().await?;
        Ok(admitted)
    }

    /// Begins a call of an operation, to be finished by [`Run::by`]:
    ///
    /// ```
    /// # use messaging_engine::ops::lists::{CreateList, ListInput, ListView};
    /// # use messaging_engine::{App, Caller, Error};
    /// # use messaging_core::ids::WorkspaceId;
    /// # async fn example(app: &App, id: WorkspaceId, caller: &Caller) -> Result<ListView, Error> {
    /// app.run(CreateList).body(ListInput::new("Customers")).workspace(id).idempotency_key("list-1").by(caller).await
    /// # }
    /// ```
    pub fn run<O: Operation>(&self, _: O) -> Run<&Self, O> {
        Run::new(self)
    }

    /// Accepts a message. It is on disk when this returns, and is sent by the workers.
    ///
    /// ```
    /// # use messaging_engine::{App, Caller, Error, Message};
    /// # async fn example(app: &App, caller: &Caller) -> Result<(), Error> {
    /// app.send(Message::email("ann@example.com").subject("Hi").text("Hello, Ann."), caller).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, message: MessageInput, caller: &Caller) -> Result<AcceptedMessage, Error> {
        self.run(SendMessage).body(message).by(caller).await
    }

    /// Like `send`, but once for each Idempotency-Key, if there is one: see [`Run::idempotency_key`].
    pub async fn send_once(
        &self,
        message: MessageInput,
        idempotency_key: Option<String>,
        caller: &Caller,
    ) -> Result<AcceptedMessage, Error> {
        let run = self.run(SendMessage).body(message);
        match idempotency_key {
            Some(key) => run.idempotency_key(key).by(caller).await,
            None => run.by(caller).await,
        }
    }

    /// Runs a call with typed values.
    async fn run_prepared<O: Operation>(&self, caller: &Caller, prepared: Prepared<O>) -> Result<O::Output, Error> {
        let Prepared { call, workspace, idempotency_key } = prepared;
        let path = ops::parameters(&call.path).map_err(Error::internal)?;
        let query = ops::parameters(&call.query).map_err(Error::internal)?;
        let body = match idempotency_key {
            Some(_) if <O::Body as Input>::BODY != BodyKind::None => match call.body.as_file() {
                Some(file) => file.bytes.to_vec(),
                None => serde_json::to_vec(&call.body).map_err(Error::internal)?,
            },
            _ => Vec::new(),
        };
        let mut typed = Typed::new(call);
        let request = Request {
            path: &ops::fill_path(O::PATH, &path),
            path_parameters: path,
            query: &ops::query_string(&query),
            body: body.into(),
            idempotency_key: idempotency_key.as_deref().map(str::as_bytes),
            ..Request::default()
        };
        match self.run_values(Endpoint::row::<O>(), caller.clone(), workspace, &request, &mut typed).await? {
            Some(answer) if answer.replayed => O::Output::from_body(&answer.body).map_err(Error::internal),
            _ => typed.into_output().ok_or_else(|| Error::internal("the operation answered nothing")),
        }
    }

    /// Admits a call with typed values to the workspace that it names, and runs it.
    async fn run_values(
        &self,
        endpoint: &'static Endpoint,
        caller: Caller,
        named: Option<WorkspaceId>,
        request: &Request<'_>,
        runnable: &mut dyn Runnable,
    ) -> Result<Option<Answer>, Error> {
        let in_header = named.map(|id| id.to_string());
        let admitted = self.admit(caller, endpoint, &request.path_parameters, in_header.as_deref()).await?;
        match (admitted.workspace, named) {
            // A key belongs to one workspace; naming another one is a mistake.
            (Some(workspace), Some(named)) if workspace != named => Err(Error::WorkspaceForbidden),
            (None, _) if matches!(endpoint.access, Access::Scope(_) | Access::Scopes(..)) => Err(no_workspace()),
            _ => {
                self.note_operation(&admitted.caller, endpoint.id, request.client_ip);
                invoke(&admitted.invocation(request, true), runnable).await
            }
        }
    }
}

impl Admitted<'_> {
    /// Caller; a session has its role in the workspace.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Workspace that the call is about, if any.
    pub fn workspace(&self) -> Option<WorkspaceId> {
        self.workspace
    }

    /// Decodes, runs and commits; again when the data changed meanwhile.
    pub async fn run(&self, request: Request<'_>) -> Result<Answer, Error> {
        // Checked again, because receiving the body may have taken a while.
        self.refuse_at_the_end().await?;
        self.app.note_operation(&self.caller, self.endpoint.id, request.client_ip);
        let mut runnable = (self.endpoint.begin)();
        let answer = invoke(&self.invocation(&request, false), runnable.as_mut()).await?;
        answer.ok_or_else(|| Error::internal("the operation answered nothing"))
    }

    /// Refuses an operation that the workspace does not accept because it is under deletion.
    async fn refuse_at_the_end(&self) -> Result<(), Error> {
        match self.workspace {
            Some(workspace) if !self.endpoint.until_the_end => {
                self.app.refuse_at_the_end(workspace, self.endpoint.only_reads()).await
            }
            _ => Ok(()),
        }
    }

    fn invocation<'b>(&'b self, request: &'b Request<'b>, typed: bool) -> Invocation<'b> {
        let Self { app, endpoint, ref caller, workspace } = *self;
        Invocation { app, endpoint, caller, workspace, request, typed, find, access_of }
    }
}

/// Returns the operation with an id.
fn find(id: &str) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| endpoint.id == id)
}

/// Returns the access that an operation requires, by its id; also of the one that is in no list.
fn access_of(id: &str) -> Option<Access> {
    let of_drop_in = (id == SendAllMessages::ID).then_some(SendAllMessages::ACCESS);
    of_drop_in.or_else(|| find(id).map(|endpoint| endpoint.access))
}

fn parameter<'a>(path: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    path.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// Returns the error that the call names no workspace.
fn no_workspace() -> Error {
    let mut violations = Violations::new();
    let rule = "no workspace is named: give one with `workspace(id)`, or a caller that belongs to one";
    violations.add_parameter(WORKSPACE, FieldCode::Required, rule);
    Error::Validation(violations)
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::security::api_key::usage;

    use super::*;

    #[test]
    fn the_operations_that_rules_of_scopes_name_are_known() {
        for operation in usage::named_operations() {
            assert!(access_of(operation).is_some(), "{operation} is no operation");
        }
    }
}
