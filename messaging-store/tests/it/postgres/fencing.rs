//! Several processes on one database: which may write, and which claims which lanes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging_conformance::sample::{at, claim, enqueue, finish, job, user};
use messaging_conformance::{Twice, lanes, races};
use messaging_core::changes::{Changes, Expect, JobHandle, JobWrite, NewJob, PutBack, Reschedule, Write};
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::Store;
use messaging_core::ports::store::{
    Accounts as _, Claim, ClaimedJob, CommitError, Installation as _, Jobs as _, Priority, Sources as _, StoreError,
    Topic,
};
use messaging_store::{Heartbeats, PostgresStore};

use messaging_conformance::cluster::Database;

/// Number of attempts to see something that must come, with a pause of [`PAUSE`] between them.
const ASKED: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Heartbeats of a process that looks all the time.
const QUICK: Heartbeats = Heartbeats {
    every: Duration::from_millis(40),
    silent_after: Duration::from_mins(1),
    dead_after: Duration::from_mins(2),
    hand_over: Duration::from_mins(1),
};

/// Heartbeats of a process that looks once.
const STILL: Heartbeats = Heartbeats { every: Duration::from_hours(1), ..QUICK };

async fn open(database: &Database, heartbeats: Heartbeats) -> PostgresStore {
    let mut options = database.options();
    options.heartbeats = heartbeats;
    PostgresStore::open(options).await.unwrap()
}

/// Runs SQL over a connection of another program.
async fn execute(database: &Database, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let driving = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    let _ = driving.await;
}

/// Declares every process dead, as a process that thinks so would.
async fn end_all_terms(database: &Database) {
    let sql = "BEGIN; DELETE FROM nodes; DELETE FROM writers; UPDATE places SET term = NULL; COMMIT";
    execute(database, sql).await;
}

async fn commit(store: &PostgresStore, writes: impl IntoIterator<Item = Write>) -> Result<(), CommitError> {
    store.commit(writes.into_iter().collect::<Changes>(), Priority::Foreground).await
}

/// Repeats `ask` until there is an answer.
async fn wait_for<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..ASKED {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("it does not come");
}

/// Claims until there is a job.
async fn claimed(store: &PostgresStore) -> Vec<ClaimedJob> {
    wait_for(async || store.claim(claim(0)).await.ok().filter(|jobs| !jobs.is_empty())).await
}

/// Number of places of the database that a process has.
async fn places(store: &PostgresStore) -> u64 {
    store.cluster().await.unwrap().unwrap().nodes.iter().filter(|node| node.is_this).map(|node| node.places).sum()
}

/// The first worker has all places before its opening returns, and leaves them when it is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_alone_has_everything() {
    let Some(database) = Database::create().await else { return };
    let first = open(&database, STILL).await;
    assert_eq!(places(&first).await, 256);
    first.close().await;
    let second = open(&database, STILL).await;
    let view = second.cluster().await.unwrap().unwrap();
    assert_eq!((view.nodes.len(), view.nodes[0].places, view.places, view.free_places), (1, 256, 256, 0));
    second.close().await;
}

/// A process that was declared dead and has not noticed announces its keys under its next term.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keys_of_whoever_was_declared_dead_are_known_as_soon_as_it_has_said_them() {
    let Some(database) = Database::create().await else { return };
    let store = open(&database, STILL).await;
    let (one, two) = ("one".to_owned(), "two".to_owned());
    for keys in [vec![one.clone()], vec![two, one]] {
        end_all_terms(&database).await;
        store.announce_keys(&keys).await.unwrap();
        let holders = store.key_holders().await.unwrap();
        assert_eq!(holders.iter().map(|holder| holder.keys.clone()).collect::<Vec<_>>(), [Some(keys)]);
    }
    store.close().await;
}

/// A write under a claim by a process that was declared dead is refused and changes nothing. Other writes are done
/// under its next term.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_declared_dead_writes_nothing_under_its_claims() {
    let Some(database) = Database::create().await else { return };
    let store = open(&database, STILL).await;
    let kinds: [fn(JobHandle) -> Write; 5] = [
        |handle| Write::Job(JobWrite::Finish(handle)),
        |handle| {
            Write::Job(JobWrite::Reschedule(handle, Reschedule { due_at: at(9), at: at(0), payload: Bytes::new() }))
        },
        |handle| Write::Job(JobWrite::PutBack(handle, PutBack { due_at: at(9), at: at(0), is_failure: true })),
        |handle| Write::Job(JobWrite::Save(handle, Bytes::new())),
        |handle| Write::Job(JobWrite::Hold(handle)),
    ];
    commit(&store, [enqueue("lane", 0)]).await.unwrap();
    let stored = store.jobs_of(&["deliver_message"], 9).await.unwrap();
    for kind in kinds {
        for with_another in [false, true] {
            let handle = claimed(&store).await.remove(0).handle;
            end_all_terms(&database).await;
            let (job, another) = (kind(handle), user());
            let mut writes = vec![job];
            if with_another {
                writes.insert(0, Write::put(another.clone(), Expect::Absent));
            }
            let outcome = commit(&store, writes).await;
            assert!(matches!(outcome, Err(CommitError::LeaseLost)), "{outcome:?}");
            assert_eq!(store.user(another.id).await.unwrap(), None);
            assert_eq!(store.jobs_of(&["deliver_message"], 9).await.unwrap(), stored);
        }
    }
    end_all_terms(&database).await;
    let request = user();
    commit(&store, [Write::put(request.clone(), Expect::Absent)]).await.unwrap();
    assert!(store.user(request.id).await.unwrap().is_some());
    assert_eq!(store.cluster().await.unwrap().unwrap().fenced, 11);
    store.close().await;
}

/// Other processes are notified of commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_hear_of_commits() {
    let Some(database) = Database::create().await else { return };
    let (first, second) = (open(&database, STILL).await, open(&database, STILL).await);
    let news = second.news();
    let before = *news.borrow();
    wait_for(async || {
        // The first commits may come before anybody listens.
        commit(&first, [Write::put(user(), Expect::Absent), enqueue("lane", 0)]).await.unwrap();
        let heard = news.borrow().since(&before);
        (heard.contains(Topic::Credentials) && heard.contains(Topic::Work)).then_some(())
    })
    .await;
    second.close().await;
    first.close().await;
}

/// Two workers claim jobs of different lanes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_is_never_at_two() {
    let Some(database) = Database::create().await else { return };
    let (first, second) = (open(&database, QUICK).await, open(&database, QUICK).await);
    wait_for(async || (places(&first).await > 0 && places(&second).await > 0).then_some(())).await;
    assert_eq!(places(&first).await + places(&second).await, 256);
    lanes::a_lane_is_claimed_by_one_process(&first, &second).await;
    execute(&database, "DELETE FROM jobs").await;
    let twice = Twice { first: Arc::new(first), second: Arc::new(second), claims: true, keep: Box::new(database) };
    races::jobs_are_claimed_once(&twice).await;
    twice.second.close().await;
    twice.first.close().await;
}

/// A new process gets lanes with no job in work, and the others when the jobs in work have ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_change_hands_when_nothing_of_them_runs() {
    let Some(database) = Database::create().await else { return };
    let first = open(&database, QUICK).await;
    let names: Vec<String> = (0..40).map(|n| format!("email:{n}.example")).collect();
    commit(&first, names.iter().flat_map(|lane| [enqueue(lane, 0), enqueue(lane, 0)])).await.unwrap();
    // Longer than the test: a job whose lease has run out is in work no more.
    let lease = Duration::from_hours(1);
    let in_work = first.claim(Claim { per_lane: 1, lease, ..claim(0) }).await.unwrap();
    assert_eq!(in_work.len(), 40);
    let second = open(&database, QUICK).await;
    wait_for(async || {
        assert_eq!(second.claim(claim(0)).await.unwrap(), [], "their lanes are in work elsewhere");
        (places(&second).await > 0).then_some(())
    })
    .await;
    commit(&first, finish(&in_work)).await.unwrap();
    let mut owners: HashMap<String, HashSet<usize>> = HashMap::new();
    let mut jobs = HashSet::new();
    wait_for(async || {
        for (process, store) in [&first, &second].into_iter().enumerate() {
            for job in store.claim(claim(0)).await.unwrap() {
                assert!(jobs.insert(job.handle.id));
                owners.entry(job.handle.lane.to_string()).or_default().insert(process);
                commit(store, finish(&[job])).await.unwrap();
            }
        }
        (jobs.len() == 40).then_some(())
    })
    .await;
    assert!(owners.values().all(|owners| owners.len() == 1));
    assert_eq!(first.job_count().await.unwrap(), 0);
    // A process that leaves hands everything to the one that stays.
    second.close().await;
    wait_for(async || (places(&first).await == 256).then_some(())).await;
    first.close().await;
}

/// Each process is found by its sources, and a lane beside the given one that it claims, whichever process claims the
/// given lane.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_claims_a_lane_beside() {
    let Some(database) = Database::create().await else { return };
    let stores = [open(&database, QUICK).await, open(&database, QUICK).await];
    for (number, store) in stores.iter().enumerate() {
        let ip = std::net::IpAddr::from([203, 0, 113, u8::try_from(number).unwrap()]).into();
        store.announce_sources(&[NamedSource { ip, name: "mx.example.org".to_owned() }]).await.unwrap();
    }
    for store in &stores {
        wait_for(async || (1..256).contains(&places(store).await).then_some(())).await;
    }
    let lane = Lane::parse("email:b.example");
    for (number, store) in stores.iter().enumerate() {
        let live = store.live_sources().await.unwrap();
        assert!(live.len() == 2 && live[0].joined < live[1].joined, "{live:?}");
        assert_eq!(live.iter().map(|live| live.is_own).collect::<Vec<_>>(), [number == 0, number == 1]);
        for (meant, node) in stores.iter().zip(&live) {
            let beside = store.lane_of_node(&lane, node.joined).await.unwrap().expect("it has places");
            assert_eq!(beside.shared(), lane.shared());
            commit(store, [enqueue(beside.as_str(), 0)]).await.unwrap();
            let found = claimed(meant).await;
            assert_eq!(found[0].handle.lane, beside);
            commit(meant, finish(&found)).await.unwrap();
        }
    }
    let joined = stores[1].live_sources().await.unwrap()[0].joined;
    assert_eq!(stores[1].lane_of_node(&lane, joined + 1_000).await.unwrap(), None);
    let [first, second] = stores;
    second.close().await;
    first.close().await;
}

/// A process whose clock is wrong claims nothing, so its lanes go to others as soon as no job of them is in work,
/// however long that took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_a_wrong_clock_do_not_wait_for_another_try() {
    const HAND_OVER: Duration = Duration::from_secs(3);
    const AHEAD: &str = "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
        $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000 $$";
    let Some(database) = Database::create().await else { return };
    let heartbeats = Heartbeats { hand_over: HAND_OVER, ..QUICK };
    let first = open(&database, heartbeats).await;
    commit(&first, [enqueue("lane", 0), enqueue("lane", 0)]).await.unwrap();
    let lease = Duration::from_hours(1);
    let in_work = first.claim(Claim { per_lane: 1, lease, ..claim(0) }).await.unwrap();
    execute(&database, AHEAD).await;
    // A process whose clock counts as right, whatever the database's says.
    let mut options = database.options();
    (options.heartbeats, options.follows_clock) = (heartbeats, false);
    let second = PostgresStore::open(options).await.unwrap();
    wait_for(async || (places(&second).await == 255).then_some(())).await;
    tokio::time::sleep(HAND_OVER + HAND_OVER / 10).await;
    commit(&first, finish(&in_work)).await.unwrap();
    let ended = std::time::Instant::now();
    claimed(&second).await;
    assert!(ended.elapsed() < HAND_OVER / 2, "{:?}", ended.elapsed());
    second.close().await;
    first.close().await;
}

/// A process that hears nothing of the database starts nothing; when others have declared it dead, its claims are void,
/// and it continues under another term.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hears_nothing_starts_nothing() {
    let Some(database) = Database::create().await else { return };
    let silent = Heartbeats { silent_after: Duration::from_millis(700), ..STILL };
    let first = open(&database, silent).await;
    commit(&first, [enqueue("lane", 0)]).await.unwrap();
    let lost = claimed(&first).await;
    let second = open(&database, Heartbeats { dead_after: Duration::from_millis(1_500), ..QUICK }).await;
    wait_for(async || matches!(first.claim(claim(0)).await, Err(StoreError::Unavailable)).then_some(())).await;
    assert!(!first.health().takes_work());
    let hold = Write::Job(JobWrite::Hold(lost[0].handle.clone()));
    let outcome = commit(&first, [hold.clone()]).await;
    assert!(matches!(outcome, Err(CommitError::Store(StoreError::Unavailable))), "{outcome:?}");
    let outcome = commit(&first, [Write::put(user(), Expect::Absent), hold]).await;
    assert!(matches!(outcome, Err(CommitError::Store(StoreError::Unavailable))), "{outcome:?}");
    let found = claimed(&second).await;
    assert_eq!(found[0].handle.id, lost[0].handle.id);
    let outcome = commit(&first, finish(&lost)).await;
    assert!(matches!(outcome, Err(CommitError::LeaseLost)), "{outcome:?}");
    commit(&second, finish(&found)).await.unwrap();
    assert_eq!(second.job_count().await.unwrap(), 0);
    second.close().await;
    first.close().await;
}

/// A backend that is ended in the middle of commits loses nothing that was acknowledged, and keeps nothing that was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backends_that_are_ended_lose_nothing() {
    let Some(database) = Database::create().await else { return };
    let store = Arc::new(open(&database, QUICK).await);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut outcomes = Vec::new();
                for _ in 0..60 {
                    let user = user();
                    let job: NewJob = job(&format!("{writer}"), 0);
                    let writes = [Write::put(user.clone(), Expect::Absent), Write::Job(JobWrite::Enqueue(job))];
                    outcomes.push((user.id, commit(&store, writes).await));
                }
                outcomes
            })
        })
        .collect();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        execute(
            &database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name LIKE 'messaging %' AND random() < 0.5",
        )
        .await;
    }
    let (mut kept, mut refused) = (0, 0);
    for writer in writers {
        for (id, outcome) in writer.await.unwrap() {
            let is_there = wait_for(async || store.user(id).await.ok()).await.is_some();
            match outcome {
                Ok(()) => assert!(is_there, "it was acknowledged"),
                Err(CommitError::Store(StoreError::OutcomeUnknown)) => {}
                Err(_) => {
                    assert!(!is_there, "it was refused");
                    refused += 1;
                }
            }
            kept += u64::from(is_there);
        }
    }
    assert_eq!(store.job_count().await.unwrap(), kept, "all of a commit or nothing");
    assert!(kept > 0 && kept + refused <= 240, "{kept} kept, {refused} refused");
    store.close().await;
}
