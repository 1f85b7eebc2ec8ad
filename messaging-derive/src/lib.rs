//! The derives of `messaging-core`, for what callers put together.
//!
//! `Validate` checks members by the same `validate` attributes that `schemars` makes their schema of:
//!
//! ```ignore
//! #[derive(Serialize, Deserialize, JsonSchema, Validate, Setters)]
//! #[non_exhaustive]
//! pub struct ListInput {
//!     #[validate(length(min = 1, max = MAX_NAME))]
//!     pub name: String,
//! }
//! ```
//!
//! | attribute | a member breaks it |
//! |---|---|
//! | `length(min = …, max = …)` | when it has fewer or more characters or items |
//! | `range(min = …, max = …)` | when it is smaller or greater |
//! | `required` | when it is `None` |
//! | `nested` | when one of its own members breaks a rule |
//!
//! What is left out breaks nothing but `required`. Everything else is a compile error, so that no rule is in the
//! schema and not checked.
//!
//! `Setters` makes `new`, with what is required, and a chained setter for each other member, so that callers outside of
//! the crate can put together what may get more members later: see [`Setters`](derive_setters).

mod setters;
mod validate;

use syn::{DeriveInput, Error, parse_macro_input};

/// Implements `messaging_core::validate::Validate`.
#[proc_macro_derive(Validate, attributes(validate))]
pub fn derive_validate(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    validate::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Adds `new` and setters.
///
/// Required is what `validate(required)` says, and what is neither an `Option`, a `Patch` nor a `Replace` and has no
/// `serde(default)`. A setter takes what is inside of these three; a list is taken from anything that can be gone through. What a `Patch` holds can be
/// cleared by `clear_…`.
///
/// With `#[setters(default)]` on the struct everything has a setter and there is no `new`: it is made by `Default`.
#[proc_macro_derive(Setters, attributes(setters))]
pub fn derive_setters(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    setters::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}
