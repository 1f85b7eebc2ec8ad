//! The values that a template finds under its names when it is rendered.
//!
//! Contract section 11: a name stands for the value in the request, else for the contact's attribute of that name, else
//! for nothing. Names of the system come before both, so that no request can replace the link in `unsubscribe_url`;
//! only a system name that has no value in this rendering can be given by the request.

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

/// The name under which the compiled HTML finds the preheader.
pub(super) const PREHEADER: &str = "preheader_of_template";

/// The values of one rendering.
#[derive(Clone, Default)]
pub struct Values {
    /// Values of the system names.
    system: BTreeMap<&'static str, Value>,
    /// Values of the request.
    given: Arc<BTreeMap<String, Value>>,
    /// Attributes of the contact.
    attributes: Arc<BTreeMap<String, Value>>,
    /// True if the values of the request exceed [`MAX_GIVEN`]; `given` is empty then.
    is_too_large: bool,
}

/// Maximum memory, in bytes, that the values of a request may take inside the template engine, as [`estimated_bytes`]
/// estimates it.
const MAX_GIVEN: usize = 32 << 20;

/// Estimate of the memory, in bytes, that a value takes inside the template engine.
fn estimated_bytes(json: &Json) -> usize {
    match json {
        Json::Array(items) => 64 + items.iter().map(|item| 24 + estimated_bytes(item)).sum::<usize>(),
        Json::Object(members) => {
            160 + members.iter().map(|(name, member)| 200 + name.len() + estimated_bytes(member)).sum::<usize>()
        }
        Json::String(text) => text.len(),
        _ => 0,
    }
}

/// A contact as a template shows it.
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
    /// The contact with its addresses in clear.
    pub fn clear(contact: &'a Contact) -> Self {
        Self::shown(contact, Redactor::new(true))
    }

    /// The contact with its addresses as the redactor of one reader shows them.
    pub fn shown(contact: &'a Contact, redactor: Redactor) -> Self {
        let shown = |channel, text: &Option<String>| text.clone().map(|text| redactor.address(channel, text));
        Self { contact, email: shown(Channel::Email, &contact.email), phone: shown(Channel::Sms, &contact.phone) }
    }
}

/// Converts JSON to a value of the template engine.
fn value(json: &Json) -> Value {
    Value::from(Serde(json))
}

/// Converts the members of an object, without those that are null.
fn values(members: &Map<String, Json>) -> BTreeMap<String, Value> {
    // A member that is null counts as not given, so that the contact's attribute stands in.
    members.iter().filter(|(_, member)| !member.is_null()).map(|(name, member)| (name.clone(), value(member))).collect()
}

impl Values {
    /// The values that a request gives. If they are too large, none is kept and every rendering with them fails.
    pub fn new(given: &Map<String, Json>) -> Self {
        // The request itself is in memory already; a converted copy of it could be many times as large, so none is
        // made.
        if given.values().map(estimated_bytes).sum::<usize>() > MAX_GIVEN {
            return Self { is_too_large: true, ..Self::default() };
        }
        Self { given: Arc::new(values(given)), ..Self::default() }
    }

    /// Adds the contact: its fields and attributes as members of the system name `contact`, and each attribute under
    /// its own name.
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

    /// Adds a system name whose value is a text.
    pub fn system(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.system.insert(name, Value::from(text.into()));
        self
    }

    /// Adds a system name whose value is an object with one member.
    pub fn system_member(self, name: &'static str, member: &'static str, text: impl Into<String>) -> Self {
        self.system_members(name, [(member, text.into())])
    }

    /// Adds a system name whose value is an object with these members.
    pub fn system_members<const N: usize>(mut self, name: &'static str, members: [(&'static str, String); N]) -> Self {
        self.system.insert(name, Value::from_pairs(members.map(|(member, text)| (member, Value::from(text)))));
        self
    }

    /// Sets the work that this rendering may do, in the unit of `Limits::work`.
    pub(super) fn set_work(&mut self, work: u64) {
        self.system.insert(WORK, Value::from(work));
    }

    /// Sets the preheader, as HTML that is not displayed: mail programs show the first text of the HTML after the
    /// subject in their list of messages.
    pub(super) fn set_preheader(&mut self, text: &str) {
        let mut html = String::from(
            "<div style=\"display:none;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all\">",
        );
        // Writing into a string does not fail.
        let _ = escape::html(&mut html, text);
        html.push_str("</div>");
        self.system.insert(PREHEADER, Value::from_safe_string(html));
    }

    /// True if the values of the request exceed [`MAX_GIVEN`]: the rendering has to fail.
    pub(super) const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// True if a path like `order.id` has a value other than null.
    pub fn has_value_at(&self, path: &str) -> bool {
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

    /// The value of a name: that of the system, else that of the request, else the attribute of the contact.
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
        // Templates cannot list the names.
        Enumerator::NonEnumerable
    }
}

/// Shows no values, because they are personal data.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values(…)")
    }
}
