//! Measures the speed at which contacts enter an automation, compared with a loop of prepared statements that writes
//! the same rows; the bytes of a waiting run; and the time to open a database with many of them.
//!
//! `cargo run --release -p messaging-store --example automations -- [DIRECTORY] [ENTRIES] [RUNS]`
//!
//! An entry is part of two commits: a request's product events with a note each, and the writes that the job of a shard
//! of the contacts derives from those: waiting runs with their first steps, entries, counts, and the removal of the
//! notes. Store and loop take turns of some requests, each in a database of its own; the jobs of the shards work at the
//! same time, a page to a commit, while the loop needs one transaction for all that follows from a request.
#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use messaging_conformance::commit::at_once;
use messaging_conformance::sample::{automation, contact, id, product_event, run};
use messaging_core::changes::{AutomationWrite, Changes, CountNodes, Expect, PutAutomation, PutRun, TakeNotes, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::note::{EntrySubscription, EventSubscription, Happened, Note, RunSubscription};
use messaging_core::domain::automation::run::{Entry, Run};
use messaging_core::ids::Id as _;
use messaging_core::ports::Store;
use messaging_core::ports::store::{Automations as _, Priority, StoreCursor};
use messaging_store::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

/// Number of events in a request.
const REQUEST: usize = 1000;
/// Number of events in a turn.
const TURN: usize = 10 * REQUEST;
/// Number of contacts in a commit of a job.
const PAGE: usize = 256;
/// Number of the first contact, before its count.
const FIRST: i64 = 1 << 40;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut count = |usual: usize| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (entries, runs) = (count(100_000), count(1_000_000));
    let place = tempfile::tempdir_in(directory).expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio");
    let commit = |store: &SqliteStore, changes: Vec<Write>| {
        let changes = Changes::from_iter(changes);
        runtime.block_on(store.commit(changes, Priority::Foreground)).expect("a commit");
    };

    let paths = ["store", "loop"].map(|name| place.path().join(name).join("messaging.db"));
    let automation = automation(id());
    let contacts: Vec<Contact> = (0..entries).map(|_| bare(&automation)).collect();
    let [store, other] = paths.clone().map(|path| {
        let store = SqliteStore::open(SqliteOptions::new(path)).expect("a store");
        commit(&store, vec![listening(&automation)]);
        put_contacts(&contacts, |changes| commit(&store, changes));
        store
    });
    runtime.block_on(other.close());
    let looped = Loop::open(&paths[1]);

    let (mut in_store, mut in_loop) = (Vec::new(), Vec::new());
    for (number, turn) in contacts.chunks(TURN).enumerate() {
        let entering: Vec<Entering> = turn.iter().map(|contact| Entering::new(&automation, contact)).collect();
        let first = FIRST + i64::try_from(number * TURN).expect("few") + 1;
        let run_loop = |in_loop: &mut Vec<Duration>| {
            in_loop.push(timed(|| {
                for (page, first) in entering.chunks(REQUEST).zip((first..).step_by(REQUEST)) {
                    looped.page(page, first);
                }
            }));
        };
        // Each is the first of the two every other time.
        if number % 2 == 0 {
            run_loop(&mut in_loop);
        }
        let events = |page: &[Entering]| Write::AppendProductEvents(page.iter().map(|one| one.event.clone()).collect());
        let requests: Vec<_> = entering.chunks(REQUEST).map(|page| vec![events(page)]).collect();
        let told = timed(|| requests.into_iter().for_each(|request| commit(&store, request)));
        let jobs = jobs(&runtime, &store, &automation, &entering);
        let worked_off = timed(|| {
            let work = |pages: Vec<Changes>| {
                Box::pin(async {
                    for page in pages {
                        store.commit(page, Priority::Background).await.expect("a commit");
                    }
                })
            };
            runtime.block_on(at_once(jobs.into_iter().map(work).collect()));
        });
        in_store.push(told + worked_off);
        if number % 2 == 1 {
            run_loop(&mut in_loop);
        }
    }
    runtime.block_on(store.close());
    drop(looped);
    let rate = |times: &[Duration]| as_float(entries) / times.iter().sum::<Duration>().as_secs_f64();
    println!(
        "{entries} entries: store {:.0}/s, loop {:.0}/s, ratio {:.2} (median of turns {:.2})",
        rate(&in_store),
        rate(&in_loop),
        rate(&in_store) / rate(&in_loop),
        median(&mut in_loop) / median(&mut in_store),
    );

    let path = place.path().join("waiting").join("messaging.db");
    let contacts: Vec<Contact> = (0..runs).map(|_| bare(&automation)).collect();
    let store = SqliteStore::open(SqliteOptions::new(path.clone())).expect("a store");
    commit(&store, vec![listening(&automation)]);
    put_contacts(&contacts, |changes| commit(&store, changes));
    runtime.block_on(store.close());
    drop(store);
    let (opening, before) = (opened(&runtime, &path), size(&path));
    let store = SqliteStore::open(SqliteOptions::new(path.clone())).expect("a store");
    // Contacts do not enter in the order in which they were created.
    let mut order: Vec<usize> = (0..runs).collect();
    order.sort_by_key(|n| n.wrapping_mul(0x9E37_79B9) % runs);
    for page in order.chunks(PAGE) {
        let entering = page.iter().map(|n| Entering::new(&automation, &contacts[*n]));
        commit(&store, entering.flat_map(|one| one.writes()).collect());
    }
    runtime.block_on(store.close());
    drop(store);
    println!(
        "{runs} runs that wait: {:.0} bytes each, with steps and entries; opening takes {:.1} ms, {:.1} ms without them",
        as_float(size(&path) - before) / as_float(runs),
        opened(&runtime, &path),
        opening,
    );
}

/// A contact that is found by one identifier.
fn bare(automation: &Automation) -> Contact {
    let whole = contact(automation.workspace_id);
    Contact { phone: None, external_id: None, tags: Vec::new(), attributes: Map::new().into(), ..whole }
}

fn put_contacts(contacts: &[Contact], mut commit: impl FnMut(Vec<Write>)) {
    for page in contacts.chunks(4 * PAGE) {
        commit(page.iter().map(|contact| Write::put_contact(contact.clone(), Expect::Absent)).collect());
    }
}

fn listening(automation: &Automation) -> Write {
    let entry = Some(EntrySubscription::Event("cart_updated".to_owned()));
    let runs = RunSubscription { events: vec!["order_placed".to_owned()], ..RunSubscription::default() };
    let lanes = (0..4).map(|shard: u8| format!("b/{}/automation:{shard}", automation.workspace_id).as_str().into());
    let put = PutAutomation {
        automation: automation.clone(),
        subscription: EventSubscription { entry, runs },
        lanes: lanes.collect(),
        holds: Vec::new(),
    };
    Write::PutAutomation(Box::new(put), Expect::Absent)
}

fn waiting(automation: &Automation, contact: &Contact) -> Run {
    let whole = run(automation, contact);
    Run { event: Map::new(), key: None, held: None, arrived_at: whole.entered_at, ..whole }
}

fn put_run(run: &Run, steps: Vec<RunStep>) -> Write {
    Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
        run: run.clone(),
        expect: Expect::Absent,
        steps,
        messages: Vec::new(),
    })))
}

/// A contact that enters.
struct Entering {
    event: ProductEvent,
    run: Run,
    steps: Vec<RunStep>,
}

impl Entering {
    fn new(automation: &Automation, contact: &Contact) -> Self {
        let event = ProductEvent { properties: Map::new().into(), ..product_event(contact, "cart_updated") };
        let at = event.received_at();
        let whole = waiting(automation, contact);
        let run = Run { entry_event: Some(event.id), entered_at: at, arrived_at: at, ..whole };
        let step = |outcome, node: Option<&str>| RunStep {
            at: run.entered_at,
            node_id: node.map(ToOwned::to_owned),
            outcome,
            branch: None,
            reason: None,
            detail: Map::new(),
        };
        let until = run.due_at.map(|due_at| ("until".to_owned(), Value::String(due_at.to_string())));
        let waits = RunStep { detail: until.into_iter().collect(), ..step(StepOutcome::Waiting, Some("w")) };
        let steps = vec![step(StepOutcome::Entered, None), waits];
        Self { event, run, steps }
    }

    fn writes(&self) -> [Write; 2] {
        let Run { workspace_id, automation_id, contact_id, entered_at, .. } = self.run;
        let entry = Entry { workspace_id, automation_id, contact_id, key: None, entered_at, open: 1 };
        [
            put_run(&self.run, self.steps.clone()),
            Write::Automation(AutomationWrite::PutEntry(Box::new(entry), Expect::Absent)),
        ]
    }
}

/// The commits of the jobs of all shards: contacts with a note enter, and the notes are removed.
fn jobs(
    runtime: &tokio::runtime::Runtime,
    store: &SqliteStore,
    automation: &Automation,
    entering: &[Entering],
) -> Vec<Vec<Changes>> {
    let (workspace_id, automation_id) = (automation.workspace_id, automation.id);
    let of: HashMap<_, _> = entering.iter().map(|one| (one.run.contact_id, one)).collect();
    let job = |shard| {
        let notes = runtime.block_on(store.automation_notes(workspace_id, automation_id, shard, TURN)).expect("notes");
        let page = |notes: &[(StoreCursor, Note, Option<Happened>)]| {
            let up_to = notes.last().map(|(place, ..)| *place).expect("no page is empty");
            let mut writes: Vec<Write> = notes.iter().flat_map(|(_, note, _)| of[&note.contact_id].writes()).collect();
            let counts = CountNodes {
                entered: vec![("w".to_owned(), u32::try_from(notes.len()).expect("few"))],
                branches: Vec::new(),
            };
            writes.push(Write::Automation(AutomationWrite::CountNodes(workspace_id, automation_id, Box::new(counts))));
            writes.push(Write::Automation(AutomationWrite::TakeNotes(TakeNotes {
                workspace_id,
                automation_id,
                shard,
                up_to,
            })));
            Changes::from_iter(writes)
        };
        notes.chunks(PAGE).map(page).collect()
    };
    (0..4).map(job).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn as_float(count: usize) -> f64 {
    count as f64
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// The shortest of several times to open the database, in milliseconds.
fn opened(runtime: &tokio::runtime::Runtime, path: &Path) -> f64 {
    let open = || {
        let started = Instant::now();
        let store = SqliteStore::open(SqliteOptions::new(path.to_owned())).expect("a store");
        let took = started.elapsed();
        runtime.block_on(store.close());
        took
    };
    (0..5).map(|_| open()).min().unwrap_or_default().as_secs_f64() * 1000.0
}

/// Length of a database in bytes, including its log.
fn size(path: &Path) -> usize {
    let log = path.with_extension("db-wal");
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    usize::try_from(bytes(path) + bytes(&log)).expect("a small database")
}

/// The loop of prepared statements that the writer is compared with.
struct Loop(Connection);

impl Loop {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("a database");
        for (name, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            connection.pragma_update(None, name, value).expect("a pragma");
        }
        connection.pragma_update(None, "cache_size", -16 * 1024).expect("a pragma");
        connection.pragma_update_and_check(None, "secure_delete", "fast", |_| Ok(())).expect("a pragma");
        connection.set_prepared_statement_cache_capacity(64);
        Self(connection)
    }

    fn transaction(&self, work: impl FnOnce(&Connection)) {
        self.0.execute_batch("BEGIN IMMEDIATE").expect("begins");
        work(&self.0);
        self.0.execute_batch("COMMIT").expect("commits");
    }

    fn page(&self, page: &[Entering], first: i64) {
        self.transaction(|connection| {
            let mut event = connection
                .prepare_cached("INSERT INTO product_events (contact, name, at, id, properties) VALUES (?1, 1, ?2, ?3, NULL)")
                .expect("a statement");
            let mut note = connection
                .prepare_cached(
                    "INSERT INTO automation_notes (automation, shard, n, contact, at, kind, depth, may_enter, event, what)
                     VALUES (1, ?1, ?2, ?2, ?3, 0, 0, 1, ?4, ?5)",
                )
                .expect("a statement");
            for (contact, one) in (first..).zip(page) {
                let (at, id) = (one.event.occurred_at.as_millis(), one.event.id.to_bytes());
                event.execute(params![contact, at, id]).expect("a row");
                let n = connection.last_insert_rowid();
                note.execute(params![contact & 3, contact, at, n, id]).expect("a row");
            }
        });
        self.transaction(|connection| {
            connection.prepare_cached("DELETE FROM automation_notes").expect("a statement").execute([]).expect("rows");
            let mut run = connection
                .prepare_cached(
                    "INSERT INTO automation_runs (automation, id, contact, version, revision, status, steps, depth, entered_at,
                         arrived, due_at, ended_at, node, entry_event, held, exit_reason)
                     VALUES (1, ?1, ?2, 1, 1, 1, 1, 1, ?3, 0, ?4, NULL, 1, ?5, NULL, NULL)",
                )
                .expect("a statement");
            let mut steps = connection
                .prepare_cached("INSERT INTO automation_run_steps (automation, run, revision, steps) VALUES (1, ?1, 1, ?2)")
                .expect("a statement");
            let mut entry = connection
                .prepare_cached(
                    "INSERT INTO automation_entries (automation, contact, key, revision, entered_at) VALUES (1, ?1, '', 1, ?2)",
                )
                .expect("a statement");
            for (contact, one) in (first..).zip(page) {
                let id = one.run.id.to_bytes();
                let (entered_at, due_at) = (one.run.entered_at.as_millis(), one.run.due_at.map(messaging_core::time::Timestamp::as_millis));
                run.execute(params![id, contact, entered_at, due_at, &one.event.id.to_bytes()[6..]]).expect("a row");
                let text = format!("[[{entered_at},0],[{entered_at},4,\"w\"]]");
                steps.execute(params![id, text]).expect("a row");
                entry.execute(params![contact, entered_at]).expect("a row");
            }
        });
    }
}
