//! What the operating system tells the process, and gives to it.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::start_error::StartError;

/// What a process ends with that a signal ended, besides the signal's number: as shells show it.
const ENDED_BY_SIGNAL: i32 = 128;

/// Done when the process is told to stop (SIGTERM or SIGINT). Told a second time it ends at once, in the middle of what
/// it does, as after a power cut.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + use<>, StartError> {
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        first_of(&mut terminate, &mut interrupt).await;
        tokio::spawn(async move {
            let second = first_of(&mut terminate, &mut interrupt).await;
            std::process::exit(ENDED_BY_SIGNAL + second.as_raw_value());
        });
    })
}

/// Calls `reload` whenever the process gets SIGHUP, which would end it otherwise. Needs a runtime.
pub fn on_hangup(reload: impl Fn() + Send + 'static) -> Result<(), StartError> {
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reload();
        }
    });
    Ok(())
}

async fn first_of(terminate: &mut Signal, interrupt: &mut Signal) -> SignalKind {
    tokio::select! {
        _ = terminate.recv() => SignalKind::terminate(),
        _ = interrupt.recv() => SignalKind::interrupt(),
    }
}

fn listen(kind: SignalKind) -> Result<Signal, StartError> {
    signal(kind).map_err(|source| StartError::System { attempt: "listen for signals", source })
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
