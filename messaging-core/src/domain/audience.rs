//! Contacts with their fields, lists, imports and product events, and the suppression list.
//!
//! A field of every contact is a row of [`contact::fields`]; a field that a workspace declares itself is a
//! [`custom_field`]. Filters over all of this are in [`segment`](super::segment).

pub mod contact;
pub mod custom_field;
pub mod form;
pub mod import;
pub mod list;
pub mod page_texts;
pub mod product_event;
pub mod reader_texts;
pub mod soft_bounce;
pub mod subscription;
pub mod suppression;
pub mod unsubscribe;
