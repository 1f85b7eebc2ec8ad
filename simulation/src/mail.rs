//! Mail servers that behave randomly: the transport of the simulation.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::ports::transport::{
    Acceptance, Admitted, Answer, Content, Outcome, OutcomeClass, Outgoing, Response, Scope, Sent, Transport,
    TransportError,
};

use crate::ledger::ContentSent;
use crate::letters;
use crate::life::Life;
use crate::plan::PeerRates;
use crate::planted::Planted;

/// Sends mail of one life of a process, in a transaction for each recipient, and keeps the rules of the port.
#[derive(Debug)]
pub(crate) struct Mail {
    life: Arc<Life>,
}

/// Answer of the peer after the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Taken,
    TakenReplyLost,
    NotTakenReplyLost,
    Deferred,
    Refused,
}

impl Mail {
    pub(crate) const fn new(life: Arc<Life>) -> Self {
        Self { life }
    }

    /// The rates of the recipient's domain: its number is in its name.
    fn rates(&self, recipient: &str) -> &PeerRates {
        let peers = &self.life.world.plan.peers;
        let digits = recipient.rsplit_once("@d").map_or("0", |(_, rest)| rest.split('.').next().unwrap_or("0"));
        &peers[digits.parse::<usize>().unwrap_or_default() % peers.len()]
    }

    async fn transaction(&self, outgoing: &Outgoing, position: usize, recipient: &String) -> Outcome {
        let world = &self.life.world;
        let rates = self.rates(recipient);
        if outgoing.last_look.is_held() {
            return Outcome::Held;
        }
        self.life.point("connect").await;
        if world.strikes(world.plan.account.throttled) {
            self.fault("account throttled");
            let wait = world.draw(|dice| dice.span(1, 600));
            let answer = Answer::new(OutcomeClass::Throttled(Scope::Account), reply(Some(450), "4.7.0 too fast"));
            return answer.wait(wait).into();
        }
        if world.strikes(world.plan.account.refused) {
            self.fault("account refused");
            return Outcome::of(OutcomeClass::Auth, reply(Some(535), "5.7.8 no"));
        }
        let mut has_waited = false;
        // A lost claim matters only while its first holder still works on the message.
        let slow = if world.planted == Some(Planted::LeaseNotChecked) { rates.slow.max(400) } else { rates.slow };
        if world.strikes(slow) {
            let span = world.draw(|dice| dice.span(1, 240));
            self.fault("slow peer");
            tokio::time::sleep(span).await;
            has_waited = true;
        }
        if world.strikes(rates.unreachable) {
            self.fault("connection lost before DATA");
            return Outcome::deferred(reply(None, "connection lost"));
        }
        if has_waited
            && let Some(reason) = outgoing.last_look.suppressed(std::slice::from_ref(recipient)).await.remove(0)
        {
            return Outcome::Suppressed(reason);
        }
        if outgoing.last_look.is_held() {
            return Outcome::Held;
        }
        if world.strikes(rates.deferred) {
            return Outcome::deferred(reply(Some(450), "4.2.1 later"));
        }
        if world.strikes(rates.refused) {
            return Outcome::refused(reply(Some(550), "5.1.1 no such user"));
        }
        let freezes = self.life.freezes();
        let marks_late = world.planted == Some(Planted::MarkAfterData);
        if !marks_late && let Some(refusal) = self.begin(outgoing, recipient).await {
            return refusal;
        }
        self.life.point("DATA").await;
        let end = self.end(rates);
        let is_taken = matches!(end, End::Taken | End::TakenReplyLost);
        let is_lost = matches!(end, End::TakenReplyLost | End::NotTakenReplyLost);
        self.life.note(format_args!("content of {} to {recipient}: {end:?}", outgoing.message_id));
        let sent = ContentSent {
            message: outgoing.message_id,
            recipient,
            is_taken,
            is_reply_lost: is_lost,
            is_late: self.life.freezes() != freezes,
        };
        world.ledger().send_content(self.life.number, sent);
        if let Content::Email(email) = &outgoing.content {
            world.ledger().note_message_id(outgoing.message_id, &email.message_id);
        }
        if is_taken
            && world.strikes(rates.returned)
            && let Content::Email(email) = &outgoing.content
            && let Some(sender) = email.envelope_from.of(position)
        {
            letters::send_back(world, outgoing.message_id, sender.as_str().to_owned(), recipient.clone());
        }
        self.life.point("final dot").await;
        if marks_late {
            self.begin(outgoing, recipient).await;
        }
        match end {
            End::Taken => Outcome::accepted(Acceptance::Delivered, reply(Some(250), "2.0.0 taken")),
            End::TakenReplyLost | End::NotTakenReplyLost => {
                self.fault("reply lost after DATA");
                Outcome::ambiguous(reply(None, "the connection broke"))
            }
            End::Deferred => Outcome::deferred(reply(Some(451), "4.3.0 later")),
            End::Refused => Outcome::refused(reply(Some(554), "5.6.0 no")),
        }
    }

    async fn begin(&self, outgoing: &Outgoing, recipient: &String) -> Option<Outcome> {
        let mut answers = outgoing.last_look.begin(std::slice::from_ref(recipient)).await;
        match answers.pop() {
            Some(Admitted::Granted) => None,
            Some(other) => other.refusal(),
            None => Some(Outcome::Withheld("no answer".to_owned())),
        }
    }

    fn end(&self, rates: &PeerRates) -> End {
        let world = &self.life.world;
        if world.strikes(rates.reply_lost) {
            return if world.draw(|dice| dice.chance(500)) { End::TakenReplyLost } else { End::NotTakenReplyLost };
        }
        if world.strikes(rates.deferred) {
            return End::Deferred;
        }
        if world.strikes(rates.refused) {
            return End::Refused;
        }
        End::Taken
    }

    fn fault(&self, kind: &'static str) {
        self.life.world.ledger().count_fault(kind);
    }
}

#[async_trait]
impl Transport for Mail {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let mut outcomes = Vec::with_capacity(outgoing.recipients.len());
        for (position, recipient) in outgoing.recipients.iter().enumerate() {
            let outcome = self.transaction(outgoing, position, recipient).await;
            outgoing.last_look.ended(recipient, &outcome);
            outcomes.push(outcome);
        }
        self.life.point("QUIT").await;
        Ok(Sent { outcomes, ..Sent::default() })
    }
}

fn reply(code: Option<u16>, text: &str) -> Response {
    let enhanced = text.split(' ').next().filter(|_| code.is_some()).map(ToOwned::to_owned);
    Response { code, enhanced, text: text.to_owned(), host: Some("mx.test".to_owned()) }
}
