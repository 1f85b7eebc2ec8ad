//! An operation with its types erased: a row of plain data and function pointers.

use http::{Method, StatusCode};
use messaging_core::input::{BodyKind, Input};
use messaging_core::scope::Access;
use schemars::{Schema, SchemaGenerator};

use crate::error::Error;
use crate::ops::operation::{Operation, Output, OutputKind, PUBLIC_BODY_LIMIT};
use crate::ops::runnable::{self, Encoded, Runnable};

/// How the names of scopes end that let nothing be changed.
const READING: &str = ":read";

/// Everything the front ends, the document and the tests know of an operation.
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
    /// What kind of answer it gives.
    pub output: OutputKind,
    /// The schema of the path's parameters: an object with one property each.
    pub path_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the query: an object with one property each.
    pub query_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the body.
    pub body_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of a JSON answer.
    pub output_schema: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// Reads a body as the operation does, and does nothing.
    pub check_body: fn(&[u8]) -> Result<(), Error>,
    /// [`Operation::ANSWERS_SECRET`]
    pub(crate) answers_secret: bool,
    /// [`Operation::IN_PARTS`]
    pub(crate) in_parts: bool,
    /// [`Operation::UNTIL_THE_END`]
    pub(crate) until_the_end: bool,
    /// A new call, not decoded yet.
    pub(crate) begin: fn() -> Box<dyn Runnable>,
}

impl Endpoint {
    /// The row of an operation.
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

    /// The row of an operation, to be kept.
    pub const fn row<O: Operation>() -> &'static Self {
        const { &Self::of::<O>() }
    }

    /// Whether it changes nothing of a workspace: its method says so, or the scope that it asks for.
    pub fn only_reads(&self) -> bool {
        (self.method)() == Method::GET
            || matches!(self.access, Access::Scope(scope) if scope.as_str().ends_with(READING))
    }

    /// Whether the path names its workspace.
    pub fn is_in_workspace(&self) -> bool {
        self.path.starts_with("/workspaces/{workspace_id}")
    }
}

/// The longest body of an operation: one that everybody may call takes little.
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
