//! Input and outcome of a dry run, as data: operations do not depend on how it is done ([`dry_run`](crate::dry_run)).

use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::audience::product_event::input::ProductEventInput;
use messaging_core::domain::automation::Design;
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::automation::simulation::MessageMove;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{AutomationId, ContactId, Id, WorkspaceId};
use messaging_core::ports::store::AutomationCounts;
use messaging_core::time::Timestamp;

/// A complete design of an automation, and the events to try it out with.
#[derive(Debug, Clone)]
pub(crate) struct DryRun {
    pub(crate) workspace: WorkspaceId,
    pub(crate) automation: AutomationId,
    pub(crate) design: Design,
    /// Contacts that take part, each once.
    pub(crate) people: Vec<Participant>,
    /// Events that happen, those of one moment in this order.
    pub(crate) events: Vec<Planned>,
    /// When the automation becomes active.
    pub(crate) at: Timestamp,
    /// Time when the dry run ends.
    pub(crate) until: Timestamp,
    /// True if the dry run replays the past of a whole workspace, of which only counts are wanted.
    pub(crate) is_replay: bool,
}

/// Contact that takes part.
#[derive(Debug, Clone)]
pub(crate) struct Participant {
    /// The contact. Lists that do not exist are left out.
    pub(crate) contact: Contact,
    /// True if the workspace has the contact: then its stored data counts.
    pub(crate) is_stored: bool,
    /// Time when it enters, if the trigger waits neither for an event nor for a date.
    pub(crate) enters_at: Timestamp,
    /// Events of the contact before the dry run.
    pub(crate) past: Vec<ProductEvent>,
}

/// Event that happens at a time.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) at: Timestamp,
    pub(crate) contact: ContactId,
    pub(crate) what: Happening,
}

/// Something that is planned to happen in a dry run.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// A product event, of whatever contact it names.
    Product(Box<ProductEventInput>),
    /// An event of the last message that a node sent; with the id of the node.
    Message(MessageMove, String),
}

/// Runs of a dry run with their steps, and how often each node was reached.
#[derive(Debug)]
pub(crate) struct DryRunOutcome {
    /// The runs in the order of entry, with their steps.
    pub(crate) runs: Vec<(Run, Vec<RunStep>)>,
    /// Numbers of runs by status, and of arrivals, waits and branches taken by node.
    pub(crate) counts: AutomationCounts,
}

/// Returns an id derived from a text: a hypothetical contact gets the same random split every time.
pub(crate) fn made_id<I: Id>(text: &str) -> I {
    let digest = Digest::of(&format!("{}:{text}", I::PREFIX));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    // Ids begin with a time, and a store takes none of before 1970.
    bytes[0] &= 0x03;
    I::from_bytes(bytes)
}
