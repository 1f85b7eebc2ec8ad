//! What is tried out in a dry run, and what comes of it: as data, so that operations need not know how it is done
//! ([`dry_run`](crate::dry_run)).

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

/// A design that is complete, and what shall happen in it.
#[derive(Debug, Clone)]
pub(crate) struct DryRun {
    pub(crate) workspace: WorkspaceId,
    pub(crate) automation: AutomationId,
    pub(crate) design: Design,
    /// Who takes part, each another contact.
    pub(crate) people: Vec<Participant>,
    /// What happens; those of one moment in this order.
    pub(crate) events: Vec<Planned>,
    /// When the automation becomes active.
    pub(crate) at: Timestamp,
    /// When it ends.
    pub(crate) until: Timestamp,
    /// Whether it goes through the past of a whole workspace, of which only counts are wanted.
    pub(crate) is_replay: bool,
}

/// Somebody who takes part.
#[derive(Debug, Clone)]
pub(crate) struct Participant {
    /// The contact. Lists that are not there are left out.
    pub(crate) contact: Contact,
    /// Whether the workspace has it: then what is known of it counts.
    pub(crate) is_stored: bool,
    /// When it enters, where the trigger waits neither for an event nor for a date.
    pub(crate) enters_at: Timestamp,
    /// What it did before the dry run.
    pub(crate) past: Vec<ProductEvent>,
}

/// Something that happens at a time.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) at: Timestamp,
    pub(crate) contact: ContactId,
    pub(crate) what: Happening,
}

/// Something that is planned to happen in a dry run.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// A product event, whatever contact it names.
    Product(Box<ProductEventInput>),
    /// Something is done with the last message that a node sent.
    Message(MessageMove, String),
}

/// Runs of a dry run with their steps, and how often each node was reached.
#[derive(Debug)]
pub(crate) struct DryRunOutcome {
    /// The runs in the order of entry, with what they did.
    pub(crate) runs: Vec<(Run, Vec<RunStep>)>,
    /// Numbers of runs by status, and of arrivals, waits and branches taken by node.
    pub(crate) counts: AutomationCounts,
}

/// An id that follows from a text: of a contact that is only thought of, so that it draws the same share every time.
pub(crate) fn made_id<I: Id>(text: &str) -> I {
    let digest = Digest::of(&format!("{}:{text}", I::PREFIX));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    // Ids begin with a time, and a store takes none of before 1970.
    bytes[0] &= 0x03;
    I::from_bytes(bytes)
}
