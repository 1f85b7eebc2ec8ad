//! The trait of API operations: router, documents, client and commands are derived from its implementations.

use std::future::Future;

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::input::Input;
use messaging_core::scope::Access;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::session_cookie::SessionCookie;

/// Longest body in bytes unless the operation sets another limit (contract section 1.1).
pub const BODY_LIMIT: usize = 10 << 20;

/// Longest body in bytes where no credentials are needed (contract section 1.3, check 8).
pub const PUBLIC_BODY_LIMIT: usize = 16 << 10;

/// One operation of the API contract.
///
/// Adding an operation: a type like this one with its facts, `run`, a line in
/// [`all`](crate::ops::all), its tests. The router, the access check, the body cap, the OpenAPI
/// document, the typed client, the command and the access-matrix test follow by themselves.
pub trait Operation: Sized + Send + Sync + 'static {
    /// The name in the OpenAPI document.
    const ID: &'static str;
    /// The HTTP method.
    const METHOD: Method;
    /// The path below the version prefix, parameters in braces.
    const PATH: &'static str;
    /// Credentials and rights that the caller needs.
    const ACCESS: Access;
    /// The status of success.
    const SUCCESS: StatusCode;
    /// The words of the command, `template create`.
    const CLI: &'static str;
    /// One sentence for the OpenAPI document and the command's help.
    const SUMMARY: &'static str;
    /// The longest body in bytes; without credentials at most [`PUBLIC_BODY_LIMIT`].
    const BODY_LIMIT: usize = BODY_LIMIT;

    /// True if `run` looks up what the body names and adds what it does not find to `cx.violations`. Such an operation
    /// also runs on a body with faults, without its broken members, so that all faults are reported at once; nothing of
    /// that run is kept.
    const LOOKS_UP: bool = false;

    /// True if the answer holds a secret that is shown once, or a contact that may be erased: while it is remembered
    /// for an Idempotency-Key, it is sealed.
    const ANSWERS_SECRET: bool = false;

    /// True if `run` commits parts of its work itself, so that a long list does not hold up others. An earlier answer
    /// to the same Idempotency-Key is then looked for before it runs, not after, and each part remembers its own
    /// result; see `ops/parts.rs`.
    const IN_PARTS: bool = false;

    /// True if a workspace under deletion accepts the operation although it changes something there. Operations that
    /// only read are accepted anyway ([`Endpoint::only_reads`](crate::ops::Endpoint::only_reads)).
    const UNTIL_THE_END: bool = false;

    /// The parameters of the path, by name.
    type Path: Serialize + DeserializeOwned + JsonSchema + Clone + Send + 'static;
    /// The query.
    type Query: Input + Default;
    /// The body.
    type Body: Input;
    /// The answer.
    type Output: Output;

    /// Returns the resources that the call changes and others may change at the same moment; such calls run one after
    /// another. By default the resource that the path names. Not called where the method is GET.
    fn serialized_resources(path: &str, _call: &Call<Self>) -> Vec<ResourceKey> {
        ResourceKey::of_path(Self::PATH, path).into_iter().collect()
    }

    /// Reads, decides, and collects the changes in `cx.changes`; the caller commits.
    ///
    /// Runs again from the start when the data changed meanwhile, so it must have no other effect.
    fn run(cx: &mut Context<'_>, call: Call<Self>) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// Checked input of a call to an operation.
pub struct Call<O: Operation> {
    /// The parameters of the path.
    pub path: O::Path,
    /// The query.
    pub query: O::Query,
    /// The body.
    pub body: O::Body,
}

impl<O: Operation> Clone for Call<O> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), query: self.query.clone(), body: self.body.clone() }
    }
}

/// The path of an operation on a workspace.
#[derive(Debug, Clone, Copy, Serialize, serde::Deserialize, JsonSchema)]
pub struct InWorkspace {
    /// The workspace.
    pub workspace_id: messaging_core::ids::WorkspaceId,
}

/// An answer ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, 2xx.
    pub status: StatusCode,
    /// The media type of the body; `None` when there is no body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: Bytes,
    /// True if this repeats the answer to an earlier request with the same Idempotency-Key.
    pub replayed: bool,
    /// Instruction to the browser about the cookie of its session, if any.
    pub session_cookie: Option<SessionCookie>,
}

impl Answer {
    /// An answer without a body.
    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self { status, content_type: None, body: Bytes::new(), replayed: false, session_cookie: None }
    }
}

/// The media type of JSON answers (contract section 1.1).
pub const JSON: &str = "application/json; charset=utf-8";

/// Result type of an operation. Every serialisable type with a schema is one, as JSON.
pub trait Output: Sized + Send + 'static {
    /// Kind of the answer, for the OpenAPI document and the client.
    const KIND: OutputKind;

    /// Status that the answer may have instead of the operation's own.
    const OTHER_SUCCESS: Option<StatusCode> = None;

    /// JSON Schema of the answer, if it is JSON.
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;

    /// Makes the answer.
    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error>;

    /// Parses the body of an answer, for the typed client.
    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error>;
}

/// The kinds of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// JSON.
    Json,
    /// 204 without a body.
    NoContent,
    /// Bytes of one of these media types, depending on the resource.
    Document(&'static [&'static str]),
}

impl<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static> Output for T {
    const KIND: OutputKind = OutputKind::Json;

    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        let body = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(Answer { body: body.into(), content_type: Some(JSON), ..Answer::empty(success) })
    }

    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

/// Answer without content: status 204.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoContent;

impl Output for NoContent {
    const KIND: OutputKind = OutputKind::NoContent;

    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        Ok(Answer::empty(success))
    }

    fn from_body(_: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self)
    }
}

/// Record that was created (status 201), or that existed and is returned in its current state (status 200).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upserted<T> {
    /// True if the record is new; `None` when read back from a body, which does not say.
    pub created: Option<bool>,
    /// The record.
    pub record: T,
}

impl<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static> Output for Upserted<T> {
    const KIND: OutputKind = OutputKind::Json;
    const OTHER_SUCCESS: Option<StatusCode> = Some(StatusCode::OK);

    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        <T as Output>::schema(generator)
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        let status = if self.created == Some(false) { StatusCode::OK } else { success };
        self.record.to_answer(status)
    }

    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        T::from_body(body).map(|record| Self { created: None, record })
    }
}
