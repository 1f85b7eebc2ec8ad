//! Record of the transactions of a running delivery job, behind the transport's port [`LastLook`].
//!
//! A transaction is put on record with the job itself, in one commit with the move of the message to `sending`. The
//! commit that ends or reschedules the job closes the record. A process that ends in between leaves it open, and the
//! next run of the job finds it.
//!
//! [`LastLook`]: messaging_core::ports::transport::LastLook

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, Condition, Write, moves};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::message::content;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::error::Chain;
use messaging_core::ports::Transport;
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::ports::transport::{self, Admitted, Outcome};
use messaging_core::time::Monotonic;

use crate::app::Provider;
use crate::app::account_pauses::Account;
use crate::app::account_rates::SendSlot;
use crate::jobs::deliver_message::DeliverMessage;
use crate::work::deliver::marketing_look::{self, Look, Permit, Refusal};
use crate::work::job::{JobContext, JobError};

/// Error of a message whose slot is too far away.
pub(super) const TOO_FAST: &str = "the provider takes no more messages at a time";

/// Number of tries to put a transaction on record while its message keeps changing.
const MAX_COMMITS: usize = 8;

/// Time before its slot at which a transaction is put on record; it is hardly late then.
const RECORD_AHEAD: Duration = Duration::from_millis(100);

/// Number of slots taken before the message gives up because it missed them all.
const MAX_SLOTS: usize = 4;

/// Age from which the suppression list is read again before a transaction begins.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The record of one run of a job.
#[derive(Debug)]
pub(super) struct TransactionLog {
    cx: JobContext,
    /// True if transactions are put on record: something leaves the process, or the message is a campaign's. Others are
    /// granted without a record.
    is_kept: bool,
    state: tokio::sync::Mutex<LogState>,
    /// Outcomes of this run, which every further commit stores: at most one for each recipient.
    ended: Mutex<Vec<(String, Outcome)>>,
    /// Devices of the message's recipient, if there are several.
    devices: Vec<String>,
    /// Provider with the settings of the account that carries the message; `None` without a transport.
    provider: Option<Provider>,
}

/// Transport that carries the message of a run.
pub(super) struct Carrier<'a> {
    pub(super) transport: &'a dyn Transport,
    /// Name of the provider and the settings of its account.
    pub(super) provider: Provider,
    /// Devices of the message's recipient, if there are several.
    pub(super) devices: Vec<String>,
}

/// State of the run's job and message; changed by every commit.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) job: DeliverMessage,
    /// The message at the revision that is stored.
    pub(super) message: Message,
    /// Targets of redirected links: stored before anybody can follow one.
    pub(super) urls: Vec<String>,
    /// Attempts that were found cut off and are not counted yet.
    pub(super) found_ambiguous: u64,
    /// Time of the last look at the suppression list.
    pub(super) looked_at: Monotonic,
    /// Reservation that the last check of a campaign message left to be made when its attempt begins.
    pub(super) permit: Option<Permit>,
    /// Reason for which the attempt at a campaign message did not begin after all.
    pub(super) refused: Option<Refusal>,
    /// Slot of the message at its provider account, for its first transaction.
    pub(super) slot: Option<SendSlot>,
}

impl TransactionLog {
    pub(super) fn new(cx: JobContext, carrier: Carrier<'_>, state: LogState) -> Self {
        let Carrier { transport, provider, devices } = carrier;
        // A campaign message is put on record wherever it goes: it counts among the messages to its contact.
        let is_kept = !transport.is_local() || state.permit.is_some();
        let provider = Some(provider);
        Self { cx, is_kept, state: tokio::sync::Mutex::new(state), ended: Mutex::default(), devices, provider }
    }

    /// Returns the log of a campaign message that no transport carries.
    pub(super) fn without_transport(cx: JobContext, state: LogState) -> Self {
        let (state, devices) = (tokio::sync::Mutex::new(state), Vec::new());
        Self { cx, is_kept: true, state, ended: Mutex::default(), devices, provider: None }
    }

    /// Returns the account over which a recipient is sent to; `None` without a transport.
    fn account_of(&self, message: &Message, recipient: &str) -> Option<(Account, &Provider)> {
        let provider = self.provider.as_ref()?;
        let transport = self.cx.app.transport(message.channel, &provider.name)?;
        let name = transport.account_of(&provider.settings, recipient);
        Some((Account { name, ..Account::of(message.workspace_id, message.channel) }, provider))
    }

    /// Returns the reason if the recipient's account was closed: many messages are on their way to it when it asks for
    /// a pause.
    fn closed(&self, message: &Message, recipient: &str) -> Option<String> {
        let (account, provider) = self.account_of(message, recipient)?;
        let app = &self.cx.app;
        app.account_pauses().closed_since(account, provider, app.monotonic())
    }

    /// Waits for the slot of a transaction that is on record; an error if the slot is too far away, or the account was
    /// closed meanwhile.
    async fn depart(&self, message: &Message, recipient: &str, mut slot: Option<SendSlot>) -> Result<(), String> {
        let Some((account, provider)) = self.account_of(message, recipient) else { return Ok(()) };
        let app = &self.cx.app;
        let mut awaited = None::<SendSlot>;
        for _ in 0..MAX_SLOTS {
            let now = awaited.map_or(app.monotonic(), |slot| slot.0.max(app.monotonic()));
            match app.account_rates().depart(account, provider, slot, now) {
                Ok(None) => return Ok(()),
                Ok(next) => (slot, awaited) = (next, next),
                Err(_) => break,
            }
            self.cx.wait_for(slot, Duration::ZERO).await;
            if let Some(error) = self.closed(message, recipient) {
                return Err(error);
            }
        }
        Err(TOO_FAST.to_owned())
    }

    /// The state of the log, locked; read at the end of the run.
    pub(super) async fn state(&self) -> tokio::sync::MutexGuard<'_, LogState> {
        self.state.lock().await
    }

    /// Returns the reason against each recipient on the suppression list. If the list cannot be read there is none: the
    /// first check stands.
    async fn reasons(&self, message: &Message, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        let (app, workspace, channel) = (&self.cx.app, message.workspace_id, message.channel);
        match app.stopping_reasons(workspace, channel, recipients.iter()).await {
            Ok(reasons) => reasons,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "the suppression list was not looked at again");
                vec![None; recipients.len()]
            }
        }
    }

    /// Puts the transaction with these recipients on record; an error says why it cannot be.
    async fn record(&self, state: &mut LogState, recipients: &[&String]) -> Result<(), Admitted> {
        let to = state.message.to.clone();
        // A device is recorded as the recipient, whose progress the job keeps.
        let named = |one: &&String| self.devices.contains(*one);
        let recipients: Vec<_> = recipients.iter().map(|one| if named(one) { &to } else { *one }).collect();
        let recipients = &recipients[..];
        let has_to = recipients.contains(&&to);
        let mut job = state.job.clone();
        let mut has_arrived = false;
        for (recipient, outcome) in &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            // A device that has the message ends it for all devices, and one that has not ends it for none.
            if self.devices.is_empty() || outcome.is_accepted() {
                job.note_ended(if named(&recipient) { &to } else { recipient }, outcome);
                has_arrived |= !self.devices.is_empty();
            }
        }
        if !has_arrived {
            job.note_begun(recipients);
        }
        for _ in 0..MAX_COMMITS {
            let (app, message) = (&self.cx.app, &mut state.message);
            let mut changes = Changes::default();
            let (is_moved, now) = (has_to && message.status.may_become(MessageStatus::Sending), app.now());
            if is_moved {
                changes.extend(moves(message, &message.moved(MessageStatus::Sending, now), None, now));
            } else {
                // The message may have been cancelled since it was read, or a copied recipient erased.
                changes.push(Write::Expect(Condition::Message(message.workspace_id, message.id, message.revision)));
            }
            if let Some(permit) = &mut state.permit {
                if let Err(refusal) = permit.take_turn(app, now) {
                    state.refused = Some(refusal);
                    return Err(Admitted::NotNow("its campaign is paced".to_owned()));
                }
                if let Some(reservation) = permit.reservation(now) {
                    changes.push(reservation);
                    if permit.takes_place() {
                        job.reserved_at = Some(now);
                    }
                }
            }
            changes.extend(app.store_urls(message.workspace_id, state.urls.clone()));
            match self.cx.save(&job, changes).await {
                Ok(()) => {
                    if is_moved {
                        *message = message.moved(MessageStatus::Sending, now);
                    }
                    state.job = job;
                    if let Some(permit) = &mut state.permit {
                        permit.use_up();
                    }
                    state.urls.clear();
                    app.count_ambiguous(std::mem::take(&mut state.found_ambiguous));
                    return Ok(());
                }
                Err(JobError::Commit(CommitError::Conflict)) => {
                    self.refresh(state, recipients).await?;
                    self.look_again(state).await?;
                }
                Err(JobError::Commit(lost @ CommitError::LeaseLost)) => return Err(Admitted::NotNow(lost.to_string())),
                // A store that takes no work logs why, and each message would say so again.
                Err(
                    JobError::Store(StoreError::Unavailable)
                    | JobError::Commit(CommitError::Store(StoreError::Unavailable)),
                ) => return Err(Admitted::Held),
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "a transaction could not be put on record and does not begin");
                    return Err(Admitted::Held);
                }
            }
        }
        Err(Admitted::NotNow("the message keeps changing".to_owned()))
    }

    /// Checks a campaign message again; an error if its attempt is not to begin any more.
    async fn look_again(&self, state: &mut LogState) -> Result<(), Admitted> {
        let Some(permit) = state.permit.take() else { return Ok(()) };
        match marketing_look::look(&self.cx.app, &state.message, &state.job).await {
            Ok(Look::Go(next)) => {
                state.permit = Some(next.following(&permit));
                state.looked_at = self.cx.app.clock().monotonic();
                Ok(())
            }
            Ok(Look::Refused(refusal)) => {
                state.refused = Some(refusal);
                Err(Admitted::NotNow("it is not to be sent now".to_owned()))
            }
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "a message was not looked at again before its transaction");
                state.permit = Some(permit);
                Err(Admitted::Held)
            }
        }
    }

    /// Reads the message anew; an error when nothing of it is to be sent to these recipients any more.
    async fn refresh(&self, state: &mut LogState, recipients: &[&String]) -> Result<(), Admitted> {
        let (workspace, id) = (state.message.workspace_id, state.message.id);
        let read = self.cx.app.store().message_with_content(workspace, id).await.map_err(|error| {
            tracing::warn!(error = %Chain(&error), "a message could not be read before its transaction");
            Admitted::Held
        })?;
        let settled = || Admitted::NotNow("the message was settled meanwhile".to_owned());
        let (fresh, content) = read.ok_or_else(settled)?;
        let has_to = recipients.iter().any(|recipient| **recipient == fresh.to);
        if fresh.is_redacted() || fresh.status == MessageStatus::Cancelled || (has_to && fresh.status.is_settled()) {
            return Err(settled());
        }
        // A message of a campaign stores no request, and has no copies.
        let request = content.and_then(|content| content::decode(&content).ok());
        if request.is_none() && fresh.campaign_id.is_none() {
            return Err(settled());
        }
        let copies = request.iter().flat_map(|request| request.input.cc.iter().chain(&request.input.bcc).flatten());
        let copies: Vec<_> = copies.collect();
        if !recipients.iter().all(|recipient| **recipient == fresh.to || copies.contains(recipient)) {
            return Err(settled());
        }
        state.message = fresh;
        Ok(())
    }
}

impl TransactionLog {
    /// Returns true if the workspace of the message is under deletion, or its part of the queue is suspended.
    fn is_withheld(&self) -> bool {
        let lane = &self.cx.handle().lane;
        let is_at_the_end = lane.flow().workspace.is_some_and(|workspace| self.cx.app.is_known_to_end(workspace));
        is_at_the_end || self.cx.app.is_suspended(lane)
    }

    /// Returns true if the message may leave now.
    fn may_leave(&self) -> bool {
        self.cx.app.may_send() && !self.is_withheld()
    }
}

#[async_trait]
impl transport::Admission for TransactionLog {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        let mut state = self.state.lock().await;
        let reasons = self.reasons(&state.message, recipients).await;
        state.looked_at = self.cx.app.clock().monotonic();
        reasons
    }

    fn is_held(&self) -> bool {
        !self.may_leave()
    }

    async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        if self.cx.app.fence().is_some() || self.is_withheld() {
            return vec![Admitted::Held; recipients.len()];
        }
        if !self.is_kept {
            return vec![Admitted::Granted; recipients.len()];
        }
        let mut state = self.state.lock().await;
        let slot = state.slot.take();
        self.cx.wait_for(slot, RECORD_AHEAD).await;
        let now = self.cx.app.clock().monotonic();
        let mut answers = vec![Admitted::Granted; recipients.len()];
        if now >= state.looked_at + LOOK_AGAIN_AFTER {
            let reasons = self.reasons(&state.message, recipients).await;
            for (answer, reason) in answers.iter_mut().zip(reasons) {
                *answer = reason.map_or(Admitted::Granted, Admitted::Suppressed);
            }
            state.looked_at = now;
            if let Err(refusal) = self.look_again(&mut state).await {
                answers.fill(refusal);
            }
        }
        for (answer, recipient) in answers.iter_mut().zip(recipients) {
            if let (Admitted::Granted, Some(error)) = (&*answer, self.closed(&state.message, recipient)) {
                *answer = Admitted::NotNow(error);
            }
        }
        let granted: Vec<_> = recipients
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| **answer == Admitted::Granted)
            .map(|(one, _)| one)
            .collect();
        if granted.is_empty() {
            return answers;
        }
        let recorded = match self.record(&mut state, &granted).await {
            Ok(()) => self.depart(&state.message, granted[0], slot).await.map_err(Admitted::NotNow),
            refused => refused,
        };
        if let Err(refusal) = recorded {
            for answer in answers.iter_mut().filter(|answer| **answer == Admitted::Granted) {
                *answer = refusal.clone();
            }
        }
        answers
    }

    fn ended(&self, recipient: &str, outcome: &Outcome) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((recipient.to_owned(), outcome.clone()));
    }
}
