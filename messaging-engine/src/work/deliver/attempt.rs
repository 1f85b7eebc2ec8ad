//! One attempt of a run: preparing, performing, and the result in the log of its transactions.

use std::sync::Arc;

use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::recipients::Recipient;
use messaging_core::ports::transport::{Admission as _, Admitted};

use crate::work::deliver::expiry::{expire, expire_untried};
use crate::work::deliver::perform::{PerformedAttempt, perform};
use crate::work::deliver::prepare::prepare;
use crate::work::deliver::run::Run;
use crate::work::deliver::unprepared::Impossible;
use crate::work::deliver::without_attempt::{conclude, cut_off, fail};
use crate::work::deliver::{AdmittedTurn, AttemptGuards};
use crate::work::job::{JobContext, JobError};

/// Twice the number of copies of an attachment in memory: the original and its base64, which is a third and a line end
/// longer.
const FILE_COPIES_HALVES: u64 = 5;

impl Run {
    /// Returns the outcome of addressees without another attempt, if it is known: earlier attempts ended or were cut
    /// off, or the message has expired.
    pub(super) async fn settled_without_attempt(
        &mut self,
        cx: &JobContext,
        turn: &AdmittedTurn,
    ) -> Result<Option<PerformedAttempt>, JobError> {
        let (app, clock) = (&cx.app, self.clock());
        if let Some(performed) = conclude(app, &self.message, clock, &self.addressees) {
            return Ok(Some(performed));
        }
        if self.may_be_settled_by_receipt(app).await? {
            // The cut-off attempts are counted as lost answers.
            self.found_ambiguous = 0;
            return Ok(Some(cut_off(app, &self.message, clock, &self.addressees)));
        }
        if let Some(error) = &turn.expired_with {
            return Ok(Some(expire(app, &self.message, clock, &self.addressees, error)));
        }
        if turn.is_expired && self.has_no_attempt_left() {
            return Ok(Some(expire_untried(app, &self.message, clock, &self.addressees).await?));
        }
        if cx.failures > 0 && turn.is_expired {
            let why = "every attempt ended in a fault of the server until the message expired";
            let impossible = Impossible::new("provider_error", why);
            return Ok(Some(fail(app, &self.message, clock, &self.addressees, &impossible)));
        }
        Ok(None)
    }

    /// Makes the attempt. `None` if it did not begin and this run has ended: the message is put back or turned away.
    pub(super) async fn attempt(
        &mut self,
        cx: &JobContext,
        request: RequestContent,
        everyone: &[Recipient],
        turn: AdmittedTurn,
        guards: &mut AttemptGuards,
    ) -> Result<Option<PerformedAttempt>, JobError> {
        let (app, clock) = (&cx.app, self.clock());
        let AdmittedTurn { reservation, slot, probe, is_expired, .. } = turn;
        guards.probe = probe;
        let files: u64 = request.files.iter().map(|file| file.size).sum();
        if files > 0 {
            let weight = files / 2 * FILE_COPIES_HALVES;
            guards.memory = Some(app.file_memory().take(self.job.peer(), weight).await);
        }
        let addressees = self.addressees.clone();
        let mut prepared = prepare(app, &self.message, &request, addressees, everyone, reservation, clock).await?;
        // The content to send is made of the request, and is as large.
        drop(request);
        match prepared.enter_accounts(app, self.message.channel) {
            Ok(probes) => guards.probes = probes,
            Err((_, error)) if is_expired => {
                return Ok(Some(expire(app, &self.message, clock, &self.addressees, &error)));
            }
            Err((wait, _)) => {
                let wait = self.job.pause(app, &self.message, wait);
                return Ok(cx.put_back(wait, false).await.map(|()| None)?);
            }
        }
        let log = prepared.attend(|carrier, urls| Arc::new(self.log(cx, carrier, urls, slot)));
        let log = match log {
            None if self.permit.is_some() && prepared.is_attempted_here() => {
                let log = Arc::new(self.log_without_transport(cx));
                if log.begin(std::slice::from_ref(&self.message.to)).await != [Admitted::Granted] {
                    return self.not_begun(cx, &log).await.map(|()| None);
                }
                Some(log)
            }
            log => log,
        };
        let mut performed = perform(app, &self.message, clock, prepared).await;
        if let Some(log) = log {
            if log.state().await.refused.is_some() {
                return self.not_begun(cx, &log).await.map(|()| None);
            }
            self.follow(&mut performed, &log).await;
        }
        Ok(Some(performed))
    }
}
