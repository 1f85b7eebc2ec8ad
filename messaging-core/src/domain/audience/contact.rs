//! A contact: a person of a workspace, with addresses and attributes.
//!
//! Contract sections 6.1 and 6.3. The submodules: [`fields`] lists the text fields, [`input`] has the rules of
//! requests, [`attributes`] the rules of custom data, [`identity_resolver`] decides which contact a request means,
//! [`merge`] makes one contact of two, [`erasure`] removes a contact's data from messages.

pub mod attributes;
pub mod erasure;
pub mod fields;
mod identifier;
pub mod identity_resolver;
pub mod input;
pub mod merge;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::attributes::Attributes;
use self::fields::{CONTACT_FIELDS, ContactField};
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::message::channel_content::ViberService;
use crate::domain::search::Search;
use crate::ids::{ContactId, ListId, SegmentId, WorkspaceId};
use crate::time::Timestamp;

pub use self::identifier::{Identifier, IdentifierKind};

/// The attribute that holds the address of the channel telegram (contract section 6.3).
const TELEGRAM_ATTRIBUTE: &str = "telegram_chat_id";
/// The attribute that holds the addresses of the channel push.
const PUSH_ATTRIBUTE: &str = "push_token";
/// The attribute that holds the id of a user of a Viber bot.
const VIBER_ATTRIBUTE: &str = "viber_id";

/// A person of a workspace.
///
/// Invariant: at least one of `external_id`, `email`, `phone`, each unique in the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Contact {
    /// Its id.
    pub id: ContactId,
    /// Workspace that owns the contact.
    pub workspace_id: WorkspaceId,
    /// The workspace's own id of the contact.
    pub external_id: Option<String>,
    /// Its email address, lower case.
    pub email: Option<String>,
    /// Its phone number, E.164.
    pub phone: Option<String>,
    /// Custom data of the contact, set by the workspace.
    pub attributes: Attributes,
    /// Its tags, each once.
    pub tags: Vec<String>,
    /// A BCP 47 language tag.
    pub locale: Option<String>,
    /// An IANA time zone name.
    pub timezone: Option<String>,
    /// Consent to marketing by email, and by SMS, WhatsApp and Viber.
    pub consent: Consent,
    /// Lists that contain it, oldest list first. Storing a contact does not change them: they change by
    /// [`JoinList`](crate::changes::Write::JoinList) and [`LeaveList`](crate::changes::Write::LeaveList).
    pub list_ids: Vec<ListId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed; joining and leaving lists does not count.
    pub updated_at: Timestamp,
}

/// Consent of a contact; `None` if it was never asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consent {
    /// Marketing by email.
    pub marketing_email: Option<bool>,
    /// Marketing by SMS, WhatsApp and Viber.
    pub sms: Option<bool>,
}

impl Contact {
    /// Returns the text of a field; `None` if it is not set.
    pub const fn field(&self, field: ContactField) -> &Option<String> {
        match field {
            ContactField::ExternalId => &self.external_id,
            ContactField::Email => &self.email,
            ContactField::Phone => &self.phone,
            ContactField::Locale => &self.locale,
            ContactField::Timezone => &self.timezone,
        }
    }

    /// Returns a mutable reference to the text of a field.
    pub const fn field_mut(&mut self, field: ContactField) -> &mut Option<String> {
        match field {
            ContactField::ExternalId => &mut self.external_id,
            ContactField::Email => &mut self.email,
            ContactField::Phone => &mut self.phone,
            ContactField::Locale => &mut self.locale,
            ContactField::Timezone => &mut self.timezone,
        }
    }

    /// Returns a contact without data.
    pub fn new(id: ContactId, workspace_id: WorkspaceId, now: Timestamp) -> Self {
        Self {
            id,
            workspace_id,
            external_id: None,
            email: None,
            phone: None,
            attributes: Attributes::default(),
            tags: Vec::new(),
            locale: None,
            timezone: None,
            consent: Consent::default(),
            list_ids: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the identifiers of the contact.
    pub fn identifiers(&self) -> impl Iterator<Item = Identifier> + '_ {
        CONTACT_FIELDS.into_iter().filter_map(|field| field.identifier_of(self.field(field).clone()?))
    }

    /// True if the contact has an external id, an email address or a phone number.
    pub(crate) const fn has_identifier(&self) -> bool {
        self.external_id.is_some() || self.email.is_some() || self.phone.is_some()
    }

    /// True if two contacts are the same in everything except their lists.
    pub fn equals_but_for_lists(&self, other: &Self) -> bool {
        let Self {
            id,
            workspace_id,
            external_id,
            email,
            phone,
            attributes,
            tags,
            locale,
            timezone,
            consent,
            list_ids: _,
            created_at,
            updated_at,
        } = self;
        *id == other.id
            && *workspace_id == other.workspace_id
            && *external_id == other.external_id
            && *email == other.email
            && *phone == other.phone
            && *attributes == other.attributes
            && *tags == other.tags
            && *locale == other.locale
            && *timezone == other.timezone
            && *consent == other.consent
            && *created_at == other.created_at
            && *updated_at == other.updated_at
    }

    /// Returns the contact's addresses for a channel (on Viber, for the service `viber`), in the order in which they
    /// are tried (contract section 6.3). Values that do not have the channel's format are left out.
    pub fn addresses(&self, channel: Channel, viber: ViberService) -> Vec<String> {
        let found = match AddressSource::of(channel, viber) {
            AddressSource::Email => &self.email,
            AddressSource::Phone => &self.phone,
            AddressSource::Attributes => return addresses_in(&self.attributes, channel),
        };
        found.iter().filter(|address| address::check(channel, address).is_ok()).cloned().collect()
    }

    /// Returns the contact without these push tokens; `None` if it has none of them. Without any token left the
    /// attribute is removed.
    pub fn without_push_tokens(&self, dead: &[&str]) -> Option<Self> {
        let is_dead = |value: &Value| address_text(value).is_some_and(|token| dead.contains(&token.as_str()));
        let left = match self.attributes.get(PUSH_ATTRIBUTE)? {
            Value::Array(tokens) if tokens.iter().any(is_dead) => {
                tokens.iter().filter(|token| !is_dead(token)).cloned().collect()
            }
            Value::Array(_) => return None,
            token if is_dead(token) => Vec::new(),
            _ => return None,
        };
        let mut contact = self.clone();
        if left.is_empty() {
            contact.attributes.edit().remove(PUSH_ATTRIBUTE);
        } else {
            contact.attributes.edit().insert(PUSH_ATTRIBUTE.to_owned(), Value::Array(left));
        }
        Some(contact)
    }

    /// Returns the contact's addresses for all channels, as the suppression list spells them; on Viber the addresses
    /// for both services.
    pub fn all_addresses(&self) -> Vec<(Channel, String)> {
        let of = |(channel, viber): (Channel, ViberService)| {
            let normal = move |address: String| (channel, address::normalize(channel, &address));
            self.addresses(channel, viber).into_iter().map(normal)
        };
        let all = Channel::ALL.map(|channel| (channel, ViberService::Business));
        all.into_iter().chain([(Channel::Viber, ViberService::Bot)]).flat_map(of).collect()
    }
}

/// Part of a contact that holds the addresses of a channel (contract section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// Its email address.
    Email,
    /// Its phone number.
    Phone,
    /// An attribute; see [`addresses_in`].
    Attributes,
}

impl AddressSource {
    /// Returns the source for a channel; on Viber, for the service `viber`.
    pub const fn of(channel: Channel, viber: ViberService) -> Self {
        match (channel, viber) {
            (Channel::Email, _) => Self::Email,
            (Channel::Sms | Channel::Whatsapp, _) | (Channel::Viber, ViberService::Business) => Self::Phone,
            (Channel::Telegram | Channel::Push, _) | (Channel::Viber, ViberService::Bot) => Self::Attributes,
        }
    }
}

/// Returns the addresses that attributes hold for a channel, on Viber for a bot, in the order in which they are tried;
/// none for channels whose addresses are no attributes. A phone number does not count as the id of a Viber user: it is
/// an address of the business service.
pub fn addresses_in(attributes: &Attributes, channel: Channel) -> Vec<String> {
    let found: Vec<String> = match channel {
        Channel::Email | Channel::Sms | Channel::Whatsapp => Vec::new(),
        Channel::Viber => {
            let id = attributes.get(VIBER_ATTRIBUTE).and_then(address_text);
            id.into_iter().filter(|id| !address::is_e164(id)).collect()
        }
        Channel::Telegram => attributes.get(TELEGRAM_ATTRIBUTE).and_then(address_text).into_iter().collect(),
        Channel::Push => match attributes.get(PUSH_ATTRIBUTE) {
            Some(Value::Array(tokens)) => tokens.iter().filter_map(address_text).collect(),
            Some(token) => address_text(token).into_iter().collect(),
            None => Vec::new(),
        },
    };
    found.into_iter().filter(|address| address::check(channel, address).is_ok()).collect()
}

/// Returns the attributes with the Telegram chat id `to` in place of `from`; `None` if they do not hold `from`, or `to`
/// is no chat id. An id that was stored as a number stays one.
pub fn moved_chat(attributes: &Attributes, from: &str, to: &str) -> Option<Attributes> {
    let known = attributes.get(TELEGRAM_ATTRIBUTE)?;
    if address_text(known)? != from || address::check(Channel::Telegram, to).is_err() {
        return None;
    }
    let number = known.is_number().then(|| to.parse::<i64>().ok()).flatten();
    let mut moved = attributes.clone();
    moved.edit().insert(TELEGRAM_ATTRIBUTE.to_owned(), number.map_or_else(|| to.into(), Value::from));
    Some(moved)
}

/// Returns an address as text; `None` unless it is a string or an integer (chat ids are often stored as numbers).
fn address_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// Filter of a listing of contacts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContactFilter {
    /// Only the contact with this email address, lower case.
    pub email: Option<String>,
    /// Only the contact with this external id.
    pub external_id: Option<String>,
    /// Only the contact with this phone number.
    pub phone: Option<String>,
    /// Only contacts with this tag.
    pub tag: Option<String>,
    /// Only contacts on this list.
    pub list_id: Option<ListId>,
    /// Only contacts in this segment.
    pub segment_id: Option<SegmentId>,
    /// Only contacts that changed at or after this time.
    pub updated_since: Option<Timestamp>,
    /// Only contacts that this search finds.
    pub search: Option<Search>,
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a contact that has an external id and nothing else.
    pub(crate) fn bare() -> Contact {
        let (id, workspace) = ("con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
        let contact = Contact::new(id.parse().unwrap(), workspace.parse().unwrap(), Timestamp::from_millis(1));
        Contact { external_id: Some("u-1".to_owned()), ..contact }
    }

    #[track_caller]
    fn check(channel: Channel, attributes: Value, expected: &[&str]) {
        let contact = Contact {
            email: Some("ann@example.com".to_owned()),
            phone: Some("+14155550123".to_owned()),
            attributes: attributes.as_object().cloned().unwrap_or_default().into(),
            ..bare()
        };
        assert_eq!(contact.addresses(channel, ViberService::Business), expected, "{channel} {attributes}");
    }

    #[test]
    fn a_bot_on_viber_sends_to_its_users_and_a_business_to_phone_numbers() {
        let with = |id: Value| {
            let attributes = Attributes::from(json!({ "viber_id": id }).as_object().cloned().unwrap());
            Contact { phone: Some("+14155550123".to_owned()), attributes, ..bare() }
        };
        let user = with(json!("01234567890A="));
        assert_eq!(user.addresses(Channel::Viber, ViberService::Bot), ["01234567890A="]);
        assert_eq!(user.addresses(Channel::Viber, ViberService::Business), ["+14155550123"]);
        let on_viber = user.all_addresses().into_iter().filter(|(channel, _)| *channel == Channel::Viber);
        assert_eq!(on_viber.map(|(_, address)| address).collect::<Vec<_>>(), ["+14155550123", "01234567890A="]);
        for nonsense in
            [json!("a b"), json!(""), json!("x".repeat(65)), json!("+14155550123"), json!(["a"]), json!(null)]
        {
            assert!(with(nonsense.clone()).addresses(Channel::Viber, ViberService::Bot).is_empty(), "{nonsense}");
        }
    }

    #[test]
    fn each_channel_has_its_address() {
        check(Channel::Email, json!({}), &["ann@example.com"]);
        for channel in [Channel::Sms, Channel::Whatsapp, Channel::Viber] {
            check(channel, json!({}), &["+14155550123"]);
        }
        check(Channel::Telegram, json!({}), &[]);
        check(Channel::Telegram, json!({"telegram_chat_id": "@someone"}), &["@someone"]);
        check(Channel::Telegram, json!({"telegram_chat_id": -100_123}), &["-100123"]);
        for nonsense in [json!("not a chat"), json!(1.5), json!(true), json!({"id": 1})] {
            check(Channel::Telegram, json!({"telegram_chat_id": nonsense}), &[]);
        }
        check(Channel::Push, json!({"push_token": "t1"}), &["t1"]);
        check(Channel::Push, json!({"push_token": ["t1", "", "a b", "t2"]}), &["t1", "t2"]);
    }

    #[test]
    fn dead_push_tokens_leave_a_contact_and_nothing_else_does() {
        let without = |tokens: Value, dead: &[&str]| {
            let attributes = json!({"push_token": tokens, "plan": "pro"}).as_object().cloned().unwrap();
            let contact = Contact { attributes: attributes.into(), ..bare() };
            contact.without_push_tokens(dead).map(|contact| {
                assert_eq!(contact.attributes["plan"], "pro");
                contact.attributes.get("push_token").cloned()
            })
        };
        assert_eq!(without(json!(["a", "b", 7, "a"]), &["a"]), Some(Some(json!(["b", 7]))));
        assert_eq!(without(json!(["a", "b"]), &["b", "a"]), Some(None));
        assert_eq!(without(json!(["a", 7]), &["7"]), Some(Some(json!(["a"]))));
        assert_eq!(without(json!("a"), &["a", "x"]), Some(None));
        for (tokens, dead) in [(json!(["a"]), "A"), (json!("a"), "b"), (json!([]), "a"), (json!(null), "a")] {
            assert_eq!(without(tokens, &[dead]), None);
        }
        assert!(bare().without_push_tokens(&["a"]).is_none());
    }

    #[test]
    fn a_contact_without_an_address_has_none() {
        assert!(Channel::ALL.iter().all(|channel| bare().addresses(*channel, ViberService::Bot).is_empty()));
        assert!(bare().all_addresses().is_empty());
    }
}
