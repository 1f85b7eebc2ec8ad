//! Parts that the HTTP providers share: settings, one call, its answer, and callbacks.
//!
//! An adapter reads its [`Settings`], builds a [`Call`], passes it to [`ProviderClient::call`] within [`to_each`], and
//! gives the [`Reply`] a class. Everything that is the same for all of them is decided here: the outcome without an
//! answer, or with one that cannot be parsed; the wait; the parts of an answer that are kept.

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
