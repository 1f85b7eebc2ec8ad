//! Bringing runs on: what the walks of a page need is looked up for all of them at once, and what they want done becomes
//! one set of changes.

use std::sync::Arc;

use messaging_core::changes::{Changes, Expect};
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::note::{Happened, Note};
use messaging_core::domain::automation::run::Run;

use crate::app::App;
use crate::work::job::JobError;

/// A run that something brings on.
#[derive(Debug)]
pub(crate) struct Going {
    /// The run as it was read, or as it is made ([`Entrance::run`](messaging_core::domain::automation::entering::Entrance::run)).
    pub(crate) run: Run,
    /// What the store has of it.
    pub(crate) expect: Expect,
    /// What brings it on.
    pub(crate) input: Incoming,
}

/// What brings a run on.
#[derive(Debug, Clone)]
pub(crate) enum Incoming {
    /// It is new, or due.
    Due,
    /// Something was noted of its contact. The run does not go first: see
    /// [`goes_before`](messaging_core::domain::automation::step::goes_before).
    Note(Arc<Note>, Option<Arc<Happened>>),
}

/// What a page of runs has come to.
#[derive(Debug)]
pub(crate) struct Advanced {
    /// What is to be committed: runs, their history, counts, messages, contacts, jobs. To it the caller adds what the
    /// commit expects of the automation, and the notes that it takes.
    pub(crate) changes: Changes,
    /// Where the runs stand, in the order of the page.
    pub(crate) runs: Vec<Run>,
}

/// Brings the runs of a page on, each until it waits, ends, or has to be committed before it can go on (it is then still
/// due). A page has at most one entry for a run.
pub(crate) async fn advance(_app: &App, _automation: &Automation, _page: Vec<Going>) -> Result<Advanced, JobError> {
    unimplemented!("follows")
}
