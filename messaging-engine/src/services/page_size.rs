//! How many items are one commit: fewer where the store refuses one of them for good, until that one is alone.

use messaging_core::ports::store::CommitError;

/// How many items the next commit is about, and why the one that is next is to be left out.
#[derive(Debug)]
pub(crate) struct PageSize {
    size: usize,
    largest: usize,
    refused: Option<CommitError>,
}

impl PageSize {
    /// As many as a commit is about where nothing is in the way.
    pub(crate) const fn new(largest: usize) -> Self {
        Self { size: largest, largest, refused: None }
    }

    /// Items of the next commit, at most.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Why the next item is to be left out: it was alone, and the store refused it.
    pub(crate) const fn refused(&self) -> Option<&CommitError> {
        self.refused.as_ref()
    }

    /// The same, for whoever leaves the item out by another commit.
    pub(crate) const fn take_refused(&mut self) -> Option<CommitError> {
        self.refused.take()
    }

    /// The commit went through: the next one is about twice as many.
    pub(crate) fn kept(&mut self) {
        self.refused = None;
        self.size = self.size.saturating_mul(2).min(self.largest);
    }

    /// The next commit is about half as many.
    pub(crate) fn halve(&mut self) {
        self.size = (self.size / 2).max(1);
    }

    /// What follows from a commit of so many items that failed. After a refusal it is tried again, with half of them or
    /// without the one; answers every other error, and a refusal of what is left without the one.
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

    /// Commits items in order as callers do; answers those that were kept and those that were left out.
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
