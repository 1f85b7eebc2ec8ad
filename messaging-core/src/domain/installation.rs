//! The installation as a whole: what is checked of its host, and what it holds back.
//!
//! A check of `messaging doctor` is a function in [`checkup`] and a row in `docs/doctor.md`.

pub mod checkup;
pub mod fence;
pub mod quarantine;
