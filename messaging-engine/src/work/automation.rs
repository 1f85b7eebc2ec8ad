//! The work on automations.

pub(super) mod walk;
