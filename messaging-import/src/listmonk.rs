//! Imports exports of listmonk: the CSV of its subscribers, and answers of its API that were saved as files.

use serde_json::{Value, json};

use super::directory::Entry;
use super::language::{Known, go};
use super::person;
use super::plan::{ImportPlan, ImportRecord, ReadOptions, Reader, Source, Template};
use super::row::Row;
use super::template_file;
use crate::error::Error;

/// Name patterns of the files that this importer reads.
pub(crate) const LOOKED_FOR: &str = "subscribers*.csv, lists/NAME.csv, subscribers*.json, lists*.json, bounces*.json, \
                                     templates*.json";

const UNCONFIRMED: &str = "memberships that were never confirmed are left out";
const SOFT: &str = "soft bounces are left out";

/// Returns the plan for the files of a directory.
pub(crate) fn plan(entries: &[Entry], options: &ReadOptions) -> Result<ImportPlan, Error> {
    let mut plan = ImportPlan::default();
    let csv = Reader::Csv { needs: &["email"], read: subscriber_of_row };
    for entry in entries {
        let file = entry.file();
        let begins = |start: &str| file.starts_with(start) && entry.is(".json");
        if entry.is(".csv") && (entry.list().is_some() || file.starts_with("subscribers")) {
            plan.sources.push(Source::new(entry, "subscribers", csv).of_list(entry.list()));
        } else if begins("subscribers") {
            plan.sources.push(Source::new(entry, "subscribers", Reader::Json { read: subscriber }));
        } else if begins("lists") {
            plan.sources.push(Source::new(entry, "lists", Reader::Json { read: list }));
        } else if begins("bounces") {
            plan.sources.push(Source::new(entry, "bounces", Reader::Json { read: bounce }));
        } else if begins("template") || (entry.folder() == "templates" && entry.is(".json")) {
            let known = Known { given: &options.texts, attributes: None };
            for document in template_file::documents(entry)? {
                plan.templates.push(template(entry, &document, known));
            }
        } else {
            plan.leave(entry, "its name says nothing");
        }
    }
    Ok(plan)
}

/// Returns the consent and the reason for a suppression that a status means. A disabled subscriber has no consent, but
/// is not suppressed.
fn standing(status: &str) -> (Option<bool>, Option<&'static str>) {
    match status {
        "enabled" => (Some(true), None),
        "blocklisted" | "blacklisted" => (Some(false), Some("unsubscribe")),
        "disabled" => (Some(false), None),
        _ => (None, None),
    }
}

fn subscriber_of_row(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    let attributes = Some(row.get("attributes")).filter(|text| !text.is_empty()).map(serde_json::from_str::<Value>);
    let Ok(attributes) = attributes.transpose() else {
        found.push(ImportRecord::refused("syntax", "the attributes are not JSON"));
        return;
    };
    let subscriber = json!({"uuid": row.get("uuid"), "email": row.get("email"), "name": row.get("name"),
        "attribs": attributes, "status": row.get("status")});
    add_subscriber(&subscriber, source.list.iter().cloned().collect(), found);
}

fn subscriber(subscriber: &Value, _: &Source, found: &mut Vec<ImportRecord>) {
    let mut lists = Vec::new();
    for list in subscriber["lists"].as_array().into_iter().flatten() {
        let Some(name) = list["name"].as_str() else { continue };
        match list["subscription_status"].as_str() {
            // On a list with single opt-in no subscriber ever confirms.
            Some("unconfirmed") if list["optin"] != "single" => found.push(ImportRecord::Left(UNCONFIRMED)),
            Some("unsubscribed") => {}
            _ => lists.push(name.to_owned()),
        }
    }
    add_subscriber(subscriber, lists, found);
}

fn add_subscriber(subscriber: &Value, lists: Vec<String>, found: &mut Vec<ImportRecord>) {
    let text = |member: &str| subscriber[member].as_str().unwrap_or_default().trim();
    let email = text("email");
    if email.is_empty() {
        found.push(ImportRecord::no_email());
        return;
    }
    let (consent, reason) = standing(text("status"));
    found.extend(reason.map(|reason| ImportRecord::suppressed(email, reason)));
    let mut attributes = subscriber["attribs"].as_object().map(person::attributes_of).unwrap_or_default();
    person::add_names(&mut attributes, text("name"));
    if !text("uuid").is_empty() {
        attributes.insert("listmonk_uuid".to_owned(), json!(text("uuid")));
    }
    found.push(ImportRecord::Contact { body: person::body(email, consent, attributes), lists });
}

fn list(list: &Value, _: &Source, found: &mut Vec<ImportRecord>) {
    found.push(match list["name"].as_str().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => ImportRecord::List(name.to_owned()),
        None => ImportRecord::refused("required", "the list has no name"),
    });
}

fn bounce(bounce: &Value, _: &Source, found: &mut Vec<ImportRecord>) {
    let email = bounce["email"].as_str().unwrap_or_default().trim();
    found.push(match bounce["type"].as_str() {
        _ if email.is_empty() => ImportRecord::no_email(),
        Some("hard") => ImportRecord::suppressed(email, "bounce"),
        Some("complaint") => ImportRecord::suppressed(email, "complaint"),
        _ => ImportRecord::Left(SOFT),
    });
}

fn template(entry: &Entry, document: &Value, known: Known<'_>) -> Template {
    let text = |member: &str| document[member].as_str().filter(|text| !text.is_empty());
    let mut template = template_file::Making::new(entry, text("name"));
    template.part("subject", text("subject"), |source| go::translate(source, known));
    template.part("html", text("body"), |source| go::translate(source, known));
    template.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{json_row, rows_of};

    #[test]
    fn subscribers_keep_what_they_said() {
        let text = "uuid,email,name,attributes,status,created_at,updated_at\r\n\
            u-1,Ann@Example.com,Ann Smith,\"{\"\"city\"\": \"\"Oslo\"\"}\",enabled,x,x\r\n\
            u-2,bob@example.com,Bob,{},blocklisted,x,x\r\n\
            ,cyd@example.com,,,disabled,x,x\r\n\
            u-4,,Nobody,{},enabled,x,x\r\n\
            u-5,eve@example.com,Eve,{broken,enabled,x,x\r\n";
        let contact = |email: &str, consent: bool, attributes: Value| ImportRecord::Contact {
            body: person::body(email, Some(consent), attributes.as_object().unwrap().clone()),
            lists: vec!["News".to_owned()],
        };
        let ann = json!({"city": "Oslo", "name": "Ann Smith", "first_name": "Ann", "last_name": "Smith", "listmonk_uuid": "u-1"});
        let bob = json!({"name": "Bob", "first_name": "Bob", "listmonk_uuid": "u-2"});
        assert_eq!(
            rows_of(text, subscriber_of_row, Some("News")),
            [
                contact("Ann@Example.com", true, ann),
                ImportRecord::suppressed("bob@example.com", "unsubscribe"),
                contact("bob@example.com", false, bob),
                contact("cyd@example.com", false, json!({})),
                ImportRecord::no_email(),
                ImportRecord::refused("syntax", "the attributes are not JSON"),
            ]
        );
    }

    #[test]
    fn members_are_those_who_did_not_leave_and_confirmed() {
        let list = |name: &str, status: &str, optin: &str| json!({"name": name, "subscription_status": status, "optin": optin});
        let lists = [
            list("A", "confirmed", "double"),
            list("B", "unconfirmed", "single"),
            list("C", "unconfirmed", "double"),
            list("D", "unsubscribed", "single"),
        ];
        let item = json!({"email": "a@example.com", "status": "enabled", "lists": lists, "attribs": {}});
        let found = json_row(&item, subscriber);
        assert_eq!(found[0], ImportRecord::Left(UNCONFIRMED));
        assert!(matches!(&found[1], ImportRecord::Contact { lists, .. } if *lists == ["A", "B"]), "{found:?}");
        for (kind, expected) in [
            ("hard", ImportRecord::suppressed("a@example.com", "bounce")),
            ("complaint", ImportRecord::suppressed("a@example.com", "complaint")),
            ("soft", ImportRecord::Left(SOFT)),
        ] {
            assert_eq!(json_row(&json!({"email": "a@example.com", "type": kind}), bounce), [expected]);
        }
    }
}
