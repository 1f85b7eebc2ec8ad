//! Messages of ours as they are put together from another service's, and what their members are called there.

use bytes::Bytes;
use messaging_core::violation::{At, FieldCode, Violations};
use messaging_engine::Error;
use serde_json::{Map, Value, json};

use super::members::Person;

/// Bytes that the messages of one request may come to, each with what it shares with others.
pub(super) const MAX_BYTES: usize = 25 << 20;

/// The most that a request names; those of ours take as many.
pub(super) const MAX_MESSAGES: usize = 100;

/// One message.
#[derive(Debug, Clone, Default)]
pub(super) struct Translation {
    message: Map<String, Value>,
    /// Pointers into the message, each with the one into the body that it comes from.
    names: Vec<(String, String)>,
    /// Where the message stands in the body.
    at: String,
}

impl Translation {
    /// An email that stands at a pointer.
    pub(super) fn email(at: impl Into<String>) -> Self {
        let message = Map::from_iter([("channel".to_owned(), json!("email"))]);
        Self { message, names: Vec::new(), at: at.into() }
    }

    /// Sets a member, which stands at `from`.
    pub(super) fn put(&mut self, member: &str, value: impl Into<Value>, from: impl Into<String>) {
        self.names.push((format!("/{member}"), from.into()));
        self.message.insert(member.to_owned(), value.into());
    }

    /// Sets a member if there is a value for it.
    pub(super) fn put_some(&mut self, member: &str, value: Option<impl Into<Value>>, from: impl Into<String>) {
        if let Some(value) = value {
            self.put(member, value, from);
        }
    }

    /// Sets a member to a list whose items each stand somewhere.
    pub(super) fn put_list(&mut self, member: &str, items: Vec<(String, Value)>) {
        if items.is_empty() {
            return;
        }
        let mut values = Vec::with_capacity(items.len());
        for (index, (from, value)) in items.into_iter().enumerate() {
            self.names.push((format!("/{member}/{index}"), from));
            values.push(value);
        }
        self.message.insert(member.to_owned(), Value::Array(values));
    }

    /// Calls a place within a member by the name that it has in the body.
    pub(super) fn name(&mut self, ours: String, from: String) {
        self.names.push((ours, from));
    }

    /// Sets who it is from.
    pub(super) fn put_sender(&mut self, sender: Person, from: &str) {
        self.put("from_email", sender.address, from);
        self.put_some("from_name", sender.name, from);
    }

    /// Sets to whom it goes: the first, and the others as copies that everybody sees. Our recipients have no display names.
    pub(super) fn put_recipients(&mut self, to: Vec<(String, Person)>, cc: Vec<(String, Person)>) {
        let mut all = to.into_iter();
        if let Some((from, first)) = all.next() {
            self.put("to", first.address, from);
        }
        self.put_list("cc", all.chain(cc).map(|(from, person)| (from, person.address.into())).collect());
    }

    /// Sets where replies go; there is room for one address.
    pub(super) fn put_reply_to(&mut self, people: Vec<(String, Person)>, faults: &mut Violations) {
        for (index, (from, person)) in people.into_iter().enumerate() {
            if index == 0 {
                self.put("reply_to", person.address, from);
            } else {
                faults.add(from, FieldCode::TooManyItems, "replies go to one address");
            }
        }
    }

    /// Joins what comes from elsewhere, which stays where both have a member.
    pub(super) fn with_shared(mut self, shared: &Self) -> Self {
        for (name, value) in &shared.message {
            if !self.message.contains_key(name) {
                self.message.insert(name.clone(), value.clone());
                let of_member = |ours: &str| ours[1..].split('/').next() == Some(name);
                self.names.extend(shared.names.iter().filter(|(ours, _)| of_member(ours)).cloned());
            }
        }
        self
    }

    /// Bytes that it comes to as JSON.
    pub(super) fn length(&self) -> usize {
        serde_json::to_string(&self.message).map_or(0, |text| text.len())
    }

    /// Where a place of the message stands in the body.
    fn origin(&self, ours: &str) -> String {
        let within = |outer: &str| ours.strip_prefix(outer).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let named = self.names.iter().filter_map(|(ours, from)| Some((ours.len(), from, within(ours)?)));
        match named.max_by_key(|(length, ..)| *length) {
            Some((_, from, rest)) => format!("{from}{rest}"),
            None => format!("{}{ours}", self.at),
        }
    }
}

/// A request in our words.
#[derive(Debug)]
pub(crate) struct Translated {
    messages: Vec<Translation>,
    body: Bytes,
    check_only: bool,
}

impl Translated {
    /// The request for messages, unless something is wrong with what they are made of.
    pub(super) fn new(messages: Vec<Translation>, check_only: bool, faults: Violations) -> Result<Self, Error> {
        faults.into_result()?;
        let bodies: Vec<_> = messages.iter().map(|translation| &translation.message).collect();
        let body = serde_json::to_vec(&json!({"messages": bodies, "check_only": check_only}));
        Ok(Self { messages, body: body.map_err(Error::internal)?.into(), check_only })
    }

    /// Whether the messages are only to be looked at.
    pub(super) const fn check_only(&self) -> bool {
        self.check_only
    }

    /// The body for the operation.
    pub(crate) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// A refusal of ours about the members that were sent.
    pub(super) fn named_back(&self, error: Error) -> Error {
        let Error::Validation(violations) = error else { return error };
        let mut named = Violations::new();
        for violation in violations.as_slice() {
            match &violation.at {
                At::Pointer(pointer) => named.add(self.origin(pointer), violation.code, &violation.message),
                At::Parameter(name) => named.add_parameter(name, violation.code, &violation.message),
            }
        }
        Error::Validation(named)
    }

    /// Where a place of the request stands in the body that was sent.
    fn origin(&self, pointer: &str) -> String {
        let of_message = || {
            let (index, rest) = pointer.strip_prefix("/messages/")?.split_once('/')?;
            Some(self.messages.get(index.parse::<usize>().ok()?)?.origin(&format!("/{rest}")))
        };
        of_message().unwrap_or_default()
    }
}

/// The name of a member for people: `personalizations.0.to`.
pub(super) fn dotted(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(messaging_core::violation::unescape);
    parts.collect::<Vec<_>>().join(".")
}
