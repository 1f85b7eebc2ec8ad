//! The operations and the background work over the SQLite store, in one process, with a manual clock.

mod accounts;
mod admin;
mod attempts;
mod bed;
mod channels;
mod delivery;
mod exchangers;
mod idempotency;
mod input;
mod keys;
mod links;
mod members;
mod messages;
mod pages;
mod reports;
mod returned_mail;
mod sending_domains;
mod service;
mod support;
mod suppressions;
mod surface;
mod sweep;
mod unsubscribe;
mod visits;
