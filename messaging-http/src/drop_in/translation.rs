//! Messages translated from those of another service, with the original names of their members.

use bytes::Bytes;
use messaging_core::violation::{At, FieldCode, Violations};
use messaging_engine::Error;
use serde_json::{Map, Value, json};

use super::members::Person;

/// Bytes of the messages of one request, at most; shared content counts for each message.
pub(super) const MAX_BYTES: usize = 25 << 20;

/// Messages of one request, at most; the operation accepts as many.
pub(super) const MAX_MESSAGES: usize = 100;

/// One message.
#[derive(Debug, Clone, Default)]
pub(super) struct Translation {
    message: Map<String, Value>,
    /// Pointers into the message, each with the one into the body that it comes from.
    names: Vec<(String, String)>,
    /// Pointer of the message in the body.
    at: String,
}

impl Translation {
    /// An email at a pointer of the body.
    pub(super) fn email(at: impl Into<String>) -> Self {
        let message = Map::from_iter([("channel".to_owned(), json!("email"))]);
        Self { message, names: Vec::new(), at: at.into() }
    }

    /// Sets a member that comes from the pointer `from`.
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

    /// Sets a member to a list whose items come from pointers of their own.
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

    /// Maps a pointer of the message to its pointer in the body.
    pub(super) fn name(&mut self, ours: String, from: String) {
        self.names.push((ours, from));
    }

    /// Sets the sender.
    pub(super) fn put_sender(&mut self, sender: Person, from: &str) {
        self.put("from_email", sender.address, from);
        self.put_some("from_name", sender.name, from);
    }

    /// Sets the recipients: the first, and the others as visible copies. Recipients have no display names here.
    pub(super) fn put_recipients(&mut self, to: Vec<(String, Person)>, cc: Vec<(String, Person)>) {
        let mut all = to.into_iter();
        if let Some((from, first)) = all.next() {
            self.put("to", first.address, from);
        }
        self.put_list("cc", all.chain(cc).map(|(from, person)| (from, person.address.into())).collect());
    }

    /// Sets the reply address; there is room for one.
    pub(super) fn put_reply_to(&mut self, people: Vec<(String, Person)>, faults: &mut Violations) {
        for (index, (from, person)) in people.into_iter().enumerate() {
            if index == 0 {
                self.put("reply_to", person.address, from);
            } else {
                faults.add(from, FieldCode::TooManyItems, "replies go to one address");
            }
        }
    }

    /// Adds members of a shared message; those that the message has itself stay.
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

    /// Length of the message as JSON, in bytes.
    pub(super) fn length(&self) -> usize {
        serde_json::to_string(&self.message).map_or(0, |text| text.len())
    }

    /// Returns the pointer in the body that a pointer of the message comes from.
    fn origin(&self, ours: &str) -> String {
        let within = |outer: &str| ours.strip_prefix(outer).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let named = self.names.iter().filter_map(|(ours, from)| Some((ours.len(), from, within(ours)?)));
        match named.max_by_key(|(length, ..)| *length) {
            Some((_, from, rest)) => format!("{from}{rest}"),
            None => format!("{}{ours}", self.at),
        }
    }
}

/// A translated request.
#[derive(Debug)]
pub(crate) struct Translated {
    messages: Vec<Translation>,
    body: Bytes,
    check_only: bool,
}

impl Translated {
    /// The request for messages; fails if there are errors in the original.
    pub(super) fn new(messages: Vec<Translation>, check_only: bool, faults: Violations) -> Result<Self, Error> {
        faults.into_result()?;
        let bodies: Vec<_> = messages.iter().map(|translation| &translation.message).collect();
        let body = serde_json::to_vec(&json!({"messages": bodies, "check_only": check_only}));
        Ok(Self { messages, body: body.map_err(Error::internal)?.into(), check_only })
    }

    /// Returns true if the messages are only checked, not sent.
    pub(super) const fn check_only(&self) -> bool {
        self.check_only
    }

    /// The body for the operation.
    pub(crate) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Maps the pointers of an error to those of the original body.
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

    /// Returns the pointer in the original body that a pointer of the request comes from.
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
