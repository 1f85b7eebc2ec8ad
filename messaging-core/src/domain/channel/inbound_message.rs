//! Consequences of a recipient's message for its address.
//!
//! Contract section 10, "Opt-out words".

use std::time::Duration;

use crate::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use crate::domain::audience::unsubscribe::UnsubscribeMethod;
use crate::domain::channel::Channel;
use crate::domain::delivery::consequence::BLOCKED;
use crate::ids::WorkspaceId;

/// Words that opt out of messages, as the only word of a text.
const OPT_OUT: &[&str] = &["STOP", "STOPALL", "UNSUBSCRIBE", "END", "QUIT", "REVOKE", "OPTOUT", "CANCEL"];

/// Words that revoke an opt-out.
const OPT_IN: &[&str] = &["START", "UNSTOP", "YES"];

/// True if a word revokes an opt-out, so that it cannot opt out.
pub fn opts_in(word: &str) -> bool {
    OPT_IN.contains(&word.trim().to_uppercase().as_str())
}

/// A message or a decision of a recipient, not about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMessage {
    /// Workspace that owns the account to which it came.
    pub workspace_id: WorkspaceId,
    /// The channel of the account.
    pub channel: Channel,
    /// Sender, as the channel writes addresses.
    pub from: String,
    /// Content: the text of a message, or that the recipient subscribed, unsubscribed or blocked the sender.
    pub event: InboundEvent,
}

/// Id of an inbound event, so that it has one effect however often the provider repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InboundKey(pub [u8; 16]);

impl InboundKey {
    /// Time that these ids are kept: Meta repeats a call for 7 days, Telegram keeps an update for one.
    pub const KEPT: Duration = Duration::from_hours(8 * 24);

    /// Returns the key of an event with this id at the provider: the first 16 octets of a SHA-256 digest.
    pub fn of(provider: &str, id: &str) -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        for part in [provider.as_bytes(), b"\0", id.as_bytes()] {
            context.update(part);
        }
        Self(context.finish().as_ref().first_chunk().copied().unwrap_or_default())
    }
}

/// Content of an inbound event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundEvent {
    /// A message with this text; empty if it has none.
    Text(String),
    /// The recipient subscribed or unblocked the sender.
    Subscribed,
    /// The recipient asked the provider to send nothing more.
    Unsubscribed,
    /// The recipient blocked the sender.
    Blocked,
}

/// Consequences of an inbound message for the suppression and the consent of its sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InboundJudgment {
    /// True if the address's suppression is removed.
    pub lifts: bool,
    /// New suppression of the address.
    pub suppresses: Option<Listing>,
    /// Method of the event `unsubscribe` on the newest message to the address.
    pub unsubscribes: Option<UnsubscribeMethod>,
    /// New consent to text messages; `None` if it stays.
    pub consent: Option<bool>,
}

/// A suppression to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    /// Reason stored with the suppression.
    pub reason: SuppressionReason,
    /// Detail of the reason.
    pub detail: Option<&'static str>,
    /// Source stored with the suppression: who asked for it.
    pub source: SuppressionSource,
}

/// Judges an inbound event from an address, with the address's present suppression, if any. The workspace may have
/// further words that opt out.
pub fn judge(
    channel: Channel,
    event: &InboundEvent,
    opt_out_keywords: &[String],
    listed: Option<(SuppressionReason, SuppressionSource)>,
) -> InboundJudgment {
    let wish = match event {
        InboundEvent::Text(text) => wish_of(channel, text, opt_out_keywords),
        InboundEvent::Subscribed => Wish::In,
        InboundEvent::Unsubscribed => Wish::Out(UnsubscribeMethod::Provider),
        InboundEvent::Blocked => Wish::Block,
    };
    // Somebody who writes can be reached: a suppression concluded from bounces is outdated.
    let is_our_conclusion = listed == Some((SuppressionReason::Bounce, SuppressionSource::System));
    let has_opted_out = listed.is_some_and(|(reason, _)| reason == SuppressionReason::Unsubscribe);
    let is_sms = channel == Channel::Sms;
    match wish {
        Wish::None => InboundJudgment { lifts: is_our_conclusion, ..InboundJudgment::default() },
        Wish::In => InboundJudgment {
            lifts: is_our_conclusion || has_opted_out,
            consent: is_sms.then_some(true),
            ..InboundJudgment::default()
        },
        Wish::Out(method) => {
            let (reason, source) = (SuppressionReason::Unsubscribe, SuppressionSource::Recipient);
            let is_new = listed.is_none() || is_our_conclusion;
            InboundJudgment {
                lifts: is_our_conclusion,
                suppresses: is_new.then_some(Listing { reason, detail: None, source }),
                unsubscribes: is_new.then_some(method),
                consent: is_sms.then_some(false),
            }
        }
        Wish::Block => {
            let (reason, source) = (SuppressionReason::Bounce, SuppressionSource::System);
            let is_new = listed.is_none_or(|(listed, _)| listed < reason);
            InboundJudgment {
                suppresses: is_new.then_some(Listing { reason, detail: Some(BLOCKED), source }),
                unsubscribes: is_new.then_some(UnsubscribeMethod::Blocked),
                ..InboundJudgment::default()
            }
        }
    }
}

enum Wish {
    None,
    In,
    Out(UnsubscribeMethod),
    Block,
}

/// Returns the wish that a text of one single word expresses.
fn wish_of(channel: Channel, text: &str, opt_out_keywords: &[String]) -> Wish {
    let word = text.trim().to_uppercase();
    let is_one_of = |words: &[&str]| words.contains(&word.as_str());
    let keyword = UnsubscribeMethod::Keyword;
    match channel {
        Channel::Sms | Channel::Whatsapp => {
            if is_one_of(OPT_OUT) || opt_out_keywords.iter().any(|own| own.trim().to_uppercase() == word) {
                Wish::Out(keyword)
            } else if is_one_of(OPT_IN) {
                Wish::In
            } else {
                Wish::None
            }
        }
        // A bot is also started with a payload: `/start abc`. In groups a command names the bot: `/stop@acme_bot`.
        Channel::Telegram => {
            let command = word.split_whitespace().next().unwrap_or_default();
            match command.split_once('@').map_or(command, |(command, _)| command) {
                "/STOP" => Wish::Out(keyword),
                "/START" => Wish::In,
                _ => Wish::None,
            }
        }
        Channel::Email | Channel::Push | Channel::Viber => Wish::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SuppressionReason as Reason;
    use SuppressionSource as Source;

    fn shown(judgment: InboundJudgment) -> String {
        let InboundJudgment { lifts, suppresses, unsubscribes, consent } = judgment;
        let mut words = Vec::new();
        words.extend(lifts.then(|| "lift".to_owned()));
        words.extend(suppresses.map(|one| format!("{} {:?}", one.reason.as_str(), one.source)));
        words.extend(unsubscribes.map(|method| format!("{method:?}")));
        words.extend(consent.map(|consent| format!("consent {consent}")));
        words.join(", ")
    }

    #[test]
    fn the_table_of_inbound_messages() {
        let text = |text: &str| InboundEvent::Text(text.to_owned());
        let bounced = Some((Reason::Bounce, Source::System));
        let opted_out = Some((Reason::Unsubscribe, Source::Api));
        for (channel, event, listed, expected) in [
            (Channel::Sms, text("hello"), None, ""),
            (Channel::Sms, text("hello"), bounced, "lift"),
            (Channel::Sms, text("hello"), opted_out, ""),
            (Channel::Sms, text(" Stop "), None, "unsubscribe Recipient, Keyword, consent false"),
            (Channel::Sms, text("stop it"), None, ""),
            (Channel::Sms, text("basta"), None, "unsubscribe Recipient, Keyword, consent false"),
            (Channel::Sms, text("STOP"), opted_out, "consent false"),
            (Channel::Sms, text("STOP"), bounced, "lift, unsubscribe Recipient, Keyword, consent false"),
            (Channel::Sms, text("STOP"), Some((Reason::Manual, Source::Api)), "consent false"),
            (Channel::Sms, text("start"), opted_out, "lift, consent true"),
            (Channel::Sms, text("start"), bounced, "lift, consent true"),
            // What people decided, and complaints, stay.
            (Channel::Sms, text("start"), Some((Reason::Manual, Source::Api)), "consent true"),
            (Channel::Sms, text("hello"), Some((Reason::Complaint, Source::System)), ""),
            (Channel::Sms, text("hello"), Some((Reason::Bounce, Source::Api)), ""),
            (Channel::Whatsapp, text("STOPALL"), None, "unsubscribe Recipient, Keyword"),
            (Channel::Whatsapp, InboundEvent::Unsubscribed, None, "unsubscribe Recipient, Provider"),
            (Channel::Whatsapp, InboundEvent::Subscribed, opted_out, "lift"),
            (Channel::Telegram, text("/stop"), None, "unsubscribe Recipient, Keyword"),
            (Channel::Telegram, text("/stop@acme_bot"), None, "unsubscribe Recipient, Keyword"),
            (Channel::Telegram, text("/start@acme_bot abc"), opted_out, "lift"),
            (Channel::Telegram, text("stop"), None, ""),
            (Channel::Telegram, text("stop@acme_bot"), None, ""),
            (Channel::Telegram, text("/stopped"), None, ""),
            (Channel::Telegram, text("/start abc"), opted_out, "lift"),
            (Channel::Telegram, InboundEvent::Blocked, None, "bounce System, Blocked"),
            (Channel::Telegram, InboundEvent::Blocked, opted_out, "bounce System, Blocked"),
            (Channel::Telegram, InboundEvent::Blocked, bounced, ""),
            (Channel::Telegram, InboundEvent::Subscribed, bounced, "lift"),
            (Channel::Viber, text("STOP"), None, ""),
        ] {
            let judged = judge(channel, &event, &["Basta".to_owned()], listed);
            assert_eq!(shown(judged), expected, "{channel} {event:?} {listed:?}");
        }
    }
}
