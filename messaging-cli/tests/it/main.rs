//! The command line as people and scripts use it.

mod admin;
mod automations;
mod backup;
mod campaigns;
mod completions;
mod confirming;
mod console;
mod day_two;
mod dev;
mod doctor;
mod domains;
mod exit_codes;
mod exports;
mod fake_providers;
mod faults;
mod help;
mod import;
mod import_from;
mod kill;
mod memory;
mod messages;
mod names;
mod observability;
mod one_server;
#[cfg(feature = "postgres")]
mod postgres;
mod readme;
mod resend;
mod scripts;
mod secret_key;
mod show_as;
mod signals;
mod simulate;
mod support;
mod templates;
mod webhooks;
