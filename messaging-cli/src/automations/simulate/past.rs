//! `--past`: simulates an automation with the past events of a workspace's contacts.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ArgMatches;
use messaging_core::time::Timestamp;
use messaging_http::standalone::rehearsal::{DryRunFiles, MAX_CONTACTS, PastContact, PastReport, replay};
use serde_json::{Map, Value};

use super::refusal::{refused, source_of};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::resources::{self, Resources};
use crate::target::Target;

/// Number of times in a row that a server which asks for patience is asked again.
const MAX_WAITS: usize = 30;
/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Segments that are looked up, at most.
const MAX_SEGMENTS: usize = 1_000;

/// A span such as `30d`, `12h` or `2w`.
pub(super) fn read_span(text: &str) -> Result<Duration, String> {
    let wrong = || "not a span such as 30d, 12h or 2w".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return Err(wrong()),
    };
    let span = number.checked_mul(hours).filter(|hours| (1..=5 * 365 * 24).contains(hours));
    span.map(Duration::from_hours).ok_or_else(|| "is at least an hour and at most five years".to_owned())
}

/// Replays the past and prints the result.
pub(super) async fn run(
    matches: &ArgMatches,
    mut files: DryRunFiles,
    span: Duration,
    output: Output,
) -> Result<(), Failure> {
    files.at = files.until - span;
    let target = Target::choose(matches, resources::endpoint("contact", "export")?.access).await?;
    let mut api = Resources { noun: "contact", target };
    let contacts = contacts(&api, files.until).await?;
    files.segments = segments(&mut api, &files.automation).await?;
    templates(&mut api, &mut files).await?;
    let report = replay(files, contacts).await.map_err(|fault| refused(source_of(fault)))?;
    if output.is_json() {
        return output.resource(&report);
    }
    show(&report, output)
}

fn show(report: &PastReport, output: Output) -> Result<(), Failure> {
    output::note(&format!("{} contacts, {} entered", report.contacts, report.entered));
    let row = |node: &messaging_engine::ops::automations::stats::NodeStats| {
        let branches: Vec<_> = node.branches.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let mut row = Map::new();
        row.insert("node".to_owned(), node.id.clone().into());
        row.insert("entered".to_owned(), node.entered.into());
        row.insert("waiting".to_owned(), node.waiting.into());
        row.insert("branches".to_owned(), branches.join(", ").into());
        Value::Object(row)
    };
    let rows: Vec<_> = report.nodes.iter().map(row).collect();
    output.resource(&serde_json::json!({"data": rows, "next_cursor": null}))
}

/// The newest contacts that existed by then, with their events.
async fn contacts(api: &Resources, until: Timestamp) -> Result<Vec<PastContact>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("limit", "200")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = call(api, "list", None, &query).await?;
        for contact in page["data"].as_array().into_iter().flatten() {
            if found.len() == MAX_CONTACTS {
                output::note(&format!("only the newest {MAX_CONTACTS} contacts are gone through"));
                return Ok(found);
            }
            let created_at: Option<Timestamp> = contact["created_at"].as_str().and_then(|text| text.parse().ok());
            if created_at.is_some_and(|created_at| created_at > until) {
                continue;
            }
            let mut export = call(api, "export", contact["id"].as_str(), &[]).await?;
            let events = match export["events"].take() {
                Value::Array(events) => events,
                _ => Vec::new(),
            };
            found.push(PastContact { contact: export["contact"].take(), events });
        }
        cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

/// The filters of the dynamic segments that the automation leads to.
async fn segments(api: &mut Resources, automation: &Value) -> Result<Vec<(String, Value)>, Failure> {
    api.noun = "segment";
    let (mut found, mut seen): (Vec<(String, Value)>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    let mut wanted = Vec::new();
    named(automation, "seg_", &mut wanted);
    while let Some(id) = wanted.pop() {
        if seen.len() == MAX_SEGMENTS || !seen.insert(id.clone()) {
            continue;
        }
        let segment = call(api, "get", Some(&id), &[]).await?;
        if segment["kind"] == "static" {
            output::note(&format!("the static segment {id} is taken as empty"));
            continue;
        }
        named(&segment["filter"], "seg_", &mut wanted);
        found.push((id, segment["filter"].clone()));
    }
    Ok(found)
}

/// The templates that the automation names and no folder has; one that may not be read is a stub.
async fn templates(api: &mut Resources, files: &mut DryRunFiles) -> Result<(), Failure> {
    api.noun = "template";
    let mut wanted = Vec::new();
    named(&files.automation, "tpl_", &mut wanted);
    wanted.sort();
    wanted.dedup();
    for id in wanted {
        if files.templates.iter().any(|(names, _)| names.contains(&id)) {
            continue;
        }
        match call(api, "get", Some(&id), &[]).await {
            Ok(mut template) => {
                if !template["mjml"].is_null() {
                    template["html"] = Value::Null;
                }
                files.templates.push((vec![id], template));
            }
            Err(Failure::Refused(_)) => output::note(&format!("the template {id} is taken as a stub")),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Texts that begin like an id.
fn named(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with(prefix) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| named(item, prefix, found)),
        Value::Object(members) => members.values().for_each(|member| named(member, prefix, found)),
        _ => {}
    }
}

/// Calls an operation, and again after a while if the server asks for patience.
async fn call(api: &Resources, verb: &str, id: Option<&str>, query: &[(&str, &str)]) -> Result<Value, Failure> {
    for _ in 0..MAX_WAITS {
        match api.call(verb, id, query, Value::Null).await {
            Err(Failure::Refused(reply)) if reply.status.as_u16() == 429 => {
                let wait = reply.retry_after.as_deref().and_then(|text| text.parse().ok()).unwrap_or(1);
                tokio::time::sleep(Duration::from_secs(wait).min(LONGEST_WAIT)).await;
            }
            other => return other,
        }
    }
    api.call(verb, id, query, Value::Null).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_hours_days_or_weeks() {
        let hours = |text: &str| read_span(text).map(|span| span.as_secs() / 3600).ok();
        assert_eq!([hours("30d"), hours("12h"), hours("2w")], [Some(720), Some(12), Some(336)]);
        for bad in ["", "d", "30", "30m", "-1d", "0d", "2000d", "99999999999999999999d", "3ä"] {
            assert_eq!(hours(bad), None, "{bad}");
        }
    }
}
