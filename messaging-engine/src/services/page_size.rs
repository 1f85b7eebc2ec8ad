//! Number of items of one commit: reduced where the store refuses one of them for good, until that one is alone.

use messaging_core::ports::store::CommitError;

/// Number of items of the next commit, and the reason to leave out the next item, if there is one.
#[derive(Debug)]
pub(crate) struct PageSize {
    size: usize,
    largest: usize,
    refused: Option<CommitError>,
}

impl PageSize {
    /// The number of items of a commit that is not reduced.
    pub(crate) const fn new(largest: usize) -> Self {
        Self { size: largest, largest, refused: None }
    }

    /// Largest number of items of the next commit.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Reason for which the next item is left out: it was alone, and the store refused it.
    pub(crate) const fn refused(&self) -> Option<&CommitError> {
        self.refused.as_ref()
    }

    /// Takes the reason to leave out the next item, for a caller that does so by another commit.
    pub(crate) const fn take_refused(&mut self) -> Option<CommitError> {
        self.refused.take()
    }

    /// Records a successful commit: the next one has twice as many items.
    pub(crate) fn kept(&mut self) {
        self.refused = None;
        self.size = self.size.saturating_mul(2).min(self.largest);
    }

    /// Halves the number of items of the next commit.
    pub(crate) fn halve(&mut self) {
        self.size = (self.size / 2).max(1);
    }

    /// Reacts to a failed commit of so many items. After a refusal it is tried again, with half of the items or without
    /// the one; every other error is returned, and so is a refusal of the rest without the one.
    pub(crate) fn failed(&mut self, error: CommitError, items: usize) -> Result<(), CommitError> {
        match error {
            CommitError::Refused(_) if items > 1 => self.size = items / 2,
            why @ CommitError::Refused(_) if self.refused.is_none() => {
                (self.size, self.refused) = (1, Some(why));
            }
            error => return Err(error),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits items in order as callers do; returns those that were kept and those that were left out.
    fn commit(items: &[u32], is_poison: fn(u32) -> bool) -> (Vec<u32>, Vec<u32>) {
        let (mut kept, mut left_out, mut at) = (Vec::new(), Vec::new(), 0);
        let mut page = PageSize::new(8);
        while at < items.len() {
            let next = &items[at..items.len().min(at + page.size())];
            if page.refused().is_some() {
                left_out.extend(next);
            } else if next.iter().any(|item| is_poison(*item)) {
                page.failed(CommitError::Refused("too large".into()), next.len()).unwrap();
                continue;
            } else {
                kept.extend(next);
            }
            at += next.len();
            page.kept();
        }
        (kept, left_out)
    }

    #[test]
    fn only_the_refused_are_left_out() {
        let items: Vec<u32> = (0..50).collect();
        for is_poison in [|n| n == 0, |n| n == 49, |n| n == 7 || n == 8, |n: u32| n.is_multiple_of(3), |_| false] {
            let (kept, left_out): (Vec<u32>, Vec<u32>) = items.iter().partition(|item| !is_poison(**item));
            assert_eq!(commit(&items, is_poison), (kept, left_out));
        }
    }

    #[test]
    fn what_is_refused_without_the_item_and_other_errors_are_answered() {
        let refusal = || CommitError::Refused("too large".into());
        let mut page = PageSize::new(4);
        page.failed(refusal(), 1).unwrap();
        assert!(matches!(page.failed(refusal(), 1), Err(CommitError::Refused(_))));
        assert!(matches!(PageSize::new(4).failed(CommitError::Conflict, 4), Err(CommitError::Conflict)));
    }
}
