use messaging_core::domain::delivery::ip_pool::source::SourceAddress;
use messaging_core::domain::delivery::outcome::{Acceptance, AddressFault, OutcomeClass, Response};
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::ports::paths::{PathTerms, Reach};

use super::*;

/// A Tuesday at noon.
fn noon() -> Timestamp {
    "2026-03-03T12:00:00.000Z".parse().unwrap()
}

struct Field {
    clock: Arc<ManualClock>,
    keeper: PathKeeper,
}

impl Field {
    /// A keeper of sources that end with these numbers, after it read that nothing is stored about them.
    fn new(numbers: &[u8]) -> Self {
        Self::with_rules(numbers, SiteRules::default())
    }

    /// A keeper of one source that is known to sites, each of which takes a message a second.
    fn limited() -> Self {
        let limits = SiteLimits { messages_per_minute: Some(60), ..SiteLimits::default() };
        let field = Self::with_rules(&[7], SiteRules::new(limits, Vec::new(), Vec::new()));
        field.keeper.lock().sources[0].row.status = SourceStatus::Warm;
        field
    }

    fn with_rules(numbers: &[u8], rules: SiteRules) -> Self {
        let clock = Arc::new(ManualClock::new(noon()));
        let given: Vec<_> = numbers.iter().map(|number| source(*number)).collect();
        let chance = Arc::new(SeededEntropy::new(1));
        let for_keeper = Arc::clone(&clock) as Arc<dyn Clock>;
        let keeper = PathKeeper::new(for_keeper, chance, Arc::new(rules), &given, "mx.example.org");
        {
            let mut state = keeper.lock();
            state.is_loaded = true;
            state.sources = keeper
                .sources
                .iter()
                .map(|source| KeptSource {
                    row: SourceRow::new(source.ip, noon()),
                    revision: Some(1),
                    is_changed: false,
                })
                .collect();
        }
        Self { clock, keeper }
    }

    /// Returns where an attempt leaves from, or the reason why it waits.
    fn depart(&self, request: &Request) -> String {
        match self.ask(request) {
            Departure::Leaves(leave) => match leave.path {
                Some(path) => format!("{} to {}", leave.source.ip, path.site.as_str()),
                None => format!("{} without a path", leave.source.ip),
            },
            Departure::Waits(wait) => format!("{:?} {}", wait.reason, wait.sentence),
        }
    }

    /// Returns the wait of an attempt, and the reason it is shown as held, if it is; `None` if it leaves.
    fn wait(&self, request: &Request) -> Option<(Duration, Option<HoldReason>)> {
        match self.ask(request) {
            Departure::Leaves(_) => None,
            Departure::Waits(wait) => Some((wait.wait, wait.reason)),
        }
    }

    fn ask(&self, request: &Request) -> Departure {
        let terms = PathTerms { sources: request.sources.clone(), expires_at: request.expires_at };
        let exchangers = [format!("mx.{}", request.domain)];
        let asked = PathRequest {
            domain: request.domain,
            exchangers: &exchangers,
            reach: request.reach,
            class: request.class,
            terms: &terms,
        };
        self.keeper.depart(&asked)
    }

    /// Lets mail leave until some has to wait; returns how much left.
    fn fill(&self, request: &Request) -> usize {
        let mut sent = 0;
        while !self.depart(request).starts_with("Some(") {
            sent += 1;
            assert!(sent < 10_000, "nothing bounds it");
        }
        sent
    }

    fn answer(&self, request: &Request, source: u8, class: OutcomeClass, reply: &str, times: usize) {
        self.answer_of(&format!("mx.{}", request.domain), request, (source, class), reply, times);
    }

    /// Reports the same answer of a host a number of times.
    fn answer_of(&self, host: &str, request: &Request, (source, class): (u8, OutcomeClass), reply: &str, times: usize) {
        let (code, text) = (reply[..3].parse().ok(), reply[4..].to_owned());
        let response = Response { code, text, host: Some(host.to_owned()), ..Response::default() };
        let outcome = Outcome::of(class, response);
        let site = SiteName::parse(request.domain).unwrap();
        let path = Some(OpenPath { site, exchangers: Vec::new(), connections: 20, messages_per_connection: 100 });
        let leave = Leave { source: Arc::new(self::source(source)), path };
        for _ in 0..times {
            self.keeper.ended(&leave, &[&outcome]);
        }
    }
}

struct Request {
    domain: &'static str,
    reach: Reach,
    class: JobClass,
    sources: Option<Arc<[SourceAddress]>>,
    expires_at: Option<Timestamp>,
}

impl Request {
    /// Marketing mail to a public exchanger.
    fn to(domain: &'static str) -> Self {
        let reach = Reach { ipv4: true, ipv6: false, is_public: true };
        Self { domain, reach, class: JobClass::Bulk, sources: None, expires_at: None }
    }

    fn transactional(self, expires_at: Timestamp) -> Self {
        Self { class: JobClass::Transactional, expires_at: Some(expires_at), ..self }
    }

    fn from(self, numbers: &[u8]) -> Self {
        Self { sources: Some(numbers.iter().map(|number| source(*number).ip).collect()), ..self }
    }
}

fn source(number: u8) -> NamedSource {
    let ip = SourceAddress::from(std::net::IpAddr::from([203, 0, 113, number]));
    NamedSource { ip, name: format!("m{number}.example.org") }
}

#[test]
fn there_is_a_path_to_public_exchangers_alone() {
    let field = Field::new(&[7]);
    assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.7 to b.example");
    let private = Reach { ipv4: true, ipv6: false, is_public: false };
    for _ in 0..1000 {
        let request = Request { reach: private, ..Request::to("b.example") };
        assert_eq!(field.depart(&request), "203.0.113.7 without a path");
    }
    let six = Reach { ipv4: false, ipv6: true, is_public: true };
    assert_eq!(field.depart(&Request { reach: six, ..Request::to("b.example") }), "203.0.113.7 without a path");
}

#[test]
fn a_node_without_sources_has_one_that_warms_up() {
    let field = Field::new(&[]);
    assert_eq!(field.depart(&Request::to("b.example")), "default to b.example");
    field.fill(&Request::to("b.example"));
    let told = field.depart(&Request::to("b.example"));
    assert!(told.starts_with("Some(WarmingUp) default is warming up at b.example"), "{told}");
    // Another site knows nothing of that.
    assert_eq!(field.depart(&Request::to("c.example")), "default to c.example");
    assert_eq!(field.keeper.sentence_for("b.example").as_deref(), told.strip_prefix("Some(WarmingUp) "));
    assert_eq!(field.keeper.sentence_for("nobody.example"), None);
}

#[test]
fn mail_that_somebody_waits_for_goes_out_before_its_end() {
    let field = Field::new(&[7]);
    field.fill(&Request::to("b.example"));
    let late = noon() + Duration::from_hours(72);
    let reset = || Request::to("b.example").transactional(late);
    // The part of the day's messages that is for transactional mail is still free.
    assert_eq!(field.depart(&reset()), "203.0.113.7 to b.example");
    field.fill(&reset());
    assert!(field.depart(&reset()).starts_with("Some(WarmingUp)"));
    let soon = Request::to("b.example").transactional(noon() + Duration::from_mins(1));
    assert_eq!(field.depart(&soon), "203.0.113.7 to b.example");
}

#[test]
fn a_pool_bounds_the_choice_and_its_warm_sources_take_what_others_may_not() {
    let field = Field::new(&[7, 8]);
    field.keeper.lock().sources[1].row.status = SourceStatus::Warm;
    let only = Request::to("b.example").from(&[7]);
    field.fill(&only);
    assert!(field.depart(&only).starts_with("Some(WarmingUp)"));
    for _ in 0..100 {
        assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.8 to b.example");
    }
    let elsewhere = Request::to("b.example").from(&[9]);
    assert!(field.depart(&elsewhere).starts_with("Some(NoSource)"));
}

#[test]
fn a_stopped_source_sends_nothing() {
    let field = Field::new(&[7]);
    field.keeper.lock().sources[0].row.status = SourceStatus::Stopped;
    let told = field.depart(&Request::to("b.example"));
    assert_eq!(told, "Some(Braked) Sending from 203.0.113.7 to b.example was stopped by the operator.");
}

#[test]
fn hard_bounces_brake_the_path_and_no_other() {
    let field = Field::new(&[7]);
    let request = Request::to("b.example");
    field.depart(&request);
    let unknown = OutcomeClass::Address(AddressFault::Recipient);
    field.answer(&request, 7, OutcomeClass::Accepted(Acceptance::Delivered), "250 2.0.0 ok", 80);
    field.answer(&request, 7, unknown, "550 5.1.1 no such user", 20);
    let shown = field.keeper.shown(10);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_ne!(shown[0].status, PathStatus::Ok);
    assert_eq!((shown[0].source.as_str(), shown[0].site.as_str()), ("203.0.113.7", "b.example"));
    assert_eq!(field.depart(&Request::to("c.example")), "203.0.113.7 to c.example");
}

#[test]
fn a_host_of_somebody_else_brakes_no_path() {
    let field = Field::new(&[7]);
    let request = Request::to("b.example");
    field.depart(&request);
    let refusal = (7, OutcomeClass::Address(AddressFault::Recipient));
    for (host, status) in [
        ("mx.attacker.test", PathStatus::Ok),
        ("b.example.attacker.test", PathStatus::Ok),
        ("MX2.B.example.", PathStatus::Slowed),
    ] {
        field.answer_of(host, &request, refusal, "550 5.1.1 no such user", 30);
        let key = (0, SiteName::parse("b.example").unwrap());
        assert_eq!(field.keeper.lock().paths[&key].state.status(noon()), status, "{host}");
    }
}

#[test]
fn what_changed_is_written_once_and_again_when_that_failed() {
    let field = Field::new(&[7]);
    assert!(field.keeper.batch(false).is_empty());
    field.depart(&Request::to("b.example"));
    let batch = field.keeper.batch(false);
    assert_eq!(batch.paths(), ["b.example"]);
    assert!(field.keeper.batch(false).paths().is_empty(), "it counts as written");
    field.keeper.unwritten(&batch);
    let batch = field.keeper.batch(false);
    assert_eq!(batch.paths(), ["b.example"]);
    // A change while a batch is written is written with the next.
    field.clock.advance(Duration::from_hours(1));
    field.depart(&Request::to("b.example"));
    field.keeper.written(batch);
    assert_eq!(field.keeper.batch(false).paths(), ["b.example"]);
}

#[test]
fn a_path_that_is_known_and_healthy_is_written_now_and_then() {
    let field = Field::new(&[7]);
    field.keeper.lock().sources[0].row.status = SourceStatus::Warm;
    field.depart(&Request::to("b.example"));
    let first = field.keeper.batch(false);
    assert_eq!(first.paths(), ["b.example"]);
    field.keeper.written(first);
    field.depart(&Request::to("b.example"));
    assert!(field.keeper.batch(false).paths().is_empty());
    assert_eq!(field.keeper.batch(true).paths(), ["b.example"]);
}

#[test]
fn waits_are_bounded_and_marketing_mail_does_not_come_back_together() {
    let keeper = Field::new(&[7]).keeper;
    let now = noon();
    let wait = |span: Duration, class| keeper.wait(Some(now + span), now, class);
    let day = Duration::from_hours(24);
    assert_eq!(wait(day, JobClass::Transactional), LONGEST_WAIT);
    assert_eq!(wait(Duration::ZERO, JobClass::Transactional), SHORTEST_WAIT);
    assert_eq!(keeper.wait(None, now, JobClass::Bulk), UNTIL_SOMEBODY_ACTS);
    let spread: std::collections::BTreeSet<_> = (0..100).map(|_| wait(day, JobClass::Bulk)).collect();
    assert!(spread.len() > 50, "{spread:?}");
    assert!(spread.iter().all(|wait| (LONGEST_WAIT..=LONGEST_WAIT + LONGEST_SPREAD).contains(wait)));
}

/// Status of the source that is written next, of the only source.
fn found(field: &Field) -> Option<SourceStatus> {
    let batch = field.keeper.batch(true);
    let found = batch.found();
    field.keeper.written(batch);
    found
}

#[test]
fn a_source_rests_while_its_paths_do_and_is_warm_once_they_are() {
    let field = Field::new(&[7]);
    let request = Request::to("b.example");
    field.depart(&request);
    assert_eq!(found(&field), None);
    field.answer(&request, 7, OutcomeClass::Accepted(Acceptance::Delivered), "250 2.0.0 ok", 40);
    for _ in 0..5 {
        assert_eq!(field.keeper.complained(source(7).ip, "mx.b.example"), None);
    }
    field.clock.advance(Duration::from_mins(2));
    assert_eq!(found(&field), Some(SourceStatus::Resting));
    field.clock.advance(Duration::from_hours(2));
    assert_eq!(found(&field), None, "it goes on by itself");
    field.keeper.lock().paths.values_mut().for_each(|path| path.state.set_known(true));
    field.depart(&request);
    field.clock.advance(Duration::from_mins(2));
    assert_eq!(found(&field), Some(SourceStatus::Warm));
    // A new site has to get to know the address, whatever others know.
    field.depart(&Request::to("c.example"));
    field.clock.advance(Duration::from_mins(2));
    assert_eq!(found(&field), None);
}

#[test]
fn however_much_marketing_mail_waits_each_message_has_a_turn() {
    let field = Field::limited();
    let request = Request::to("b.example");
    let mut waits = Vec::new();
    while waits.len() < 1000 {
        waits.extend(field.wait(&request));
    }
    assert_eq!(waits[0], (Duration::from_secs(1), None));
    assert!(waits.windows(2).all(|pair| pair[1].0 - pair[0].0 == Duration::from_secs(1)));
    // A long wait is shown as a hold.
    assert_eq!((waits[58].1, waits[59].1), (None, Some(HoldReason::DomainPace)));
    let mut passed = Duration::ZERO;
    for (wait, _) in waits {
        field.clock.advance(wait - passed);
        passed = wait;
        assert_eq!(field.wait(&request), None, "the path is free at {wait:?}");
    }
    // Turns are given for an hour; who comes later asks again before they are over.
    let mut last = Duration::ZERO;
    for _ in 0..5000 {
        let (wait, _) = field.wait(&request).unwrap_or_default();
        assert!(wait <= LONGEST_WAIT, "{wait:?}");
        last = wait;
    }
    assert!(last >= LONGEST_WAIT - LONGEST_SPREAD, "{last:?}");
}

#[test]
fn what_waits_for_a_person_does_not_look_all_at_once() {
    let field = Field::limited();
    let request = Request::to("b.example");
    field.depart(&request);
    field.keeper.lock().sources[0].row.status = SourceStatus::Stopped;
    let waits: Vec<_> = (0..1000).map(|_| field.wait(&request).unwrap().0).collect();
    assert_eq!(waits[0], UNTIL_SOMEBODY_ACTS);
    assert_eq!(waits[999], UNTIL_SOMEBODY_ACTS + Duration::from_millis(20) * 999);
    let reset = Request::to("b.example").transactional(noon() + LONGEST_WAIT * 72);
    assert_eq!(field.wait(&reset), Some((UNTIL_SOMEBODY_ACTS, Some(HoldReason::Braked))));
}

#[test]
fn marketing_mail_leaves_a_path_to_mail_that_somebody_waits_for() {
    let field = Field::limited();
    let (news, reset) = (Request::to("b.example"), Request::to("b.example").transactional(noon() + LONGEST_WAIT * 72));
    while field.wait(&news).is_none() {}
    let (wait, _) = field.wait(&reset).unwrap();
    assert_eq!(wait, Duration::from_secs(1));
    field.clock.advance(wait);
    // The moment has come, and what asks first lets the other go first.
    assert!(field.wait(&news).is_some());
    assert_eq!(field.wait(&reset), None);
    field.clock.advance(wait);
    assert_eq!(field.wait(&news), None);
    // A message that does not come back is not waited for.
    assert!(field.wait(&reset).is_some());
    field.clock.advance(Duration::from_secs(7));
    assert_eq!(field.wait(&news), None);
}

#[test]
fn what_did_not_leave_is_taken_back() {
    let field = Field::new(&[7]);
    let reset = || Request::to("b.example").transactional(noon() + LONGEST_WAIT * 72);
    for _ in 0..100 {
        let Departure::Leaves(leave) = field.ask(&reset()) else { panic!("it has to wait") };
        field.keeper.given_up(&leave);
    }
    let key = (0, SiteName::parse("b.example").unwrap());
    let state = field.keeper.lock().paths[&key].state.clone();
    assert_eq!(state.report(&SiteLimits::default(), noon()).sent_today, 0);
}

#[test]
fn an_order_counts_whoever_reads_its_row_first() {
    let field = Field::new(&[7]);
    let request = Request::to("b.example");
    let key = (0, SiteName::parse("b.example").unwrap());
    let status = || field.keeper.lock().paths[&key].state.status(noon());
    let brake = || {
        field.depart(&request);
        field.answer(&request, 7, OutcomeClass::Address(AddressFault::Recipient), "550 5.1.1 no such user", 30);
    };
    brake();
    assert_ne!(status(), PathStatus::Ok);
    // Another node with the same address knows of no problem.
    field.keeper.lock().take_row(key.clone(), (PathState::default(), 2), noon());
    assert_ne!(status(), PathStatus::Ok);
    let mut released = field.keeper.lock().paths[&key].state.clone();
    (0..2).for_each(|_| released.release());
    field.keeper.lock().take_row(key.clone(), (released, 3), noon());
    assert_eq!(status(), PathStatus::Ok);
    // An order that was taken back meanwhile is none, and a later one is.
    let mut stopped = PathState::default();
    stopped.stop();
    field.keeper.lock().take_row(key.clone(), (stopped.clone(), 4), noon());
    assert_eq!(status(), PathStatus::Ok);
    stopped.release();
    stopped.stop();
    field.keeper.lock().take_row(key.clone(), (stopped, 5), noon());
    assert_eq!(status(), PathStatus::Stopped);
}

/// Keeps as many paths as there can be, each used at another time before now, the first of them longest ago.
fn filled(field: &Field) {
    let mut state = field.keeper.lock();
    for number in 0..MAX_PATHS {
        let site = SiteName::parse(&format!("s{number}.example")).unwrap();
        let ago = Duration::from_secs(120 + (MAX_PATHS - number) as u64);
        let mut path = KeptPath { revision: Some(1), ..KeptPath::default() };
        path.state.sent(&SiteLimits::default(), noon() - ago);
        state.paths.insert((0, site), path);
    }
}

#[test]
fn beyond_the_bound_paths_are_dropped_that_were_not_used_for_longest() {
    let field = Field::new(&[7]);
    filled(&field);
    let key = |site: &str| (0, SiteName::parse(site).unwrap());
    // The one that was used first is stopped, and the next one is not written yet.
    field.keeper.lock().paths.get_mut(&key("s0.example")).unwrap().state.stop();
    field.keeper.lock().paths.get_mut(&key("s1.example")).unwrap().is_changed = true;
    assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.7 to b.example");
    let state = field.keeper.lock();
    assert_eq!(state.paths.len(), MAX_PATHS - DROPPED_AT_ONCE + 1);
    for site in ["b.example", "s0.example", "s1.example", &format!("s{}.example", DROPPED_AT_ONCE + 2)] {
        assert!(state.paths.contains_key(&key(site)), "{site}");
    }
    for site in ["s2.example", &format!("s{}.example", DROPPED_AT_ONCE + 1)] {
        assert!(!state.paths.contains_key(&key(site)), "{site}");
    }
}

#[test]
fn mail_leaves_where_no_path_can_be_dropped() {
    let field = Field::new(&[7]);
    filled(&field);
    field.keeper.lock().paths.values_mut().for_each(|path| path.state.stop());
    assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.7 without a path");
    assert_eq!(field.keeper.lock().paths.len(), MAX_PATHS);
    // Once one may be dropped there is room again.
    field.keeper.lock().paths.values_mut().take(1).for_each(|path| path.state.release());
    field.clock.advance(LOOKED_FOR_ROOM);
    assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.7 to b.example");
}

#[test]
fn a_path_that_was_dropped_goes_on_from_its_row() {
    let field = Field::new(&[7]);
    let key = (0, SiteName::parse("b.example").unwrap());
    let mut stored = PathState::default();
    (0..40).for_each(|_| stored.sent(&SiteLimits::default(), noon()));
    assert_eq!(field.depart(&Request::to("b.example")), "203.0.113.7 to b.example");
    let mut state = field.keeper.lock();
    state.go_on_from(&key, &stored, &SiteLimits::default(), noon());
    state.take_row(key.clone(), (stored.clone(), 3), noon());
    let sent = |state: &State| state.paths[&key].state.report(&SiteLimits::default(), noon()).sent_today;
    assert_eq!((sent(&state), state.paths[&key].revision), (41, Some(3)));
    // A path that has a row keeps its counts.
    state.go_on_from(&key, &stored, &SiteLimits::default(), noon());
    assert_eq!(sent(&state), 41);
}

#[test]
fn a_complaint_counts_for_the_path_of_its_message() {
    let field = Field::new(&[7, 8]);
    let request = Request::to("b.example");
    for number in [7, 8] {
        field.depart(&Request::to("b.example").from(&[number]));
        field.answer(&request, number, OutcomeClass::Accepted(Acceptance::Delivered), "250 2.0.0 ok", 40);
    }
    // The last message left from the other one.
    for _ in 0..5 {
        assert_eq!(field.keeper.complained(source(7).ip, "MX.b.example"), None);
    }
    let status = |at: usize| {
        let key = (at, SiteName::parse("b.example").unwrap());
        field.keeper.lock().paths[&key].state.status(noon())
    };
    assert_eq!((status(0), status(1)), (PathStatus::Resting, PathStatus::Ok));
    // A complaint about a path that another node uses, or that is not in memory, has to be stored.
    let site = |name: &str| Some(SiteName::parse(name).unwrap());
    assert_eq!(field.keeper.complained(source(9).ip, "mx.b.example"), site("b.example"));
    assert_eq!(field.keeper.complained(source(7).ip, "mx.c.example"), site("c.example"));
}
