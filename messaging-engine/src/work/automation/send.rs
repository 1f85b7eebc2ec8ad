//! Send nodes: whether a message is made now, later or never, and the message.
//!
//! Contract sections 12.3, 13.2 and 13.4. Marketing is judged by the rule of campaigns
//! ([`recipient_time::look`]) when the run stands at the node, and once more right before the attempt
//! ([`marketing_look`](crate::work::marketing_look)).

use messaging_core::DomainError;
use messaging_core::changes::Write;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::automation::graph::Send;
use messaging_core::domain::automation::run::{Held, Run};
use messaging_core::domain::automation::step::{Acted, SkipReason};
use messaging_core::domain::campaign::audience::agrees;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize;
use messaging_core::domain::delivery::recipient_time::{self, Recipient, SuppressCause, Terms, Verdict};
use messaging_core::domain::message::content;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::input;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use super::people::{Person, told};
use crate::app::App;
use crate::error::Error;
use crate::jobs::deliver_message::MarketingTerms;
use crate::services::acceptance::{OfAutomation, SentMessage};
use crate::services::templates::Unrendered;
use crate::services::texts::{TextFault, values_of_run};

/// A hold without an end is looked at again after this.
const HELD_FOR: std::time::Duration = std::time::Duration::from_mins(1);
/// Characters of a sender's display name; more are cut.
const LONGEST_NAME: usize = 128;

/// A send that something has to be decided about.
pub(super) struct Sending<'a> {
    pub(super) app: &'a App,
    pub(super) run: &'a Run,
    pub(super) send: &'a Send,
    pub(super) person: &'a Person,
    /// The present, or the later moment that the walk is at.
    pub(super) now: Timestamp,
}

/// The channel of a send and the addresses of the contact there; `None` when its template is gone.
pub(super) async fn addresses(
    app: &App,
    run: &Run,
    send: &Send,
    person: &Person,
) -> Result<Option<(Channel, Vec<String>)>, StoreError> {
    let Some(template) = app.template_head(run.workspace_id, send.template_id).await? else { return Ok(None) };
    let channel = send.channel.unwrap_or(template.channel);
    Ok(Some((channel, app.addresses_of(&person.contact, channel).await?)))
}

impl Sending<'_> {
    /// Decides, and adds the message to the writes if there is one. `listed` says why an address (normalised) is
    /// suppressed.
    pub(super) async fn decide(
        &self,
        listed: impl Fn(Channel, &str) -> Option<SuppressionReason>,
        writes: &mut Vec<Write>,
    ) -> Result<Acted, StoreError> {
        let Some((channel, addresses)) = addresses(self.app, self.run, self.send, self.person).await? else {
            return Ok(Acted::Failed("the template is gone".to_owned()));
        };
        if addresses.is_empty() {
            return Ok(Acted::Skipped(SkipReason::NoAddress));
        }
        let is_marketing = self.send.is_marketing;
        let why = |address: &String| {
            let reason = listed(channel, &normalize(channel, address));
            reason.filter(|reason| is_marketing || reason.stops_transactional())
        };
        // Whoever has several is sent to at the first that may be used.
        let to = addresses.iter().find(|address| why(address).is_none());
        let suppression = if to.is_some() { None } else { addresses.first().and_then(why) };
        if let Some(acted) = self.look(channel, suppression).await? {
            return Ok(acted);
        }
        match to {
            Some(to) => self.message(channel, to, writes).await,
            None => Ok(Acted::Skipped(SkipReason::Suppressed)),
        }
    }

    /// What keeps the message from being made now.
    async fn look(
        &self,
        channel: Channel,
        suppression: Option<SuppressionReason>,
    ) -> Result<Option<Acted>, StoreError> {
        if !self.send.is_marketing {
            return Ok(suppression.map(|_| Acted::Skipped(SkipReason::Suppressed)));
        }
        let (run, contact) = (self.run, &self.person.contact);
        let sends = match self.send.frequency_cap {
            Some(_) => self.app.store().contact_sends(run.workspace_id, contact.id, channel).await?,
            None => None,
        };
        let terms =
            Terms { quiet_hours: self.send.quiet_hours, frequency_cap: self.send.frequency_cap, ..Terms::default() };
        let recipient = Recipient {
            zone: &self.person.zone,
            suppression,
            has_consent: agrees(channel, contact.consent),
            sends: sends.as_ref().map_or(&[], |stored| &stored.record.times),
            cap_since: match run.held {
                Some(Held::Sending { reason: HoldReason::FrequencyCap, since }) => Some(since),
                _ => None,
            },
        };
        Ok(match recipient_time::look(&terms, &recipient, self.now) {
            Verdict::Go => None,
            Verdict::Hold { reason, until } => {
                Some(Acted::Held { reason, until: until.unwrap_or(self.now + HELD_FOR) })
            }
            Verdict::Suppress(cause) => Some(Acted::Skipped(match cause {
                SuppressCause::Listed(_) => SkipReason::Suppressed,
                SuppressCause::NoConsent => SkipReason::NoConsent,
                SuppressCause::FrequencyCap => SkipReason::FrequencyCap,
            })),
        })
    }

    /// Makes the message; what keeps it from being rendered fails the run, not the message.
    async fn message(&self, channel: Channel, to: &str, writes: &mut Vec<Write>) -> Result<Acted, StoreError> {
        let (subject, input) = match self.input(channel, to).await {
            Ok(made) => made,
            Err(TextFault::Busy) => return Err(StoreError::Unavailable),
            Err(TextFault::Broken(why)) => return Ok(Acted::Failed(why)),
        };
        let (input, mut violations) = match input::made_body(input) {
            Ok(made) => made,
            Err(DomainError::Invalid(violations)) => return Ok(Acted::Failed(violations.summary())),
            Err(error) => return Ok(Acted::Failed(error.to_string())),
        };
        let marketing = self
            .send
            .is_marketing
            .then_some(MarketingTerms { quiet_hours: self.send.quiet_hours, frequency_cap: self.send.frequency_cap });
        let sent = SentMessage {
            automation: Some(OfAutomation { id: self.run.automation_id, marketing, subject }),
            ..SentMessage::new(self.run.workspace_id, input)
        };
        let accepted = match self.app.accept_message(sent, self.app.now(), &mut violations).await {
            Ok(accepted) => accepted,
            Err(Error::Validation(violations)) => return Ok(Acted::Failed(told(&violations))),
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => return Err(StoreError::Unavailable),
            Err(Error::Internal(source)) => match source.downcast::<StoreError>() {
                Ok(failed) => return Err(*failed),
                Err(other) => return Ok(Acted::Failed(other.to_string())),
            },
            // Whatever else is refused now is refused the next time as well.
            Err(error) => return Ok(Acted::Failed(error.to_string())),
        };
        for write in &accepted.writes {
            let Write::InsertMessage(message, content) = write else { continue };
            let request = match content::decode(content) {
                Ok(request) => request,
                Err(error) => return Ok(Acted::Failed(error.to_string())),
            };
            match self.app.message_parts(message, &request).await {
                Ok(_) => {}
                Err(Unrendered::Store(error)) => return Err(error),
                Err(Unrendered::Busy) => return Err(StoreError::Unavailable),
                Err(fault) => return Ok(Acted::Failed(fault.to_string())),
            }
        }
        writes.extend(accepted.writes);
        Ok(Acted::Sent(accepted.message_id))
    }

    /// The request, and the subject in place of the template's.
    async fn input(&self, channel: Channel, to: &str) -> Result<(Option<String>, MessageInput), TextFault> {
        let (app, run, send, contact) = (self.app, self.run, self.send, &self.person.contact);
        // Whoever wrote the automation, a message goes to the address itself.
        let clear = Redactor::new(true);
        let values = values_of_run(&run.event, &Map::new(), contact, clear);
        let mut variables = app.render_members(&send.variables, &values).await?;
        let values = values_of_run(&run.event, &variables, contact, clear);
        let subject = match &send.subject_override {
            Some(source) => Some(one_line(&app.render_text(source, &values).await?)),
            None => None,
        };
        variables.insert("event".to_owned(), Value::Object(run.event.clone()));
        let mut input = MessageInput::new(channel, to);
        input.contact_id = Some(contact.id.to_string());
        input.template_id = Some(send.template_id.to_string());
        input.variables = Some(variables);
        if channel == Channel::Email {
            input.from_email.clone_from(&send.from_email);
            input.reply_to.clone_from(&send.reply_to);
            if let Some(source) = &send.from_name {
                let name = one_line(&app.render_text(source, &values).await?);
                input.from_name = Some(name.chars().take(LONGEST_NAME).collect());
            }
        }
        Ok((subject, input))
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
