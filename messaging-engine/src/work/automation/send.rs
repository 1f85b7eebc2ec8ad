//! Send nodes of automations: the decision whether a message is created now, later or never, and its creation.
//!
//! Contract sections 12.3, 13.2 and 13.4. Marketing is judged by the rule of campaigns
//! ([`recipient_time::look`]) when the run stands at the node, and once more right before the attempt
//! ([`marketing_look`](crate::work::deliver::marketing_look)).

use messaging_core::DomainError;
use messaging_core::changes::Write;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::automation::graph::Send;
use messaging_core::domain::automation::run::{Held, Run};
use messaging_core::domain::automation::step::{NodeOutcome, SkipReason};
use messaging_core::domain::automation::trigger::TriggerKind;
use messaging_core::domain::campaign::audience::agrees;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize;
use messaging_core::domain::delivery::recipient_time::{self, Recipient, SuppressCause, Terms, Verdict};
use messaging_core::domain::message::content;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::ListId;
use messaging_core::input;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use super::people::{Person, summary_of};
use crate::app::App;
use crate::error::Error;
use crate::jobs::deliver_message::MarketingTerms;
use crate::services::acceptance::{OfAutomation, SentMessage};
use crate::services::templates::Unrendered;
use crate::services::texts::{TextFault, values_of_run};

/// Time after which a hold without a known end is looked at again.
const RECHECK_HOLD_AFTER: std::time::Duration = std::time::Duration::from_mins(1);
/// Largest number of characters of a sender's display name; what a template renders beyond it is cut off.
const LONGEST_NAME: usize = 128;

/// A run of an automation that stands at a send node, with all that the decision about its message needs.
pub(super) struct SendDecision<'a> {
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

impl SendDecision<'_> {
    /// Decides whether a message is sent now, and if so adds the writes that accept it. `suppression_of` answers why an
    /// address, normalized for its channel, is suppressed; `None` if it is not.
    pub(super) async fn decide(
        &self,
        suppression_of: impl Fn(Channel, &str) -> Option<SuppressionReason>,
        writes: &mut Vec<Write>,
    ) -> Result<NodeOutcome, StoreError> {
        let Some((channel, addresses)) = addresses(self.app, self.run, self.send, self.person).await? else {
            return Ok(NodeOutcome::Failed("the template is gone".to_owned()));
        };
        if addresses.is_empty() {
            return Ok(NodeOutcome::Skipped(SkipReason::NoAddress));
        }
        let is_marketing = self.send.is_marketing;
        let reason_of = |address: &String| {
            let reason = suppression_of(channel, &normalize(channel, address));
            reason.filter(|reason| is_marketing || reason.stops_transactional())
        };
        // If the contact has several addresses, the message goes to the first that is not suppressed.
        let to = addresses.iter().find(|address| reason_of(address).is_none());
        let suppression = if to.is_some() { None } else { addresses.first().and_then(reason_of) };
        let entered_by = if is_marketing { self.list_that_enters().await? } else { None };
        if let Some(acted) = self.obstacle(channel, suppression, entered_by).await? {
            return Ok(acted);
        }
        match to {
            Some(to) => self.accept(channel, to, entered_by, writes).await,
            None => Ok(NodeOutcome::Skipped(SkipReason::Suppressed)),
        }
    }

    /// The hold or skip that keeps the message from being sent now; `None` if nothing does. If all addresses of the
    /// contact are suppressed, `suppression` is the reason for the first. `entered_by` is the list by which contacts
    /// enter the automation.
    async fn obstacle(
        &self,
        channel: Channel,
        suppression: Option<SuppressionReason>,
        entered_by: Option<ListId>,
    ) -> Result<Option<NodeOutcome>, StoreError> {
        if !self.send.is_marketing {
            return Ok(suppression.map(|_| NodeOutcome::Skipped(SkipReason::Suppressed)));
        }
        let (run, contact) = (self.run, &self.person.contact);
        if let Some(list) = entered_by
            && self.app.has_left(run.workspace_id, &[list], (contact.id, None)).await?
        {
            return Ok(Some(NodeOutcome::Skipped(SkipReason::NoConsent)));
        }
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
                Some(NodeOutcome::Held { reason, until: until.unwrap_or(self.now + RECHECK_HOLD_AFTER) })
            }
            Verdict::Suppress(cause) => Some(NodeOutcome::Skipped(match cause {
                SuppressCause::Listed(_) => SkipReason::Suppressed,
                SuppressCause::NoConsent => SkipReason::NoConsent,
                SuppressCause::FrequencyCap => SkipReason::FrequencyCap,
            })),
        })
    }

    /// The list by which contacts enter the automation, if they do by one.
    async fn list_that_enters(&self) -> Result<Option<ListId>, StoreError> {
        let Run { workspace_id, automation_id, version, .. } = *self.run;
        let plan = self.app.automation_plan(workspace_id, automation_id, version).await?;
        Ok(plan.and_then(|plan| match plan.trigger.kind {
            TriggerKind::ListAdded(list) => Some(list),
            _ => None,
        }))
    }

    /// Accepts the message and adds its writes to `writes`. The message is rendered once, without being kept, so that a
    /// template that cannot be rendered fails the run here instead of the message later. A failure that may pass, such
    /// as too little room to render, is [`StoreError::Unavailable`].
    async fn accept(
        &self,
        channel: Channel,
        to: &str,
        entered_by: Option<ListId>,
        writes: &mut Vec<Write>,
    ) -> Result<NodeOutcome, StoreError> {
        let (subject, input) = match self.input(channel, to).await {
            Ok(made) => made,
            Err(TextFault::Busy) => return Err(StoreError::Unavailable),
            Err(TextFault::Broken(why)) => return Ok(NodeOutcome::Failed(why)),
        };
        let (input, mut violations) = match input::made_body(input) {
            Ok(made) => made,
            Err(DomainError::Invalid(violations)) => return Ok(NodeOutcome::Failed(violations.summary())),
            Err(error) => return Ok(NodeOutcome::Failed(error.to_string())),
        };
        let marketing = self.send.is_marketing.then_some(MarketingTerms {
            quiet_hours: self.send.quiet_hours,
            frequency_cap: self.send.frequency_cap,
            list_id: entered_by,
        });
        let sent = SentMessage {
            automation: Some(OfAutomation { id: self.run.automation_id, marketing, subject }),
            ..SentMessage::new(self.run.workspace_id, input)
        };
        let accepted = match self.app.accept_message(sent, self.app.now(), &mut violations).await {
            Ok(accepted) => accepted,
            Err(Error::Validation(violations)) => return Ok(NodeOutcome::Failed(summary_of(&violations))),
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => return Err(StoreError::Unavailable),
            Err(Error::Internal(source)) => match source.downcast::<StoreError>() {
                Ok(failed) => return Err(*failed),
                Err(other) => return Ok(NodeOutcome::Failed(other.to_string())),
            },
            // Any other refusal is permanent.
            Err(error) => return Ok(NodeOutcome::Failed(error.to_string())),
        };
        for write in &accepted.writes {
            let Write::InsertMessage(message, content) = write else { continue };
            let request = match content::decode(content) {
                Ok(request) => request,
                Err(error) => return Ok(NodeOutcome::Failed(error.to_string())),
            };
            match self.app.message_parts(message, &request).await {
                Ok(_) => {}
                Err(Unrendered::Store(error)) => return Err(error),
                Err(Unrendered::Busy) => return Err(StoreError::Unavailable),
                Err(fault) => return Ok(NodeOutcome::Failed(fault.to_string())),
            }
        }
        writes.extend(accepted.writes);
        Ok(NodeOutcome::Sent(accepted.message_id))
    }

    /// The request for the message, and the rendered subject that replaces the template's, if the node has one.
    async fn input(&self, channel: Channel, to: &str) -> Result<(Option<String>, MessageInput), TextFault> {
        let (app, run, send, contact) = (self.app, self.run, self.send, &self.person.contact);
        // Addresses are unmasked whatever scopes the author of the automation has: they reach their owner alone.
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

/// The text with line breaks and other runs of white space replaced by one space each, as in a header.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
