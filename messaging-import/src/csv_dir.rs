//! Imports files in the project's own formats, for products without a reader: the columns of `contact import`, a file
//! for each list, suppressions, and templates as `template push` reads them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::audience::import::columns::{Header, Mapping};
use messaging_core::domain::audience::import::row as import_row;
use serde_json::Value;

use super::directory::Entry;
use super::plan::{ImportPlan, ImportRecord, Reader, Source, Template};
use super::refused::Why;
use super::row::{self, Row};
use super::template_file;
use crate::error::Error;
use crate::folder;

/// Name patterns of the files that this importer reads.
pub(crate) const LOOKED_FOR: &str = "contacts*.csv, lists/NAME.csv, suppressions*.csv, templates/NAME/template.toml";

/// Returns the plan for the files of a directory.
pub(crate) fn plan(directory: &Path, entries: &[Entry]) -> Result<ImportPlan, Error> {
    let mut plan = ImportPlan::default();
    let contacts = Reader::Csv { needs: &["email", "phone", "external_id"], read: contact };
    let suppressions = Reader::Csv { needs: &["address"], read: suppression };
    for entry in entries {
        let file = entry.file();
        let begins = |start: &str| entry.folder().is_empty() && file.starts_with(start) && entry.is(".csv");
        if begins("contacts") || (entry.list().is_some() && entry.is(".csv")) {
            let source = Source::new(entry, "contacts", contacts).of_list(entry.list());
            plan.sources.push(Source { columns: columns(entry)?, ..source });
        } else if begins("suppressions") {
            plan.sources.push(Source::new(entry, "suppressions", suppressions));
        } else if !entry.folder().starts_with("templates") {
            plan.leave(entry, "its name says nothing");
        }
    }
    let templates = directory.join("templates");
    if templates.is_dir() {
        for folder in folder::read_all(&templates)? {
            let name = folder.body["name"].as_str().unwrap_or_default().to_owned();
            let body = template_file::check(&folder.body).map(|()| folder.body);
            plan.templates.push(Template {
                file: format!("templates/{}", folder.name),
                name,
                body,
                notes: BTreeSet::new(),
            });
        }
    }
    Ok(plan)
}

/// Returns the columns by their meaning; `None` if none is an identifier, which is reported when the file is read.
fn columns(entry: &Entry) -> Result<Option<Arc<Header>>, Error> {
    let names = row::header(&entry.path).map_err(|error| Error::unreadable(&entry.path, error))?;
    let line: Vec<_> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    Ok(Header::read(line.join(",").as_bytes(), true, &Mapping::new()).ok().map(Arc::new))
}

fn contact(row: &Row, source: &Source, found: &mut Vec<ImportRecord>) {
    let Some(columns) = &source.columns else { return };
    let cells = row.cells.iter().map(String::as_bytes).collect();
    let violations = match import_row::read(&cells, columns, &FieldTypes::new()) {
        Ok((contact, violations)) if violations.as_slice().is_empty() => {
            let Ok(Value::Object(body)) = serde_json::to_value(contact) else { return };
            let named = row.get("lists").split([';', '|']).map(str::trim).filter(|name| !name.is_empty());
            let lists = source.list.iter().cloned().chain(named.map(ToOwned::to_owned)).collect();
            let is_identified = ["email", "phone", "external_id"].iter().any(|name| body.contains_key(*name));
            found.push(if is_identified {
                ImportRecord::Contact { body, lists }
            } else {
                ImportRecord::refused("required", "there is no email, phone or external_id")
            });
            return;
        }
        Ok((_, violations)) | Err(violations) => violations,
    };
    found.push(ImportRecord::Refused(Why::of_violations(&violations)));
}

fn suppression(row: &Row, _: &Source, found: &mut Vec<ImportRecord>) {
    let channel = match row.get("channel") {
        "" => "email",
        channel => channel,
    };
    let reason = match row.get("reason") {
        "" => "manual",
        reason => reason,
    };
    found.push(match row.get("address") {
        "" => ImportRecord::refused("required", "there is no address"),
        address => ImportRecord::Suppression {
            channel: channel.to_lowercase(),
            address: address.to_owned(),
            reason: reason.to_lowercase(),
        },
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support::rows_of;

    #[test]
    fn rows_mean_what_they_mean_to_contact_import() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("contacts.csv");
        let text = "email;external_id;tags;consent.marketing_email;attributes.city;lists\r\n\
            ann@example.com;;a|b;yes;Oslo;News|VIP\r\nnobody;;;;;\r\n;;x;;;\r\n;u-7;;maybe;;\r\n";
        std::fs::write(&path, text).unwrap();
        let plan = plan(directory.path(), &[Entry { path, name: "contacts.csv".to_owned() }]).unwrap();
        let (source, mut found) = (&plan.sources[0], Vec::new());
        row::csv_rows(&source.path, |_, row| {
            contact(&row, source, &mut found);
            true
        })
        .unwrap();
        let body = json!({"email": "ann@example.com", "tags": ["a", "b"], "consent": {"marketing_email": true},
            "attributes": {"city": "Oslo"}});
        let lists = vec!["News".to_owned(), "VIP".to_owned()];
        assert_eq!(
            found,
            [
                ImportRecord::Contact { body: body.as_object().unwrap().clone(), lists },
                ImportRecord::refused("invalid_format", "email: not an email address"),
                ImportRecord::refused("required", "there is no email, phone or external_id"),
                ImportRecord::refused("invalid_type", "consent.marketing_email: must be true, false, 1, 0, yes or no"),
            ]
        );
    }

    #[test]
    fn suppressions_are_of_email_and_manual_unless_they_say_otherwise() {
        let suppression_of = |channel: &str, address: &str, reason: &str| ImportRecord::Suppression {
            channel: channel.to_owned(),
            address: address.to_owned(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            rows_of("channel,address,reason\nSMS,+14155550123,Bounce\n,a@example.com,\n,,manual\n", suppression, None),
            [
                suppression_of("sms", "+14155550123", "bounce"),
                suppression_of("email", "a@example.com", "manual"),
                ImportRecord::refused("required", "there is no address"),
            ]
        );
    }
}
