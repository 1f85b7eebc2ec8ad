//! The values that a rendering finds under its names.
//!
//! Contract section 11: what the request gives, then the contact's attributes by name, then nothing. The
//! system's names come first, so that no request can put another link where `unsubscribe_url` stands; one
//! for which this rendering has no value may be given by the request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, Serde};
use serde_json::{Map, Value as Json};

use super::budget::WORK;
use super::escape;
use crate::domain::audience::contact::Contact;
use crate::domain::channel::Channel;
use crate::domain::security::redaction::Redactor;

/// The name under which the HTML finds the preheader.
pub(super) const PREHEADER: &str = "preheader_of_template";

/// The values of one rendering.
#[derive(Clone, Default)]
pub struct Values {
    system: BTreeMap<&'static str, Value>,
    given: Arc<BTreeMap<String, Value>>,
    attributes: Arc<BTreeMap<String, Value>>,
    is_too_large: bool,
}

/// The bytes that the values of a request may take inside the engine.
const MAX_GIVEN: usize = 32 << 20;

/// What a value takes inside the engine, about.
fn weight(json: &Json) -> usize {
    match json {
        Json::Array(items) => 64 + items.iter().map(|item| 24 + weight(item)).sum::<usize>(),
        Json::Object(members) => {
            160 + members.iter().map(|(name, member)| 200 + name.len() + weight(member)).sum::<usize>()
        }
        Json::String(text) => text.len(),
        _ => 0,
    }
}

/// What a contact shows to a template.
#[derive(Debug, Clone)]
pub struct ContactValues<'a> {
    /// The contact.
    pub contact: &'a Contact,
    /// Its email address, as the caller may see it.
    pub email: Option<String>,
    /// Its phone number, as the caller may see it.
    pub phone: Option<String>,
}

impl<'a> ContactValues<'a> {
    /// A contact in clear.
    pub fn clear(contact: &'a Contact) -> Self {
        Self::shown(contact, Redactor::new(true))
    }

    /// A contact whose addresses are shown to one reader.
    pub fn shown(contact: &'a Contact, redactor: Redactor) -> Self {
        let shown = |channel, text: &Option<String>| text.clone().map(|text| redactor.address(channel, text));
        Self { contact, email: shown(Channel::Email, &contact.email), phone: shown(Channel::Sms, &contact.phone) }
    }
}

/// JSON as the engine has it.
fn value(json: &Json) -> Value {
    Value::from(Serde(json))
}

fn values(members: &Map<String, Json>) -> BTreeMap<String, Value> {
    // A member that is null counts as not given, so that the contact's attribute stands in.
    members.iter().filter(|(_, member)| !member.is_null()).map(|(name, member)| (name.clone(), value(member))).collect()
}

impl Values {
    /// The values of a request.
    pub fn new(given: &Map<String, Json>) -> Self {
        // The request has them already: what would take too much is not made anew, and no part is rendered.
        if given.values().map(weight).sum::<usize>() > MAX_GIVEN {
            return Self { is_too_large: true, ..Self::default() };
        }
        Self { given: Arc::new(values(given)), ..Self::default() }
    }

    /// Adds what is known of the contact.
    pub fn contact(mut self, shown: &ContactValues<'_>) -> Self {
        let contact = shown.contact;
        let attributes = values(&contact.attributes);
        let members = [
            ("id", Some(contact.id.to_string())),
            ("email", shown.email.clone()),
            ("phone", shown.phone.clone()),
            ("external_id", contact.external_id.clone()),
            ("locale", contact.locale.clone()),
        ];
        let members = members.into_iter().filter_map(|(name, text)| Some((name, Value::from(text?))));
        let all = attributes.iter().map(|(key, value)| (key.clone(), value.clone()));
        let all = members.chain([("attributes", Value::from_pairs(all))]);
        self.system.insert("contact", Value::from_pairs(all));
        self.attributes = Arc::new(attributes);
        self
    }

    /// Adds a system name.
    pub fn system(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.system.insert(name, Value::from(text.into()));
        self
    }

    /// Adds a system name with one member.
    pub fn system_member(self, name: &'static str, member: &'static str, text: impl Into<String>) -> Self {
        self.system_members(name, [(member, text.into())])
    }

    /// Adds a system name with its members.
    pub fn system_members<const N: usize>(mut self, name: &'static str, members: [(&'static str, String); N]) -> Self {
        self.system.insert(name, Value::from_pairs(members.map(|(member, text)| (member, Value::from(text)))));
        self
    }

    pub(super) fn set_work(&mut self, work: u64) {
        self.system.insert(WORK, Value::from(work));
    }

    /// Hides the preheader at the beginning of the HTML: a mail program shows it after the subject.
    pub(super) fn set_preheader(&mut self, text: &str) {
        let mut html = String::from(
            "<div style=\"display:none;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all\">",
        );
        // Writing into a string does not fail.
        let _ = escape::html(&mut html, text);
        html.push_str("</div>");
        self.system.insert(PREHEADER, Value::from_safe_string(html));
    }

    /// Whether the request gave more than a rendering may hold.
    pub(super) const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Whether there is a value for a path like `order.id`.
    pub fn has(&self, path: &str) -> bool {
        let mut names = path.split('.');
        let Some(mut current) = names.next().and_then(|root| self.find(root)) else { return false };
        for name in names {
            match current.get_attr(name) {
                Ok(member) if !member.is_undefined() => current = member,
                _ => return false,
            }
        }
        !current.is_none()
    }

    fn find(&self, name: &str) -> Option<Value> {
        let known = self.system.get(name).or_else(|| self.given.get(name)).or_else(|| self.attributes.get(name));
        known.cloned()
    }
}

impl Object for Values {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.find(key.as_str()?)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // Nothing lists the names of a rendering.
        Enumerator::NonEnumerable
    }
}

/// Values are personal: nothing prints them.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values(…)")
    }
}
