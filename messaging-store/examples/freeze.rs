//! Measures the number of contacts a second at which the audience of a campaign is frozen, and compares it with the
//! range scans alone.
//!
//! `cargo run --release -p messaging-store --example freeze -- [DIRECTORY] [CONTACTS] [ROUNDS]`
//!
//! Two lists, an excluded list, one suppressed address in a hundred. The floor reads the same rows on a connection of
//! its own and does nothing with them. Both take turns.
#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use messaging_core::changes::{AudienceRow, Changes, Expect, Write};
use messaging_core::domain::campaign::audience::{AudienceCounts, AudienceSet, AudienceVerdict};
use messaging_core::domain::campaign::settings::Settings;
use messaging_core::domain::campaign::{Audience, Campaign, CampaignKind, CampaignPlan, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::parse::{Purpose, parse};
use messaging_core::ids::{CampaignId, ContactId, Id as _, ListId, SuppressionId, TemplateId, WorkspaceId};
use messaging_core::ports::store::audiences::AudienceQuery;
use messaging_core::ports::store::{Audiences as _, Priority, Store as _};
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;
use messaging_store::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};
use serde_json::json;

fn workspace() -> WorkspaceId {
    WorkspaceId::from_bytes([7; 16])
}

fn lists() -> [ListId; 3] {
    [1, 2, 3].map(|byte| ListId::from_bytes([byte; 16]))
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// Numbers of contacts in a piece, as a number of SQLite.
const PIECE: i64 = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let contacts: i64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let rounds: u8 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let place = tempfile::tempdir_in(directory)?;
    let path = place.path().join("messaging.db");
    SqliteStore::open(SqliteOptions::new(path.clone()))?;
    fill(&path, contacts)?;
    let store = SqliteStore::open(SqliteOptions::new(path.clone()))?;
    println!("{contacts} contacts, {} MB", std::fs::metadata(&path)?.len() >> 20);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let attribute = json!({"type": "attribute", "key": "plan", "op": "eq", "value": "pro"});
    let filter = parse(&attribute, "", Purpose::Segment, &mut Violations::new()).filter.ok_or("a filter")?;
    let both = query(Channel::Email, lists()[..2].to_vec(), Vec::new());
    let audiences = [
        ("lists", both.clone()),
        ("lists, with zones", AudienceQuery { wants_zones: true, ..both.clone() }),
        ("lists, by phone", AudienceQuery { channel: Channel::Sms, ..both }),
        ("a segment of an attribute", query(Channel::Email, Vec::new(), vec![filter])),
        ("a list, by push", query(Channel::Push, lists()[..1].to_vec(), Vec::new())),
    ];
    for (number, (name, query)) in (0..).zip(audiences) {
        let query = Arc::new(query);
        let (mut floors, mut ours, mut longest) = (Vec::new(), Vec::new(), Duration::ZERO);
        for round in 0..rounds {
            floors.push(rate(contacts, floor(&path, contacts)?));
            let campaign = CampaignId::from_bytes([number * 16 + round + 1; 16]);
            runtime.block_on(store.commit(Changes::from_iter([put(campaign)]), Priority::Foreground))?;
            let began = Instant::now();
            let counts = runtime.block_on(freeze(&store, &query, campaign, &mut longest))?;
            ours.push(rate(contacts, began.elapsed()));
            if round + 1 == rounds {
                println!("{name}: {counts:?}");
                size(&path, counts)?;
            }
        }
        let (floor, own) = (median(floors), median(ours));
        println!("  floor {floor:.2} M/s, freeze {own:.2} M/s, ratio {:.2}, longest piece {longest:.1?}", own / floor);
        let began = Instant::now();
        let preview = runtime.block_on(store.preview_audience(workspace(), &query))?;
        println!("  preview in {:.0?}: {preview:?}", began.elapsed());
    }
    Ok(())
}

fn query(channel: Channel, members_of: Vec<ListId>, filters: Vec<Filter>) -> AudienceQuery {
    AudienceQuery {
        channel,
        viber: ViberService::Business,
        lists: members_of,
        segments: Vec::new(),
        filters,
        excluded: vec![lists()[2]],
        now: NOW,
        zone: TimeZone::UTC,
        wants_zones: false,
    }
}

/// Does the work of the job: a piece, its duplicates and verdicts, a commit.
async fn freeze(
    store: &SqliteStore,
    query: &Arc<AudienceQuery>,
    campaign_id: CampaignId,
    longest: &mut Duration,
) -> Result<AudienceCounts, Box<dyn Error>> {
    let (mut counts, mut next) = (AudienceCounts::default(), None);
    loop {
        let began = Instant::now();
        let mut piece = store.audience_piece(workspace(), query, next).await?;
        let digests: Vec<u64> = piece.addresses.iter().flat_map(|(_, digests)| digests).copied().collect();
        let mut writes = Vec::new();
        if !digests.is_empty() {
            let mut taken = store.taken_addresses(workspace(), campaign_id, digests).await?.into_iter().collect();
            let claims = piece.facts.find_duplicates(&piece.addresses, &mut taken);
            writes.push(Write::TakeAddresses(workspace(), campaign_id, claims.taken));
        }
        let judged = piece.facts.judge();
        counts += judged.counts();
        for verdict in AudienceVerdict::ALL {
            let set = match verdict {
                AudienceVerdict::Recipient => AudienceSet::Recipients(NOW),
                left => AudienceSet::Left(left),
            };
            let bits = judged.set(verdict).clone();
            let row = AudienceRow { workspace_id: workspace(), campaign_id, piece: piece.piece, set, bits };
            writes.push(Write::PutAudience(Box::new(row)));
        }
        store.commit(writes.into_iter().collect(), Priority::Background).await?;
        *longest = began.elapsed().max(*longest);
        match piece.next {
            Some(_) => next = piece.next,
            None => break,
        }
    }
    store.commit(Changes::from_iter([Write::ForgetAddresses(workspace(), campaign_id)]), Priority::Background).await?;
    Ok(counts)
}

/// The same range scans, a piece at a time, and nothing else.
fn floor(path: &Path, contacts: i64) -> rusqlite::Result<Duration> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "cache_size", -4 * 1024)?;
    let mut members =
        database.prepare("SELECT contact FROM list_members WHERE list = ?1 AND contact BETWEEN ?2 AND ?3")?;
    let mut rows = database.prepare("SELECT n, marketing_email, email FROM contacts WHERE n BETWEEN ?1 AND ?2")?;
    let mut suppressed = database.prepare("SELECT address FROM suppressions WHERE workspace = ?1 AND channel = 0")?;
    let (first, mut read) = (1 << 40, 0);
    let began = Instant::now();
    for start in (first..=first + contacts).step_by(1 << 16) {
        for list in 1..=3 {
            let mut found = members.query([list, start, start + PIECE - 1])?;
            while let Some(row) = found.next()? {
                read += row.get::<_, i64>(0)? & 1;
            }
        }
        let mut found = rows.query([start, start + PIECE - 1])?;
        while let Some(row) = found.next()? {
            read += row.get::<_, i64>(0)? & 1;
            read += row.get::<_, Option<i64>>(1)?.unwrap_or(0);
            read += i64::from(row.get_ref(2)?.as_str_or_null()?.is_some());
        }
        let mut found = suppressed.query([workspace().to_bytes()])?;
        while let Some(row) = found.next()? {
            read += i64::from(row.get_ref(0)?.as_str_or_null()?.is_some());
        }
    }
    assert!(read > 0, "there was something to read");
    Ok(began.elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(contacts: i64, took: Duration) -> f64 {
    contacts as f64 / took.as_secs_f64() / 1e6
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Prints the number of bytes of the sets of the newest campaign.
fn size(path: &Path, counts: AudienceCounts) -> rusqlite::Result<()> {
    let database = Connection::open(path)?;
    let (rows, bytes): (i64, i64) = database.query_row(
        "SELECT count(*), sum(length(places)) FROM campaign_audience WHERE campaign = (SELECT max(n) FROM campaigns)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let before: i64 = database.query_row("SELECT freelist_count FROM pragma_freelist_count", [], |row| row.get(0))?;
    database.execute_batch("DELETE FROM campaign_audience WHERE campaign = (SELECT max(n) FROM campaigns)")?;
    let after: i64 = database.query_row("SELECT freelist_count FROM pragma_freelist_count", [], |row| row.get(0))?;
    let per_ten_million = (after - before) * 4096 * 10_000_000 / i64::try_from(counts.recipients.max(1)).unwrap_or(1);
    println!(
        "  {rows} rows, {bytes} B in sets, {} B in pages; {per_ten_million} B for 10 M recipients",
        (after - before) * 4096
    );
    Ok(())
}

/// A campaign with arbitrary content.
fn put(id: CampaignId) -> Write {
    let plan = CampaignPlan {
        name: "Freeze".to_owned(),
        channel: Channel::Email,
        kind: CampaignKind::Regular,
        template_id: TemplateId::from_bytes([1; 16]),
        subject_override: None,
        from_name: None,
        from_email: None,
        reply_to: None,
        audience: Audience::default(),
        variants: Vec::new(),
        settings: Settings::default(),
        archived: true,
    };
    let campaign = Campaign {
        id,
        workspace_id: workspace(),
        plan,
        status: CampaignStatus::Draft,
        phase: None,
        scheduled_at: None,
        wall_time: None,
        schedule_called_at: None,
        started_at: None,
        completed_at: None,
        recipients: None,
        test_sent_at: None,
        winner: None,
        scores: Vec::new(),
        pause_reason: None,
        failure_reason: None,
        sending_domains: Vec::new(),
        created_at: NOW,
        updated_at: NOW,
    };
    Write::put(Box::new(campaign), Expect::Absent)
}

fn fill(path: &Path, contacts: i64) -> rusqlite::Result<()> {
    const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Europe/Riga"];
    let mut database = Connection::open(path)?;
    database.pragma_update(None, "synchronous", "off")?;
    database.pragma_update(None, "cache_size", -256 * 1024)?;
    let transaction = database.transaction()?;
    transaction.execute(
        "INSERT INTO workspace_numbers (number, workspace, newest, contacts) VALUES (1, ?1, ?2, ?2)",
        params![workspace().to_bytes(), contacts],
    )?;
    for (n, list) in (1_i64..).zip(lists()) {
        transaction.execute(
            "INSERT INTO lists (n, workspace_number, id, revision, removed, contacts, created_at, updated_at, name)
             VALUES (?1, 1, ?2, 1, 0, 0, 0, 0, 'list')",
            params![n, list.to_bytes()],
        )?;
    }
    {
        let mut contact = transaction.prepare(
            "INSERT INTO contacts (n, workspace_number, id, revision, created_at, updated_at, marketing_email, sms,
                 external_id, email, phone, locale, timezone, tags, attributes)
             VALUES (?1, 1, ?2, 1, 0, 0, ?3, ?3, ?4, ?5, ?6, 'en', ?7, '[\"newsletter\"]', ?8)",
        )?;
        let mut member = transaction.prepare("INSERT INTO list_members (list, contact) VALUES (?1, ?2)")?;
        let mut suppression = transaction.prepare(
            "INSERT INTO suppressions (workspace, channel, digest, address, id, revision, doc)
             VALUES (?1, 0, ?2, ?3, ?4, 1, ?5)",
        )?;
        for n in 0..contacts {
            let number = (1 << 40) | (n + 1);
            let email = format!("user-{n:012}@example.test");
            let attributes = format!(
                r#"{{"plan":"{}","company":"Acme {n}","visits":{},"push_token":"token-{:012}"}}"#,
                if n % 3 == 0 { "pro" } else { "free" },
                n % 97,
                if n % 50 == 0 { n / 2 } else { n },
            );
            contact.execute(params![
                number,
                ContactId::from_bytes(u128::from(n.unsigned_abs()).to_be_bytes()).to_bytes(),
                n % 20 != 0,
                format!("customer-{n}"),
                email,
                format!("+1555{n:010}"),
                ZONES[usize::try_from(n % 4).unwrap_or(0)],
                attributes,
            ])?;
            for (list, is_member) in [(1, n % 10 != 9), (2, n % 10 >= 5), (3, n % 50 == 7)] {
                if is_member {
                    member.execute([list, number])?;
                }
            }
            if n % 100 == 3 {
                let id = SuppressionId::from_bytes(u128::from(n.unsigned_abs()).to_be_bytes());
                let doc = json!({"id": id, "workspace_id": workspace(), "channel": "email", "address": email,
                    "reason": "bounce", "detail": "550 5.1.1 user unknown", "source": "system", "created_at": NOW});
                let digest = Digest::of(&email);
                let (workspace, digest) = (workspace().to_bytes(), digest.as_bytes());
                suppression.execute(params![workspace, digest, email, id.to_bytes(), doc.to_string()])?;
            }
        }
    }
    transaction.commit()?;
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
}
