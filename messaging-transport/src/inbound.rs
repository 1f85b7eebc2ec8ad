//! Mail that comes back: bounces, complaints, and requests to unsubscribe.

pub mod report;
