//! The dates from which claims begin to read, so that they do not step over deleted jobs.
//!
//! Jobs are deleted when they are done, and PostgreSQL steps over the dead rows until they are vacuumed, which a single
//! long transaction of another program prevents. So a claim begins where the last one saw the first job of a place and
//! class, and not at the beginning of the index. It begins [`OVERLAP`] earlier, for late commits; an earlier date given
//! by this process moves the cursor back; and once every [`WHOLE_EVERY`] everything is read, for earlier dates given by
//! others.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use messaging_core::ports::store::jobs::Claim;
use messaging_core::time::{Monotonic, Timestamp};

use super::places::PLACES;

/// Maximum time from the date of a job to its commit.
const OVERLAP: Duration = Duration::from_secs(10);

/// Interval at which a claim looks for due jobs of every date, instead of from the cursors on.
const WHOLE_EVERY: Duration = Duration::from_mins(1);

/// Cost up to which a search past lanes that have enough is made with every claim.
const CHEAP: Duration = Duration::from_millis(4);

/// After a search past lanes that found nothing there is none for this many times its duration.
const REST: u32 = 8;

/// A place, and true for the class of bulk jobs; the jobs of one cell are read in the order of their dates.
pub(super) type Cell = (i16, bool);

/// Every place with each class.
pub(super) fn cells() -> impl Iterator<Item = Cell> {
    (0..PLACES).flat_map(|place| [(place, false), (place, true)])
}

/// Dates before which nothing is due, by place and class.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    firsts: HashMap<Cell, i64>,
    whole_at: Option<Monotonic>,
    /// Time of the last claim by the wall clock.
    now: Option<Timestamp>,
    /// True if a commit during the present claim dated a job before the dates that the claim reads.
    is_outdated: bool,
    /// Places and classes in which the last claim found more than it read at first.
    long: HashSet<Cell>,
    /// Time until which no claim searches past lanes that have enough.
    rests_until: Option<Instant>,
}

impl Cursors {
    /// Begins the reading of a claim.
    pub(super) fn begin(&mut self, claim: &Claim) {
        let is_whole = self.whole_at.is_none_or(|whole_at| claim.monotonic.since(whole_at) >= WHOLE_EVERY);
        // After the clock was set back, jobs are dated before those that exist already.
        if is_whole || self.now.is_some_and(|before| claim.now < before) {
            self.firsts.clear();
            self.whole_at = Some(claim.monotonic);
        }
        self.now = Some(claim.now);
        self.is_outdated = false;
    }

    /// Returns the date from which a place and class is read.
    pub(super) fn start(&self, cell: Cell) -> i64 {
        self.firsts.get(&cell).map_or(i64::MIN, |first| first.saturating_sub(overlap()))
    }

    /// Ends a claim that read from [`start`](Self::start) on: `firsts` has the first date it saw in each place and
    /// class of this process.
    pub(super) fn end(&mut self, firsts: HashMap<Cell, i64>) {
        self.firsts = if self.is_outdated { HashMap::new() } else { firsts };
    }

    /// Returns true if the last claim found more in a place and class than it read at first.
    pub(super) fn is_long(&self, cell: Cell) -> bool {
        self.long.contains(&cell)
    }

    /// Sets the places and classes in which a claim found more than it read at first.
    pub(super) fn were_long(&mut self, cells: HashSet<Cell>) {
        self.long = cells;
    }

    /// Returns true if a claim may search past the lanes that have enough, for jobs behind a long queue.
    pub(super) fn may_look_past(&self) -> bool {
        self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Records the duration of a search past lanes, and whether it found anything.
    pub(super) fn has_looked_past(&mut self, took: Duration, has_found: bool) {
        let is_dear = took >= CHEAP && !has_found;
        self.rests_until = is_dear.then(|| Instant::now() + took * REST);
    }

    /// Notes the date that a commit gives to a job.
    pub(super) fn date(&mut self, cell: Cell, due_at: i64) {
        if due_at < self.start(cell) {
            self.firsts.remove(&cell);
        }
        if self.now.is_some_and(|now| due_at < now.as_millis().saturating_sub(overlap())) {
            self.is_outdated = true;
        }
    }

    /// Makes the next claim read everything.
    pub(super) fn forget(&mut self) {
        *self = Self { is_outdated: true, ..Self::default() };
    }
}

fn overlap() -> i64 {
    i64::try_from(OVERLAP.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = (7, false);
    const OTHER: Cell = (8, true);

    fn claim(now: i64, monotonic: u64) -> Claim {
        let monotonic = Monotonic::new(Duration::from_secs(monotonic));
        Claim::new(Timestamp::from_millis(now), monotonic, Duration::from_mins(1))
    }

    fn cursors() -> Cursors {
        let mut cursors = Cursors::default();
        cursors.begin(&claim(100_000, 0));
        assert_eq!(cursors.start(CELL), i64::MIN);
        cursors.end(HashMap::from([(CELL, 90_000), (OTHER, 100_000)]));
        cursors
    }

    #[test]
    fn a_claim_begins_before_the_first_that_the_last_one_saw() {
        let mut cursors = cursors();
        cursors.begin(&claim(101_000, 1));
        assert_eq!((cursors.start(CELL), cursors.start(OTHER)), (80_000, 90_000));
        // Another process owns the place now.
        cursors.end(HashMap::from([(OTHER, 100_500)]));
        assert_eq!((cursors.start(CELL), cursors.start(OTHER)), (i64::MIN, 90_500));
    }

    #[test]
    fn a_dear_look_past_lanes_that_found_nothing_is_not_made_again_at_once() {
        let mut cursors = cursors();
        for (took, has_found, may_look) in [
            (Duration::from_micros(3_999), false, true),
            (Duration::from_hours(1), false, false),
            (Duration::from_hours(1), true, true),
        ] {
            cursors.has_looked_past(took, has_found);
            assert_eq!(cursors.may_look_past(), may_look, "{took:?} {has_found}");
        }
    }

    #[test]
    fn everything_is_read_once_a_minute_and_after_the_clock_was_set_back() {
        for (now, monotonic, start) in [(160_000, 59, 80_000), (160_000, 60, i64::MIN), (99_999, 1, i64::MIN)] {
            let mut cursors = cursors();
            cursors.begin(&claim(now, monotonic));
            assert_eq!(cursors.start(CELL), start, "{now} {monotonic}");
        }
    }

    #[test]
    fn what_is_dated_before_the_cursor_takes_it_back() {
        let mut cursors = cursors();
        cursors.date(CELL, 80_000);
        assert_eq!(cursors.start(CELL), 80_000);
        cursors.date(CELL, 79_999);
        assert_eq!((cursors.start(CELL), cursors.start(OTHER)), (i64::MIN, 90_000));
    }

    #[test]
    fn a_claim_that_may_not_have_seen_what_was_dated_leaves_no_cursor() {
        let mut cursors = cursors();
        cursors.begin(&claim(101_000, 1));
        cursors.date(CELL, 90_999);
        cursors.end(HashMap::from([(CELL, 95_000)]));
        assert_eq!(cursors.start(CELL), i64::MIN);
        for forget in [false, true] {
            cursors.begin(&claim(102_000, 2));
            if forget {
                cursors.forget();
            }
            cursors.end(HashMap::from([(CELL, 95_000)]));
            assert_eq!(cursors.start(CELL), if forget { i64::MIN } else { 85_000 });
        }
    }
}
