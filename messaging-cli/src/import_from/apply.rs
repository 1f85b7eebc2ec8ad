//! Bringing over what a plan holds, through the operations of the API.
//!
//! Suppressions come before contacts, so that nobody is sent to in between who must not be. Everything may be done
//! again: lists and templates are found by name, contacts by their address, and a suppression keeps its record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::person;
use super::plan::{Found, Plan, Template};
use super::reading::{self, Item, Pass, Survey};
use super::refused::{Refused, Why};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::reply::Reply;
use crate::request::Request;
use crate::resources::{self, Resources};

/// Suppressions that are asked for at a time.
const AT_ONCE: usize = 16;

/// How often a server that is busy, or away for a moment, is asked again.
const MAX_TRIES: u32 = 120;

/// How long is waited between when the server does not say.
const PAUSE: Duration = Duration::from_millis(250);

/// How long is waited at most, whatever the server says.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// What became of everything.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The lists with what became of each.
    pub(super) lists: Vec<Value>,
    /// Suppressions: new ones, those that were listed, refused ones.
    pub(super) suppressions: [u64; 3],
    /// Contacts: new ones, known ones, refused ones.
    pub(super) contacts: [u64; 3],
    /// The templates with what became of each.
    pub(super) templates: Vec<Value>,
}

/// Where things are brought to.
pub(super) struct Destination {
    resources: Resources,
    /// Whether it has ever answered: only then it is worth waiting for.
    has_answered: AtomicBool,
}

impl Destination {
    /// The place that the command line names.
    pub(super) const fn new(resources: Resources) -> Self {
        Self { resources, has_answered: AtomicBool::new(false) }
    }

    /// Carries out an operation; one that is put off is asked for again.
    async fn call(&self, noun: &'static str, verb: &str, id: Option<&str>, body: Value) -> Result<Reply, Failure> {
        let mut request = Request::new(resources::endpoint(noun, verb)?);
        request.path.extend(id.map(|id| ("id".to_owned(), id.to_owned())));
        request.body = body.to_string().into();
        let mut tries = 0;
        loop {
            tries += 1;
            let pause = match self.resources.target.call(&request).await {
                Err(Failure::Unreachable(_)) if tries < MAX_TRIES && self.has_answered.load(Ordering::Relaxed) => PAUSE,
                Err(failure) => return Err(failure),
                Ok(reply) if is_put_off(&reply) && tries < MAX_TRIES => {
                    let seconds = reply.retry_after.as_deref().and_then(|seconds| seconds.parse().ok());
                    seconds.map_or(PAUSE, |seconds| Duration::from_secs(seconds).clamp(PAUSE, MAX_PAUSE))
                }
                Ok(reply) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(reply);
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// The same, where a refusal ends everything.
    async fn accepted(&self, noun: &'static str, verb: &str, id: Option<&str>, body: Value) -> Result<Value, Failure> {
        let reply = self.call(noun, verb, id, body).await?;
        if reply.status.is_success() { Ok(document(&reply)) } else { Err(Failure::Refused(reply)) }
    }
}

fn is_put_off(reply: &Reply) -> bool {
    [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&reply.status)
}

fn document(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// What is wrong according to an answer, where the request itself is at fault.
fn why(reply: &Reply) -> Option<Why> {
    let is_fault = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT].contains(&reply.status);
    is_fault.then(|| Why::of_error(&document(reply)["error"]))
}

/// Brings everything over.
pub(super) async fn apply(
    destination: Destination,
    (plan, survey): (Arc<Plan>, Arc<Survey>),
    refused: &mut Refused,
    bar: &Progress,
) -> Result<Applied, Failure> {
    let destination = Arc::new(destination);
    let mut applied = Applied::default();
    let lists = find_lists(&destination, &survey, &mut applied).await?;
    suppress(&destination, (&plan, &survey), &mut applied, refused, bar).await?;
    bring_contacts(&destination, (&plan, &survey), &lists, &mut applied, refused, bar).await?;
    bring_templates(&destination, &plan.templates, &mut applied).await?;
    Ok(applied)
}

/// The ids of the lists by their names; those that are not there are created.
async fn find_lists(
    destination: &Destination,
    survey: &Survey,
    applied: &mut Applied,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut ids = BTreeMap::new();
    if survey.lists.is_empty() {
        return Ok(ids);
    }
    let known = destination.resources.all("list").await?;
    let named = |name: &str| -> Vec<&str> {
        known.iter().filter(|list| list["name"] == name.trim()).filter_map(|list| list["id"].as_str()).collect()
    };
    // Nothing is made before it is clear that everything can be.
    for name in &survey.lists {
        if let several @ [_, _, ..] = named(name).as_slice() {
            let several = several.join(", ");
            return Err(Failure::usage(format!("several lists are called {name}: {several}; rename all but one")));
        }
    }
    for name in &survey.lists {
        let (id, result) = if let Some(id) = named(name).first() {
            ((*id).to_owned(), "found")
        } else {
            let list = destination.accepted("list", "create", None, json!({"name": name})).await?;
            (list["id"].as_str().unwrap_or_default().to_owned(), "created")
        };
        applied.lists.push(json!({"name": name, "id": id, "result": result}));
        ids.insert(name.clone(), id);
    }
    Ok(ids)
}

/// An answer with the place of what was asked for.
type Answered = (usize, u64, Result<Reply, Failure>);

async fn suppress(
    destination: &Arc<Destination>,
    (plan, survey): (&Arc<Plan>, &Arc<Survey>),
    applied: &mut Applied,
    refused: &mut Refused,
    bar: &Progress,
) -> Result<(), Failure> {
    let mut note = |(source, row, reply): Answered| {
        bar.add(1);
        let reply = reply?;
        match (reply.status, why(&reply)) {
            (StatusCode::CREATED, _) => applied.suppressions[0] += 1,
            (status, _) if status.is_success() => applied.suppressions[1] += 1,
            (_, Some(why)) => {
                applied.suppressions[2] += 1;
                refused.add(&plan.sources[source].name, row, &why)?;
            }
            (_, None) => return Err(Failure::Refused(reply)),
        }
        Ok(())
    };
    let (mut portions, reading) = reading::portions(Arc::clone(plan), Arc::clone(survey), Pass::Suppressions);
    let mut asked: JoinSet<Answered> = JoinSet::new();
    while let Some(portion) = portions.recv().await {
        for Item { source, row, found } in portion {
            let Found::Suppression { channel, address, reason } = found else { continue };
            if asked.len() == AT_ONCE
                && let Some(answered) = asked.join_next().await
            {
                note(answered.map_err(ended)?)?;
            }
            let destination = Arc::clone(destination);
            let body = reading::suppression(&channel, &address, &reason);
            asked.spawn(async move { (source, row, destination.call("suppression", "create", None, body).await) });
        }
    }
    while let Some(answered) = asked.join_next().await {
        note(answered.map_err(ended)?)?;
    }
    reading.await.map_err(ended)?
}

/// A task that ended in a way that cannot be.
fn ended(error: tokio::task::JoinError) -> Failure {
    Failure::unreachable("cannot go on", &error)
}

async fn bring_contacts(
    destination: &Destination,
    (plan, survey): (&Arc<Plan>, &Arc<Survey>),
    lists: &BTreeMap<String, String>,
    applied: &mut Applied,
    refused: &mut Refused,
    bar: &Progress,
) -> Result<(), Failure> {
    if plan.sources.is_empty() {
        return Ok(());
    }
    let fields = destination.resources.all("custom-field").await?;
    let types =
        fields.iter().filter_map(|field| Some((field["key"].as_str()?.to_owned(), field["type"].as_str()?.to_owned())));
    let types = types.collect();
    let (mut portions, reading) = reading::portions(Arc::clone(plan), Arc::clone(survey), Pass::Contacts);
    while let Some(portion) = portions.recv().await {
        let (mut places, mut contacts) = (Vec::new(), Vec::new());
        for Item { source, row, found } in portion {
            match found {
                Found::Contact { mut body, lists: names } => {
                    add_lists(&mut body, names.iter().filter_map(|name| lists.get(name)));
                    person::coerce(&mut body, &types);
                    places.push((source, row));
                    contacts.push(Value::Object(body));
                }
                Found::Refused(why) => refused.add(&plan.sources[source].name, row, &why)?,
                _ => {}
            }
        }
        if contacts.is_empty() {
            continue;
        }
        let sent = contacts.len() as u64;
        let report = destination.accepted("contact", "bulk", None, json!({"contacts": contacts})).await?;
        for (count, member) in applied.contacts.iter_mut().zip(["created", "updated", "failed"]) {
            *count += report[member].as_u64().unwrap_or_default();
        }
        for result in report["results"].as_array().into_iter().flatten().filter(|result| result["status"] == "error") {
            let place = result["index"].as_u64().and_then(|index| places.get(usize::try_from(index).ok()?));
            if let Some((source, row)) = place {
                refused.add(&plan.sources[*source].name, *row, &Why::of_error(&result["error"]))?;
            }
        }
        bar.add(sent);
    }
    reading.await.map_err(ended)?
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

async fn bring_templates(
    destination: &Destination,
    templates: &[Template],
    applied: &mut Applied,
) -> Result<(), Failure> {
    if templates.iter().all(|template| template.body.is_err()) {
        applied.templates = templates.iter().map(|template| row(template, "refused", None, None)).collect();
        return Ok(());
    }
    let known = destination.resources.all("template").await?;
    for template in templates {
        let Ok(body) = &template.body else {
            applied.templates.push(row(template, "refused", None, None));
            continue;
        };
        let is_same = |one: &&Value| one["name"] == body["name"] && one["channel"] == body["channel"];
        let matching: Vec<_> = known.iter().filter(is_same).collect();
        let reply = match matching.as_slice() {
            [] => destination.call("template", "create", None, body.clone()).await?,
            [one] => destination.call("template", "update", one["id"].as_str(), body.clone()).await?,
            _ => {
                let reason = "several templates here have this name; rename all but one";
                applied.templates.push(row(template, "refused", None, Some(reason)));
                continue;
            }
        };
        if let Some(why) = why(&reply) {
            applied.templates.push(row(template, "refused", None, Some(&why.message)));
            continue;
        }
        if !reply.status.is_success() {
            return Err(Failure::Refused(reply));
        }
        let saved = document(&reply);
        let result = match matching.first() {
            None => "created",
            Some(one) if one["version"] == saved["version"] => "unchanged",
            Some(_) => "changed",
        };
        applied.templates.push(row(template, result, saved["id"].as_str(), None));
    }
    Ok(())
}

/// A template with what became of it.
pub(super) fn row(template: &Template, result: &str, id: Option<&str>, reason: Option<&str>) -> Value {
    let reason = template.body.as_ref().err().map(String::as_str).or(reason);
    json!({"file": template.file, "name": template.name, "id": id, "result": result, "reason": reason})
}
