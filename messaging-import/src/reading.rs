//! Reading the files of a plan: once to count, and again while what they hold is brought over.

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

/// Contacts of a request (contract section 20).
const MAX_ITEMS: usize = 1000;

/// Bytes of a request; a server takes 10 MiB.
const MAX_BYTES: usize = 4 << 20;

/// Portions that are read ahead.
const AHEAD: usize = 2;

/// Lists that an export may name.
const MAX_LISTS: usize = 1_000;

/// Shows the rows of a file until `visit` answers `false`.
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

/// Counts of what one file holds.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Rows, without the header.
    pub rows: u64,
    /// Contacts.
    pub contacts: u64,
    /// Addresses that must not be sent to.
    pub suppressions: u64,
    /// Rows that say nothing, or that would be refused.
    pub refused: u64,
    /// What has no place here, by its words.
    pub left: BTreeMap<&'static str, u64>,
}

/// Counts of what all files of a plan hold.
#[derive(Debug, Default)]
pub struct Survey {
    /// The counts of each file, in the order of the plan.
    pub files: Vec<Counts>,
    /// The names of the lists.
    pub lists: BTreeSet<String>,
    /// Contacts whose address was there before.
    pub repeated: u64,
    /// Digests of the addresses of those who do not want marketing.
    unwilling: HashSet<u64>,
}

impl Survey {
    /// Reads everything. With `judged` contacts and suppressions are checked by the rules of the API, too, and what breaks
    /// them is added there. `seen` is told how many rows more were read.
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

    /// Takes back the consent of who said no elsewhere in the export: on another list, or at another time.
    fn respect(&self, body: &mut Map<String, Value>) {
        let is_unwilling = |email: &str| self.unwilling.contains(&digest(email));
        if body.get("email").and_then(Value::as_str).is_some_and(is_unwilling)
            && let Some(consent) = body.get_mut("consent").filter(|consent| consent["marketing_email"] == true)
        {
            consent["marketing_email"] = json!(false);
        }
    }
}

/// What of an address is kept in memory.
fn digest(email: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    address::normalize_email(email).hash(&mut hasher);
    hasher.finish()
}

/// The body of a suppression.
pub(crate) fn suppression(channel: &str, address: &str, reason: &str) -> Value {
    json!({"channel": channel, "address": address, "reason": reason})
}

/// What is wrong with a body.
fn fault_of<T: input::Input>(body: &Value) -> Option<Why> {
    match input::body::<T>(body.to_string().as_bytes()) {
        Ok(_) => None,
        Err(DomainError::Invalid(violations)) => Some(Why::of_violations(&violations)),
        Err(error) => Some(Why { code: error.code().to_owned(), message: error.to_string() }),
    }
}

/// Which of what the files hold is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Addresses that must not be sent to.
    Suppressions,
    /// Contacts, and rows that say nothing.
    Contacts,
}

/// Something to be brought over.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its file, by its place in the plan.
    pub(crate) source: usize,
    /// Its row.
    pub(crate) row: u64,
    /// The thing itself: a contact, a list, a suppression, or a row without use here.
    pub(crate) found: ImportRecord,
}

/// Reads the files in a thread of its own and hands over portions, each for one bulk request, so that what is in
/// memory does not grow with the files.
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
        // Whoever does not listen any more has failed, and says so.
        let _ = sender.blocking_send(portion);
        Ok(())
    });
    (receiver, reading)
}
