//! The messaging platform as a library: the operations, the background work, and what they share.
//!
//! It opens no socket and no file: everything is reached through the ports of `messaging-core`. Front ends (HTTP,
//! command line) call [`ops`]. Start reading at [`app`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use messaging_core::domain::message::MessageStatus;
//! use messaging_engine::ops::messages::{GetMessage, MessagePath};
//! use messaging_engine::{App, Caller, Message, SecretKey, admin};
//! use messaging_store::{SqliteOptions, SqliteStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("messaging.db");
//! let store = Arc::new(SqliteStore::open(SqliteOptions::new(path))?);
//! let app = App::builder(store, SecretKey::from_bytes([7; 32]))
//!     .transports(messaging_transport::defaults(&messaging_transport::Options::new("localhost")))
//!     .build()
//!     .await?;
//! // A workspace with a sending domain whose mail the sandbox keeps.
//! let dev = admin::prepare_dev(&app).await?;
//! let caller = Caller::Operator(Some(dev.workspace_id));
//!
//! let message = Message::email("ann@example.com").subject("Hi").text("Hello, Ann.");
//! let accepted = app.send(message, &caller).await?;
//! // A server has `work::Workers` for this.
//! app.run_until_idle().await?;
//!
//! let report = app.run(GetMessage).path(MessagePath { id: accepted.message_id }).by(&caller).await?;
//! assert_eq!(report.status, MessageStatus::Delivered);
//! # Ok(())
//! # }
//! ```
//!
//! From below: [`app`] holds what is shared, [`services`] decide, [`ops`] and [`work`] are what callers and time ask
//! for. `tests/it/layers.rs` fails when a file imports from above it.
//!
//! Modules that documentation does not show (`fair_semaphore`, `jobs`, `vault`) are there for the HTTP server, tests
//! and benches of this repository, and change without notice.

pub mod admin;
pub mod app;
pub mod caller;
pub mod dispatch;
pub mod dry_run;
pub mod error;
#[doc(hidden)]
pub mod fair_semaphore;
#[doc(hidden)]
pub mod jobs;
pub mod ops;
pub mod services;
pub mod spans;
#[doc(hidden)]
pub mod vault;
pub mod work;

pub use app::{AnsweredRequest, App, Settings};
pub use caller::Caller;
pub use dispatch::Admitted;
pub use error::Error;
pub use jobs::upkeep::Sweep;
pub use messaging_core::domain::message::message_input::MessageInput as Message;
pub use messaging_core::domain::security::secret_key::{KeyRing, SecretKey};
pub use vault::KeyRefused;
