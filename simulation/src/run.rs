//! One run: a plan is carried out, then faults end and work is finished, then the promises are checked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::automation::SHARDS;
use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::AutomationId;
use messaging_core::ports::store::{PageRequest, RunFilter, StoreError, StoreHealth};
use messaging_engine::{App, Error, Sweep};
use tokio::task::JoinSet;

use crate::caller;
use crate::checks;
use crate::fixture::{Fixture, temporary_directory};
use crate::front_end;
use crate::life::Life;
use crate::log::Log;
use crate::plan::SimulationPlan;
use crate::planted::Planted;
use crate::process::{Cluster, build};
use crate::requests::Call;
use crate::store::Database;
use crate::world::World;

/// Time after the last request until faults end.
const AFTERMATH: Duration = Duration::from_mins(20);

/// Longest time for the remaining work once faults have ended: longer than messages, webhooks, claims and jobs wait
/// that were dated before a clock was set back by 30 days.
const LONGEST_CALM: Duration = Duration::from_hours(31 * 24);

/// More jobs than the automations of a run have.
const MANY: usize = 100;

/// Options of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A mistake that is made on purpose.
    pub planted: Option<Planted>,
    /// True if the trace is kept, to be read.
    pub keeps_trace: bool,
}

/// Report of one run: its seed, the promises that it broke, and counts of what happened.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Promises that did not hold; none in a good run.
    pub broken: Vec<String>,
    /// A digest of everything that happened: the same seed has the same one.
    pub digest: u64,
    /// The plan and every step, if they were kept.
    pub trace: Vec<String>,
    /// Faults that happened, by kind, with how often.
    pub faults: Vec<(&'static str, u32)>,
    /// Requests that were made.
    pub requests: usize,
    /// Copies of messages that peers took.
    pub copies: usize,
}

/// Runs a seed. Fails if there is no room for its database.
pub fn run(seed: u64, options: Options) -> io::Result<Report> {
    let fixture = Fixture::shared();
    let directory = temporary_directory()?;
    let path = fixture.copy_into(directory.path())?;
    let plan = SimulationPlan::of(seed, fixture);
    let mut trace: Vec<_> =
        if options.keeps_trace { format!("{plan:#?}").lines().map(ToOwned::to_owned).collect() } else { Vec::new() };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build()?;
    let (log, logged) = Log::new(options.keeps_trace);
    let _logging = tracing::subscriber::set_default(log);
    let report = runtime.block_on(async {
        let world = World::new(plan, options.planted, options.keeps_trace);
        logged.attach(&world);
        let database = Database::open(&world, &path).map_err(io::Error::other)?;
        live(&world, &database).await;
        io::Result::Ok((world, database))
    });
    // Whatever still runs is dropped before the database is closed.
    drop(runtime);
    let (world, database) = report?;
    database.close();
    checks::rows(&world, &path);
    let (digest, mut lines) = world.take_trace();
    trace.append(&mut lines);
    let mut ledger = world.ledger();
    Ok(Report {
        seed,
        broken: std::mem::take(&mut ledger.broken),
        digest,
        trace,
        faults: ledger.faults.iter().map(|(kind, count)| (*kind, *count)).collect(),
        requests: ledger.requests.len(),
        copies: ledger.contents.iter().filter(|content| content.is_taken).count(),
    })
}

async fn live(world: &Arc<World>, database: &Arc<Database>) {
    world.ledger().requests.resize_with(world.plan.requests.len(), Default::default);
    let cluster = Cluster::new(world, database);
    world.is_served_by(&cluster);
    let mut processes = JoinSet::new();
    for process in 0..world.plan.processes {
        processes.spawn(Arc::clone(&cluster).run(process));
    }
    let mut troubles = JoinSet::new();
    troubles.spawn(trouble(Arc::clone(world), Arc::clone(database)));
    troubles.spawn(jump(Arc::clone(world)));
    let mut callers = JoinSet::new();
    for index in 0..world.plan.requests.len() {
        callers.spawn(caller::make(Arc::clone(world), Arc::clone(&cluster), index));
    }
    while callers.join_next().await.is_some() {}
    tokio::time::sleep(AFTERMATH).await;
    troubles.shutdown().await;
    world.note(format_args!("calms down"));
    world.calm_down();
    if database.health() != StoreHealth::SyncFailed {
        database.set_health(StoreHealth::Healthy);
    }
    world.letters.wait_for(|letters| *letters == 0).await;
    let Some(app) = observer(world, database).await else { return };
    resume_webhooks(world, &app).await;
    wait_until_idle(world, &app).await;
    processes.shutdown().await;
    if let Err(error) = checks::promises(world, &app).await {
        world.ledger().broken(format!("what is stored cannot be read: {error}"));
    }
}

/// An application without workers, for checks.
async fn observer(world: &Arc<World>, database: &Arc<Database>) -> Option<App> {
    let life = Life::begin(world, world.plan.processes, &Arc::default());
    let app = build(&life, database).await;
    if app.is_none() {
        world.ledger().broken("nothing can be started over the database".to_owned());
    }
    app
}

async fn resume_webhooks(world: &World, app: &App) {
    let fixture = Fixture::shared();
    for webhook in &fixture.webhooks {
        let call = Call::new("resumeWebhook", &[("id", webhook)], serde_json::Value::Null);
        loop {
            match front_end::call(app, fixture.workspace, &call, None).await {
                // The webhook was not paused.
                Ok(_) | Err(Error::InvalidState { status: "active", .. }) => break,
                // The store will be available soon.
                Err(Error::Unavailable { .. }) if world.clock.elapsed() < LONGEST_CALM => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => {
                    world.ledger().broken(format!("a webhook is not resumed: {error:?}"));
                    break;
                }
            }
        }
    }
}

/// Resumes campaigns that a request or the server had paused; returns true if there were any.
async fn resume_campaigns(world: &World, app: &App) -> bool {
    let fixture = Fixture::shared();
    let mut has_resumed = false;
    for id in &fixture.campaigns {
        let call = Call::new("getCampaign", &[("id", id)], serde_json::Value::Null);
        let found = front_end::call(app, fixture.workspace, &call, None).await;
        if found.is_ok_and(|found| found.json()["status"] == "paused") {
            let call = Call::new("scheduleCampaign", &[("id", id)], serde_json::json!({"send_now": true}));
            match front_end::call(app, fixture.workspace, &call, None).await {
                // The store is unavailable and will be back soon: try again.
                Ok(_) | Err(Error::Unavailable { .. }) => has_resumed = true,
                Err(error) => world.ledger().broken(format!("campaign {id} is not resumed: {error:?}")),
            }
        }
    }
    has_resumed
}

/// Activates automations that a request had paused; returns true if any still has work.
async fn automations_go_on(world: &World, app: &App) -> bool {
    if !world.plan.has_automations {
        return false;
    }
    let fixture = Fixture::shared();
    let mut has_more = false;
    for id in &fixture.automations {
        let call = Call::new("getAutomation", &[("id", id)], serde_json::Value::Null);
        let Ok(found) = front_end::call(app, fixture.workspace, &call, None).await else { return true };
        match found.json()["status"].as_str() {
            Some("paused") => {
                let call = Call::new("activateAutomation", &[("id", id)], serde_json::Value::Null);
                match front_end::call(app, fixture.workspace, &call, None).await {
                    // The store is unavailable and will be back soon: try again.
                    Ok(_) | Err(Error::Unavailable { .. }) => has_more = true,
                    Err(error) => world.ledger().broken(format!("automation {id} is not activated: {error:?}")),
                }
            }
            Some("active") => has_more |= has_work(app, id).await.unwrap_or(true),
            _ => {}
        }
    }
    has_more
}

/// The number of jobs that run automations; 0 in a plan without automations.
async fn resting_jobs(world: &World, app: &App) -> usize {
    if !world.plan.has_automations {
        return 0;
    }
    app.store().jobs_of(&["run_automation"], MANY).await.map_or(0, |jobs| jobs.len())
}

/// Returns true if an automation has outbox entries left, or runs that continue by themselves or wait for a call.
async fn has_work(app: &App, id: &str) -> Result<bool, StoreError> {
    let (store, workspace) = (app.store(), Fixture::shared().workspace);
    let Ok(id) = id.parse::<AutomationId>() else { return Ok(false) };
    for shard in 0..SHARDS {
        if !store.automation_notes(workspace, id, shard, 1).await?.is_empty() {
            return Ok(true);
        }
    }
    for status in [RunStatus::Active, RunStatus::Waiting] {
        let wanted = RunFilter { status: Some(status), ..RunFilter::default() };
        let page = PageRequest { after: None, limit: 1 };
        if !store.runs(workspace, id, &wanted, page).await?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until only permanent jobs are left.
async fn wait_until_idle(world: &World, app: &App) {
    let began = world.clock.elapsed();
    loop {
        // A deferred message checks every half minute if its campaign continues.
        let has_resumed = resume_campaigns(world, app).await;
        let goes_on = automations_go_on(world, app).await;
        // The jobs of automations rest until something happens.
        let resting = resting_jobs(world, app).await;
        match app.store().job_count().await {
            // There are fewer while no process could begin to work.
            Ok(left) if left == (Sweep::ALL.len() + resting) as u64 && !has_resumed && !goes_on => return,
            Ok(left) if world.clock.elapsed() - began > LONGEST_CALM => {
                world.ledger().broken(format!("{left} jobs are stuck"));
                return;
            }
            Ok(_) => {}
            Err(error) => return world.ledger().broken(format!("jobs cannot be counted: {error}")),
        }
        let next = app.store().next_due(app.now(), app.monotonic()).await;
        let wait = next.ok().flatten().unwrap_or_default();
        tokio::time::sleep(wait.clamp(Duration::from_secs(1), Duration::from_hours(6))).await;
    }
}

/// Outages: times in which the store accepts no writes.
async fn trouble(world: Arc<World>, database: Arc<Database>) {
    for outage in &world.plan.outages {
        tokio::time::sleep(outage.at.saturating_sub(world.clock.elapsed())).await;
        // One outage at a time.
        if database.health() == StoreHealth::Healthy {
            world.ledger().count_fault("store full or failing");
            database.set_health(outage.health);
            tokio::time::sleep(outage.length).await;
            if database.health() == outage.health {
                database.set_health(StoreHealth::Healthy);
            }
        }
    }
}

async fn jump(world: Arc<World>) {
    for jump in &world.plan.jumps {
        tokio::time::sleep(jump.at.saturating_sub(world.clock.elapsed())).await;
        world.ledger().count_fault("clock set");
        world.note(format_args!("the clock is set by {} ms", jump.millis));
        world.clock.jump(jump.millis);
    }
}
