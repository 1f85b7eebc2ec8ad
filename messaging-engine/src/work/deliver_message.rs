//! The job that delivers a message to its recipients of one domain: one attempt, then done or later.
//!
//! Contract section 4.2. Delivery is at least once: the attempt is made, then its outcome committed. What has begun
//! is put on record before content leaves (`transaction_log.rs`); a crash before the outcome leaves the record open,
//! and the attempt is repeated with the same Message-ID and called `ambiguous`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{AttemptSubject, Changes, EventSubject, Expect, Write, moves};
use messaging_core::domain::audience::contact::erasure::ErasedAddresses;
use messaging_core::domain::audience::contact::{Contact, moved_chat};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize_email;
use messaging_core::domain::channel::provider_link::ProviderLink;
use messaging_core::domain::delivery::Judgment;
use messaging_core::domain::delivery::attempt::{Dialog, MessageAttempt};
use messaging_core::domain::message::content;
use messaging_core::domain::message::recipients::{self, Recipient, RecipientKey, RecipientKind};
use messaging_core::domain::message::{Capture, EventKind, Message, MessageStatus};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::ports::transport::{Admission as _, Admitted, Outcome, Reservation};

use crate::app::App;
use crate::app::account_rates::SendSlot;
use crate::jobs::deliver_message::{DeliverMessage, RecipientProgress, Transaction};
use crate::jobs::lanes;
use crate::work::delivery::{AttemptAdmission, Performed, Trial, admit, conclude, cut_off, fail, perform, prepare};
use crate::work::delivery_progress::Addressee;
use crate::work::expiry::{expire, expire_untried, last_words};
use crate::work::job::{Job, JobContext, JobError, back_off_after_conflict, retry_while_unavailable};
use crate::work::marketing_look::{Look, Permit, Refusal, finish_withdrawn, look, turn_away};
use crate::work::transaction_log::{Carrier, LOOK_AGAIN_AFTER, LogState, TOO_FAST, TransactionLog};
use crate::work::unprepared::Impossible;

/// How often an outcome is decided again because the message changed meanwhile.
const MAX_COMMITS: u32 = 64;

/// A message of a campaign whose attempt could not be put on record is tried again after this.
const NOT_BEGUN_FOR: Duration = Duration::from_secs(5);

/// What a message in work takes in memory besides its content and attachments, in bytes.
const MESSAGE_OVERHEAD: u64 = 8 << 10;

/// How often the content of a message is in memory at most: as it was sent, as parts, as MIME, which may need
/// more than twice as much.
const CONTENT_COPIES: u64 = 4;

/// Twice how often an attachment is in memory: as it is and in base64, which is a third and a line end longer.
const FILE_COPIES_HALVES: u64 = 5;

impl Job for DeliverMessage {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let store = cx.app.store();
        let Some((message, length)) = store.message_with_length(self.workspace_id, self.message_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        if message.status == MessageStatus::Cancelled {
            return finish_withdrawn(cx, &message, &self).await;
        }
        if let Some(wait) = message.hold.and_then(|hold| hold.scheduled_in(cx.app.now())) {
            cx.leave_chat();
            return Ok(cx.put_back(wait, false).await?);
        }
        // What has expired is not attempted, and waits for nobody.
        if cx.app.now() < self.accepted_at(&message) + self.expiry(&cx.app, &message)
            && let Err(wait) = cx.turn_in_chat().await
        {
            return Ok(cx.put_back(wait, false).await?);
        }
        let first_look = match self.look(cx, &message).await? {
            Ok(permit) => permit,
            Err(refusal) => return turn_away(cx, &message, &self, refusal).await,
        };
        let looked_at = cx.app.monotonic();
        let expiry = self.expiry(&cx.app, &message);
        let is_expired = cx.app.now() >= self.accepted_at(&message) + expiry;
        // Whoever waits, for the turn of its domain or for memory, holds no content.
        let admission = if is_expired && self.is_over(&message, expiry) {
            AttemptAdmission::Over(last_words(&cx.app, &message).await?)
        } else {
            admit(cx, &message, self.lane.class(), self.single_domain()).await?
        };
        let (reservation, _probe, slot, expired_with) = match admission {
            AttemptAdmission::Go(reservation, probe, slot) => (reservation, probe, slot, None),
            AttemptAdmission::Paused(_, error) if is_expired => (Reservation::default(), None, None, Some(error)),
            AttemptAdmission::Paused(wait, _) => {
                return Ok(cx.put_back(self.pause(&cx.app, &message, wait), false).await?);
            }
            AttemptAdmission::TooFast(_) if is_expired => {
                (Reservation::default(), None, None, Some(TOO_FAST.to_owned()))
            }
            AttemptAdmission::TooFast(wait) => {
                return Ok(cx.put_back(self.wait(&cx.app, &message, wait), false).await?);
            }
            AttemptAdmission::Over(words) => (Reservation::default(), None, None, words),
        };
        let length = match length {
            Some(length) => length,
            None => cx.app.campaign_content_size(&message).await?,
        };
        let weight = MESSAGE_OVERHEAD + CONTENT_COPIES * length;
        let _room = cx.app.content_memory().take(self.peer(), weight).await;
        let Some((message, stored)) = store.message_with_content(self.workspace_id, self.message_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        if message.status == MessageStatus::Cancelled {
            return finish_withdrawn(cx, &message, &self).await;
        }
        let has_waited = cx.app.monotonic() >= looked_at + LOOK_AGAIN_AFTER;
        let permit = match first_look {
            Some(_) if has_waited => match self.look(cx, &message).await? {
                Ok(permit) => permit,
                Err(refusal) => return turn_away(cx, &message, &self, refusal).await,
            },
            first => first,
        };
        let mut run =
            Run { job: self, message, addressees: Vec::new(), copies: Vec::new(), found_ambiguous: 0, permit, expiry };
        let request = match stored.map(|stored| content::decode(&stored)).transpose() {
            Ok(Some(request)) => Some(request),
            Ok(None) => cx.app.campaign_request(&run.message).await?,
            Err(error) => return run.fail_without_content(cx, error).await,
        };
        let request = match request {
            Some(request) => request,
            // Nobody is left to whom anything could be said.
            None if run.message.is_redacted() && run.message.status.is_settled() => return run.end(cx).await,
            None => return run.fail_without_content(cx, "the content is no longer stored").await,
        };
        let list = |copies: &Option<Vec<String>>| copies.clone().unwrap_or_default();
        let everyone = recipients::all(&run.message.to, &list(&request.input.cc), &list(&request.input.bcc));
        run.find_addressees(&everyone);
        if run.addressees.is_empty() {
            return run.end(cx).await;
        }
        if let Some(performed) = conclude(&cx.app, &run.message, run.trial(), &run.addressees) {
            return run.record(cx, performed).await;
        }
        if run.may_be_settled_by_receipt(&cx.app).await? {
            let performed = cut_off(&cx.app, &run.message, run.trial(), &run.addressees);
            // They are counted as lost answers.
            run.found_ambiguous = 0;
            return run.record(cx, performed).await;
        }
        if let Some(error) = expired_with {
            let performed = expire(&cx.app, &run.message, run.trial(), &run.addressees, &error);
            return run.record(cx, performed).await;
        }
        if is_expired && run.has_no_attempt_left() {
            let performed = expire_untried(&cx.app, &run.message, run.trial(), &run.addressees).await?;
            return run.record(cx, performed).await;
        }
        if cx.failures > 0 && is_expired {
            let why = "every attempt ended in a fault of the server until the message expired";
            return run.fail(cx, &Impossible::new("provider_error", why)).await;
        }
        let files: u64 = request.files.iter().map(|file| file.size).sum();
        let _room_for_files = match files {
            0 => None,
            files => Some(cx.app.file_memory().take(run.job.peer(), files / 2 * FILE_COPIES_HALVES).await),
        };
        let mut prepared =
            prepare(&cx.app, &run.message, &request, run.addressees.clone(), &everyone, reservation, run.trial())
                .await?;
        // What is sent is made of it, and is as large.
        drop(request);
        let _probes = match prepared.enter_accounts(&cx.app, run.message.channel) {
            Ok(probes) => probes,
            Err((_, error)) if is_expired => {
                let performed = expire(&cx.app, &run.message, run.trial(), &run.addressees, &error);
                return run.record(cx, performed).await;
            }
            Err((wait, _)) => {
                return Ok(cx.put_back(run.job.pause(&cx.app, &run.message, wait), false).await?);
            }
        };
        let log = prepared.attend(|carrier, urls| Arc::new(run.log(cx, carrier, urls, slot)));
        let log = match log {
            None if run.permit.is_some() && prepared.is_attempted_here() => {
                let log = Arc::new(run.log_without_transport(cx));
                if log.begin(std::slice::from_ref(&run.message.to)).await != [Admitted::Granted] {
                    return run.not_begun(cx, &log).await;
                }
                Some(log)
            }
            log => log,
        };
        let mut performed = perform(&cx.app, &run.message, run.trial(), prepared).await;
        if let Some(log) = log {
            if log.state().await.refused.is_some() {
                return run.not_begun(cx, &log).await;
            }
            run.follow(&mut performed, &log).await;
        }
        run.record(cx, performed).await
    }
}

impl DeliverMessage {
    /// The last look at a message of a campaign, or at marketing of an automation; `None` at others, and where an attempt has ended already whose outcome
    /// is to be written.
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

    /// The one domain of its recipients; `None` off email.
    fn single_domain(&self) -> Option<&str> {
        self.lane.resource().strip_prefix(lanes::EMAIL)
    }

    /// Whose slowness keeps what is in memory for it: a mail server's, whoever sends to it, or a provider's.
    fn peer(&self) -> &str {
        let resource = self.lane.resource();
        if resource.starts_with(lanes::EMAIL) { resource } else { self.lane.shared() }
    }

    /// Notes that a transaction with these recipients begins.
    pub(super) fn note_begun(&mut self, recipients: &[&String]) {
        let begun: Vec<_> = recipients.iter().map(|one| RecipientKey::of(one)).collect();
        for known in self.progress.iter_mut().flatten().filter(|known| begun.contains(&known.recipient)) {
            known.transaction = Transaction::Begun;
        }
    }

    /// Notes what became of a recipient.
    pub(super) fn note_ended(&mut self, recipient: &str, outcome: &Outcome) {
        let key = RecipientKey::of(recipient);
        for known in self.progress.iter_mut().flatten().filter(|known| known.recipient == key) {
            known.transaction = Transaction::Ended { outcome: outcome.clone() };
        }
    }

    /// Who of all recipients is still to be served, with what is known of each. They are those of the request as it
    /// is now: whoever was erased since the last attempt is not in it any more.
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

/// One run of the job.
struct Run {
    job: DeliverMessage,
    /// As it is stored, as far as this run knows.
    message: Message,
    addressees: Vec<Addressee>,
    /// Everybody whom the message copied when this run read it.
    copies: Vec<String>,
    /// Attempts that were found to have been cut off and are not counted yet.
    found_ambiguous: u64,
    /// What the last look at a message of a campaign left to be done when its attempt begins.
    permit: Option<Permit>,
    /// How long the message is tried.
    expiry: Duration,
}

impl Run {
    fn trial(&self) -> Trial {
        Trial { number: self.job.attempt, accepted_at: self.job.accepted_at(&self.message), expiry: self.expiry }
    }

    /// Whether a message that has expired is not attempted once more.
    fn has_no_attempt_left(&self) -> bool {
        let was_cut_off = self.addressees.iter().any(|one| one.progress.cut_off > 0);
        self.job.is_over(&self.message, self.expiry) || (self.message.channel != Channel::Email && was_cut_off)
    }

    /// Whether this run has found an attempt that was cut off, of which the provider may still tell what became.
    async fn may_be_settled_by_receipt(&self, app: &App) -> Result<bool, StoreError> {
        let (workspace, channel) = (self.message.workspace_id, self.message.channel);
        if channel == Channel::Email || self.found_ambiguous == 0 {
            return Ok(false);
        }
        let Some(provider) = app.provider(workspace, channel).await? else { return Ok(false) };
        Ok(app.transport(channel, &provider.name).is_some_and(|transport| transport.receipts_name_messages()))
    }

    /// Ends the job, which has nothing to do any more. A campaign may have waited for its end.
    async fn end(self, cx: &JobContext) -> Result<(), JobError> {
        if let Some(permit) = self.permit {
            permit.give_back_turn(&cx.app);
        }
        let (workspace, now) = (self.message.workspace_id, cx.app.now());
        let wake = self.message.campaign_id.map(|campaign| App::wake_campaign(workspace, campaign, now));
        Ok(cx.finish(wake.into_iter().collect()).await?)
    }

    /// The attempt at a message of a campaign did not begin.
    async fn not_begun(self, cx: &JobContext, log: &TransactionLog) -> Result<(), JobError> {
        let (refused, message) = {
            let state = log.state().await;
            (state.refused, state.message.clone())
        };
        match refused {
            Some(refusal) => turn_away(cx, &message, &self.job, refusal).await,
            None => Ok(cx.put_back(NOT_BEGUN_FOR, false).await?),
        }
    }

    /// The log of a message of a campaign whose end is known without a transport.
    fn log_without_transport(&self, cx: &JobContext) -> TransactionLog {
        TransactionLog::without_transport(cx.clone(), self.log_state(cx, Vec::new()))
    }

    /// Finds out who of all recipients of the message is still to be served.
    ///
    /// A report may have settled the message between two attempts, a bounce after the reply to the content was lost:
    /// then only the copies are left.
    fn find_addressees(&mut self, everyone: &[Recipient]) {
        let mut found = self.job.open_of(everyone);
        if self.message.status.is_settled() {
            let is_ended = |one: &Addressee| matches!(one.progress.transaction, Transaction::Ended { .. });
            found.retain(|one| one.recipient.kind != RecipientKind::To || is_ended(one));
        }
        for one in &mut found {
            if one.progress.transaction == Transaction::Begun {
                one.progress.note_cut_off();
                self.found_ambiguous += 1;
            }
        }
        self.addressees = found;
        let copies = everyone.iter().filter(|one| one.kind != RecipientKind::To);
        self.copies = copies.map(|one| one.address.clone()).collect();
    }

    /// What is asked before every transaction of this run.
    fn log(&self, cx: &JobContext, carrier: Carrier<'_>, urls: Vec<String>, slot: Option<SendSlot>) -> TransactionLog {
        TransactionLog::new(cx.clone(), carrier, LogState { slot, ..self.log_state(cx, urls) })
    }

    fn log_state(&self, cx: &JobContext, urls: Vec<String>) -> LogState {
        let progress = self.addressees.iter().map(|one| one.progress.clone()).collect();
        LogState {
            job: DeliverMessage { progress: Some(progress), ..self.job.clone() },
            message: self.message.clone(),
            urls,
            found_ambiguous: self.found_ambiguous,
            looked_at: cx.app.clock().monotonic(),
            permit: self.permit.clone(),
            refused: None,
            slot: None,
        }
    }

    /// Takes over what the log committed.
    async fn follow(&mut self, performed: &mut Performed, log: &TransactionLog) {
        let mut state = log.state().await;
        self.message = state.message.clone();
        self.found_ambiguous = state.found_ambiguous;
        self.job.reserved_at = state.job.reserved_at;
        self.permit = state.permit.take();
        performed.urls = std::mem::take(&mut state.urls);
    }

    /// Nothing can be sent to whom the job serves.
    async fn fail(self, cx: &JobContext, impossible: &Impossible) -> Result<(), JobError> {
        let performed = fail(&cx.app, &self.message, self.trial(), &self.addressees, impossible);
        self.record(cx, performed).await
    }

    /// Nothing can be sent, and of the recipients only the one that the message itself names is known: what became
    /// of it already stands, and nobody can be named otherwise.
    async fn fail_without_content(
        mut self,
        cx: &JobContext,
        cause: impl std::fmt::Display + Send,
    ) -> Result<(), JobError> {
        let impossible = Impossible::new("render_error", cause);
        self.find_addressees(&recipients::all(&self.message.to, &[], &[]));
        if self.message.is_redacted() {
            self.addressees = vec![self.erased_addressee()];
        }
        if let Some(performed) = conclude(&cx.app, &self.message, self.trial(), &self.addressees) {
            return self.record(cx, performed).await;
        }
        if self.addressees.is_empty() {
            tracing::error!(message_id = %self.message.id, "copies cannot be sent: the content is not there or cannot be read");
        }
        self.fail(cx, &impossible).await
    }

    /// In the place of a `to` recipient who was erased while an attempt was under way: which of the recipients of the
    /// job it was cannot be told any more.
    fn erased_addressee(&self) -> Addressee {
        let recipient = Recipient::new(RecipientKind::To, String::new());
        let may_have_arrived = |one: &RecipientProgress| one.ambiguous || one.transaction == Transaction::Begun;
        let ambiguous = self.job.progress.iter().flatten().any(may_have_arrived);
        let progress = RecipientProgress { ambiguous, ..RecipientProgress::new(&recipient) };
        Addressee { recipient, progress }
    }

    /// The job with what is left of it.
    fn rest(&self, judgment: &Judgment, lost_replies: &[String]) -> DeliverMessage {
        let progress = judgment.open.iter().map(|recipient| {
            let known = self.addressees.iter().find(|one| one.recipient.address == recipient.address);
            let known = known.map(|one| one.progress.clone());
            let mut progress = known.unwrap_or_else(|| RecipientProgress::new(recipient));
            progress.transaction = Transaction::Waiting;
            progress.was_deferred |= recipient.was_deferred;
            if lost_replies.contains(&recipient.address) {
                progress.ambiguous = true;
                progress.lost = progress.lost.saturating_add(1);
            }
            progress
        });
        let attempt = if judgment.is_withheld { self.job.attempt } else { self.job.attempt + 1 };
        DeliverMessage { attempt, progress: Some(progress.collect()), ..self.job.clone() }
    }

    /// Commits the outcome. What left cannot be taken back: when the message changed meanwhile, the same
    /// outcome is written over its new state.
    async fn record(mut self, cx: &JobContext, performed: Performed) -> Result<(), JobError> {
        let Performed {
            mut judgment,
            mut captured,
            subject,
            mut dialogs,
            provider,
            urls,
            lost_replies,
            names,
            moved_to,
            took,
        } = performed;
        if let Some(permit) = self.permit.take() {
            // Before the commit, which wakes the campaign.
            permit.give_back_turn(&cx.app);
        }
        let ambiguous = self.found_ambiguous + lost_replies.len() as u64;
        // What the run knows of the message may be newer than what it sent.
        let mut erased = retry_while_unavailable(&cx.app, || erased_copies(cx, &self.message, &self.copies)).await?;
        // Why the store refuses what follows from the outcome; then only the outcome itself is kept.
        let mut refused: Option<CommitError> = None;
        for tries in 0..MAX_COMMITS {
            back_off_after_conflict(&cx.app, tries).await;
            if let Some(erased) = erased.take() {
                erased.out_of_judgment(&mut judgment);
                for dialog in &mut dialogs {
                    *dialog = erased.out_of_dialog(dialog).unwrap_or_else(|| dialog.clone());
                }
                captured = captured.map(|source| erased.out_of_source(&source).unwrap_or(source));
            }
            let message = &self.message;
            let told = AttemptSubject {
                number: self.job.attempt,
                mx: dialogs.last().and_then(|dialog| dialog.mx.as_deref()),
                duration_ms: took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            };
            let is_whole = refused.is_none();
            let mut changes = retry_while_unavailable(&cx.app, || self.outcome(cx, &judgment, told, is_whole)).await?;
            if let Some(why) = &refused {
                (captured, dialogs) = (None, Vec::new());
                let (workspace, subject) = (Some(message.workspace_id), &message.id);
                changes.push(cx.app.quarantine(workspace, ("message_outcome", subject), why, None));
            }
            for write in cx.app.store_urls(message.workspace_id, urls.clone()) {
                changes.push(write);
            }
            for (provider, provider_message_id) in names.iter().filter(|_| is_whole) {
                changes.push(Write::PutProviderLink(Box::new(ProviderLink {
                    workspace_id: message.workspace_id,
                    channel: message.channel,
                    provider: provider.clone(),
                    provider_message_id: provider_message_id.clone(),
                    message_id: message.id,
                    at: cx.app.now(),
                })));
            }
            if let Some(to) = moved_to.as_ref().filter(|_| is_whole) {
                changes.extend(retry_while_unavailable(&cx.app, || self.moved_contact(cx, to)).await?);
            }
            for dialog in &dialogs {
                changes.push(Write::AppendAttempt(Box::new(self.attempt(cx, dialog, provider.clone()))));
            }
            if let Some(source) = &captured {
                changes.push(Write::PutCapture(Box::new(Capture {
                    workspace_id: message.workspace_id,
                    message_id: message.id,
                    channel: message.channel,
                    to: message.to.clone(),
                    from: message.from_email.clone(),
                    subject: subject.clone(),
                    captured_at: cx.app.now(),
                    source: source.clone(),
                })));
            }
            let committed = match judgment.next_attempt_at {
                Some(due_at) => cx.again_at(due_at, &self.rest(&judgment, &lost_replies), changes).await,
                None => cx.finish(changes).await.map_err(JobError::from),
            };
            match committed {
                Err(JobError::Commit(why @ CommitError::Refused(_))) if is_whole => refused = Some(why),
                Err(JobError::Commit(CommitError::Conflict)) => {
                    let read = || cx.app.store().message(self.job.workspace_id, self.job.message_id);
                    let Some(fresh) = retry_while_unavailable(&cx.app, read).await? else {
                        return Ok(cx.finish(Changes::default()).await?);
                    };
                    self.message = fresh;
                    if self.message.is_redacted() {
                        // The recipient was erased meanwhile: that it was sent stays, to whom does not.
                        judgment.forget_recipients(self.message.status);
                        (captured, dialogs) = (None, Vec::new());
                    } else {
                        if self.message.channel != Channel::Email {
                            let told = retry_while_unavailable(&cx.app, || self.told_by_receipts(cx)).await?;
                            judgment.forget_told(&self.message, &told);
                        }
                        erased =
                            retry_while_unavailable(&cx.app, || erased_copies(cx, &self.message, &self.copies)).await?;
                    }
                }
                other => {
                    if other.is_ok() {
                        cx.app.count_ambiguous(ambiguous);
                    }
                    return other;
                }
            }
        }
        Err(JobError::Commit(CommitError::Conflict))
    }

    /// The write that gives the message's contact the new address of its chat.
    async fn moved_contact(&self, cx: &JobContext, to: &str) -> Result<Option<Write>, StoreError> {
        let message = &self.message;
        let Some(id) = message.contact_id else { return Ok(None) };
        let Some(stored) = cx.app.store().contact(message.workspace_id, id).await? else { return Ok(None) };
        let attributes = moved_chat(&stored.record.attributes, &message.to, to);
        Ok(attributes.map(|attributes| {
            let contact = Contact { attributes, updated_at: cx.app.now(), ..stored.record };
            Write::put_contact(contact, Expect::Revision(stored.revision))
        }))
    }

    /// What receipts have told of the message, which came before the outcome of this attempt.
    async fn told_by_receipts(&self, cx: &JobContext) -> Result<Vec<EventKind>, StoreError> {
        let mut told = Vec::new();
        for kind in [EventKind::Sent, EventKind::Delivered] {
            let (workspace, message) = (self.message.workspace_id, self.message.id);
            if !cx.app.store().message_events_of_kind(workspace, message, kind, 1).await?.is_empty() {
                told.push(kind);
            }
        }
        Ok(told)
    }

    fn attempt(&self, cx: &JobContext, dialog: &Dialog, provider: Option<String>) -> MessageAttempt {
        let at = cx.app.now();
        MessageAttempt {
            id: cx.app.new_id(at),
            workspace_id: self.job.workspace_id,
            message_id: self.job.message_id,
            attempt: self.job.attempt,
            at,
            provider,
            dialog: dialog.clone(),
        }
    }

    async fn outcome(
        &self,
        cx: &JobContext,
        judgment: &Judgment,
        attempt: AttemptSubject<'_>,
        is_whole: bool,
    ) -> Result<Changes, StoreError> {
        let message = &self.message;
        let mut changes = Changes::default();
        if let Some(status) = judgment.status
            && (message.status.may_become(status) || moves_through_sending(message.status, status))
        {
            let now = cx.app.now();
            let kinds = judgment.events.iter().map(|(kind, _)| *kind);
            changes.extend(moves(message, &message.after(Some(status), kinds, now), None, now));
        }
        if changes.is_empty() {
            // Somebody may have been erased since the message was read. Whoever erases meanwhile, and has looked at what was
            // said on the wire already, is to look again.
            let looked_at = Message { revision: message.revision + 1, ..message.clone() };
            changes.extend(moves(message, &looked_at, None, cx.app.now()));
        }
        let subject = EventSubject { attempt: Some(attempt), ..message.into() };
        changes.extend(cx.app.append_events(subject, judgment.events.clone()).await?);
        if is_whole {
            for write in cx.app.address_writes(message, judgment).await? {
                changes.push(write);
            }
        }
        if let Some(campaign) = message.campaign_id {
            changes.push(App::wake_campaign(message.workspace_id, campaign, cx.app.now()));
        }
        Ok(changes)
    }
}

/// Those of the copied recipients who were erased while the attempt was under way: the message does not copy them any
/// more.
async fn erased_copies(
    cx: &JobContext,
    message: &Message,
    copies: &[String],
) -> Result<Option<ErasedAddresses>, StoreError> {
    if copies.is_empty() {
        return Ok(None);
    }
    let found = cx.app.store().message_with_content(message.workspace_id, message.id).await?;
    let stored = found.and_then(|(_, content)| content);
    let Some(Ok(request)) = stored.map(|stored| content::decode(&stored)) else { return Ok(None) };
    let left = request.input.cc.iter().chain(&request.input.bcc).flatten();
    let left: HashSet<_> = left.map(|copy| normalize_email(copy)).collect();
    let erased: Vec<_> = copies.iter().filter(|copy| !left.contains(&normalize_email(copy))).collect();
    Ok((!erased.is_empty()).then(|| ErasedAddresses::new(erased.into_iter().map(String::as_str))))
}

/// An attempt of which nothing was put on record moves its message through `sending` in one step: it stayed in the
/// process, or ended before the content. One that was found suppressed after an earlier one had been cut off is
/// marked although nothing left, and so is one whose recipient was erased during an attempt that was put off. A
/// simulated recipient who complains has been delivered to in the same moment.
const fn moves_through_sending(from: MessageStatus, to: MessageStatus) -> bool {
    use MessageStatus::{Cancelled, Complained, Sending, Suppressed};
    match from {
        Sending => matches!(to, Suppressed | Cancelled | Complained),
        from => from.may_become(Sending) && (Sending.may_become(to) || matches!(to, Complained)),
    }
}
