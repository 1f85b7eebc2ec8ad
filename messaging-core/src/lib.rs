//! The messaging platform without its edges: the domain, the operations, the background work, and the
//! ports through which everything else is reached.
//!
//! Core opens no socket and no file. Front ends (HTTP, command line) call [`ops`]; stores and transports
//! implement [`ports`]. Start reading at [`app`].

pub mod admin;
pub mod app;
pub mod caller;
pub mod changes;
pub mod domain;
pub mod error;
pub mod fair_semaphore;
pub mod ids;
pub mod ops;
pub mod patch;
pub mod ports;
pub mod scope;
pub mod time;
pub mod vault;
pub mod violation;
pub mod work;

pub use app::{App, Settings};
pub use caller::Caller;
pub use error::Error;
pub use vault::SecretKey;
