//! Runs an operation: decodes, runs, commits; again when the data changed meanwhile; once per Idempotency-Key.
//!
//! Nothing here is generic: there are some ninety operations, and this module is compiled once.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use messaging_core::changes::{Changes, Reply, ReplyKey, Write};
use messaging_core::ids::WorkspaceId;
use messaging_core::input::BodyKind;
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::scope::Access;
use messaging_core::violation::Violations;
use serde_json::Value;

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::audit_notes::AuditNotes;
use crate::ops::auditing::{self, AuditedCall};
use crate::ops::context::{Context, Request};
use crate::ops::endpoint::Endpoint;
use crate::ops::fingerprint::{fingerprint, fingerprint_file};
use crate::ops::operation::{Answer, JSON};
use crate::ops::progress::{MAX_RUNS, Progress, REMEMBERED_FOR};
use crate::ops::recordings::{self, Recording};
use crate::ops::runnable::Runnable;
use crate::services::acceptance::NewFile;

/// Length of the longest Idempotency-Key (contract section 20).
const MAX_KEY_LENGTH: usize = 64;

/// Length in bytes of bodies that are parsed on the thread of the request.
const SHORT: usize = 64 << 10;

/// One admitted call and the form of its input.
pub(crate) struct Invocation<'a> {
    /// The application.
    pub(crate) app: &'a App,
    /// The operation.
    pub(crate) endpoint: &'static Endpoint,
    /// Caller that the operation is carried out for.
    pub(crate) caller: &'a Caller,
    /// Workspace that the call is about, if any.
    pub(crate) workspace: Option<WorkspaceId>,
    /// The request. Of a call with typed values it has the body only if there is an Idempotency-Key.
    pub(crate) request: &'a Request<'a>,
    /// True if the input is typed values instead of the bytes of the request.
    pub(crate) typed: bool,
    /// Finds an operation by its id.
    pub(crate) find: fn(&str) -> Option<&'static Endpoint>,
    /// Returns the access that an operation requires, by its id.
    pub(crate) access_of: fn(&str) -> Option<Access>,
}

/// Runs a call. Returns the encoded answer where one is needed: for a call with bytes, and under an Idempotency-Key.
///
/// Boxed, because the body of an async function is compiled into every crate that polls it.
pub(crate) fn invoke<'a>(
    invocation: &'a Invocation<'a>,
    runnable: &'a mut dyn Runnable,
) -> BoxFuture<'a, Result<Option<Answer>, Error>> {
    Box::pin(carry_out(invocation, runnable))
}

async fn carry_out(invocation: &Invocation<'_>, runnable: &mut dyn Runnable) -> Result<Option<Answer>, Error> {
    let Invocation { app, endpoint, caller, request, .. } = *invocation;
    let method = (endpoint.method)();
    let key = match (request.idempotency_key, caller.credential()) {
        (Some(header), Some(credential)) if method != Method::GET => {
            // Checks 9 and 10: the JSON first, then the header.
            let print = match endpoint.body {
                BodyKind::None => fingerprint(request.query, b"", false)?,
                BodyKind::File(_) => fingerprint_file(request.query, &request.body),
                kind if is_short(&request.body) => {
                    fingerprint(request.query, &request.body, kind == BodyKind::Required)?
                }
                kind => {
                    let (query, body) = (request.query.to_owned(), request.body.clone());
                    off_thread(move || fingerprint(&query, &body, kind == BodyKind::Required)).await??
                }
            };
            let key = parse_key(header)?;
            Some((ReplyKey { credential, route: route(invocation, &method), key }, print))
        }
        _ => None,
    };
    let is_reading = method == Method::GET;
    let Some((key, print)) = key else {
        return run_until_committed(invocation, runnable, is_reading, None).await;
    };

    let _running = app.running_keys().enter(key.clone()).ok_or(Error::IdempotencyInProgress)?;
    if endpoint.in_parts
        && let Some(reply) = app.store().reply(&key, app.now()).await?
    {
        return replay(invocation, reply, print);
    }
    // Most keys are new: the operation runs first, and the commit finds out whether the key is. Only when something
    // stands in the way, an earlier reply or a refusal, the stored replies are read, because an earlier reply goes
    // first.
    let result = run_until_committed(invocation, runnable, is_reading, Some((&key, print))).await;
    match result {
        Err(refusal) if !matches!(refusal, Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => {
            match app.store().reply(&key, app.now()).await? {
                Some(reply) => replay(invocation, reply, print),
                None => Err(refusal),
            }
        }
        answer => answer,
    }
}

async fn run_until_committed(
    invocation: &Invocation<'_>,
    runnable: &mut dyn Runnable,
    is_reading: bool,
    key: Option<(&ReplyKey, u128)>,
) -> Result<Option<Answer>, Error> {
    let Invocation { app, endpoint, caller, workspace, request, typed, .. } = *invocation;
    let recording = recordings::recording(endpoint.id);
    let mut turn = None;
    // A request that an earlier one began to do in parts is continued in parts.
    let mut is_split = match key {
        Some((key, _)) if endpoint.in_parts => app.store().reply(&key.of_part(0), app.now()).await?.is_some(),
        _ => false,
    };
    for _ in 0..MAX_RUNS {
        if let Some(read) = runnable.body_reader().filter(|_| !is_short(&request.body)) {
            let (body, lenient) = (request.body.clone(), request.lenient);
            runnable.give_body(off_thread(move || read(&body, lenient)).await?);
        }
        let violations = runnable.decode(request)?;
        if turn.is_none() && !is_reading {
            turn = Some(app.write_queues().enter(runnable.serialized_resources(request.path)).await?);
        }
        let before = match recording {
            Some(recording) => state_before(invocation, recording).await,
            None => None,
        };
        let mut cx = Context {
            violations,
            body: (!typed || key.is_some()).then(|| request.body.clone()),
            ..context(invocation, endpoint, Progress::new(key, is_split))
        };
        // Contract section 1.4: field errors come before the specific codes; section 1.3: but after earlier checks,
        // such as whether the resource of the path exists.
        match runnable.run(&mut cx).await {
            Err(Error::Validation(more)) => {
                cx.violations.merge(more);
                return Err(Error::Validation(cx.violations));
            }
            Err(error) if !matches!(error.status(), StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY) => {
                return Err(error);
            }
            _ if !cx.violations.is_empty() => return Err(Error::Validation(cx.violations)),
            outcome => outcome?,
        }
        let session_cookie = cx.session_cookie.take();
        let is_divisible = cx.progress.is_divisible;
        let answer = if typed && key.is_none() { None } else { Some(runnable.answer()?) };
        let answer = answer.map(|answer| Answer { session_cookie, ..answer });
        // Not the time when the operation began: the clock may have been set back since, and a reply dated after that
        // would look old.
        let now = app.now();
        let notes = std::mem::take(&mut cx.audit);
        let mut changes = cx.changes;
        if let Some(recording) = recording.filter(|recording| recording.records(&changes)) {
            let after = runnable.answer()?;
            let call = AuditedCall { app, endpoint, caller, workspace, request };
            let writes = auditing::writes(&call, recording, notes.or_before(before), &after).await?;
            // Conditions are about the data before the call: the operation may change the very webhook that gets its
            // event.
            let (conditions, writes): (Vec<_>, Vec<_>) =
                writes.into_iter().partition(|write| matches!(write, Write::Expect(_)));
            let decided = std::mem::replace(&mut changes, Changes::from_iter(conditions));
            changes.append(decided);
            changes.extend(writes);
        }
        if let (Some((key, fingerprint)), Some(answer)) = (key, &answer) {
            changes.push(Write::Remember(Box::new(Reply {
                key: key.clone(),
                fingerprint,
                status: answer.status.as_u16(),
                content_type: answer.content_type.unwrap_or_default().to_owned(),
                body: if endpoint.answers_secret { seal(app, key, &answer.body)? } else { answer.body.clone() },
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
            // The files of the earlier answer are stored already.
            return replay(invocation, reply, fingerprint);
        }
        match commit_with_files(app, changes, cx.files).await {
            Ok(()) => return Ok(answer),
            Err(CommitError::Conflict) => {
                if let Some((key, fingerprint)) = key
                    && let Some(reply) = app.store().reply(key, app.now()).await?
                {
                    return replay(invocation, reply, fingerprint);
                }
            }
            // One item of many is at fault, and the others are not refused for it.
            Err(CommitError::Refused(_)) if is_divisible && !is_split => is_split = true,
            Err(error) => return Err(error.into_store_error().into()),
        }
    }
    Err(Error::Unavailable { retry_after: 1 })
}

/// Returns the resource of a recorded operation before the operation runs, if another operation reads it. One that does
/// not exist has no state.
async fn state_before(invocation: &Invocation<'_>, recording: &Recording) -> Option<Value> {
    let endpoint = (invocation.find)(recording.read_by?)?;
    let Invocation { request, .. } = *invocation;
    let reading =
        Request { path: request.path, path_parameters: request.path_parameters.clone(), ..Request::default() };
    let mut runnable = (endpoint.begin)();
    runnable.decode(&reading).ok()?;
    let mut cx = Context { query: "", wants_csv: false, ..context(invocation, endpoint, Progress::new(None, false)) };
    runnable.run(&mut cx).await.ok()?;
    auditing::body_of(&runnable.answer().ok()?)
}

/// Makes the context of one run of an operation.
fn context<'a>(invocation: &Invocation<'a>, endpoint: &'static Endpoint, progress: Progress<'a>) -> Context<'a> {
    let Invocation { app, caller, workspace, request, .. } = *invocation;
    Context {
        app,
        caller,
        now: app.now(),
        changes: Changes::default(),
        violations: Violations::new(),
        body: None,
        client_ip: request.client_ip,
        user_agent: request.user_agent,
        request_id: request.request_id,
        wants_csv: request.wants_csv,
        audit: AuditNotes::default(),
        session_cookie: None,
        files: Vec::new(),
        progress,
        lenient: request.lenient,
        quota: request.quota,
        commit_permit: None,
        operation: endpoint.id,
        access_of: invocation.access_of,
        workspace,
        path: request.path,
        query: request.query,
    }
}

/// Returns true if parsing a body is faster than handing it to another thread.
fn is_short(body: &Bytes) -> bool {
    body.len() <= SHORT
}

/// Runs work that keeps a processor busy for a while off the threads that serve requests.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// Stores the files that the changes name, then commits. Files of a commit that changed nothing are removed;
/// the sweep decides about those whose outcome is unknown or that a crash leaves behind.
pub(super) async fn commit_with_files(app: &App, mut changes: Changes, files: Vec<NewFile>) -> Result<(), CommitError> {
    let mut stored = Vec::with_capacity(files.len());
    let mut outcome = Ok(());
    for NewFile { blob, bytes } in files {
        stored.push(blob);
        changes.push(Write::KeepBlob(blob));
        if let Err(error) = app.blobs().put_blob(blob, bytes).await {
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
            if let Err(error) = app.blobs().discard_blob(blob).await {
                tracing::warn!(error = %messaging_core::error::Chain(&error), "a file that nothing names was not removed");
            }
        }
    }
    outcome
}

/// Returns method, path and workspace of a call, as far as the credential does not determine them. A person names any
/// of their workspaces in a header (contract sections 1.7 and 2.3).
fn route(invocation: &Invocation<'_>, method: &Method) -> String {
    let path = invocation.request.path;
    match (invocation.caller, invocation.workspace) {
        (Caller::Key(_) | Caller::Anonymous, _) | (_, None) => format!("{method} {path}"),
        (Caller::Session(_) | Caller::Operator(_), Some(workspace)) => format!("{method} {path} {workspace}"),
    }
}

/// Parses an Idempotency-Key: 1 to 64 visible ASCII characters; one surrounding pair of double quotes is removed.
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

fn replay(invocation: &Invocation<'_>, reply: Reply, fingerprint: u128) -> Result<Option<Answer>, Error> {
    if reply.fingerprint != fingerprint {
        return Err(Error::IdempotencyKeyReused);
    }
    let is_sealed = invocation.endpoint.answers_secret;
    Ok(Some(Answer {
        status: StatusCode::from_u16(reply.status).map_err(Error::internal)?,
        content_type: (!reply.content_type.is_empty()).then_some(JSON),
        body: if is_sealed { unseal(invocation.app, &reply.key, &reply.body)? } else { reply.body },
        replayed: true,
        session_cookie: None,
    }))
}

fn seal(app: &App, key: &ReplyKey, body: &[u8]) -> Result<Bytes, Error> {
    let text = std::str::from_utf8(body).map_err(Error::internal)?;
    Ok(app.vault().seal(&sealed_place(key), text, app.entropy()).into())
}

fn unseal(app: &App, key: &ReplyKey, body: &[u8]) -> Result<Bytes, Error> {
    let sealed = std::str::from_utf8(body).map_err(Error::internal)?;
    Ok(app.vault().open(&sealed_place(key), sealed).map_err(Error::internal)?.into())
}

/// Returns the name of the place that a remembered secret is bound to when it is sealed.
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
