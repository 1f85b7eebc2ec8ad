//! Counters that do not equal the rows are found: each is changed behind the back of the store.

use std::path::Path;

use messaging_conformance::put;
use messaging_conformance::sample::{
    at, automation, bare_message, campaign, contact, contact_list, enqueue, event, id, insert, product_event, run,
    workspace,
};
use messaging_core::changes::{
    AutomationWrite, CountLink, CountMessages, Expect, JobWrite, NewWaiting, PutAutomation, PutRun, Write, moves,
};
use messaging_core::domain::automation::note::EventSubscription;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ids::{AutomationId, MessageId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use messaging_core::ports::store::{Store as _, Verification as _};
use messaging_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

/// A database in which something of everything is counted.
struct VerificationFixture {
    directory: TempDir,
    store: SqliteStore,
    workspace: WorkspaceId,
    campaign: Campaign,
    automation: AutomationId,
    seen: Message,
}

impl VerificationFixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(SqliteOptions::new(path(directory.path()))).unwrap();
        let workspace = workspace();
        put(&store, [Write::put(workspace.clone(), Expect::Absent)]).await;
        let workspace = workspace.id;
        let (ann, list, campaign) = (contact(workspace), contact_list(workspace), campaign(workspace));
        put(
            &store,
            [
                Write::put_contact(ann.clone(), Expect::Absent),
                Write::put(list.clone(), Expect::Absent),
                Write::put(Box::new(campaign.clone()), Expect::Absent),
            ],
        )
        .await;
        put(
            &store,
            [
                Write::JoinList(workspace, list.id, ann.id, at(0)),
                Write::AppendProductEvents(vec![product_event(&ann, "bought")]),
            ],
        )
        .await;
        let automation = automation(workspace);
        let put_automation = PutAutomation {
            automation: automation.clone(),
            subscription: EventSubscription::default(),
            lanes: Vec::new(),
            holds: Vec::new(),
        };
        let put_run =
            PutRun { run: run(&automation, &ann), expect: Expect::Absent, steps: Vec::new(), messages: Vec::new() };
        let automations = [
            Write::PutAutomation(Box::new(put_automation), Expect::Absent),
            Write::Automation(AutomationWrite::PutRun(Box::new(put_run))),
        ];
        put(&store, automations).await;
        let of_campaign = Message { campaign_id: Some(campaign.id), variant: Some(0), ..bare_message(workspace) };
        let (waiting, seen) = (Message { id: id(), ..of_campaign.clone() }, of_campaign);
        let count = |message| Write::CountMessages(Box::new(CountMessages::of_new(message).unwrap()));
        let new = NewWaiting { message: waiting.clone(), track: 3, due_at: at(5) };
        put(&store, [Write::InsertWaiting(workspace, campaign.id, vec![new]), count(&waiting)]).await;
        put(&store, [insert(&seen), count(&seen)]).await;
        let sending = seen.moved(MessageStatus::Sending, at(1));
        put(&store, moves(&seen, &sending, None, at(1))).await;
        let delivered = sending.moved(MessageStatus::Delivered, at(2));
        put(&store, moves(&sending, &delivered, None, at(2))).await;
        let mut clicked = delivered.after(None, [EventKind::Click], at(3));
        clicked.milestones.links = 1 << 7;
        let mut writes = moves(&delivered, &clicked, Some((EventKind::Click, false)), at(3));
        writes.push(Write::AppendEvent(Box::new(event(&seen, EventKind::Click, 3))));
        writes.push(Write::CountLink(Box::new(CountLink {
            workspace_id: workspace,
            campaign_id: campaign.id,
            variant: 0,
            link: 7,
            url: "https://a.example/".to_owned(),
            is_first: true,
        })));
        put(&store, writes).await;
        Self { directory, store, workspace, campaign, automation: automation.id, seen }
    }

    /// Changes the database as only a fault does.
    fn spoil(&self, sql: &str) {
        let changed = Connection::open(path(self.directory.path())).unwrap().execute(sql, []).unwrap();
        assert!(changed > 0, "{sql} changes nothing");
    }

    async fn verified(&self) -> Verified {
        let mut verified = Verified::default();
        let mut workspace = self.store.workspace_after(None).await.unwrap();
        while let Some(id) = workspace {
            verified.add(self.store.verify_workspace(id).await.unwrap());
            workspace = self.store.workspace_after(Some(id)).await.unwrap();
        }
        verified
    }

    async fn differences(&self) -> Vec<String> {
        let found = self.verified().await.differences;
        found.into_iter().map(|one| format!("{}: {} {}", one.what, one.stored, one.counted)).collect()
    }
}

fn path(directory: &Path) -> std::path::PathBuf {
    directory.join("messaging.db")
}

#[tokio::test]
async fn what_is_counted_right_has_no_difference() {
    let counted = VerificationFixture::new().await;
    let verified = counted.verified().await;
    assert_eq!(verified.differences, []);
    assert!(verified.checked > 50, "{}", verified.checked);
    counted.store.close().await;
}

#[tokio::test]
async fn every_counter_that_is_wrong_is_found() {
    let counted = VerificationFixture::new().await;
    let (workspace, campaign, automation) = (counted.workspace, counted.campaign.id, counted.automation);
    for (sql, expected) in [
        ("UPDATE workspace_numbers SET contacts = 2", format!("{workspace}: contacts: 2 1")),
        ("UPDATE campaign_counts SET delivered = 5", format!("{campaign}, variant 0: delivered: 5 1")),
        ("UPDATE campaign_counts SET clicks = 0", format!("{campaign}, variant 0: clicks: 0 1")),
        ("UPDATE campaign_activity SET sent = 3", format!("{campaign}: sent over time: 3 1")),
        ("UPDATE activity SET sent = 0", format!("{workspace}: sent over time, email, campaigns: 0 1")),
        ("UPDATE campaign_links SET unique_clicks = 9", format!("{campaign}, variant 0, link 7: unique_clicks: 9 1")),
        ("UPDATE automation_run_counts SET runs = 3", format!("{automation}: Waiting runs: 3 1")),
        ("UPDATE automation_versions SET runs = 0", format!("{automation}: runs of version 1: 0 1")),
        ("UPDATE automation_nodes SET waiting = 2", format!("{automation}: runs at w: 2 1")),
        ("DELETE FROM campaign_engagements", format!("{campaign}: messages in the listing of those clicked: 0 1")),
        ("DELETE FROM campaign_counts", format!("{campaign}, variant 0: waiting: 0 1")),
        (
            "UPDATE messages SET status = 9 WHERE status = 0",
            format!("{campaign}: messages that wait to be released: 1 0"),
        ),
    ] {
        let counted = VerificationFixture::new().await;
        counted.spoil(sql);
        let expected = expected
            .replace(&workspace.to_string(), &counted.workspace.to_string())
            .replace(&automation.to_string(), &counted.automation.to_string())
            .replace(&campaign.to_string(), "cmp_");
        let found = counted.differences().await;
        let is_found = found.iter().any(|found| without_campaign(found) == expected);
        assert!(is_found, "{sql}: {expected} is not among {found:?}");
    }
    counted.spoil("UPDATE lists SET contacts = 4");
    counted.spoil("UPDATE product_event_activity SET events = 2");
    let found = counted.differences().await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("lst_") && found[0].ends_with(": contacts: 4 1"), "{found:?}");
    assert!(found[1].starts_with("product events \"bought\" from 20") && found[1].ends_with("Z: 2 1"), "{found:?}");
}

/// The text with the id of the campaign, which is another in every database, taken out.
fn without_campaign(text: &str) -> String {
    match text.strip_prefix("cmp_") {
        Some(rest) => format!("cmp_{}", &rest[26..]),
        None => text.to_owned(),
    }
}

/// The message of a payload that is its id.
fn message_of(payload: &[u8]) -> Option<(WorkspaceId, MessageId)> {
    let (workspace, message) = std::str::from_utf8(payload).ok()?.split_once(' ')?;
    Some((workspace.parse().ok()?, message.parse().ok()?))
}

#[tokio::test]
async fn messages_without_a_job_and_jobs_without_a_message_are_found() {
    let counted = VerificationFixture::new().await;
    let text = async || {
        let found = counted.store.verify_message_jobs("test", message_of).await.unwrap();
        found.differences.into_iter().map(|one| format!("{}: {} {}", one.what, one.stored, one.counted)).collect()
    };
    let none: Vec<String> = text().await;
    assert_eq!(none, [""; 0], "one waits, and one is delivered");

    let lost = bare_message(counted.workspace);
    put(&counted.store, [insert(&lost)]).await;
    assert_eq!(text().await, [format!("{}: jobs that deliver it: 0 1", lost.id)]);
    let job = |message: MessageId| {
        let Write::Job(JobWrite::Enqueue(mut job)) = enqueue("lane", 0) else { unreachable!("it adds a job") };
        job.kind = "test";
        job.payload = format!("{} {message}", counted.workspace).into();
        Write::Job(JobWrite::Enqueue(job))
    };
    put(&counted.store, [job(lost.id), job(counted.seen.id)]).await;
    assert_eq!(text().await, [""; 0]);
    let gone: MessageId = id();
    put(&counted.store, [job(gone)]).await;
    assert_eq!(text().await, [format!("{gone}: a job for a message that is gone: 1 0")]);
}
