//! Job that delivers a message to its recipients of one domain: one attempt, then done or later.
//!
//! Contract section 4.2. Delivery is at least once: the attempt is made, then its outcome committed. A transaction is
//! put on record before content leaves (`transaction_log.rs`); a crash before the outcome leaves the record open, and
//! the attempt is repeated with the same Message-ID and marked `ambiguous`.

mod addressee;
mod admit;
mod attempt;
mod compose;
mod devices;
mod expiry;
mod marketing_look;
mod path_hold;
mod perform;
mod prepare;
mod prepared;
mod record;
mod run;
mod schedule;
mod site_answers;
mod transaction_log;
mod unprepared;
mod without_attempt;

use std::time::Duration;

use messaging_core::changes::Changes;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::{Recipient, RecipientKey};
use messaging_core::domain::message::{Message, MessageStatus, content};
use messaging_core::ports::transport::{Outcome, Reservation};
use messaging_core::time::Monotonic;

use crate::app::account_pauses::Probe;
use crate::app::account_rates::SendSlot;
use crate::app::memory_budget::Charge;
use crate::jobs::deliver_message::{DeliverMessage, RecipientProgress, Transaction};
use crate::jobs::lanes;
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::admit::{AttemptAdmission, admit};
use crate::work::deliver::expiry::last_words;
use crate::work::deliver::marketing_look::{Look, Permit, Refusal, finish_withdrawn, look, turn_away};
use crate::work::deliver::run::Run;
use crate::work::deliver::transaction_log::{LOOK_AGAIN_AFTER, TOO_FAST};
use crate::work::job::{Job, JobContext, JobError};

/// Bytes of memory that a message in work takes besides its content and attachments.
const MESSAGE_OVERHEAD: u64 = 8 << 10;

/// Upper bound on the copies of a message's content in memory: as it was sent, as parts, as MIME, which may need more
/// than twice as much.
const CONTENT_COPIES: u64 = 4;

impl Job for DeliverMessage {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let store = cx.app.store();
        let Some((message, length)) = store.message_with_length(self.workspace_id, self.message_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        // A message that waits, for the turn of its domain or for memory, holds no content in memory.
        let Some(turn) = self.wait_for_turn(cx, &message).await? else { return Ok(()) };
        let length = match length {
            Some(length) => length,
            None => cx.app.campaign_content_size(&message).await?,
        };
        let weight = MESSAGE_OVERHEAD + CONTENT_COPIES * length;
        let _room = cx.app.content_memory().take(self.peer(), weight).await;
        let Some((mut run, request)) = self.open(cx, &turn).await? else { return Ok(()) };
        let everyone = run.find_everyone(&request);
        if run.addressees.is_empty() {
            return run.end(cx).await;
        }
        if let Some(performed) = run.settled_without_attempt(cx, &turn).await? {
            return run.record(cx, performed).await;
        }
        let mut guards = AttemptGuards::default();
        match run.attempt(cx, request, &everyone, turn, &mut guards).await? {
            Some(performed) => run.record(cx, performed).await,
            None => Ok(()),
        }
    }
}

/// Turn of a message, with the data known on its admission.
struct AdmittedTurn {
    /// Result of the last check of a campaign message; `None` for others.
    permit: Option<Permit>,
    looked_at: Monotonic,
    /// Time after acceptance at which the message is given up.
    expiry: Duration,
    is_expired: bool,
    /// Reason why an expired message is not attempted again.
    expired_with: Option<String>,
    reservation: Reservation,
    slot: Option<SendSlot>,
    /// Probe of the account: other messages wait for its result.
    probe: Option<Probe>,
}

/// Resources that an attempt holds until its outcome is recorded.
#[derive(Default)]
struct AttemptGuards {
    memory: Option<Charge>,
    probes: Vec<Probe>,
    /// Probe of the account that the message was admitted with.
    probe: Option<Probe>,
}

impl DeliverMessage {
    /// Waits until the message may be attempted. `None` when this run has ended, because the message is put back,
    /// withdrawn or turned away.
    async fn wait_for_turn(&self, cx: &JobContext, message: &Message) -> Result<Option<AdmittedTurn>, JobError> {
        if message.status == MessageStatus::Cancelled {
            return finish_withdrawn(cx, message, self).await.map(|()| None);
        }
        if let Some(wait) = message.hold.as_ref().and_then(|hold| hold.scheduled_in(cx.app.now())) {
            cx.leave_chat();
            return Ok(cx.put_back(wait, false).await.map(|()| None)?);
        }
        let expiry = self.expiry(&cx.app, message);
        let expires_at = self.accepted_at(message) + expiry;
        // An expired message is not attempted, and waits for no other.
        if cx.app.now() < expires_at
            && let Err(wait) = cx.turn_in_chat().await
        {
            return Ok(cx.put_back(wait, false).await.map(|()| None)?);
        }
        let permit = match self.look(cx, message).await? {
            Ok(permit) => permit,
            Err(refusal) => return turn_away(cx, message, self, refusal).await.map(|()| None),
        };
        let looked_at = cx.app.monotonic();
        let is_expired = cx.app.now() >= expires_at;
        let admission = if is_expired && self.is_over(message, expiry) {
            AttemptAdmission::Over(last_words(&cx.app, message).await?)
        } else {
            let terms = self.path_terms(cx, message, expires_at).await?;
            admit(cx, message, self.lane.class(), self.single_domain(), terms).await?
        };
        let (reservation, probe, slot, expired_with) = match admission {
            AttemptAdmission::Go(reservation, probe, slot) => (reservation, probe, slot, None),
            AttemptAdmission::Paused(_, error) if is_expired => (Reservation::default(), None, None, Some(error)),
            AttemptAdmission::Paused(wait, _) => {
                return Ok(cx.put_back(self.pause(&cx.app, message, wait), false).await.map(|()| None)?);
            }
            AttemptAdmission::TooFast(_) if is_expired => {
                (Reservation::default(), None, None, Some(TOO_FAST.to_owned()))
            }
            AttemptAdmission::TooFast(wait) => {
                return Ok(cx.put_back(self.wait(&cx.app, message, wait), false).await.map(|()| None)?);
            }
            AttemptAdmission::Held(_, hold) if is_expired => (Reservation::default(), None, None, Some(hold.sentence)),
            AttemptAdmission::Held(reason, hold) => {
                return self.hold_for_path(cx, message, reason, hold.wait).await.map(|()| None);
            }
            AttemptAdmission::Over(words) => (Reservation::default(), None, None, words),
        };
        Ok(Some(AdmittedTurn { permit, looked_at, expiry, is_expired, expired_with, reservation, slot, probe }))
    }

    /// Reads the message with its content once its turn has come. `None` when this run has ended: the message is
    /// withdrawn, turned away, or its content is gone.
    async fn open(self, cx: &JobContext, turn: &AdmittedTurn) -> Result<Option<(Run, RequestContent)>, JobError> {
        let found = cx.app.store().message_with_content(self.workspace_id, self.message_id).await?;
        let Some((message, stored)) = found else {
            return Ok(cx.finish(Changes::default()).await.map(|()| None)?);
        };
        if message.status == MessageStatus::Cancelled {
            return finish_withdrawn(cx, &message, &self).await.map(|()| None);
        }
        let has_waited = cx.app.monotonic() >= turn.looked_at + LOOK_AGAIN_AFTER;
        let permit = match turn.permit.clone() {
            Some(_) if has_waited => match self.look(cx, &message).await? {
                Ok(permit) => permit,
                Err(refusal) => return turn_away(cx, &message, &self, refusal).await.map(|()| None),
            },
            first => first,
        };
        let run = Run::new(self, message, permit, turn.expiry);
        let request = match stored.map(|stored| content::decode(&stored)).transpose() {
            Ok(Some(request)) => Some(request),
            Ok(None) => cx.app.campaign_request(&run.message).await?,
            Err(error) => return run.fail_without_content(cx, error).await.map(|()| None),
        };
        match request {
            Some(request) => Ok(Some((run, request))),
            // No recipient is left to report to.
            None if run.message.is_redacted() && run.message.status.is_settled() => run.end(cx).await.map(|()| None),
            None => run.fail_without_content(cx, "the content is no longer stored").await.map(|()| None),
        }
    }

    /// Makes the last check of a message of a campaign, or of marketing of an automation; `None` for others, and if an
    /// attempt has ended already whose outcome is still to be written.
    async fn look(&self, cx: &JobContext, message: &Message) -> Result<Result<Option<Permit>, Refusal>, JobError> {
        let has_ended = |one: &RecipientProgress| matches!(one.transaction, Transaction::Ended { .. });
        let is_settled = message.status.is_settled();
        if message.campaign_id.is_none() && self.marketing.is_none()
            || is_settled
            || self.progress.iter().flatten().any(has_ended)
        {
            return Ok(Ok(None));
        }
        Ok(match look(&cx.app, message, self).await? {
            Look::Go(permit) => Ok(Some(permit)),
            Look::Refused(refusal) => Err(refusal),
        })
    }

    /// Returns the one domain of its recipients; `None` on channels other than email.
    fn single_domain(&self) -> Option<&str> {
        self.lane.resource().strip_prefix(lanes::EMAIL)
    }

    /// Returns the name of the peer whose slowness keeps the message in memory: a mail server, for all senders to it,
    /// or a provider.
    fn peer(&self) -> &str {
        let resource = self.lane.resource();
        if resource.starts_with(lanes::EMAIL) { resource } else { self.lane.shared() }
    }

    /// Records that a transaction with these recipients begins.
    fn note_begun(&mut self, recipients: &[&String]) {
        let begun: Vec<_> = recipients.iter().map(|one| RecipientKey::of(one)).collect();
        for known in self.progress.iter_mut().flatten().filter(|known| begun.contains(&known.recipient)) {
            known.transaction = Transaction::Begun;
        }
    }

    /// Records the outcome of a recipient.
    fn note_ended(&mut self, recipient: &str, outcome: &Outcome) {
        let key = RecipientKey::of(recipient);
        for known in self.progress.iter_mut().flatten().filter(|known| known.recipient == key) {
            known.transaction = Transaction::Ended { outcome: outcome.clone() };
        }
    }

    /// Returns the recipients that are still to be served, with their progress. They come from the current request: a
    /// recipient who was erased since the last attempt is not in it any more.
    fn open_of(&self, everyone: &[Recipient]) -> Vec<Addressee> {
        let with = |recipient: &Recipient, progress: RecipientProgress| Addressee {
            recipient: Recipient { was_deferred: progress.was_deferred, ..recipient.clone() },
            progress,
        };
        if let Some(known) = &self.progress {
            let found = everyone.iter().filter_map(|recipient| {
                let key = RecipientKey::of(&recipient.address);
                Some(with(recipient, known.iter().find(|known| known.recipient == key)?.clone()))
            });
            return found.collect();
        }
        let is_served = |one: &&Recipient| self.domain.as_ref().is_none_or(|domain| one.domain() == *domain);
        everyone.iter().filter(is_served).map(|one| with(one, RecipientProgress::new(one))).collect()
    }
}
