//! Transport that keeps its messages in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use messaging_core::domain::delivery::attempt::Dialog;
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, OutcomeClass, Outgoing, Sent, Transport, TransportError,
};
use tokio::sync::watch;

use super::outcome;

/// Transport that records every attempt and answers as scripted; unless scripted, everyone is accepted.
#[derive(Debug)]
pub struct MemoryTransport {
    acceptance: Acceptance,
    receipts_name_messages: bool,
    state: Mutex<State>,
    /// Number of attempts so far.
    attempts: watch::Sender<usize>,
    /// True if attempts wait before they answer.
    is_held: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    sent: Vec<Outgoing>,
    errors: VecDeque<TransportError>,
    dialogs: VecDeque<Dialog>,
    next: HashMap<String, VecDeque<Outcome>>,
    always: HashMap<String, Outcome>,
}

impl Default for MemoryTransport {
    fn default() -> Self {
        Self::new(Acceptance::Delivered)
    }
}

impl MemoryTransport {
    /// Creates a transport whose accepted messages have this `acceptance`.
    pub fn new(acceptance: Acceptance) -> Self {
        Self {
            acceptance,
            receipts_name_messages: false,
            state: Mutex::default(),
            attempts: watch::Sender::new(0),
            is_held: watch::Sender::new(false),
        }
    }

    /// Makes receipts name messages even if the answer was lost.
    pub const fn whose_receipts_name_messages(mut self) -> Self {
        self.receipts_name_messages = true;
        self
    }

    /// Returns every attempt so far, failed ones too.
    pub fn sent(&self) -> Vec<Outgoing> {
        self.lock().sent.clone()
    }

    /// Returns every attempt since the last call.
    pub fn take(&self) -> Vec<Outgoing> {
        std::mem::take(&mut self.lock().sent)
    }

    /// Gives the recipient this reply from now on, such as `550 5.1.1 no such user`.
    pub fn answer(&self, recipient: &str, reply: &str) {
        self.lock().always.insert(recipient.to_owned(), outcome(reply));
    }

    /// Gives the recipient this reply once; several calls make a queue.
    pub fn answer_next(&self, recipient: &str, reply: &str) {
        self.outcome_next(recipient, outcome(reply));
    }

    /// Gives the recipient this outcome once; several calls make a queue, the same as [`Self::answer_next`].
    pub fn outcome_next(&self, recipient: &str, outcome: Outcome) {
        self.lock().next.entry(recipient.to_owned()).or_default().push_back(outcome);
    }

    /// Adds this dialog to the next attempt; several calls make a queue.
    pub fn speak_next(&self, dialog: Dialog) {
        self.lock().dialogs.push_back(dialog);
    }

    /// Makes the next attempt fail as a whole; several calls make a queue.
    pub fn fail_next(&self, error: TransportError) {
        self.lock().errors.push_back(error);
    }

    /// Holds attempts: they are recorded, but do not answer before [`Self::release`].
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    /// Lets held attempts answer.
    pub fn release(&self) {
        self.is_held.send_replace(false);
    }

    /// Waits until there were `count` attempts since the start.
    pub async fn attempts(&self, count: usize) {
        let mut attempts = self.attempts.subscribe();
        attempts.wait_for(|&attempts| attempts >= count).await.expect("the sender is ours");
    }

    /// Gives an accepted outcome the acceptance of this transport.
    fn accepting(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Answered(mut answer) if matches!(answer.class, OutcomeClass::Accepted(_)) => {
                answer.class = OutcomeClass::Accepted(self.acceptance);
                answer.into()
            }
            other => other,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let admitted = outgoing.last_look.begin(&outgoing.recipients).await;
        if admitted.contains(&Admitted::Granted) {
            self.lock().sent.push(outgoing.clone());
        }
        self.attempts.send_modify(|attempts| *attempts += 1);
        let mut is_held = self.is_held.subscribe();
        is_held.wait_for(|is_held| !is_held).await.expect("the sender is ours");
        let mut state = self.lock();
        if let Some(error) = state.errors.pop_front() {
            return Err(error);
        }
        let outcomes = outgoing
            .recipients
            .iter()
            .zip(admitted)
            .map(|(recipient, admitted)| {
                if let Some(refusal) = admitted.refusal() {
                    return refusal;
                }
                let next = state.next.get_mut(recipient).and_then(VecDeque::pop_front);
                let told = next.or_else(|| state.always.get(recipient).cloned());
                self.accepting(told.unwrap_or_else(|| outcome("250 2.0.0 kept")))
            })
            .collect();
        Ok(Sent { outcomes, captured: None, dialogs: state.dialogs.pop_front().into_iter().collect() })
    }

    fn receipts_name_messages(&self) -> bool {
        self.receipts_name_messages
    }
}

#[cfg(test)]
mod tests;
