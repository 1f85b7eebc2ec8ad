//! What becomes of the recipients of a message at one peer.

use messaging_core::ports::transport::Outcome;

/// The recipients' outcomes as they become known.
pub(crate) struct Answers {
    outcomes: Vec<Option<Outcome>>,
    /// Places of the recipients of the transaction that is under way.
    transaction: Vec<usize>,
    is_refused_at_mail: bool,
}

impl Answers {
    pub(crate) fn new(recipients: usize) -> Self {
        Self { outcomes: vec![None; recipients], transaction: Vec::new(), is_refused_at_mail: false }
    }

    /// Gives an outcome to everyone who has none: what the peer answered to MAIL, before it knew of any
    /// recipient.
    pub(crate) fn settle_at_mail(&mut self, outcome: &Outcome) {
        self.is_refused_at_mail = true;
        self.settle(outcome);
    }

    pub(crate) fn set(&mut self, index: usize, outcome: Outcome) {
        self.outcomes[index] = Some(outcome);
    }

    /// Gives an outcome to everyone who has none.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for open in self.outcomes.iter_mut().filter(|answer| answer.is_none()) {
            *open = Some(outcome.clone());
        }
    }

    /// Gives an outcome to everyone of the transaction who has none.
    pub(crate) fn settle_transaction(&mut self, outcome: &Outcome) {
        for &index in &self.transaction {
            self.outcomes[index].get_or_insert_with(|| outcome.clone());
        }
    }

    /// Indices of the recipients that have no outcome yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.outcomes.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(index, _)| index)
    }

    /// A transaction with these recipients begins.
    pub(super) fn begin_transaction(&mut self, recipients: Vec<usize>) {
        self.transaction = recipients;
    }

    /// Judges an outcome that has just become known; answers what it is from now on.
    pub(super) fn judge(&mut self, index: usize, judge: fn(Outcome, bool) -> Outcome) -> Option<&Outcome> {
        let known = self.outcomes[index].take()?;
        Some(self.outcomes[index].insert(judge(known, self.is_refused_at_mail)))
    }

    /// Who of the transaction has none yet.
    pub(super) fn open_in_transaction(&self) -> impl Iterator<Item = usize> {
        self.transaction.iter().copied().filter(|&index| self.outcomes[index].is_none())
    }

    /// The outcomes that are known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().flatten()
    }

    /// Whether everyone of the transaction has one.
    pub(super) fn is_transaction_settled(&self) -> bool {
        self.open_in_transaction().next().is_none()
    }

    /// All outcomes in order, when every recipient has one.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_iter().map(|answer| answer.expect("everyone was settled")).collect()
    }
}
