use messaging_core::domain::delivery::lane::JobClass;

use super::super::waiting::MAX_OF_FLOW;
use super::*;

const FLOW: Flow = Flow { class: JobClass::Transactional, workspace: None };

const PACE: Pace = Pace { start: 2, most: 4, rest: Duration::from_secs(15) };

/// A deadline after anything here takes.
fn deadline() -> Instant {
    Instant::now() + Duration::from_mins(10)
}

fn lane() -> Arc<Lane> {
    Arc::new(Lane::new(PACE))
}

async fn go(lane: &Arc<Lane>) -> Permit {
    match lane.admit(deadline(), FLOW).await {
        LaneAdmission::Go(permit) => permit,
        LaneAdmission::Unreachable(response, _) => panic!("unreachable: {}", response.text),
        LaneAdmission::TooMany => panic!("no turn"),
    }
}

/// Returns the number of turns that are free at once.
async fn width(lane: &Arc<Lane>) -> usize {
    let mut permits = Vec::new();
    while let LaneAdmission::Go(permit) = lane.admit(Instant::now(), FLOW).await {
        permits.push(permit);
    }
    permits.len()
}

fn busy() -> Report {
    Report::Busy(Response { text: "too many".to_owned(), ..Response::default() })
}

fn failure(text: &str) -> Report {
    Report::Unreachable(Response { text: text.to_owned(), ..Response::default() })
}

/// Returns the failure for which nothing is tried, and the time since then.
async fn refused(lane: &Arc<Lane>) -> (String, Duration) {
    match lane.admit(deadline(), FLOW).await {
        LaneAdmission::Unreachable(response, ago) => (response.text, ago),
        LaneAdmission::Go(_) => panic!("a turn"),
        LaneAdmission::TooMany => panic!("no turn"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_widens_with_success_up_to_its_most() {
    let lane = lane();
    assert_eq!(width(&lane).await, 2);
    for (attempts, expected) in [(2, 3), (3, 4), (50, 4)] {
        for _ in 0..attempts {
            go(&lane).await.report(Report::Fine);
        }
        assert_eq!(width(&lane).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_halves_a_lane_and_spaces_it() {
    let lane = lane();
    let start = Instant::now();
    let at = || Instant::now() - start;
    go(&lane).await.report(busy());
    assert_eq!(at(), Duration::ZERO);
    for expected in [250, 750, 1750, 3750, 7750, 15_750, 23_750] {
        let permit = go(&lane).await;
        assert_eq!(at(), Duration::from_millis(expected));
        assert!(matches!(lane.admit(Instant::now(), FLOW).await, LaneAdmission::TooMany), "one at a time");
        permit.report(busy());
    }
    // The wait of 8 s that was begun, then 8, 4, 2, 1, … and no more.
    let mut waits = Vec::new();
    for _ in 0..8 {
        let before = Instant::now();
        go(&lane).await.report(Report::Fine);
        waits.push((Instant::now() - before).as_millis());
    }
    assert_eq!(waits, [8000, 8000, 4000, 2000, 1000, 500, 250, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lane_tells_what_slows_or_stops_it() {
    let lane = lane();
    let told = || {
        let state = lane.state();
        (state.rests_for, state.per_minute, state.last_refusal.map(|refusal| refusal.text))
    };
    assert_eq!(told(), (None, None, None));
    go(&lane).await.report(busy());
    assert_eq!(told(), (None, Some(240.0), Some("too many".to_owned())));
    go(&lane).await.report(Report::Fine);
    assert_eq!(told(), (None, None, None));
    go(&lane).await.report(failure("no route"));
    assert_eq!(told(), (Some(PACE.rest), None, Some("no route".to_owned())));
    tokio::time::advance(PACE.rest + Duration::from_secs(1)).await;
    assert_eq!(told().0, Some(Duration::ZERO), "a probe is due");
    go(&lane).await.report(Report::Fine);
    assert_eq!(told(), (None, None, None));
}

#[tokio::test(start_paused = true)]
async fn the_same_trouble_counts_once() {
    let lane = Arc::new(Lane::new(Pace { start: 8, ..PACE }));
    let mut permits = Vec::new();
    for _ in 0..8 {
        permits.push(go(&lane).await);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    for permit in permits {
        permit.report(busy());
    }
    let state = lane.lock();
    assert_eq!((state.limit, state.spacing), (4, SPACING.0));
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_domain_is_probed_by_one_at_a_time() {
    let lane = lane();
    go(&lane).await.report(failure("first"));
    assert_eq!(refused(&lane).await, ("first".to_owned(), Duration::ZERO));
    tokio::time::advance(PACE.rest - Duration::from_millis(1)).await;
    assert_eq!(refused(&lane).await.0, "first");
    tokio::time::advance(Duration::from_millis(1)).await;

    let probe = go(&lane).await;
    assert_eq!(refused(&lane).await, ("first".to_owned(), PACE.rest));
    probe.report(failure("second"));
    assert_eq!(refused(&lane).await, ("second".to_owned(), Duration::ZERO));

    tokio::time::advance(PACE.rest).await;
    // A probe that is dropped makes room for another.
    drop(go(&lane).await);
    let probe = go(&lane).await;
    probe.report(Report::Fine);
    go(&lane).await.report(Report::Fine);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_learns_that_the_domain_is_unreachable() {
    let lane = lane();
    let permits = [go(&lane).await, go(&lane).await];
    let waiting = [lane.admit(deadline(), FLOW), lane.admit(deadline(), FLOW)].map(Box::pin);
    let (admissions, ()) = tokio::join!(futures_util::future::join_all(waiting), async {
        tokio::task::yield_now().await;
        for permit in permits {
            permit.report(failure("gone"));
        }
    });
    let is_gone = |admission: &LaneAdmission| match admission {
        LaneAdmission::Unreachable(response, _) => response.text == "gone",
        LaneAdmission::Go(_) | LaneAdmission::TooMany => false,
    };
    assert!(admissions.iter().all(is_gone));
}

#[tokio::test(start_paused = true)]
async fn turns_come_in_order_and_waits_end() {
    let lane = lane();
    let permits = [go(&lane).await, go(&lane).await];
    let order = Mutex::new(Vec::new());
    let wait = async |number: usize, limit: u64| {
        let admission = lane.admit(Instant::now() + Duration::from_secs(limit), FLOW).await;
        order.lock().unwrap().push((number, matches!(admission, LaneAdmission::Go(_))));
        admission
    };
    let (first, second, third, ()) = tokio::join!(wait(1, 60), wait(2, 1), wait(3, 60), async {
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(permits);
    });
    assert_eq!(*order.lock().unwrap(), [(2, false), (1, true), (3, true)]);
    drop((first, second, third));
    let state = lane.lock();
    assert_eq!((state.running, state.waiting.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait() {
    let lane = lane();
    let _permits = [go(&lane).await, go(&lane).await];
    let mut waiting: Vec<_> = (0..MAX_OF_FLOW).map(|_| Box::pin(lane.admit(deadline(), FLOW))).collect();
    for admission in &mut waiting {
        assert!(futures_util::poll!(admission).is_pending());
    }
    assert!(matches!(lane.admit(deadline(), FLOW).await, LaneAdmission::TooMany));
    // Those who went away make room.
    waiting.truncate(1);
    let mut late = Box::pin(lane.admit(deadline(), FLOW));
    assert!(futures_util::poll!(&mut late).is_pending());
    assert_eq!(lane.lock().waiting.len(), 2);
}
