//! A/B tests.

use std::collections::BTreeMap;
use std::time::Duration;

use messaging_core::changes::{AudienceRow, Changes, Expect, Write, moves};
use messaging_core::domain::analytics::tally::Counter;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, Piece};
use messaging_core::domain::campaign::progress::{CampaignProgress, Freeze, Wave};
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::ids::CampaignId;
use serde_json::json;

use super::{HOUR, MINUTE, Mailing};

fn variants(weights: &[f64]) -> serde_json::Value {
    let one = |(place, weight): (usize, &f64)| json!({"name": format!("v{place}"), "weight": weight, "subject": format!("s{place}")});
    weights.iter().enumerate().map(one).collect()
}

/// Number of messages of each variant.
fn sizes(messages: &[Message]) -> Vec<usize> {
    let mut sizes = BTreeMap::<u8, usize>::new();
    for message in messages {
        *sizes.entry(message.variant.unwrap()).or_default() += 1;
    }
    sizes.into_values().collect()
}

impl Mailing {
    /// Opens each of these messages.
    async fn open<'a>(&self, messages: impl Iterator<Item = &'a Message>) {
        for message in messages {
            let now = self.app.now();
            let seen = message.milestones.with_event(EventKind::Open, false);
            let after = Message { milestones: seen, revision: message.revision + 1, ..message.clone() };
            let writes = moves(message, &after, Some((EventKind::Open, false)), now);
            self.commit(writes.into_iter().collect::<Changes>()).await;
        }
    }
}

#[tokio::test]
async fn without_a_test_group_all_are_split_by_the_weights() {
    let mailing = Mailing::start(1003, 4).await;
    let id = mailing.send(json!({"kind": "ab_test", "variants": variants(&[1.0, 2.0, 0.5])})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 1003", "sent"));
    assert_eq!(sizes(&mailing.messages(id).await), [287, 573, 143]);
}

#[tokio::test]
async fn a_test_leads_to_the_winner() {
    let mailing = Mailing::start(600, 4).await;
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]),
            "settings": {"ab_test": {"test_percent": 20, "wait_minutes": 60}}}))
        .await;
    mailing.work().await;
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["waiting"]),
        (&json!("sending"), &json!("waiting_winner"), &json!(480))
    );
    let tested = mailing.messages(id).await;
    assert_eq!(sizes(&tested), [60, 60]);
    // The second variant is opened more often.
    let opens = |message: &&Message| message.variant == Some(1);
    mailing.open(tested.iter().filter(opens).take(30)).await;
    mailing.open(tested.iter().filter(|message| !opens(message)).take(3)).await;
    mailing.pass(HOUR - MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 120");
    mailing.pass(MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 600");
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["winner_variant"]),
        (&json!("sent"), &json!(null), &json!("v1"))
    );
    assert_eq!(sizes(&mailing.messages(id).await), [60, 540]);
    // The test group is drawn from the whole list, not from its beginning.
    let late = tested.iter().filter(|message| message.to.starts_with("p5")).count();
    assert!((5..50).contains(&late), "{late}");
}

#[tokio::test]
async fn a_person_chooses_also_while_it_is_paused() {
    let mailing = Mailing::start(50, 1).await;
    let test = json!({"test_percent": 50, "wait_minutes": 1, "winner_metric": "manual"});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    mailing.pass(2 * MINUTE).await;
    assert_eq!(mailing.view(id).await["phase"], "waiting_winner");
    mailing.act(id, "pause", json!({})).await;
    mailing.act(id, "winner", json!({"variant": "v1"})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 25");
    mailing.act(id, "schedule", json!({})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 50", "sent"));
}

#[tokio::test]
async fn a_pause_does_not_stop_the_wait_for_a_winner() {
    let mailing = Mailing::start(50, 1).await;
    let test = json!({"test_percent": 50, "wait_minutes": 30});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    mailing.act(id, "pause", json!({})).await;
    mailing.work().await;
    mailing.pass(30 * MINUTE).await;
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["winner_variant"]),
        (&json!("paused"), &json!("winner"), &json!("v0"))
    );
    assert_eq!(mailing.tally(id).await, "delivered 25");
}

#[tokio::test]
async fn a_test_group_of_everybody_is_no_test() {
    let mailing = Mailing::start(3, 1).await;
    let test = json!({"test_percent": 90, "wait_minutes": 30});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[100.0, 1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    let view = mailing.view(id).await;
    assert_eq!((&view["status"], &view["phase"]), (&json!("sent"), &json!(null)));
    assert_eq!(sizes(&mailing.messages(id).await), [1, 1, 1]);
    assert_eq!(mailing.counts(id).await.iter().map(|counts| counts.total(Counter::Delivered)).sum::<u64>(), 3);
}

/// Recipients of a piece in the crash test; they differ by piece.
fn recipients_of(piece: u64) -> Bits {
    (0..(piece % 5 + 4)).map(|place| u16::try_from(place * 900).unwrap()).collect()
}

impl Mailing {
    /// A campaign whose audience of forty pieces has just been judged, and whose test group is to be drawn. The
    /// contacts do not exist: their messages are made and withdrawn, as if the contacts had been erased since.
    async fn judged(&self, weights: &[f64]) -> CampaignId {
        let test = json!({"test_percent": 30, "wait_minutes": 1});
        let id =
            self.send(json!({"kind": "ab_test", "variants": variants(weights), "settings": {"ab_test": test}})).await;
        let (workspace, now) = (self.workspace, self.app.now());
        let stored = self.store.campaign(workspace, id).await.unwrap().unwrap();
        let begun = stored.record.begin(now).unwrap();
        let template = TemplateUse { id: self.template.parse().unwrap(), version: 1 };
        let pinned = vec![(template, Some("shop@sandbox.test".to_owned())); weights.len()];
        let mut progress = CampaignProgress::new(&begun, now, pinned);
        let mut changes = Changes::default();
        for piece in 0..PIECES {
            let bits = recipients_of(piece);
            let all = || bits.clone();
            let judged = Piece { matched: all(), addressed: all(), consenting: all(), ..Piece::default() }.judge();
            let wave = Wave { due_at: now, recipients: u64::from(bits.len()) };
            progress.note_judged(&begun, &judged, [wave], Some(piece + 1).filter(|next| *next < PIECES));
            let set = AudienceSet::Recipients(now);
            changes.push(Write::PutAudience(Box::new(AudienceRow {
                workspace_id: workspace,
                campaign_id: id,
                piece,
                set,
                bits,
            })));
        }
        assert!(matches!(progress.freeze, Freeze::Drawing(0, _)));
        let frozen = begun.frozen(progress.counts.recipients, progress.has_test(&begun), now).unwrap();
        changes.push(Write::put(Box::new(frozen), Expect::Revision(stored.revision)));
        changes.push(Write::put(Box::new(progress), Expect::Absent));
        self.commit(changes).await;
        id
    }

    /// The test group that was drawn: for each piece of the audience the places of its members.
    async fn drawn(&self, id: CampaignId) -> Vec<(u64, Vec<u16>)> {
        let rows = self.store.audience_rows(self.workspace, id, AudienceSet::TestGroup, 0, 1000).await.unwrap();
        rows.into_iter().map(|row| (row.piece, row.bits.iter().collect())).collect()
    }

    /// Works until the progress of a campaign has changed, and is then cut off. Returns the progress.
    async fn crash_at_the_next_commit(&self, id: CampaignId) -> CampaignProgress {
        let read = async || self.store.campaign_progress(self.workspace, id).await.unwrap().unwrap();
        let before = read().await.revision;
        let app = self.app.clone();
        let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
        let reached = loop {
            let stored = read().await;
            if stored.revision > before || working.is_finished() {
                break stored.record;
            }
            tokio::task::yield_now().await;
        };
        working.abort();
        let _ = working.await;
        // The jobs claimed by the process are free again.
        self.clock.advance(LEASE);
        // After six hours the campaign waits for a person.
        if self.status(id).await == "paused" {
            self.act(id, "schedule", json!({})).await;
        }
        reached
    }
}

/// Pieces of the audience: the draw handles sixteen in a commit.
const PIECES: u64 = 40;

/// Time after which the claims of a dead process end.
const LEASE: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_crash_at_any_commit_of_the_draw_changes_nothing_of_the_split() {
    let weights = [1.0, 2.0, 0.5];
    let count: u64 = (0..PIECES).map(|piece| u64::from(recipients_of(piece).len())).sum();
    // Half rounds up.
    let tested = (count * 30 + 50) / 100;
    let mailing = Mailing::start(0, 1).await;
    let id = mailing.judged(&weights).await;
    let mut draws = 0;
    let whole = loop {
        let reached = mailing.crash_at_the_next_commit(id).await;
        draws += 1;
        assert!(draws < 20, "{reached:?}");
        let drawn = mailing.drawn(id).await;
        if reached.freeze == Freeze::Done {
            break drawn;
        }
    };
    assert!(draws >= 2, "{draws} commits");
    assert_eq!(whole.iter().map(|(_, places)| places.len() as u64).sum::<u64>(), tested);
    for (piece, places) in &whole {
        assert!(places.iter().all(|place| recipients_of(*piece).contains(*place)), "{piece}");
    }
    // The messages of the test group and of the rest follow, with a crash at each commit as well.
    for _ in 0..200 {
        if mailing.status(id).await == "sent" {
            break;
        }
        mailing.crash_at_the_next_commit(id).await;
    }
    assert_eq!(mailing.status(id).await, "sent");
    assert_eq!(mailing.tally(id).await, format!("cancelled {count}"));
    assert_eq!(mailing.drawn(id).await, whole, "the draw is not made again");
    // All but the test group got the winner: subtracting that rest leaves each variant within one of its share.
    let rest = usize::try_from(count - tested).unwrap();
    let mut sizes = sizes(&mailing.messages(id).await);
    sizes[0] -= rest;
    let all: f64 = weights.iter().sum();
    for (size, weight) in sizes.iter().zip(weights) {
        let share = f64::from(u32::try_from(tested).unwrap()) * weight / all;
        assert!((f64::from(u32::try_from(*size).unwrap()) - share).abs() < 1.0, "{sizes:?} {share}");
    }
}
