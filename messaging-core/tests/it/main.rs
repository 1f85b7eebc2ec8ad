//! The operations and the background work over the SQLite store, in one process, with a manual clock.

mod accounts;
mod admin;
mod attempts;
mod bed;
mod channels;
mod contact_bulk;
mod contact_messages;
mod contacts;
mod delivery;
mod idempotency;
mod input;
mod keys;
mod lists;
mod members;
mod messages;
mod pages;
mod service;
mod support;
mod surface;
mod sweep;
mod unsubscribe;
