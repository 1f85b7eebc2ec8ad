//! Questions about the values of a contact.
//!
//! What a value must be is decided by core and not in SQL, so that every store means the same. This finds the column.

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

/// The columns of a contact that questions read. The first three parameters say which of the long ones are wanted: the
/// texts of the contact, its tags, its attributes.
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
/// The texts stand in the order of `CONTACT_FIELDS`.
const FIRST_TEXT: usize = 6;
const EMAIL: usize = FIRST_TEXT + ContactField::Email as usize;
const PHONE: usize = FIRST_TEXT + ContactField::Phone as usize;
const TAGS: usize = FIRST_TEXT + CONTACT_FIELDS.len();
const ATTRIBUTES: usize = TAGS + 1;

/// Which of the long columns are read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnSelection {
    pub(super) texts: bool,
    pub(super) tags: bool,
    pub(super) attributes: bool,
}

/// A contact of whom something is asked.
#[derive(Debug)]
pub(super) struct CandidateContact {
    pub(super) n: i64,
    pub(super) id: Uuid,
    /// Where the question stands among those that were asked.
    pub(super) place: usize,
    /// The event after which its entry was, and up to which events count.
    pub(super) after: Option<Uuid>,
    pub(super) up_to: Option<Uuid>,
    /// The columns of `asked_columns`.
    pub(super) row: Row,
}

/// A question about a value.
#[derive(Debug)]
pub(super) enum Value {
    /// About a text in a column.
    Text(usize, ValueTest),
    /// About the email address, which is stored in its one spelling.
    Email(ValueTest),
    /// About a time in a column.
    Time(usize, ValueTest),
    /// About an attribute: the keys from the outside in.
    Attribute(Vec<String>, ValueTest),
    /// About the tags.
    Tags(TagsTest),
    /// What it agreed to, in a column, is exactly this.
    Consent(usize, Option<bool>),
}

impl Value {
    /// The question of a leaf; `None` when it is about other tables. Adds to what is wanted of contacts.
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

    /// The answer for a contact.
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

/// Which columns hold addresses for a channel.
pub(super) fn want_addresses(channel: Channel, wanted: &mut ColumnSelection) {
    wanted.texts |= matches!(channel, Channel::Email | Channel::Sms | Channel::Whatsapp | Channel::Viber);
    wanted.attributes |= matches!(channel, Channel::Telegram | Channel::Push | Channel::Viber);
}

/// The addresses of a contact for a channel, on Viber for any service, as the suppression list spells them.
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
