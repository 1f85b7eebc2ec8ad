//! Derives of `messaging-core`, for structs that callers build.
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
//! A member that is absent breaks only `required`. Any other attribute is a compile error, so that no rule is in the
//! schema without being checked.
//!
//! `Setters` adds `new`, with the required members, and a chained setter for each other member, so that callers outside
//! of the crate can build structs that may get more members later: see [`Setters`](derive_setters).

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
/// A member is required if it has `validate(required)`, or if it is neither an `Option`, a `Patch` nor a `Replace` and
/// has no `serde(default)`. A setter takes the type within these three; a list is taken from any iterator. A `Patch` is
/// cleared by `clear_…`.
///
/// With `#[setters(default)]` on the struct everything has a setter and there is no `new`: it is made by `Default`.
#[proc_macro_derive(Setters, attributes(setters))]
pub fn derive_setters(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    setters::derive(&input).unwrap_or_else(Error::into_compile_error).into()
}
