//! Templates: what they are made of, and how they are rendered.
//!
//! Contract section 11.

pub mod budget;
pub mod css;
pub mod engine;
mod escape;

pub mod fault;
mod filters;
pub mod gate;
mod guard;
mod markup;
pub mod mjml;
mod positions;
pub mod variables;
#[cfg(test)]
mod tests;
