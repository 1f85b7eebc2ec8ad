//! What the operating system tells the process, and gives to it.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::notify;
use super::start_error::StartError;
use crate::settings::{Reload, SettingsArgs};

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

/// Has the settings read again whenever the process gets SIGHUP, by whoever reads them as `given`. In a terminal that ends
/// the process, as it ends whatever else runs there. Needs a runtime.
pub fn reload_on_hangup(reload: &Arc<Reload>, given: SettingsArgs) -> Result<(), StartError> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    let mut hangup = listen(SignalKind::hangup())?;
    let reload = Arc::downgrade(reload);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let Some(reload) = reload.upgrade() else { return };
            notify::tell(notify::State::Reloading);
            reload.apply(given.clone().with_file());
            notify::tell(notify::State::Ready);
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
