//! The page for Prometheus compared with its descriptions: in the contract, in the documentation, and in the dashboard
//! and alert rules that are shipped.

use std::collections::BTreeSet;

use messaging_http::{ApiService, ServiceOptions};

use crate::harness::TestServer;

const DOCUMENTATION: &str = include_str!("../../../docs/operations.md");
const DASHBOARD: &str = include_str!("../../../docs/operations/grafana.json");
const RULES: &str = include_str!("../../../docs/operations/alerts.yml");

/// Families that contract section 22 promises, with their labels.
const PROMISED: [(&str, &[&str]); 27] = [
    ("messaging_messages_accepted_total", &["channel"]),
    ("messaging_messages_sent_total", &["channel"]),
    ("messaging_messages_delivered_total", &["channel"]),
    ("messaging_messages_deferred_total", &["channel"]),
    ("messaging_messages_bounced_total", &["channel", "class"]),
    ("messaging_messages_complained_total", &["channel"]),
    ("messaging_queue_messages", &[]),
    ("messaging_queue_oldest_seconds", &[]),
    ("messaging_lanes_paused", &[]),
    ("messaging_attempts_ambiguous_total", &[]),
    ("messaging_tls_policy_failures_total", &[]),
    ("messaging_webhook_deliveries_total", &[]),
    ("messaging_webhook_lag_seconds", &[]),
    ("messaging_inbound_total", &[]),
    ("messaging_imports_total", &[]),
    ("messaging_segment_lag_seconds", &[]),
    ("messaging_commit_items", &[]),
    ("messaging_commit_wait_seconds", &[]),
    ("messaging_commit_sync_seconds", &[]),
    ("messaging_wal_bytes", &[]),
    ("messaging_database_bytes", &[]),
    ("messaging_disk_free_bytes", &[]),
    ("messaging_budget_waits_total", &[]),
    ("messaging_request_log_dropped_total", &[]),
    ("messaging_http_requests_total", &["method", "route", "status"]),
    ("messaging_http_request_duration_seconds", &["method", "route"]),
    ("messaging_build_info", &["version"]),
];

/// The families of a page, each with its declared type.
fn families(page: &str) -> Vec<(&str, &str)> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

/// The names of families that a text mentions.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("messaging_") && word.len() > "messaging_".len()).map(str::to_owned).collect()
}

/// The family of a series: histograms have three.
fn family_of<'a>(series: &'a str, families: &[(&str, &str)]) -> &'a str {
    let is_histogram = |name: &str| families.contains(&(name, "histogram"));
    let suffixes = ["_bucket", "_sum", "_count"];
    suffixes.iter().find_map(|suffix| series.strip_suffix(suffix).filter(|name| is_histogram(name))).unwrap_or(series)
}

async fn untouched_page() -> String {
    let server = TestServer::start().await;
    ApiService::new(server.app.clone(), ServiceOptions::default()).metrics().await
}

#[tokio::test]
async fn every_family_of_the_contract_is_there_from_the_start_at_zero_with_its_labels() {
    let page = untouched_page().await;
    let families = families(&page);
    for (name, labels) in PROMISED {
        assert!(families.iter().any(|(found, _)| *found == name), "{name}\n{page}");
        let of_family = |line: &&str| !line.starts_with('#') && family_of(series(line), &families) == name;
        let samples: Vec<_> = page.lines().filter(of_family).collect();
        assert!(!samples.is_empty(), "{name} has no value\n{page}");
        for sample in samples {
            let found = sample.split_once('{').map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
            let found: BTreeSet<_> = found.split(',').filter_map(|label| Some(label.split_once('=')?.0)).collect();
            let wanted: BTreeSet<_> = labels.iter().copied().chain(found.contains("le").then_some("le")).collect();
            assert_eq!(found, wanted, "{sample}");
            let value = sample.rsplit_once(' ').unwrap().1;
            assert!(value.parse::<f64>().is_ok(), "{sample}");
            assert!(!name.starts_with("messaging_messages") || value == "0", "{sample}");
        }
    }
    let channels = page.lines().filter(|line| line.starts_with("messaging_messages_bounced_total{")).count();
    assert_eq!(channels, 6 * 8, "every class of every channel");
}

fn series(line: &str) -> &str {
    line.split(['{', ' ']).next().unwrap_or_default()
}

#[tokio::test]
async fn the_documentation_has_every_family_and_dashboard_and_rules_use_none_that_is_not_there() {
    let page = untouched_page().await;
    let families = families(&page);
    let documented = mentioned(DOCUMENTATION);
    let found: BTreeSet<_> = families.iter().map(|(name, _)| (*name).to_owned()).collect();
    for name in found.iter().filter(|name| name.starts_with("messaging_")) {
        assert!(documented.contains(name), "{name} is not documented");
    }
    for (file, text) in [("operations.md", DOCUMENTATION), ("grafana.json", DASHBOARD), ("alerts.yml", RULES)] {
        for name in mentioned(text) {
            let family = family_of(&name, &families);
            // A family without a series is not shown; `messaging_http` is the name of a crate in a log filter.
            let is_unseen = ["messaging_check_ok", "messaging_path_state"].contains(&family);
            assert!(found.contains(family) || is_unseen || name == "messaging_http", "{file} names {name}");
        }
    }
    for (name, kind) in &families {
        assert_eq!(*kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        assert_eq!(families.iter().filter(|(other, _)| other == name).count(), 1, "{name} is declared once");
    }
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.len() > 10));
}
