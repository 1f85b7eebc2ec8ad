//! The rules of the messaging platform: its values, what is allowed, and what follows, with the ports through which
//! everything else is reached.
//!
//! No function here waits, opens a socket or a file, or knows the name of an operation: functions take values and
//! return values. Stores and transports implement [`ports`]; `messaging-engine` reads through them, decides with
//! [`domain`], and commits [`changes`].
//!
//! ```
//! use messaging_core::domain::message::message_input::MessageInput;
//! use messaging_core::input;
//!
//! let message = input::body::<MessageInput>(br#"{"channel": "email", "to": "ann", "subject": "Hi", "text": "t", "tags": 7}"#);
//! // All that is wrong is told at once: `/to` is no address, `/tags` no list.
//! assert_eq!(message.unwrap_err().to_string(), "2 fields are invalid");
//!
//! let message = MessageInput::email("ann@example.com").subject("Hi").text("Hello, Ann.");
//! assert!(input::made_body(message).is_ok_and(|(_, violations)| violations.is_empty()));
//! ```
//!
//! # How to add
//!
//! * **A rule**: a pure function in the module of [`domain`] that has the subject, with a table of cases beside it.
//! * **A row** (something that is stored): its type in [`domain`], a variant of [`changes::Write`] for each way in
//!   which it changes, the reading methods in a trait of [`ports::store`], a case in `messaging-conformance`, then the
//!   store itself with a migration.
//! * **A member of a request**: the field with its `validate` attribute in the input type. Schema, document and the
//!   check of all faults at once follow from it ([`input`]).

// The derive names this crate, in here too.
extern crate self as messaging_core;

pub mod changes;
pub mod cursor;
pub mod domain;
pub mod entropy;
pub mod error;
pub mod ids;
pub mod input;
pub mod patch;
pub mod ports;
pub mod revision;
pub mod scope;
pub mod time;
pub mod validate;
pub mod violation;

pub use error::DomainError;
