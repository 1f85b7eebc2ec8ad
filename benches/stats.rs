//! Statistics of a campaign with few messages and with many.
//!
//! `cargo bench -p messaging-benches --bench stats`. The floor is the same request for a campaign with ten thousand
//! messages: the answer is read from counters, so that the number of messages makes no difference. Then a recount of
//! all of them is timed.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use messaging_benches::product::Product;
use messaging_benches::{BenchOptions, report};
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::campaign::settings::Settings;
use messaging_core::domain::campaign::{Audience, Campaign, CampaignKind, CampaignPlan, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, Id as _};
use messaging_core::ports::store::Priority;
use messaging_engine::Caller;
use messaging_engine::ops::analytics::campaigns::{CampaignPath, GetCampaignStats};
use rusqlite::{Connection, params};

/// Messages of the campaign that is the floor.
const FEW: u64 = 10_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = BenchOptions::from_arguments();
    let many = if options.rounds == 1 { 20_000 } else { 1_000_000 };
    let directory = tempfile::tempdir_in(".")?;
    let path = directory.path().join("messaging.db");
    let product = Product::open(&path).await?;
    let (small, large) = (campaign(&product).await?, campaign(&product).await?);
    fill(&path, &product, small, FEW)?;
    fill(&path, &product, large, many)?;

    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    let mut slowest = Vec::new();
    for _ in 0..options.rounds {
        floors.push(rate(&ask(&product, small, options.turn).await?));
        let mut times = ask(&product, large, options.turn).await?;
        ours.push(rate(&times));
        times.sort_unstable();
        slowest.push(times[times.len() * 99 / 100]);
    }
    slowest.sort_unstable();
    report(&format!("statistics of {many} messages"), floors, ours);
    println!("99 of 100 within {:.2?}", slowest[slowest.len() / 2]);
    let began = Instant::now();
    let verified = product.app.store().verify_workspace(product.workspace).await?;
    println!("recount: {:.1?}; {} numbers, {} differ", began.elapsed(), verified.checked, verified.differences.len());
    Ok(())
}

/// Asks for statistics as long as a turn takes; returns the time of each request.
async fn ask(product: &Product, id: CampaignId, turn: Duration) -> Result<Vec<Duration>, Box<dyn Error>> {
    let caller = Caller::Operator(Some(product.workspace));
    let (mut times, end) = (Vec::new(), Instant::now() + turn);
    while times.is_empty() || Instant::now() < end {
        let began = Instant::now();
        let path = CampaignPath { workspace_id: product.workspace, id };
        let stats = product.app.run(GetCampaignStats).path(path).by(&caller).await?;
        assert!(stats.delivered > 0, "it was sent");
        times.push(began.elapsed());
    }
    Ok(times)
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(times: &[Duration]) -> f64 {
    times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64()
}

async fn campaign(product: &Product) -> Result<CampaignId, Box<dyn Error>> {
    let now = product.app.now();
    let campaign = Campaign {
        id: product.app.new_id(now),
        workspace_id: product.workspace,
        plan: CampaignPlan {
            name: "Bench".to_owned(),
            channel: Channel::Email,
            kind: CampaignKind::Regular,
            template_id: product.app.new_id(now),
            subject_override: None,
            from_name: None,
            from_email: None,
            reply_to: None,
            audience: Audience::default(),
            variants: Vec::new(),
            settings: Settings::default(),
            archived: true,
        },
        status: CampaignStatus::Sent,
        phase: None,
        scheduled_at: None,
        wall_time: None,
        schedule_called_at: None,
        started_at: Some(now),
        completed_at: None,
        recipients: None,
        test_sent_at: None,
        winner: None,
        scores: Vec::new(),
        pause_reason: None,
        failure_reason: None,
        sending_domains: Vec::new(),
        created_at: now,
        updated_at: now,
    };
    let id = campaign.id;
    let put = Write::put(Box::new(campaign), Expect::Absent);
    product.app.store().commit(Changes::from_iter([put]), Priority::Foreground).await?;
    Ok(id)
}

/// Delivered messages of a campaign, and the counters that they make, straight into the tables.
fn fill(path: &Path, product: &Product, campaign: CampaignId, messages: u64) -> Result<(), Box<dyn Error>> {
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    let (workspace, id, now) = (product.workspace.to_bytes(), campaign.to_bytes(), product.app.now().as_millis());
    let number: i64 = transaction.query_row("SELECT n FROM campaigns WHERE id = ?1", [id], |row| row.get(0))?;
    let mut insertion = transaction.prepare(
        "INSERT INTO messages (workspace, id, revision, status, channel, created_at, updated_at, recipient, campaign,
             variant, sent_at, delivered_at)
         VALUES (?1, ?2, 3, 3, 0, ?3, ?3, ?4, ?5, 0, ?3, ?3)",
    )?;
    for n in 0..messages {
        let mut message = id;
        message[8..].copy_from_slice(&(n + (number.unsigned_abs() << 48)).to_be_bytes());
        insertion.execute(params![workspace, message, now, format!("n{n}@example.org"), id])?;
    }
    drop(insertion);
    let counted = i64::try_from(messages)?;
    transaction.execute(
        "INSERT INTO campaign_counts VALUES (?1, 0, 0, 0, 0, ?2, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
        params![number, counted],
    )?;
    transaction.execute(
        "INSERT INTO campaign_activity VALUES (?1, ?3, ?2, ?2, 0, 0, 0, 0, 0, 0, 0)",
        params![number, counted, now / 900_000],
    )?;
    transaction.execute(
        "INSERT INTO activity VALUES (?1, ?3, 0, 1, ?2, ?2, 0, 0, 0, 0, 0, 0, 0)
         ON CONFLICT DO UPDATE SET sent = sent + excluded.sent, delivered = delivered + excluded.delivered",
        params![workspace, counted, now / 900_000],
    )?;
    transaction.commit()?;
    Ok(())
}
