//! State shared by all processes of a run: randomness, time, and the trace.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use messaging_core::ports::Clock as _;

use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::ledger::Ledger;
use crate::plan::SimulationPlan;
use crate::planted::Planted;
use crate::process::Cluster;
use crate::signal::Signal;

/// The surroundings of a run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: SimulationPlan,
    pub(crate) planted: Option<Planted>,
    pub(crate) clock: Arc<VirtualClock>,
    dice: Mutex<Dice>,
    trace: Mutex<Trace>,
    ledger: Mutex<Ledger>,
    is_calm: AtomicBool,
    /// The running processes.
    cluster: OnceLock<Weak<Cluster>>,
    /// Bounces that are on their way to the product.
    pub(crate) letters: Signal<u32>,
}

/// Digest of everything that happened, and optionally its lines.
#[derive(Debug)]
struct Trace {
    digest: u64,
    lines: Option<Vec<String>>,
}

/// FNV-1a, 64 bits.
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

impl World {
    /// A world at its beginning. `keeps_lines` if its trace can be read afterwards.
    pub(crate) fn new(plan: SimulationPlan, planted: Option<Planted>, keeps_lines: bool) -> Arc<Self> {
        let dice = Dice::new(plan.seed, 2);
        Arc::new(Self {
            plan,
            planted,
            clock: Arc::new(VirtualClock::start()),
            dice: Mutex::new(dice),
            trace: Mutex::new(Trace { digest: FNV_OFFSET, lines: keeps_lines.then(Vec::new) }),
            ledger: Mutex::default(),
            is_calm: AtomicBool::new(false),
            cluster: OnceLock::new(),
            letters: Signal::new(0),
        })
    }

    /// Sets the processes to which peers can send.
    pub(crate) fn is_served_by(&self, cluster: &Arc<Cluster>) {
        let _ = self.cluster.set(Arc::downgrade(cluster));
    }

    /// The running processes, during the run.
    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.cluster.get()?.upgrade()
    }

    /// Draws from the only source of randomness.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        draw(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if a fault with this rate in thousandths happens now; never once faults have ended.
    pub(crate) fn strikes(&self, per_mille: u64) -> bool {
        per_mille > 0 && !self.is_calm() && self.draw(|dice| dice.chance(per_mille))
    }

    /// Ends all faults.
    pub(crate) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// Notes of copies, answers and faults.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: std::fmt::Arguments<'_>) {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = self.clock.elapsed().as_millis();
        let Trace { digest, lines } = &mut *trace;
        let _ = write!(Fnv(digest), "{elapsed} {line}");
        if let Some(lines) = lines {
            lines.push(format!("{:>12.3} {} {line}", self.clock.elapsed().as_secs_f64(), self.clock.now()));
        }
    }

    /// Adds a line for readers, which is not in the digest.
    pub(crate) fn remark(&self, line: String) {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = &mut trace.lines {
            lines.push(format!("{:>12.3} {line}", self.clock.elapsed().as_secs_f64()));
        }
    }

    /// The digest of everything that happened, and the lines that were kept.
    pub(crate) fn take_trace(&self) -> (u64, Vec<String>) {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        (trace.digest, trace.lines.take().unwrap_or_default())
    }
}

struct Fnv<'a>(&'a mut u64);

impl std::fmt::Write for Fnv<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            *self.0 = (*self.0 ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        Ok(())
    }
}
