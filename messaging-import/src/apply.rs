//! Imports the content of a plan through the operations of the API.
//!
//! Suppressions come before contacts, so that no suppressed address gets mail in between. Everything may be repeated:
//! lists and templates are found by name, contacts by their address, and a suppression keeps its record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::api::{Answer, Api, Call, Operation};
use crate::error::{ApplyError, Error};
use crate::person;
use crate::plan::{ImportPlan, ImportRecord, Template};
use crate::reading::{self, Item, Pass, Survey};
use crate::refused::{Refused, Why};

/// Number of suppressions that are requested at a time.
const AT_ONCE: usize = 16;

/// Maximum number of attempts at a call, while the server is busy or away.
const MAX_TRIES: u32 = 120;

/// Wait between attempts if the server gives none, and the minimum wait if it does.
const PAUSE: Duration = Duration::from_millis(250);

/// Maximum wait, whatever the server says.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Counts of contacts, or of suppressions, by their outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that were created.
    pub created: u64,
    /// Those that existed: contacts were updated, suppressions stay as they were.
    pub known: u64,
    /// Those that the API refused.
    pub refused: u64,
}

/// Results of an import, by kind of object.
#[derive(Debug, Default)]
pub struct Applied {
    /// The lists, each with `name`, `id` and `result`: `found` or `created`.
    pub lists: Vec<Value>,
    /// The suppressions.
    pub suppressions: Tally,
    /// The contacts.
    pub contacts: Tally,
    /// The templates, each as [`Template::outcome`] shows it: `created`, `changed`, `unchanged` or `refused`.
    pub templates: Vec<Value>,
}

/// The API, which may be busy or away for a moment.
struct Destination<A> {
    api: A,
    /// True once a call got an answer other than being put off: only then an unreachable server is worth waiting for.
    has_answered: AtomicBool,
}

impl<A: Api> Destination<A> {
    /// Makes a call, and repeats it while it is put off.
    async fn call(&self, operation: Operation, id: Option<&str>, body: Value) -> Result<Answer, A::Error> {
        let call = Call { operation, id: id.map(ToOwned::to_owned), body };
        let mut tries = 0;
        loop {
            tries += 1;
            let pause = match self.api.call(&call).await {
                Err(error)
                    if A::is_unreachable(&error) && tries < MAX_TRIES && self.has_answered.load(Ordering::Relaxed) =>
                {
                    PAUSE
                }
                Err(error) => return Err(error),
                Ok(answer) if answer.is_put_off() && tries < MAX_TRIES => {
                    let seconds = answer.retry_after.as_deref().and_then(|seconds| seconds.parse().ok());
                    seconds.map_or(PAUSE, |seconds| Duration::from_secs(seconds).clamp(PAUSE, MAX_PAUSE))
                }
                Ok(answer) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Makes a call whose refusal ends the import.
    async fn accepted(&self, operation: Operation, body: Value) -> Result<Value, ApplyError<A::Error>> {
        let answer = self.call(operation, None, body).await.map_err(ApplyError::Api)?;
        if answer.status.is_success() { Ok(answer.document()) } else { Err(ApplyError::Refused(answer)) }
    }

    /// Returns everything that a listing shows.
    async fn all(&self, listing: Operation) -> Result<Vec<Value>, ApplyError<A::Error>> {
        self.api.all(listing).await.map_err(ApplyError::Api)
    }
}

/// Returns the fault according to an answer, if the request itself is at fault (409 or 422).
fn why(answer: &Answer) -> Option<Why> {
    let is_fault = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT].contains(&answer.status);
    is_fault.then(|| Why::of_error(&answer.document()["error"]))
}

/// Imports everything. Rows that the API refuses are added to `refused`; `progress` is called with the number of
/// contacts and suppressions that were just judged.
pub async fn apply<A: Api>(
    api: A,
    (plan, survey): (Arc<ImportPlan>, Arc<Survey>),
    refused: &mut Refused,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Applied, ApplyError<A::Error>> {
    let destination = Arc::new(Destination { api, has_answered: AtomicBool::new(false) });
    let mut applied = Applied::default();
    let lists = find_lists(&destination, &survey, &mut applied).await?;
    suppress(&destination, (&plan, &survey), &mut applied, refused, progress).await?;
    bring_contacts(&destination, (&plan, &survey), &lists, &mut applied, refused, progress).await?;
    bring_templates(&destination, &plan.templates, &mut applied).await?;
    Ok(applied)
}

/// Returns the ids of the lists by their names; missing ones are created.
async fn find_lists<A: Api>(
    destination: &Destination<A>,
    survey: &Survey,
    applied: &mut Applied,
) -> Result<BTreeMap<String, String>, ApplyError<A::Error>> {
    let mut ids = BTreeMap::new();
    if survey.lists.is_empty() {
        return Ok(ids);
    }
    let known = destination.all(Operation::ListLists).await?;
    let named = |name: &str| -> Vec<&str> {
        known.iter().filter(|list| list["name"] == name.trim()).filter_map(|list| list["id"].as_str()).collect()
    };
    // Nothing is created before it is clear that everything can be.
    for name in &survey.lists {
        if let several @ [_, _, ..] = named(name).as_slice() {
            return Err(Error::SeveralLists { name: name.clone(), ids: several.join(", ") }.into());
        }
    }
    for name in &survey.lists {
        let (id, result) = if let Some(id) = named(name).first() {
            ((*id).to_owned(), "found")
        } else {
            let list = destination.accepted(Operation::CreateList, json!({"name": name})).await?;
            (list["id"].as_str().unwrap_or_default().to_owned(), "created")
        };
        applied.lists.push(json!({"name": name, "id": id, "result": result}));
        ids.insert(name.clone(), id);
    }
    Ok(ids)
}

/// An answer, with the file and row of its request.
type Answered<E> = (usize, u64, Result<Answer, E>);

async fn suppress<A: Api>(
    destination: &Arc<Destination<A>>,
    (plan, survey): (&Arc<ImportPlan>, &Arc<Survey>),
    applied: &mut Applied,
    refused: &mut Refused,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), ApplyError<A::Error>> {
    let mut note = |(source, row, answer): Answered<A::Error>| {
        progress(1);
        let answer = answer.map_err(ApplyError::Api)?;
        match (answer.status, why(&answer)) {
            (StatusCode::CREATED, _) => applied.suppressions.created += 1,
            (status, _) if status.is_success() => applied.suppressions.known += 1,
            (_, Some(why)) => {
                applied.suppressions.refused += 1;
                refused.add(&plan.sources[source].name, row, &why)?;
            }
            (_, None) => return Err(ApplyError::Refused(answer)),
        }
        Ok(())
    };
    let (mut portions, reading) = reading::portions(Arc::clone(plan), Arc::clone(survey), Pass::Suppressions);
    let mut asked: JoinSet<Answered<A::Error>> = JoinSet::new();
    while let Some(portion) = portions.recv().await {
        for Item { source, row, found } in portion {
            let ImportRecord::Suppression { channel, address, reason } = found else { continue };
            if asked.len() == AT_ONCE
                && let Some(answered) = asked.join_next().await
            {
                note(answered.map_err(ApplyError::Task)?)?;
            }
            let destination = Arc::clone(destination);
            let body = reading::suppression(&channel, &address, &reason);
            asked.spawn(async move { (source, row, destination.call(Operation::CreateSuppression, None, body).await) });
        }
    }
    while let Some(answered) = asked.join_next().await {
        note(answered.map_err(ApplyError::Task)?)?;
    }
    reading.await.map_err(ApplyError::Task)??;
    Ok(())
}

async fn bring_contacts<A: Api>(
    destination: &Destination<A>,
    (plan, survey): (&Arc<ImportPlan>, &Arc<Survey>),
    lists: &BTreeMap<String, String>,
    applied: &mut Applied,
    refused: &mut Refused,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), ApplyError<A::Error>> {
    if plan.sources.is_empty() {
        return Ok(());
    }
    let fields = destination.all(Operation::ListCustomFields).await?;
    let types =
        fields.iter().filter_map(|field| Some((field["key"].as_str()?.to_owned(), field["type"].as_str()?.to_owned())));
    let types = types.collect();
    let (mut portions, reading) = reading::portions(Arc::clone(plan), Arc::clone(survey), Pass::Contacts);
    while let Some(portion) = portions.recv().await {
        let (mut places, mut contacts) = (Vec::new(), Vec::new());
        for Item { source, row, found } in portion {
            match found {
                ImportRecord::Contact { mut body, lists: names } => {
                    add_lists(&mut body, names.iter().filter_map(|name| lists.get(name)));
                    person::coerce(&mut body, &types);
                    places.push((source, row));
                    contacts.push(Value::Object(body));
                }
                ImportRecord::Refused(why) => refused.add(&plan.sources[source].name, row, &why)?,
                _ => {}
            }
        }
        if contacts.is_empty() {
            continue;
        }
        let sent = contacts.len() as u64;
        let report = destination.accepted(Operation::BulkUpsertContacts, json!({"contacts": contacts})).await?;
        let Tally { created, known, refused: failed } = &mut applied.contacts;
        for (count, member) in [(created, "created"), (known, "updated"), (failed, "failed")] {
            *count += report[member].as_u64().unwrap_or_default();
        }
        for result in report["results"].as_array().into_iter().flatten().filter(|result| result["status"] == "error") {
            let place = result["index"].as_u64().and_then(|index| places.get(usize::try_from(index).ok()?));
            if let Some((source, row)) = place {
                refused.add(&plan.sources[*source].name, *row, &Why::of_error(&result["error"]))?;
            }
        }
        progress(sent);
    }
    reading.await.map_err(ApplyError::Task)??;
    Ok(())
}

/// Adds lists to those that the body names by id.
fn add_lists<'a>(body: &mut Map<String, Value>, ids: impl Iterator<Item = &'a String>) {
    let ids: Vec<_> = ids.map(|id| json!(id)).collect();
    if ids.is_empty() {
        return;
    }
    if let Value::Array(all) = body.entry("list_ids").or_insert_with(|| json!([])) {
        all.extend(ids);
    }
}

async fn bring_templates<A: Api>(
    destination: &Destination<A>,
    templates: &[Template],
    applied: &mut Applied,
) -> Result<(), ApplyError<A::Error>> {
    if templates.iter().all(|template| template.body.is_err()) {
        applied.templates = templates.iter().map(|template| template.outcome("refused", None, None)).collect();
        return Ok(());
    }
    let known = destination.all(Operation::ListTemplates).await?;
    for template in templates {
        let Ok(body) = &template.body else {
            applied.templates.push(template.outcome("refused", None, None));
            continue;
        };
        let is_same = |one: &&Value| one["name"] == body["name"] && one["channel"] == body["channel"];
        let matching: Vec<_> = known.iter().filter(is_same).collect();
        let answer = match matching.as_slice() {
            [] => destination.call(Operation::CreateTemplate, None, body.clone()).await,
            [one] => destination.call(Operation::UpdateTemplate, one["id"].as_str(), body.clone()).await,
            _ => {
                let reason = "several templates here have this name; rename all but one";
                applied.templates.push(template.outcome("refused", None, Some(reason)));
                continue;
            }
        };
        let answer = answer.map_err(ApplyError::Api)?;
        if let Some(why) = why(&answer) {
            applied.templates.push(template.outcome("refused", None, Some(&why.message)));
            continue;
        }
        if !answer.status.is_success() {
            return Err(ApplyError::Refused(answer));
        }
        let saved = answer.document();
        let result = match matching.first() {
            None => "created",
            Some(one) if one["version"] == saved["version"] => "unchanged",
            Some(_) => "changed",
        };
        applied.templates.push(template.outcome(result, saved["id"].as_str(), None));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
