//! Lanes: fairness, limits, holding.

use std::collections::{BTreeMap, HashMap};

use messaging_core::changes::Write;
use messaging_core::domain::delivery::lane::{Flow, JobClass, Lane};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::jobs::{Claim, ClaimedJob};
use messaging_core::ports::store::{Priority, Store, StoreError};

use super::put;
use super::sample::{at, claim, enqueue, finish, id, monotonic, next_due};

fn per_lane(jobs: &[ClaimedJob]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.handle.lane.as_str()).or_default() += 1;
    }
    counts
}

async fn enqueue_many(store: &dyn Store, lane: &str, due: i64, count: usize) {
    put(store, (0..count).map(|_| enqueue(lane, due)).collect::<Vec<Write>>()).await;
}

/// A lane with a thousand older jobs does not delay lanes with one.
pub async fn a_busy_lane_does_not_delay_others(store: &dyn Store) {
    enqueue_many(store, "busy.example", 0, 1_000).await;
    put(store, (0..20).map(|n| enqueue(&format!("{n}.example"), 10)).collect::<Vec<_>>()).await;
    let claimed = store.claim(Claim { max: 50, per_lane: 5, ..claim(10) }).await.unwrap();
    let counts = per_lane(&claimed);
    assert_eq!(counts["busy.example"], 5);
    assert_eq!(counts.len(), 21);
}

/// The senders to one resource get no more jobs together than a single one would, each in turn, and are held back
/// together.
pub async fn senders_take_turns_within_one_limit(store: &dyn Store) {
    let shared = Lane::new(JobClass::Bulk, id(), "email:a.example");
    let senders = ["one", "two", "three"].map(|sender| shared.of_sender(sender));
    for (lane, count) in senders.iter().zip([9, 2, 3]) {
        enqueue_many(store, lane.as_str(), 0, count).await;
    }
    let shares = HashMap::from([(shared.clone(), 2)]);
    let mut given = Vec::new();
    for now in 1..4 {
        let claimed = store.claim(Claim { shares: shares.clone(), ..claim(now) }).await.unwrap();
        assert_eq!(claimed.len(), 2, "{claimed:?}");
        given.extend(per_lane(&claimed).into_keys().map(ToOwned::to_owned));
        put(store, finish(&claimed)).await;
    }
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 3, "{given:?}");
    let held = Claim { hold: vec![(shared.clone(), monotonic(9))], ..claim(4) };
    assert_eq!(store.claim(held).await.unwrap(), []);
    let claimed = store.claim(Claim { per_lane: 5, ..claim(5) }).await.unwrap();
    assert_eq!(claimed.len(), 5);
    put(store, finish(&claimed)).await;
    assert_eq!(store.claim(claim(6)).await.unwrap().len(), 3);
}

/// Two handles of one database: all jobs of a lane go to one of them as long as the lane has any, also jobs that are
/// added through the other. A handle that may not claim at all says so.
///
/// Not among the cases of [`conformance_tests!`](crate::conformance_tests), which open one handle.
pub async fn a_lane_is_claimed_by_one_process(one: &dyn Store, other: &dyn Store) {
    let few = || Claim { per_lane: 2, ..claim(0) };
    let lanes = ["a", "b", "c", "d"];
    for lane in lanes {
        enqueue_many(one, lane, 0, 3).await;
        enqueue_many(other, lane, 0, 3).await;
    }
    let mut held = BTreeMap::new();
    for round in 0..8 {
        for (process, store) in [one, other].into_iter().enumerate() {
            let claimed = match store.claim(few()).await {
                Ok(claimed) => claimed,
                Err(StoreError::Failed(_)) => Vec::new(),
                Err(error) => panic!("round {round}: {error}"),
            };
            for job in claimed {
                let owner = *held.entry(job.handle.lane.to_string()).or_insert(process);
                assert_eq!(owner, process, "{} is worked on by two", job.handle.lane);
            }
        }
        if round == 0 {
            for store in [one, other] {
                put(store, lanes.map(|lane| enqueue(lane, 0))).await;
            }
        }
    }
    assert_eq!(held.len(), lanes.len(), "every lane has somebody");
}

/// Lanes with more work than one claim takes are served in turn, also within one millisecond.
pub async fn lanes_take_turns(store: &dyn Store) {
    for lane in ["a", "b", "c", "d"] {
        enqueue_many(store, lane, 0, 6).await;
    }
    let mut order = Vec::new();
    for _ in 0..12 {
        let claimed = store.claim(Claim { max: 2, per_lane: 1, ..claim(5) }).await.unwrap();
        order.extend(claimed.iter().map(|job| job.handle.lane.to_string()));
    }
    for round in order.chunks(4) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, ["a", "b", "c", "d"]);
    }
    // A lane that comes later has waited less than those that were served before it came.
    put(store, [enqueue("late", 6)]).await;
    let claimed = store.claim(Claim { max: 24, per_lane: 1, ..claim(6) }).await.unwrap();
    assert_eq!(per_lane(&claimed).get("late"), Some(&1));
}

/// Neither the limit of a lane nor that of the claim is exceeded, and no job is lost by them.
pub async fn a_lane_gives_no_more_than_allowed(store: &dyn Store) {
    enqueue_many(store, "a", 0, 10).await;
    enqueue_many(store, "b", 0, 3).await;
    let limited = |max, per_lane| Claim { max, per_lane, ..claim(1) };
    assert_eq!(store.claim(limited(0, 5)).await.unwrap(), []);
    assert_eq!(store.claim(limited(5, 0)).await.unwrap(), []);
    let first = store.claim(limited(100, 2)).await.unwrap();
    assert_eq!(per_lane(&first), BTreeMap::from([("a", 2), ("b", 2)]));
    let mut rest = Vec::new();
    loop {
        let claimed = store.claim(limited(3, 100)).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        assert!(claimed.len() <= 3);
        rest.extend(claimed);
    }
    assert_eq!(per_lane(&rest), BTreeMap::from([("a", 8), ("b", 1)]));
}

/// A lane with a share of its own gives that number of jobs, the others the usual number.
pub async fn a_lane_may_have_a_share_of_its_own(store: &dyn Store) {
    for lane in ["few", "many", "usual"] {
        enqueue_many(store, lane, 0, 10).await;
    }
    let shares = HashMap::from([("few".into(), 1), ("many".into(), 7)]);
    let claimed = store.claim(Claim { per_lane: 3, shares, ..claim(1) }).await.unwrap();
    assert_eq!(per_lane(&claimed), BTreeMap::from([("few", 1), ("many", 7), ("usual", 3)]));
}

/// A held lane is not claimed until its time.
pub async fn held_lanes_are_left_alone(store: &dyn Store) {
    put(store, [enqueue("slow", 0), enqueue("slow", 0), enqueue("fast", 0)]).await;
    let holding = |now, until| Claim { hold: vec![("slow".into(), monotonic(until))], ..claim(now) };
    let claimed = store.claim(holding(0, 100)).await.unwrap();
    assert_eq!(per_lane(&claimed), BTreeMap::from([("fast", 1)]));
    put(store, finish(&claimed)).await;
    assert_eq!(next_due(store).await, Some(at(100)));
    // A job that is added does not end the hold, and a longer hold lasts longer.
    put(store, [enqueue("slow", 1)]).await;
    assert_eq!(store.claim(holding(50, 100)).await.unwrap(), []);
    assert_eq!(store.claim(holding(60, 300)).await.unwrap(), []);
    assert_eq!(next_due(store).await, Some(at(300)));
    // A hold that is over has no effect.
    let claimed = store.claim(holding(300, 300)).await.unwrap();
    assert_eq!(per_lane(&claimed), BTreeMap::from([("slow", 3)]));
    put(store, finish(&claimed)).await;
    assert_eq!(next_due(store).await, None);
}

/// A claim that no longer holds a lane gets its jobs, whatever end an earlier hold had.
pub async fn a_lane_let_go_is_claimed_at_once(store: &dyn Store) {
    enqueue_many(store, "lane", 0, 3).await;
    let first = store.claim(Claim { per_lane: 1, ..claim(0) }).await.unwrap();
    let holding = Claim { hold: vec![("lane".into(), monotonic(60_000))], ..claim(1) };
    assert_eq!(store.claim(holding).await.unwrap(), []);
    put(store, finish(&first)).await;
    assert_eq!(store.claim(claim(2)).await.unwrap().len(), 2);
}

/// A lane whose jobs are all claimed takes new ones.
pub async fn a_job_added_to_a_leased_lane_is_claimed(store: &dyn Store) {
    put(store, [enqueue("lane", 0)]).await;
    let first = store.claim(claim(0)).await.unwrap();
    put(store, [enqueue("lane", 5), enqueue("lane", 2_000)]).await;
    assert_eq!(next_due(store).await, Some(at(5)));
    let second = store.claim(claim(5)).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(next_due(store).await, Some(at(1_000)));
    // The first lease ends before the second.
    assert_eq!(store.claim(claim(1_000)).await.unwrap().len(), 1);
    assert_eq!(next_due(store).await, Some(at(1_005)));
    put(store, finish(&second)).await;
    assert_eq!(next_due(store).await, Some(at(2_000)));
    put(store, finish(&store.claim(claim(2_000)).await.unwrap())).await;
    drop(first);
    assert_eq!(next_due(store).await, None);
}

/// After the last job of a lane was finished, late but not too late, there is nothing to wake up for.
pub async fn an_empty_lane_is_forgotten(store: &dyn Store) {
    put(store, [enqueue("lane", 0), enqueue("other", 5_000)]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    // The lease is over, and the lane was looked at, but the job was not claimed again.
    assert_eq!(store.claim(Claim { max: 0, ..claim(3_000) }).await.unwrap(), []);
    put(store, finish(&claimed)).await;
    assert_eq!(next_due(store).await, Some(at(5_000)));
}

/// Jobs enqueued in the background are claimed like others.
pub async fn background_work_takes_part(store: &dyn Store) {
    store.commit([enqueue("lane", 0)].into_iter().collect(), Priority::Background).await.unwrap();
    let claimed = store.claim(claim(0)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    store.commit(finish(&claimed).into_iter().collect(), Priority::Background).await.unwrap();
    assert_eq!(store.job_count().await.unwrap(), 0);
}

/// Adds jobs to a lane of a class and workspace.
async fn enqueue_in(store: &dyn Store, lane: &Lane, due: i64, count: usize) {
    enqueue_many(store, lane.as_str(), due, count).await;
}

fn per_flow(jobs: &[ClaimedJob]) -> BTreeMap<Flow, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.handle.lane.flow()).or_default() += 1;
    }
    counts
}

fn flow(class: JobClass, workspace: WorkspaceId) -> Flow {
    Flow { class, workspace: Some(workspace) }
}

/// With any number of bulk jobs that waited for longer, in any number of lanes, transactional jobs are claimed first,
/// of the same workspace and of others; and with any number of those, bulk jobs are claimed as well.
pub async fn transactional_work_goes_first_and_bulk_work_goes_on(store: &dyn Store) {
    let (sender, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let bulk = flow(JobClass::Bulk, sender);
    for number in 0..300 {
        enqueue_in(store, &Lane::new(JobClass::Bulk, sender, &format!("email:{number}.example")), 0, 2).await;
    }
    for owner in [sender, other] {
        enqueue_in(store, &Lane::new(JobClass::Transactional, owner, "email:0.example"), 10, 1).await;
    }
    let claimed = store.claim(Claim { max: 10, per_lane: 5, ..claim(10) }).await.unwrap();
    let (mine, theirs) = (flow(JobClass::Transactional, sender), flow(JobClass::Transactional, other));
    assert_eq!(per_flow(&claimed), BTreeMap::from([(mine, 1), (theirs, 1), (bulk, 8)]));
    assert_eq!(claimed[0].handle.lane.class(), JobClass::Transactional);
    enqueue_in(store, &Lane::new(JobClass::Transactional, other, "email:0.example"), 10, 1_000).await;
    let claimed = store.claim(Claim { max: 80, ..claim(11) }).await.unwrap();
    assert_eq!(per_flow(&claimed), BTreeMap::from([(theirs, 70), (bulk, 10)]));
    let limited = store.claim(Claim { max: 80, bulk: 3, ..claim(11) }).await.unwrap();
    assert_eq!(per_flow(&limited), BTreeMap::from([(theirs, 77), (bulk, 3)]));
}

/// Lanes of some resources are not claimed however long they wait, of any owner, until a claim releases them.
pub async fn withheld_lanes_are_left_alone_until_they_are_let_go(store: &dyn Store) {
    let owner: WorkspaceId = id();
    let lane = |class, resource: &str| Lane::new(class, owner, resource);
    for resource in ["email:a.example", "email:b.example", "webhook:1", "imports"] {
        enqueue_in(store, &lane(JobClass::Transactional, resource), 0, 2).await;
        enqueue_in(store, &lane(JobClass::Bulk, resource), 3, 1).await;
    }
    enqueue_many(store, "email:old.example", 1, 1).await;
    let withheld = |now| Claim { withheld: &["email:", "webhook:"], ..claim(now) };
    let resources = |jobs: &[ClaimedJob]| {
        let mut resources: Vec<_> = jobs.iter().map(|job| job.handle.lane.resource().to_owned()).collect();
        resources.sort();
        resources
    };
    let claimed = store.claim(withheld(0)).await.unwrap();
    assert_eq!(resources(&claimed), ["imports", "imports"]);
    put(store, finish(&claimed)).await;
    // Jobs that are added meanwhile are not claimed either, and other lanes continue.
    enqueue_in(store, &lane(JobClass::Transactional, "email:a.example"), 0, 1).await;
    enqueue_in(store, &lane(JobClass::Transactional, "email:new.example"), 0, 1).await;
    let claimed = store.claim(withheld(10_000)).await.unwrap();
    assert_eq!(resources(&claimed), ["imports"]);
    put(store, finish(&claimed)).await;
    assert_eq!(store.claim(withheld(20_000)).await.unwrap(), []);
    let claimed = store.claim(claim(20_000)).await.unwrap();
    let expected: BTreeMap<_, usize> = BTreeMap::from([
        ("email:a.example".to_owned(), 4),
        ("email:b.example".to_owned(), 3),
        ("email:new.example".to_owned(), 1),
        ("email:old.example".to_owned(), 1),
        ("webhook:1".to_owned(), 3),
    ]);
    let mut counts = BTreeMap::new();
    for resource in resources(&claimed) {
        *counts.entry(resource).or_insert(0) += 1;
    }
    assert_eq!(counts, expected);
}

/// Due jobs of one workspace, in any number of lanes, do not keep another one waiting; weights decide the shares.
pub async fn workspaces_take_turns_by_weight(store: &dyn Store) {
    let owners: Vec<WorkspaceId> = (0..3).map(|_| id()).collect();
    for number in 0..300 {
        let lane = format!("email:{number}.example");
        enqueue_in(store, &Lane::new(JobClass::Transactional, owners[0], &lane), 0, 2).await;
    }
    enqueue_in(store, &Lane::new(JobClass::Transactional, owners[1], "email:0.example"), 5, 400).await;
    // A lane of the installation, as versions without classes named all lanes.
    enqueue_many(store, "email:old.example", 6, 2).await;
    let flows: Vec<_> = owners.iter().map(|owner| flow(JobClass::Transactional, *owner)).collect();
    let installation = Flow { class: JobClass::Transactional, workspace: None };
    let claimed = store.claim(Claim { max: 62, ..claim(6) }).await.unwrap();
    assert_eq!(per_flow(&claimed), BTreeMap::from([(installation, 2), (flows[0], 30), (flows[1], 30)]));
    let weights = HashMap::from([(owners[1], 3)]);
    let claimed = store.claim(Claim { max: 80, weights, ..claim(6) }).await.unwrap();
    assert_eq!(per_flow(&claimed), BTreeMap::from([(flows[0], 20), (flows[1], 60)]));
    let limits = HashMap::from([(flows[0], 0)]);
    let claimed = store.claim(Claim { max: 80, flows: limits, per_flow: 50, ..claim(6) }).await.unwrap();
    assert_eq!(per_flow(&claimed), BTreeMap::from([(flows[1], 50)]));
    // No job is lost.
    let mut rest = 0;
    loop {
        let claimed = store.claim(Claim { max: 100, per_lane: 7, ..claim(7) }).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        rest += claimed.len();
    }
    assert_eq!(rest, 600 + 400 + 2 - 62 - 80 - 50);
}
