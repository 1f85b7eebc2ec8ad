//! Who may do what: users, keys, passwords, and texts that must not be shown.
//!
//! Rights themselves are in [`scope`](crate::scope). What is secret is a [`secret::Secret`]; what others may see only in
//! part goes through a [`redaction::Redactor`].

pub mod account;
pub mod api_key;
pub mod audit;
pub mod caller_network;
mod cbor;
pub mod digest;
pub mod factor;
pub mod ip_block;
pub mod login_attempts;
pub mod oidc;
pub mod page_cursor;
pub mod passkey;
pub mod password;
pub mod proof_of_work;
pub mod recovery_code;
pub mod redaction;
pub mod request_log;
pub mod secret;
pub mod secret_key;
pub mod secret_members;
pub mod signature;
pub mod totp;
pub mod user_email;
pub mod web_url;
