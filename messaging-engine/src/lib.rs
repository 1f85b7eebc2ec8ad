//! The messaging platform as a library: the operations, the background work, and what they share.
//!
//! It opens no socket and no file: everything is reached through the ports of `messaging-core`. Front ends (HTTP,
//! command line) call [`ops`]. Start reading at [`app`].
//!
//! From below: [`app`] holds what is shared, [`services`] decide, [`ops`] and [`work`] are what callers and time ask
//! for. `messaging-core/tests/imports.rs` fails when a file imports from above it.

pub mod admin;
pub mod app;
pub mod caller;
pub mod dispatch;
pub mod error;
pub mod fair_semaphore;
pub mod jobs;
pub mod ops;
pub mod services;
pub mod vault;
pub mod work;

pub use app::{App, Settings};
pub use caller::Caller;
pub use dispatch::Admitted;
pub use error::Error;
pub use messaging_core::domain::message_input::MessageInput as Message;
pub use messaging_core::domain::secret_key::SecretKey;
