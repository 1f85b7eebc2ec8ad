//! Operator's view of the queue: suspensions, summaries of lanes, listing of jobs, and jobs that are made due.

use std::sync::Arc;

use messaging_core::changes::{JobPlace, JobWrite, NewJob, PutBack, Write};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::delivery::queue::{QueueScope, Suspension, Suspensions};
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::jobs::{Claim, ClaimedJob};
use messaging_core::ports::store::{DatedJob, LaneSummary, Store};
use messaging_core::time::Timestamp;

use super::put;
use super::sample::{self, at, claim, enqueue, finish, id};

fn domain(name: &str) -> QueueScope {
    QueueScope { domain: Some(name.to_owned()), ..QueueScope::default() }
}

/// A suspension stays until its very scope is lifted, and keeps its first `since` if it is put again.
pub async fn a_suspension_stays_until_it_is_lifted(store: &dyn Store) {
    assert_eq!(store.suspensions().await.unwrap(), []);
    let in_workspace = QueueScope { workspace_id: Some(id()), campaign_id: Some(id()), ..domain("a.example") };
    let [one, two] = [domain("a.example"), in_workspace].map(|scope| Suspension { scope, since: at(5) });
    put(store, [Write::Suspend(one.clone()), Write::Suspend(two.clone())]).await;
    put(store, [Write::Suspend(Suspension { since: at(9), ..one.clone() })]).await;
    let mut found = store.suspensions().await.unwrap();
    found.sort_by_key(|suspension| suspension.scope.flags().len());
    assert_eq!(found, [one.clone(), two.clone()]);
    put(store, [Write::LiftSuspension(one.scope.clone()), Write::LiftSuspension(domain("b.example"))]).await;
    assert_eq!(store.suspensions().await.unwrap(), [two]);
}

/// A claim leaves out the lanes that it suspends, with jobs that were added to them later. A claim with other
/// suspensions gets the jobs of lanes that are no longer suspended, and leaves out its own.
pub async fn suspended_lanes_are_left_alone_until_they_are_let_go(store: &dyn Store) {
    let owner: WorkspaceId = id();
    let lane = |resource: &str| Lane::new(JobClass::Transactional, owner, resource);
    let campaign = Lane::new(JobClass::Bulk, owner, "email:a.example").of_sender("cmp_1");
    let (mail, other) = (lane("email:a.example"), lane("email:b.example"));
    put(store, [&mail, &other, &campaign].map(|lane| enqueue(lane.as_str(), 0))).await;
    let suspending = |domains: &[&str], now| {
        let suspensions = domains.iter().map(|name| Suspension { scope: domain(name), since: at(0) });
        Claim { suspended: Arc::new(suspensions.collect::<Suspensions>()), ..claim(now) }
    };
    let lanes = |claimed: &[ClaimedJob]| claimed.iter().map(|job| job.handle.lane.clone()).collect::<Vec<_>>();
    let claimed = store.claim(suspending(&["a.example"], 1)).await.unwrap();
    assert_eq!(lanes(&claimed), std::slice::from_ref(&other));
    put(store, finish(&claimed)).await;
    put(store, [enqueue(mail.as_str(), 2)]).await;
    assert_eq!(store.claim(suspending(&["a.example"], 10_000)).await.unwrap(), []);

    put(store, [enqueue(other.as_str(), 10_001)]).await;
    assert_eq!(store.claim(suspending(&["b.example", "a.example"], 10_002)).await.unwrap(), []);
    put(store, [enqueue(other.as_str(), 10_003)]).await;
    let claimed = store.claim(suspending(&["b.example"], 20_000)).await.unwrap();
    assert_eq!(claimed.len(), 3);
    assert!(!lanes(&claimed).contains(&other), "{claimed:?}");
    put(store, finish(&claimed)).await;
    assert_eq!(store.claim(suspending(&["b.example"], 20_001)).await.unwrap(), []);
    assert_eq!(lanes(&store.claim(claim(20_002)).await.unwrap()), [other.clone(), other]);
}

/// Lanes are summed up in the order of their text forms, a page at a time, counting the jobs of one kind.
pub async fn lanes_are_summed_up_by_pages(store: &dyn Store) {
    let owner: WorkspaceId = id();
    let lanes: Vec<_> = ["email:a.example", "email:b.example", "sms"]
        .map(|resource| Lane::new(JobClass::Transactional, owner, resource))
        .into();
    let job = |lane: &Lane, due: i64, payload: &str| {
        Write::Job(JobWrite::Enqueue(NewJob { payload: payload.to_owned().into(), ..sample::job(lane.as_str(), due) }))
    };
    let first = r#"{"attempt":1}"#;
    put(store, [job(&lanes[0], 7, first), job(&lanes[0], 3, r#"{"attempt":2}"#), job(&lanes[1], 5, first)]).await;
    put(store, [job(&lanes[2], 9, first)]).await;
    let kind = sample::job("x", 0).kind;
    let look = async |after: Option<&Lane>, limit| store.lane_summaries(kind, after, limit).await.unwrap();
    let all = look(None, 10).await;
    let told = |one: &LaneSummary| (one.lane.clone(), one.jobs, one.deferred, one.next_due);
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        [(lanes[0].clone(), 2, 1, at(3)), (lanes[1].clone(), 1, 0, at(5)), (lanes[2].clone(), 1, 0, at(9))]
    );
    assert_eq!(look(None, 2).await, all[..2]);
    assert_eq!(look(Some(&lanes[1]), 2).await, all[2..]);
    assert_eq!(store.lane_summaries("another_kind", None, 10).await.unwrap(), []);
}

/// Jobs are read in the order of lane, due time and id, a page at a time, with the times when their due time was set.
pub async fn jobs_are_read_after_a_place(store: &dyn Store) {
    let owner: WorkspaceId = id();
    let lane = |resource: &str| Lane::new(JobClass::Transactional, owner, resource);
    let (one, two) = (lane("email:a.example"), lane("email:b.example"));
    put(store, [enqueue(two.as_str(), 1), enqueue(one.as_str(), 7), enqueue(one.as_str(), 3)]).await;
    let look = async |after: Option<&JobPlace>, limit| store.jobs_after(after, limit).await.unwrap();
    let all = look(None, 10).await;
    let told = |read: &DatedJob| (read.job.place.lane.clone(), read.job.place.due_at);
    assert_eq!(all.iter().map(told).collect::<Vec<_>>(), [(one.clone(), at(3)), (one.clone(), at(7)), (two, at(1))]);
    assert!(all.iter().all(|read| read.dated_at.as_millis() == read.job.place.id.millis()), "{all:?}");
    assert_eq!(look(None, 2).await, all[..2]);
    assert_eq!(look(Some(&all[0].job.place), 10).await, all[1..]);
    // A place behind all jobs of a lane.
    let behind = JobPlace { due_at: Timestamp::from_millis(i64::MAX), ..all[0].job.place.clone() };
    assert_eq!(look(Some(&behind), 10).await, all[2..]);

    let claimed = store.claim(Claim { max: 1, ..claim(4) }).await.unwrap();
    let put_back = PutBack { due_at: at(90), at: at(4), is_failure: false };
    put(
        store,
        claimed.iter().map(|job| Write::Job(JobWrite::PutBack(job.handle.clone(), put_back))).collect::<Vec<_>>(),
    )
    .await;
    let dated: Vec<_> = look(None, 10).await.into_iter().filter(|read| read.job.place.due_at == at(90)).collect();
    assert_eq!(dated.iter().map(|read| read.dated_at).collect::<Vec<_>>(), [at(4)]);
}

/// Named jobs become due at once, whatever lanes they are in; other jobs of these lanes stay as they are.
pub async fn named_jobs_are_made_due(store: &dyn Store) {
    let owner: WorkspaceId = id();
    let lane = |resource: &str| Lane::new(JobClass::Transactional, owner, resource);
    let (one, two) = (lane("email:a.example"), lane("email:b.example"));
    put(store, [enqueue(one.as_str(), 50), enqueue(one.as_str(), 60), enqueue(two.as_str(), 70)]).await;
    let places: Vec<_> = store.jobs_after(None, 10).await.unwrap().into_iter().map(|read| read.job.place).collect();
    let due = |numbers: &[usize]| {
        [Write::Job(JobWrite::MakeDue(numbers.iter().map(|n| places[*n].clone()).collect(), at(2)))]
    };
    put(store, due(&[0, 2])).await;
    let claimed = store.claim(claim(3)).await.unwrap();
    let mut ids: Vec<_> = claimed.iter().map(|job| job.handle.id).collect();
    ids.sort();
    let mut expected = vec![places[0].id, places[2].id];
    expected.sort();
    assert_eq!(ids, expected);
    // Naming claimed or finished jobs is no conflict, and they are not claimed again.
    put(store, due(&[0, 2])).await;
    put(store, finish(&claimed)).await;
    put(store, due(&[0])).await;
    assert_eq!(store.claim(claim(59)).await.unwrap(), []);
    assert_eq!(store.claim(claim(60)).await.unwrap().len(), 1);
}
