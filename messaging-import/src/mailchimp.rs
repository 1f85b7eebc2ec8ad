//! Imports exports of Mailchimp: the CSV files of an audience, and templates as HTML.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::directory::Entry;
use super::language::{Known, merge_tags};
use super::person;
use super::plan::{ImportPlan, ImportRecord, ReadOptions, ReadRow, Reader, Source, Template};
use super::row::{self, Row};
use super::template_file::Making;
use crate::error::Error;
use crate::files;

/// Name patterns of the files that this importer reads.
pub(crate) const LOOKED_FOR: &str = "subscribed*.csv, unsubscribed*.csv, cleaned*.csv, nonsubscribed*.csv (in a folder \
                                     for each audience), templates/*.html";

/// Names of the column with the address.
const EMAIL: [&str; 3] = ["Email Address", "Email", "EMAIL"];

/// Columns that Mailchimp adds itself and that become no attributes; `TAGS` and `TIMEZONE` are read separately.
const LEFT: [&str; 22] = [
    "MEMBER_RATING",
    "LATITUDE",
    "LONGITUDE",
    "GMTOFF",
    "DSTOFF",
    "TIMEZONE",
    "CC",
    "REGION",
    "LAST_CHANGED",
    "LEID",
    "EUID",
    "TAGS",
    "EMAIL_TYPE",
    "UNSUB_TIME",
    "UNSUB_CAMPAIGN_TITLE",
    "UNSUB_CAMPAIGN_ID",
    "UNSUB_REASON",
    "UNSUB_REASON_OTHER",
    "CLEAN_TIME",
    "CLEAN_CAMPAIGN_TITLE",
    "CLEAN_CAMPAIGN_ID",
    "STATUS",
];

/// Files of an audience, in the order in which they are read: unsubscribes come after subscribers.
const KINDS: [(&str, ReadRow); 4] = [
    ("subscribed", subscribed),
    ("nonsubscribed", nonsubscribed),
    ("unsubscribed", unsubscribed),
    ("cleaned", cleaned),
];

/// Returns the plan for the files of a directory.
pub(crate) fn plan(entries: &[Entry], options: &ReadOptions) -> Result<ImportPlan, Error> {
    let mut plan = ImportPlan::default();
    let mut attributes = BTreeSet::new();
    let (mut ranked, mut pages) = (Vec::new(), Vec::new());
    for entry in entries {
        let file = entry.file().replace(['-', ' '], "");
        let kind = KINDS.iter().enumerate().find(|(_, (kind, _))| file.starts_with(kind));
        if let (Some((rank, (kind, read))), true) = (kind, entry.is(".csv")) {
            let columns = row::header(&entry.path).map_err(|error| Error::unreadable(&entry.path, error))?;
            attributes.extend(columns.iter().map(|column| person::key(column)));
            // A folder is an audience.
            let list =
                Some(entry.folder().rsplit('/').next().unwrap_or_default().to_owned()).filter(|name| !name.is_empty());
            ranked.push((rank, Source::new(entry, kind, Reader::Csv { needs: &EMAIL, read: *read }).of_list(list)));
        } else if entry.is(".html") || entry.is(".htm") {
            pages.push(entry);
        } else {
            plan.leave(entry, "its name says nothing");
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    plan.sources = ranked.into_iter().map(|(_, source)| source).collect();
    // Without subscriber files the columns are unknown.
    let attributes = Some(&attributes).filter(|_| !plan.sources.is_empty());
    let known = Known { given: &options.texts, attributes };
    for entry in pages {
        plan.templates.push(template(entry, known)?);
    }
    Ok(plan)
}

fn template(entry: &Entry, known: Known<'_>) -> Result<Template, Error> {
    let html = files::read(&entry.path)?;
    let mut template = Making::new(entry, None);
    template.part("html", Some(html.trim_start_matches('\u{feff}')), |source| merge_tags::translate(source, known));
    Ok(template.finish())
}

fn subscribed(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    add(row, source, Some(true), None, found);
}

fn nonsubscribed(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    add(row, source, None, None, found);
}

fn unsubscribed(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    add(row, source, Some(false), Some("unsubscribe"), found);
}

fn cleaned(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    add(row, source, None, Some("bounce"), found);
}

fn add(row: &Row, source: &Source, consent: Option<bool>, reason: Option<&str>, found: &mut Vec<ImportRecord>) {
    let email = row.first(&EMAIL);
    if email.is_empty() {
        found.push(ImportRecord::no_email());
        return;
    }
    found.extend(reason.map(|reason| ImportRecord::suppressed(email, reason)));
    let is_left = |column: &str| LEFT.contains(&column) || EMAIL.contains(&column);
    let kept = row.filled().filter(|(column, _)| !is_left(column));
    let attributes = person::texts(kept.map(|(column, cell)| (person::key(column), cell)));
    let mut body = person::body(email, consent, attributes);
    add_tags(&mut body, row.get("TAGS"));
    if let Some((_, name)) = messaging_core::time::zone(row.get("TIMEZONE")) {
        body.insert("timezone".to_owned(), json!(name));
    }
    // A contact that left a list is no member of it.
    let lists = if consent == Some(true) { source.list.iter().cloned().collect() } else { Vec::new() };
    found.push(ImportRecord::Contact { body, lists });
}

/// Tags are separated by commas, and in quotation marks.
fn add_tags(body: &mut Map<String, Value>, cell: &str) {
    let mut tags: Vec<String> = Vec::new();
    let (mut tag, mut is_quoted) = (String::new(), false);
    for letter in cell.chars().chain([',']) {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                let whole = std::mem::take(&mut tag).trim().to_owned();
                if !whole.is_empty() && !tags.contains(&whole) {
                    tags.push(whole);
                }
            }
            other => tag.push(other),
        }
    }
    if !tags.is_empty() {
        body.insert("tags".to_owned(), json!(tags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::rows_of;

    #[test]
    fn the_files_of_an_audience_mean_what_they_are_called() {
        let text = "\u{feff}\"Email Address\",\"First Name\",City,MEMBER_RATING,CONFIRM_IP,TIMEZONE,TAGS\r\n\
            ann@example.com,Änn,Oslo,4,192.0.2.7,Europe/Berlin,\"\"\"vip, gold\"\",\"\"new\"\",\"\r\n\
            ,Nobody,,,,,\r\n";
        let body = |consent: Option<bool>| {
            let attributes = json!({"first_name": "Änn", "city": "Oslo", "confirm_ip": "192.0.2.7"});
            let mut body = person::body("ann@example.com", consent, attributes.as_object().unwrap().clone());
            body.insert("tags".to_owned(), json!(["vip, gold", "new"]));
            body.insert("timezone".to_owned(), json!("Europe/Berlin"));
            body
        };
        let contact = |consent, lists: &[&str]| ImportRecord::Contact {
            body: body(consent),
            lists: lists.iter().map(|name| (*name).to_owned()).collect(),
        };
        let suppressed = |reason| ImportRecord::suppressed("ann@example.com", reason);
        for (read, expected) in [
            (subscribed as ReadRow, vec![contact(Some(true), &["News"])]),
            (nonsubscribed, vec![contact(None, &[])]),
            (unsubscribed, vec![suppressed("unsubscribe"), contact(Some(false), &[])]),
            (cleaned, vec![suppressed("bounce"), contact(None, &[])]),
        ] {
            let expected: Vec<_> = expected.into_iter().chain([ImportRecord::no_email()]).collect();
            assert_eq!(rows_of(text, read, Some("News")), expected);
        }
    }
}
