//! What the operating system tells the process, and gives to it.

use tokio::signal::unix::{SignalKind, signal};

use super::start_error::StartError;

/// Done when the process is told to stop.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + use<>, StartError> {
    let listen = |kind| signal(kind).map_err(|source| StartError::System { attempt: "listen for signals", source });
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Allows the process as many open files as the system lets it: a connection is one.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
