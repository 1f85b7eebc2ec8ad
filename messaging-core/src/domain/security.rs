//! Users, keys, passwords and sign-ins, and texts that must not be shown.
//!
//! Permissions are in [`scope`](crate::scope). Secrets are a [`secret::Secret`]; texts that some readers may see only
//! in part are returned through a [`redaction::Redactor`].

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
