//! Imports exports of SendGrid: contacts as CSV, suppressions as CSV or as JSON of its API, templates as JSON.

use messaging_core::domain::channel::address::is_e164;
use serde_json::{Value, json};

use super::directory::Entry;
use super::language::{Known, handlebars};
use super::person;
use super::plan::{ImportPlan, ImportRecord, ReadOptions, Reader, Source, Template};
use super::row::Row;
use super::template_file::{self, Making};
use crate::error::Error;

/// Name patterns of the files that this importer reads.
pub(crate) const LOOKED_FOR: &str = "contacts*.csv, lists/NAME.csv, *bounces*, *spam_reports*, *unsubscribes*, \
                                     *invalid_emails* (.csv or .json), templates/*.json";

const BLOCKED: &str = "blocks are left out: they were for a moment";
const MALFORMED: &str = "invalid addresses that nothing can be sent to are left out";

/// Columns of contacts that are not imported.
const LEFT: [&str; 5] = ["contact_id", "created_at", "updated_at", "anonymous_id", "segment_ids"];

/// Kinds of suppression files as CSV: part of the file's name, name of the kind, reader.
const KINDS: [(&str, &str, Reader); 5] = [
    ("spam", "spam reports", Reader::Csv { needs: &["email"], read: spam_report }),
    ("bounce", "bounces", Reader::Csv { needs: &["email"], read: bounce }),
    ("invalid", "invalid emails", Reader::Csv { needs: &["email"], read: invalid }),
    ("block", "blocks", Reader::Csv { needs: &["email"], read: block }),
    ("unsubscribe", "unsubscribes", Reader::Csv { needs: &["email"], read: unsubscribe }),
];

/// The same kinds as JSON of SendGrid's API, in the order of `KINDS`.
const JSON_KINDS: [(&str, Reader); 5] = [
    ("spam", Reader::Json { read: |item, source, found| spam_report(&row_of(item), source, found) }),
    ("bounce", Reader::Json { read: |item, source, found| bounce(&row_of(item), source, found) }),
    ("invalid", Reader::Json { read: |item, source, found| invalid(&row_of(item), source, found) }),
    ("block", Reader::Json { read: |item, source, found| block(&row_of(item), source, found) }),
    ("unsubscribe", Reader::Json { read: |item, source, found| unsubscribe(&row_of(item), source, found) }),
];

/// Returns the plan for the files of a directory.
pub(crate) fn plan(entries: &[Entry], options: &ReadOptions) -> Result<ImportPlan, Error> {
    let mut plan = ImportPlan::default();
    let mut after = Vec::new();
    for entry in entries {
        let file = entry.file();
        let kind = KINDS.iter().zip(&JSON_KINDS).find(|((word, ..), _)| file.contains(word));
        if entry.list().is_some() && entry.is(".csv") {
            let reader = Reader::Csv { needs: &["email"], read: contact };
            plan.sources.push(Source::new(entry, "contacts", reader).of_list(entry.list()));
        } else if entry.folder() == "templates" || file.starts_with("template") || file.starts_with("design") {
            if !entry.is(".json") {
                plan.leave(entry, "templates are read from the JSON of the API");
                continue;
            }
            let known = Known { given: &options.texts, attributes: None };
            for document in template_file::documents(entry)? {
                plan.templates.push(template(entry, &document, known));
            }
        } else if file.contains("group") {
            plan.leave(entry, "there are no unsubscribe groups here");
        } else if let Some(((_, kind, reader), (_, json_reader))) = kind {
            if entry.is(".csv") {
                after.push(Source::new(entry, kind, *reader));
            } else if entry.is(".json") {
                after.push(Source::new(entry, kind, *json_reader));
            } else {
                plan.leave(entry, "it is neither CSV nor JSON");
            }
        } else if entry.is(".csv") && file.contains("contact") {
            plan.sources.push(Source::new(entry, "contacts", Reader::Csv { needs: &["email"], read: contact }));
        } else {
            plan.leave(entry, "its name says nothing");
        }
    }
    // Suppressions are read after all contacts, so that an unsubscribe has the last word on consent.
    plan.sources.extend(after);
    Ok(plan)
}

/// Returns the members of an object of the API that are strings, as a row.
fn row_of(item: &Value) -> Row {
    let members = item.as_object().into_iter().flatten();
    let texts = members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let (header, cells): (Vec<_>, Vec<_>) = texts.unzip();
    Row { header: header.into(), cells }
}

fn contact(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    let email = row.get("email");
    if email.is_empty() {
        found.push(ImportRecord::no_email());
        return;
    }
    let (external_id, phone) = (row.get("external_id"), row.get("phone_number_id"));
    let is_unique_phone = is_e164(phone);
    let kept = row.filled().map(|(column, cell)| (person::key(column), cell)).filter(|(key, _)| {
        let is_member = key == "email" || key == "external_id" || (key == "phone_number_id" && is_unique_phone);
        !is_member && !LEFT.contains(&key.as_str())
    });
    // SendGrid does not export if a contact has consented, so no consent is recorded.
    let mut body = person::body(email, None, person::texts(kept));
    if !external_id.is_empty() {
        body.insert("external_id".to_owned(), json!(external_id));
    }
    if is_unique_phone {
        body.insert("phone".to_owned(), json!(phone));
    }
    found.push(ImportRecord::Contact { body, lists: source.list.iter().cloned().collect() });
}

/// Passes the address of a row to `add`; refuses a row without an address.
fn with_email(row: &Row, found: &mut Vec<ImportRecord>, add: impl FnOnce(&str, &mut Vec<ImportRecord>)) {
    match row.get("email") {
        "" => found.push(ImportRecord::no_email()),
        email => add(email, found),
    }
}

/// Suppresses an address, and records that the contact does not consent to marketing.
fn refused_marketing(email: &str, reason: &str, found: &mut Vec<ImportRecord>) {
    found.push(ImportRecord::suppressed(email, reason));
    let body = person::body(email, Some(false), serde_json::Map::new());
    found.push(ImportRecord::Contact { body, lists: Vec::new() });
}

fn unsubscribe(row: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    with_email(row, found, |email, found| refused_marketing(email, "unsubscribe", found));
}

fn spam_report(row: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    with_email(row, found, |email, found| refused_marketing(email, "complaint", found));
}

fn bounce(row: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    with_email(row, found, |email, found| found.push(ImportRecord::suppressed(email, "bounce")));
}

fn invalid(row: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    with_email(row, found, |email, found| {
        let is_address = messaging_core::domain::channel::address::EmailAddress::parse(email).is_ok();
        found.push(if is_address { ImportRecord::suppressed(email, "invalid") } else { ImportRecord::Left(MALFORMED) });
    });
}

fn block(_: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    found.push(ImportRecord::Left(BLOCKED));
}

/// Translates a template, of which the active version counts, or else the first; or a design, which has no versions.
fn template(entry: &Entry, document: &Value, known: Known<'_>) -> Template {
    let versions = document["versions"].as_array();
    let active =
        versions.and_then(|versions| versions.iter().find(|version| version["active"] == 1).or(versions.first()));
    let version = active.unwrap_or(document);
    let text = |member: &str| version[member].as_str().filter(|text| !text.trim().is_empty());
    let mut template = Making::new(entry, document["name"].as_str());
    let part = |source: &str| handlebars::translate(source, known);
    if document["generation"] == "legacy" {
        template.refuse("it is a legacy template, whose tags can be anything".to_owned());
    } else if text("html_content").is_none() && text("plain_content").is_none() {
        template.refuse("the file has no html_content; save what GET /v3/templates/ID answers".to_owned());
    }
    template.part("subject", text("subject"), part);
    template.part("html", text("html_content"), part);
    template.part("text", text("plain_content"), part);
    template.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{json_row, rows_of};

    #[test]
    fn contacts_have_their_columns_in_any_case() {
        for header in [
            "EMAIL,FIRST_NAME,CITY,PHONE_NUMBER,PHONE_NUMBER_ID,EXTERNAL_ID,CONTACT_ID,Loves cats",
            "email,first_name,city,phone_number,phone_number_id,external_id,contact_id,loves_cats",
        ] {
            let text = format!("{header}\nann@example.com,Ann,Oslo,+4722334455,+4799887766,u-1,9f,yes\n,x,,,,,,\n");
            let attributes =
                json!({"first_name": "Ann", "city": "Oslo", "phone_number": "+4722334455", "loves_cats": "yes"});
            let mut body = person::body("ann@example.com", None, attributes.as_object().unwrap().clone());
            body.insert("external_id".to_owned(), json!("u-1"));
            body.insert("phone".to_owned(), json!("+4799887766"));
            let expected = [ImportRecord::Contact { body, lists: Vec::new() }, ImportRecord::no_email()];
            assert_eq!(rows_of(&text, contact, None), expected, "{header}");
        }
    }

    #[test]
    fn suppressions_have_the_reason_of_their_file() {
        let contact = || {
            let body = person::body("a@example.com", Some(false), serde_json::Map::new());
            ImportRecord::Contact { body, lists: Vec::new() }
        };
        let suppressed = |reason| ImportRecord::suppressed("a@example.com", reason);
        for (read, expected) in [
            (unsubscribe as fn(&Row, &Source, &mut Vec<ImportRecord>), vec![suppressed("unsubscribe"), contact()]),
            (spam_report, vec![suppressed("complaint"), contact()]),
            (bounce, vec![suppressed("bounce")]),
            (invalid, vec![suppressed("invalid")]),
            (block, vec![ImportRecord::Left(BLOCKED)]),
        ] {
            assert_eq!(rows_of("status,reason,email,created\n5.1.1,x,a@example.com,1\n", read, None), expected);
        }
        assert_eq!(rows_of("email\nnobody\n", invalid, None), [ImportRecord::Left(MALFORMED)]);
        let item = json!({"created": 1, "email": "a@example.com", "reason": "550"});
        assert_eq!(json_row(&item, |item, source, found| bounce(&row_of(item), source, found)), [suppressed("bounce")]);
    }
}
