//! Pure rules: values in, values out. No `async`, no clock, no ports.

pub mod account;
pub mod address;
pub mod api_key;
pub mod attachment;
pub mod bounce;
pub mod channel;
pub mod content;
pub mod delivery;
pub mod digest;
pub mod headers;
pub mod ip_block;
pub mod login_attempts;
pub mod message;
pub mod message_input;
pub mod password;
pub mod plain_text;
pub mod provider;
pub mod recipients;
pub mod retry;
pub mod secret;
pub mod sender;
pub mod sending_domain;
pub mod settings;
pub mod simulator;
pub mod suppression;
pub mod user_email;
