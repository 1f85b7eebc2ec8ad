use std::time::Duration;

use super::*;

/// Counts of a site, by counters; what was delivered took three seconds.
fn site(name: &str, numbers: &[(SiteCounter, i64)]) -> (String, SiteCounts) {
    let mut counts = SiteCounts::default();
    for (counter, number) in numbers {
        counts.count(*counter, *number);
        if *counter == SiteCounter::Delivered {
            (0..*number).for_each(|_| counts.count_taken(Duration::from_secs(3)));
        }
    }
    (name.to_owned(), counts)
}

fn braked(status: PathStatus, reason: Option<BrakeReason>) -> BrakedPath {
    let until = (status == PathStatus::Resting).then(|| "2026-03-01T14:10:00Z".parse().unwrap());
    BrakedPath { source: "203.0.113.7".to_owned(), site: "gmail".to_owned(), status, reason, until }
}

const GOOD: &str = "1,000 of 1,000 messages arrived (100.0 %), half of them within 4 seconds.";

fn good() -> (String, SiteCounts) {
    site("example.org", &[(SiteCounter::Accepted, 1000), (SiteCounter::Delivered, 1000)])
}

#[test]
fn counts_are_told_with_what_to_do() {
    use SiteCounter::{BouncedHard, BouncedSoft, Complaints, Deferred, Delivered};
    #[track_caller]
    fn check(sites: &[(String, SiteCounts)], expected: &str) {
        assert_eq!(summary(&SummaryFacts { sites, ..SummaryFacts::default() }), expected);
    }
    check(&[], "No email went to a mailbox provider in this time, so there is nothing to judge.");
    check(&[good()], GOOD);
    check(
        &[site("gmail", &[(Deferred, 1)])],
        "Nothing was delivered in this time: 1 attempt was put off, and is made again.",
    );
    check(
        &[site("gmail", &[(Delivered, 9999), (BouncedSoft, 1)])],
        "9,999 of 10,000 messages arrived (99.9 %), half of them within 4 seconds.",
    );
    // The lines of bulk senders: 0.1 % and 0.3 % themselves are not passed.
    check(&[site("gmail", &[(Delivered, 1000), (Complaints, 1)])], GOOD);
    check(
        &[good(), site("gmail", &[(Delivered, 1000), (Complaints, 3)])],
        "3 complaints at Gmail for 1,000 delivered messages (0.30 %): Gmail and Yahoo want bulk senders below 0.1 % and begin \
         to refuse at 0.3 %, so leave out people who do not open, and make unsubscribing easier to find. 2,000 of 2,000 \
         messages arrived (100.0 %), half of them within 4 seconds.",
    );
    check(
        &[site("yahoo", &[(Delivered, 3000), (Complaints, 12)]), site("gmail", &[(Delivered, 1000), (Complaints, 3)])],
        "12 complaints at Yahoo for 3,000 delivered messages (0.40 %): Gmail and Yahoo mind above 0.1 % and begin to refuse at \
         0.3 %, so stop the campaign that they complain about, and send only to people who opened lately until it is below \
         0.1 % again. 4,000 of 4,000 messages arrived (100.0 %), half of them within 4 seconds.",
    );
    check(
        &[site("gmail", &[(Complaints, 1)])],
        "1 complaint at Gmail: Gmail and Yahoo mind above 0.1 % and begin to refuse at 0.3 %, so stop the campaign that they \
         complain about, and send only to people who opened lately until it is below 0.1 % again. No email went to a mailbox \
         provider in this time, so there is nothing to judge.",
    );
    check(
        &[site("icloud", &[(Delivered, 90), (BouncedHard, 10)])],
        "10 of 100 recipients (10.0 %) cannot be reached at iCloud, where more than 5 % is taken for a bad list: stop sending \
         to addresses that nobody confirmed. 90 of 100 messages arrived (90.0 %), half of them within 4 seconds.",
    );
    check(
        &[site("microsoft", &[(Delivered, 88), (Deferred, 12)])],
        "Microsoft deferred 12 of 100 attempts (12.0 %): they are tried again, and the attempts of a message show what \
         Microsoft says. 88 of 88 messages arrived (100.0 %), half of them within 4 seconds.",
    );
    // A few bounces are no rate.
    check(
        &[site("icloud", &[(Delivered, 2), (BouncedHard, 1), (Deferred, 4)])],
        "2 of 3 messages arrived (66.7 %), half of them within 4 seconds.",
    );
}

#[test]
fn brakes_domains_and_warm_up_are_told() {
    #[track_caller]
    fn check(facts: SummaryFacts<'_>, expected: &str) {
        assert_eq!(summary(&SummaryFacts { sites: &[good()], ..facts }), expected);
    }
    let brakes = [braked(PathStatus::Stopped, Some(BrakeReason::BlockedIp)), braked(PathStatus::Stopped, None)];
    check(
        SummaryFacts { brakes: &brakes, ..SummaryFacts::default() },
        &format!(
            "Nothing leaves from 203.0.113.7 to Gmail, as on 1 more path, because the address is on a block list: mend what \
             its reply names, then let the operator release the path. {GOOD}"
        ),
    );
    let brakes = [braked(PathStatus::Slowed, Some(BrakeReason::Complaints))];
    check(
        SummaryFacts { brakes: &brakes, ..SummaryFacts::default() },
        &format!(
            "Sending from 203.0.113.7 to Gmail is slowed down, because too many readers complain; it grows again by itself \
             while no further reply says so. {GOOD}"
        ),
    );
    // What is worst goes first, and two sentences are enough.
    let brakes = [braked(PathStatus::Resting, Some(BrakeReason::Rate)), brakes[0].clone()];
    let broken = ["a.example", "b.example"]
        .map(|domain| BrokenDomain { domain: domain.to_owned(), missing: vec!["SPF", "DMARC"] });
    check(
        SummaryFacts { brakes: &brakes, broken: &broken, ..SummaryFacts::default() },
        "Sending from 203.0.113.7 to Gmail rests until 14:10 UTC, because the site says that it is too much or too fast; it \
         then continues without your help. a.example lacks SPF and DMARC, and 1 more domain is not in order: publish the records that are \
         shown for it, because Gmail, Microsoft and Yahoo refuse mail without.",
    );
    let warming =
        [WarmingSource { source: "203.0.113.7".to_owned(), level: 3, sent_today: 40, allowed_today: Some(549) }];
    check(
        SummaryFacts { warming: &warming, ..SummaryFacts::default() },
        &format!("{GOOD} 203.0.113.7 warms up at level 3: 40 of the 549 messages that today may have; send every day."),
    );
}

#[test]
fn shares_and_times_are_rounded_for_people() {
    for (part, whole, expected) in
        [(0, 10, "0.00 %"), (1, 3000, "0.03 %"), (99, 10_000, "0.99 %"), (1, 3, "33.3 %"), (9999, 10_000, "99.9 %")]
    {
        assert_eq!(share(part, whole), expected);
    }
    for (seconds, expected) in [(1, "1 second"), (119, "119 seconds"), (130, "2 minutes"), (90_000, "25 hours")] {
        assert_eq!(duration(seconds), expected);
    }
}
