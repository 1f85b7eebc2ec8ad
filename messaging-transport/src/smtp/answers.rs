//! Outcomes of the recipients of a message at one peer.

use messaging_core::ports::transport::Outcome;

/// Outcomes of the recipients, as they become known.
pub(crate) struct Answers {
    outcomes: Vec<Option<Outcome>>,
    /// Indices of the recipients of the transaction under way.
    transaction: Vec<usize>,
    is_refused_at_mail: bool,
}

impl Answers {
    pub(crate) fn new(recipients: usize) -> Self {
        Self { outcomes: vec![None; recipients], transaction: Vec::new(), is_refused_at_mail: false }
    }

    /// Gives the peer's answer to MAIL, which came before it knew of any recipient, to all recipients without an
    /// outcome.
    pub(crate) fn settle_at_mail(&mut self, outcome: &Outcome) {
        self.is_refused_at_mail = true;
        self.settle(outcome);
    }

    pub(crate) fn set(&mut self, index: usize, outcome: Outcome) {
        self.outcomes[index] = Some(outcome);
    }

    /// Gives an outcome to all recipients without one.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for open in self.outcomes.iter_mut().filter(|answer| answer.is_none()) {
            *open = Some(outcome.clone());
        }
    }

    /// Gives an outcome to all recipients of the transaction without one.
    pub(crate) fn settle_transaction(&mut self, outcome: &Outcome) {
        for &index in &self.transaction {
            self.outcomes[index].get_or_insert_with(|| outcome.clone());
        }
    }

    /// Returns the indices of the recipients without an outcome.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.outcomes.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(index, _)| index)
    }

    /// Begins a transaction with these recipients.
    pub(super) fn begin_transaction(&mut self, recipients: Vec<usize>) {
        self.transaction = recipients;
    }

    /// Replaces an outcome that has just become known by its judgement, and returns that.
    pub(super) fn judge(&mut self, index: usize, judge: fn(Outcome, bool) -> Outcome) -> Option<&Outcome> {
        let known = self.outcomes[index].take()?;
        Some(self.outcomes[index].insert(judge(known, self.is_refused_at_mail)))
    }

    /// Returns the indices of the transaction's recipients without an outcome.
    pub(super) fn open_in_transaction(&self) -> impl Iterator<Item = usize> {
        self.transaction.iter().copied().filter(|&index| self.outcomes[index].is_none())
    }

    /// Returns the outcomes that are known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().flatten()
    }

    /// Returns true if all recipients of the transaction have an outcome.
    pub(super) fn is_transaction_settled(&self) -> bool {
        self.open_in_transaction().next().is_none()
    }

    /// Returns all outcomes in order; every recipient must have one.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_iter().map(|answer| answer.expect("everyone was settled")).collect()
    }
}
