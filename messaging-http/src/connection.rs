//! One connection: its socket, how long it may be quiet, and its end.
//!
//! The timeouts are implemented here instead of by hyper: a connection that waits for its next request differs from one
//! whose request trickles in, both HTTP versions need them, and a deadline that is checked now and then costs a request
//! nothing.

pub(crate) mod activity;
mod stream;

use std::pin::pin;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use self::activity::{QuietTimeouts, Verdict};
use self::stream::Stream;
use crate::connection_limiter::ConnectionPermit;
use crate::pipeline::Pipeline;

/// The phase of the server: running, or shutting down in two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Requests are accepted.
    Running,
    /// Running requests are finished, no further ones are accepted.
    Stopping,
    /// Time is up.
    Aborting,
}

/// Serves a connection to its end, or until it has to make room for another one.
pub(crate) async fn serve(
    socket: TcpStream,
    permit: ConnectionPermit,
    builder: Arc<Builder<TokioExecutor>>,
    pipeline: Arc<Pipeline>,
    timeouts: QuietTimeouts,
    mut phase: watch::Receiver<Phase>,
) {
    // Answers are written in one piece; waiting for more would only delay them.
    let _ = socket.set_nodelay(true);
    let (peer, activity) = (permit.address, Arc::clone(&permit.activity));
    let stream = Stream::new(socket, Arc::clone(&activity));
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request| Arc::clone(&pipeline).serve(request, peer, Arc::clone(&activity)))
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut watchdog = pin!(sleep(timeouts.shorter()));
    let mut evicted = pin!(permit.evicted());
    let (mut stopping, mut leaving) = (false, false);
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = watchdog.as_mut() => match activity.verdict(timeouts) {
                Verdict::Wait(until) => watchdog.as_mut().reset(until),
                Verdict::Close => return,
            },
            () = evicted.as_mut(), if !leaving => {
                if activity.waits_for_peer() {
                    return;
                }
                // A request has begun to run meanwhile: it is answered first.
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            now = next_phase(&mut phase, stopping) => {
                if now == Phase::Aborting {
                    return;
                }
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Waits for the phase after the present one.
async fn next_phase(phase: &mut watch::Receiver<Phase>, stopping: bool) -> Phase {
    let present = if stopping { Phase::Stopping } else { Phase::Running };
    // The server holds the sender until all connections are gone; without it there is nothing to serve.
    phase.wait_for(|phase| *phase != present).await.map_or(Phase::Aborting, |phase| *phase)
}
