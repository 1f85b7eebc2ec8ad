//! Explanation of a message's status in one sentence, with the remedy.
//!
//! Contract section 4.2. Of the words of others, a sentence quotes only those of an obstacle and of a provider's
//! failure, which the caller has masked for the reader.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cure::{advice, call, resume};
use super::hold::{Hold, HoldReason};
use super::obstacle::{Obstacle, quoted};
use super::status::{EventKind, MessageStatus};
use super::{Message, MessageEvent};
use crate::domain::campaign::CampaignStatus;
use crate::domain::channel::Channel;
use crate::domain::delivery::bounce::{self, BounceClass};
use crate::domain::delivery::consequence::TLS_REQUIRED;
use crate::domain::delivery::queue::Suspension;
use crate::domain::delivery::response::Response;
use crate::ids::SuppressionId;
use crate::time::Timestamp;

pub use super::cure::Cure;

/// Explanation of a message's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageExplanation")]
#[non_exhaustive]
pub struct Explanation {
    /// Code for programs: the reason of a hold, the class of a bounce, the reason of a failure or of a suppression
    /// (`suppressed` where the address is on the list), else the status.
    pub code: String,
    /// The explanation for people, in one sentence.
    pub text: String,
    /// When this state began.
    pub since: Timestamp,
    /// When the message is tried or checked next; null if nothing is planned.
    pub next_attempt_at: Option<Timestamp>,
    /// Remedy for the state; null if there is none, or none is needed.
    pub cure: Option<Cure>,
}

/// Facts besides the message that an explanation uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// Latest event of the message of the kind that [`telling_kind`] names.
    pub event: Option<&'a MessageEvent>,
    /// When its campaign was paused, or its part of the queue suspended.
    pub paused_since: Option<Timestamp>,
    /// Entry of the suppression list that names its recipient.
    pub suppression: Option<SuppressionId>,
    /// State of its channel or recipient that keeps it from being attempted.
    pub obstacle: Option<&'a Obstacle>,
    /// The suspension of a part of the queue, if `paused_since` is about that.
    pub suspension: Option<&'a Suspension>,
    /// Sentence that says why no path is open to the message, if it waits for one and this process knows.
    pub path: Option<&'a str>,
    /// True if the sandbox carries the message: it never leaves the server.
    pub is_captured: bool,
}

/// Returns the kind of event that has the reason of a status; `None` if the status says all.
pub const fn telling_kind(status: MessageStatus) -> Option<EventKind> {
    match status {
        MessageStatus::Deferred => Some(EventKind::Deferred),
        MessageStatus::Bounced => Some(EventKind::Bounce),
        MessageStatus::Failed => Some(EventKind::Failed),
        MessageStatus::Suppressed => Some(EventKind::Suppressed),
        _ => None,
    }
}

/// Returns the hold of a message: a pause of its campaign goes before any other (contract section 12.5). A database may
/// have been copied during an attempt; the attempt has no consequences until the restored server may send, so its
/// message is held like the others.
pub fn hold_of(message: &Message, paused_since: Option<Timestamp>) -> Option<Hold> {
    if message.status == MessageStatus::Sending {
        return message.hold.filter(|hold| hold.reason == HoldReason::Held);
    }
    if !matches!(message.status, MessageStatus::Queued | MessageStatus::Deferred) {
        return None;
    }
    match paused_since {
        Some(since) => Some(Hold { reason: HoldReason::Paused, until: None, since: since.max(message.created_at) }),
        None => message.hold,
    }
}

/// Returns the hold of a message, or its turn among the others to its domain, if its campaign is sending and nothing
/// else holds it. Too many messages wait for their turn to store it in a row for each.
pub fn turn_of(message: &Message, campaign: CampaignStatus) -> Option<Hold> {
    let waits = message.status == MessageStatus::Queued && campaign == CampaignStatus::Sending;
    let turn = Hold { reason: HoldReason::DomainPace, until: None, since: message.created_at };
    message.hold.or((waits && !message.is_redacted()).then_some(turn))
}

/// Returns the time at which a message is due that waits for its time: the requested one, or that in the recipient's
/// zone.
pub fn scheduled_for(message: &Message) -> Option<Timestamp> {
    let hold = message.hold.filter(|_| message.status == MessageStatus::Queued)?;
    hold.until.filter(|_| matches!(hold.reason, HoldReason::Scheduled | HoldReason::ByTimezone))
}

/// Explains the status of a message.
pub fn explain(message: &Message, facts: Facts<'_>) -> Explanation {
    let details = EventDetails(facts.event.map(|event| &event.meta));
    // A message that waits for its turn on a channel that does not send waits for the channel.
    let hold = hold_of(message, facts.paused_since);
    let hold = hold.filter(|hold| hold.reason != HoldReason::DomainPace || facts.obstacle.is_none());
    if let Some(hold) = hold.filter(|hold| hold.reason == HoldReason::Paused)
        && let Some(suspension) = facts.suspension
    {
        return suspended(hold, suspension);
    }
    if let Some(hold) = hold {
        let explanation = held(message, hold);
        return match facts.path.filter(|_| hold.reason.is_of_path()) {
            Some(sentence) => Explanation { text: sentence.to_owned(), ..explanation },
            None => explanation,
        };
    }
    let since = message.updated_at;
    let plain = |text: &str| Explanation {
        code: message.status.as_str().to_owned(),
        text: text.to_owned(),
        since,
        next_attempt_at: None,
        cure: None,
    };
    if let Some(obstacle) = facts.obstacle.filter(|_| may_be_attempted(message.status)) {
        return obstructed(message, details, obstacle);
    }
    match message.status {
        MessageStatus::Sent | MessageStatus::Delivered if facts.is_captured => Explanation {
            code: "captured".to_owned(),
            ..plain("The sandbox captured the message: nothing left the server.")
        },
        MessageStatus::Queued => plain("The message is accepted and waits for its turn to be sent."),
        MessageStatus::Sending => plain("An attempt to deliver the message is under way."),
        MessageStatus::Sent => plain("The message was handed over, and whether it arrived has not been reported."),
        MessageStatus::Delivered => plain("The message was delivered."),
        MessageStatus::Complained => Explanation {
            cure: Some(advice(
                "Send nothing more to this address; it is on the suppression list, and complaints harm all mail.",
            )),
            ..plain("The message was delivered, and the recipient reported it as unwanted.")
        },
        MessageStatus::Cancelled => plain("The message was withdrawn before it was sent."),
        MessageStatus::Deferred => deferred(message, details, since),
        MessageStatus::Bounced => {
            let (code, text, cure) = bounced(details.text("bounce_class"));
            let last = (code == "unreachable").then(|| details.last_reply()).flatten();
            let (text, cure) = last.as_ref().map_or((text, cure), expired);
            let text = format!("{text}{}.", details.reply());
            Explanation { code: code.to_owned(), text, cure: Some(advice(cure)), ..plain("") }
        }
        MessageStatus::Failed => {
            let (code, text, cure) = failed(message, details.text("reason"));
            // The last words of the provider are known if the message was tried, or its account was.
            let text = match code {
                "provider_error" => format!("{text}{}.", quoted(details.text("message"))),
                _ => text.to_owned(),
            };
            Explanation { code: code.to_owned(), text, cure, ..plain("") }
        }
        MessageStatus::Suppressed => {
            let (code, text, cure) = suppressed(message, details.text("reason"), facts.suppression);
            Explanation { code: code.to_owned(), text: text.to_owned(), cure, ..plain("") }
        }
    }
}

/// Returns true for the statuses in which a message waits for an attempt.
const fn may_be_attempted(status: MessageStatus) -> bool {
    matches!(status, MessageStatus::Queued | MessageStatus::Deferred)
}

/// Explains a message that is not attempted because of the state of its channel or recipient.
fn obstructed(message: &Message, details: EventDetails<'_>, obstacle: &Obstacle) -> Explanation {
    let planned: Option<Timestamp> = details.text("next_attempt_at").parse().ok();
    Explanation {
        code: obstacle.kind.code().to_owned(),
        text: format!("{}.", obstacle.sentence()),
        since: message.updated_at,
        next_attempt_at: planned.max(obstacle.until),
        cure: obstacle.cure(message.workspace_id),
    }
}

/// The members of the event that has the reason.
#[derive(Clone, Copy)]
struct EventDetails<'a>(Option<&'a Map<String, Value>>);

impl<'a> EventDetails<'a> {
    fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }

    fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the last reply of a mail server, if one replied.
    fn last_reply(self) -> Option<Response> {
        let code = self.get("smtp_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok())?;
        let enhanced = self.get("enhanced_code").and_then(Value::as_str).map(ToOwned::to_owned);
        let text = self.text("response").to_owned();
        Some(Response { code: Some(code), enhanced, text, host: None })
    }

    /// Returns the codes of the reply, in parentheses.
    fn reply(self) -> String {
        let code = self.get("smtp_code").and_then(Value::as_u64).map(|code| code.to_string());
        let enhanced = self.get("enhanced_code").and_then(Value::as_str).map(ToOwned::to_owned);
        let provider = self.get("provider_code").and_then(Value::as_str).map(ToOwned::to_owned);
        // A provider may name anything a code.
        let provider =
            provider.filter(|code| code.len() <= 32 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let codes: Vec<_> = [code, enhanced, provider].into_iter().flatten().collect();
        if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(" ")) }
    }
}

fn held(message: &Message, hold: Hold) -> Explanation {
    let workspace = message.workspace_id;
    let (code, text, cure) = match hold.reason {
        HoldReason::Scheduled => ("scheduled", "The message waits for the time that it was scheduled for.", None),
        HoldReason::ByTimezone => {
            ("by_timezone", "The message waits until it is the campaign's time where the recipient lives.", None)
        }
        HoldReason::QuietHours => {
            ("quiet_hours", "The message waits for the end of the recipient's quiet hours.", None)
        }
        HoldReason::FrequencyCap => (
            "frequency_cap",
            "The recipient has got as many marketing messages as the frequency cap allows, and the message waits.",
            None,
        ),
        HoldReason::DomainPace => {
            ("domain_pace", "The message waits for its turn, because only so many are sent at a time.", None)
        }
        HoldReason::Paused => {
            let resume = |campaign| {
                let path = format!("/workspaces/{workspace}/campaigns/{campaign}/schedule");
                Some(call("Resume the campaign.", "scheduleCampaign", path, Some(json!({}))))
            };
            let cure = message.campaign_id.and_then(resume);
            ("paused", "The campaign is paused, and the message waits until it is resumed.", cure)
        }
        HoldReason::Held => {
            let cure = advice(
                "Run `messaging admin resume --queued send` on the server to send what waits, or `--queued cancel` to \
                 give it up.",
            );
            ("held", "The server was started from a copy, and sends nothing until the operator resumes it.", Some(cure))
        }
        HoldReason::WarmingUp => {
            let text = "The sending addresses are new to the recipient's provider and warming up: they have sent what they \
                        may for now, and the message follows when there is room.";
            ("warming_up", text, None)
        }
        HoldReason::Braked => {
            let text = "The recipient's provider wants less mail from the sending address, or none for a while, and the \
                        message waits until it may be sent.";
            ("braked", text, None)
        }
        HoldReason::NoSource => {
            let cure = advice(
                "Start a server that has one of the addresses of the domain's IP pool (--source), or change the pool.",
            );
            ("no_source", "No server that runs has an address that the message may be sent from.", Some(cure))
        }
    };
    let next_attempt_at = hold.until;
    Explanation { code: code.to_owned(), text: text.to_owned(), since: hold.since, next_attempt_at, cure }
}

/// Explains a message that waits because an operator has suspended a part of the queue.
fn suspended(hold: Hold, suspension: &Suspension) -> Explanation {
    Explanation {
        code: "paused".to_owned(),
        text: "An operator has suspended this part of the queue, and the message waits until it is resumed.".to_owned(),
        since: hold.since,
        next_attempt_at: None,
        cure: Some(resume(&suspension.scope)),
    }
}

/// Advice about a message that may not go in clear.
const READ_TLS: &str = "Read in the attempts what the receiving server lacks; its operator has to mend that, or \
                        `require_tls` of the sending domain has to be lifted where that is what asks for TLS.";

fn deferred(message: &Message, details: EventDetails<'_>, since: Timestamp) -> Explanation {
    let next_attempt_at = details.text("next_attempt_at").parse().ok();
    if details.text("code") == TLS_REQUIRED {
        let text = "The receiving server lacks the TLS that the message requires, and the message is tried again.";
        let (code, text) = (TLS_REQUIRED.to_owned(), text.to_owned());
        return Explanation { code, text, since, next_attempt_at, cure: Some(advice(READ_TLS)) };
    }
    let reply = details.reply();
    let text = match (reply.is_empty(), message.channel) {
        (false, Channel::Email) => format!("The receiving server put the message off{reply}, and it is tried again."),
        (false, _) => format!("The provider put the message off{reply}, and it is tried again."),
        (true, _) => "The last attempt to hand the message over did not get through, and it is tried again.".to_owned(),
    };
    Explanation { code: "deferred".to_owned(), text, since, next_attempt_at, cure: None }
}

/// Returns code, sentence and advice for a class of bounces; the reply is appended to the sentence.
fn bounced(class: &str) -> (&'static str, &'static str, &'static str) {
    match class {
        "invalid_recipient" => (
            "invalid_recipient",
            "The address does not exist, says the receiving side",
            "Correct the address, at the contact too; this one is on the suppression list now.",
        ),
        "invalid_domain" => (
            "invalid_domain",
            "The domain of the address does not exist or takes no mail",
            "Look for a typing error in the domain, and correct the address at the contact too.",
        ),
        "mailbox_full" => (
            "mailbox_full",
            "The mailbox of the recipient is full",
            "Nothing is wrong on your side; send again in a few days.",
        ),
        "policy" => (
            "policy",
            "The receiving side refused the message by its rules",
            "Read the reply in the attempts, which often names the rule, and check the sender's DNS records and settings.",
        ),
        "content" => (
            "content",
            "The receiving side refused the message for what it contains",
            "Change what the reply in the attempts points at, such as size, links or wording, and send again.",
        ),
        "unreachable" => (
            "unreachable",
            "The receiving side could not be reached",
            "Look for a typing error in the address; if there is none, read the reply in the attempts, and send again later.",
        ),
        "blocked" => (
            "blocked",
            "The recipient has blocked messages from this sender",
            "Only the recipient can lift that, by writing to you; reach the person another way.",
        ),
        _ => (
            "unknown",
            "The receiving side refused the message",
            "Read the reply in the attempts, then correct the address or send again.",
        ),
    }
}

/// Returns sentence and advice for a message that was put off until it expired: by its last reply, which says more than
/// the expiry. The codes are appended to the sentence.
fn expired(last: &Response) -> (&'static str, &'static str) {
    match bounce::classify(last) {
        BounceClass::MailboxFull => (
            "The mailbox of the recipient stayed full until the message expired",
            "Nothing is wrong on your side; send again in a few days.",
        ),
        BounceClass::Policy => (
            "The receiving side put the message off by its rules until it expired",
            "Read the reply in the attempts, which often names the rule, and check the sender's DNS records and settings.",
        ),
        BounceClass::Content => (
            "The receiving side put the message off for what it contains until it expired",
            "Change what the reply in the attempts points at, such as size, links or wording, and send again.",
        ),
        _ => (
            "The receiving side put the message off until it expired",
            "Read the reply in the attempts, which says what is the matter there, and send again later.",
        ),
    }
}

fn failed(message: &Message, reason: &str) -> (&'static str, &'static str, Option<Cure>) {
    let workspace = message.workspace_id;
    match reason {
        "render_error" => {
            let preview = |template| {
                let path = format!("/workspaces/{workspace}/templates/{template}/preview");
                let body = message.contact_id.map(|contact| json!({"contact_id": contact}));
                Some(call("Preview the template with this contact to see the fault.", "previewTemplate", path, body))
            };
            let text = "The template could not be rendered with the values of the message.";
            ("render_error", text, message.template_id.and_then(preview))
        }
        "no_route" => (
            "no_route",
            "There is no way to the recipient.",
            Some(advice("Check the number or address, and whether the provider serves its country.")),
        ),
        "sender_domain_not_verified" => {
            let path = format!("/workspaces/{workspace}/sending-domains");
            let cure = Some(call("Verify the domain of the sender.", "listSendingDomains", path, None));
            ("sender_domain_not_verified", "The domain of the sender is not verified.", cure)
        }
        "channel_not_configured" => {
            let path = format!("/workspaces/{workspace}/channels");
            let cure = Some(call("Set up a provider for the channel, then send again.", "listChannels", path, None));
            ("channel_not_configured", "Nothing carries the channel: it has no settings.", cure)
        }
        TLS_REQUIRED => (
            TLS_REQUIRED,
            "The receiving side had not the TLS that the message may not go without, until the message expired.",
            Some(advice(READ_TLS)),
        ),
        "attachment_error" => (
            "attachment_error",
            "An attachment of the message could not be read.",
            Some(advice("Send the message again with its file.")),
        ),
        _ => (
            "provider_error",
            "The provider refused the message, or could not be used until it expired",
            Some(advice(
                "Compare the settings of the channel with what the provider says in the attempts, then send again.",
            )),
        ),
    }
}

fn suppressed(
    message: &Message,
    reason: &str,
    entry: Option<SuppressionId>,
) -> (&'static str, &'static str, Option<Cure>) {
    let workspace = message.workspace_id;
    match reason {
        "no_consent" => {
            let member = if message.channel == Channel::Email { "marketing_email" } else { "sms" };
            let cure = |contact| {
                let path = format!("/workspaces/{workspace}/contacts/{contact}");
                let body = Some(json!({"consent": {member: true}}));
                Some(call("Record the contact's consent once it is given.", "updateContact", path, body))
            };
            let text = "The contact has not agreed to marketing messages on the channel.";
            ("no_consent", text, message.contact_id.and_then(cure))
        }
        "frequency_cap" => (
            "frequency_cap",
            "The contact had got as many marketing messages as the frequency cap allows, so this one was left out.",
            Some(advice("Nothing has to be done; later campaigns reach the contact again.")),
        ),
        listed => {
            let text = match listed {
                "bounce" => "The address is suppressed because messages to it bounced.",
                "complaint" => "The address is suppressed because its owner complained.",
                "unsubscribe" => "The address is suppressed because its owner unsubscribed.",
                "invalid" => "The address is suppressed because it is invalid.",
                _ => "The address is on the suppression list.",
            };
            let lift = |entry| {
                let path = format!("/workspaces/{workspace}/suppressions/{entry}");
                Some(call("Take the address off the list if the reason is over.", "deleteSuppression", path, None))
            };
            let cure = match (listed, entry) {
                ("complaint" | "unsubscribe", _) => {
                    Some(advice("Leave the address alone, unless its owner asks for messages again."))
                }
                (_, Some(entry)) => lift(entry),
                (_, None) => Some(advice("The address is no longer on the list; send the message again.")),
            };
            ("suppressed", text, cure)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::obstacle::ObstacleKind;
    use super::*;
    use crate::ids::{CampaignId, ContactId, EventId, Id, MessageId, TemplateId, WorkspaceId};

    const NOW: Timestamp = Timestamp::from_millis(1_769_850_900_000);

    fn id<I: Id>() -> I {
        I::from_bytes([0; 16])
    }

    fn message(status: MessageStatus) -> Message {
        Message {
            status,
            contact_id: Some(id::<ContactId>()),
            campaign_id: Some(id::<CampaignId>()),
            template_id: Some(id::<TemplateId>()),
            ..Message::queued(id::<MessageId>(), id::<WorkspaceId>(), Channel::Email, "ann@example.com".to_owned(), NOW)
        }
    }

    fn shown(message: &Message, meta: &Value, paused: bool) -> String {
        let paused_since = paused.then_some(NOW);
        shown_with(message, meta, Facts { paused_since, ..Facts::default() })
    }

    fn shown_with(message: &Message, meta: &Value, facts: Facts<'_>) -> String {
        let meta = meta.as_object().cloned().unwrap_or_default();
        let event = telling_kind(message.status).map(|kind| MessageEvent {
            id: id::<EventId>(),
            workspace_id: message.workspace_id,
            message_id: message.id,
            kind,
            at: NOW,
            meta,
        });
        let suppression = (message.status == MessageStatus::Suppressed).then(id::<SuppressionId>);
        let told = explain(message, Facts { event: event.as_ref(), suppression, ..facts });
        assert!(told.text.ends_with('.') && told.text.matches('.').count() <= 3, "{}", told.text);
        assert!(!told.text.contains('@'), "{}", told.text);
        let cure = told.cure.map(|cure| {
            let path = cure.path.map(|path| path.replace(&"0".repeat(26), "0"));
            let body = cure.body.map(|body| body.to_string().replace(&"0".repeat(26), "0"));
            [Some(cure.text), cure.operation, path, body].into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let next = told.next_attempt_at.map(|next| next.to_string()).unwrap_or_default();
        format!("{} | {} | {next} | {}", told.code, told.text, cure.unwrap_or_default())
    }

    #[test]
    fn every_status_hold_and_cause_has_its_sentence() {
        let mut table = String::new();
        for status in MessageStatus::ALL {
            let metas: &[Value] = &match status {
                MessageStatus::Deferred => vec![
                    json!({"smtp_code": 451, "enhanced_code": "4.7.1", "next_attempt_at": "2026-01-31T09:16:00.000Z"}),
                    json!({"response": "not sent"}),
                    json!({"response": "no TLS", "code": "tls_required"}),
                ],
                MessageStatus::Bounced => [
                    "invalid_recipient",
                    "invalid_domain",
                    "mailbox_full",
                    "policy",
                    "content",
                    "unreachable",
                    "blocked",
                    "unknown",
                ]
                .map(|class| json!({"bounce_class": class, "smtp_code": 550}))
                .to_vec(),
                MessageStatus::Failed => [
                    "render_error",
                    "provider_error",
                    "no_route",
                    "sender_domain_not_verified",
                    "channel_not_configured",
                    "attachment_error",
                    "tls_required",
                ]
                .map(|reason| json!({"reason": reason}))
                .to_vec(),
                MessageStatus::Suppressed => {
                    ["bounce", "complaint", "unsubscribe", "manual", "invalid", "no_consent", "frequency_cap"]
                        .map(|reason| json!({"reason": reason}))
                        .to_vec()
                }
                _ => vec![json!({})],
            };
            for meta in metas {
                let row = shown(&message(status), meta, false);
                let is_sent = !matches!(
                    status,
                    MessageStatus::Bounced
                        | MessageStatus::Complained
                        | MessageStatus::Failed
                        | MessageStatus::Suppressed
                );
                assert!(is_sent || !row.ends_with("| "), "nobody is told what to do: {row}");
                let _ = writeln!(table, "{}: {row}", status.as_str());
            }
        }
        for reason in HoldReason::ALL {
            let hold = Some(Hold { reason, until: (reason != HoldReason::Paused).then_some(NOW), since: NOW });
            let waiting = Message { hold, ..message(MessageStatus::Queued) };
            let _ = writeln!(table, "queued: {}", shown(&waiting, &json!({}), false));
            let paused = shown(&waiting, &json!({}), true);
            assert!(paused.starts_with("paused | The campaign is paused"), "{paused}");
        }
        insta::assert_snapshot!(table, @r#"
        queued: queued | The message is accepted and waits for its turn to be sent. |  | 
        sending: sending | An attempt to deliver the message is under way. |  | 
        sent: sent | The message was handed over, and whether it arrived has not been reported. |  | 
        delivered: delivered | The message was delivered. |  | 
        deferred: deferred | The receiving server put the message off (451 4.7.1), and it is tried again. | 2026-01-31T09:16:00.000Z | 
        deferred: deferred | The last attempt to hand the message over did not get through, and it is tried again. |  | 
        deferred: tls_required | The receiving server lacks the TLS that the message requires, and the message is tried again. |  | Read in the attempts what the receiving server lacks; its operator has to mend that, or `require_tls` of the sending domain has to be lifted where that is what asks for TLS.
        bounced: invalid_recipient | The address does not exist, says the receiving side (550). |  | Correct the address, at the contact too; this one is on the suppression list now.
        bounced: invalid_domain | The domain of the address does not exist or takes no mail (550). |  | Look for a typing error in the domain, and correct the address at the contact too.
        bounced: mailbox_full | The mailbox of the recipient is full (550). |  | Nothing is wrong on your side; send again in a few days.
        bounced: policy | The receiving side refused the message by its rules (550). |  | Read the reply in the attempts, which often names the rule, and check the sender's DNS records and settings.
        bounced: content | The receiving side refused the message for what it contains (550). |  | Change what the reply in the attempts points at, such as size, links or wording, and send again.
        bounced: unreachable | The receiving side put the message off until it expired (550). |  | Read the reply in the attempts, which says what is the matter there, and send again later.
        bounced: blocked | The recipient has blocked messages from this sender (550). |  | Only the recipient can lift that, by writing to you; reach the person another way.
        bounced: unknown | The receiving side refused the message (550). |  | Read the reply in the attempts, then correct the address or send again.
        complained: complained | The message was delivered, and the recipient reported it as unwanted. |  | Send nothing more to this address; it is on the suppression list, and complaints harm all mail.
        failed: render_error | The template could not be rendered with the values of the message. |  | Preview the template with this contact to see the fault. previewTemplate /workspaces/wsp_0/templates/tpl_0/preview {"contact_id":"con_0"}
        failed: provider_error | The provider refused the message, or could not be used until it expired. |  | Compare the settings of the channel with what the provider says in the attempts, then send again.
        failed: no_route | There is no way to the recipient. |  | Check the number or address, and whether the provider serves its country.
        failed: sender_domain_not_verified | The domain of the sender is not verified. |  | Verify the domain of the sender. listSendingDomains /workspaces/wsp_0/sending-domains
        failed: channel_not_configured | Nothing carries the channel: it has no settings. |  | Set up a provider for the channel, then send again. listChannels /workspaces/wsp_0/channels
        failed: attachment_error | An attachment of the message could not be read. |  | Send the message again with its file.
        failed: tls_required | The receiving side had not the TLS that the message may not go without, until the message expired. |  | Read in the attempts what the receiving server lacks; its operator has to mend that, or `require_tls` of the sending domain has to be lifted where that is what asks for TLS.
        suppressed: suppressed | The address is suppressed because messages to it bounced. |  | Take the address off the list if the reason is over. deleteSuppression /workspaces/wsp_0/suppressions/sup_0
        suppressed: suppressed | The address is suppressed because its owner complained. |  | Leave the address alone, unless its owner asks for messages again.
        suppressed: suppressed | The address is suppressed because its owner unsubscribed. |  | Leave the address alone, unless its owner asks for messages again.
        suppressed: suppressed | The address is on the suppression list. |  | Take the address off the list if the reason is over. deleteSuppression /workspaces/wsp_0/suppressions/sup_0
        suppressed: suppressed | The address is suppressed because it is invalid. |  | Take the address off the list if the reason is over. deleteSuppression /workspaces/wsp_0/suppressions/sup_0
        suppressed: no_consent | The contact has not agreed to marketing messages on the channel. |  | Record the contact's consent once it is given. updateContact /workspaces/wsp_0/contacts/con_0 {"consent":{"marketing_email":true}}
        suppressed: frequency_cap | The contact had got as many marketing messages as the frequency cap allows, so this one was left out. |  | Nothing has to be done; later campaigns reach the contact again.
        cancelled: cancelled | The message was withdrawn before it was sent. |  | 
        queued: scheduled | The message waits for the time that it was scheduled for. | 2026-01-31T09:15:00.000Z | 
        queued: by_timezone | The message waits until it is the campaign's time where the recipient lives. | 2026-01-31T09:15:00.000Z | 
        queued: quiet_hours | The message waits for the end of the recipient's quiet hours. | 2026-01-31T09:15:00.000Z | 
        queued: frequency_cap | The recipient has got as many marketing messages as the frequency cap allows, and the message waits. | 2026-01-31T09:15:00.000Z | 
        queued: domain_pace | The message waits for its turn, because only so many are sent at a time. | 2026-01-31T09:15:00.000Z | 
        queued: paused | The campaign is paused, and the message waits until it is resumed. |  | Resume the campaign. scheduleCampaign /workspaces/wsp_0/campaigns/cmp_0/schedule {}
        queued: held | The server was started from a copy, and sends nothing until the operator resumes it. | 2026-01-31T09:15:00.000Z | Run `messaging admin resume --queued send` on the server to send what waits, or `--queued cancel` to give it up.
        queued: warming_up | The sending addresses are new to the recipient's provider and warming up: they have sent what they may for now, and the message follows when there is room. | 2026-01-31T09:15:00.000Z | 
        queued: braked | The recipient's provider wants less mail from the sending address, or none for a while, and the message waits until it may be sent. | 2026-01-31T09:15:00.000Z | 
        queued: no_source | No server that runs has an address that the message may be sent from. | 2026-01-31T09:15:00.000Z | Start a server that has one of the addresses of the domain's IP pool (--source), or change the pool.
        "#);
    }

    #[test]
    fn what_expired_is_explained_by_its_last_reply() {
        let mut table = String::new();
        for (smtp_code, enhanced_code, response) in [
            (452, "4.2.2", "mailbox is over quota"),
            (451, "4.7.1", "try again later: greylisted by policy"),
            (451, "4.3.0", "local problem"),
        ] {
            let meta = json!({
                "bounce_class": "unreachable", "smtp_code": smtp_code, "enhanced_code": enhanced_code,
                "response": response,
            });
            let _ = writeln!(table, "{}", shown(&message(MessageStatus::Bounced), &meta, false));
        }
        let refused = json!({"bounce_class": "unreachable", "response": "connection refused"});
        let _ = writeln!(table, "{}", shown(&message(MessageStatus::Bounced), &refused, false));
        insta::assert_snapshot!(table, @r#"
        unreachable | The mailbox of the recipient stayed full until the message expired (452 4.2.2). |  | Nothing is wrong on your side; send again in a few days.
        unreachable | The receiving side put the message off by its rules until it expired (451 4.7.1). |  | Read the reply in the attempts, which often names the rule, and check the sender's DNS records and settings.
        unreachable | The receiving side put the message off until it expired (451 4.3.0). |  | Read the reply in the attempts, which says what is the matter there, and send again later.
        unreachable | The receiving side could not be reached. |  | Look for a typing error in the address; if there is none, read the reply in the attempts, and send again later.
        "#);
    }

    #[test]
    fn what_waits_for_its_channel_or_recipient_says_so() {
        let mut table = String::new();
        for kind in ObstacleKind::ALL {
            let obstacle = Obstacle { kind, words: Some("535 5.7.8 no".to_owned()), until: Some(NOW) };
            for status in [MessageStatus::Queued, MessageStatus::Deferred] {
                let facts = Facts { obstacle: Some(&obstacle), ..Facts::default() };
                let _ = writeln!(table, "{}: {}", status.as_str(), shown_with(&message(status), &json!({}), facts));
            }
            for status in MessageStatus::ALL.into_iter().filter(|status| !may_be_attempted(*status)) {
                let facts = Facts { obstacle: Some(&obstacle), ..Facts::default() };
                let told = shown_with(&message(status), &json!({}), facts);
                assert_eq!(told, shown(&message(status), &json!({}), false), "what has ended does not wait");
            }
            let hold = Some(Hold { reason: HoldReason::QuietHours, until: Some(NOW), since: NOW });
            let held = Message { hold, ..message(MessageStatus::Queued) };
            let facts = Facts { obstacle: Some(&obstacle), ..Facts::default() };
            assert!(shown_with(&held, &json!({}), facts).starts_with("quiet_hours"), "a hold comes before");
        }
        insta::assert_snapshot!(table, @r#"
        queued: workspace_ending | The workspace is under deletion (“535 5.7.8 no”); nothing is sent unless an owner restores it before its end. | 2026-01-31T09:15:00.000Z | Restore the workspace; what waits is sent then. restoreWorkspace /workspaces/wsp_0/restore
        deferred: workspace_ending | The workspace is under deletion (“535 5.7.8 no”); nothing is sent unless an owner restores it before its end. | 2026-01-31T09:15:00.000Z | Restore the workspace; what waits is sent then. restoreWorkspace /workspaces/wsp_0/restore
        queued: channel_failing | The provider of the channel refuses the account or its settings (“535 5.7.8 no”); everything on the channel waits, and one message tries every five minutes. | 2026-01-31T09:15:00.000Z | Correct the settings of the channel; they are tried at once when they are saved. listChannels /workspaces/wsp_0/channels
        deferred: channel_failing | The provider of the channel refuses the account or its settings (“535 5.7.8 no”); everything on the channel waits, and one message tries every five minutes. | 2026-01-31T09:15:00.000Z | Correct the settings of the channel; they are tried at once when they are saved. listChannels /workspaces/wsp_0/channels
        queued: channel_throttled | The provider of the channel asked for a pause (“535 5.7.8 no”); everything on the channel waits until then. | 2026-01-31T09:15:00.000Z | 
        deferred: channel_throttled | The provider of the channel asked for a pause (“535 5.7.8 no”); everything on the channel waits until then. | 2026-01-31T09:15:00.000Z | 
        queued: channel_throttled | The provider of the channel gets too many messages at a time (“535 5.7.8 no”); they leave one after another, as fast as it takes them. | 2026-01-31T09:15:00.000Z | 
        deferred: channel_throttled | The provider of the channel gets too many messages at a time (“535 5.7.8 no”); they leave one after another, as fast as it takes them. | 2026-01-31T09:15:00.000Z | 
        queued: recipient_throttled | The recipient had as many messages as the provider allows at a time (“535 5.7.8 no”); the next one follows soon. | 2026-01-31T09:15:00.000Z | 
        deferred: recipient_throttled | The recipient had as many messages as the provider allows at a time (“535 5.7.8 no”); the next one follows soon. | 2026-01-31T09:15:00.000Z | 
        queued: domain_unreachable | No mail server of the recipient's domain can be reached (“535 5.7.8 no”); each message is tried again at its own time. | 2026-01-31T09:15:00.000Z | 
        deferred: domain_unreachable | No mail server of the recipient's domain can be reached (“535 5.7.8 no”); each message is tried again at its own time. | 2026-01-31T09:15:00.000Z |
        "#);
    }

    #[test]
    fn the_next_attempt_is_the_later_of_what_was_planned_and_the_end_of_the_obstacle() {
        let (earlier, later) = (NOW + std::time::Duration::from_mins(1), NOW + std::time::Duration::from_mins(5));
        for (planned, until) in [(earlier, later), (later, earlier)] {
            let obstacle = Obstacle { kind: ObstacleKind::ChannelFailing, words: None, until: Some(until) };
            let facts = Facts { obstacle: Some(&obstacle), ..Facts::default() };
            let told = shown_with(&message(MessageStatus::Deferred), &json!({"next_attempt_at": planned}), facts);
            assert!(told.contains(&later.to_string()), "{told}");
        }
    }

    #[test]
    fn a_message_that_the_provider_refused_says_in_which_words() {
        let words = json!({"reason": "provider_error", "message": "the provider failed until it expired: 401 no"});
        let told = shown(&message(MessageStatus::Failed), &words, false);
        assert!(told.contains("until it expired (“the provider failed until it expired: 401 no”)."), "{told}");
        let other = json!({"reason": "render_error", "message": "secret"});
        assert!(!shown(&message(MessageStatus::Failed), &other, false).contains("secret"));
    }

    #[test]
    fn what_the_sandbox_took_never_arrived_anywhere() {
        let facts = Facts { is_captured: true, ..Facts::default() };
        let told = shown_with(&message(MessageStatus::Delivered), &json!({}), facts);
        assert_eq!(told, "captured | The sandbox captured the message: nothing left the server. |  | ");
    }

    #[test]
    fn a_pause_holds_what_is_still_to_be_attempted_and_nothing_else() {
        for status in MessageStatus::ALL {
            let quiet = Hold { reason: HoldReason::QuietHours, until: Some(NOW), since: NOW };
            let message = Message { hold: Some(quiet), ..message(status) };
            let (held, paused) = (hold_of(&message, None), hold_of(&message, Some(NOW)));
            let waits = matches!(status, MessageStatus::Queued | MessageStatus::Deferred);
            assert_eq!(held, waits.then_some(quiet), "{status:?}");
            let expected = waits.then_some(Hold { reason: HoldReason::Paused, until: None, since: NOW });
            assert_eq!(paused, expected, "{status:?}");
        }
    }

    #[test]
    fn a_message_of_a_campaign_that_sends_waits_for_its_turn_where_nothing_else_holds_it() {
        let turn =
            Hold { reason: HoldReason::DomainPace, until: None, since: message(MessageStatus::Queued).created_at };
        for status in MessageStatus::ALL {
            let message = message(status);
            let expected = (status == MessageStatus::Queued).then_some(turn);
            assert_eq!(turn_of(&message, CampaignStatus::Sending), expected, "{status:?}");
            assert_eq!(turn_of(&message, CampaignStatus::Scheduled), None, "{status:?}");
        }
        let quiet = Some(Hold { reason: HoldReason::QuietHours, until: Some(NOW), since: NOW });
        let held = Message { hold: quiet, ..message(MessageStatus::Queued) };
        assert_eq!(turn_of(&held, CampaignStatus::Sending), quiet);
    }

    #[test]
    fn only_a_time_that_was_asked_for_is_a_schedule() {
        let until = Some(NOW);
        for reason in HoldReason::ALL {
            let waiting = Message { hold: Some(Hold { reason, until, since: NOW }), ..message(MessageStatus::Queued) };
            let is_planned = matches!(reason, HoldReason::Scheduled | HoldReason::ByTimezone);
            assert_eq!(scheduled_for(&waiting), until.filter(|_| is_planned), "{reason:?}");
            assert_eq!(scheduled_for(&Message { status: MessageStatus::Sent, ..waiting }), None);
        }
    }
}
