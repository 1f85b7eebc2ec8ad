//! Conditions on the values of a contact.
//!
//! Core evaluates them instead of SQL, so that they mean the same in every store. This module selects and reads the
//! columns.

use messaging_core::domain::audience::contact::fields::{CONTACT_FIELDS, ContactField};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::filter::{ConsentKind, FilterField, Leaf};
use messaging_core::domain::segment::value_test::{TagsTest, ValueTest};
use messaging_core::domain::segment::values::Present;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::row::get;
use crate::tables::segments::keys::attribute_addresses;

/// Columns of a contact that conditions read. The parameters `$1` to `$3` select the long ones: the texts of the
/// contact, its tags, its attributes.
macro_rules! asked_columns {
    () => {
        concat!(
            "c.n, c.id, c.created_at, c.updated_at, c.marketing_email, c.sms, ",
            $crate::tables::contacts::text_columns!(if "$1"),
            ", CASE WHEN $2 THEN c.tags END, CASE WHEN $3 THEN c.attributes END"
        )
    };
}
pub(super) use asked_columns;

const CREATED_AT: usize = 2;
const UPDATED_AT: usize = 3;
const MARKETING_EMAIL: usize = 4;
const SMS: usize = 5;
/// Column of the first text; the texts are in the order of `CONTACT_FIELDS`.
const FIRST_TEXT: usize = 6;
const EMAIL: usize = FIRST_TEXT + ContactField::Email as usize;
const PHONE: usize = FIRST_TEXT + ContactField::Phone as usize;
const TAGS: usize = FIRST_TEXT + CONTACT_FIELDS.len();
const ATTRIBUTES: usize = TAGS + 1;

/// Selection of the long columns that are read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnSelection {
    pub(super) texts: bool,
    pub(super) tags: bool,
    pub(super) attributes: bool,
}

/// A contact for which filters are evaluated.
#[derive(Debug)]
pub(super) struct CandidateContact {
    pub(super) n: i64,
    pub(super) id: Uuid,
    /// Index of the contact's answer in the list of answers.
    pub(super) place: usize,
    /// Event after which events count, up to `up_to`.
    pub(super) after: Option<Uuid>,
    pub(super) up_to: Option<Uuid>,
    /// The columns of `asked_columns`.
    pub(super) row: Row,
}

/// A condition on a value.
#[derive(Debug)]
pub(super) enum Value {
    /// A text in a column.
    Text(usize, ValueTest),
    /// The email address, which is stored normalized.
    Email(ValueTest),
    /// A time in a column.
    Time(usize, ValueTest),
    /// An attribute: the keys from the outside in.
    Attribute(Vec<String>, ValueTest),
    /// The tags.
    Tags(TagsTest),
    /// A consent in a column, and the state that it must equal; `None` if never asked.
    Consent(usize, Option<bool>),
}

impl Value {
    /// Translates a leaf of a filter; `None` if it is about other tables. Adds the columns it reads to `wanted`.
    pub(super) fn of(leaf: &Leaf, present: &Present, wanted: &mut ColumnSelection) -> Option<Self> {
        Some(match leaf {
            Leaf::Field(field, test) => {
                let test = ValueTest::new(test, present);
                let field = match field {
                    FilterField::CreatedAt => return Some(Self::Time(CREATED_AT, test)),
                    FilterField::UpdatedAt => return Some(Self::Time(UPDATED_AT, test)),
                    FilterField::Text(field) => field,
                };
                wanted.texts = true;
                match field {
                    ContactField::Email => Self::Email(test),
                    other => Self::Text(FIRST_TEXT + *other as usize, test),
                }
            }
            Leaf::Attribute(path, test) => {
                wanted.attributes = true;
                Self::Attribute(path.clone(), ValueTest::new(test, present))
            }
            Leaf::Tags { needs, values } => {
                wanted.tags = true;
                Self::Tags(TagsTest::new(*needs, values))
            }
            Leaf::Consent(ConsentKind::MarketingEmail, state) => Self::Consent(MARKETING_EMAIL, *state),
            Leaf::Consent(ConsentKind::Sms, state) => Self::Consent(SMS, *state),
            Leaf::List { .. } | Leaf::Segment { .. } | Leaf::Suppression(..) | Leaf::Event(_) | Leaf::Message(_) => {
                return None;
            }
        })
    }

    /// Returns true if the condition holds for a contact.
    pub(super) fn holds(&self, contact: &Row) -> Result<bool, Fault> {
        let text = |column| get::<Option<&str>>(contact, column);
        Ok(match self {
            Self::Text(column, test) => test.of_text(text(*column)?),
            Self::Email(test) => test.of_email(text(EMAIL)?),
            Self::Time(column, test) => test.of_time(get(contact, *column)?),
            Self::Attribute(path, test) => test.of_member(text(ATTRIBUTES)?, path)?,
            Self::Tags(test) => test.of_tags(text(TAGS)?)?,
            Self::Consent(column, state) => get::<Option<bool>>(contact, *column)? == *state,
        })
    }
}

/// Selects the columns that hold addresses for a channel.
pub(super) fn want_addresses(channel: Channel, wanted: &mut ColumnSelection) {
    wanted.texts |= matches!(channel, Channel::Email | Channel::Sms | Channel::Whatsapp | Channel::Viber);
    wanted.attributes |= matches!(channel, Channel::Telegram | Channel::Push | Channel::Viber);
}

/// Returns the addresses of a contact for a channel, on Viber for any service, in the spelling of the suppression list.
pub(super) fn addresses(channel: Channel, contact: &Row) -> Result<Vec<String>, Fault> {
    let text = |column| get::<Option<&str>>(contact, column);
    let in_column = match channel {
        Channel::Email => text(EMAIL)?,
        Channel::Sms | Channel::Whatsapp | Channel::Viber => text(PHONE)?,
        Channel::Telegram | Channel::Push => None,
    };
    let mut addresses: Vec<String> = in_column.map(str::to_owned).into_iter().collect();
    if matches!(channel, Channel::Telegram | Channel::Push | Channel::Viber) {
        addresses.extend(attribute_addresses(channel, text(ATTRIBUTES)?)?);
    }
    Ok(addresses)
}
