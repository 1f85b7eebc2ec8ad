//! Running what is written for both databases, and waits on PostgreSQL alone.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::fault::Fault;

/// The outcome of what waits for nothing but answers of SQLite, which are there at once.
pub(super) fn at_once<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Fault::Panicked),
    }
}
