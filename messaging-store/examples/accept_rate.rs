//! Measures messages accepted and processed per second, and the CPU time that the writer thread needs for each.
//!
//! `cargo run --release -p messaging-store --example accept_rate -- [DIRECTORY] [TASKS] [SECONDS] [random|counting]`
//!
//! Every accept is one durable commit, as by the API: a message of 1 KiB with two tags, its job, and the stored reply.
//! The last argument says how idempotency keys are chosen: in a large table, each random key touches a different B-tree
//! page.
#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use messaging_core::changes::{Changes, JobWrite, MoveMessage, NewJob, Reply, ReplyKey, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::message::milestones::Milestones;
use messaging_core::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageStatus};
use messaging_core::ids::{IdSource, MessageId, WorkspaceId};
use messaging_core::ports::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use messaging_core::ports::store::jobs::{Claim, ClaimedJob};
use messaging_core::ports::store::{Jobs as _, Priority, Store};
use messaging_store::{SqliteOptions, SqliteStore};
use serde_json::Map;

struct Bench {
    store: SqliteStore,
    ids: IdSource,
    entropy: SystemEntropy,
    workspace: WorkspaceId,
    stop: AtomicBool,
    done: AtomicU64,
    random_keys: bool,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let tasks: usize = arguments.next().map_or(64, |text| text.parse().expect("a number of tasks"));
    let seconds: u64 = arguments.next().map_or(4, |text| text.parse().expect("a number of seconds"));
    let random_keys = arguments.next().is_none_or(|text| text == "random");
    let place = tempfile::tempdir_in(directory).expect("a directory");

    let opened = Instant::now();
    let store = SqliteStore::open(SqliteOptions::new(place.path().join("messaging.db"))).expect("a store");
    println!("created in {:.1} ms", opened.elapsed().as_secs_f64() * 1e3);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio");
    let ids = IdSource::default();
    let entropy = SystemEntropy::default();
    let workspace = ids.next(SystemClock.now(), &entropy);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let bench = Arc::new(Bench { store, ids, entropy, workspace, stop, done, random_keys });

    let writer_before = writer_seconds();
    let started = Instant::now();
    let mut latencies = runtime.block_on(async {
        let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(accept_until_stopped(Arc::clone(&bench)))).collect();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        bench.stop.store(true, Ordering::Relaxed);
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await.expect("a task"));
        }
        latencies
    });
    let elapsed = started.elapsed().as_secs_f64();
    let writer = writer_seconds() - writer_before;
    latencies.sort_unstable();
    let percentile = |part: usize| latencies[(latencies.len() - 1) * part / 1000].as_secs_f64() * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let done = bench.done.load(Ordering::Relaxed) as f64;
    println!(
        "{tasks} tasks: {:.0} accepts/s, writer {:.1} µs each, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms",
        done / elapsed,
        writer * 1e6 / done,
        percentile(500),
        percentile(990),
        percentile(999),
    );

    let writer_before = writer_seconds();
    let started = Instant::now();
    let finished = runtime.block_on(work_off(&bench));
    let writer = writer_seconds() - writer_before;
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let finished = finished as f64;
    println!(
        "worked off {:.0} jobs/s, writer {:.1} µs each",
        finished / started.elapsed().as_secs_f64(),
        writer * 1e6 / finished,
    );

    runtime.block_on(bench.store.close());
    let opened = Instant::now();
    let store = SqliteStore::open(SqliteOptions::new(place.path().join("messaging.db"))).expect("a store");
    println!("reopened in {:.2} ms", opened.elapsed().as_secs_f64() * 1e3);
    drop(store);
}

/// Claims accepted messages and commits an outcome for each, for three seconds or until none is left; returns how many.
async fn work_off(bench: &Arc<Bench>) -> usize {
    let started = Instant::now();
    let mut finished = 0;
    while started.elapsed() < Duration::from_secs(3) {
        let now = SystemClock.now();
        let claim =
            Claim { max: 512, per_lane: 32, ..Claim::new(now, SystemClock.monotonic(), Duration::from_mins(5)) };
        let claimed = bench.store.claim(claim).await.expect("a claim");
        if claimed.is_empty() {
            break;
        }
        finished += claimed.len();
        let tasks: Vec<_> = claimed
            .into_iter()
            .map(|job| {
                let bench = Arc::clone(bench);
                tokio::spawn(async move {
                    let changes = outcome(&bench, job);
                    bench.store.commit(changes, Priority::Background).await.expect("a commit");
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task");
        }
    }
    finished
}

/// Returns the changes of a delivery: the new status, the event, the end of the job.
fn outcome(bench: &Bench, job: ClaimedJob) -> Changes {
    let message_id: MessageId = std::str::from_utf8(&job.payload).expect("text").parse().expect("an id");
    let (workspace_id, at) = (bench.workspace, SystemClock.now());
    let event = MessageEvent {
        id: bench.ids.next(at, &bench.entropy),
        workspace_id,
        message_id,
        kind: EventKind::Sent,
        at,
        meta: Map::new(),
    };
    let movement = MoveMessage {
        workspace_id,
        message_id,
        revision: 1,
        status: MessageStatus::Sent,
        at,
        hold: None,
        milestones: Milestones::default().with_status(MessageStatus::Sent, at),
    };
    [Write::MoveMessage(movement), Write::AppendEvent(Box::new(event)), Write::Job(JobWrite::Finish(job.handle))]
        .into_iter()
        .collect()
}

async fn accept_until_stopped(bench: Arc<Bench>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    while !bench.stop.load(Ordering::Relaxed) {
        let changes = accept(&bench);
        let started = Instant::now();
        bench.store.commit(changes, Priority::Foreground).await.expect("a commit");
        latencies.push(started.elapsed());
        bench.done.fetch_add(1, Ordering::Relaxed);
    }
    latencies
}

fn accept(bench: &Bench) -> Changes {
    let now = SystemClock.now();
    let id: MessageId = bench.ids.next(now, &bench.entropy);
    let mut noise = [0; 16];
    bench.entropy.fill(&mut noise);
    let message = Message {
        from_email: Some("news@acme.example".to_owned()),
        tags: vec!["welcome".to_owned(), "onboarding".to_owned()],
        ..Message::queued(id, bench.workspace, Channel::Email, "somebody@example.org".to_owned(), now)
    };
    let content = MessageContent { request: Bytes::from(vec![b'x'; 1024]) };
    let job = NewJob {
        id: bench.ids.next(now, &bench.entropy),
        kind: "deliver_message",
        lane: Lane::parse(&format!("email:{}.example", noise[0] % 20)),
        due_at: now,
        payload: Bytes::from(id.to_string()),
    };
    let reply = Reply {
        key: ReplyKey {
            credential: [1; 16],
            route: "POST /messages".to_owned(),
            key: if bench.random_keys { format!("{:032x}", u128::from_be_bytes(noise)) } else { id.to_string() },
        },
        fingerprint: u128::from_be_bytes(noise),
        status: 202,
        content_type: "application/json".to_owned(),
        body: Bytes::from(format!("{{\"message_id\":\"{id}\",\"status\":\"queued\"}}")),
        expires_at: now + Duration::from_hours(24),
        created_at: now,
    };
    [
        Write::InsertMessage(Box::new(message), content),
        Write::Job(JobWrite::Enqueue(job)),
        Write::Remember(Box::new(reply)),
    ]
    .into_iter()
    .collect()
}

/// Returns the CPU seconds that the writer thread has used so far; zero where the system is not Linux.
fn writer_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds: u64 = threads
        .filter_map(|thread| {
            let path = thread.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            let stat = std::fs::read_to_string(path.join("schedstat")).ok()?;
            if name.trim() == "store-writer" { stat.split(' ').next()?.parse::<u64>().ok() } else { None }
        })
        .sum();
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
