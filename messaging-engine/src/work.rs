//! Background work: jobs, and what runs them.
//!
//! A job is a row written in the transaction of its cause, so nothing is lost between "saved" and
//! "queued". The runner claims due jobs in batches over fair lanes, runs each on its own task, and is
//! woken by commits. A job does its own last commit, because only it knows what to decide again when
//! the data changed meanwhile. To add one: a type that implements [`Job`], a line in `all`.

mod compose;
pub mod deliver_message;
pub mod deliver_webhook;
mod delivery;
mod delivery_progress;
pub mod drain_webhook;
pub mod erase_contact;
pub mod follow_changes;
pub mod import_contacts;
pub mod job;
mod lanes;
pub mod move_messages;
pub mod recalculate_segment;
pub mod replay_webhook;
mod runner;
pub(crate) mod signal;
pub mod sweep;
mod transaction_log;
pub mod verify_domain;
mod webhook_attempt;

pub use job::{Job, JobContext, JobError, JobType};
pub use runner::Workers;

/// Every job type.
pub(crate) const fn all() -> &'static [JobType] {
    const ALL: &[JobType] = &[
        JobType::of::<deliver_message::DeliverMessage>(),
        JobType::of::<deliver_webhook::DeliverWebhook>(),
        JobType::of::<drain_webhook::DrainWebhook>(),
        JobType::of::<erase_contact::EraseContact>(),
        JobType::of::<follow_changes::FollowChanges>(),
        JobType::of::<import_contacts::ExpireImport>(),
        JobType::of::<import_contacts::ImportContacts>(),
        JobType::of::<move_messages::MoveMessages>(),
        JobType::of::<recalculate_segment::RecalculateSegment>(),
        JobType::of::<replay_webhook::ReplayWebhook>(),
        JobType::of::<verify_domain::VerifyDomain>(),
    ];
    ALL
}
