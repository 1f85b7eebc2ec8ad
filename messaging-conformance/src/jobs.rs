//! Jobs: claims, leases, the next due time.

use std::collections::HashSet;

use bytes::Bytes;
use messaging_core::changes::{Expect, JobHandle, JobWrite, NewJob, PutBack, Reschedule, Write};
use messaging_core::ports::store::jobs::Claim;
use messaging_core::ports::store::{Priority, Queues, Store};

use super::sample::{at, claim, enqueue, finish, handles, id_at, job, monotonic, next_due, user};
use super::{put, refuse, refuse_claim};

/// A claimed job carries what was enqueued, is not claimed again, and is finished once.
pub async fn a_claimed_job_is_finished_once(store: &dyn Store) {
    let new = job("example.org", 5);
    put(store, [Write::Job(JobWrite::Enqueue(new.clone()))]).await;
    let claimed = store.claim(claim(5)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    let handle = &claimed[0].handle;
    assert_eq!((handle.id, &handle.lane, handle.due_at), (new.id, &new.lane, new.due_at));
    assert_eq!((claimed[0].kind.as_str(), &claimed[0].payload), (new.kind, &new.payload));
    assert_eq!(store.claim(claim(6)).await.unwrap(), []);
    put(store, finish(&claimed)).await;
    refuse_claim(store, finish(&claimed)).await;
    assert_eq!(store.claim(claim(60_000)).await.unwrap(), []);
}

/// Unclaimed jobs are listed by kind, due or not, and removed; a claimed one stays.
pub async fn jobs_are_listed_by_kind_and_removed(store: &dyn Store) {
    let of_kind = |kind, lane: &str, due| NewJob { kind, ..job(lane, due) };
    let jobs = [of_kind("one", "a", 0), of_kind("two", "a", 9_000), of_kind("three", "b", 0), of_kind("two", "c", 5)];
    put(store, jobs.clone().map(|job| Write::Job(JobWrite::Enqueue(job)))).await;
    let listed = store.jobs_of(&["one", "two"], 9).await.unwrap();
    let ids: HashSet<_> = listed.iter().map(|job| job.place.id).collect();
    assert_eq!(ids, HashSet::from([jobs[0].id, jobs[1].id, jobs[3].id]));
    let found = listed.iter().find(|job| job.place.id == jobs[1].id).unwrap();
    assert_eq!((found.kind.as_str(), &found.payload, found.place.due_at), ("two", &jobs[1].payload, at(9_000)));
    assert_eq!(store.jobs_of(&["two"], 1).await.unwrap().len(), 1);
    assert_eq!(store.jobs_of(&[], 9).await.unwrap(), []);

    let claimed = store.claim(Claim { max: 9, ..claim(0) }).await.unwrap();
    assert_eq!(claimed.len(), 2);
    let remove = |id| {
        listed.iter().find(|job| job.place.id == id).map(|job| Write::Job(JobWrite::Remove(job.place.clone()))).unwrap()
    };
    refuse(store, [remove(jobs[0].id)]).await;
    put(store, [remove(jobs[1].id), remove(jobs[3].id)]).await;
    put(store, [remove(jobs[1].id)]).await;
    put(store, finish(&claimed)).await;
    assert_eq!(store.job_count().await.unwrap(), 0);
    assert_eq!(store.claim(claim(60_000)).await.unwrap(), [], "nothing is left of their lanes");
    put(store, [enqueue("a", 55_000)]).await;
    assert_eq!(store.claim(claim(60_000)).await.unwrap().len(), 1);
}

/// Waiting jobs are summed up by the first part of their resource, and the longest lanes are listed.
pub async fn queues_are_summed_up(store: &dyn Store) {
    assert_eq!(store.queues(3).await.unwrap(), Queues::default());
    for (lane, count) in [("email:a.example", 3), ("email:b.example", 1), ("email:c.example", 2), ("sms", 1)] {
        for _ in 0..count {
            put(store, [enqueue(lane, 0)]).await;
        }
    }
    let young = NewJob { id: id_at(7), ..job("fax:1", 20) };
    put(store, [enqueue("sms", 10)]).await;
    put(store, [Write::Job(JobWrite::Enqueue(young))]).await;
    let queues = store.queues(2).await.unwrap();
    let sums: Vec<_> = queues.sums.iter().map(|(kind, queued)| (kind.as_str(), queued.jobs)).collect();
    assert_eq!(sums, [("email", 6), ("fax", 1), ("sms", 2)]);
    assert_eq!((queues.sums["email"].oldest, queues.sums["fax"].oldest), (at(0), at(7)));
    assert_eq!((queues.sums["sms"].due, queues.sums["fax"].due), (at(0), at(20)), "the first that is due");
    let lanes: Vec<_> = queues.lanes.iter().map(|(lane, queued)| (lane.as_str(), queued.jobs)).collect();
    assert_eq!((lanes[0], lanes.len()), (("email:a.example", 3), 2));
}

/// A job that its lane needs only once is added if the lane has none.
pub async fn a_lane_gets_one_job_of_a_kind_that_is_needed_once(store: &dyn Store) {
    let once = |lane: &str, due| Write::Job(JobWrite::EnqueueOnce(job(lane, due)));
    put(store, [once("a", 0), once("a", 0), once("b", 0)]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    assert_eq!(claimed.len(), 2);
    // A claimed job counts as well.
    put(store, [once("a", 0), once("b", 0)]).await;
    assert_eq!(store.claim(claim(0)).await.unwrap(), []);
    put(store, finish(&claimed)).await;
    put(store, [once("a", 0)]).await;
    assert_eq!(store.claim(claim(0)).await.unwrap().len(), 1);
}

/// A job whose lane is woken is claimed before its time; if it is in work meanwhile, as soon as it is put back.
pub async fn a_lane_that_is_woken_is_due(store: &dyn Store) {
    let wake = |lane: &str, now| Write::Job(JobWrite::WakeLane(lane.into(), at(now)));
    put(store, [enqueue("a", 1_000), enqueue("b", 1_000)]).await;
    assert_eq!(store.claim(claim(10)).await.unwrap(), []);
    put(store, [wake("a", 10), wake("nothing", 10)]).await;
    let claimed = store.claim(claim(10)).await.unwrap();
    assert_eq!(handles(&claimed).iter().map(|handle| handle.lane.as_str()).collect::<Vec<_>>(), ["a"]);
    let later = |now| Reschedule { due_at: at(1_000), at: at(now), payload: Bytes::new() };
    put(store, [wake("a", 20)]).await;
    assert_eq!(store.claim(claim(20)).await.unwrap(), []);
    put(store, [Write::Job(JobWrite::Reschedule(claimed[0].handle.clone(), later(30)))]).await;
    let again = store.claim(claim(30)).await.unwrap();
    assert_eq!(again.len(), 1);
    // The lane was woken once.
    put(store, [Write::Job(JobWrite::Reschedule(again[0].handle.clone(), later(40)))]).await;
    assert_eq!(store.claim(claim(999)).await.unwrap(), []);
    assert_eq!(store.claim(claim(1_000)).await.unwrap().len(), 2);
}

/// A lane that a refused commit was to wake stays asleep.
pub async fn a_refused_commit_wakes_no_lane(store: &dyn Store) {
    let known = user();
    put(store, [Write::put(known.clone(), Expect::Absent), enqueue("a", 1_000)]).await;
    refuse(store, [Write::Job(JobWrite::WakeLane("a".into(), at(10))), Write::put(known, Expect::Absent)]).await;
    assert_eq!(store.claim(claim(999)).await.unwrap(), []);
    assert_eq!(store.claim(claim(1_000)).await.unwrap().len(), 1);
}

/// A job is not claimed before its time.
pub async fn what_is_not_due_is_not_claimed(store: &dyn Store) {
    put(store, [enqueue("a", 100), enqueue("a", 50), enqueue("b", 200)]).await;
    assert_eq!(store.claim(claim(49)).await.unwrap(), []);
    let due: Vec<_> = handles(&store.claim(claim(100)).await.unwrap()).iter().map(|handle| handle.due_at).collect();
    assert_eq!(due, [at(50), at(100)]);
    assert_eq!(store.claim(claim(200)).await.unwrap().len(), 1);
}

/// Concurrent claims share the jobs without overlap.
pub async fn two_claimers_never_get_one_job(store: &dyn Store) {
    let lanes = ["a", "b", "c", "d", "e"];
    put(store, (0..200).map(|n| enqueue(lanes[n % 5], 0)).collect::<Vec<_>>()).await;
    let mut seen = HashSet::new();
    loop {
        let some = || store.claim(Claim { max: 13, per_lane: 4, ..claim(1) });
        let (one, other, third) = tokio::join!(some(), some(), some());
        let jobs = [one.unwrap(), other.unwrap(), third.unwrap()].concat();
        if jobs.is_empty() {
            break;
        }
        for handle in handles(&jobs) {
            assert!(seen.insert(handle.id), "claimed twice");
        }
    }
    assert_eq!(seen.len(), 200);
}

/// After its lease a job is claimed again, and the first claim is void.
pub async fn an_expired_lease_is_claimed_again(store: &dyn Store) {
    put(store, [enqueue("lane", 0)]).await;
    let first = store.claim(claim(0)).await.unwrap();
    assert_eq!(store.claim(claim(999)).await.unwrap(), []);
    let second = store.claim(claim(1_000)).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].handle.id, first[0].handle.id);
    assert_ne!(second[0].handle.token, first[0].handle.token);
    refuse_claim(store, finish(&first)).await;
    let again = Reschedule { due_at: at(5_000), at: at(0), payload: Bytes::new() };
    refuse_claim(store, [Write::Job(JobWrite::Reschedule(first[0].handle.clone(), again))]).await;
    put(store, finish(&second)).await;
    assert_eq!(next_due(store).await, None);
}

/// A handle that no claim returned is refused, whether the job is claimed or not.
pub async fn a_foreign_token_is_refused(store: &dyn Store) {
    let new = job("lane", 0);
    put(store, [Write::Job(JobWrite::Enqueue(new.clone()))]).await;
    let handle = JobHandle { id: new.id, lane: new.lane, due_at: new.due_at, token: 0 };
    refuse_claim(store, [Write::Job(JobWrite::Finish(handle.clone()))]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    refuse_claim(
        store,
        [Write::Job(JobWrite::Finish(JobHandle { token: claimed[0].handle.token.wrapping_add(1), ..handle }))],
    )
    .await;
    put(store, finish(&claimed)).await;
}

/// A rescheduled job comes back at its time with its new payload, and its old handle is void.
pub async fn a_rescheduled_job_comes_back(store: &dyn Store) {
    put(store, [enqueue("lane", 0)]).await;
    let first = store.claim(claim(0)).await.unwrap();
    let later = Reschedule { due_at: at(500), at: at(0), payload: Bytes::from_static(b"{\"attempt\":2}") };
    put(store, [Write::Job(JobWrite::Reschedule(first[0].handle.clone(), later.clone()))]).await;
    refuse_claim(store, [Write::Job(JobWrite::Reschedule(first[0].handle.clone(), later.clone()))]).await;
    refuse_claim(store, finish(&first)).await;
    assert_eq!(next_due(store).await, Some(at(500)));
    assert_eq!(store.claim(claim(499)).await.unwrap(), []);
    let second = store.claim(claim(500)).await.unwrap();
    assert_eq!((second[0].handle.id, second[0].handle.due_at), (first[0].handle.id, at(500)));
    assert_eq!((&second[0].payload, &second[0].kind), (&later.payload, &first[0].kind));
    // To the very same time.
    put(store, [Write::Job(JobWrite::Reschedule(second[0].handle.clone(), later))]).await;
    let third = store.claim(claim(500)).await.unwrap();
    assert_eq!(third.len(), 1);
    put(store, finish(&third)).await;
    assert_eq!(store.job_count().await.unwrap(), 0);
}

fn back(handle: JobHandle, due: i64, is_failure: bool) -> Write {
    Write::Job(JobWrite::PutBack(handle, PutBack { due_at: at(due), at: at(0), is_failure }))
}

/// A saved job stays claimed; the saved state comes back if its run fails, and its own failures are counted until the
/// job reschedules itself.
pub async fn a_saved_job_stays_claimed_and_comes_back_as_saved(store: &dyn Store) {
    put(store, [enqueue("lane", 0)]).await;
    let claimed = store.claim(claim(0)).await.unwrap().remove(0);
    assert_eq!(claimed.failures, 0);
    let saved = Bytes::from_static(b"{\"saved\":true}");
    put(store, [Write::Job(JobWrite::Save(claimed.handle.clone(), saved.clone()))]).await;
    assert_eq!(store.claim(claim(10)).await.unwrap(), []);
    let foreign = JobHandle { token: claimed.handle.token.wrapping_add(1), ..claimed.handle.clone() };
    refuse_claim(store, [Write::Job(JobWrite::Save(foreign.clone(), Bytes::new()))]).await;
    refuse_claim(store, [back(foreign, 1, true)]).await;
    put(store, [back(claimed.handle.clone(), 20, true)]).await;
    refuse_claim(store, [Write::Job(JobWrite::Save(claimed.handle.clone(), Bytes::new()))]).await;
    refuse_claim(store, [back(claimed.handle, 30, true)]).await;
    assert_eq!(next_due(store).await, Some(at(20)));
    let mut again = store.claim(claim(20)).await.unwrap().remove(0);
    assert_eq!((again.failures, &again.payload), (1, &saved));
    put(store, [back(again.handle, 40, true)]).await;
    again = store.claim(claim(40)).await.unwrap().remove(0);
    assert_eq!((again.failures, &again.payload), (2, &saved));
    put(store, [back(again.handle, 45, false)]).await;
    again = store.claim(claim(45)).await.unwrap().remove(0);
    assert_eq!((again.failures, &again.payload), (2, &saved));
    let next = Reschedule { due_at: at(50), at: at(45), payload: Bytes::from_static(b"{}") };
    put(store, [Write::Job(JobWrite::Reschedule(again.handle, next.clone()))]).await;
    again = store.claim(claim(50)).await.unwrap().remove(0);
    assert_eq!((again.failures, &again.payload), (0, &next.payload));
    put(store, finish(&[again])).await;
}

/// A claim is confirmed any number of times, alone or with other writes, without a change. Once it is lost, nothing is
/// written with it.
pub async fn a_held_claim_is_confirmed(store: &dyn Store) {
    put(store, [enqueue("lane", 0), enqueue("lane", 700)]).await;
    let first = store.claim(claim(0)).await.unwrap().remove(0).handle;
    let hold = |handle: &JobHandle| Write::Job(JobWrite::Hold(handle.clone()));
    let kept = user();
    put(store, [hold(&first)]).await;
    put(store, [Write::put(kept.clone(), Expect::Absent), hold(&first), hold(&first)]).await;
    assert!(store.user(kept.id).await.unwrap().is_some());
    assert_eq!(next_due(store).await, Some(at(700)));
    store.commit([hold(&first)].into_iter().collect(), Priority::Background).await.expect("commits");
    let foreign = JobHandle { token: first.token.wrapping_add(1), ..first.clone() };
    refuse_claim(store, [hold(&foreign)]).await;
    refuse_claim(store, [hold(&first), hold(&foreign)]).await;
    let mut second = store.claim(claim(1_000)).await.unwrap();
    second.retain(|job| job.handle.id == first.id);
    refuse_claim(store, [hold(&first)]).await;
    let refused = user();
    for writes in [
        [hold(&first), Write::put(refused.clone(), Expect::Absent)],
        [Write::put(refused.clone(), Expect::Absent), hold(&first)],
    ] {
        refuse_claim(store, writes).await;
    }
    assert_eq!(store.user(refused.id).await.unwrap(), None);
    put(store, [hold(&second[0].handle)]).await;
    put(store, finish(&second)).await;
    refuse_claim(store, [hold(&second[0].handle)]).await;
}

/// A commit that fails after it finished a job leaves the job claimed by the same handle.
pub async fn a_failed_commit_keeps_the_lease(store: &dyn Store) {
    let existing = user();
    put(store, [Write::put(existing.clone(), Expect::Absent), enqueue("lane", 0), enqueue("other", 0)]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    let mut writes = finish(&claimed);
    writes.push(enqueue("lane", 3));
    writes.push(Write::put(existing, Expect::Absent));
    refuse(store, writes).await;
    assert_eq!(store.claim(claim(10)).await.unwrap(), []);
    assert_eq!(next_due(store).await, Some(at(1_000)));
    put(store, finish(&claimed)).await;
    assert_eq!(next_due(store).await, None);
}

/// The next due time follows jobs, claims, leases and their ends.
pub async fn next_due_knows_jobs_and_leases(store: &dyn Store) {
    assert_eq!(next_due(store).await, None);
    put(store, [enqueue("a", 300), enqueue("b", 200), enqueue("a", 100)]).await;
    assert_eq!(next_due(store).await, Some(at(100)));
    let first = store.claim(claim(100)).await.unwrap();
    assert_eq!(next_due(store).await, Some(at(200)));
    let second = store.claim(claim(200)).await.unwrap();
    assert_eq!(next_due(store).await, Some(at(300)));
    let third = store.claim(claim(300)).await.unwrap();
    assert_eq!(next_due(store).await, Some(at(1_100)));
    put(store, finish(&first)).await;
    assert_eq!(next_due(store).await, Some(at(1_200)));
    put(store, finish(&second)).await;
    assert_eq!(next_due(store).await, Some(at(1_300)));
    put(store, finish(&third)).await;
    assert_eq!(next_due(store).await, None);
    put(store, [enqueue("a", 50)]).await;
    assert_eq!(next_due(store).await, Some(at(50)));
}

/// Waiting and claimed jobs are counted.
pub async fn jobs_are_counted(store: &dyn Store) {
    assert_eq!(store.job_count().await.unwrap(), 0);
    put(store, [enqueue("a", 0), enqueue("b", 0), enqueue("b", 9_000)]).await;
    let claimed = store.claim(claim(0)).await.unwrap();
    assert_eq!(store.job_count().await.unwrap(), 3);
    put(store, finish(&claimed)).await;
    assert_eq!(store.job_count().await.unwrap(), 1);
}

const TEN_YEARS: i64 = 10 * 365 * 86_400_000;

/// A job that was added at `time` and is due `wait` milliseconds later.
fn dated(lane: &str, time: i64, wait: i64) -> NewJob {
    NewJob { id: id_at(time), ..job(lane, time + wait) }
}

/// When a clock that was ahead is set back, jobs dated by it get new dates, and earlier jobs keep theirs.
pub async fn what_a_wrong_clock_dated_is_dated_anew(store: &dyn Store) {
    put(
        store,
        [Write::Job(JobWrite::Enqueue(dated("lane", 0, 9_000))), Write::Job(JobWrite::Enqueue(dated("other", 0, 500)))],
    )
    .await;
    let wrong = [dated("lane", TEN_YEARS, 0), dated("lane", TEN_YEARS, 5_000), dated("wrong", TEN_YEARS, 700)];
    put(store, wrong.map(|job| Write::Job(JobWrite::Enqueue(job)))).await;
    let due = async |now| {
        let claimed = store.claim(claim(now)).await.unwrap();
        put(store, finish(&claimed)).await;
        claimed.iter().map(|job| (job.handle.lane.to_string(), job.handle.due_at)).collect::<Vec<_>>()
    };
    let entry = |lane: &str, time| (lane.to_owned(), at(time));
    assert_eq!(due(10).await, [entry("lane", 10)], "it was due at once");
    assert_eq!(due(499).await, []);
    assert_eq!(due(500).await, [entry("other", 500)]);
    assert_eq!(due(710).await, [entry("wrong", 710)]);
    assert_eq!(due(5_009).await, []);
    assert_eq!(due(5_010).await, [entry("lane", 5_010)]);
    assert_eq!(due(9_000).await, [entry("lane", 9_000)]);
    assert_eq!(store.job_count().await.unwrap(), 0);
}

/// A job that is in work while the clock is set back is finished with its earlier claim, and a claim that is never
/// finished ends by the monotonic clock.
pub async fn what_is_in_work_when_the_clock_is_set_back_stays_so(store: &dyn Store) {
    let wrong = [dated("a", TEN_YEARS, 0), dated("b", TEN_YEARS, 0), dated("c", TEN_YEARS, 0)];
    put(store, wrong.map(|job| Write::Job(JobWrite::Enqueue(job)))).await;
    let ahead = store.claim(Claim { monotonic: monotonic(0), ..claim(TEN_YEARS) }).await.unwrap();
    assert_eq!(ahead.len(), 3);
    assert_eq!(store.claim(Claim { monotonic: monotonic(10), ..claim(0) }).await.unwrap(), []);
    put(store, finish(&ahead[..1])).await;
    let again = Reschedule { due_at: at(300), at: at(0), payload: Bytes::new() };
    put(store, [Write::Job(JobWrite::Reschedule(ahead[1].handle.clone(), again))]).await;
    assert_eq!(store.claim(Claim { monotonic: monotonic(999), ..claim(299) }).await.unwrap(), []);
    let mut later = Vec::new();
    for _ in 0..3 {
        later.extend(store.claim(Claim { monotonic: monotonic(1_000), ..claim(301) }).await.unwrap());
    }
    assert_eq!(later.len(), 2, "the rescheduled one, and the one whose claim ended");
    put(store, finish(&later)).await;
    assert_eq!(store.job_count().await.unwrap(), 0);
}

/// The jobs of lanes are counted, claimed ones too, up to a maximum.
pub async fn the_jobs_of_lanes_are_counted(store: &dyn Store) {
    put(store, ["a", "a", "a", "b", "aa"].map(|lane| enqueue(lane, 0))).await;
    put(store, [enqueue("a", 1_000)]).await;
    let lanes = ["aa", "a", "nothing", "b", "a"].map(Into::into);
    let lengths = async |most| store.lane_lengths(&lanes, at(999), most).await.unwrap();
    assert_eq!(lengths(100).await, [1, 3, 0, 1, 3]);
    assert_eq!(lengths(2).await, [1, 2, 0, 1, 2]);
    let claimed = store.claim(Claim { max: 2, ..claim(0) }).await.unwrap();
    assert_eq!(lengths(100).await, [1, 3, 0, 1, 3]);
    put(store, finish(&claimed)).await;
    assert_eq!(lengths(100).await.into_iter().take(4).sum::<u64>(), 3);
    assert_eq!(store.lane_lengths(&["a".into()], at(1_000), 10).await.unwrap().len(), 1);
    assert_eq!(store.lane_lengths(&[], at(0), 10).await.unwrap(), [0_u64; 0]);
}
