//! Measures the speed at which the store adds the messages of a campaign, and compares it with a loop of prepared
//! statements that writes the same rows.
//!
//! `cargo run --release -p messaging-store --example fan_out -- [DIRECTORY] [MESSAGES] [PAGE]`
//!
//! Store and loop take turns, page by page, each in a database of its own: a slow moment of the machine affects both. A
//! page is one durable commit of messages, their waiting rows, the campaign's progress and its counters.
#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use messaging_conformance::campaigns::progress;
use messaging_conformance::sample::{bare_message, campaign, id};
use messaging_core::changes::{Changes, Condition, CountMessages, Expect, NewWaiting, Write, track_of};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::progress::CampaignProgress;
use messaging_core::domain::message::Message;
use messaging_core::ids::{ContactId, Id, IdSource};
use messaging_core::ports::clock::{Clock, SystemClock, SystemEntropy};
use messaging_core::ports::store::{Campaigns as _, Priority, Store};
use messaging_core::time::Timestamp;
use messaging_store::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let messages: usize = arguments.next().map_or(200_000, |text| text.parse().expect("a number of messages"));
    let page: usize = arguments.next().map_or(500, |text| text.parse().expect("a number of messages of a page"));
    let place = tempfile::tempdir_in(directory).expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio");

    let paths = ["store", "loop"].map(|name| place.path().join(name).join("messaging.db"));
    let campaign = campaign(id());
    let progress = progress(&campaign);
    let stores = paths.clone().map(|path| {
        let store = SqliteStore::open(SqliteOptions::new(path)).expect("a store");
        let begin = [
            Write::put(Box::new(campaign.clone()), Expect::Absent),
            Write::put(Box::new(progress.clone()), Expect::Absent),
        ];
        runtime.block_on(store.commit(Changes::from_iter(begin), Priority::Background)).expect("a commit");
        store
    });
    let before = paths.each_ref().map(|path| size(path));
    let [store, other] = stores;
    runtime.block_on(other.close());
    let looped = Loop::open(&paths[1]);

    let (mut in_store, mut in_loop) = (Vec::new(), Vec::new());
    for (number, messages) in pages(&campaign, messages, page).enumerate() {
        let revision = u32::try_from(number + 1).expect("few pages");
        let run_loop = |in_loop: &mut Vec<Duration>| in_loop.push(timed(|| looped.page(&messages, &progress)));
        // Each is the first of the two every other time.
        if number % 2 == 0 {
            run_loop(&mut in_loop);
        }
        let changes = changes(&campaign, &messages, &progress, revision);
        in_store.push(timed(|| runtime.block_on(store.commit(changes, Priority::Background)).expect("a commit")));
        if number % 2 == 1 {
            run_loop(&mut in_loop);
        }
    }
    let tracks = runtime.block_on(store.waiting_tracks(campaign.workspace_id, campaign.id)).expect("tracks");
    runtime.block_on(store.close());
    drop(looped);

    let rate = |times: &[Duration]| {
        let seconds: f64 = times.iter().map(Duration::as_secs_f64).sum();
        as_float(messages) / seconds
    };
    println!(
        "{messages} messages, {page} a page, {} tracks: store {:.0}/s, loop {:.0}/s, ratio {:.2} (median of pages {:.2})",
        tracks.len(),
        rate(&in_store),
        rate(&in_loop),
        rate(&in_store) / rate(&in_loop),
        median(&mut in_loop) / median(&mut in_store),
    );
    for ((name, path), before) in ["store", "loop"].iter().zip(&paths).zip(before) {
        println!("{name}: {:.0} bytes a message", as_float(size(path) - before) / as_float(messages));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn as_float(count: usize) -> f64 {
    count as f64
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// Length of a database in bytes, including its log.
fn size(path: &Path) -> usize {
    let log = path.with_extension("db-wal");
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    usize::try_from(bytes(path) + bytes(&log)).expect("a small database")
}

/// Pages of messages to recipients of domains of very different sizes, all due now.
fn pages(campaign: &Campaign, messages: usize, page: usize) -> impl Iterator<Item = Vec<NewWaiting>> {
    let (ids, entropy) = (IdSource::default(), SystemEntropy::default());
    // Contacts were created long before, in the order of their numbers.
    let contacts: Vec<ContactId> = (0..messages).map(|_| ids.next(Timestamp::from_millis(0), &entropy)).collect();
    let template = campaign.plan.template_id;
    let (workspace, campaign) = (campaign.workspace_id, campaign.id);
    (0..messages.div_ceil(page)).map(move |number| {
        let now = SystemClock.now();
        let recipients = number * page..((number + 1) * page).min(messages);
        let new = |recipient: usize| {
            let domain = format!("domain{}.example", recipient % 7 * (recipient % 311));
            let message = Message {
                id: ids.next(now, &entropy),
                to: format!("recipient.{recipient}@{domain}"),
                from_email: Some("news@acme.example".to_owned()),
                contact_id: Some(contacts[recipient]),
                campaign_id: Some(campaign),
                template_id: Some(template),
                variant: Some(0),
                created_at: now,
                updated_at: now,
                ..bare_message(workspace)
            };
            NewWaiting { message, track: track_of(&domain), due_at: now }
        };
        recipients.map(new).collect()
    })
}

fn changes(campaign: &Campaign, page: &[NewWaiting], progress: &CampaignProgress, revision: u32) -> Changes {
    let mut changes = Changes::default();
    changes.push(Write::Expect(Condition::Campaign(campaign.workspace_id, campaign.id, campaign.status)));
    changes.push(Write::InsertWaiting(campaign.workspace_id, campaign.id, page.to_vec()));
    let counts = CountMessages::of_all_new(page.iter().map(|new| &new.message));
    changes.extend(counts.into_iter().map(|count| Write::CountMessages(Box::new(count))));
    changes.push(Write::put(Box::new(progress.clone()), Expect::Revision(revision)));
    changes
}

/// The loop of prepared statements that the writer is compared with.
struct Loop(Connection);

impl Loop {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("a database");
        for (name, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            connection.pragma_update(None, name, value).expect("a pragma");
        }
        connection.pragma_update(None, "cache_size", -16 * 1024).expect("a pragma");
        connection.pragma_update_and_check(None, "secure_delete", "fast", |_| Ok(())).expect("a pragma");
        connection.set_prepared_statement_cache_capacity(64);
        Self(connection)
    }

    fn page(&self, page: &[NewWaiting], progress: &CampaignProgress) {
        let connection = &self.0;
        connection.execute_batch("BEGIN IMMEDIATE").expect("begins");
        let mut message = connection
            .prepare_cached(
                "INSERT INTO messages (workspace, id, revision, status, channel, created_at, updated_at, content, recipient,
                     sender, contact, campaign, automation, template, tags, metadata, variant, hold_reason, hold_until,
                     hold_since, seen, links, skip, sent_at, delivered_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                     ?22, ?23, ?24, ?25)",
            )
            .expect("a statement");
        let mut waiting = connection
            .prepare_cached("INSERT INTO campaign_waiting (campaign, track, due_at, message) VALUES (1, ?1, ?2, ?3)")
            .expect("a statement");
        for new in page {
            let NewWaiting { message: one, track, due_at } = new;
            let none = None::<i64>;
            message
                .execute(params![
                    one.workspace_id.to_bytes(),
                    one.id.to_bytes(),
                    one.revision,
                    0,
                    0,
                    one.created_at.as_millis(),
                    one.updated_at.as_millis(),
                    none,
                    one.to,
                    one.from_email,
                    one.contact_id.map(Id::to_bytes),
                    one.campaign_id.map(Id::to_bytes),
                    one.automation_id.map(Id::to_bytes),
                    one.template_id.map(Id::to_bytes),
                    none,
                    none,
                    one.variant,
                    none,
                    none,
                    none,
                    one.milestones.seen.bits(),
                    one.milestones.links.cast_signed(),
                    none,
                    none,
                    none,
                ])
                .expect("a row");
            waiting.execute(params![track, due_at.as_millis(), one.id.to_bytes()]).expect("a row");
        }
        let doc = serde_json::to_string(progress).expect("a document");
        connection
            .prepare_cached("UPDATE campaign_progress SET revision = revision + 1, doc = ?1 WHERE campaign = 1")
            .expect("a statement")
            .execute([doc])
            .expect("a row");
        connection
            .prepare_cached("UPDATE campaign_counts SET waiting = waiting + ?1 WHERE campaign = 1 AND variant = 0")
            .expect("a statement")
            .execute([i64::try_from(page.len()).expect("a small page")])
            .expect("a row");
        connection.execute_batch("COMMIT").expect("commits");
    }
}
