//! The columns of an import file, and the meaning of each.
//!
//! A column means what `mapping` says, or what its header says. A column that only has the right header is not read
//! where `mapping` gives its meaning to another one. Of several columns that are read with the same meaning, the first
//! with something in it counts in each row, except for tags and lists, which are added up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(feature = "imports")]
use super::Unreadable;
#[cfg(feature = "imports")]
use super::table::{BYTE_ORDER_MARK, DELIMITERS, MAX_ROW_BYTES, first_row};
use crate::domain::audience::contact::attributes;
use crate::domain::audience::contact::fields::{CONTACT_FIELDS, ContactField};
use crate::violation::escape;

/// The member `mapping` of an import: the meaning of columns, by their headers; `None` for a column that is skipped.
pub type Mapping = BTreeMap<String, Option<ColumnTarget>>;

/// Meaning of the cells of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ColumnTarget {
    /// A field of the contact, such as its email address.
    Field(ContactField),
    /// Tags, separated by `;` or `|`.
    Tags,
    /// Ids of lists, separated by `;` or `|`.
    ListIds,
    /// Consent to marketing by email, as a boolean.
    MarketingEmail,
    /// Consent to marketing by text message, as a boolean.
    Sms,
    /// An attribute, by its key.
    Attribute(String),
}

/// The targets that are neither fields nor attributes, with their names.
const NON_FIELD_TARGETS: [(&str, ColumnTarget); 4] = [
    ("tags", ColumnTarget::Tags),
    ("list_ids", ColumnTarget::ListIds),
    ("consent.marketing_email", ColumnTarget::MarketingEmail),
    ("consent.sms", ColumnTarget::Sms),
];

/// The targets with a fixed name, which are all but attributes, with their names.
fn names() -> impl Iterator<Item = (&'static str, ColumnTarget)> {
    CONTACT_FIELDS.into_iter().map(|field| (field.name(), ColumnTarget::Field(field))).chain(NON_FIELD_TARGETS)
}

/// Prefix of the name of a target that is an attribute; its key follows.
const ATTRIBUTE: &str = "attributes.";

/// Error for a text that names no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {}, attributes.<key> or null", names().map(|(name, _)| name).collect::<Vec<_>>().join(", "))]
pub struct UnknownTarget;

impl ColumnTarget {
    #[cfg(feature = "imports")]
    /// The target that a header names without a mapping. The case of its letters does not matter, except in the key of
    /// an attribute.
    fn of_header(header: &str) -> Option<Self> {
        let known = names().find(|(name, _)| name.eq_ignore_ascii_case(header));
        known.map(|(_, target)| target).or_else(|| {
            let (start, key) = header.split_at_checked(ATTRIBUTE.len())?;
            let is_attribute = start.eq_ignore_ascii_case(ATTRIBUTE) && attributes::is_key(key);
            is_attribute.then(|| Self::Attribute(key.to_owned()))
        })
    }

    /// JSON pointer to the member that holds it in the JSON body about a contact, such as `/consent/sms`.
    pub fn pointer(&self) -> String {
        match self {
            Self::Attribute(key) => format!("/attributes/{}", escape(key)),
            _ => format!("/{}", String::from(self.clone()).replace('.', "/")),
        }
    }

    /// True for the email address, the phone number and the external id, by which contacts are found.
    pub const fn is_identifier(&self) -> bool {
        matches!(self, Self::Field(field) if field.identifier().is_some())
    }
}

impl TryFrom<String> for ColumnTarget {
    type Error = UnknownTarget;
    fn try_from(text: String) -> Result<Self, UnknownTarget> {
        let known = names().find(|(name, _)| *name == text).map(|(_, target)| target);
        let attribute = || text.strip_prefix(ATTRIBUTE).filter(|key| attributes::is_key(key));
        known.or_else(|| attribute().map(|key| Self::Attribute(key.to_owned()))).ok_or(UnknownTarget)
    }
}

impl From<ColumnTarget> for String {
    fn from(target: ColumnTarget) -> Self {
        match target {
            ColumnTarget::Attribute(key) => format!("{ATTRIBUTE}{key}"),
            other => names().find(|(_, target)| *target == other).map(|(name, _)| name).unwrap_or_default().to_owned(),
        }
    }
}

/// A column that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its place, from 0.
    pub index: usize,
    /// Its header.
    pub header: String,
    /// Meaning of its cells: a field or attribute of the contact, tags, lists or a consent.
    pub target: ColumnTarget,
    /// The [`ColumnTarget::pointer`] of that meaning.
    pub pointer: String,
}

/// Result of reading the header of a file: its form, and the columns to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Byte that separates the cells of a row, such as a comma.
    pub delimiter: u8,
    /// Offset of the first byte after the header.
    pub rows_at: usize,
    /// Number of columns, read or not.
    pub width: usize,
    /// The columns that are read.
    pub columns: Vec<Column>,
}

impl Header {
    #[cfg(feature = "imports")]
    /// Reads the header at the beginning of a file; `is_end` says that nothing follows `bytes`. The delimiter is the
    /// one with which most columns have a meaning, and of equal ones the one that makes most columns. Fails when there
    /// is no header, it is too long or not UTF-8, or no column identifies a contact.
    pub fn read(bytes: &[u8], is_end: bool, mapping: &Mapping) -> Result<Self, Unreadable> {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let mark = bytes.len() - text.len();
        let mut best: Option<Self> = None;
        for delimiter in DELIMITERS {
            let Some((cells, taken)) = first_row(text, is_end, delimiter) else { continue };
            let cells: Vec<_> = cells
                .into_iter()
                .map(|cell| String::from_utf8(cell).map(|cell| cell.trim().to_owned()))
                .collect::<Result<_, _>>()
                .map_err(|_| Unreadable::NotUtf8)?;
            // A row of nothing but one delimiter is a single cell when it is cut by another, and no header.
            if cells.iter().all(|cell| cell.chars().all(|letter| DELIMITERS.map(char::from).contains(&letter))) {
                continue;
            }
            let (width, rows_at) = (cells.len(), mark + taken);
            let header = Self { delimiter, rows_at, width, columns: columns(cells, mapping) };
            let merit = |header: &Self| (header.columns.len(), header.width);
            if best.as_ref().is_none_or(|best| merit(&header) > merit(best)) {
                best = Some(header);
            }
        }
        let Some(header) = best else {
            return Err(if text.len() >= MAX_ROW_BYTES { Unreadable::RowTooLong(1) } else { Unreadable::NoHeader });
        };
        // Without an identifier every row would be refused.
        if header.columns.iter().any(|column| column.target.is_identifier()) {
            Ok(header)
        } else {
            Err(Unreadable::NoUsableColumn)
        }
    }

    /// The header of the column that a violation at a JSON pointer is about; empty when it is about none.
    pub(crate) fn column_of(&self, pointer: &str) -> &str {
        let covers = |column: &&Column| {
            pointer.strip_prefix(&column.pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.columns.iter().find(covers).map_or("", |column| &column.header)
    }
}

/// The columns that are read, with the meaning that the mapping or their headers give them.
#[cfg(feature = "imports")]
fn columns(headers: Vec<String>, mapping: &Mapping) -> Vec<Column> {
    let mapped = |header: &str| mapping.iter().find(|(name, _)| name.trim() == header).map(|(_, target)| target);
    let by_mapping: Vec<&ColumnTarget> = headers.iter().filter_map(|header| mapped(header)?.as_ref()).collect();
    let target_of = |header: &str| match mapped(header) {
        Some(target) => target.clone(),
        None => ColumnTarget::of_header(header).filter(|target| !by_mapping.contains(&target)),
    };
    let targets: Vec<_> = headers.iter().map(|header| target_of(header)).collect();
    let columns = headers.into_iter().zip(targets).enumerate();
    columns
        .filter_map(|(index, (header, target))| {
            let target = target?;
            Some(Column { index, header, pointer: target.pointer(), target })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(pairs: &[(&str, &str)]) -> Mapping {
        let target = |name: &str| (!name.is_empty()).then(|| ColumnTarget::try_from(name.to_owned()).unwrap());
        pairs.iter().map(|(header, name)| ((*header).to_owned(), target(name))).collect()
    }

    /// A header as a text of its delimiter, columns and offset of the rows: `; Mail=email City=attributes.city @12`.
    fn understood(text: &[u8], pairs: &[(&str, &str)]) -> String {
        match Header::read(text, true, &mapping(pairs)) {
            Err(why) => format!("{why:?}"),
            Ok(header) => {
                let columns: Vec<_> = header
                    .columns
                    .iter()
                    .map(|column| format!("{}={}", column.header, String::from(column.target.clone())))
                    .collect();
                let delimiter = match header.delimiter {
                    b'\t' => "TAB".to_owned(),
                    other => char::from(other).to_string(),
                };
                format!("{delimiter} {} @{}", columns.join(" "), header.rows_at)
            }
        }
    }

    #[test]
    fn headers_of_all_kinds() {
        for (text, pairs, expected) in [
            ("email,name\n", &[][..], ", email=email @11"),
            ("EMAIL;Phone;Consent.SMS\r\nx", &[], "; EMAIL=email Phone=phone Consent.SMS=consent.sms @24"),
            ("external_id\tAttributes.Plan", &[], "TAB external_id=external_id Attributes.Plan=attributes.Plan @27"),
            ("\u{feff}email\n", &[], ", email=email @9"),
            ("\u{feff}\"e-mail, work\";x\n", &[("e-mail, work", "email")], "; e-mail, work=email @20"),
            // The delimiter that makes more sense wins over the one that makes more cells.
            ("a,b,c;email\n", &[], "; email=email @12"),
            ("email\n", &[("email", "external_id")], ", email=external_id @6"),
            ("email,mail\n", &[("mail", "email")], ", mail=email @11"),
            ("email,phone\n", &[("phone", "")], ", email=email @12"),
            (
                " email , phone \n",
                &[(" email", "attributes.a"), ("x", "phone")],
                ", email=attributes.a phone=phone @16",
            ),
            ("email,Email\n", &[], ", email=email Email=email @12"),
            ("\n\r\nemail\n", &[], ", email=email @9"),
            ("first,last\n", &[], "NoUsableColumn"),
            ("tags,locale\n", &[], "NoUsableColumn"),
            ("attributes.a b,email\n", &[], ", email=email @21"),
            ("", &[], "NoHeader"),
            ("\n\n", &[], "NoHeader"),
            (" , \n", &[], "NoHeader"),
            ("\u{feff}", &[], "NoHeader"),
        ] {
            assert_eq!(understood(text.as_bytes(), pairs), expected, "{text:?}");
        }
        assert_eq!(understood(b"e\xFFmail,email\n", &[]), "NotUtf8");
        assert_eq!(understood(b"\xFF\xFEe\0m\0", &[]), "NotUtf8");
    }

    #[test]
    fn targets_by_name() {
        for name in ["email", "consent.marketing_email", "attributes.plan", "attributes._a-1"] {
            assert_eq!(String::from(ColumnTarget::try_from(name.to_owned()).unwrap()), name);
        }
        for bad in ["", "Email", "consent", "attributes", "attributes.", "attributes.a b", "attributes.1", "name"] {
            assert_eq!(ColumnTarget::try_from(bad.to_owned()), Err(UnknownTarget), "{bad}");
        }
        assert_eq!(ColumnTarget::MarketingEmail.pointer(), "/consent/marketing_email");
        assert_eq!(ColumnTarget::Attribute("a".to_owned()).pointer(), "/attributes/a");
    }

    #[test]
    fn faults_name_their_column() {
        let pairs = [("Mail", "email"), ("Groups", "tags"), ("Plan", "attributes.plan")];
        let header = Header::read(b"Mail,Groups,Plan,phone", true, &mapping(&pairs)).unwrap();
        for (pointer, column) in [
            ("/email", "Mail"),
            ("/tags/3", "Groups"),
            ("/attributes/plan", "Plan"),
            ("/attributes/planet", ""),
            ("/attributes", ""),
            ("", ""),
            ("/phone", "phone"),
        ] {
            assert_eq!(header.column_of(pointer), column, "{pointer}");
        }
    }
}
