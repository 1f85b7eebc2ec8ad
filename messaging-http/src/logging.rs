//! Log lines, written by a separate thread.
//!
//! A request hands its line over and continues; the thread writes the gathered lines in one piece, at most every 25 ms.
//! The queue is bounded: if the terminal or disk is too slow, lines are dropped and counted, and the server is not
//! slowed down.

mod error;

use std::io::{self, IsTerminal as _, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, reload};

pub use error::LogError;

/// Most bytes that may wait to be written; a line beyond is dropped.
const CAPACITY: usize = 4 << 20;

/// Time for which lines gather before they are written together.
const GATHER: Duration = Duration::from_millis(25);

/// Lines dropped by this process. Static because the subscriber is, too: there is one log.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error, for the whole process. Lines are written until the guard is dropped. Lines of
/// libraries are left out at every level, and so are the messages of panics that were formatted at run time.
pub fn start(filter: &str, format: LogFormat) -> Result<LogGuard, LogError> {
    let filter = parse(filter)?;
    let (out, mut guard) = start_log_thread(io::stderr()).map_err(LogError::Thread)?;
    let is_colored = format == LogFormat::Text && io::stderr().is_terminal();
    #[cfg(feature = "otlp")]
    let traces = has_collector().then(crate::otlp::Traces::start).transpose()?;
    let (filtered, filter) = reload::Layer::new(filter);
    let subscriber = tracing_subscriber::registry().with(line_layer(filtered, format, is_colored, out));
    #[cfg(feature = "otlp")]
    let subscriber = subscriber.with(traces.as_ref().map(crate::otlp::Traces::layer));
    subscriber.try_init().map_err(LogError::Taken)?;
    guard.filter = Some(filter);
    panic::set_hook(Box::new(report_panic));
    #[cfg(not(feature = "otlp"))]
    if has_collector() {
        tracing::warn!("OTEL_EXPORTER_OTLP_ENDPOINT is given, but this program was built without the feature `otlp`");
    }
    #[cfg(feature = "otlp")]
    {
        guard.traces = traces;
    }
    Ok(guard)
}

/// Refuses a filter that cannot be parsed.
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter).map(drop)
}

/// Parses a filter such as `info,messaging_http=debug`.
fn parse(filter: &str) -> Result<Targets, LogError> {
    filter.parse().map_err(LogError::Filter)
}

/// Returns true if the variables of OpenTelemetry name a collector.
fn has_collector() -> bool {
    let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The layer that writes a line for each event of this program that the filter lets through. Spans are not written,
/// because they carry data of requests.
fn line_layer<S, F, W>(filter: F, format: LogFormat, is_colored: bool, out: W) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: Filter<S> + 'static,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_target(false).with_ansi(is_colored).with_writer(out);
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    layer.with_filter(filter.and(filter_fn(|metadata| metadata.is_event() && is_ours(metadata.target()))))
}

/// True for lines of this program. Libraries log data, from headers and paths of requests to replies of peers, so no
/// filter lets their lines through.
fn is_ours(target: &str) -> bool {
    target == "messaging" || target.starts_with("messaging_") || target.starts_with("messaging::")
}

/// Logs a panic. A message that was formatted at run time may hold data of requests, so only a literal of the source is
/// logged.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(tracing::field::display);
    let text = panic.payload().downcast_ref::<&'static str>().copied();
    tracing::error!(location, text, "a thread panicked");
}

/// The number of log lines that this process has dropped.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.load(Relaxed)
}

/// Keeps the log thread running. Dropping it waits until the thread has written the remaining lines and ended.
#[derive(Debug)]
pub struct LogGuard {
    /// The queue that the thread writes.
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// Changes the filter of the subscriber; `None` until [`start`] has installed it.
    filter: Option<reload::Handle<Targets, Registry>>,
    #[cfg(feature = "otlp")]
    traces: Option<crate::otlp::Traces>,
}

impl LogGuard {
    /// Sets another filter.
    pub fn set_filter(&self, filter: &str) -> Result<(), LogError> {
        let filter = parse(filter)?;
        // An error means that the subscriber is gone, and with it the log.
        self.filter.as_ref().map_or(Ok(()), |handle| handle.reload(filter).or(Ok(())))
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; a panic in it has been reported.
            let _ = thread.join();
        }
    }
}

/// Lines on the way to the log thread.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Signals that the queue is no longer empty, or that it is closed.
    changed: Condvar,
}

/// The contents of a [`Queue`], guarded by its lock.
#[derive(Debug, Default)]
struct State {
    /// Whole lines that wait to be written.
    bytes: Vec<u8>,
    /// True once the guard is dropped: no more lines are taken.
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the log thread, which writes to `out`. Answers the sender of lines, and the guard without a filter.
fn start_log_thread(mut out: impl Write + Send + 'static) -> io::Result<(LineSender, LogGuard)> {
    let queue = Arc::new(Queue::default());
    let thread_queue = Arc::clone(&queue);
    let thread = thread::Builder::new().name("log".to_owned()).stack_size(128 * 1024).spawn(move || {
        write_lines(&thread_queue, &mut out);
    })?;
    let guard = LogGuard {
        queue: Arc::clone(&queue),
        thread: Some(thread),
        filter: None,
        #[cfg(feature = "otlp")]
        traces: None,
    };
    Ok((LineSender(queue), guard))
}

/// Runs in the log thread: writes the queue's lines, until the queue is closed and empty.
fn write_lines(queue: &Queue, out: &mut impl Write) {
    let mut bytes = Vec::new();
    loop {
        let state = queue.lock();
        let waiting = |state: &mut State| state.bytes.is_empty() && !state.closed;
        let mut state = queue.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            // More lines may follow at once. While this waits, the queue is not empty, so that adding a line does not
            // spend time on waking this thread.
            let gathering = |state: &mut State| !state.closed;
            state =
                queue.changed.wait_timeout_while(state, GATHER, gathering).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut state.bytes, &mut bytes);
        let closed = state.closed;
        drop(state);
        // A failure of the log has no place where it could be reported.
        let _ = out.write_all(&bytes).and_then(|()| out.flush());
        bytes.clear();
        if bytes.capacity() > CAPACITY / 4 {
            bytes = Vec::new();
        }
        if closed {
            return;
        }
    }
}

/// Puts lines into the queue of the log thread. Never waits for the output: a line that has no room is dropped and
/// counted.
#[derive(Debug, Clone)]
struct LineSender(Arc<Queue>);

impl Write for LineSender {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.bytes.len() + line.len() > CAPACITY || state.closed {
            DROPPED.fetch_add(1, Relaxed);
            return Ok(line.len());
        }
        let was_empty = state.bytes.is_empty();
        state.bytes.extend_from_slice(line);
        drop(state);
        if was_empty {
            self.0.changed.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineSender {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Blocks in its first write until told to go on.
    struct Slow(mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_filter_lets_lines_of_libraries_through_nor_spans_into_lines() {
        for filter in ["trace", "hyper=trace,h2=trace,messaging_http=trace"] {
            for format in [LogFormat::Text, LogFormat::Json] {
                let captured = CapturedOutput::default();
                let out = captured.clone();
                let layer = line_layer(parse(filter).unwrap(), format, false, move || out.clone());
                tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                    let _span = tracing::info_span!(target: "messaging_http::trace", "request", to = "ann@example.org")
                        .entered();
                    tracing::info!(target: "messaging_http::access", status = 200, "ours");
                    tracing::error!(target: "hyper::proto", to = "ann@example.org", "theirs");
                    tracing::trace!(target: "h2::codec", to = "ann@example.org", "theirs");
                    tracing::warn!(target: "messagingx", to = "ann@example.org", "theirs");
                });
                let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
                assert!(text.contains("ours") && text.contains("200"), "{filter} {format:?}: {text}");
                assert!(!text.contains("theirs") && !text.contains("ann@"), "{filter} {format:?}: {text}");
            }
        }
    }

    #[test]
    fn everything_is_written_before_the_guard_is_gone_and_a_slow_reader_costs_lines_not_time() {
        let (go, wait) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut lines, guard) = start_log_thread(Slow(wait, Arc::clone(&written))).unwrap();
        lines.write_all(b"first\n").unwrap();
        let before = dropped_lines();
        let long = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            lines.write_all(&long).unwrap();
        }
        assert!(dropped_lines() - before >= 12);
        drop(go);
        drop(guard);
        let written = written.lock().unwrap();
        assert!(written.starts_with(b"first\n"));
        assert!(written.len() >= 3 << 20);
    }
}
