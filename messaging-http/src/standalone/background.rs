//! The threads of the workers.

use messaging_engine::App;
use messaging_engine::work::Workers;
use tokio::runtime;

use super::start_error::StartError;

/// Background work gets the processor time that requests leave: about a hundredth under full load.
const BACKGROUND_NICENESS: i32 = 19;

/// The workers, on threads with a lower priority than those that answer requests.
#[derive(Debug)]
pub(super) struct Background {
    workers: Option<Workers>,
    runtime: Option<runtime::Runtime>,
}

impl Background {
    /// Starts the workers of an application.
    pub(super) fn start(app: &App) -> Result<Self, StartError> {
        let runtime = runtime::Builder::new_multi_thread()
            .thread_name("work")
            .thread_stack_size(THREAD_STACK)
            .enable_all()
            .on_thread_start(give_way)
            .build()
            .map_err(|source| StartError::System { attempt: "start the threads of the workers", source })?;
        Ok(Self { workers: Some(Workers::start(app, runtime.handle())), runtime: Some(runtime) })
    }

    /// Stops the workers after their present work.
    pub(super) async fn stop(mut self) {
        if let Some(workers) = self.workers.take() {
            workers.stop().await;
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A runtime must not be waited for where another one runs.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The stack of our threads: nothing here recurses deeply.
pub const THREAD_STACK: usize = 1 << 20;

/// Lowers the priority of the calling thread. On Linux a thread can be named where a process is meant.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICENESS) {
        tracing::debug!(%error, "a worker thread keeps its priority");
    }
}
