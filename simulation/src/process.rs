//! A process: it starts, works, ends when the plan says so, and starts again.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::ports::clock::SeededEntropy;
use messaging_engine::App;
use tokio::task::JoinSet;

use crate::clock::MachineClock;
use crate::fixture::{application, settings};
use crate::life::Life;
use crate::mail::Mail;
use crate::receiver::Receiver;
use crate::signal::Signal;
use crate::store::{Database, FaultyStore};
use crate::world::World;

/// Passes over the queue that a process makes concurrently: while a peer is slow in one, another continues.
const PASSES: usize = 3;

/// Longest time until a process without work looks for work again.
const LOOK_AGAIN: Duration = Duration::from_mins(30);

/// Time after which jobs that come one by one are claimed together, as in the runner.
const GATHER: Duration = Duration::from_millis(40);

/// Time after the store has become healthy in which waiting outcomes go before new claims, as in the runner.
const SETTLE: Duration = Duration::from_secs(5);

/// Longest pause before an ended process starts again, in seconds.
const LONGEST_PAUSE: u64 = 90;

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct Cluster {
    world: Arc<World>,
    database: Arc<Database>,
    /// Running application of each process, if there is one.
    running: Mutex<Vec<Option<Running>>>,
    /// Counts starts.
    starts: Signal<u64>,
}

/// A process that serves.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) app: App,
    pub(crate) life: Arc<Life>,
}

impl Cluster {
    pub(crate) fn new(world: &Arc<World>, database: &Arc<Database>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            database: Arc::clone(database),
            running: Mutex::new(vec![None; world.plan.processes]),
            starts: Signal::new(0),
        })
    }

    /// Runs a process until the end of the run.
    pub(crate) async fn run(self: Arc<Self>, process: usize) {
        let points = Arc::default();
        loop {
            self.live(process, &points).await;
            let pause = self.world.draw(|dice| dice.span(0, LONGEST_PAUSE));
            tokio::time::sleep(pause).await;
        }
    }

    /// One life of a process.
    async fn live(&self, process: usize, points: &Arc<AtomicU64>) {
        if self.world.plan.processes == 1 && !self.is_first() {
            // The only process: its start ends all claims.
            if let Err(error) = self.database.restart() {
                self.world.ledger().broken(format!("the database does not open again: {error}"));
                return;
            }
        }
        let life = Life::begin(&self.world, process, points);
        life.note(format_args!("starts"));
        let mut tasks = JoinSet::new();
        let building = build(&life, &self.database);
        let app = tokio::select! {
            biased;
            () = life.over() => return,
            app = building => app,
        };
        let Some(app) = app else { return };
        let running = Running { app: app.clone(), life: Arc::clone(&life) };
        self.set_running(process, Some(running));
        for _ in 0..PASSES {
            tasks.spawn(work(app.clone(), Arc::clone(&self.database)));
        }
        life.over().await;
        self.set_running(process, None);
        tasks.shutdown().await;
        life.note(format_args!("is gone"));
    }

    fn is_first(&self) -> bool {
        self.world.ledger().lives() == 0
    }

    fn set_running(&self, process: usize, running: Option<Running>) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)[process] = running;
        self.starts.change(|starts| *starts += 1);
    }

    /// A running process, `wish` if that one runs.
    pub(crate) async fn any(&self, wish: usize) -> Running {
        loop {
            let seen = self.starts.get();
            let found = {
                let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                let wished = running.get(wish % running.len()).cloned().flatten();
                wished.or_else(|| running.iter().flatten().next().cloned())
            };
            if let Some(found) = found {
                return found;
            }
            self.starts.wait_for(|starts| *starts != seen).await;
        }
    }
}

/// The application of a life; `None` when the store does not let it start.
pub(crate) async fn build(life: &Arc<Life>, database: &Arc<Database>) -> Option<App> {
    let store = Arc::new(FaultyStore::new(Arc::clone(life), Arc::clone(database)));
    let mail = Arc::new(Mail::new(Arc::clone(life)));
    let fetch = Arc::new(Receiver::new(Arc::clone(life)));
    let seed = life.world.plan.seed ^ (life.number as u64 + 1).rotate_left(40);
    let building = application(store, Some(mail), fetch)
        .clock(Arc::new(MachineClock { world: Arc::clone(&life.world), ahead_ms: life.clock_ahead_ms }))
        .settings(settings(&life.world, life.process))
        .entropy(Arc::new(SeededEntropy::new(seed)));
    match building.build().await {
        Ok(app) => Some(app),
        Err(error) => {
            life.note(format_args!("does not start: {error}"));
            None
        }
    }
}

/// Runs the jobs of a process, as its runner does, but woken by commits of every process.
async fn work(app: App, database: Arc<Database>) {
    let mut is_prepared = false;
    loop {
        if !app.store().health().takes_work() {
            database.state().wait_for(|health| health.takes_work()).await;
            tokio::time::sleep(SETTLE).await;
        }
        let seen = database.commits().get();
        if !is_prepared && app.prepare_to_work().await.is_err() {
            tokio::time::sleep(Duration::from_secs(2)).await;
            continue;
        }
        is_prepared = true;
        let is_done = app.run_until_idle().await.is_ok();
        let next = match app.store().next_due(app.now(), app.monotonic()).await {
            Ok(Some(wait)) if is_done => wait.clamp(Duration::from_millis(200), LOOK_AGAIN),
            Ok(None) if is_done => LOOK_AGAIN,
            _ => Duration::from_secs(2),
        };
        tokio::select! {
            biased;
            () = database.commits().wait_for(|commits| *commits != seen) => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(next) => {}
        }
    }
}
