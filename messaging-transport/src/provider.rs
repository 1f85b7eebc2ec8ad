//! What the providers over HTTP have in common: their settings, one call, its answer, and their callbacks.
//!
//! An adapter reads its [`Settings`], builds a [`Call`], gives it to [`ProviderClient::call`] within [`to_each`], and
//! says of the [`Reply`] to which class it belongs. Everything that is the same for all of them is decided here: what it
//! means that there was no answer, or one that cannot be read; how long is waited; what of an answer is kept.

pub(crate) mod callback;
mod each;
mod http;
mod settings;

pub(crate) use each::{refused_by_last_look, to_each};
pub(crate) use http::{Call, ProviderClient, Reply, Target};
pub(crate) use settings::{Settings, check_url, misconfigured};

#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
