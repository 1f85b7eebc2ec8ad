//! Reads the files of a plan: once to count their records ([`Survey`]), and again to import them ([`portions`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::suppression::input::SuppressionInput;
use messaging_core::domain::channel::address;
use messaging_core::error::DomainError;
use messaging_core::input;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::plan::{ImportPlan, ImportRecord, Reader, Source};
use super::refused::{Refused, Why};
use super::row::{self, Unreadable};
use crate::error::Error;

/// Most contacts in one bulk request (contract section 20).
const MAX_ITEMS: usize = 1000;

/// Bytes of contacts after which the next bulk request begins; a server accepts 10 MiB.
const MAX_BYTES: usize = 4 << 20;

/// Portions that are read ahead of the requests.
const AHEAD: usize = 2;

/// Most lists that an export may name.
const MAX_LISTS: usize = 1_000;

/// Calls `visit` with the number and the records of each row of a file, until it answers `false`.
fn rows(source: &Source, visit: &mut dyn FnMut(u64, Vec<ImportRecord>) -> bool) -> Result<(), Unreadable> {
    match source.reader {
        Reader::Csv { needs, read } => {
            let has = |header: &[String]| {
                needs.iter().any(|name| header.iter().any(|column| column.eq_ignore_ascii_case(name)))
            };
            let header = row::header(&source.path)?;
            if !has(&header) {
                return Err(Unreadable::NoColumn(needs.join(" or "), header.join(", ")));
            }
            row::csv_rows(&source.path, |number, row| {
                let mut found = Vec::new();
                if row.is_too_wide() {
                    let why = "has more cells than the header; quote cells that hold the delimiter";
                    found.push(ImportRecord::refused("syntax", why));
                } else {
                    read(&row, source, &mut found);
                }
                visit(number, found)
            })?;
            Ok(())
        }
        Reader::Json { read } => row::json_items(&source.path, |number, item| {
            let mut found = Vec::new();
            read(&item, source, &mut found);
            visit(number, found)
        }),
    }
}

/// Counts of the records in one file.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Rows, without the header.
    pub rows: u64,
    /// Contacts in the rows.
    pub contacts: u64,
    /// Addresses in the rows that must not be sent to.
    pub suppressions: u64,
    /// Rows that are malformed or empty; in a dry run also those that the API would refuse.
    pub refused: u64,
    /// Number of records that have no counterpart here, by a description such as the report prints it.
    pub left: BTreeMap<&'static str, u64>,
}

/// Counts of the records in all files of a plan.
#[derive(Debug, Default)]
pub struct Survey {
    /// Counts of each file, in the order of the plan.
    pub files: Vec<Counts>,
    /// Names of the lists that the files mention.
    pub lists: BTreeSet<String>,
    /// Contacts whose email address an earlier contact has; counted in a dry run alone.
    pub repeated: u64,
    /// Digests of email addresses that unsubscribed or complained somewhere in the export.
    unwilling: HashSet<u64>,
}

impl Survey {
    /// Reads all files. With `judged`, as in a dry run, contacts and suppressions are checked by the rules of the API,
    /// and rows that break them are added to it. `seen` is called with the number of rows read since its last call.
    /// Fails if a file cannot be read, or if the export names more than 1000 lists.
    pub fn of(plan: &ImportPlan, judged: Option<&mut Refused>, seen: impl Fn(u64)) -> Result<Self, Error> {
        let (mut survey, mut judged) = (Self::default(), judged);
        let mut addresses = HashSet::new();
        for source in &plan.sources {
            let mut counts = Counts::default();
            let mut failure = None;
            let read = rows(source, &mut |number, found| {
                counts.rows += 1;
                seen(1);
                for found in found {
                    if let Err(error) = survey.count(source, number, found, &mut counts, &mut addresses, &mut judged) {
                        failure = Some(error);
                        return false;
                    }
                }
                true
            });
            read.map_err(|error| Error::unreadable(&source.path, error))?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            survey.lists.extend(source.list.clone());
            survey.files.push(counts);
            if survey.lists.len() > MAX_LISTS {
                return Err(Error::too_many("the export", MAX_LISTS, "lists"));
            }
        }
        Ok(survey)
    }

    /// Counts one record of a row.
    fn count(
        &mut self,
        source: &Source,
        number: u64,
        found: ImportRecord,
        counts: &mut Counts,
        addresses: &mut HashSet<u64>,
        judged: &mut Option<&mut Refused>,
    ) -> Result<(), Error> {
        let is_judging = judged.is_some();
        let mut refuse = |counts: &mut Counts, why: &Why| {
            counts.refused += 1;
            judged.as_mut().map_or(Ok(()), |refused| refused.add(&source.name, number, why))
        };
        match found {
            ImportRecord::Refused(why) => refuse(counts, &why)?,
            ImportRecord::Left(words) => *counts.left.entry(words).or_default() += 1,
            ImportRecord::List(name) => {
                self.lists.insert(name);
            }
            ImportRecord::Suppression { channel, address, reason } => {
                if channel == "email" && ["unsubscribe", "complaint"].contains(&reason.as_str()) {
                    self.unwilling.insert(digest(&address));
                }
                counts.suppressions += 1;
                if is_judging && let Some(why) = fault_of::<SuppressionInput>(&suppression(&channel, &address, &reason))
                {
                    counts.suppressions -= 1;
                    refuse(counts, &why)?;
                }
            }
            ImportRecord::Contact { body, lists } => {
                self.lists.extend(lists);
                if is_judging {
                    let body = Value::Object(body);
                    if let Some(why) = fault_of::<ContactInput>(&body) {
                        return refuse(counts, &why);
                    }
                    if body["email"].as_str().is_some_and(|email| !addresses.insert(digest(email))) {
                        self.repeated += 1;
                    }
                }
                counts.contacts += 1;
            }
        }
        Ok(())
    }

    /// Sets `consent.marketing_email` of a contact to false if its address unsubscribed or complained elsewhere in the
    /// export.
    fn respect(&self, body: &mut Map<String, Value>) {
        let is_unwilling = |email: &str| self.unwilling.contains(&digest(email));
        if body.get("email").and_then(Value::as_str).is_some_and(is_unwilling)
            && let Some(consent) = body.get_mut("consent").filter(|consent| consent["marketing_email"] == true)
        {
            consent["marketing_email"] = json!(false);
        }
    }
}

/// Hash of a normalized email address, kept in memory in place of the address.
fn digest(email: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    address::normalize_email(email).hash(&mut hasher);
    hasher.finish()
}

/// The request body that creates a suppression.
pub(crate) fn suppression(channel: &str, address: &str, reason: &str) -> Value {
    json!({"channel": channel, "address": address, "reason": reason})
}

/// The reason for which the API would refuse a body; `None` if it would accept it.
fn fault_of<T: input::Input>(body: &Value) -> Option<Why> {
    match input::body::<T>(body.to_string().as_bytes()) {
        Ok(_) => None,
        Err(DomainError::Invalid(violations)) => Some(Why::of_violations(&violations)),
        Err(error) => Some(Why { code: error.code().to_owned(), message: error.to_string() }),
    }
}

/// Kind of records that one pass over the files yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Addresses that must not be sent to.
    Suppressions,
    /// Contacts, and rows that are malformed or empty.
    Contacts,
}

/// A record with its place in the files.
#[derive(Debug)]
pub(crate) struct Item {
    /// Index of the file in the plan.
    pub(crate) source: usize,
    /// Number of the row in the file.
    pub(crate) row: u64,
    /// The record: a contact, a suppression, or a refused row.
    pub(crate) found: ImportRecord,
}

/// Reads the files in a thread of its own and sends portions, each for one bulk request, over a channel with room for
/// [`AHEAD`] of them, so that memory does not grow with the files. The task fails if a file cannot be read.
pub(crate) fn portions(
    plan: Arc<ImportPlan>,
    survey: Arc<Survey>,
    pass: Pass,
) -> (mpsc::Receiver<Vec<Item>>, JoinHandle<Result<(), Error>>) {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        let (mut portion, mut bytes) = (Vec::new(), 0);
        for (source, file) in plan.sources.iter().enumerate() {
            let read = rows(file, &mut |row, found| {
                for mut found in found {
                    match (&mut found, pass) {
                        (ImportRecord::Suppression { .. }, Pass::Suppressions)
                        | (ImportRecord::Refused(_), Pass::Contacts) => {}
                        (ImportRecord::Contact { body, .. }, Pass::Contacts) => {
                            survey.respect(body);
                            let size = serde_json::to_vec(body).map_or(0, |json| json.len());
                            if bytes + size > MAX_BYTES && !portion.is_empty() {
                                bytes = 0;
                                if sender.blocking_send(std::mem::take(&mut portion)).is_err() {
                                    return false;
                                }
                            }
                            bytes += size;
                        }
                        _ => continue,
                    }
                    portion.push(Item { source, row, found });
                    if portion.len() == MAX_ITEMS {
                        bytes = 0;
                        if sender.blocking_send(std::mem::take(&mut portion)).is_err() {
                            return false;
                        }
                    }
                }
                true
            });
            read.map_err(|error: Unreadable| Error::unreadable(&file.path, error))?;
        }
        // A receiver that is gone has failed, and reports the error itself.
        let _ = sender.blocking_send(portion);
        Ok(())
    });
    (receiver, reading)
}
