//! One life of a process: from its start until it ends, and the points where it can end or freeze.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::signal::Signal;
use crate::world::World;

/// Points of a thousand at which the order of two ready tasks is changed.
const YIELDS: u64 = 250;

/// One life of a process. Every call of the engine to the outside passes [`Life::point`], before and after: these are
/// its awaits, where the process may end, freeze, or let others go first.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) world: Arc<World>,
    /// Number of the process.
    pub(crate) process: usize,
    /// Number of the life, among those of all processes.
    pub(crate) number: usize,
    /// Milliseconds by which the clock of its machine is ahead of the store's.
    pub(crate) clock_ahead_ms: i64,
    /// Points that the process has passed, in all its lives.
    points: Arc<AtomicU64>,
    is_over: Signal<bool>,
    is_frozen: Arc<Signal<bool>>,
    /// The number of times that the process was frozen in this life.
    freezes: AtomicU64,
}

impl Life {
    pub(crate) fn begin(world: &Arc<World>, process: usize, points: &Arc<AtomicU64>) -> Arc<Self> {
        let number = world.ledger().begin_life();
        let clock_ahead_ms = world.draw(|dice| *dice.pick(&[0, 0, -250, 900, 7_200_000]));
        Arc::new(Self {
            world: Arc::clone(world),
            process,
            number,
            clock_ahead_ms,
            points: Arc::clone(points),
            is_over: Signal::new(false),
            is_frozen: Arc::default(),
            freezes: AtomicU64::new(0),
        })
    }

    /// Adds a line about this process to the trace.
    pub(crate) fn note(&self, line: fmt::Arguments<'_>) {
        self.world.note(format_args!("p{}.{} {line}", self.process, self.number));
    }

    /// An await. Does not return once the process has ended.
    pub(crate) async fn point(&self, what: &str) {
        self.stop_if_over().await;
        let passed = self.points.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.world.is_calm() {
            let plan = &self.world.plan;
            if plan.crashes.iter().any(|crash| crash.process == self.process && crash.at_point == passed) {
                self.note(format_args!("ends at {what}"));
                self.end();
            } else if let Some(freeze) =
                plan.freezes.iter().find(|freeze| freeze.process == self.process && freeze.at_point == passed)
            {
                self.freeze(what, freeze.length);
            }
        }
        if self.world.draw(|dice| dice.chance(YIELDS)) {
            for _ in 0..=self.world.draw(|dice| dice.below(4)) {
                tokio::task::yield_now().await;
            }
        }
        self.is_frozen.wait_for(|is_frozen| !is_frozen).await;
        self.stop_if_over().await;
    }

    async fn stop_if_over(&self) {
        if self.is_over() {
            pending::<()>().await;
        }
    }

    /// Ends the process: none of its tasks continues.
    pub(crate) fn end(&self) {
        self.world.ledger().life_ended(self.number);
        self.is_over.change(|is_over| *is_over = true);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Number of times that it was frozen so far.
    pub(crate) fn freezes(&self) -> u64 {
        self.freezes.load(Ordering::Relaxed)
    }

    /// Returns when the process has ended.
    pub(crate) async fn over(&self) {
        self.is_over.wait_for(|is_over| *is_over).await;
    }

    /// Stops the process for a time, like a suspended machine.
    fn freeze(&self, what: &str, length: Duration) {
        self.note(format_args!("freezes at {what} for {length:?}"));
        self.world.ledger().life_frozen(self.number);
        self.freezes.fetch_add(1, Ordering::Relaxed);
        self.is_frozen.change(|is_frozen| *is_frozen = true);
        let is_frozen = Arc::clone(&self.is_frozen);
        tokio::spawn(async move {
            tokio::time::sleep(length).await;
            is_frozen.change(|is_frozen| *is_frozen = false);
        });
    }
}
