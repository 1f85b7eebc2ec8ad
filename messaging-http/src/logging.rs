//! Log lines, written by a thread of their own.
//!
//! A request hands its line over and goes on; the thread writes what has gathered in one piece, a few
//! times a second. The queue is bounded: when the terminal or disk is too slow, lines are dropped and
//! counted, and the server is not slowed down.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Bytes that may wait to be written.
const CAPACITY: usize = 4 << 20;

/// How long lines gather before they are written together.
const GATHER: Duration = Duration::from_millis(25);

/// Lines dropped by this process. Static because the subscriber is, too: there is one log.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Logging could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("the log filter is malformed; try `info` or `info,messaging_http=debug`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// The thread that writes could not be started.
    #[error("failed to start the thread that writes the log")]
    Thread(#[source] io::Error),
    /// The process logs already, in a way of its own.
    #[error("the process logs already")]
    Taken(#[source] tracing_subscriber::util::TryInitError),
}

/// Starts logging to standard error, for the whole process. Lines are written until the guard is dropped.
pub fn start(filter: &str, format: LogFormat) -> Result<LogGuard, LogError> {
    let filter = EnvFilter::try_new(filter).map_err(LogError::Filter)?;
    let (lines, guard) = writer(io::stderr()).map_err(LogError::Thread)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(format == LogFormat::Text && io::stderr().is_terminal())
        .with_writer(lines);
    match format {
        LogFormat::Text => subscriber.finish().try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).finish().try_init(),
    }
    .map_err(LogError::Taken)?;
    Ok(guard)
}

/// How many log lines this process has dropped.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.load(Relaxed)
}

/// Writes what is left when dropped.
#[derive(Debug)]
pub struct LogGuard {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It ends by itself; a panic in it has been reported.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn writer(mut out: impl Write + Send + 'static) -> io::Result<(Lines, LogGuard)> {
    let queue = Arc::new(Queue::default());
    let theirs = Arc::clone(&queue);
    let thread = thread::Builder::new().name("log".to_owned()).stack_size(128 * 1024).spawn(move || {
        write_lines(&theirs, &mut out);
    })?;
    Ok((Lines(Arc::clone(&queue)), LogGuard { queue, thread: Some(thread) }))
}

fn write_lines(queue: &Queue, out: &mut impl Write) {
    let mut bytes = Vec::new();
    loop {
        let state = queue.lock();
        let waiting = |state: &mut State| state.bytes.is_empty() && !state.closed;
        let mut state = queue.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            // More lines may follow this one at once. While this waits, the queue is not empty, and
            // nobody pays for waking us.
            let gathering = |state: &mut State| !state.closed;
            state =
                queue.changed.wait_timeout_while(state, GATHER, gathering).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut state.bytes, &mut bytes);
        let closed = state.closed;
        drop(state);
        // There is no place to report that reporting fails.
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

/// Takes lines for the thread.
#[derive(Debug, Clone)]
struct Lines(Arc<Queue>);

impl Write for Lines {
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

impl<'a> MakeWriter<'a> for Lines {
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

    #[test]
    fn everything_is_written_before_the_guard_is_gone_and_a_slow_reader_costs_lines_not_time() {
        let (go, wait) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut lines, guard) = writer(Slow(wait, Arc::clone(&written))).unwrap();
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
