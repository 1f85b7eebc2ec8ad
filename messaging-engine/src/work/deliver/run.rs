//! One run of a delivery job: the message as it is stored, and the recipients that it still serves.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::{self, Recipient, RecipientKind};
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::app::account_rates::SendSlot;
use crate::jobs::deliver_message::{DeliverMessage, RecipientProgress, Transaction};
use crate::work::deliver::addressee::Addressee;
use crate::work::deliver::marketing_look::{Permit, turn_away};
use crate::work::deliver::perform::PerformedAttempt;
use crate::work::deliver::schedule::AttemptClock;
use crate::work::deliver::transaction_log::{Carrier, LogState, TransactionLog};
use crate::work::deliver::unprepared::Impossible;
use crate::work::deliver::without_attempt::{conclude, fail};
use crate::work::job::{JobContext, JobError};

/// Wait of a campaign message whose attempt could not be put on record.
const NOT_BEGUN_FOR: Duration = Duration::from_secs(5);

/// One run of a delivery job.
pub(super) struct Run {
    pub(super) job: DeliverMessage,
    /// The message as it is stored, as far as this run knows.
    pub(super) message: Message,
    pub(super) addressees: Vec<Addressee>,
    /// Addresses of all copies of the message when this run read it.
    pub(super) copies: Vec<String>,
    /// Attempts that were found cut off and are not counted yet.
    pub(super) found_ambiguous: u64,
    /// Reservation that the last check of a campaign message left to be made when its attempt begins.
    pub(super) permit: Option<Permit>,
    /// Time after acceptance at which the message is given up.
    pub(super) expiry: Duration,
}

impl Run {
    pub(super) fn new(job: DeliverMessage, message: Message, permit: Option<Permit>, expiry: Duration) -> Self {
        Self { job, message, addressees: Vec::new(), copies: Vec::new(), found_ambiguous: 0, permit, expiry }
    }

    /// Returns all recipients of the message; those that this job still serves become its addressees.
    pub(super) fn find_everyone(&mut self, request: &RequestContent) -> Vec<Recipient> {
        let list = |copies: &Option<Vec<String>>| copies.clone().unwrap_or_default();
        let everyone = recipients::all(&self.message.to, &list(&request.input.cc), &list(&request.input.bcc));
        self.find_addressees(&everyone);
        everyone
    }

    pub(super) fn clock(&self) -> AttemptClock {
        AttemptClock { number: self.job.attempt, accepted_at: self.job.accepted_at(&self.message), expiry: self.expiry }
    }

    /// Returns true if a message that has expired is not attempted again.
    pub(super) fn has_no_attempt_left(&self) -> bool {
        let was_cut_off = self.addressees.iter().any(|one| one.progress.cut_off > 0);
        self.job.is_over(&self.message, self.expiry) || (self.message.channel != Channel::Email && was_cut_off)
    }

    /// Returns true if this run has found an attempt that was cut off whose result the provider may still report.
    pub(super) async fn may_be_settled_by_receipt(&self, app: &App) -> Result<bool, StoreError> {
        let (workspace, channel) = (self.message.workspace_id, self.message.channel);
        if channel == Channel::Email || self.found_ambiguous == 0 {
            return Ok(false);
        }
        let Some(provider) = app.provider(workspace, channel).await? else { return Ok(false) };
        Ok(app.transport(channel, &provider.name).is_some_and(|transport| transport.receipts_name_messages()))
    }

    /// Ends the job, which has nothing left to do. A campaign may have waited for its end.
    pub(super) async fn end(self, cx: &JobContext) -> Result<(), JobError> {
        if let Some(permit) = self.permit {
            permit.give_back_turn(&cx.app);
        }
        let (workspace, now) = (self.message.workspace_id, cx.app.now());
        let wake = self.message.campaign_id.map(|campaign| App::wake_campaign(workspace, campaign, now));
        Ok(cx.finish(wake.into_iter().collect()).await?)
    }

    /// Ends the run of a campaign message whose attempt did not begin.
    pub(super) async fn not_begun(&self, cx: &JobContext, log: &TransactionLog) -> Result<(), JobError> {
        let (refused, message) = {
            let state = log.state().await;
            (state.refused, state.message.clone())
        };
        match refused {
            Some(refusal) => turn_away(cx, &message, &self.job, refusal).await,
            None => Ok(cx.put_back(NOT_BEGUN_FOR, false).await?),
        }
    }

    /// Returns the log of a campaign message that ends without a transport.
    pub(super) fn log_without_transport(&self, cx: &JobContext) -> TransactionLog {
        TransactionLog::without_transport(cx.clone(), self.log_state(cx, Vec::new()))
    }

    /// Finds the recipients of the message that are still to be served.
    ///
    /// A report may have settled the message between two attempts, for example a bounce after the reply to the content
    /// was lost: then only the copies are left.
    pub(super) fn find_addressees(&mut self, everyone: &[Recipient]) {
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

    /// Returns the log that is consulted before every transaction of this run.
    pub(super) fn log(
        &self,
        cx: &JobContext,
        carrier: Carrier<'_>,
        urls: Vec<String>,
        slot: Option<SendSlot>,
    ) -> TransactionLog {
        TransactionLog::new(cx.clone(), carrier, LogState { slot, ..self.log_state(cx, urls) })
    }

    pub(super) fn log_state(&self, cx: &JobContext, urls: Vec<String>) -> LogState {
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

    /// Takes over the state that the log committed.
    pub(super) async fn follow(&mut self, performed: &mut PerformedAttempt, log: &TransactionLog) {
        let mut state = log.state().await;
        self.message = state.message.clone();
        self.found_ambiguous = state.found_ambiguous;
        self.job.reserved_at = state.job.reserved_at;
        self.permit = state.permit.take();
        performed.urls = std::mem::take(&mut state.urls);
    }

    /// Ends a message that cannot be sent because its content is gone. Only the recipient that the message itself names
    /// is still known: outcomes of others stand already, and no event can name them otherwise.
    pub(super) async fn fail_without_content(
        mut self,
        cx: &JobContext,
        cause: impl std::fmt::Display + Send,
    ) -> Result<(), JobError> {
        let impossible = Impossible::new("render_error", cause);
        self.find_addressees(&recipients::all(&self.message.to, &[], &[]));
        if self.message.is_redacted() {
            self.addressees = vec![self.erased_addressee()];
        }
        if let Some(performed) = conclude(&cx.app, &self.message, self.clock(), &self.addressees) {
            return self.record(cx, performed).await;
        }
        if self.addressees.is_empty() {
            tracing::error!(message_id = %self.message.id, "copies cannot be sent: the content is not there or cannot be read");
        }
        let performed = fail(&cx.app, &self.message, self.clock(), &self.addressees, &impossible);
        self.record(cx, performed).await
    }

    /// Returns a substitute for a `to` recipient who was erased while an attempt was under way: it is unknown which
    /// recipient of the job it was.
    pub(super) fn erased_addressee(&self) -> Addressee {
        let recipient = Recipient::new(RecipientKind::To, String::new());
        let may_have_arrived = |one: &RecipientProgress| one.ambiguous || one.transaction == Transaction::Begun;
        let ambiguous = self.job.progress.iter().flatten().any(may_have_arrived);
        let progress = RecipientProgress { ambiguous, ..RecipientProgress::new(&recipient) };
        Addressee { recipient, progress }
    }
}
