//! The operations and the background work over the SQLite store, in one process, with a manual clock.

mod delivery;
mod messages;
mod support;
