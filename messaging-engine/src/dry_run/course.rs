//! Course of a dry run: the planned events, due jobs, and the events of sent messages, in order.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use messaging_core::changes::{Condition, RunKey, Write};
use messaging_core::domain::audience::product_event::input::{ContactReference, ProductEventInput};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::automation::simulation::{DELIVERED_AFTER, MessageMove};
use messaging_core::domain::automation::{Automation, AutomationStatus};
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::outcome::{Acceptance, AddressFault, Answer, OutcomeClass, Response};
use messaging_core::domain::mail::link_token::{ReturnPurpose, UrlKey};
use messaging_core::domain::mail::report::Report;
use messaging_core::ids::{ContactId, MessageId};
use messaging_core::ports::clock::{Clock as _, ManualClock};
use messaging_core::ports::inbound::{ReceiptLink, ReturnAddress};
use messaging_core::ports::store::{CommitError, PageRequest, RunFilter, StoreError};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, Violations, refuse};
use serde_json::{Map, Value};

use super::peers::Outbox;
use super::world;
use crate::app::App;
use crate::error::Error;
use crate::services::dry_runs::{DryRun, DryRunOutcome, Happening};
use crate::services::entering::ByHand;
use crate::services::visits::{Click, Visitor};

/// Largest number of moments at which something happens or is due.
const MAX_MOMENTS: usize = 50_000;
/// Largest number of steps of all runs, for each contact that takes part.
const MAX_STEPS: usize = 10_000;
/// Number of steps of all runs that is allowed in any case, however few contacts take part.
const MAX_ALL_STEPS: usize = 200_000;
/// Number of moments for each contact when the past of a workspace is replayed.
const MOMENTS_OF_ONE: usize = 1_000;
/// Number of runs that are read at a time.
const PAGE: usize = 200;
/// Time after which a due job that cannot be done now is looked at again.
const STUCK: Duration = Duration::from_secs(1);
/// Address behind every link that is followed.
const LINK: &str = "https://simulation.invalid/";

/// Event at a moment. Events of one moment happen in the order of the variants, then in that of their numbers.
#[derive(Debug)]
enum Input {
    /// The automation becomes active.
    Activate,
    /// A contact enters.
    Enter(ContactId),
    /// The planned event with this index happens.
    Happens(usize),
    /// A message is delivered.
    Delivered(MessageId),
}

impl Input {
    const fn rank(&self) -> u8 {
        match self {
            Self::Activate => 0,
            Self::Enter(_) => 1,
            Self::Happens(_) => 2,
            Self::Delivered(_) => 3,
        }
    }
}

/// A dry run in progress.
pub(super) struct Course<'a> {
    app: &'a App,
    clock: &'a ManualClock,
    outbox: &'a Outbox,
    dry_run: &'a DryRun,
    automation: Option<Automation>,
    inputs: BTreeMap<(Timestamp, u8, usize), Input>,
    added: usize,
    /// Last message of each contact and node.
    messages: HashMap<(ContactId, String), MessageId>,
    /// Times when messages of contacts and nodes bounce.
    bounces: HashMap<(ContactId, String), Vec<Timestamp>>,
}

impl<'a> Course<'a> {
    pub(super) fn new(app: &'a App, clock: &'a ManualClock, outbox: &'a Outbox, dry_run: &'a DryRun) -> Self {
        let mut course = Self {
            app,
            clock,
            outbox,
            dry_run,
            automation: None,
            inputs: BTreeMap::new(),
            added: 0,
            messages: HashMap::new(),
            bounces: HashMap::new(),
        };
        course.plan(dry_run.at, Input::Activate);
        let kind = dry_run.design.trigger.get("kind").and_then(Value::as_str);
        if !matches!(kind, Some("event" | "date")) {
            for participant in &dry_run.people {
                course.plan(participant.enters_at, Input::Enter(participant.contact.id));
            }
        }
        for (index, event) in dry_run.events.iter().enumerate() {
            course.plan(event.at, Input::Happens(index));
            if let Happening::Message(MessageMove::Bounce, node) = &event.what {
                course.bounces.entry((event.contact, node.clone())).or_default().push(event.at);
            }
        }
        course
    }

    fn plan(&mut self, at: Timestamp, input: Input) {
        self.added += 1;
        self.inputs.insert((at, input.rank(), self.added), input);
    }

    /// Advances from moment to moment until the end.
    pub(super) async fn run(mut self) -> Result<DryRunOutcome, Error> {
        let most = if self.dry_run.is_replay { self.dry_run.people.len() * MOMENTS_OF_ONE } else { 0 };
        for _ in 0..most.max(MAX_MOMENTS) {
            let now = self.clock.now();
            let planned = self.inputs.first_key_value().map(|((at, ..), _)| *at);
            let due = self.app.store().next_due(now, self.clock.monotonic()).await?;
            let due = due.map(|wait| now + if wait.is_zero() { STUCK } else { wait });
            let Some(next) = planned.into_iter().chain(due).min().filter(|next| *next <= self.dry_run.until) else {
                return self.told().await;
            };
            self.clock.advance(next.since(now));
            let mut has_entered = false;
            while let Some(entry) = self.inputs.first_entry().filter(|entry| entry.key().0 <= next) {
                let input = entry.remove();
                if matches!(input, Input::Happens(_)) && has_entered {
                    // Contacts that enter at this moment do so before anything else happens.
                    self.app.run_one_by_one().await?;
                    has_entered = false;
                }
                has_entered |= matches!(input, Input::Enter(_));
                self.happen(input).await?;
            }
            self.app.run_one_by_one().await?;
            self.note_sent().await?;
        }
        Err(too_much("more happens until then than a simulation goes through; end earlier"))
    }

    async fn happen(&mut self, input: Input) -> Result<(), Error> {
        match input {
            Input::Activate => {
                let (automation, changes) = world::activation(self.app, self.dry_run, self.clock.now())?;
                self.app.commit(changes).await.map_err(CommitError::into_store_error)?;
                self.automation = Some(automation);
                Ok(())
            }
            Input::Enter(contact) => self.enter(contact).await,
            Input::Delivered(message) => self.message_moves(message, MessageMove::Delivered).await,
            Input::Happens(index) => {
                let event = &self.dry_run.events[index];
                match &event.what {
                    Happening::Product(sent) => self.take(event.contact, sent).await,
                    Happening::Message(what, node) => {
                        let message = self.messages.get(&(event.contact, node.clone())).copied();
                        match message {
                            Some(message) => self.message_moves(message, *what).await,
                            // No message was sent that could be opened.
                            None => Ok(()),
                        }
                    }
                }
            }
        }
    }

    async fn enter(&self, contact: ContactId) -> Result<(), Error> {
        let Some(automation) = &self.automation else { return Ok(()) };
        let entering = self.app.enter_by_hand(automation, contact, Map::new(), self.clock.now()).await?;
        let Some(ByHand::Listed(_, mut writes)) = entering else { return Ok(()) };
        writes.push(Write::Expect(Condition::Automation(
            automation.workspace_id,
            automation.id,
            AutomationStatus::Active,
        )));
        Ok(self.app.commit(writes.into_iter().collect()).await.map_err(CommitError::into_store_error)?)
    }

    async fn take(&self, contact: ContactId, sent: &ProductEventInput) -> Result<(), Error> {
        let named = ContactReference { id: Some(contact.to_string()), ..ContactReference::default() };
        let mut sent = sent.clone();
        sent.contact = Some(named);
        let items = vec![Ok((sent, Violations::new()))];
        let (writes, _) = self.app.take_events(self.dry_run.workspace, items, self.clock.now()).await?;
        Ok(self.app.commit(writes.into_iter().collect()).await.map_err(CommitError::into_store_error)?)
    }

    async fn message_moves(&self, id: MessageId, what: MessageMove) -> Result<(), Error> {
        let (app, workspace) = (self.app, self.dry_run.workspace);
        let receipt = |class, text: &str| Receipt::Outcome(Answer::new(class, Response::of_text(text)));
        let about = ReceiptLink::Message { workspace_id: workspace, message_id: id };
        match what {
            MessageMove::Delivered => {
                let delivered = receipt(OutcomeClass::Accepted(Acceptance::Delivered), "simulated");
                app.receive_receipt(&about, &delivered).await
            }
            MessageMove::Bounce => {
                let bounced = receipt(OutcomeClass::Address(AddressFault::Recipient), "simulated");
                app.receive_receipt(&about, &bounced).await
            }
            MessageMove::Open => app.record_open(workspace, id, &visitor()).await,
            MessageMove::Click => {
                let click = Click { workspace, message: id, key: UrlKey::of(LINK), url: LINK.to_owned(), link: None };
                app.record_click(&click, &visitor()).await
            }
            MessageMove::Complaint => {
                let Some(message) = app.store().message(workspace, id).await? else { return Ok(()) };
                let recipient = Some(app.link_key().recipient_tag(id, &message.to));
                let to = ReturnAddress {
                    workspace_id: workspace,
                    message_id: id,
                    purpose: ReturnPurpose::Bounce,
                    recipient,
                };
                let complaint =
                    Report::Complaint { feedback_type: "abuse".to_owned(), recipients: vec![message.to.clone()] };
                app.receive(&to, &complaint).await
            }
            MessageMove::Unsubscribe => app.unsubscribe(workspace, id, UnsubscribeMethod::OneClick).await.map(drop),
        }
    }

    /// Records the messages that were sent just now, and plans their delivery.
    async fn note_sent(&mut self) -> Result<(), StoreError> {
        let (store, workspace) = (self.app.store(), self.dry_run.workspace);
        for message in self.outbox.take() {
            let Some(key) = store.run_of_message(workspace, message).await? else { continue };
            let Some(run) = store.run(workspace, key.automation_id, key.run_id).await? else { continue };
            let contact = run.record.contact_id;
            let Some(node) = store.run_steps(key).await?.into_iter().find(|step| is_of(step, message)) else {
                continue;
            };
            let node = node.node_id.unwrap_or_default();
            if !self.bounces(contact, &node) {
                self.plan(self.clock.now() + DELIVERED_AFTER, Input::Delivered(message));
            }
            self.messages.insert((contact, node), message);
        }
        Ok(())
    }

    /// Returns true if the message of a node is planned to bounce: then it is not delivered.
    fn bounces(&self, contact: ContactId, node: &str) -> bool {
        let now = self.clock.now();
        let planned = self.bounces.get(&(contact, node.to_owned()));
        planned.is_some_and(|times| times.iter().any(|at| *at > now))
    }

    /// Reads the result of the dry run from its store.
    async fn told(&self) -> Result<DryRunOutcome, Error> {
        let (store, workspace, automation) = (self.app.store(), self.dry_run.workspace, self.dry_run.automation);
        let most = (self.dry_run.people.len() * MAX_STEPS).min(MAX_ALL_STEPS);
        let counts = store.automation_counts(workspace, automation).await?;
        let mut runs: Vec<(Run, Vec<RunStep>)> = Vec::new();
        if self.dry_run.is_replay {
            return Ok(DryRunOutcome { runs, counts });
        }
        let mut page = PageRequest { after: None, limit: PAGE };
        let mut steps = 0;
        loop {
            let slice = store.runs(workspace, automation, &RunFilter::default(), page).await?;
            for run in slice.items {
                let key = RunKey { workspace_id: workspace, automation_id: automation, run_id: run.id };
                let history = store.run_steps(key).await?;
                steps += history.len();
                runs.push((run, history));
            }
            if steps > most {
                return Err(too_much("more steps are taken until then than a simulation shows; end earlier"));
            }
            page.after = slice.next;
            if page.after.is_none() {
                break;
            }
        }
        // The newest came first. Runs that entered at one moment did so in the order of their ids.
        runs.reverse();
        runs.sort_by_key(|(run, _)| run.entered_at);
        Ok(DryRunOutcome { runs, counts })
    }
}

/// Returns the error that a dry run up to this time would do too much.
pub(super) fn too_much(rule: &str) -> Error {
    refuse("/until", FieldCode::OutOfRange, rule).into()
}

/// Returns true if a step sent a message.
fn is_of(step: &RunStep, message: MessageId) -> bool {
    step.outcome == StepOutcome::Sent
        && step.detail.get("message_id").and_then(Value::as_str) == Some(message.to_string().as_str())
}

/// Returns the visitor who opens and clicks: a person with a browser.
fn visitor() -> Visitor {
    Visitor {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64) Simulation/1.0".to_owned()),
        is_head: false,
        is_prefetch: false,
    }
}
