//! Waiting for other threads while the simulation stands still.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::runtime::Runtime;

/// Runtime for the tasks that a store spawns: the runtime of the simulation stands still while it waits.
static HELPER: OnceLock<Runtime> = OnceLock::new();

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread. Nothing else of the simulation runs meanwhile, and no virtual time passes, so
/// that the order of everything depends on the seed alone and not on how fast the threads of a store are.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let helper = HELPER.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_time().build().expect("a runtime can be started")
    });
    let _entered = helper.enter();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    // The budget of the task that waits would make a channel pretend that it is not ready.
    let mut future = pin!(tokio::task::coop::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
