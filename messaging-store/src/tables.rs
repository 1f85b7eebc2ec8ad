//! What the tables of both databases hold, how it is written, and how it is read: one file for each aggregate.
//!
//! A write is a function over [`Statements`](crate::database::Statements), a read a [`Query`](crate::database::Query);
//! what carries them out is in `sqlite` and `postgres`. Where the databases must differ both texts stand side by side,
//! with the reason.

pub(crate) mod accounts;
pub(crate) mod attempts;
pub(crate) mod audiences;
pub(crate) mod automations;
pub(crate) mod campaigns;
pub(crate) mod channels;
pub(crate) mod contacts;
pub(crate) mod custom_fields;
pub(crate) mod holds;
pub(crate) mod imports;
pub(crate) mod installation;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod messages;
pub(crate) mod numbers;
pub(crate) mod operator_queue;
pub(crate) mod provider_links;
pub(crate) mod quarantine;
pub(crate) mod replies;
pub(crate) mod segments;
pub(crate) mod sending_domains;
pub(crate) mod sign_ins;
pub(crate) mod soft_bounces;
pub(crate) mod templates;
pub(crate) mod urls;
pub(crate) mod webhooks;
