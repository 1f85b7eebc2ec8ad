//! What operations and jobs share: each file adds to [`App`](crate::app::App) what its subject needs.
//!
//! Services read through the store, decide with the rules of `messaging-core`, and answer the writes that follow.
//! They know no operation and no job; a job is enqueued as data ([`jobs`](crate::jobs)).

pub(crate) mod acceptance;
mod audiences;
pub(crate) mod auto_dns;
pub(crate) mod automation_readiness;
pub(crate) mod automations;
pub mod callbacks;
mod campaign_readiness;
mod campaign_stats;
pub(crate) mod campaign_test;
pub(crate) mod campaigns;
pub(crate) mod cancelling;
mod chains;
pub mod checkup;
mod commit;
mod consent;
pub(crate) mod dkim;
mod domain_looks;
pub(crate) mod domain_reports;
pub(crate) mod dry_runs;
pub(crate) mod email_parts;
pub(crate) mod entering;
pub(crate) mod events;
pub(crate) mod fallbacks;
pub(crate) mod filters;
pub(crate) mod images;
pub(crate) mod importing;
pub(crate) mod inbound_messages;
pub(crate) mod ingesting;
pub(crate) mod lookups;
pub(crate) mod message_content;
pub(crate) mod message_parts;
mod observing;
mod obstacles;
pub(crate) mod page_size;
mod passwords;
mod quarantine;
pub(crate) mod queue;
mod receipts;
mod reports;
mod restored_automations;
mod restored_campaigns;
mod role_mail;
mod secret_keys;
mod secrets;
mod segments;
mod sign_ins;
mod source_choice;
pub(crate) mod sources;
mod spf_looks;
pub(crate) mod suppressing;
pub(crate) mod templates;
pub(crate) mod texts;
pub(crate) mod tickets;
mod unsubscribe;
mod until_committed;
pub(crate) mod uploading;
pub(crate) mod upserting;
mod urls;
pub(crate) mod visits;
mod workspace_ends;

pub use dkim::UnusableKey;
pub use uploading::Uploading;
pub use visits::{Click, Visitor};
