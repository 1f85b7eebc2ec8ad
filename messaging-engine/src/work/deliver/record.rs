//! Third step of an attempt: its outcome is committed, even if the message changed meanwhile.

use std::collections::HashSet;

use messaging_core::changes::{AttemptSubject, Changes, EventSubject, Expect, Write, moves};
use messaging_core::domain::audience::contact::erasure::ErasedAddresses;
use messaging_core::domain::audience::contact::{Contact, moved_chat};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize_email;
use messaging_core::domain::channel::provider_link::ProviderLink;
use messaging_core::domain::delivery::Judgment;
use messaging_core::domain::delivery::attempt::{Dialog, MessageAttempt};
use messaging_core::domain::message::{Capture, EventKind, Message, MessageStatus, content};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::deliver_message::{DeliverMessage, RecipientProgress, Transaction};
use crate::work::deliver::perform::PerformedAttempt;
use crate::work::deliver::run::Run;
use crate::work::deliver::site_answers::{SiteAnswer, count_sites};
use crate::work::job::{JobContext, JobError, back_off_after_conflict, retry_while_unavailable};

/// Number of tries to store an outcome while the message keeps changing.
const MAX_COMMITS: u32 = 64;

impl Run {
    /// Commits the outcome. Mail that left cannot be taken back: if the message changed meanwhile, the same outcome is
    /// written over its new state. An attempt that stayed in the process is taken back if the message was cancelled.
    pub(super) async fn record(mut self, cx: &JobContext, performed: PerformedAttempt) -> Result<(), JobError> {
        let PerformedAttempt {
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
            sites,
            is_local,
        } = performed;
        if let Some(permit) = self.permit.take() {
            // The turn is given back before the commit, which wakes the campaign.
            permit.give_back_turn(&cx.app);
        }
        cx.app.count_tls_policy_failures(dialogs.iter().filter(|dialog| dialog.tls_failure.is_some()).count() as u64);
        let ambiguous = self.found_ambiguous + lost_replies.len() as u64;
        // The message known to the run may be newer than the one it sent.
        let mut erased = retry_while_unavailable(&cx.app, || erased_copies(cx, &self.message, &self.copies)).await?;
        // Reason why the store refuses the consequences of the outcome; then only the outcome itself is stored.
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
            changes.extend(self.site_counts(&judgment, &sites, cx.app.now()).filter(|_| is_whole));
            for dialog in &dialogs {
                changes.push(Write::AppendAttempt(Box::new(self.attempt_row(cx, dialog, provider.clone()))));
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
                Some(due_at) => cx.again_at(due_at, &self.rest(&judgment, &lost_replies, &sites), changes).await,
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
                    if is_local && self.message.status == MessageStatus::Cancelled {
                        // The message was cancelled with the promise that it is not sent, and nothing has left.
                        return Ok(cx.finish(Changes::default()).await?);
                    }
                    if self.message.is_redacted() {
                        // The recipient was erased meanwhile: the record that it was sent stays, the recipient does
                        // not.
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

    /// Returns the write that counts the attempt at the sites of its recipients.
    fn site_counts(&self, judgment: &Judgment, answers: &[SiteAnswer], now: Timestamp) -> Option<Write> {
        let is_counted = |address: &str| {
            self.addressees.iter().any(|one| one.progress.is_counted && one.recipient.address == address)
        };
        let took = now.since(self.clock().accepted_at);
        count_sites(&self.message, judgment, answers, is_counted, (now, took))
    }

    /// Returns the write that gives the message's contact the new address of its chat.
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

    /// Returns the kinds of events that receipts reported before the outcome of this attempt.
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

    fn attempt_row(&self, cx: &JobContext, dialog: &Dialog, provider: Option<String>) -> MessageAttempt {
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
            // A recipient may have been erased since the message was read. An erasure at this moment that has searched
            // the dialogs already has to search them again.
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

    /// Returns the job for the remaining recipients.
    fn rest(&self, judgment: &Judgment, lost_replies: &[String], sites: &[SiteAnswer]) -> DeliverMessage {
        let progress = judgment.open.iter().map(|recipient| {
            let known = self.addressees.iter().find(|one| one.recipient.address == recipient.address);
            let known = known.map(|one| one.progress.clone());
            let mut progress = known.unwrap_or_else(|| RecipientProgress::new(recipient));
            progress.transaction = Transaction::Waiting;
            progress.was_deferred |= recipient.was_deferred;
            progress.is_counted |= sites.iter().any(|answer| answer.address == recipient.address);
            if lost_replies.contains(&recipient.address) {
                progress.ambiguous = true;
                progress.lost = progress.lost.saturating_add(1);
            }
            progress
        });
        let attempt = if judgment.is_withheld { self.job.attempt } else { self.job.attempt + 1 };
        DeliverMessage { attempt, progress: Some(progress.collect()), ..self.job.clone() }
    }
}

/// Returns the copied recipients who were erased while the attempt was under way: the message does not copy them any
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

/// Returns true if an attempt without a record moves its message through `sending` in one step: it stayed in the
/// process, or ended before the content. A message that was found suppressed after an earlier attempt had been cut off
/// is marked so although nothing left, and so is one whose recipient was erased during an attempt that was put off. A
/// simulated recipient who complains has got the message in the same moment.
const fn moves_through_sending(from: MessageStatus, to: MessageStatus) -> bool {
    use MessageStatus::{Cancelled, Complained, Sending, Suppressed};
    match from {
        Sending => matches!(to, Suppressed | Cancelled | Complained),
        from => from.may_become(Sending) && (Sending.may_become(to) || matches!(to, Complained)),
    }
}
