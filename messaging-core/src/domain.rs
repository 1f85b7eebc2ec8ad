//! Pure rules: values in, values out. No `async`, no clock, no ports.

pub mod account;
pub mod address;
pub mod api_key;
pub mod channel;
pub mod digest;
pub mod login_attempts;
pub mod message;
pub mod provider;
pub mod sending_domain;
pub mod settings;
pub mod suppression;
