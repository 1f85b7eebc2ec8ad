//! The columns of JSON in a file of `contact export`, which an import on the server does not read: attributes that are
//! no custom fields, and tags that contain separators.
//!
//! The command sends them after the import has ended, with bulk requests that name the contacts by the identifiers in
//! their rows. Rows that the import refused are left out.

use std::collections::HashSet;
use std::path::Path;

use csv::ByteRecord;
use messaging_core::domain::audience::import::columns::Header;
use messaging_engine::ops::Endpoint;
use messaging_engine::ops::contacts::BulkUpsertContacts;
use serde_json::{Map, Value, json};

use super::columns::AsJson;
use super::rows;
use crate::failure::{Failure, accepted};
use crate::listing::patiently;
use crate::output;
use crate::request::Request;
use crate::target::Target;

/// Most contacts in one bulk request.
const MAX_CONTACTS: usize = 500;
/// Bytes of contacts after which the next bulk request begins.
const MAX_BYTES: usize = 1 << 20;

/// Most rows with an error that are printed one by one.
const NAMED: u64 = 10;

/// The rows of an imported file, with what is needed to send their columns of JSON.
pub(super) struct Rows<'a> {
    pub(super) file: &'a Path,
    pub(super) header: &'a Header,
    pub(super) places: AsJson,
    /// Body of the request that announced the import.
    pub(super) announcement: &'a Value,
    /// Numbers of the rows that the import refused.
    pub(super) refused: HashSet<u64>,
}

impl Rows<'_> {
    /// Sends attributes and tags of all rows, and prints the first errors. Returns the number of rows whose attributes
    /// or tags were not applied.
    pub(super) async fn apply(&self, target: &Target) -> Result<u64, Failure> {
        let mut parts: Vec<Vec<(u64, Value)>> = vec![Vec::new()];
        let (mut bytes, mut faulty) = (0, 0);
        let mut not_taken = |row: u64, why: &str| {
            faulty += 1;
            if faulty <= NAMED {
                output::note(&format!("row {row}, attributes and tags: {}", output::plain_text(why)));
            }
        };
        rows::each(self.file, self.header, |number, record| {
            if self.refused.contains(&number) {
                return true;
            }
            match self.contact(record) {
                Ok(None) => {}
                Ok(Some(contact)) => {
                    let size = contact.to_string().len();
                    bytes += size;
                    if bytes > MAX_BYTES || parts.last().is_some_and(|part| part.len() >= MAX_CONTACTS) {
                        parts.push(Vec::new());
                        bytes = size;
                    }
                    if let Some(part) = parts.last_mut() {
                        part.push((number, contact));
                    }
                }
                Err(why) => not_taken(number, why),
            }
            true
        })?;
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (numbers, contacts): (Vec<_>, Vec<_>) = part.into_iter().unzip();
            let request = Request::new(Endpoint::row::<BulkUpsertContacts>());
            let body = json!({"contacts": contacts}).to_string().into();
            let answer = accepted(patiently(target, &Request { body, ..request }).await?)?;
            let results = answer["results"].as_array().into_iter().flatten().zip(numbers);
            for (result, number) in results.filter(|(result, _)| result["status"] == "error") {
                not_taken(number, result["error"]["message"].as_str().unwrap_or_default());
            }
        }
        Ok(faulty)
    }

    /// The contact that is sent for a row; `None` if its columns of JSON are empty. Fails if the JSON is malformed, or
    /// if the row has none of the identifiers that `--dedup-keys` names.
    fn contact(&self, record: &ByteRecord) -> Result<Option<Value>, &'static str> {
        let cell = |index: usize| String::from_utf8_lossy(record.get(index).unwrap_or_default()).trim().to_owned();
        let (attributes, tags) = (cell(self.places.attributes), self.places.tags.map(cell).unwrap_or_default());
        let mut contact = Map::new();
        for (member, text) in [("attributes", attributes), ("tags", tags)] {
            match serde_json::from_str::<Value>(&text) {
                _ if text.is_empty() => {}
                Ok(value) if value.is_object() || member == "tags" => {
                    contact.insert(member.to_owned(), value);
                }
                _ => return Err("this is not the JSON that an export writes"),
            }
        }
        if contact.is_empty() {
            return Ok(None);
        }
        let nothing_said = contact.len();
        for column in &self.header.columns {
            let (name, value) = (String::from(column.target.clone()), cell(column.index));
            let is_identifier = column.target.is_identifier();
            if is_identifier && self.is_looked_for_by(&name) && !value.is_empty() && !contact.contains_key(&name) {
                contact.insert(name, value.into());
            }
        }
        let is_somebody = contact.len() > nothing_said;
        if is_somebody {
            Ok(Some(contact.into()))
        } else {
            Err("nothing that contacts are looked for by is in the row")
        }
    }

    /// True if `--dedup-keys` names an identifier, or was not given.
    fn is_looked_for_by(&self, name: &str) -> bool {
        self.announcement["dedup_keys"].as_array().is_none_or(|keys| keys.iter().any(|key| key == name))
    }
}
