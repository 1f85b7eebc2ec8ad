//! Content of an export in a form common to all products: files that are read row by row, and templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use messaging_core::domain::audience::import::columns::Header;
use serde_json::{Map, Value, json};

use super::directory::Entry;
use super::refused::Why;
use super::row::Row;

/// Content of an export that is to be imported.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// The files with contacts, in the order in which they are read.
    pub sources: Vec<Source>,
    /// The templates.
    pub templates: Vec<Template>,
    /// Notes for the user, such as files that are not read.
    pub notes: Vec<String>,
}

/// A file that is read row by row.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path of the file on the disk.
    pub(crate) path: PathBuf,
    /// Its name within the directory, as shown to users.
    pub name: String,
    /// Its content in a word, such as `contacts`.
    pub kind: &'static str,
    /// The list that all contacts in it become members of.
    pub list: Option<String>,
    /// The columns by their meaning, if they are those of `contact import`.
    pub(crate) columns: Option<Arc<Header>>,
    /// The format of its rows, and the function that reads them.
    pub(crate) reader: Reader,
}

/// Function that reads the records in a row of a file.
pub(crate) type ReadRow = fn(&Row, &Source, &mut Vec<ImportRecord>);

/// Format of a file's rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader {
    /// CSV with at least one of these columns (in any case), without which no row can be used.
    Csv { needs: &'static [&'static str], read: ReadRow },
    /// JSON with objects in an array, at the top or below members like `data` and `results`.
    Json { read: fn(&Value, &Source, &mut Vec<ImportRecord>) },
}

impl Source {
    /// A file of a directory.
    pub(crate) fn new(entry: &Entry, kind: &'static str, reader: Reader) -> Self {
        Self { path: entry.path.clone(), name: entry.name.clone(), kind, list: None, columns: None, reader }
    }

    /// Makes all contacts of the file members of a list.
    pub(crate) fn of_list(self, list: Option<String>) -> Self {
        Self { list, ..self }
    }
}

/// Record that a row of a file holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ImportRecord {
    /// A contact: a body of `POST /contacts/bulk`, and the names of its lists.
    Contact { body: Map<String, Value>, lists: Vec<String> },
    /// A list without members.
    List(String),
    /// An address that must not be sent to.
    Suppression { channel: String, address: String, reason: String },
    /// Something that cannot be imported, in words that fit behind a number.
    Left(&'static str),
    /// A row with nothing that can be imported.
    Refused(Why),
}

impl ImportPlan {
    /// Notes that a file is not read.
    pub(crate) fn leave(&mut self, entry: &Entry, why: &str) {
        self.notes.push(format!("{} is not read: {why}", entry.name));
    }
}

impl ImportRecord {
    /// Creates the suppression of an email address.
    pub(crate) fn suppressed(address: &str, reason: &str) -> Self {
        Self::Suppression { channel: "email".to_owned(), address: address.to_owned(), reason: reason.to_owned() }
    }

    /// Creates the refusal of a row without an address.
    pub(crate) fn no_email() -> Self {
        Self::refused("required", "there is no email address")
    }

    /// Creates the refusal of a row.
    pub(crate) fn refused(code: &str, message: &str) -> Self {
        Self::Refused(Why { code: code.to_owned(), message: message.to_owned() })
    }
}

/// A template of the export.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The file it comes from.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The body that creates it, or the reason why it is not imported.
    pub body: Result<Value, String>,
    /// Notes for the report.
    pub notes: BTreeSet<&'static str>,
}

impl Template {
    /// Returns the template as JSON with its result, and with `reason` if it was not imported; the reason for a missing
    /// body takes precedence.
    pub fn outcome(&self, result: &str, id: Option<&str>, reason: Option<&str>) -> Value {
        let reason = self.body.as_ref().err().map(String::as_str).or(reason);
        json!({"file": self.file, "name": self.name, "id": id, "result": result, "reason": reason})
    }
}

/// Options of reading an export.
#[derive(Debug, Default)]
pub struct ReadOptions {
    /// Texts that replace tags of templates, by the tag.
    pub texts: BTreeMap<String, String>,
}
