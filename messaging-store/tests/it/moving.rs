//! Moving an installation from SQLite to PostgreSQL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use messaging_conformance::cluster::Database;
use messaging_conformance::sample::{
    at, automation, bare_message, campaign, capture, claim, contact, contact_list, custom_field, domain, enqueue,
    event, id, identity, import, insert, ip, ip_pool, joined, key, product_event, reply, run, segment, session,
    settings, suppression, template, ticket, webhook, workspace,
};
use messaging_conformance::{Opened, commit, first, put};
use messaging_core::changes::{
    AccountWrite, AutomationWrite, CountMessages, Expect, LogEvent, PutAutomation, PutRun, SourceWrite, Write, moves,
};
use messaging_core::domain::audience::soft_bounce::Streak;
use messaging_core::domain::automation::note::EventSubscription;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::ip_pool::IpGrant;
use messaging_core::domain::delivery::ip_pool::source::{PathRow, SourceRow};
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Contacts as _, EventLog as _, Installation as _, Jobs as _, Store};
use messaging_core::ports::uploads::UploadFile;
use messaging_core::scope::Role;
use messaging_store::moving::{MoveError, MoveOptions, MoveReport, move_to_postgres};
use messaging_store::{OpenError, PostgresStore, PostgresUrl, SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join("messaging.db")
}

pub(crate) async fn moved(directory: &Path, target: &Database) -> Result<MoveReport, MoveError> {
    let mut options = SqliteOptions::new(path(directory));
    options.epoch = Some(directory.join("epoch"));
    let target = PostgresUrl::parse(&target.url).unwrap();
    let mut seen = 0;
    let outcome = move_to_postgres(MoveOptions { source: options, target }, |told| {
        assert_eq!(told.done, seen);
        seen += 1;
    });
    outcome.await
}

fn rows(report: &MoveReport, table: &str) -> u64 {
    report.tables.iter().find(|moved| moved.name == table).unwrap().rows
}

async fn differences(store: &dyn Store) -> (u64, Vec<String>) {
    let (mut checked, mut found) = (0, Vec::new());
    let mut workspace = store.workspace_after(None).await.unwrap();
    while let Some(id) = workspace {
        let verified = store.verify_workspace(id).await.unwrap();
        checked += verified.checked;
        found.extend(verified.differences.iter().map(|one| format!("{one:?}")));
        workspace = store.workspace_after(Some(id)).await.unwrap();
    }
    found.sort();
    (checked, found)
}

/// An installation with data of nearly every kind.
pub(crate) struct Filled {
    pub(crate) directory: TempDir,
    pub(crate) store: SqliteStore,
    pub(crate) workspace: WorkspaceId,
    seen: Message,
    blob: MessageBlob,
    pending: MessageBlob,
    upload: UploadFile,
}

/// Bytes longer than a piece, and not a whole number of pieces.
fn long(byte: u8) -> Bytes {
    vec![byte; 700_001].into()
}

/// A stopped path.
fn gmail() -> PathRow {
    PathRow {
        ip: ip(7).into(),
        site: "gmail".to_owned(),
        state: "{}".to_owned(),
        sent_today: 50,
        day: 20_000,
        is_stopped: true,
        updated_at: at(3),
    }
}

impl Filled {
    #[allow(clippy::too_many_lines, reason = "one of everything")]
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = SqliteOptions::new(path(directory.path()));
        options.epoch = Some(directory.path().join("epoch"));
        let store = SqliteStore::open(options).unwrap();
        let workspace = workspace();
        put(
            &store,
            [Write::PutKeyCheck("check".to_owned()), Write::PutInstallationName("mx.example".to_owned(), None)],
        )
        .await;
        put(&store, [Write::put(workspace.clone(), Expect::Absent)]).await;
        let workspace = workspace.id;
        let (_, _, join) = joined(workspace, Role::Owner);
        put(&store, join).await;
        let (ann, bob) = (contact(workspace), contact(workspace));
        let bob = messaging_core::domain::audience::contact::Contact {
            email: Some("bob@example.org".to_owned()),
            phone: None,
            external_id: None,
            ..bob
        };
        let (list, segment, template) =
            (contact_list(workspace), segment(workspace), template(workspace, Channel::Email));
        let campaign = campaign(workspace);
        put(
            &store,
            [
                Write::put_contact(ann.clone(), Expect::Absent),
                Write::put_contact(bob.clone(), Expect::Absent),
                Write::put(list.clone(), Expect::Absent),
                Write::PutSegment(Box::new(segment), Expect::Absent),
                Write::put(Box::new(template), Expect::Absent),
                Write::put(custom_field(workspace, "age"), Expect::Absent),
                Write::put(Box::new(campaign.clone()), Expect::Absent),
                Write::put(key(workspace), Expect::Absent),
                Write::put(domain(workspace, "acme.example"), Expect::Absent),
                Write::put(ip_pool(Some(workspace), "marketing"), Expect::Absent),
                Write::put(ip_pool(None, "shared"), Expect::Absent),
                Write::Source(SourceWrite::Grant(IpGrant { workspace_id: workspace, ip: ip(7), granted_at: at(3) })),
                Write::Source(SourceWrite::PutSource(SourceRow::new(ip(7).into(), at(3)), Expect::Absent)),
                Write::Source(SourceWrite::PutPath(Box::new(gmail()), Expect::Absent)),
                Write::put(settings(workspace, Channel::Email), Expect::Absent),
                Write::PutSuppression(suppression(workspace, Channel::Email, "no@example.org"), Expect::Absent),
                Write::Account(AccountWrite::PutSession(session("token", at(1000)))),
                Write::Account(AccountWrite::PutTicket(ticket("ticket", at(1000)))),
                Write::Account(AccountWrite::LinkIdentity(identity("subject", id()))),
                Write::put(Box::new(webhook(workspace)), Expect::Absent),
                Write::put(Box::new(import(workspace)), Expect::Absent),
                Write::Remember(Box::new(reply("key", 0, 1000))),
                Write::PutUrl(workspace, "https://a.example/".to_owned()),
                Write::CountSoftBounce(Streak {
                    workspace_id: workspace,
                    channel: Channel::Email,
                    address: "soft@example.org".to_owned(),
                    length: 0,
                }),
                enqueue("email:example.org", 5),
                enqueue("upkeep:sweep", 7),
                Write::FollowEvents(workspace, at(1 << 40)),
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
            holds: vec![messaging_core::domain::campaign::Reference::List(list.id)],
        };
        let put_run =
            PutRun { run: run(&automation, &ann), expect: Expect::Absent, steps: Vec::new(), messages: Vec::new() };
        put(
            &store,
            [
                Write::PutAutomation(Box::new(put_automation), Expect::Absent),
                Write::Automation(AutomationWrite::PutRun(Box::new(put_run))),
            ],
        )
        .await;
        let seen = Message { campaign_id: Some(campaign.id), variant: Some(0), ..bare_message(workspace) };
        put(&store, [insert(&seen), Write::CountMessages(Box::new(CountMessages::of_new(&seen).unwrap()))]).await;
        let sending = seen.moved(MessageStatus::Sending, at(1));
        put(&store, moves(&seen, &sending, None, at(1))).await;
        let bounced = sending.moved(MessageStatus::Bounced, at(2));
        let mut writes = moves(&sending, &bounced, None, at(2));
        for (kind, millis) in [(EventKind::Sent, 1), (EventKind::Bounce, 2)] {
            let event = event(&seen, kind, millis);
            writes.push(Write::LogEvent(LogEvent {
                workspace_id: workspace,
                message_id: seen.id,
                event_id: event.id,
                at: event.at,
            }));
            writes.push(Write::AppendEvent(Box::new(event)));
        }
        put(&store, writes).await;
        let captured = bare_message(workspace);
        put(&store, [insert(&captured), Write::PutCapture(Box::new(capture(&captured, long(3))))]).await;
        put(&store, [Write::PutCapture(Box::new(capture(&seen, "short")))]).await;
        let blob = MessageBlob { workspace_id: workspace, message_id: seen.id, id: id() };
        let pending = MessageBlob { id: id(), ..blob };
        store.blobs().put_blob(blob, long(1)).await.unwrap();
        store.blobs().put_blob(pending, Bytes::new()).await.unwrap();
        store.blobs().keep_blobs(&[blob]).await.unwrap();
        let upload = UploadFile { import_id: id(), workspace_id: workspace, upload_id: id() };
        store.uploads().append_upload(upload, 0, long(2)).await.unwrap();
        store.uploads().keep_upload(upload).await.unwrap();
        let unfinished = UploadFile { upload_id: id(), ..upload };
        store.uploads().append_upload(unfinished, 0, "begun".into()).await.unwrap();
        Self { directory, store, workspace, seen, blob, pending, upload }
    }

    /// Everything that is read over the ports, as text.
    async fn told(&self, store: &dyn Store) -> Vec<String> {
        let (workspace, page) = (self.workspace, || first(50));
        let seen = self.seen.id;
        vec![
            format!("{:?}", store.key_check().await),
            format!("{:?}", store.installation_name().await),
            format!("{:?}", store.users(page()).await),
            format!("{:?}", store.workspace(workspace).await),
            format!("{:?}", store.members(workspace, page()).await),
            format!("{:?}", store.session(&messaging_core::domain::security::digest::Digest::of("token")).await),
            format!("{:?}", store.ticket(&messaging_core::domain::security::digest::Digest::of("ticket")).await),
            format!("{:?}", store.api_keys(workspace, page()).await),
            format!("{:?}", store.domains(workspace, page()).await),
            format!("{:?}", store.domains_named("acme.example", None, 5).await),
            format!("{:?}", store.all_ip_pools(None, 9).await),
            format!("{:?}", store.ip_grants(workspace, None, 9).await),
            format!("{:?}", store.source_rows(None, 9).await),
            format!("{:?}", store.path_rows(ip(7).into(), None, 9).await),
            format!("{:?}", store.channels(workspace).await),
            format!("{:?}", store.custom_fields(workspace, page()).await),
            format!("{:?}", store.lists(workspace, page()).await),
            format!("{:?}", store.segments(workspace, page()).await),
            format!("{:?}", store.segment_read_mask(workspace).await),
            format!("{:?}", store.contact_count(workspace).await),
            format!("{:?}", store.webhooks(workspace, page()).await),
            format!("{:?}", store.imports(workspace, page()).await),
            format!("{:?}", store.reply(&reply("key", 0, 1000).key, at(1)).await),
            format!("{:?}", store.soft_bounces(workspace, Channel::Email, "soft@example.org").await),
            format!("{:?}", store.message_with_content(workspace, seen).await),
            format!("{:?}", store.message_events(workspace, seen, 50).await),
            format!("{:?}", store.attempts(workspace, seen, page()).await),
            format!("{:?}", store.captures(workspace, page()).await),
            format!("{:?}", store.capture(workspace, seen).await),
            format!("{:?}", store.events_after(workspace, None, 50).await),
            format!("{:?}", store.followed_until(workspace).await),
            format!("{:?}", store.jobs_of(&["deliver_message"], 50).await),
            format!("{:?}", store.job_count().await),
            format!("{:?}", store.open_campaigns(page()).await),
            format!("{:?}", store.blobs().blob(workspace, self.blob.id).await),
            format!("{:?}", store.blobs().blob(workspace, self.pending.id).await),
            format!("{:?}", store.blobs().pending_blobs(at(1 << 40), 50).await),
            format!("{:?}", store.blobs().blobs_before(at(1 << 40), 50).await),
            format!("{:?}", store.uploads().uploads(workspace, self.upload.import_id).await),
            format!("{:?}", store.uploads().read_upload(self.upload, 262_140, 10).await),
            format!("{:?}", differences(store).await),
        ]
    }
}

#[tokio::test]
async fn what_was_moved_is_read_like_what_was_there() {
    let Some(target) = Database::create().await else { return };
    let filled = Box::pin(Filled::new()).await;
    let (workspace, before) = (filled.workspace, filled.told(&filled.store).await);
    let log = filled.store.events_after(workspace, None, 50).await.unwrap();
    assert_eq!(log.len(), 2);
    filled.store.close().await;
    let report = moved(filled.directory.path(), &target).await.unwrap();
    assert!(report.verified);
    assert_eq!((report.blobs.count, report.blobs.bytes), (2, 700_001));
    for (table, expected) in [
        ("contacts", 2),
        ("blob_pieces", 3),
        ("upload_pieces", 4),
        ("uploads", 2),
        ("captures", 2),
        ("event_log", 2),
        ("jobs", 2),
        ("installation", 2),
        ("list_counts", 1),
        ("automation_runs", 1),
        ("holds", 1),
        ("sessions", 1),
    ] {
        assert_eq!(rows(&report, table), expected, "{table}");
    }

    let store = PostgresStore::open(target.options()).await.unwrap();
    for (found, expected) in filled.told(&store).await.iter().zip(&before) {
        assert_eq!(found, expected);
    }
    assert_eq!(differences(&store).await.1, [""; 0]);
    let rest = store.events_after(workspace, Some(log[0].0), 50).await.unwrap();
    assert_eq!(rest.iter().map(|(at, event, _)| (*at, event.id)).collect::<Vec<_>>(), [(log[1].0, log[1].1.id)]);
    assert_eq!(store.fence().await.unwrap(), None);

    // Numbers continue, and so does work.
    put(
        &store,
        [
            Write::put_contact(
                messaging_core::domain::audience::contact::Contact {
                    email: Some("c@d.co".to_owned()),
                    phone: None,
                    external_id: None,
                    ..contact(workspace)
                },
                Expect::Absent,
            ),
            Write::put(contact_list(workspace), Expect::Absent),
            insert(&bare_message(workspace)),
        ],
    )
    .await;
    assert_eq!(store.contact_count(workspace).await.unwrap(), 3);
    assert_eq!(store.claim(claim(10)).await.unwrap().len(), 2);
    store.close().await;
}

#[tokio::test]
async fn the_source_is_fenced_and_nothing_else_of_it_changes() {
    let Some(target) = Database::create().await else { return };
    let filled = Box::pin(Filled::new()).await;
    let before = filled.told(&filled.store).await;
    filled.store.close().await;
    moved(filled.directory.path(), &target).await.unwrap();
    let store = SqliteStore::open(SqliteOptions::new(path(filled.directory.path()))).unwrap();
    assert!(store.fence().await.unwrap().is_some());
    assert_eq!(filled.told(&store).await, before);
    store.close().await;
    // A fence is moved along.
    let Some(another) = Database::create().await else { return };
    moved(filled.directory.path(), &another).await.unwrap();
    let store = PostgresStore::open(another.options()).await.unwrap();
    assert!(store.fence().await.unwrap().is_some());
    store.close().await;
}

#[tokio::test]
async fn both_sides_must_be_idle_and_the_target_empty() {
    let Some(target) = Database::create().await else { return };
    let filled = Box::pin(Filled::new()).await;
    let refused = moved(filled.directory.path(), &target).await.unwrap_err();
    assert!(refused.is_not_ready() && matches!(refused, MoveError::Source(OpenError::InUse)), "{refused}");
    filled.store.close().await;

    let node = PostgresStore::open(target.options()).await.unwrap();
    let refused = moved(filled.directory.path(), &target).await.unwrap_err();
    assert!(refused.is_not_ready() && matches!(refused, MoveError::TargetInUse(_)), "{refused}");
    put(&node, [Write::put(workspace(), Expect::Absent)]).await;
    node.close().await;
    let refused = moved(filled.directory.path(), &target).await.unwrap_err();
    assert!(refused.is_not_ready() && matches!(refused, MoveError::NotEmpty("workspaces")), "{refused}");

    let absent = filled.directory.path().join("absent");
    let refused = moved(&absent, &target).await.unwrap_err();
    assert!(matches!(refused, MoveError::NoDatabase(_)), "{refused}");
    assert!(!absent.exists());
    let store = SqliteStore::open(SqliteOptions::new(path(filled.directory.path()))).unwrap();
    assert_eq!(store.fence().await.unwrap(), None, "the source is as it was");
}

#[tokio::test]
async fn what_cannot_be_moved_leaves_the_target_empty_and_the_source_as_it_was() {
    let Some(target) = Database::create().await else { return };
    let filled = Box::pin(Filled::new()).await;
    filled.store.close().await;
    let file = path(filled.directory.path());
    let spoil = |sql: &str| assert!(rusqlite::Connection::open(&file).unwrap().execute(sql, []).unwrap() > 0);
    spoil("UPDATE lists SET name = 'a' || char(0) || 'b'");
    let refused = moved(filled.directory.path(), &target).await.unwrap_err();
    assert!(matches!(&refused, MoveError::Unfit { table: "lists", column, .. } if column == "name"), "{refused}");
    let store = SqliteStore::open(SqliteOptions::new(&file)).unwrap();
    assert_eq!(store.fence().await.unwrap(), None);
    store.close().await;
    drop(store);
    spoil("UPDATE lists SET name = 'ab'");
    moved(filled.directory.path(), &target).await.unwrap();
    let store = PostgresStore::open(target.options()).await.unwrap();
    assert!(commit(&store, [Write::put(workspace(), Expect::Absent)]).await.is_ok());
    store.close().await;
}

/// Moves what cases of the suite leave behind: together they leave data of every kind.
mod after_cases {
    use super::*;

    struct Left(TempDir);

    impl Drop for Left {
        fn drop(&mut self) {
            if std::thread::panicking() {
                return;
            }
            let directory = self.0.path().to_owned();
            let moving = std::thread::spawn(move || {
                tokio::runtime::Runtime::new().unwrap().block_on(async move {
                    let Some(target) = Database::create().await else { return };
                    moved(&directory, &target).await.unwrap();
                    let before = SqliteStore::open(SqliteOptions::new(path(&directory))).unwrap();
                    let after = PostgresStore::open(target.options()).await.unwrap();
                    assert_eq!(differences(&after).await.1, differences(&before).await.1);
                    after.close().await;
                });
            });
            moving.join().unwrap();
        }
    }

    async fn open() -> Option<Opened> {
        Database::create().await?;
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(SqliteOptions::new(path(directory.path()))).unwrap();
        Some(Opened { store: Arc::new(store), keep: Box::new(Left(directory)) })
    }

    messaging_conformance::conformance_tests! { super::open;
        accounts: sessions_begin_and_end, tickets_are_taken_once;
        attempts: attempts_round_trip;
        audiences: sets_round_trip, taken_addresses_are_found;
        automation_notes: each_cause_makes_its_notes_in_order;
        automation_runs: runs_round_trip, entries_change_with_their_revision, dates_fire_once;
        automations: what_active_automations_need_is_held;
        blobs: blobs_without_a_commit_are_settled, an_abandoned_blob_is_named_by_no_commit;
        campaign_messages: messages_wait_in_the_order_of_their_time;
        campaigns: sends_change_with_their_revision, what_open_campaigns_name_is_held;
        contacts: every_filter_narrows;
        counters: totals_and_series_are_sums, links_are_counted_by_variant_and_number, events_are_counted_by_name;
        second_factors: factors_round_trip, recovery_codes_are_good_once, codes_of_a_sign_in_are_counted;
        segments: every_kind_of_change_is_followed, members_are_calculated_and_counted;
        sign_ins: failures_of_an_email_count;
        templates: versions_round_trip;
        urls: urls_round_trip_and_are_stored_once;
        webhooks: the_backlog_is_in_order, deliveries_round_trip;
    }
}
