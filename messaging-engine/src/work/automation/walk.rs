//! Advances automation runs: looks up the data of a whole page of runs at once, and collects their effects in one set
//! of changes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::tz::TimeZone;
use messaging_core::changes::{AutomationWrite, Changes, CountNodes, Expect, JobWrite, PutRun, Write};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::graph::{ContactUpdate, NodeIndex, NodeKind, Send};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::note::{Happened, Note};
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::automation::step::{Input, Need, NodeOutcome, Question, Surroundings, Walk, Walked};
use messaging_core::domain::automation::time::Zones;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::{AutomationId, ContactId, ListId, WorkspaceId};
use messaging_core::ports::store::{EventSpan, FilterQuery, StoreError};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use super::people::{self, Person};
use super::send::{self, SendDecision};
use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::call_node::CallNode;
use crate::services::subscribing::Admitting;
use crate::services::texts::{TextFault, values_of_run};
use crate::work::job::JobError;

/// Rounds of look-ups for one page; a run that needs more continues in the next page.
const MAX_ROUNDS: usize = 16;

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// A run to be advanced.
#[derive(Debug)]
pub(crate) struct PendingRun {
    /// The run as it was read, or as it is made
    /// ([`Entrance::run`](messaging_core::domain::automation::entering::Entrance::run)).
    pub(crate) run: Run,
    /// Expected stored revision of the run.
    pub(crate) expect: Expect,
    /// Cause for which the run continues.
    pub(crate) input: Incoming,
}

/// Cause for which a run continues.
#[derive(Debug, Clone)]
pub(crate) enum Incoming {
    /// The run is new, or due.
    Due,
    /// A note was taken of its contact. The run does not go first: see
    /// [`goes_before`](messaging_core::domain::automation::step::goes_before).
    Note(Arc<Note>, Option<Arc<Happened>>),
}

/// Result of advancing a page of runs.
#[derive(Debug)]
pub(crate) struct Advanced {
    /// Changes to commit: runs, their history, counts, messages, contacts, jobs. The caller adds the commit's
    /// conditions on the automation, and the notes that it takes.
    pub(crate) changes: Changes,
    /// The runs afterwards, in the order of the page.
    pub(crate) runs: Vec<Run>,
}

/// Advances the runs of a page, each until it waits, ends, or has to be committed before it can continue (it is then
/// still due). A page has at most one entry for a run. A run whose contact is gone stays as it is.
pub(crate) async fn advance(app: &App, automation: &Automation, page: Vec<PendingRun>) -> Result<Advanced, JobError> {
    let (workspace, now) = (automation.workspace_id, app.now());
    let workspace_zone = app.workspace_zone(workspace).await?;
    let mut plans = HashMap::new();
    for version in page.iter().map(|pending| pending.run.version) {
        if let Entry::Vacant(entry) = plans.entry(version) {
            entry.insert(app.automation_plan(workspace, automation.id, version).await?);
        }
    }
    let people = people::load(app, workspace, page.iter().map(|pending| pending.run.contact_id)).await?;
    let zones: HashMap<_, _> = people.iter().map(|(id, person)| (*id, person.zone.clone())).collect();
    let mut shell =
        Shell { app, workspace, now, people, writes: Vec::new(), listed: HashMap::new(), lists: HashMap::new() };
    let (mut run_walks, mut unreadable) = (Vec::with_capacity(page.len()), Vec::new());
    for (place, pending) in page.iter().enumerate() {
        let contact = pending.run.contact_id;
        let Some(zone) = zones.get(&contact) else { continue };
        let Some(Some(plan)) = plans.get(&pending.run.version) else {
            unreadable.push(place);
            continue;
        };
        let around = Surroundings {
            activated_at: automation.activated_at,
            zones: Zones { contact: zone },
            zone: &workspace_zone,
        };
        let input = match &pending.input {
            Incoming::Due => Input::Due,
            Incoming::Note(note, happened) => Input::Note(note, happened.as_deref()),
        };
        let mut walk = Walk::new(&plan.graph, pending.run.clone(), input, around);
        let need = walk.next(shell.attributes(contact));
        let redactor = Redactor::new(!plan.masked);
        run_walks.push(RunWalk { place, contact, walk, need, redactor });
    }
    for _ in 0..MAX_ROUNDS {
        shell.look_up_addresses(&run_walks).await?;
        for run_walk in &mut run_walks {
            while let Need::Act(node) = run_walk.need {
                let acted = shell.act(&run_walk.walk, node, run_walk.redactor).await?;
                run_walk.need = run_walk.walk.acted(acted, shell.attributes(run_walk.contact));
            }
        }
        if !shell.answer(&mut run_walks, &workspace_zone).await? {
            break;
        }
    }
    let mut runs: Vec<_> = page.iter().map(|pending| pending.run.clone()).collect();
    let mut counts = Counts::default();
    let mut puts = Vec::with_capacity(run_walks.len());
    for RunWalk { place, mut walk, .. } in run_walks {
        walk.stop();
        let walked = walk.end_of();
        runs[place] = walked.run.clone();
        if walked.is_changed {
            counts.add(&walked);
            let Walked { run, steps, messages, .. } = walked;
            let expect = page[place].expect;
            puts.push(Write::Automation(AutomationWrite::PutRun(Box::new(PutRun { run, expect, steps, messages }))));
        }
    }
    for place in unreadable {
        let steps = fail(&mut runs[place], "the version of the automation cannot be read", now);
        let (run, expect) = (runs[place].clone(), page[place].expect);
        let put = PutRun { run, expect, steps, messages: Vec::new() };
        puts.push(Write::Automation(AutomationWrite::PutRun(Box::new(put))));
    }
    let mut changes: Changes = shell.writes.into_iter().collect();
    changes.extend(puts);
    changes.extend(counts.write(workspace, automation.id));
    let people: Vec<_> = shell.people.into_values().flat_map(|person| person.writes(now)).collect();
    changes.extend(app.with_subscriptions(workspace, people, &Admitting::by_automation()).await?);
    Ok(Advanced { changes, runs })
}

/// A run of the page while it is advanced.
struct RunWalk<'a> {
    /// Index in the page.
    place: usize,
    contact: ContactId,
    walk: Walk<'a>,
    need: Need,
    /// Masks addresses unless the version of the run may see them.
    redactor: Redactor,
}

/// State that the walks of a page share.
struct Shell<'a> {
    app: &'a App,
    workspace: WorkspaceId,
    now: Timestamp,
    people: HashMap<ContactId, Person>,
    /// Writes of messages and jobs.
    writes: Vec<Write>,
    /// Suppressions of the addresses that were looked up; `None` for an address that is not suppressed.
    listed: HashMap<(Channel, String), Option<SuppressionReason>>,
    /// Lists that were looked up, with true for those that exist.
    lists: HashMap<ListId, bool>,
}

impl Shell<'_> {
    fn attributes(&self, contact: ContactId) -> &Map<String, Value> {
        self.people.get(&contact).map_or(&NOTHING, |person| &person.contact.attributes)
    }

    /// Looks up together which of the addresses that the sends of this round may go to are suppressed.
    async fn look_up_addresses(&mut self, run_walks: &[RunWalk<'_>]) -> Result<(), StoreError> {
        let mut wanted = Vec::new();
        for RunWalk { contact, walk, need, .. } in run_walks {
            let Need::Act(node) = need else { continue };
            let NodeKind::Send(send) = &walk.node(*node).kind else { continue };
            let Some(person) = self.people.get(contact) else { continue };
            if let Some((channel, addresses)) = send::addresses(self.app, walk.run(), send, person).await? {
                wanted.extend(addresses.iter().map(|address| (channel, normalize(channel, address))));
            }
        }
        self.look_up(wanted).await
    }

    async fn look_up(&mut self, mut wanted: Vec<(Channel, String)>) -> Result<(), StoreError> {
        wanted.retain(|one| !self.listed.contains_key(one));
        if wanted.is_empty() {
            return Ok(());
        }
        let found = self.app.store().suppressed_anywhere(self.workspace, &wanted).await?;
        self.listed.extend(wanted.into_iter().map(|one| (one, None)));
        for one in found {
            self.listed.insert((one.channel, one.address), Some(one.reason));
        }
        Ok(())
    }

    /// Answers the questions of the walks; returns false if there were none.
    async fn answer(&self, run_walks: &mut [RunWalk<'_>], zone: &TimeZone) -> Result<bool, StoreError> {
        let (mut asks, mut expected) = (Vec::new(), Vec::new());
        for (at, run_walk) in run_walks.iter().enumerate() {
            let Need::Verdicts(questions) = &run_walk.need else { continue };
            let run = run_walk.walk.run();
            let mut verdicts = Vec::with_capacity(questions.len());
            for Question { filter, up_to, at } in questions {
                // A filter that names something removed matches no contact.
                let place = match self.app.askable(self.workspace, filter.clone()).await? {
                    None => None,
                    Some(filter) => {
                        let (entered_at, entry_event) = (Some(run.entered_at), run.entry_event);
                        let span = EventSpan { entered_at, entry_event, up_to: Some(*up_to) };
                        asks.push(FilterQuery { contact_id: run_walk.contact, filter, span, at: *at });
                        Some(asks.len() - 1)
                    }
                };
                verdicts.push(place);
            }
            expected.push((at, verdicts));
        }
        if expected.is_empty() {
            return Ok(false);
        }
        let answers =
            if asks.is_empty() { Vec::new() } else { self.app.store().answers(self.workspace, &asks, zone).await? };
        for (at, places) in expected {
            let verdict = |place: Option<usize>| place.and_then(|place| answers.get(place).copied()).unwrap_or(false);
            let verdicts: Vec<_> = places.into_iter().map(verdict).collect();
            let Some(run_walk) = run_walks.get_mut(at) else { continue };
            run_walk.need = run_walk.walk.answer(&verdicts, self.attributes(run_walk.contact));
        }
        Ok(true)
    }

    /// Executes a node.
    async fn act(&mut self, walk: &Walk<'_>, index: NodeIndex, redactor: Redactor) -> Result<NodeOutcome, StoreError> {
        let (run, node) = (walk.run(), walk.node(index));
        let done = match &node.kind {
            NodeKind::Send(send) => return self.send(walk, send).await,
            NodeKind::UpdateContact(update) => self.update(run, update, redactor).await,
            NodeKind::AddTag(tag) => {
                let update = ContactUpdate { tags_add: vec![tag.clone()], ..ContactUpdate::default() };
                self.update(run, &update, redactor).await
            }
            NodeKind::RemoveTag(tag) => {
                let update = ContactUpdate { tags_remove: vec![tag.clone()], ..ContactUpdate::default() };
                self.update(run, &update, redactor).await
            }
            NodeKind::AddToList(list) => self.join(run, *list, true).await,
            NodeKind::RemoveFromList(list) => self.join(run, *list, false).await,
            NodeKind::Webhook(_) => {
                let job = CallNode::of(run, &node.id);
                self.writes.push(Write::Job(JobWrite::Enqueue(job.enqueue(self.app.new_id(self.now), self.now))));
                return Ok(NodeOutcome::Calling);
            }
            NodeKind::Wait(_)
            | NodeKind::WaitEvent { .. }
            | NodeKind::Condition(_)
            | NodeKind::Split(_)
            | NodeKind::Exit(_) => return Ok(NodeOutcome::Failed("the node has no work".to_owned())),
        };
        match done {
            Ok(()) => Ok(NodeOutcome::Changed),
            Err(Undone::Node(why)) => Ok(NodeOutcome::Failed(why)),
            Err(Undone::Store(error)) => Err(error),
        }
    }

    async fn send(&mut self, walk: &Walk<'_>, send: &Send) -> Result<NodeOutcome, StoreError> {
        let run = walk.run();
        let Some(person) = self.people.get(&run.contact_id) else { return Ok(gone()) };
        if let Some((channel, addresses)) = send::addresses(self.app, run, send, person).await? {
            let spelled = addresses.iter().map(|address| (channel, normalize(channel, address))).collect();
            self.look_up(spelled).await?;
        }
        let Some(person) = self.people.get(&run.contact_id) else { return Ok(gone()) };
        let decision = SendDecision { app: self.app, run, send, person, now: self.now.max(walk.moment()) };
        let listed = &self.listed;
        let why = |channel: Channel, address: &str| listed.get(&(channel, address.to_owned())).copied().flatten();
        let mut writes = Vec::new();
        let acted = decision.decide(why, &mut writes).await?;
        self.writes.append(&mut writes);
        Ok(acted)
    }

    async fn update(&mut self, run: &Run, update: &ContactUpdate, redactor: Redactor) -> Result<(), Undone> {
        let types = self.app.field_types(self.workspace).await?;
        let Some(person) = self.people.get_mut(&run.contact_id) else { return Ok(()) };
        let values = values_of_run(&run.event, &Map::new(), &person.contact, redactor);
        let sent = people::input_of(self.app, update, &person.contact, &values).await?;
        person.update(sent, &types, run.depth).map_err(Undone::Node)
    }

    async fn join(&mut self, run: &Run, list: ListId, is_member: bool) -> Result<(), Undone> {
        if !self.lists.contains_key(&list) {
            let is_there = !self.app.store().lists_among(self.workspace, &[list]).await?.is_empty();
            self.lists.insert(list, is_there);
        }
        if self.lists.get(&list) != Some(&true) {
            return Err(Undone::Node("the list is gone".to_owned()));
        }
        if let Some(person) = self.people.get_mut(&run.contact_id) {
            person.set_membership(list, is_member, run.depth);
        }
        Ok(())
    }
}

/// Ends a run as failed; returns the steps that record the reason.
pub(super) fn fail(run: &mut Run, why: &str, at: Timestamp) -> Vec<RunStep> {
    let mut detail = Map::new();
    detail.insert("message".to_owned(), Value::from(why));
    run.end_outside(RunStatus::Failed, "node_error", detail, at)
}

fn gone() -> NodeOutcome {
    NodeOutcome::Failed("the contact is gone".to_owned())
}

/// Failure to execute a node.
enum Undone {
    /// The node fails, and its run with it.
    Node(String),
    /// The store failed; the node is tried again later.
    Store(StoreError),
}

impl From<StoreError> for Undone {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TextFault> for Undone {
    fn from(fault: TextFault) -> Self {
        match fault {
            TextFault::Broken(why) => Self::Node(why),
            TextFault::Busy => Self::Store(StoreError::Unavailable),
        }
    }
}

/// Numbers of arrivals at nodes and of branches taken by the page.
#[derive(Default)]
struct Counts {
    entered: BTreeMap<String, u32>,
    branches: BTreeMap<(String, String), u32>,
}

impl Counts {
    fn add(&mut self, walked: &Walked) {
        for node in &walked.entered {
            *self.entered.entry(node.clone()).or_default() += 1;
        }
        for branch in &walked.branches {
            *self.branches.entry(branch.clone()).or_default() += 1;
        }
    }

    fn write(self, workspace: WorkspaceId, automation: AutomationId) -> Option<Write> {
        let Self { entered, branches } = self;
        if entered.is_empty() && branches.is_empty() {
            return None;
        }
        let (entered, branches) = (entered.into_iter().collect(), branches.into_iter().collect());
        Some(Write::Automation(AutomationWrite::CountNodes(
            workspace,
            automation,
            Box::new(CountNodes { entered, branches }),
        )))
    }
}
