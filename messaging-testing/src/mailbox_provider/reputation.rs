//! Reputation of a sending address at a site, as pure functions that advance by the hour.

/// Score of an address that the site has not seen before, out of 100.
const FIRST_SCORE: u8 = 60;

/// The score after a block has ended.
const SCORE_AFTER_BLOCK: u8 = 30;

/// Days without mail after which an address counts as new again.
const FORGOTTEN_AFTER: i64 = 30;

/// Complaints in ten thousand accepted messages: the limits above which the score falls, and falls sharply (0.1 and 0.3
/// %).
const COMPLAINTS: (u32, u32) = (10, 30);

/// Unknown mailboxes in ten thousand recipients: the limits above which the score falls, and falls sharply (2 and 5 %).
const UNKNOWN: (u32, u32) = (200, 500);

/// Complaints or unknown mailboxes that are ignored because they are too few: at the end of a day, and within it.
const NOISE: (u32, u32) = (2, 10);

/// Limits of a site for one address, and the behavior that lowers its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SitePolicy {
    /// Simultaneous connections from one address.
    pub connections: usize,
    /// Messages over one connection.
    pub messages_per_connection: usize,
    /// Messages on the first day of an address, and the least that a trusted one may send on any day.
    pub first_day: u32,
    /// Messages allowed on a day, in per cent of the busiest good day so far.
    pub growth_percent: u32,
    /// Messages allowed in an hour, in per cent of those of the day.
    pub hour_percent: u32,
    /// A day counts as pushed when more than this many times its allowance was tried. The second such day in a row
    /// blocks.
    pub push_factor: u32,
    /// Length of a block in days.
    pub blocked_days: u16,
}

impl Default for SitePolicy {
    /// A cautious site of medium size: 100 messages on the first day.
    fn default() -> Self {
        Self {
            connections: 20,
            messages_per_connection: 100,
            first_day: 100,
            growth_percent: 200,
            hour_percent: 25,
            push_factor: 10,
            blocked_days: 14,
        }
    }
}

/// Recipients of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    /// Recipients that were named in RCPT, deferred ones included.
    tried: u32,
    /// Recipients within the allowance, unknown mailboxes included.
    admitted: u32,
    unknown: u32,
    complaints: u32,
}

/// Judgment of a rate of complaints or unknown mailboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Fine,
    Suspicious,
    Bad,
}

impl Sign {
    fn of(count: u32, all: u32, noise: u32, (suspicious, bad): (u32, u32)) -> Self {
        let share = u64::from(count) * 10_000;
        let passes = |limit: u32| count >= noise && share > u64::from(limit) * u64::from(all);
        match (passes(bad), passes(suspicious)) {
            (true, _) => Self::Bad,
            (false, true) => Self::Suspicious,
            (false, false) => Self::Fine,
        }
    }
}

impl Traffic {
    /// The worse judgment of both rates. Within the day more events are needed than at its end.
    fn sign(self, is_over: bool) -> Sign {
        let times = if is_over { 1 } else { 2 };
        let complaints = Sign::of(self.complaints, self.admitted, NOISE.0 * times, COMPLAINTS);
        complaints.max(Sign::of(self.unknown, self.admitted, NOISE.1 * times, UNKNOWN))
    }
}

/// Answer of a site to a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Within the allowance.
    Admitted,
    /// Above the allowance of the hour or the day: deferred.
    TooFast,
    /// Above the allowance, for an address with a low score: deferred.
    LittleTrust,
    /// The address is blocked.
    Blocked,
}

/// Reputation of one address at one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reputation {
    /// Hours since the epoch.
    hour: i64,
    /// Score, from 0 to 100.
    score: u8,
    /// Recipients of the busiest good day.
    usual: u32,
    today: Traffic,
    /// Recipients that were admitted in this hour.
    this_hour: u32,
    /// Pushed days in a row.
    pushed_days: u8,
    /// First day on which the block is over.
    blocked_until: Option<i64>,
}

impl Reputation {
    /// The reputation of an address that sends for the first time in this hour, counted from the epoch.
    pub const fn new(hour: i64) -> Self {
        let today = Traffic { tried: 0, admitted: 0, unknown: 0, complaints: 0 };
        Self { hour, score: FIRST_SCORE, usual: 0, today, this_hour: 0, pushed_days: 0, blocked_until: None }
    }

    /// The reputation in a later hour; a clock that was set back changes nothing.
    pub fn at(self, policy: &SitePolicy, hour: i64) -> Self {
        if hour <= self.hour {
            return self;
        }
        let (before, day) = (self.day(), hour.div_euclid(24));
        if let Some(until) = self.blocked_until {
            let is_over = day >= until;
            let fresh = Self { score: SCORE_AFTER_BLOCK, ..Self::new(hour) };
            return if is_over { fresh } else { Self { hour, ..self } };
        }
        if day - before >= FORGOTTEN_AFTER {
            return Self::new(hour);
        }
        let next = if day > before { self.after_day(policy) } else { self };
        Self { hour, this_hour: 0, ..next }
    }

    /// Judges one more recipient in this hour.
    pub fn try_recipient(self, policy: &SitePolicy, hour: i64) -> (Self, Verdict) {
        let mut next = self.at(policy, hour);
        if next.is_blocked() {
            return (next, Verdict::Blocked);
        }
        next.today.tried = next.today.tried.saturating_add(1);
        if next.pushed_days > 0 && next.is_pushed(policy) {
            return (next.blocked(policy), Verdict::Blocked);
        }
        let is_bad = next.today.sign(false) == Sign::Bad;
        let allowed_in_hour = next.allowed_in_hour(policy) / if is_bad { 4 } else { 1 };
        if next.today.admitted >= next.allowed(policy) || next.this_hour >= allowed_in_hour {
            let has_little_trust = is_bad || next.score < FIRST_SCORE;
            return (next, if has_little_trust { Verdict::LittleTrust } else { Verdict::TooFast });
        }
        next.today.admitted += 1;
        next.this_hour += 1;
        (next, Verdict::Admitted)
    }

    /// A recipient that was admitted has no mailbox.
    pub fn with_unknown_mailbox(mut self) -> Self {
        self.today.unknown = self.today.unknown.saturating_add(1);
        self
    }

    /// Counts a message that was reported as spam.
    pub fn with_complaint(mut self) -> Self {
        self.today.complaints = self.today.complaints.saturating_add(1);
        self
    }

    /// The address is blocked from now on, for the days of the policy.
    pub fn blocked(mut self, policy: &SitePolicy) -> Self {
        self.blocked_until = Some(self.day() + i64::from(policy.blocked_days.max(1)));
        self
    }

    /// Score, from 0 to 100; 60 at first.
    pub const fn score(self) -> u8 {
        self.score
    }

    /// True while the site accepts nothing from the address.
    pub const fn is_blocked(self) -> bool {
        self.blocked_until.is_some()
    }

    /// Messages that the site accepts on this day.
    pub fn allowed(self, policy: &SitePolicy) -> u32 {
        let grown = u64::from(self.usual) * u64::from(policy.growth_percent) / 100;
        let trusted = grown.max(u64::from(policy.first_day));
        let percent = match self.score {
            FIRST_SCORE.. => 100,
            30..FIRST_SCORE => 50,
            _ => 25,
        };
        u32::try_from(trusted * percent / 100).unwrap_or(u32::MAX).max(1)
    }

    /// Messages that the site accepts in one hour of this day.
    pub fn allowed_in_hour(self, policy: &SitePolicy) -> u32 {
        let share = u64::from(self.allowed(policy)) * u64::from(policy.hour_percent) / 100;
        u32::try_from(share).unwrap_or(u32::MAX).max(1)
    }

    const fn day(self) -> i64 {
        self.hour.div_euclid(24)
    }

    fn is_pushed(self, policy: &SitePolicy) -> bool {
        let most = u64::from(self.allowed(policy)) * u64::from(policy.push_factor);
        u64::from(self.today.tried) > most
    }

    /// The reputation on the day after: score, busiest good day and pushed days follow from the traffic of the day.
    fn after_day(self, policy: &SitePolicy) -> Self {
        let today = Traffic::default();
        if self.today.tried == 0 {
            return Self { today, ..self };
        }
        let sign = self.today.sign(true);
        if self.is_pushed(policy) {
            let pushed_days = self.pushed_days.saturating_add(1);
            return Self { today, pushed_days, score: self.score.saturating_sub(40), ..self };
        }
        let score = match sign {
            Sign::Fine => self.score.saturating_add(10).min(100),
            Sign::Suspicious => self.score.saturating_sub(10),
            Sign::Bad => self.score.saturating_sub(30),
        };
        let usual = if sign == Sign::Fine { self.usual.max(self.today.admitted) } else { self.usual };
        Self { today, score, usual, pushed_days: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: SitePolicy = SitePolicy {
        connections: 20,
        messages_per_connection: 100,
        first_day: 200,
        growth_percent: 200,
        hour_percent: 25,
        push_factor: 10,
        blocked_days: 14,
    };

    /// A sender at one site, day by day.
    struct Sender {
        reputation: Reputation,
        day: i64,
    }

    /// Numbers of the recipients of one day, by the answer of the site.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Day {
        admitted: u32,
        deferred: u32,
        blocked: u32,
    }

    impl Sender {
        fn new() -> Self {
            Self { reputation: Reputation::new(0), day: 0 }
        }

        /// Names so many recipients in each of the first hours of the next day; shares are in ten thousand of
        /// those that are admitted.
        fn day_of(&mut self, per_hour: u32, hours: i64, unknown: u32, complaints: u32) -> Day {
            let mut day = Day::default();
            for hour in (0..hours).map(|hour| self.day * 24 + hour) {
                for _ in 0..per_hour {
                    let (next, verdict) = self.reputation.try_recipient(&POLICY, hour);
                    self.reputation = next;
                    match verdict {
                        Verdict::Admitted => {
                            let is_due =
                                |share: u32| day.admitted * share / 10_000 < (day.admitted + 1) * share / 10_000;
                            if is_due(unknown) {
                                self.reputation = self.reputation.with_unknown_mailbox();
                            }
                            if is_due(complaints) {
                                self.reputation = self.reputation.with_complaint();
                            }
                            day.admitted += 1;
                        }
                        Verdict::TooFast | Verdict::LittleTrust => day.deferred += 1,
                        Verdict::Blocked => day.blocked += 1,
                    }
                }
            }
            self.day += 1;
            self.reputation = self.reputation.at(&POLICY, self.day * 24);
            day
        }

        fn allowed(&self) -> u32 {
            self.reputation.allowed(&POLICY)
        }
    }

    #[test]
    fn a_new_address_gets_a_little_on_its_first_day_and_a_part_of_it_in_an_hour() {
        let mut sender = Sender::new();
        assert_eq!(sender.day_of(60, 1, 0, 0), Day { admitted: 50, deferred: 10, blocked: 0 });
        let mut sender = Sender::new();
        assert_eq!(sender.day_of(30, 10, 0, 0), Day { admitted: 200, deferred: 100, blocked: 0 });
    }

    #[test]
    fn good_days_raise_and_bad_days_lower() {
        // Unknown mailboxes and complaints in ten thousand; score and allowance of the next day.
        for (unknown, complaints, score, allowed) in
            [(0, 0, 80, 800), (100, 0, 80, 800), (300, 0, 60, 400), (800, 0, 40, 200), (0, 100, 40, 200)]
        {
            let mut sender = Sender::new();
            // A good day first, so that there is enough mail to judge.
            sender.day_of(25, 8, 0, 0);
            assert_eq!((sender.reputation.score(), sender.allowed()), (70, 400));
            sender.day_of(50, 8, unknown, complaints);
            let after = (sender.reputation.score(), sender.allowed());
            assert_eq!(after, (score, allowed), "{unknown} {complaints}");
        }
    }

    #[test]
    fn complaints_slow_down_within_the_day() {
        let mut sender = Sender::new();
        for per_hour in [25, 50, 100, 200] {
            sender.day_of(per_hour, 8, 0, 0);
        }
        let allowed = sender.allowed();
        assert_eq!(allowed, 3200);
        let day = sender.day_of(400, 8, 400, 200);
        assert!(day.deferred > 800, "{day:?}");
        assert!(sender.reputation.score() < 100);
    }

    #[test]
    fn whoever_grows_by_four_tenths_a_day_is_never_deferred_and_reaches_fifty_thousand() {
        let mut sender = Sender::new();
        let mut per_day = 200;
        for _ in 0..18 {
            let day = sender.day_of(per_day / 8, 8, 0, 0);
            assert_eq!((day.deferred, day.blocked), (0, 0), "{per_day}");
            per_day = per_day * 14 / 10;
        }
        assert!(per_day > 50_000 && sender.allowed() >= 50_000, "{per_day}");
        assert_eq!(sender.reputation.score(), 100);
    }

    #[test]
    fn fifty_thousand_a_day_from_a_new_address_are_blocked_on_the_second_day() {
        let mut sender = Sender::new();
        let first = sender.day_of(50_000 / 24, 24, 0, 0);
        assert_eq!(first.admitted, 200);
        assert_eq!(first.blocked, 0);
        let second = sender.day_of(50_000 / 24, 24, 0, 0);
        assert!(second.blocked > 40_000, "{second:?}");
        assert!(sender.reputation.is_blocked());
        assert_eq!(sender.day_of(10, 1, 0, 0), Day { admitted: 0, deferred: 0, blocked: 10 });
    }

    #[test]
    fn a_block_ends_and_leaves_little_trust() {
        let mut sender = Sender::new();
        sender.day_of(3000, 1, 0, 0);
        sender.day_of(3000, 1, 0, 0);
        assert!(sender.reputation.is_blocked());
        let late = sender.reputation.at(&POLICY, (1 + 13) * 24);
        assert!(late.is_blocked());
        let after = late.at(&POLICY, (1 + 14) * 24);
        assert_eq!((after.is_blocked(), after.score(), after.allowed(&POLICY)), (false, 30, 100));
    }

    #[test]
    fn one_pushed_day_is_forgiven_after_a_good_one() {
        let mut sender = Sender::new();
        sender.day_of(3000, 1, 0, 0);
        assert_eq!(sender.reputation.score(), 20);
        sender.day_of(5, 4, 0, 0);
        assert_eq!(sender.reputation.score(), 30);
        let day = sender.day_of(3000, 1, 0, 0);
        assert_eq!(day.blocked, 0);
    }

    #[test]
    fn an_address_is_forgotten_after_a_month_and_not_before() {
        let mut sender = Sender::new();
        for per_hour in [25, 50] {
            sender.day_of(per_hour, 8, 0, 0);
        }
        let kept = sender.reputation.at(&POLICY, (2 + 29) * 24);
        assert_eq!(kept.allowed(&POLICY), 800);
        let forgotten = sender.reputation.at(&POLICY, (2 + 30) * 24);
        assert_eq!(forgotten, Reputation::new((2 + 30) * 24));
    }

    #[test]
    fn a_clock_that_is_set_back_changes_nothing() {
        let (one, _) = Reputation::new(48).try_recipient(&POLICY, 49);
        assert_eq!(one.at(&POLICY, 24), one);
    }
}
