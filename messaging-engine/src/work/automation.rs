//! The work on automations.

mod people;
mod send;
pub(super) mod walk;
