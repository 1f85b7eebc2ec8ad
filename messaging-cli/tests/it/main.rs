//! The command line as people and scripts use it.

mod admin;
mod advice;
mod automations;
mod backup;
mod campaigns;
mod completions;
mod confirming;
mod console;
mod dev;
mod doctor;
mod domains;
mod exit_codes;
mod fake_providers;
mod faults;
mod help;
mod import;
mod import_from;
mod kill;
mod memory;
mod messages;
mod observability;
mod one_server;
#[cfg(feature = "postgres")]
mod postgres;
mod readme;
mod scripts;
mod secret_key;
mod show_as;
mod signals;
mod simulate;
mod starts;
mod support;
mod templates;
mod webhooks;
