//! The command line as people and scripts use it.

mod admin;
mod automations;
mod backup;
mod campaigns;
mod completions;
mod dev;
mod domains;
mod exit_codes;
mod faults;
mod help;
mod import;
mod kill;
mod memory;
mod messages;
mod one_server;
mod secret_key;
mod simulate;
mod support;
mod templates;
mod webhooks;
