//! Work that blocks, away from the threads that answer requests.

use std::io;

use super::fault::Fault;

/// Runs file work where it may block.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Fault::Panicked)??)
}
