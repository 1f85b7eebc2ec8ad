//! Runs an operation: decode, run, commit; again when the data changed meanwhile; once per Idempotency-Key.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::DomainError;
use messaging_core::changes::{Changes, Reply, ReplyKey, Write};
use messaging_core::input::{self, BodyKind, Input, UnknownMembers};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::violation::Violations;
use serde::Deserialize;
use serde::de::value::{Error as ValueError, MapDeserializer};
use serde_json::Value;

use crate::app::App;
use crate::error::Error;
use crate::ops::context::{Context, Request};
use crate::ops::fingerprint::fingerprint;
use crate::ops::operation::{Answer, Call, JSON, Operation, Output};
use crate::ops::progress::{MAX_RUNS, Progress, REMEMBERED_FOR};
use crate::services::acceptance::NewFile;

/// The longest Idempotency-Key (contract section 20).
const MAX_KEY_LENGTH: usize = 64;

/// Carries out a call of `O`.
pub(crate) async fn invoke<O: Operation>(request: Request<'_>) -> Result<Answer, Error> {
    let key = match (request.idempotency_key, request.caller.credential()) {
        (Some(header), Some(credential)) if O::METHOD != Method::GET => {
            // Checks 9 and 10: the JSON first, then the header.
            let print = fingerprint(request.query, &request.body, <O::Body as Input>::BODY == BodyKind::Required);
            let print = match (<O::Body as Input>::BODY, print) {
                (BodyKind::None, _) => fingerprint(request.query, b"", false)?,
                (_, print) => print?,
            };
            let key = parse_key(header)?;
            let route = format!("{} {}", O::METHOD, request.path);
            Some((ReplyKey { credential, route, key }, print))
        }
        _ => None,
    };
    let Some((key, print)) = key else {
        return run_until_committed::<O>(&request, None).await;
    };

    let _running = request.app.running_keys().enter(key.clone()).ok_or(Error::IdempotencyInProgress)?;
    if O::IN_PARTS
        && let Some(reply) = request.app.store().reply(&key, request.app.now()).await?
    {
        return replay::<O>(request.app, reply, print);
    }
    // Most keys are new: run first and let the commit find out. Only when something stands in the way,
    // be it an earlier reply or a refusal, the memory is asked, because an earlier reply goes first.
    let result = run_until_committed::<O>(&request, Some((&key, print))).await;
    match result {
        Err(refusal) if !matches!(refusal, Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => {
            let now = request.app.now();
            match request.app.store().reply(&key, now).await? {
                Some(reply) => replay::<O>(request.app, reply, print),
                None => Err(refusal),
            }
        }
        answer => answer,
    }
}

async fn run_until_committed<O: Operation>(
    request: &Request<'_>,
    key: Option<(&ReplyKey, u128)>,
) -> Result<Answer, Error> {
    let app = request.app;
    let mut turn = None;
    for _ in 0..MAX_RUNS {
        let (call, violations) = decode::<O>(request)?;
        if turn.is_none() && O::METHOD != Method::GET {
            turn = Some(app.write_queues().enter(O::contended(request.path, &call)).await?);
        }
        let mut cx = Context {
            app,
            caller: request.caller,
            now: app.now(),
            changes: Changes::default(),
            violations,
            body: request.body.clone(),
            client: request.client,
            files: Vec::new(),
            progress: Progress::new(key),
            lenient: request.lenient,
            turn: None,
            operation: O::ID,
            workspace: request.workspace,
            path: request.path,
            query: request.query,
        };
        let output = O::run(&mut cx, call).await;
        // Contract section 1.4: field errors come before the specific codes; section 1.3: not before
        // what is checked earlier, such as whether the resource of the path is there.
        let output = match output {
            Err(Error::Validation(more)) => {
                cx.violations.merge(more);
                Err(Error::Validation(cx.violations))
            }
            Err(error) if !matches!(error.status(), StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY) => {
                Err(error)
            }
            _ if !cx.violations.is_empty() => Err(Error::Validation(cx.violations)),
            output => output,
        };
        let answer = output?.into_answer(O::SUCCESS)?;
        let now = cx.now;
        let mut changes = cx.changes;
        if let Some((key, fingerprint)) = key {
            changes.push(Write::Remember(Box::new(Reply {
                key: key.clone(),
                fingerprint,
                status: answer.status.as_u16(),
                content_type: answer.content_type.unwrap_or_default().to_owned(),
                body: if O::ANSWERS_SECRET { seal(app, key, &answer.body)? } else { answer.body.clone() },
                expires_at: now + REMEMBERED_FOR,
                created_at: now,
            })));
        }
        if changes.is_empty() {
            return Ok(answer);
        }
        if let (Some((key, fingerprint)), false) = (key, cx.files.is_empty())
            && let Some(reply) = app.store().reply(key, now).await?
        {
            // Its files are there already.
            return replay::<O>(app, reply, fingerprint);
        }
        match commit_with_files(app, changes, cx.files).await {
            Ok(()) => return Ok(answer),
            Err(CommitError::Conflict) => {
                if let Some((key, fingerprint)) = key
                    && let Some(reply) = app.store().reply(key, now).await?
                {
                    return replay::<O>(app, reply, fingerprint);
                }
            }
            Err(error) => return Err(error.into_store_error().into()),
        }
    }
    Err(Error::Unavailable { retry_after: 1 })
}

/// Stores the files that the changes name, then commits. Files of a commit that changed nothing are removed;
/// the sweep decides about those whose outcome is unknown or that a crash leaves behind.
async fn commit_with_files(app: &App, mut changes: Changes, files: Vec<NewFile>) -> Result<(), CommitError> {
    let mut stored = Vec::with_capacity(files.len());
    let mut outcome = Ok(());
    for NewFile { blob, bytes } in files {
        stored.push(blob);
        changes.push(Write::KeepBlob(blob));
        if let Err(error) = app.store().put_blob(blob, bytes).await {
            outcome = Err(error.into());
            break;
        }
    }
    if outcome.is_ok() {
        outcome = app.commit(changes).await;
    }
    let may_be_done = matches!(outcome, Ok(()) | Err(CommitError::Store(StoreError::OutcomeUnknown)));
    if !may_be_done {
        for blob in stored {
            if let Err(error) = app.store().discard_blob(blob).await {
                tracing::warn!(error = %messaging_core::error::Chain(&error), "a file that nothing names was not removed");
            }
        }
    }
    outcome
}

/// Reads a body as the operation does, and does nothing.
pub(crate) fn check_body<O: Operation>(body: &[u8]) -> Result<(), Error> {
    let (_, violations) = input::body_with_faults::<O::Body>(body, unknown_members::<O>(false))?;
    Ok(violations.into_result()?)
}

fn unknown_members<O: Operation>(ignored: bool) -> UnknownMembers {
    UnknownMembers { ignored, resource: Some(resource_of::<O::Output>) }
}

fn decode<O: Operation>(request: &Request<'_>) -> Result<(Call<O>, Violations), Error> {
    // Check 9 goes before check 11: a body that is no JSON is refused even if the resource is not there.
    let body = input::body_with_faults::<O::Body>(&request.body, unknown_members::<O>(request.lenient));
    if let Err(DomainError::NotAnObject) = body {
        return Err(Error::InvalidJson);
    }
    let parameters = request.path_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let path = O::Path::deserialize(MapDeserializer::<_, ValueError>::new(parameters)).map_err(|_| Error::NotFound)?;
    match (input::query::<O::Query>(request.query), body) {
        (Ok(query), Ok((body, violations))) if O::LOOKS_UP || violations.is_empty() => {
            Ok((Call { path, query, body }, violations))
        }
        (query, body) => {
            let mut found = Violations::new();
            for fault in [query.err(), body.map_or_else(Some, |(_, violations)| Some(violations.into()))] {
                match fault {
                    Some(DomainError::Invalid(violations)) => found.merge(violations),
                    Some(other) => return Err(other.into()),
                    None => {}
                }
            }
            Err(Error::Validation(found))
        }
    }
}

/// The schema of what an operation answers, made once; `null` if that is no JSON.
fn resource_of<T: Output>() -> Arc<Value> {
    input::schema_by(TypeId::of::<(Resource, T)>(), |mut generator| match T::schema(&mut generator) {
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

/// Marks the schemas of answers among those that are kept.
struct Resource;

/// 1 to 64 visible ASCII characters; one surrounding pair of double quotes is removed.
fn parse_key(header: &[u8]) -> Result<String, Error> {
    let inner = match header {
        [b'"', inner @ .., b'"'] => inner,
        all => all,
    };
    let well_formed =
        (1..=MAX_KEY_LENGTH).contains(&inner.len()) && inner.iter().all(|byte| (0x21..=0x7E).contains(byte));
    if !well_formed {
        return Err(Error::InvalidIdempotencyKey);
    }
    Ok(inner.iter().map(|byte| char::from(*byte)).collect())
}

fn replay<O: Operation>(app: &App, reply: Reply, fingerprint: u128) -> Result<Answer, Error> {
    if reply.fingerprint != fingerprint {
        return Err(Error::IdempotencyKeyReused);
    }
    Ok(Answer {
        status: StatusCode::from_u16(reply.status).map_err(Error::internal)?,
        content_type: (!reply.content_type.is_empty()).then_some(JSON),
        body: if O::ANSWERS_SECRET { unseal(app, &reply.key, &reply.body)? } else { reply.body },
        replayed: true,
    })
}

fn seal(app: &App, key: &ReplyKey, body: &[u8]) -> Result<Bytes, Error> {
    let text = std::str::from_utf8(body).map_err(Error::internal)?;
    Ok(app.vault().seal(&sealed_place(key), text, app.entropy()).into())
}

fn unseal(app: &App, key: &ReplyKey, body: &[u8]) -> Result<Bytes, Error> {
    let sealed = std::str::from_utf8(body).map_err(Error::internal)?;
    Ok(app.vault().open(&sealed_place(key), sealed).map_err(Error::internal)?.into())
}

/// What a remembered secret is bound to.
fn sealed_place(key: &ReplyKey) -> String {
    format!("reply/{:032x}/{}/{}", u128::from_be_bytes(key.credential), key.route, key.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_at_their_limits() {
        let longest = "k".repeat(64);
        for (header, key) in
            [("a", "a"), ("\"a b\"", ""), ("\"ab\"", "ab"), ("\"", "\""), (longest.as_str(), longest.as_str())]
        {
            match parse_key(header.as_bytes()) {
                Ok(parsed) => assert_eq!(parsed, key, "{header}"),
                Err(_) => assert_eq!(key, "", "{header}"),
            }
        }
        for bad in ["", "\"\"", "a b", "ä", "a\t", &"k".repeat(65)] {
            assert!(parse_key(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
