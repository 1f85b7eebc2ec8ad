//! The engine in one thread, over a store and peers that fail by a seeded plan.
//!
//! As `FoundationDB` and `TigerBeetle` are tested: everything that a process meets outside of itself, store, mail
//! servers, receivers of webhooks, time and chance, is simulated, so that a seed decides everything that happens, and
//! a seed that fails does so again. Processes end and freeze at any await, commits are refused or their outcome is
//! not known, claims are lost, the store is full, the clock is set, replies get lost. When everything has come to
//! rest the promises of the product are checked against what an observer outside has noted.
//!
//! A seed becomes a `SimulationPlan` (`plan.rs`); `run.rs` carries it out; `life.rs` is where a process ends or
//! freezes; `store.rs` fails in front of the real SQLite store, which is waited for so that its threads decide nothing
//! (`blocking.rs`); `checks.rs` holds the promises; `planted.rs` the mistakes that they are known to find.
//!
//! To let another operation take part: its call in `requests.rs`. Another promise: a function in `checks.rs`.
//!
//! What is not simulated: threads that product code starts itself (templates, keys, passwords), and the
//! [`Workers`](messaging_engine::work::Workers) of a server, whose loop is woken in an order that tokio draws by lot;
//! processes here call `run_until_idle` instead.

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
