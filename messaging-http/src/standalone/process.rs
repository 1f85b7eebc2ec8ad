//! Signals of the operating system to the process, and its limit of open files.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::notify;
use super::start_error::StartError;
use crate::settings::{Reload, SettingsArgs};

/// Exit code of a process that a signal ended, to which the signal's number is added, as shells do.
const ENDED_BY_SIGNAL: i32 = 128;

/// Listens for SIGTERM and SIGINT; the future ends when the first of them arrives. A second one, once the future has
/// ended, makes the process exit at once, in the middle of its work, as if the power were cut. Needs a Tokio runtime.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + use<>, StartError> {
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        next_stop_signal(&mut terminate, &mut interrupt).await;
        tokio::spawn(async move {
            let second = next_stop_signal(&mut terminate, &mut interrupt).await;
            std::process::exit(ENDED_BY_SIGNAL + second.as_raw_value());
        });
    })
}

/// Reads the settings again and applies them by `reload` whenever the process gets SIGHUP: those in `given` and those
/// of the file that it names. In a terminal the process does not listen, so that SIGHUP, which the terminal sends when
/// it is closed, ends it like any other program there. Needs a Tokio runtime.
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

/// Waits for either signal and answers which of them came.
async fn next_stop_signal(terminate: &mut Signal, interrupt: &mut Signal) -> SignalKind {
    tokio::select! {
        _ = terminate.recv() => SignalKind::terminate(),
        _ = interrupt.recv() => SignalKind::interrupt(),
    }
}

/// Listens for a signal from now on, in place of its default effect.
fn listen(kind: SignalKind) -> Result<Signal, StartError> {
    signal(kind).map_err(|source| StartError::System { attempt: "listen for signals", source })
}

/// Raises the limit of open files to the most that the system allows the process, because each connection is an open
/// file. A failure is only logged.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
