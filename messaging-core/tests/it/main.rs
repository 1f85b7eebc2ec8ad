//! The operations and the background work over the SQLite store, in one process, with a manual clock.

mod accounts;
mod admin;
mod bed;
mod channels;
mod delivery;
mod idempotency;
mod input;
mod keys;
mod members;
mod messages;
mod pages;
mod sending_domains;
mod service;
mod support;
mod surface;
mod sweep;
