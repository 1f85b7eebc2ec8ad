//! Progress of a run: a pure function of the graph, the run, the input that moves it, and answers from outside.
//!
//! Contract section 13.4. A [`Walk`] goes from node to node until the run waits or ends. It looks nothing up:
//! [`Walk::next`] returns what it needs, either verdicts about the contact or the work of a node, and the caller
//! answers by [`Walk::answer`] or [`Walk::acted`]. So a caller with many walks can look up the answers for all of them
//! at once. The changes to be stored are returned as a [`Walked`].
//!
//! If a walk has changed something that its next question may see, it stops, and the run continues once the change is
//! committed.

mod draw;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::MAX_STEPS;
use super::graph::{Awaited, Graph, Node, NodeIndex, NodeKind};
use super::history::{RunStep, StepOutcome};
use super::note::{Cause, Happened, Note};
use super::run::{CallEnd, Held, Run, RunStatus};
use super::time::{WaitEnd, Zones, later};
use crate::domain::message::hold::HoldReason;
use crate::domain::segment::filter::{Condition, Filter, Leaf, Within};
use crate::domain::segment::values::Present;
use crate::ids::{EventId, MessageId};
use crate::time::Timestamp;

/// The branch of nodes that have no choice.
const NEXT: &str = "next";

/// Cause by which a run continues: it is due, or something happened to its contact.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// The run is due: it begins, its wait is over, a call has ended, or it stopped half-way.
    Due,
    /// Something happened to the contact; with the stored event that the note refers to, if there is one.
    Note(&'a Note, Option<&'a Happened>),
}

/// Facts that a walk reads besides the run and the answers to its questions.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// When the automation was last activated: nothing that a pause held up happens before.
    pub activated_at: Option<Timestamp>,
    /// Time zone for the contact's waits.
    pub zones: Zones<'a>,
    /// The workspace's zone, for the values of events.
    pub zone: &'a TimeZone,
}

/// A question about the contact.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// One leaf, without values of an event.
    pub filter: Filter,
    /// Last event that counts; events accepted later had not happened yet.
    pub up_to: EventId,
    /// Moment as of which the question is asked.
    pub at: Timestamp,
}

/// Input that a walk needs before it can continue.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Verdicts, one for each question: see [`Walk::answer`].
    Verdicts(Vec<Question>),
    /// The work of a node to be done: see [`Walk::acted`].
    Act(NodeIndex),
    /// Nothing: the run waits, has ended, or stopped.
    Nothing,
}

/// Outcome of the work of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeOutcome {
    /// A message is sent.
    Sent(MessageId),
    /// No message is sent.
    Skipped(SkipReason),
    /// The message has to wait.
    Held {
        /// Reason of the wait.
        reason: HoldReason,
        /// End of the wait.
        until: Timestamp,
    },
    /// The contact was changed.
    Changed,
    /// A web address is called, by a job.
    Calling,
    /// The node cannot do its work; the text gives the reason to the author of the automation.
    Failed(String),
}

/// Reason why a node sends no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// The contact has not agreed.
    NoConsent,
    /// The address is suppressed.
    Suppressed,
    /// The contact has received as many messages as the frequency cap allows.
    FrequencyCap,
    /// The contact has no address.
    NoAddress,
}

impl SkipReason {
    /// Returns the word for the reason in the history of a run.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoConsent => "no_consent",
            Self::Suppressed => "suppressed",
            Self::FrequencyCap => "frequency_cap",
            Self::NoAddress => "no_address",
        }
    }
}

/// Result of a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct Walked {
    /// The run after the walk, with its new status and node.
    pub run: Run,
    /// True if the walk has changed the run.
    pub is_changed: bool,
    /// Steps that the run took on this walk, in order, for its history.
    pub steps: Vec<RunStep>,
    /// Messages that the run sends, each with the id of its node.
    pub messages: Vec<(MessageId, String)>,
    /// Ids of the nodes that the run arrived at.
    pub entered: Vec<String>,
    /// Branches that the run took at nodes with a choice, as id of the node and name of the branch.
    pub branches: Vec<(String, String)>,
}

/// Returns the moment as of which a due run continues: its due time, but not before the last activation of its
/// automation.
pub fn moment_of_due(run: &Run, activated_at: Option<Timestamp>) -> Option<Timestamp> {
    run.due_at.map(|due| activated_at.map_or(due, |activated| due.max(activated)))
}

/// Returns true if a run has to continue by itself before it handles something accepted at `accepted_at`: it is active,
/// or its wait was over earlier. Something accepted at the very moment that a wait ends is handled before that end.
pub fn goes_before(run: &Run, accepted_at: Timestamp, activated_at: Option<Timestamp>) -> bool {
    let is_earlier = |due: Timestamp| run.status == RunStatus::Active || due < accepted_at;
    run.status.is_open() && moment_of_due(run, activated_at).is_some_and(is_earlier)
}

/// A run on its way through its graph.
#[derive(Debug)]
pub struct Walk<'a> {
    graph: &'a Graph,
    around: Surroundings<'a>,
    /// Time as of which the walk happens: when the run was due or the note was accepted, but not before the last
    /// activation.
    moment: Timestamp,
    /// Last event that counts in questions.
    up_to: EventId,
    walked: Walked,
    stage: Stage<'a>,
    /// True if this walk has changed something that questions may see.
    is_dirty: bool,
    /// True if this walk may have changed the contact's time zone.
    is_elsewhere: bool,
}

#[derive(Debug)]
enum Stage<'a> {
    Begin(Input<'a>),
    /// The run stands at a node and has to be tested before the node does its work.
    Arrived(NodeIndex),
    /// Verdicts are awaited.
    Asked(Box<PendingFilters>, Then<'a>),
    /// The work of a node is awaited.
    Acting(NodeIndex),
    Over,
}

/// Continuation after goal and exit conditions were tested and did not end the run.
#[derive(Debug, Clone, Copy)]
enum Then<'a> {
    /// The node does its work.
    Perform(NodeIndex),
    /// The event of a note is tested against the wait of the run, and may end it.
    Meet(&'a Note, Option<&'a Happened>),
}

/// Filters that were asked about.
#[derive(Debug, Default)]
struct PendingFilters {
    goal: Option<Filter>,
    exits: Vec<Filter>,
    condition: Option<Filter>,
}

impl PendingFilters {
    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.goal.iter().chain(&self.exits).chain(&self.condition)
    }
}

impl<'a> Walk<'a> {
    /// Starts a walk of a run. A caller with a note first makes sure that the run does not continue by itself before it
    /// ([`goes_before`]).
    pub fn new(graph: &'a Graph, run: Run, input: Input<'a>, around: Surroundings<'a>) -> Self {
        let accepted = match input {
            Input::Due => run.due_at.unwrap_or(run.arrived_at),
            Input::Note(note, _) => note.at,
        };
        let moment = around.activated_at.map_or(accepted, |activated| accepted.max(activated));
        let up_to = match (input, run.entry_event) {
            (Input::Note(Note { cause: Cause::Event(id) | Cause::Message { event_id: id, .. }, .. }, _), _) => *id,
            (Input::Note(note, _), _) => EventId::last_of(note.at),
            // The run has come here from its entry without a wait.
            (Input::Due, Some(entry)) if moment == run.entered_at && entry.made_at() == moment => entry,
            // Events accepted at the very moment come before.
            (Input::Due, _) => EventId::last_of(moment),
        };
        let walked = Walked {
            run,
            is_changed: false,
            steps: Vec::new(),
            messages: Vec::new(),
            entered: Vec::new(),
            branches: Vec::new(),
        };
        Self { graph, around, moment, up_to, walked, stage: Stage::Begin(input), is_dirty: false, is_elsewhere: false }
    }

    /// Returns the run in its present state.
    pub const fn run(&self) -> &Run {
        &self.walked.run
    }

    /// Returns the time as of which the walk happens.
    pub const fn moment(&self) -> Timestamp {
        self.moment
    }

    /// Returns a node of the graph.
    pub fn node(&self, index: NodeIndex) -> &'a Node {
        &self.graph.nodes[index]
    }

    /// Continues as far as possible. `attributes` are the contact's, including the changes of this walk.
    pub fn next(&mut self, attributes: &Map<String, Value>) -> Need {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Begin(input) => self.begin(input),
                Stage::Arrived(node) => {
                    let asked = self.tests(Some(node));
                    if let Some(need) = self.ask(asked, Then::Perform(node)) {
                        return need;
                    }
                    if let Some(need) = self.perform(node, attributes) {
                        return need;
                    }
                }
                Stage::Asked(asked, then) => {
                    let need = Need::Verdicts(self.questions(&asked));
                    self.stage = Stage::Asked(asked, then);
                    return need;
                }
                Stage::Acting(node) => {
                    self.stage = Stage::Acting(node);
                    return Need::Act(node);
                }
                Stage::Over => return Need::Nothing,
            }
        }
    }

    /// Answers [`Need::Verdicts`], in the order of the questions.
    pub fn answer(&mut self, verdicts: &[bool], attributes: &Map<String, Value>) -> Need {
        let Stage::Asked(asked, then) = std::mem::replace(&mut self.stage, Stage::Over) else { return Need::Nothing };
        let mut rest = verdicts.iter().copied();
        let mut holds = |filter: &Filter| {
            let leaves = filter.leaves_at("").len();
            let verdicts: Vec<_> = rest.by_ref().take(leaves).collect();
            (holds(filter, &mut verdicts.iter().copied()), verdicts)
        };
        let is_goal = asked.goal.as_ref().is_some_and(|goal| holds(goal).0);
        let exits: Vec<_> = asked.exits.iter().map(|exit| holds(exit).0).collect();
        if is_goal {
            self.end(RunStatus::Completed, Some("goal".to_owned()), Map::new());
        } else if exits.contains(&true) {
            self.end(RunStatus::Exited, Some("exit_condition".to_owned()), Map::new());
        } else {
            match then {
                Then::Meet(note, happened) => self.meet(note, happened),
                Then::Perform(node) => match asked.condition.as_ref() {
                    Some(condition) => {
                        let (is_met, verdicts) = holds(condition);
                        self.decide(node, condition, is_met, &verdicts);
                    }
                    None => {
                        if let Some(need) = self.perform(node, attributes) {
                            return need;
                        }
                    }
                },
            }
        }
        self.next(attributes)
    }

    /// Answers [`Need::Act`].
    pub fn acted(&mut self, acted: NodeOutcome, attributes: &Map<String, Value>) -> Need {
        let Stage::Acting(node) = std::mem::replace(&mut self.stage, Stage::Over) else { return Need::Nothing };
        self.walked.is_changed = true;
        let was_held = self.walked.run.held.take();
        match acted {
            NodeOutcome::Sent(message) => {
                self.walked.messages.push((message, self.graph.nodes[node].id.clone()));
                let detail = object(json!({"message_id": message.to_string()}));
                self.tell(StepOutcome::Sent, None, None, detail);
                self.leave(node, NEXT);
            }
            NodeOutcome::Skipped(reason) => {
                self.tell(StepOutcome::Skipped, None, Some(reason.as_str()), Map::new());
                self.leave(node, NEXT);
            }
            NodeOutcome::Held { reason, until } => {
                let since = match was_held {
                    Some(Held::Sending { reason: before, since }) if before == reason => since,
                    _ => {
                        let reason = serde_json::to_value(reason).unwrap_or_default();
                        let detail = object(json!({"until": until}));
                        self.tell(StepOutcome::Waiting, None, reason.as_str(), detail);
                        self.moment
                    }
                };
                self.walked.run.held = Some(Held::Sending { reason, since });
                self.rest(Some(until));
            }
            NodeOutcome::Changed => {
                self.is_dirty = true;
                self.is_elsewhere |= matches!(&self.graph.nodes[node].kind, NodeKind::UpdateContact(update) if update.timezone.is_some());
                self.tell(StepOutcome::Changed, None, None, Map::new());
                self.leave(node, NEXT);
            }
            NodeOutcome::Calling => {
                self.walked.run.held = Some(Held::Calling);
                self.rest(None);
            }
            NodeOutcome::Failed(why) => self.fail(&why),
        }
        self.next(attributes)
    }

    /// Stops a walk that is not over after enough rounds of questions; the run continues at once in another walk.
    pub fn stop(&mut self) {
        if !matches!(self.stage, Stage::Over) && self.walked.is_changed {
            self.pause_here();
        }
        self.stage = Stage::Over;
    }

    /// Returns the result of the walk.
    pub fn end_of(self) -> Walked {
        self.walked
    }

    fn begin(&mut self, input: Input<'a>) {
        let run = &self.walked.run;
        if !run.status.is_open() {
            return;
        }
        let place = run.node_id.as_deref().map(|id| self.graph.find(id));
        match (input, place) {
            (Input::Due, None) => {
                self.tell(StepOutcome::Entered, None, None, Map::new());
                self.arrive(self.graph.entry);
            }
            (Input::Note(..), None) => {}
            (_, Some(None)) => self.fail("the node is not in the graph"),
            (Input::Due, Some(Some(node))) => self.go_on(node),
            (Input::Note(note, happened), Some(Some(_))) => {
                let asked = self.tests(None);
                self.stage = Stage::Asked(Box::new(asked), Then::Meet(note, happened));
                if matches!(&self.stage, Stage::Asked(asked, _) if asked.filters().next().is_none()) {
                    self.stage = Stage::Over;
                    self.meet(note, happened);
                }
            }
        }
    }

    /// Continues a run at a node because its due time has come.
    fn go_on(&mut self, node: NodeIndex) {
        let run = &mut self.walked.run;
        if run.due_at.is_none() {
            return;
        }
        let kind = &self.graph.nodes[node].kind;
        match (run.status, kind, run.held.take()) {
            (RunStatus::Active, _, _) => self.stage = Stage::Arrived(node),
            (_, NodeKind::Wait(_), _) => {
                self.walked.is_changed = true;
                self.tell(StepOutcome::Continued, None, None, Map::new());
                self.leave(node, NEXT);
            }
            (_, NodeKind::WaitEvent { .. }, _) => {
                self.walked.is_changed = true;
                self.choose(node, StepOutcome::Continued, "timeout", Map::new());
            }
            (_, NodeKind::Webhook(_), Some(Held::Called(end))) => self.called(node, end),
            (_, _, held @ Some(Held::Sending { .. })) => {
                run.held = held;
                self.stage = Stage::Arrived(node);
            }
            // The reason of the wait is not known any more: the node does its work anew.
            _ => self.stage = Stage::Arrived(node),
        }
    }

    fn called(&mut self, node: NodeIndex, end: CallEnd) {
        self.walked.is_changed = true;
        let branch = if end.is_success() { NEXT } else { "error" };
        let detail = match end {
            CallEnd::Answered(status) => object(json!({"status": status})),
            CallEnd::Failed(error) => object(json!({"error": error})),
            CallEnd::Broken(why) => return self.fail(&why),
        };
        self.choose(node, StepOutcome::Called, branch, detail);
    }

    /// Ends the wait of the run if the event of the note is the awaited one. Goal and exit conditions were tested
    /// before.
    fn meet(&mut self, note: &Note, happened: Option<&Happened>) {
        let run = &self.walked.run;
        let Some(node) = run.node_id.as_deref().and_then(|id| self.graph.find(id)) else { return };
        let NodeKind::WaitEvent { on, .. } = &self.graph.nodes[node].kind else { return };
        let (Some(happened), RunStatus::Waiting) = (happened, run.status) else { return };
        let present = Present { now: note.at, zone: self.around.zone.clone() };
        if note.at <= run.arrived_at || !meets(on, happened, &run.event, &present) {
            return;
        }
        let event = match &note.cause {
            Cause::Event(id) => Some(*id),
            Cause::Message { event_id, .. } => Some(*event_id),
            _ => None,
        };
        self.walked.is_changed = true;
        let detail = event.map(|id| object(json!({"event_id": id.to_string()}))).unwrap_or_default();
        self.choose(node, StepOutcome::Continued, "event", detail);
    }

    fn arrive(&mut self, node: NodeIndex) {
        let run = &mut self.walked.run;
        let id = &self.graph.nodes[node].id;
        run.status = RunStatus::Active;
        run.node_id = Some(id.clone());
        run.arrived_at = self.moment;
        run.due_at = Some(self.moment);
        run.held = None;
        run.steps = run.steps.saturating_add(1);
        self.walked.is_changed = true;
        if run.steps > MAX_STEPS {
            let reason = Some("steps".to_owned());
            return self.end(RunStatus::Failed, reason, Map::new());
        }
        self.walked.entered.push(id.clone());
        self.stage = Stage::Arrived(node);
    }

    /// Returns the filters to be asked about: goal, exit conditions, and the condition of the node that the run stands
    /// at.
    fn tests(&self, node: Option<NodeIndex>) -> PendingFilters {
        let event = &self.walked.run.event;
        let condition = match node.map(|node| &self.graph.nodes[node].kind) {
            Some(NodeKind::Condition(filter)) => Some(filter.bind(event)),
            _ => None,
        };
        let test = |filter: &Filter| since_entry(filter.bind(event));
        PendingFilters {
            goal: self.graph.goal.as_ref().map(test),
            exits: self.graph.exit_conditions.iter().map(test).collect(),
            condition,
        }
    }

    fn questions(&self, asked: &PendingFilters) -> Vec<Question> {
        let leaves = asked.filters().flat_map(|filter| filter.leaves_at(""));
        let question = |(_, leaf): (String, &Leaf)| Question {
            filter: Filter::Where(Condition::Leaf(leaf.clone())),
            up_to: self.up_to,
            at: self.moment,
        };
        leaves.map(question).collect()
    }

    /// Asks about the filters, if there are any; stops if the answers would not see what this walk has changed.
    fn ask(&mut self, asked: PendingFilters, then: Then<'a>) -> Option<Need> {
        asked.filters().next()?;
        if self.is_dirty {
            self.pause_here();
            return Some(Need::Nothing);
        }
        let need = Need::Verdicts(self.questions(&asked));
        self.stage = Stage::Asked(Box::new(asked), then);
        Some(need)
    }

    /// Leaves the run active at its node, and due at once.
    fn pause_here(&mut self) {
        let run = &mut self.walked.run;
        if run.status == RunStatus::Active {
            run.due_at = Some(self.moment);
        }
    }

    /// Does the work of a node, or returns what the caller has to do for it.
    fn perform(&mut self, node: NodeIndex, attributes: &Map<String, Value>) -> Option<Need> {
        let run = &self.walked.run;
        if self.is_elsewhere && matches!(self.graph.nodes[node].kind, NodeKind::Wait(_) | NodeKind::WaitEvent { .. }) {
            self.pause_here();
            return Some(Need::Nothing);
        }
        match &self.graph.nodes[node].kind {
            NodeKind::Wait(wait) => match wait.end(self.moment, attributes, self.around.zones) {
                WaitEnd::At(until) => self.wait(until),
                end @ (WaitEnd::Past | WaitEnd::Missing) => {
                    let reason = if end == WaitEnd::Past { "past" } else { "missing" };
                    self.tell(StepOutcome::Continued, None, Some(reason), Map::new());
                    self.leave(node, NEXT);
                }
            },
            NodeKind::WaitEvent { timeout, .. } => {
                let until = later(self.moment, *timeout, self.around.zones.contact);
                self.wait(until);
            }
            NodeKind::Split(shares) => {
                let drawn = draw::draw(run.automation_id, &self.graph.nodes[node].id, run.contact_id);
                let branch = draw::branch(shares, drawn).to_owned();
                self.choose(node, StepOutcome::Branched, &branch, object(json!({"draw": drawn})));
            }
            NodeKind::Exit(reason) => {
                let reason = reason.clone().unwrap_or_else(|| "exit".to_owned());
                self.end(RunStatus::Exited, Some(reason), Map::new());
            }
            // A condition without leaves is met by everyone.
            NodeKind::Condition(filter) => self.decide(node, filter, true, &[]),
            NodeKind::Send(_)
            | NodeKind::UpdateContact(_)
            | NodeKind::AddToList(_)
            | NodeKind::RemoveFromList(_)
            | NodeKind::AddTag(_)
            | NodeKind::RemoveTag(_)
            | NodeKind::Webhook(_) => {
                self.stage = Stage::Acting(node);
                return Some(Need::Act(node));
            }
        }
        None
    }

    fn decide(&mut self, node: NodeIndex, condition: &Filter, is_met: bool, verdicts: &[bool]) {
        let leaves = condition.leaves_at("/filter");
        let told = leaves.iter().zip(verdicts).map(|((pointer, _), held)| json!({"pointer": pointer, "held": held}));
        let detail = object(json!({"leaves": told.collect::<Vec<_>>()}));
        self.choose(node, StepOutcome::Branched, if is_met { "yes" } else { "no" }, detail);
    }

    fn wait(&mut self, until: Timestamp) {
        self.tell(StepOutcome::Waiting, None, None, object(json!({"until": until})));
        self.rest(Some(until));
    }

    fn rest(&mut self, until: Option<Timestamp>) {
        self.walked.is_changed = true;
        let run = &mut self.walked.run;
        run.status = RunStatus::Waiting;
        run.due_at = until;
    }

    /// Leaves a node that has a choice.
    fn choose(&mut self, node: NodeIndex, outcome: StepOutcome, branch: &str, detail: Map<String, Value>) {
        self.walked.branches.push((self.graph.nodes[node].id.clone(), branch.to_owned()));
        self.tell(outcome, Some(branch), None, detail);
        self.leave(node, branch);
    }

    fn leave(&mut self, node: NodeIndex, branch: &str) {
        match self.graph.nodes[node].branches.get(branch) {
            Some(next) => self.arrive(*next),
            None => self.end(RunStatus::Completed, None, Map::new()),
        }
    }

    fn fail(&mut self, why: &str) {
        let detail = object(json!({"message": why}));
        self.end(RunStatus::Failed, Some("node_error".to_owned()), detail);
    }

    fn end(&mut self, status: RunStatus, reason: Option<String>, detail: Map<String, Value>) {
        self.walked.is_changed = true;
        let step = self.walked.run.end(status, reason, detail, self.moment);
        self.walked.steps.push(step);
        self.stage = Stage::Over;
    }

    fn tell(&mut self, outcome: StepOutcome, branch: Option<&str>, reason: Option<&str>, detail: Map<String, Value>) {
        self.walked.steps.push(RunStep {
            at: self.moment,
            node_id: self.walked.run.node_id.clone(),
            outcome,
            branch: branch.map(ToOwned::to_owned),
            reason: reason.map(ToOwned::to_owned),
            detail,
        });
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns true if a filter holds, given the verdicts about its leaves in their order.
fn holds(filter: &Filter, verdicts: &mut dyn Iterator<Item = bool>) -> bool {
    /// Returns the verdicts on all parts. Every leaf has a verdict, so each is taken whatever the others say.
    fn all(parts: &[Condition], verdicts: &mut dyn Iterator<Item = bool>) -> Vec<bool> {
        parts.iter().map(|part| of(part, verdicts)).collect()
    }
    fn of(condition: &Condition, verdicts: &mut dyn Iterator<Item = bool>) -> bool {
        match condition {
            Condition::And(parts) => !all(parts, verdicts).contains(&false),
            Condition::Or(parts) => all(parts, verdicts).contains(&true),
            Condition::Not(part) => !of(part, verdicts),
            Condition::Leaf(_) => verdicts.next().unwrap_or(false),
        }
    }
    match filter {
        Filter::Everyone => true,
        Filter::Where(condition) => of(condition, verdicts),
    }
}

/// Limits events in a goal or exit condition to those since the entry, unless the condition has a period of its own.
fn since_entry(filter: Filter) -> Filter {
    fn of(condition: Condition) -> Condition {
        let all = |parts: Vec<Condition>| parts.into_iter().map(of).collect();
        match condition {
            Condition::And(parts) => Condition::And(all(parts)),
            Condition::Or(parts) => Condition::Or(all(parts)),
            Condition::Not(part) => Condition::Not(Box::new(of(*part))),
            Condition::Leaf(Leaf::Event(mut leaf)) => {
                leaf.within = leaf.within.or(Some(Within::SinceEntry));
                Condition::Leaf(Leaf::Event(leaf))
            }
            Condition::Leaf(Leaf::Message(mut leaf)) => {
                leaf.within = leaf.within.or(Some(Within::SinceEntry));
                Condition::Leaf(Leaf::Message(leaf))
            }
            Condition::Leaf(leaf) => Condition::Leaf(leaf),
        }
    }
    match filter {
        Filter::Everyone => Filter::Everyone,
        Filter::Where(condition) => Filter::Where(of(condition)),
    }
}

/// Returns true if an event is the one that a run waits for.
fn meets(on: &Awaited, happened: &Happened, event: &Map<String, Value>, present: &Present) -> bool {
    match (on, happened) {
        (Awaited::Event(leaf), Happened::Event(product)) => {
            let (leaf, properties) = (leaf.bind(event), product.properties.members());
            leaf.name == product.name && leaf.properties.iter().all(|test| test.holds(&properties, present))
        }
        (Awaited::Message(leaf), Happened::Message(fact)) => leaf.is(fact, present),
        _ => false,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
