//! Background work: jobs and what runs them.

pub mod signal;
