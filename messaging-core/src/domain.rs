//! Pure rules: values in, values out. No `async`, no clock, no ports.

pub mod analytics;
pub mod audience;
pub mod automation;
pub mod campaign;
pub mod channel;
pub mod delivery;
pub mod installation;
pub mod limits;
pub mod mail;
pub mod message;
pub mod security;
pub mod segment;
pub mod template;
pub mod webhook;
