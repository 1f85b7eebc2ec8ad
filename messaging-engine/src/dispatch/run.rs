//! Builder of a call with typed values.

use std::future::Future;
use std::marker::PhantomData;

use messaging_core::ids::WorkspaceId;
use messaging_core::input::Empty;

use super::no_workspace;
use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::{Call, InWorkspace, Operation};

/// A call of `O` by way of `T`, an [`App`] or a client of a server. A call without an input that the operation needs
/// does not compile, except for the workspace, which may follow from the caller.
#[derive(Debug, Clone)]
#[must_use = "nothing is done before the call is finished"]
pub struct Run<T, O: Operation, P = Unset, B = Unset> {
    via: T,
    path: P,
    query: O::Query,
    body: B,
    workspace: Option<WorkspaceId>,
    idempotency_key: Option<String>,
    operation: PhantomData<fn() -> O>,
}

/// Type state of a path or body that was not given.
#[derive(Debug, Clone, Copy)]
pub struct Unset;

/// Type state of a path or body that was given, with its value.
#[derive(Debug, Clone, Copy)]
pub struct Set<T>(T);

/// A path that follows from the workspace alone, or has no parameters.
pub trait WorkspacePath: Sized {
    /// Returns the path; `None` if it needs a workspace and there is none.
    fn in_workspace(workspace: Option<WorkspaceId>) -> Option<Self>;
}

impl WorkspacePath for Empty {
    fn in_workspace(_: Option<WorkspaceId>) -> Option<Self> {
        Some(Self {})
    }
}

impl WorkspacePath for InWorkspace {
    fn in_workspace(workspace: Option<WorkspaceId>) -> Option<Self> {
        workspace.map(|workspace_id| Self { workspace_id })
    }
}

/// Source of the path of a call: given, or made from the workspace.
pub trait PathPart<T> {
    /// Returns the path; `None` if it needs a workspace and there is none.
    fn path(self, workspace: Option<WorkspaceId>) -> Option<T>;
}

impl<T: WorkspacePath> PathPart<T> for Unset {
    fn path(self, workspace: Option<WorkspaceId>) -> Option<T> {
        T::in_workspace(workspace)
    }
}

impl<T> PathPart<T> for Set<T> {
    fn path(self, _: Option<WorkspaceId>) -> Option<T> {
        Some(self.0)
    }
}

/// Source of the body of a call: given, or empty.
pub trait BodyPart<T> {
    /// The body.
    fn body(self) -> T;
}

impl<T: Default> BodyPart<T> for Unset {
    fn body(self) -> T {
        T::default()
    }
}

impl<T> BodyPart<T> for Set<T> {
    fn body(self) -> T {
        self.0
    }
}

/// A complete call.
pub struct Prepared<O: Operation> {
    /// The input.
    pub call: Call<O>,
    /// Workspace that was named.
    pub workspace: Option<WorkspaceId>,
    /// The Idempotency-Key.
    pub idempotency_key: Option<String>,
}

/// Client that runs calls elsewhere, and has its own credentials.
pub trait Remote {
    /// Error that a failed call ends with.
    type Error;

    /// Runs a call.
    fn carry_out<O: Operation>(
        &self,
        prepared: Prepared<O>,
    ) -> impl Future<Output = Result<O::Output, Self::Error>> + Send;

    /// Returns the error of a call that names no workspace and needs one.
    fn no_workspace() -> Self::Error;
}

impl<T, O: Operation> Run<T, O> {
    /// Begins a call by way of `via`.
    pub fn new(via: T) -> Self {
        Self {
            via,
            path: Unset,
            query: O::Query::default(),
            body: Unset,
            workspace: None,
            idempotency_key: None,
            operation: PhantomData,
        }
    }
}

impl<T, O: Operation, P, B> Run<T, O, P, B> {
    /// Sets the workspace that the call is about. If the caller belongs to another one, the call is refused.
    pub fn workspace(self, workspace: WorkspaceId) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Sets the parameters of the path, if it has others than the workspace.
    pub fn path(self, path: O::Path) -> Run<T, O, Set<O::Path>, B> {
        let Self { via, path: _, query, body, workspace, idempotency_key, operation } = self;
        Run { via, path: Set(path), query, body, workspace, idempotency_key, operation }
    }

    /// Sets the query.
    pub fn query(self, query: O::Query) -> Self {
        Self { query, ..self }
    }

    /// Sets the body.
    pub fn body(self, body: O::Body) -> Run<T, O, P, Set<O::Body>> {
        let Self { via, path, query, body: _, workspace, idempotency_key, operation } = self;
        Run { via, path, query, body: Set(body), workspace, idempotency_key, operation }
    }

    /// Runs the call once: a repetition with the same key, 1 to 64 visible ASCII characters, within 24 hours gets the
    /// answer of the first call; one with another input is refused. Ignored by operations that only read.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// Completes the call, in a workspace of the caller's unless one was named.
    fn prepare(self, of_caller: Option<WorkspaceId>) -> Option<(T, Prepared<O>)>
    where
        P: PathPart<O::Path>,
        B: BodyPart<O::Body>,
    {
        let Self { via, path, query, body, workspace, idempotency_key, operation: _ } = self;
        let call = Call { path: path.path(workspace.or(of_caller))?, query, body: body.body() };
        Some((via, Prepared { call, workspace, idempotency_key }))
    }
}

impl<'a, O: Operation, P: PathPart<O::Path>, B: BodyPart<O::Body>> Run<&'a App, O, P, B> {
    /// Runs the call for a caller.
    pub fn by(self, caller: &'a Caller) -> impl Future<Output = Result<O::Output, Error>> + Send + use<'a, O, P, B> {
        let prepared = self.prepare(caller.workspace());
        async move {
            let (app, prepared) = prepared.ok_or_else(no_workspace)?;
            app.run_prepared(caller, prepared).await
        }
    }
}

impl<R: Remote, O: Operation, P: PathPart<O::Path>, B: BodyPart<O::Body>> Run<&R, O, P, B> {
    /// Runs the call.
    pub async fn send(self) -> Result<O::Output, R::Error> {
        let (via, prepared) = self.prepare(None).ok_or_else(R::no_workspace)?;
        via.carry_out(prepared).await
    }
}
