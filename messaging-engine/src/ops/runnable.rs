//! The steps of a call that differ between operations, with their types erased. All other steps are in `invoke`, once
//! for all operations.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use messaging_core::DomainError;
use messaging_core::input::{self, BodyKind, Input, UnknownMembers};
use messaging_core::violation::Violations;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as ValueError, MapDeserializer};
use serde_json::Value;

use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::{Context, Request};
use crate::ops::operation::{Answer, Call, Operation, Output};

/// Parses a body as one operation does, ignoring unknown members or not; for [`Runnable::give_body`].
pub(crate) type BodyReader = fn(&[u8], bool) -> Box<dyn Any + Send>;

/// One call of one operation. Its methods are called in this order, all of them again when the data changed meanwhile.
pub(crate) trait Runnable: Send {
    /// Returns the function that can parse the body on another thread before the input is decoded; `None` if there are
    /// no bytes to parse.
    fn body_reader(&self) -> Option<BodyReader>;

    /// Takes the parsed body.
    fn give_body(&mut self, read: Box<dyn Any + Send>);

    /// Decodes the input. Returns the violations if the operation runs in spite of them.
    fn decode(&mut self, request: &Request<'_>) -> Result<Violations, Error>;

    /// Returns the resources that the call writes, on which calls take turns; see [`Operation::serialized_resources`].
    fn serialized_resources(&self, path: &str) -> Vec<ResourceKey>;

    /// Runs the operation on the input and keeps its output.
    fn run<'a>(&'a mut self, cx: &'a mut Context<'_>) -> BoxFuture<'a, Result<(), Error>>;

    /// Encodes the output of the operation.
    fn answer(&self) -> Result<Answer, Error>;
}

/// A call whose input comes as bytes and whose output is encoded.
pub(crate) struct Encoded<O: Operation> {
    /// The body, if it was parsed on another thread.
    read: Option<ReadBody<O>>,
    stage: Stage<O>,
}

/// A body as far as it could be parsed, and its faults.
type ReadBody<O> = Result<(<O as Operation>::Body, Violations), DomainError>;

/// A call from Rust, with typed values.
pub(crate) struct Typed<O: Operation> {
    given: Call<O>,
    stage: Stage<O>,
}

/// Input and output of one run.
struct Stage<O: Operation> {
    call: Option<Call<O>>,
    output: Option<O::Output>,
}

impl<O: Operation> Encoded<O> {
    pub(crate) fn erased() -> Box<dyn Runnable> {
        Box::new(Self { read: None, stage: Stage::new() })
    }
}

impl<O: Operation> Typed<O> {
    pub(crate) const fn new(given: Call<O>) -> Self {
        Self { given, stage: Stage::new() }
    }

    /// Returns the output of the operation, if it ran.
    pub(crate) fn into_output(self) -> Option<O::Output> {
        self.stage.output
    }
}

impl<O: Operation> Stage<O> {
    const fn new() -> Self {
        Self { call: None, output: None }
    }

    fn serialized_resources(&self, path: &str) -> Vec<ResourceKey> {
        self.call.as_ref().map(|call| O::serialized_resources(path, call)).unwrap_or_default()
    }

    fn run<'a>(&'a mut self, cx: &'a mut Context<'_>) -> BoxFuture<'a, Result<(), Error>> {
        let call = self.call.take();
        Box::pin(async move {
            let call = call.ok_or_else(|| Error::internal(NOT_IN_ORDER))?;
            self.output = Some(O::run(cx, call).await?);
            Ok(())
        })
    }

    fn answer(&self) -> Result<Answer, Error> {
        self.output.as_ref().ok_or_else(|| Error::internal(NOT_IN_ORDER))?.to_answer(O::SUCCESS)
    }

    /// Takes the input, or refuses it with all faults of its parts.
    fn take(
        &mut self,
        path: O::Path,
        query: Result<O::Query, DomainError>,
        body: Result<(O::Body, Violations), DomainError>,
    ) -> Result<Violations, Error> {
        match (query, body) {
            (Ok(query), Ok((body, violations))) if O::LOOKS_UP || violations.is_empty() => {
                self.call = Some(Call { path, query, body });
                Ok(violations)
            }
            (query, body) => {
                let body = body.map_or_else(Some, |(_, violations)| Some(violations.into()));
                Err(refusal([query.err(), body]))
            }
        }
    }
}

const NOT_IN_ORDER: &str = "the steps of a call came out of order";

impl<O: Operation> Runnable for Encoded<O> {
    fn body_reader(&self) -> Option<BodyReader> {
        (<O::Body as Input>::BODY != BodyKind::None).then_some(erased_body::<O>)
    }

    fn give_body(&mut self, read: Box<dyn Any + Send>) {
        self.read = read.downcast().ok().map(|read| *read);
    }

    fn decode(&mut self, request: &Request<'_>) -> Result<Violations, Error> {
        // Check 9 precedes check 11 (contract section 1.3): a body that is no JSON is refused even if the resource does
        // not exist.
        let read = self.read.take();
        let body = read.unwrap_or_else(|| read_body::<O>(&request.body, request.lenient));
        if let Err(DomainError::NotAnObject(fault)) = body {
            return Err(Error::InvalidJson(fault));
        }
        let path = read_path::<O::Path>(request)?;
        self.stage.take(path, input::query::<O::Query>(request.query), body)
    }

    fn serialized_resources(&self, path: &str) -> Vec<ResourceKey> {
        self.stage.serialized_resources(path)
    }

    fn run<'a>(&'a mut self, cx: &'a mut Context<'_>) -> BoxFuture<'a, Result<(), Error>> {
        self.stage.run(cx)
    }

    fn answer(&self) -> Result<Answer, Error> {
        self.stage.answer()
    }
}

impl<O: Operation> Runnable for Typed<O> {
    fn body_reader(&self) -> Option<BodyReader> {
        None
    }

    fn give_body(&mut self, _: Box<dyn Any + Send>) {}

    fn decode(&mut self, _: &Request<'_>) -> Result<Violations, Error> {
        let Call { path, query, body } = self.given.clone();
        self.stage.take(path, input::made_query(query), input::made_body(body))
    }

    fn serialized_resources(&self, path: &str) -> Vec<ResourceKey> {
        self.stage.serialized_resources(path)
    }

    fn run<'a>(&'a mut self, cx: &'a mut Context<'_>) -> BoxFuture<'a, Result<(), Error>> {
        self.stage.run(cx)
    }

    fn answer(&self) -> Result<Answer, Error> {
        self.stage.answer()
    }
}

fn read_path<P: DeserializeOwned>(request: &Request<'_>) -> Result<P, Error> {
    // No stored text contains NUL, so such a parameter names nothing.
    if request.path_parameters.iter().any(|(_, value)| value.contains('\0')) {
        return Err(Error::NotFound);
    }
    let parameters = request.path_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    P::deserialize(MapDeserializer::<_, ValueError>::new(parameters)).map_err(|_| Error::NotFound)
}

/// Combines the faults of an input's parts into one error: all violations, or the first fault of another kind.
fn refusal(faults: [Option<DomainError>; 2]) -> Error {
    let mut found = Violations::new();
    for fault in faults.into_iter().flatten() {
        match fault {
            DomainError::Invalid(violations) => found.merge(violations),
            other => return other.into(),
        }
    }
    Error::Validation(found)
}

fn read_body<O: Operation>(body: &[u8], lenient: bool) -> ReadBody<O> {
    input::body_with_faults(body, unknown_members::<O>(lenient))
}

fn erased_body<O: Operation>(body: &[u8], lenient: bool) -> Box<dyn Any + Send> {
    Box::new(read_body::<O>(body, lenient))
}

/// Parses a body as the operation does, without running it.
pub(super) fn check_body<O: Operation>(body: &[u8]) -> Result<(), Error> {
    let (_, violations) = read_body::<O>(body, false)?;
    Ok(violations.into_result()?)
}

fn unknown_members<O: Operation>(ignored: bool) -> UnknownMembers {
    UnknownMembers { ignored, resource: Some(resource_of::<O::Output>), ..UnknownMembers::default() }
}

/// Returns the JSON Schema of an operation's output, made once; `null` if the output is not JSON.
fn resource_of<T: Output>() -> Arc<Value> {
    input::schema_by(TypeId::of::<Resource<T>>(), |mut generator| match T::schema(&mut generator) {
        Some(schema) => {
            let mut schema = schema.to_value();
            if let Some(members) = schema.as_object_mut() {
                members.insert("$defs".to_owned(), Value::Object(generator.take_definitions(true)));
            }
            schema
        }
        None => Value::Null,
    })
}

/// Key type of output schemas in the schema cache.
struct Resource<T>(PhantomData<T>);
