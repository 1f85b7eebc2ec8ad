//! Transactional email, campaigns, automations and six channels inside your own program.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use messaging::Message;
//!
//! let app = messaging::open("data").await?;
//! app.send(Message::email("ann@example.com").subject("Hi").text("Hello, Ann.")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`open`] creates the directory `data` with a SQLite database, its secret key and a workspace, and starts the workers
//! that send. [`Messaging::send`] returns once the message is on disk: it survives the end of the process, and messages
//! accepted before a crash are sent after the next start.
//!
//! # From the first try to production
//!
//! Without a sender, email is captured instead of sent: [`Messaging::captured`] shows it. Mail leaves as soon as the
//! program names a sender:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let app = messaging::builder("data").hostname("mail.example.com").sender("hello@example.com").open().await?;
//! // Publish these, then ask for a look at them; until they are there, sending is refused.
//! for record in app.dns_records().await? {
//!     println!("{} {:?} {}", record.host, record.kind, record.value);
//! }
//! app.verify_sender().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Builder::channel`] chooses a provider: a relay instead of direct delivery for email, and providers for SMS, push,
//! Telegram, WhatsApp and Viber. [`Builder::configure`] reaches everything else: transports of your own, retry
//! schedules, the clock.
//!
//! # Hearing what becomes of a message
//!
//! [`Messaging::message`] reports one message with the reason for its state. [`Messaging::events`] waits for events,
//! from a cursor that your program keeps beside its own data.
//!
//! # Everything else
//!
//! Contacts, templates, segments, campaigns and automations are operations in [`ops`], called with [`Messaging::app`]:
//!
//! ```
//! # async fn example(app: messaging::Messaging) -> Result<(), messaging::Error> {
//! use messaging::ops::lists::{CreateList, ListInput};
//!
//! let list = app.app().run(CreateList).body(ListInput::new("Customers")).by(app.caller()).await?;
//! println!("{}", list.id);
//! # Ok(())
//! # }
//! ```
//!
//! The crates below this one are re-exported: [`core`] (the domain, and the ports that a store or transport of your own
//! implements), [`engine`], [`store`], [`transport`], and with the feature `http` the server.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod events;
mod open_error;
mod setup;
mod workspace;

use std::path::PathBuf;

pub use messaging_core as core;
pub use messaging_engine as engine;
pub use messaging_engine::{App, Caller, Error, Message, Settings, admin, ops};
#[cfg(feature = "http")]
pub use messaging_http as http;
pub use messaging_store as store;
pub use messaging_transport as transport;

pub use crate::builder::Builder;
pub use crate::events::Events;
pub use crate::open_error::OpenError;
pub use crate::workspace::Messaging;

/// Opens the messaging data in a directory, which is created if it does not exist, and starts sending.
///
/// Short for [`builder`] without further settings. Must be called on a tokio runtime.
pub async fn open(directory: impl Into<PathBuf>) -> Result<Messaging, OpenError> {
    builder(directory).open().await
}

/// Returns a builder for the messaging data in a directory; [`Builder::open`] opens it.
pub fn builder(directory: impl Into<PathBuf>) -> Builder {
    Builder::new(directory.into())
}
