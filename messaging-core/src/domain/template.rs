//! Templates: what they are made of, and how they are rendered.
//!
//! Contract section 11.

pub mod budget;
pub mod engine;
mod escape;
pub mod fault;
mod filters;
pub mod gate;
mod guard;
mod positions;
pub mod variables;
#[cfg(test)]
mod tests;
