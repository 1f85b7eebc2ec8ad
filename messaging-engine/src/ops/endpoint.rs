//! An operation with its types erased: a row of plain data and function pointers.

use http::{Method, StatusCode};
use messaging_core::input::{BodyKind, Input};
use messaging_core::scope::Access;
use schemars::{Schema, SchemaGenerator};

use crate::error::Error;
use crate::ops::operation::{Operation, Output, OutputKind, PUBLIC_BODY_LIMIT};
use crate::ops::runnable::{self, Encoded, Runnable};

/// Suffix of the names of read-only scopes.
const READING: &str = ":read";

/// The facts of an operation for the front ends, the OpenAPI document and the tests.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// [`Operation::ID`]
    pub id: &'static str,
    /// [`Operation::METHOD`], by reference because `Method` is not `Copy`.
    pub method: fn() -> Method,
    /// [`Operation::PATH`]
    pub path: &'static str,
    /// [`Operation::ACCESS`]
    pub access: Access,
    /// [`Operation::SUCCESS`]
    pub success: StatusCode,
    /// [`Output::OTHER_SUCCESS`]
    pub other_success: Option<StatusCode>,
    /// [`Operation::CLI`]
    pub cli: &'static str,
    /// [`Operation::SUMMARY`]
    pub summary: &'static str,
    /// [`Operation::BODY_LIMIT`]
    pub body_limit: usize,
    /// Kind of body that the operation reads: none, an optional or a required one.
    pub body: BodyKind,
    /// Kind of the answer.
    pub output: OutputKind,
    /// Schema of the path's parameters: an object with one property each.
    pub path_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the query: an object with one property each.
    pub query_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the body.
    pub body_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of a JSON answer.
    pub output_schema: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// Parses a body as the operation does, without running it.
    pub check_body: fn(&[u8]) -> Result<(), Error>,
    /// [`Operation::ANSWERS_SECRET`]
    pub(crate) answers_secret: bool,
    /// [`Operation::IN_PARTS`]
    pub(crate) in_parts: bool,
    /// [`Operation::UNTIL_THE_END`]
    pub(crate) until_the_end: bool,
    /// Begins a call, which is not decoded yet.
    pub(crate) begin: fn() -> Box<dyn Runnable>,
}

impl Endpoint {
    /// Returns the row of an operation.
    pub const fn of<O: Operation>() -> Self {
        Self {
            id: O::ID,
            method: || O::METHOD,
            path: O::PATH,
            access: O::ACCESS,
            success: O::SUCCESS,
            other_success: <O::Output as Output>::OTHER_SUCCESS,
            cli: O::CLI,
            summary: O::SUMMARY,
            body_limit: body_limit(O::ACCESS, O::BODY_LIMIT),
            body: <O::Body as Input>::BODY,
            output: <O::Output as Output>::KIND,
            path_schema: |generator| generator.root_schema_for::<O::Path>(),
            query_schema: |generator| generator.root_schema_for::<O::Query>(),
            body_schema: |generator| generator.subschema_for::<O::Body>(),
            output_schema: <O::Output as Output>::schema,
            check_body: runnable::check_body::<O>,
            answers_secret: O::ANSWERS_SECRET,
            in_parts: O::IN_PARTS,
            until_the_end: O::UNTIL_THE_END,
            begin: Encoded::<O>::erased,
        }
    }

    /// Returns the row of an operation for the lifetime of the process.
    pub const fn row<O: Operation>() -> &'static Self {
        const { &Self::of::<O>() }
    }

    /// Returns true if the operation changes nothing of a workspace, by its method or the scope that it requires.
    pub fn only_reads(&self) -> bool {
        (self.method)() == Method::GET
            || matches!(self.access, Access::Scope(scope) if scope.as_str().ends_with(READING))
    }

    /// Returns true if the path names its workspace.
    pub fn is_in_workspace(&self) -> bool {
        self.path.starts_with("/workspaces/{workspace_id}")
    }
}

/// Returns the length limit of an operation's body; it is small if everybody may call the operation.
const fn body_limit(access: Access, own: usize) -> usize {
    match access {
        Access::Public if own > PUBLIC_BODY_LIMIT => PUBLIC_BODY_LIMIT,
        _ => own,
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.id, (self.method)(), self.path)
    }
}
