//! Background work: jobs, and what runs them.
//!
//! A job is a row written in the transaction of its cause, so nothing is lost between "saved" and
//! "queued". The runner claims due jobs in batches over fair lanes, runs each on its own task, and is
//! woken by commits. A job does its own last commit, because only it knows what to decide again when
//! the data changed meanwhile.
//!
//! # How to add a job
//!
//! Its payload in [`jobs`](crate::jobs), a type that implements [`JobData`](crate::jobs::JobData); the work in a file
//! here, as `Job` of that type; a line in `all`.

use crate::jobs::call_node::CallNode;
use crate::jobs::cancel_waiting::CancelWaiting;
use crate::jobs::delete_workspace::DeleteWorkspace;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::deliver_webhook::DeliverWebhook;
use crate::jobs::drain_webhook::DrainWebhook;
use crate::jobs::erase_contact::EraseContact;
use crate::jobs::follow_changes::FollowChanges;
use crate::jobs::imports::{ExpireImport, ImportContacts};
use crate::jobs::move_messages::MoveMessages;
use crate::jobs::publish_keys::PublishKeys;
use crate::jobs::recalculate_segment::RecalculateSegment;
use crate::jobs::register_callback::RegisterCallback;
use crate::jobs::replay_webhook::ReplayWebhook;
use crate::jobs::run_automation::{EnterExisting, FollowDates, RunAutomation};
use crate::jobs::run_campaign::RunCampaign;
use crate::jobs::send_confirmation::SendConfirmation;
use crate::jobs::send_fallback::SendFallback;
use crate::jobs::settle_receipt::SettleReceipt;
use crate::jobs::upkeep::Upkeep;
use crate::jobs::verify_domain::VerifyDomain;
use crate::jobs::work_on_queue::WorkOnQueue;

mod automation;
mod call_node;
mod campaign;
pub(crate) mod cancel_waiting;
pub(crate) mod delete_workspace;
mod deliver;
mod deliver_webhook;
mod delivery_batch;
mod drain_webhook;
mod erase_contact;
mod follow_changes;
mod import_contacts;
mod index_search;
mod job;
mod keep_paths;
mod lanes;
mod move_messages;
mod paused_lanes;
mod publish_keys;
mod recalculate_segment;
mod register_callback;
mod repeated_failure;
mod replay_webhook;
mod runner;
mod send_confirmation;
mod send_fallback;
mod settle_receipt;
mod start;
pub mod sweep;
mod verify_domain;
mod webhook_attempt;
mod work_on_queue;

pub(crate) use job::JobType;
pub use runner::Workers;

/// Every job type.
pub(crate) const fn all() -> &'static [JobType] {
    const ALL: &[JobType] = &[
        JobType::of::<CallNode>(),
        JobType::of::<CancelWaiting>(),
        JobType::of::<DeleteWorkspace>(),
        JobType::of::<DeliverMessage>(),
        JobType::of::<DeliverWebhook>(),
        JobType::of::<DrainWebhook>(),
        JobType::of::<EnterExisting>(),
        JobType::of::<EraseContact>(),
        JobType::of::<FollowChanges>(),
        JobType::of::<FollowDates>(),
        JobType::of::<ExpireImport>(),
        JobType::of::<ImportContacts>(),
        JobType::of::<MoveMessages>(),
        JobType::of::<PublishKeys>(),
        JobType::of::<RecalculateSegment>(),
        JobType::of::<RegisterCallback>(),
        JobType::of::<ReplayWebhook>(),
        JobType::of::<RunAutomation>(),
        JobType::of::<RunCampaign>(),
        JobType::of::<SendConfirmation>(),
        JobType::of::<SendFallback>(),
        JobType::of::<SettleReceipt>(),
        JobType::of::<Upkeep>(),
        JobType::of::<VerifyDomain>(),
        JobType::of::<WorkOnQueue>(),
    ];
    ALL
}
