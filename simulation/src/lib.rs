//! The engine in one thread, over a store and peers that fail by a seeded plan.
//!
//! As `FoundationDB` and `TigerBeetle` are tested: everything outside of a process, store, mail servers, receivers of
//! webhooks, time and randomness, is simulated, so that a seed decides everything that happens, and a seed that fails
//! does so again. Processes end and freeze at any await, commits are refused or have an unknown outcome, claims are
//! lost, the store is full, the clock is changed, replies get lost. When all work is done, the promises of the product
//! are compared with the notes of an outside observer.
//!
//! A seed becomes a `SimulationPlan` (`plan.rs`); `run.rs` carries it out; `life.rs` is where a process ends or
//! freezes; `store.rs` fails in front of the real SQLite store, whose threads are waited for so that they decide
//! nothing (`blocking.rs`); `checks.rs` holds the promises; `planted.rs` the mistakes that they are known to find.
//!
//! To add an operation: its call in `requests.rs`. To add a promise: a function in `checks.rs`.
//!
//! Not simulated: threads that product code starts itself (templates, keys, passwords), and the
//! [`Workers`](messaging_engine::work::Workers) of a server, whose loop tokio wakes in a random order; processes here
//! call `run_until_idle` instead.

mod blocking;
mod caller;
mod checks;
mod clock;
mod dice;
mod fixture;
mod front_end;
mod ledger;
mod letters;
mod life;
mod log;
mod mail;
mod plan;
mod planted;
mod process;
mod receiver;
mod requests;
mod run;
mod signal;
mod store;
mod world;

pub use planted::Planted;
pub use run::{Options, Report, run};
