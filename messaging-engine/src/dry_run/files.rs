//! Simulation of automations from files, without an installation: `messaging automation simulate`.
//!
//! Contract section 13.4, "Command line". A temporary store gets a workspace with the resources that the automation
//! names: lists and segments are empty, a template that is not given is a stub, every sender is verified and every
//! channel configured. There the automation is checked and simulated like any other.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use messaging_core::DomainError;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::list::{ContactList, OptIn, Visibility};
use messaging_core::domain::automation::Design;
use messaging_core::domain::automation::input::AutomationInput;
use messaging_core::domain::automation::parse::Reading;
use messaging_core::domain::automation::simulation::SimulationInput;
use messaging_core::domain::campaign::archive::ReaderSettings;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::sending_domain::{DomainStatus, SendingDomain};
use messaging_core::domain::security::account::Workspace;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::domain::security::secret_key::SecretKey;
use messaging_core::domain::segment::parse::Reference;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{AutomationId, SegmentId, TemplateId, WorkspaceId};
use messaging_core::input::{self, UnknownMembers};
use messaging_core::ports::clock::SeededEntropy;
use messaging_core::ports::store::CommitError;
use messaging_core::ports::{Fetch, TemporaryStore, TemporaryStores, Transport};
use messaging_core::time::Timestamp;
use messaging_core::violation::{At, FieldCode, Violations};
use serde_json::{Map, Value, json};

use super::peers::{Outbox, PROVIDER, SEED};
use super::world;
use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::automations::simulate::{SimulationReport, check_events, check_span, planned};
use crate::ops::templates::CreateTemplate;
use crate::ops::{Endpoint, Operation as _, Request, fill_path};
use crate::services::dry_runs::{DryRun, Participant, made_id};

/// Domain of senders that are not named.
const DOMAIN: &str = "simulation.test";

/// An automation from files, and the events to try it out with.
#[derive(Debug, Clone)]
pub struct DryRunFiles {
    /// The body of `POST …/automations`.
    pub automation: Value,
    /// Templates, each with the names by which the automation may refer to it: its id, or a substitute for one.
    pub templates: Vec<(Vec<String>, Value)>,
    /// Contacts in the members of `POST …/contacts`.
    pub contacts: Vec<Value>,
    /// Events with the members of `events` of a dry run. One with `contact` (`external_id`, `email` or `phone`) is of
    /// that contact, one without is of every contact.
    pub events: Vec<Value>,
    /// Segments whose filters are known, by id. Other segments that the automation names are empty.
    pub segments: Vec<(String, Value)>,
    /// Time when the automation becomes active.
    pub at: Timestamp,
    /// Time of the manual clock at which the dry run ends.
    pub until: Timestamp,
}

/// Course of one contact through a dry run.
#[derive(Debug, Clone, PartialEq)]
pub struct ContactReport {
    /// `external_id` of the contact, if it has one.
    pub external_id: Option<String>,
    /// Report of the dry run with this contact: its steps and how it ended.
    pub report: SimulationReport,
}

/// Reason why the files of a dry run are refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesFault {
    /// The automation is refused.
    #[error("the automation is refused")]
    Automation(#[source] Error),
    /// A template is refused, by its index.
    #[error("template {0} is refused")]
    Template(usize, #[source] Error),
    /// A contact is refused, by its index.
    #[error("contact {0} is refused")]
    Contact(usize, #[source] Error),
    /// An event is refused, by its index.
    #[error("event {0} is refused")]
    Event(usize, #[source] Error),
    /// The span, or the dry run itself, is refused.
    #[error("the simulation is refused")]
    DryRun(#[source] Error),
}

/// Simulates an automation with each of the contacts, in a workspace of its own. The dry runs take place in stores of
/// `stores`; `fetch` checks the addresses of webhook nodes, and none is called.
pub async fn run_each(
    stores: Arc<dyn TemporaryStores>,
    fetch: Arc<dyn Fetch>,
    files: &DryRunFiles,
) -> Result<Vec<ContactReport>, FilesFault> {
    let stage = DryRunWorkspace::set_up(stores, fetch, files).await?;
    let mut told = Vec::with_capacity(files.contacts.len());
    for index in 0..files.contacts.len() {
        told.push(stage.contact(files, index).await?);
    }
    stage.app.store().close().await;
    Ok(told)
}

/// The generated workspace with an automation.
pub(super) struct DryRunWorkspace {
    pub(super) app: App,
    pub(super) workspace: WorkspaceId,
    pub(super) automation: AutomationId,
    pub(super) design: Design,
    _store: TemporaryStore,
}

impl DryRunWorkspace {
    pub(super) async fn set_up(
        stores: Arc<dyn TemporaryStores>,
        fetch: Arc<dyn Fetch>,
        files: &DryRunFiles,
    ) -> Result<Self, FilesFault> {
        let mut faults = Violations::new();
        check_span(files.at, files.until, &mut faults);
        faults.into_result().map_err(|faults| FilesFault::DryRun(faults.into()))?;
        let (sent, faults) = body::<AutomationInput>(&files.automation).map_err(FilesFault::Automation)?;
        let (name, design) = sent.into_design();
        let store = stores.open().await.map_err(|error| FilesFault::DryRun(error.into()))?;
        let outbox: Arc<dyn Transport> = Arc::new(Outbox::default());
        let app = App::builder(Arc::clone(&store.store), SecretKey::from_bytes([0; 32]))
            .entropy(Arc::new(SeededEntropy::new(SEED)))
            .fetch(fetch)
            .temporary_stores(stores)
            .transports(Channel::ALL.map(|channel| (channel, PROVIDER, Arc::clone(&outbox))))
            .build()
            .await
            .map_err(|error| FilesFault::DryRun(Error::internal(error)))?;
        let mut faults = faults;
        let mut shape = Violations::new();
        let reading = app.read_design(&design, &mut shape).await.map_err(FilesFault::Automation)?;
        faults.merge(shape);
        faults.into_result().map_err(|faults| FilesFault::Automation(faults.into()))?;
        let stage = Self { app, workspace: made_id("simulation"), automation: made_id(&name), design, _store: store };
        stage.furnish(files, &reading).await?;
        stage.check(&reading).await.map_err(FilesFault::Automation)?;
        Ok(stage)
    }

    /// Creates the resources that the automation names.
    async fn furnish(&self, files: &DryRunFiles, reading: &Reading) -> Result<(), FilesFault> {
        let (workspace_id, now) = (self.workspace, files.at);
        let failed = FilesFault::DryRun;
        let workspace = Workspace {
            id: workspace_id,
            name: "simulation".into(),
            timezone: "UTC".into(),
            opt_out_keywords: Vec::new(),
            request_log: RequestLog::default(),
            require_second_factor: false,
            readers: ReaderSettings::default(),
            end: None,
            created_at: now,
        };
        let mut writes = vec![Write::put(workspace, Expect::Absent)];
        for channel in Channel::ALL {
            writes.push(Write::put(world::channel_settings(workspace_id, channel), Expect::Absent));
        }
        let mut domains = BTreeSet::from([DOMAIN.to_owned()]);
        for sender in senders(&self.design.graph, &files.templates) {
            domains.extend(sender.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase()));
        }
        for name in domains {
            let domain = SendingDomain::new(made_id(&name), workspace_id, &name, now);
            let domain = SendingDomain { status: DomainStatus::Verified, verified_at: Some(now), ..domain };
            writes.push(Write::put(domain, Expect::Absent));
        }
        let mut lists: BTreeSet<_> = lists_of_contacts(&files.contacts);
        let mut segments = BTreeSet::new();
        for (_, reference) in &reading.references {
            match reference {
                Reference::List(id) => drop(lists.insert(*id)),
                Reference::Segment(id) => drop(segments.insert(*id)),
                _ => {}
            }
        }
        for id in lists {
            let name = id.to_string();
            let list = ContactList {
                id,
                workspace_id,
                name,
                visibility: Visibility::Private,
                opt_in: OptIn::Single,
                description: None,
                contact_count: 0,
                created_at: now,
                updated_at: now,
            };
            writes.push(Write::put(list, Expect::Absent));
        }
        segments.extend(files.segments.iter().filter_map(|(id, _)| id.parse::<SegmentId>().ok()));
        for id in segments {
            let name = id.to_string();
            let known = files.segments.iter().find(|(known, _)| *known == name).map(|(_, filter)| filter.to_string());
            let filter = known.unwrap_or_else(|| world::nobody().to_string());
            let filter = StoredFilter::read(&filter).map_err(Error::internal).map_err(failed)?;
            let segment = Segment {
                id,
                workspace_id,
                name: id.to_string(),
                kind: SegmentKind::Dynamic,
                filter,
                status: SegmentStatus::Ready,
                size: None,
                calculated_at: None,
                created_at: now,
                updated_at: now,
                calculation: 0,
            };
            writes.push(Write::PutSegment(Box::new(segment), Expect::Absent));
        }
        let changes: Changes = writes.into_iter().collect();
        self.app.commit(changes).await.map_err(|error| failed(error.into_store_error().into()))?;
        self.put_templates(files, reading).await
    }

    /// Stores the templates that the automation names: those that were given under that name, else stubs.
    async fn put_templates(&self, files: &DryRunFiles, reading: &Reading) -> Result<(), FilesFault> {
        let mut known: HashSet<TemplateId> = HashSet::new();
        for (pointer, reference) in &reading.references {
            let Reference::Template(id) = reference else { continue };
            if !known.insert(*id) {
                continue;
            }
            let name = id.to_string();
            let place = files.templates.iter().position(|(names, _)| names.contains(&name));
            let (made, at) = match place {
                Some(place) => (files.templates[place].1.clone(), Some(place)),
                None => (stub(channel_at(&self.design, pointer)), None),
            };
            self.put_template(*id, made).await.map_err(|error| match at {
                Some(place) => FilesFault::Template(place, error),
                None => FilesFault::DryRun(error),
            })?;
        }
        Ok(())
    }

    /// Creates a template by the regular operation, and stores it under another id.
    async fn put_template(&self, id: TemplateId, mut body: Value) -> Result<(), Error> {
        let is_email = body["channel"].is_null() || body["channel"] == "email";
        if is_email && body["from_email"].is_null() {
            body["from_email"] = json!(format!("noreply@{DOMAIN}"));
        }
        let caller = Caller::Operator(Some(self.workspace));
        let path = vec![("workspace_id".to_owned(), self.workspace.to_string())];
        let admitted = self.app.admit(caller, Endpoint::row::<CreateTemplate>(), &path, None).await?;
        let request = Request {
            path: &fill_path(CreateTemplate::PATH, &path),
            path_parameters: path.clone(),
            body: body.to_string().into_bytes().into(),
            ..Request::default()
        };
        let answer: Value = serde_json::from_slice(&admitted.run(request).await?.body).map_err(Error::internal)?;
        let made = answer["id"].as_str().and_then(|id| id.parse().ok()).ok_or(Error::NotFound)?;
        let mut template = self.app.store().template(self.workspace, made).await?.ok_or(Error::NotFound)?.record;
        template.id = id;
        let changes = Changes::from_iter([Write::put(Box::new(template), Expect::Absent)]);
        Ok(self.app.commit(changes).await.map_err(CommitError::into_store_error)?)
    }

    /// Checks that the automation can be active, except for campaigns and automations that it names, of which there are
    /// none.
    async fn check(&self, reading: &Reading) -> Result<(), Error> {
        let found = self.app.automation_faults(self.workspace, reading).await?;
        let is_elsewhere = |pointer: &str| {
            reading.references.iter().any(|(at, reference)| {
                at == pointer && matches!(reference, Reference::Campaign(_) | Reference::Automation(_))
            })
        };
        let mut faults = Violations::new();
        for fault in found.as_slice() {
            match &fault.at {
                At::Pointer(pointer) if fault.code == FieldCode::NotFound && is_elsewhere(pointer) => {}
                At::Pointer(pointer) => faults.add(pointer, fault.code, &fault.message),
                At::Parameter(name) => faults.add_parameter(name, fault.code, &fault.message),
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::AutomationInvalid(faults)) }
    }

    async fn contact(&self, files: &DryRunFiles, index: usize) -> Result<ContactReport, FilesFault> {
        let own = own_events(files, &files.contacts[index]);
        let events: Vec<&Value> = own.iter().map(|(_, event)| event).collect();
        let request = json!({
            "contact": files.contacts[index], "events": events, "at": files.at, "until": files.until,
        });
        let (input, mut faults) =
            body::<SimulationInput>(&request).map_err(|error| FilesFault::Contact(index, error))?;
        check_events(&self.design, &input.events, files.at, "/events", &mut faults);
        sort_out(faults, index, &own)?;
        let born = input.events.iter().filter_map(|event| event.occurred_at).fold(files.at, Timestamp::min);
        let sent = input.contact.clone().unwrap_or_default();
        let refused = |error| FilesFault::Contact(index, error);
        let contact = self.app.hypothetical_contact(self.workspace, sent, born).await.map_err(refused)?;
        let contact = contact.map_err(|faults| refused(faults.into()))?;
        let (id, external_id) = (contact.id, contact.external_id.clone());
        let events = input.events.iter().filter_map(|event| planned(event, id, files.at)).collect();
        let dry_run = DryRun {
            workspace: self.workspace,
            automation: self.automation,
            design: self.design.clone(),
            people: vec![Participant { contact, is_stored: false, enters_at: files.at, past: Vec::new() }],
            events,
            at: files.at,
            until: files.until,
            is_replay: false,
        };
        let outcome = self.app.dry_run(dry_run).await.map_err(FilesFault::DryRun)?;
        let report = SimulationReport::of(outcome.runs.iter(), Redactor::new(true));
        Ok(ContactReport { external_id, report })
    }
}

/// Parses a body as operations do.
pub(super) fn body<T: input::Input>(value: &Value) -> Result<(T, Violations), Error> {
    let read = input::body_with_faults(value.to_string().as_bytes(), UnknownMembers::default());
    read.map_err(|error| match error {
        DomainError::NotAnObject(fault) => Error::InvalidJson(fault),
        error => error.into(),
    })
}

/// Returns the events of a contact with their indexes, without the member that names the contact.
fn own_events(files: &DryRunFiles, contact: &Value) -> Vec<(usize, Value)> {
    let is_own = |of: &Value| {
        of.as_object().is_some_and(|named| {
            !named.is_empty()
                && named.iter().all(|(member, value)| match (value.as_str(), contact[member].as_str()) {
                    (Some(value), Some(own)) if member == "email" => value.eq_ignore_ascii_case(own),
                    (value, own) => value.is_some() && value == own,
                })
        })
    };
    let own = |(index, event): (usize, &Value)| {
        let mut event = event.clone();
        let of = event.as_object_mut().and_then(|members| members.remove("contact"));
        of.as_ref().is_none_or(is_own).then_some((index, event))
    };
    files.events.iter().enumerate().filter_map(own).collect()
}

/// Separates the faults of an event from those of the contact or the span.
fn sort_out(faults: Violations, index: usize, events: &[(usize, Value)]) -> Result<(), FilesFault> {
    let Err(faults) = faults.into_result() else { return Ok(()) };
    let mut of_event: Option<(usize, Violations)> = None;
    for fault in faults.as_slice() {
        let At::Pointer(pointer) = &fault.at else { continue };
        let Some((place, rest)) =
            pointer.strip_prefix("/events/").map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        else {
            continue;
        };
        let Some((line, _)) = place.parse().ok().and_then(|place: usize| events.get(place)) else { continue };
        let (first, found) = of_event.get_or_insert_with(|| (*line, Violations::new()));
        if first == line {
            found.add(format!("/{rest}"), fault.code, &fault.message);
        }
    }
    Err(match of_event {
        Some((line, faults)) => FilesFault::Event(line, faults.into()),
        None => FilesFault::Contact(index, faults.into()),
    })
}

/// Returns the addresses that messages are from.
fn senders(graph: &Map<String, Value>, templates: &[(Vec<String>, Value)]) -> Vec<String> {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let of_nodes = nodes.map(|node| &node["config"]["from_email"]);
    let all = of_nodes.chain(templates.iter().map(|(_, template)| &template["from_email"]));
    all.filter_map(|sender| sender.as_str().map(ToOwned::to_owned)).collect()
}

/// Returns the lists that contacts are on.
fn lists_of_contacts(contacts: &[Value]) -> BTreeSet<messaging_core::ids::ListId> {
    let of = |contact: &Value| contact["list_ids"].as_array().cloned().unwrap_or_default();
    contacts.iter().flat_map(of).filter_map(|id| id.as_str()?.parse().ok()).collect()
}

/// Returns the channel of the node whose template is named at a pointer.
fn channel_at(design: &Design, pointer: &str) -> Channel {
    let config = pointer.strip_prefix("/graph").and_then(|rest| rest.rsplit_once('/')).map(|(config, _)| config);
    let graph = Value::Object(design.graph.clone());
    let channel = config.and_then(|config| graph.pointer(config)).map(|config| config["channel"].clone());
    channel.and_then(|channel| serde_json::from_value(channel).ok()).unwrap_or(Channel::Email)
}

/// Returns the body of a template that can be sent, with hardly any content.
fn stub(channel: Channel) -> Value {
    let mut body = json!({"name": "stub", "channel": channel, "text": "…"});
    if channel == Channel::Email {
        body["subject"] = json!("…");
        body["html"] = json!("<p>…</p><a href=\"{{ unsubscribe_url }}\">…</a>");
    }
    body
}
