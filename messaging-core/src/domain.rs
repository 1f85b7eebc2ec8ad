//! Pure rules: values in, values out. No `async`, no clock, no ports.

pub mod account;
pub mod address;
pub mod api_key;
pub mod attachment;
pub mod channel;
pub mod digest;
pub mod headers;
pub mod ip_block;
pub mod login_attempts;
pub mod message;
pub mod message_input;
pub mod password;
pub mod provider;
pub mod secret;
pub mod sender;
pub mod sending_domain;
pub mod settings;
pub mod suppression;
pub mod user_email;
