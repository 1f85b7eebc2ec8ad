//! Mail: sending domains and senders, the DNS records that prove them, and the preparation of an email.
//!
//! A rule about addresses of all channels belongs to [`channel`](super::channel), the meaning of a server's reply to
//! [`delivery`](super::delivery). A new header or record is a module here, and `messaging-transport` writes it.

pub mod auto_dns;
pub mod dkim;
pub mod dmarc;
pub mod dns_record;
pub mod domain_name;
pub mod free_mail;
pub mod headers;
#[cfg(feature = "html")]
pub(in crate::domain) mod html_events;
pub mod link_token;
pub mod mta_sts;
#[cfg(feature = "html")]
pub mod plain_text;
pub mod public_suffix;
pub mod received_signature;
pub mod report;
pub mod returned;
pub mod sender;
pub mod sending_domain;
pub mod spf;
pub mod tag_list;
#[cfg(feature = "html")]
pub mod tracking;
#[cfg(feature = "html")]
pub mod unsubscribe_header;
pub mod verification;
