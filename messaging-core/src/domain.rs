//! Pure rules: values in, values out. No `async`, no clock, no ports.
//!
//! | folder | what it is about |
//! |---|---|
//! | [`message`] | a message, what is accepted of one, its states and why it was not sent |
//! | [`mail`] | domains, DNS records, signatures, links and headers of email |
//! | [`audience`] | contacts, lists, imports, product events, suppressions |
//! | [`image`] | images that mail shows by their address |
//! | [`search`] | finding contacts and messages by a piece of text |
//! | [`segment`], [`template`], [`campaign`], [`automation`] | what is made of an audience |
//! | [`channel`] | addresses, providers and receipts of the six channels |
//! | [`delivery`] | attempts: lanes, outcomes, bounces, retries, the queue |
//! | [`webhook`] | who hears of events, and deliveries to them |
//! | [`analytics`] | counters, and which visits were people |
//! | [`security`] | users, keys, passwords, secrets, masking |
//! | [`installation`] | checks of the host, the fence of a copy, quarantine |

pub mod analytics;
pub mod audience;
pub mod automation;
pub mod campaign;
pub mod channel;
pub mod delivery;
pub mod image;
pub mod installation;
pub mod limits;
pub mod mail;
pub mod message;
pub mod search;
pub mod security;
pub mod segment;
pub mod template;
pub mod webhook;
