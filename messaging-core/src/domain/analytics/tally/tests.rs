use proptest::prelude::*;

use super::*;

fn row(status: MessageStatus) -> Row {
    Row { status, seen: EngagementFlags::default(), skip: None, sent_at: None, delivered_at: None }
}

fn text(counts: &Counts) -> String {
    counts.iter().map(|(counter, number)| format!("{} {number}", counter.as_str())).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_each_status_counts_for() {
    let grid: String = MessageStatus::ALL
        .iter()
        .map(|status| format!("{}: {}\n", status.as_str(), text(&tally(&row(*status)))))
        .collect();
    insta::assert_snapshot!(grid, @r"
    queued: waiting 1
    sending: sending 1
    sent: sent 1
    delivered: sent 1, delivered 1
    deferred: deferred 1
    bounced: sent 1, bounces 1
    complained: sent 1, delivered 1, complaints 1
    failed: failed 1
    suppressed: skipped_suppressed 1
    cancelled: cancelled 1
    ");
}

#[test]
fn what_was_seen_counts_once() {
    let events = [
        (EventKind::Open, false),
        (EventKind::Open, false),
        (EventKind::Open, true),
        (EventKind::Click, false),
        (EventKind::Click, true),
        (EventKind::Unsubscribe, false),
        (EventKind::Complaint, false),
        (EventKind::Delivered, false),
    ];
    let shown = events.iter().map(|(kind, machine)| EngagementFlags::of_event(*kind, *machine));
    let seen = shown.fold(EngagementFlags::default(), EngagementFlags::union);
    let opened = Row { seen, ..row(MessageStatus::Delivered) };
    assert_eq!(
        text(&change(&row(MessageStatus::Delivered), &opened)),
        "complaints 1, unique_opens 1, unique_clicks 1, unsubscribes 1, unique_machine_opens 1"
    );
    let repeated: Counts = events.iter().map(|(kind, machine)| of_event(*kind, *machine)).sum();
    assert_eq!(text(&repeated), "opens 2, clicks 1, machine_opens 1");
    // Once by status and by what was seen.
    let complained = Row { seen: EngagementFlags::COMPLAINED, ..row(MessageStatus::Complained) };
    assert_eq!(tally(&complained).get(Counter::Complaints), 1);
    assert_eq!(EngagementFlags::from_bits(0xff).bits(), 0b1_1111);
}

#[test]
fn the_last_look_tells_why() {
    let skipped =
        |cause: SuppressCause| text(&tally(&Row { skip: Some(cause.into()), ..row(MessageStatus::Suppressed) }));
    assert_eq!(skipped(SuppressCause::NoConsent), "skipped_no_consent 1");
    assert_eq!(skipped(SuppressCause::FrequencyCap), "skipped_frequency_cap 1");
    let reason = crate::domain::audience::suppression::SuppressionReason::Bounce;
    assert_eq!(skipped(SuppressCause::Listed(reason)), "skipped_suppressed 1");
}

#[test]
fn a_late_bounce_leaves_the_bucket_of_the_delivery() {
    let at = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
    let delivered = Row { sent_at: Some(at(1)), delivered_at: Some(at(1)), ..row(MessageStatus::Delivered) };
    let bounced = Row { status: MessageStatus::Bounced, ..delivered };
    let told = |before: &Row, after: &Row, when| -> Vec<_> {
        let moved = activity(before, change(before, after), when);
        moved.iter().map(|(quarter, counts)| format!("{}: {}", quarter.0 / 4, text(counts))).collect()
    };
    assert_eq!(told(&row(MessageStatus::Sending), &delivered, at(1)), ["1: sent 1, delivered 1"]);
    assert_eq!(told(&delivered, &bounced, at(30)), ["1: delivered -1", "30: bounces 1"]);
    let sent = Row { status: MessageStatus::Sent, delivered_at: None, ..delivered };
    assert_eq!(told(&sent, &Row { status: MessageStatus::Failed, ..sent }, at(5)), ["1: sent -1"]);
    assert_eq!(told(&row(MessageStatus::Queued), &row(MessageStatus::Sending), at(5)), [""; 0]);
}

#[test]
fn rates_are_rounded_half_up() {
    let pairs = [(40, 88), (10, 88), (1, 3), (1, 20_000), (0, 0), (5, 0), (u64::MAX, u64::MAX)];
    let rates = pairs.map(|(part, whole)| rate(part, whole).to_string());
    assert_eq!(rates, ["0.4545", "0.1136", "0.3333", "0.0001", "0", "0", "1"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to messages in whatever order: the sum of the changes is the count of the rows, each message
    /// counts once, and each series sums to its total.
    #[test]
    fn counters_equal_a_recount(steps in prop::collection::vec((0_usize..5, 0_usize..10, 0_u8..32, 0_usize..3, 0_i64..4000), 0..120)) {
        let mut rows = [row(MessageStatus::Queued); 5];
        let mut counted: Counts = rows.iter().map(tally).sum();
        let mut series: Vec<(Quarter, Counts)> = Vec::new();
        for (place, status, seen, skip, minutes) in steps {
            let at = Timestamp::from_millis(minutes * 60_000);
            let before = rows[place];
            let next = MessageStatus::ALL[status];
            let mut after = Row { seen: before.seen.union(EngagementFlags::from_bits(seen)), ..before };
            if before.status.may_become(next) {
                after.status = next;
                after.skip = (next == MessageStatus::Suppressed)
                    .then_some([Skip::Suppressed, Skip::NoConsent, Skip::FrequencyCap][skip]);
                if tally(&after).get(Counter::Sent) > 0 && after.sent_at.is_none() {
                    after.sent_at = Some(at);
                }
                if next == MessageStatus::Delivered || (next == MessageStatus::Complained && after.delivered_at.is_none()) {
                    after.delivered_at = Some(at);
                }
            }
            let counts = change(&before, &after);
            counted += counts;
            series.extend(activity(&before, counts, at));
            rows[place] = after;
            prop_assert_eq!(counted, rows.iter().map(tally).sum::<Counts>());
            prop_assert_eq!(counted.messages(), 5);
        }
        let sum: Counts = series.iter().map(|(_, counts)| *counts).sum();
        for counter in Counter::ALL.into_iter().filter(|counter| counter.is_in_series()) {
            prop_assert_eq!(sum.get(counter), counted.get(counter), "{}", counter.as_str());
        }
        // No bucket is left with less than nothing.
        let mut buckets = std::collections::BTreeMap::<Quarter, Counts>::new();
        for (quarter, counts) in series {
            *buckets.entry(quarter).or_default() += counts;
        }
        prop_assert!(buckets.values().all(|counts| counts.iter().all(|(_, number)| number > 0)));
    }
}
