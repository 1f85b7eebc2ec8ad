//! The messaging platform without its edges: the domain, the operations, the background work, and the
//! ports through which everything else is reached.
//!
//! Core opens no socket and no file. Front ends (HTTP, command line) call [`ops`]; stores and transports
//! implement [`ports`]. Start reading at [`app`].

pub mod changes;
pub mod domain;
pub mod error;
pub mod ids;
pub mod patch;
pub mod ports;
pub mod scope;
pub mod time;
pub mod violation;

pub use error::Error;
