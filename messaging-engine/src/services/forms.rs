//! Subscription forms: their pages, and submissions to them.
//!
//! Contract section 23, "Forms". The answer to a valid submission depends on the form alone: neither the answer nor its
//! duration (one commit) reveals whether an address is known, suppressed or new. A submission fills in missing data of
//! a contact and changes none, because its sender has not proved yet that the address is theirs.

use std::net::IpAddr;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::contact::identity_resolver::{IdentityResolver, UpsertContext};
use messaging_core::domain::audience::contact::input::{ConsentInput, ContactInput};
use messaging_core::domain::audience::contact::{Contact, Identifier, IdentifierKind};
use messaging_core::domain::audience::custom_field::{FieldType, FieldTypes};
use messaging_core::domain::audience::form::{FieldTarget, Form, LEAST_TIME, LONGEST_TIME};
use messaging_core::domain::audience::list::{ContactList, OptIn};
use messaging_core::domain::audience::reader_texts::Language;
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::{Channel, address};
use messaging_core::domain::security::proof_of_work::is_proved;
use messaging_core::ids::{ContactId, FormId, WorkspaceId};
use messaging_core::input;
use messaging_core::patch::Patch;
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::violation::{FieldCode, Violations};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::services::subscribing::{Asked, Reader, record};
use crate::services::upserting::writes;

/// Largest number of characters of an answer to a field.
const MAX_ANSWER: usize = 1000;

/// A form with the data of its page.
#[derive(Debug, Clone)]
pub struct FormPage {
    /// The form.
    pub form: Form,
    /// Public lists of the form.
    pub lists: Vec<ContactList>,
    /// Name of the workspace.
    pub sender: String,
    /// Token that holds the time when the page was made.
    pub started: String,
    /// Bits of proof of work on that token that a submission needs; 0 for none.
    pub pow_bits: u32,
}

impl FormPage {
    /// Returns true if a list of the form has double opt-in, so that its subscribers are sent a confirmation.
    pub fn is_double(&self) -> bool {
        self.lists.iter().any(|list| list.opt_in == OptIn::Double)
    }
}

/// A submission of a form.
#[derive(Debug, Clone, Default)]
pub struct FormPost {
    /// Pairs of a field's name and its answer.
    pub answers: Vec<(String, String)>,
    /// Content of the hidden field that people leave empty.
    pub trap: String,
    /// Token of the page; `None` if the submission came from no page of ours.
    pub started: Option<String>,
    /// Number that proves the work; see [`is_proved`].
    pub proof: Option<String>,
    /// True if the submission must come from a page of ours, after a wait on it.
    pub needs_page: bool,
    /// Language of the page.
    pub language: Option<Language>,
}

/// Result of a submission.
#[derive(Debug, Clone)]
pub enum Posted {
    /// Answered as accepted; a submission that filled the trap field was dropped.
    Taken,
    /// The page token is missing although required, or invalid, or younger than `LEAST_TIME`, or older than
    /// `LONGEST_TIME`.
    OutOfTime,
    /// The proof of work is missing or wrong, or its page was submitted already.
    Unproved,
    /// Answers are missing or malformed; the violations have the JSON pointers of their fields.
    Invalid(Violations),
}

impl App {
    /// Returns the address of a form.
    pub(crate) fn form_url(&self, workspace: WorkspaceId, form: FormId) -> String {
        let base = self.settings().public_url.trim_end_matches('/');
        format!("{base}/f/{}", self.link_key().form(workspace, form))
    }

    /// Returns the form of a token; `None` if the token is invalid, the form is deleted or none of its lists is public.
    pub async fn form_page(&self, token: &str) -> Result<Option<FormPage>, Error> {
        let Some((workspace, id)) = self.link_key().read_form(token) else { return Ok(None) };
        let Some(Stored { record: form, .. }) = self.store().form(workspace, id).await? else { return Ok(None) };
        let lists: Vec<_> =
            self.public_lists(workspace).await?.into_iter().filter(|list| form.list_ids.contains(&list.id)).collect();
        if lists.is_empty() {
            return Ok(None);
        }
        let mut salt = [0; 8];
        self.entropy().fill(&mut salt);
        let started = self.link_key().form_page(id, self.now(), salt);
        let (sender, pow_bits) = (self.sender_name(workspace).await?, self.settings().pow_bits);
        Ok(Some(FormPage { form, lists, sender, started, pow_bits }))
    }

    /// Handles a submission of a form. Too many from one caller or for one address are [`Error::RateLimited`].
    pub async fn post_to_form(&self, page: &FormPage, post: &FormPost, reader: &Reader) -> Result<Posted, Error> {
        let limited = |wait: std::time::Duration| Error::RateLimited { retry_after: wait.as_secs().max(1) };
        self.0.form_posts.admit_caller(reader.ip.unwrap_or(IpAddr::from([0; 4])), self.monotonic()).map_err(limited)?;
        if !post.trap.is_empty() {
            // A bot filled in the hidden field; it gets the answer of a success.
            return Ok(Posted::Taken);
        }
        if !self.is_in_time(page.form.id, post) {
            return Ok(Posted::OutOfTime);
        }
        let pow_bits = self.settings().pow_bits;
        let claimed = post.started.as_deref().zip(post.proof.as_deref());
        if pow_bits > 0 && !claimed.is_some_and(|(started, proof)| is_proved(started, proof, pow_bits)) {
            return Ok(Posted::Unproved);
        }
        let types = self.field_types(page.form.workspace_id).await?;
        let answers = match read_answers(&page.form, post, &types) {
            Ok(answers) => answers,
            Err(violations) => return Ok(Posted::Invalid(violations)),
        };
        let spelled = address::normalize(Channel::Email, &answers.email);
        self.0.form_posts.admit_address(&spelled, self.monotonic()).map_err(limited)?;
        if let Some((started, _)) = claimed.filter(|_| pow_bits > 0)
            && !self.0.used_pages.take(started)
        {
            return Ok(Posted::Unproved);
        }
        let subscribed = self.until_committed(|| self.subscribe(page, &answers, reader, &types)).await;
        match subscribed {
            Ok(()) => Ok(Posted::Taken),
            Err(Error::Validation(violations)) => Ok(Posted::Invalid(violations)),
            Err(error) => Err(error),
        }
    }

    fn is_in_time(&self, form: FormId, post: &FormPost) -> bool {
        match &post.started {
            None => !post.needs_page,
            Some(token) => self.link_key().read_form_page(form, token).is_some_and(|began| {
                let now = self.now();
                began + LEAST_TIME <= now && now <= began + LONGEST_TIME
            }),
        }
    }

    /// Returns the changes by which a submission subscribes an address.
    async fn subscribe(
        &self,
        page: &FormPage,
        answers: &Answers,
        reader: &Reader,
        types: &FieldTypes,
    ) -> Result<(Changes, ()), Error> {
        let (workspace, now) = (page.form.workspace_id, self.now());
        let spelled = address::normalize(Channel::Email, &answers.email);
        let named = [Identifier::of_address(Channel::Email, &answers.email)];
        let phone = answers.phone.as_deref().and_then(|phone| Identifier::of_address(Channel::Sms, phone));
        let contacts =
            self.store().contacts_identified(workspace, named.into_iter().flatten().chain(phone).collect()).await?;
        let has_email = |one: &&Stored<Contact>| one.record.email.as_deref() == Some(spelled.as_str());
        let found = contacts.iter().find(has_email).cloned();
        let known = found.as_ref().map(|stored| stored.record.clone());
        let has_phone = |one: &Stored<Contact>| one.record.phone.is_some() && one.record.phone == answers.phone;
        let phone_is_free = !contacts.iter().any(has_phone);
        let needs_proof = self.needs_proof(workspace, known.as_ref(), &spelled).await?;
        let agrees = !needs_proof && page.lists.iter().any(|list| list.opt_in == OptIn::Single);
        let sent = answers.input(known.as_ref(), phone_is_free, agrees);
        let (sent, faults) = input::made_body(sent)?;
        let mut identities = IdentityResolver::new(contacts, Vec::new(), types);
        let on = UpsertContext { workspace_id: workspace, new_id: self.new_id(now), now };
        let mut changes = Changes::default();
        let decision = identities.upsert(sent, faults, &[IdentifierKind::Email], on)?;
        let (contact, created) = (std::sync::Arc::clone(&decision.contact), decision.created);
        if let Some(Stored { record, revision }) = found.filter(|_| decision.put_expectation.is_none()) {
            // Rewrites the contact unchanged, so that the commit conflicts if the subscriber withdraws consent
            // meanwhile.
            changes.push(Write::put_contact(record, Expect::Revision(revision)));
        }
        changes.extend(writes(decision, now));
        let ids: Vec<_> = page.lists.iter().map(|list| list.id).collect();
        let records = self.records(workspace, &ids, &[contact.id]).await?;
        let mut asked = Asked::default();
        for list in &page.lists {
            if contact.list_ids.contains(&list.id) {
                // The contact is in the list, so the job sends nothing: it is added so that the answer takes equally
                // long whether or not the address is known.
                asked.add(contact.id, list.id);
                continue;
            }
            let known = records.get(&(list.id, contact.id));
            let has_left = known.is_some_and(|stored| stored.record.status == SubscriptionStatus::Left);
            let is_confirmed = list.opt_in == OptIn::Single && !needs_proof && !has_left;
            let proof = Proof { form_id: Some(page.form.id), ..reader.proof(SubscriptionAct::Form, now) };
            if is_confirmed {
                let ids = (workspace, list.id, contact.id);
                changes.push(record(ids, known, SubscriptionStatus::Confirmed, proof));
                changes.push(Write::JoinList(workspace, list.id, contact.id, now));
                continue;
            }
            // A contact that has left the list, or is asked already, keeps that status until the link is followed.
            if known.is_none() {
                changes.push(unconfirmed((workspace, list, contact.id), proof, created));
            }
            asked.add(contact.id, list.id);
        }
        changes.extend(asked.jobs(self, workspace, Some(page.form.id)));
        Ok((changes, ()))
    }

    /// Returns true if the address has unsubscribed, so that only a confirmation link subscribes it again.
    async fn needs_proof(
        &self,
        workspace: WorkspaceId,
        known: Option<&Contact>,
        address: &String,
    ) -> Result<bool, StoreError> {
        if known.is_some_and(|contact| contact.consent.marketing_email == Some(false)) {
            return Ok(true);
        }
        let listed = self.store().suppressed(workspace, Channel::Email, std::slice::from_ref(address)).await?;
        Ok(listed.iter().any(|one| one.record.reason == SuppressionReason::Unsubscribe))
    }
}

/// Returns the write that adds an unconfirmed subscription of a contact to a list.
fn unconfirmed(
    (workspace, list, contact): (WorkspaceId, &ContactList, ContactId),
    proof: Proof,
    brought_contact: bool,
) -> Write {
    let new = Subscription::new((workspace, list.id, contact), SubscriptionStatus::Unconfirmed, proof);
    Write::PutSubscription(Box::new(Subscription { brought_contact, ..new }), Expect::Absent)
}

/// Parsed answers to a form.
#[derive(Debug, Default)]
struct Answers {
    email: String,
    phone: Option<String>,
    attributes: Map<String, Value>,
    locale: Option<&'static str>,
}

impl Answers {
    /// Returns the contact data of the answers: only what is missing in the known contact.
    fn input(&self, known: Option<&Contact>, phone_is_free: bool, agrees: bool) -> ContactInput {
        let mut sent = ContactInput::default();
        sent.email = Patch::Set(self.email.clone());
        let lacks_phone = phone_is_free && known.is_none_or(|contact| contact.phone.is_none());
        if let Some(phone) = self.phone.clone().filter(|_| lacks_phone) {
            sent.phone = Patch::Set(phone);
        }
        let is_new = |key: &String| known.is_none_or(|contact| !contact.attributes.contains_key(key));
        let missing: Map<_, _> = self
            .attributes
            .iter()
            .filter(|(key, _)| is_new(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !missing.is_empty() {
            sent.attributes = Patch::Set(missing);
        }
        if let Some(locale) = self.locale.filter(|_| known.is_none()) {
            sent.locale = Patch::Set(locale.to_owned());
        }
        if agrees && known.is_none_or(|contact| contact.consent.marketing_email.is_none()) {
            let mut consent = ConsentInput::default();
            consent.marketing_email = Patch::Set(true);
            sent.consent = Patch::Set(consent);
        }
        sent
    }
}

/// Parses the answers to the fields of a form; violations point at the names of fields that are missing or malformed.
fn read_answers(form: &Form, post: &FormPost, types: &FieldTypes) -> Result<Answers, Violations> {
    let mut answers = Answers { locale: post.language.map(Language::code), ..Answers::default() };
    let mut violations = Violations::new();
    for field in &form.fields {
        let found = post.answers.iter().find(|(name, _)| *name == field.field);
        let text = found.map_or("", |(_, text)| text.trim());
        let pointer = format!("/{}", field.field);
        if text.is_empty() {
            if field.required {
                violations.add(pointer, FieldCode::Required, "is required");
            }
            continue;
        }
        if text.chars().count() > MAX_ANSWER || text.contains('\0') {
            violations.add(pointer, FieldCode::TooLong, "must have at most 1000 characters");
            continue;
        }
        match field.target() {
            Some(FieldTarget::Email) => {
                let rule = "not an email address";
                address::check_sent(Channel::Email, text, &pointer, format_args!("{rule}"), &mut violations);
                text.clone_into(&mut answers.email);
            }
            Some(FieldTarget::Phone) => {
                let rule = "not a phone number in E.164";
                address::check_sent(Channel::Sms, text, &pointer, format_args!("{rule}"), &mut violations);
                answers.phone = Some(text.to_owned());
            }
            Some(FieldTarget::Attribute(key)) => match value_of(types.get(key).copied(), text) {
                Some(value) => drop(answers.attributes.insert(key.to_owned(), value)),
                None => violations.add(pointer, FieldCode::InvalidType, "does not have the type of the custom field"),
            },
            None => {}
        }
    }
    if violations.is_empty() { Ok(answers) } else { Err(violations) }
}

/// Parses an answer as a value of the declared type.
fn value_of(declared: Option<FieldType>, text: &str) -> Option<Value> {
    Some(match declared {
        Some(FieldType::Number) => Value::Number(text.parse().ok()?),
        Some(FieldType::Boolean) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Value::Bool(true),
            "false" | "no" | "off" | "0" => Value::Bool(false),
            _ => return None,
        },
        Some(FieldType::StringArray) => Value::Array(vec![Value::String(text.to_owned())]),
        _ => Value::String(text.to_owned()),
    })
}
