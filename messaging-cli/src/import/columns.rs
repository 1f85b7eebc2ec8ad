//! Sorts the columns of a file: known ones, ones that become attributes with a type, and ones that are left out.

use std::path::Path;

use messaging_core::domain::audience::contact::attributes::{MAX_KEY_LENGTH, is_key};
use messaging_core::domain::audience::custom_field::{FieldType, FieldTypes};
use messaging_core::domain::audience::import::columns::{ColumnTarget, Header, Mapping};
use serde::Serialize;

use super::guess::Guess;
use super::rows::{self, Head};
use crate::export::{ATTRIBUTES_AS_JSON, ONLY_EXPORTED, TAGS_AS_JSON};
use crate::failure::Failure;

/// Which columns without a meaning of their own become attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttributeSelection {
    All,
    None,
    /// Those with these headers.
    These(Vec<String>),
}

impl AttributeSelection {
    /// `all`, `none`, or headers.
    pub(super) fn of(words: Vec<String>) -> Self {
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["all"] => Self::All,
            ["none"] => Self::None,
            _ => Self::These(words),
        }
    }
}

/// A column that becomes an attribute because nothing else was said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Guessed {
    /// Its header.
    pub(super) column: String,
    /// The key of the attribute.
    pub(super) attribute: String,
    /// Type of the attribute: string, unless a custom field has another.
    #[serde(rename = "type")]
    pub(super) kind: FieldType,
    /// Type that all of the column's cells can be read as.
    pub(super) guess: FieldType,
    /// True if the type is that of an existing custom field.
    #[serde(skip)]
    is_declared: bool,
    #[serde(skip)]
    index: usize,
}

/// The columns of a file of `contact export` that hold JSON, by their places.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsJson {
    pub(super) attributes: usize,
    pub(super) tags: Option<usize>,
}

/// The columns of a file.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// Mapping of the columns that is sent with the import.
    pub(super) mapping: Mapping,
    pub(super) attributes: Vec<Guessed>,
    /// Headers of those that are not imported.
    pub(super) left_out: Vec<String>,
    /// The header as it will be read; `None` where that is impossible, of which the API says why.
    pub(super) header: Option<Header>,
    /// Columns of a file of `contact export` with attributes and tags as JSON, which the API does not read.
    pub(super) as_json: Option<AsJson>,
}

impl Columns {
    /// Sorts the columns of a file. Types are guessed only if `declared` is given; with `declares` the guesses are
    /// used.
    pub(super) fn of(
        file: &Path,
        mapping: Mapping,
        selection: &AttributeSelection,
        declared: Option<&FieldTypes>,
        declares: bool,
    ) -> Result<Self, Failure> {
        let head = Head::of(file)?;
        let mut columns = Self { mapping, ..Self::default() };
        let Ok(header) = Header::read(&head.bytes, head.is_whole, &columns.mapping) else {
            check("--map", columns.mapping.keys(), &head.likely_names())?;
            return Ok(columns);
        };
        let names = head.names(header.delimiter);
        check("--map", columns.mapping.keys(), &names)?;
        if let AttributeSelection::These(these) = selection {
            check("--attributes", these, &names)?;
        }
        columns.sort(&header, &names, selection);
        if let Some(declared) = declared {
            columns.guess(file, &header, declared, declares)?;
        }
        columns.header = Header::read(&head.bytes, head.is_whole, &columns.mapping).ok();
        Ok(columns)
    }

    /// Decides for every column without a meaning if it becomes an attribute or is left out.
    fn sort(&mut self, header: &Header, names: &[String], selection: &AttributeSelection) {
        let is_export = ONLY_EXPORTED.iter().all(|only| names.iter().any(|name| name == only));
        if is_export && *selection != AttributeSelection::None {
            let tags = place_of(TAGS_AS_JSON, names, &self.mapping);
            let attributes = place_of(ATTRIBUTES_AS_JSON, names, &self.mapping);
            self.as_json = attributes.map(|attributes| AsJson { attributes, tags });
        }
        let as_json = self.as_json.map(|columns| [Some(columns.attributes), columns.tags]).unwrap_or_default();
        let mut keys: Vec<_> = header.columns.iter().filter_map(|column| key_of(&column.target)).collect();
        for (index, name) in names.iter().enumerate() {
            let is_read = header.columns.iter().any(|column| column.index == index);
            if is_read || as_json.contains(&Some(index)) || self.mapping.get(name) == Some(&None) {
                continue;
            }
            // The header is that of a field which another column was mapped to, or of a column that only an export has.
            let is_spoken_for = ColumnTarget::try_from(name.to_lowercase()).is_ok()
                || self.mapping.contains_key(name)
                || (is_export && ONLY_EXPORTED.contains(&name.as_str()));
            let is_wanted = match selection {
                AttributeSelection::All => !is_spoken_for,
                AttributeSelection::None => false,
                AttributeSelection::These(these) => these.contains(name),
            };
            if !is_wanted || name.is_empty() {
                let shown = if name.is_empty() { format!("column {}", index + 1) } else { name.clone() };
                self.left_out.push(shown);
                continue;
            }
            let attribute = free_key(name, index, &keys);
            keys.push(attribute.clone());
            self.mapping.insert(name.clone(), Some(ColumnTarget::Attribute(attribute.clone())));
            let (column, kind) = (name.clone(), FieldType::String);
            self.attributes.push(Guessed { column, attribute, kind, guess: kind, is_declared: false, index });
        }
    }

    /// Finds the types of the attributes: that of a custom field, or a guess from all cells of the column.
    fn guess(&mut self, file: &Path, header: &Header, declared: &FieldTypes, declares: bool) -> Result<(), Failure> {
        let mut guesses = vec![Guess::default(); self.attributes.len()];
        rows::each(file, header, |_, record| {
            for (attribute, guess) in self.attributes.iter().zip(&mut guesses) {
                guess.add(&String::from_utf8_lossy(record.get(attribute.index).unwrap_or_default()));
            }
            !guesses.is_empty()
        })?;
        for (attribute, guess) in self.attributes.iter_mut().zip(guesses) {
            let known = declared.get(&attribute.attribute);
            attribute.is_declared = known.is_some();
            attribute.guess = known.copied().unwrap_or_else(|| guess.kind());
            if attribute.is_declared || declares {
                attribute.kind = attribute.guess;
            }
        }
        Ok(())
    }

    /// The attributes whose type needs a custom field that does not exist yet.
    pub(super) fn to_declare(&self) -> impl Iterator<Item = &Guessed> {
        self.attributes.iter().filter(|attribute| !attribute.is_declared && attribute.kind != FieldType::String)
    }

    /// Columns whose cells could be more than texts if a custom field was declared.
    pub(super) fn declarable(&self) -> impl Iterator<Item = &Guessed> {
        self.attributes.iter().filter(|attribute| attribute.kind != attribute.guess)
    }

    /// Types by which cells are read.
    pub(super) fn types(&self, declared: FieldTypes) -> FieldTypes {
        let mut types = declared;
        types.extend(self.attributes.iter().map(|attribute| (attribute.attribute.clone(), attribute.kind)));
        types
    }
}

/// A type as the API calls it.
pub(super) fn name_of(kind: FieldType) -> String {
    serde_json::json!(kind).as_str().unwrap_or_default().to_owned()
}

/// Refuses headers in a flag that the file does not have.
fn check<'a>(flag: &str, headers: impl IntoIterator<Item = &'a String>, names: &[String]) -> Result<(), Failure> {
    let is_there = |header: &String| names.iter().any(|name| name == header.trim());
    match headers.into_iter().find(|header| !is_there(header)) {
        None => Ok(()),
        Some(header) => {
            let names = names.join(", ");
            Err(Failure::usage(format!("{flag}: the file has no column {header:?}; it has {names}")))
        }
    }
}

/// Position of a header in a file of `contact export`; none if `--map` says what the column is.
fn place_of(header: &str, names: &[String], mapping: &Mapping) -> Option<usize> {
    names.iter().position(|name| name == header).filter(|_| !mapping.contains_key(header))
}

fn key_of(target: &ColumnTarget) -> Option<String> {
    match target {
        ColumnTarget::Attribute(key) => Some(key.clone()),
        _ => None,
    }
}

/// A key for a header that no other column has: the header where it can be one, else its letters and digits.
fn free_key(header: &str, index: usize, taken: &[String]) -> String {
    let key = if is_key(header) { header.to_owned() } else { made_key(header, index) };
    let others = (2..).map(|number| {
        let end = format!("_{number}");
        let kept = key.len().min(MAX_KEY_LENGTH - end.len());
        format!("{}{end}", &key[..kept])
    });
    let free = std::iter::once(key.clone()).chain(others).find(|key| !taken.contains(key));
    free.unwrap_or_else(|| key.clone())
}

/// `First name` becomes `first_name`; a header without letters that a key may have is named by its place.
fn made_key(header: &str, index: usize) -> String {
    let is_kept = |letter: char| letter.is_ascii_alphanumeric();
    let words: Vec<_> = header.split(|letter| !is_kept(letter)).filter(|word| !word.is_empty()).collect();
    let mut key = words.join("_").to_ascii_lowercase();
    key.truncate(MAX_KEY_LENGTH - 1);
    match key.as_bytes().first() {
        None => format!("column_{}", index + 1),
        Some(first) if first.is_ascii_digit() => format!("_{key}"),
        Some(_) => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts the columns of a text and shows the result.
    fn sorted(text: &str, mapping: &[(&str, Option<&str>)], wanted: &[&str], declared: &FieldTypes) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let target = |field: &str| ColumnTarget::try_from(field.to_owned()).unwrap();
        let mapping = mapping.iter().map(|(column, field)| ((*column).to_owned(), field.map(target))).collect();
        let selection = AttributeSelection::of(wanted.iter().map(|word| (*word).to_owned()).collect());
        let columns = match Columns::of(file.path(), mapping, &selection, Some(declared), true) {
            Ok(columns) => columns,
            Err(failure) => return failure.to_string(),
        };
        let shown = columns.attributes.iter().map(|one| format!("{}={}:{:?} ", one.column, one.attribute, one.kind));
        format!("{}- {}", shown.collect::<String>(), columns.left_out.join(", "))
    }

    #[test]
    fn nothing_is_left_out_silently() {
        let none = FieldTypes::default();
        let text =
            "email;First name;plan;Age;Город;\r\na@example.com;Ann;pro;31;Kyiv;x\r\nb@example.com;Bob;free;;;\r\n";
        let all = "First name=first_name:String plan=plan:String Age=Age:Number Город=column_5:String - column 6";
        assert_eq!(sorted(text, &[], &[], &none), all);
        assert_eq!(sorted(text, &[], &["all"], &none), all);
        assert_eq!(sorted(text, &[], &["none"], &none), "- First name, plan, Age, Город, column 6");
        let chosen = "plan=plan:String Age=Age:Number - First name, Город, column 6";
        assert_eq!(sorted(text, &[], &["plan", "Age"], &none), chosen);
        let missing = sorted(text, &[], &["Plan"], &none);
        assert!(missing.contains("no column \"Plan\"") && missing.contains("First name, plan"), "{missing}");
        for text in [text, "Mail;plan\na@example.com;pro\n"] {
            let missing = sorted(text, &[("Plna", Some("attributes.tier"))], &[], &none);
            assert!(
                missing.contains("--map: the file has no column \"Plna\"") && missing.contains("plan"),
                "{missing}"
            );
        }
        let mapped = [("plan", Some("external_id")), ("Age", None)];
        let rest = "First name=first_name:String Город=column_5:String - column 6";
        assert_eq!(sorted(text, &mapped, &[], &none), rest);
        let declared = FieldTypes::from([("Age".to_owned(), FieldType::String)]);
        assert_eq!(sorted(text, &[], &["Age"], &declared), "Age=Age:String - First name, plan, Город, column 6");
    }

    #[test]
    fn what_an_export_adds_and_what_is_said_twice_is_no_attribute() {
        let none = FieldTypes::default();
        let export = "id,email,suppressed_channels,created_at,updated_at,attributes.plan,attributes,tags_json\n";
        let told = "- id, suppressed_channels, created_at, updated_at";
        assert_eq!(sorted(export, &[], &[], &none), told);
        assert_eq!(sorted(export, &[], &["none"], &none), format!("{told}, attributes, tags_json"));
        assert_eq!(sorted("id,email\n7,a@example.com\n", &[], &[], &none), "id=id:Number - ");
        assert_eq!(sorted("email,Mail\n", &[("Mail", Some("email"))], &[], &none), "- email");
        assert_eq!(
            sorted("email,A b,a_b,A-b?\n", &[], &[], &none),
            "A b=a_b:String a_b=a_b_2:String A-b?=a_b_3:String - "
        );
    }
}
