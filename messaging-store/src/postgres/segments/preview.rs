//! Counting the contacts that match, without storing the result.
//!
//! Contacts are examined in small ranges of their numbers that are spread over all of them, the newest first, so that a
//! workspace that is too large for the time limit is estimated from all parts. The order is the same every time.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::segments::MemberQuery;

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, workspace_number};
use super::super::query::{Queries, one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::{count, get};
use super::evaluate::{Evaluation, PIECE, present};
use crate::sampling::{is_over, spread};
use crate::tables::segments::tally::{MatchCount, Tally};

/// Maximum time for reading one snapshot.
const LOOK: Duration = Duration::from_millis(100);
/// Approximate number of contacts in a part.
const PART: i64 = 512;

/// Ranges of the numbers of a workspace's contacts that are still to be examined, in an order that spreads them.
#[derive(Debug)]
pub(in super::super) struct Parts(VecDeque<RangeInclusive<i64>>);

impl Parts {
    /// Creates parts of about `of_each` contacts each, if the numbers are evenly spread. None if there are no contacts.
    pub(in super::super) async fn new(
        on: &mut impl Queries,
        workspace_number: i64,
        contacts: u64,
        of_each: i64,
    ) -> Result<Self, Fault> {
        const SQL: &str = "SELECT min(n), max(n) FROM contacts WHERE n BETWEEN $1 AND $2";
        let (least, most) = (workspace_number << COUNT_BITS, ((workspace_number + 1) << COUNT_BITS) - 1);
        let read =
            one(on, SQL, params![least, most], |row| Ok((get::<Option<i64>>(row, 0)?, get::<Option<i64>>(row, 1)?)))
                .await?;
        let Some((Some(first), Some(last))) = read else { return Ok(Self(VecDeque::new())) };
        let numbers: i64 = last - first + 1;
        let wanted = (i64::try_from(contacts).unwrap_or(i64::MAX) / of_each + 1).min(numbers);
        let width = (numbers - 1) / wanted + 1;
        let count = (numbers - 1) / width + 1;
        let part = |place| {
            let start = first + spread(place, count) * width;
            start..=last.min(start + width - 1)
        };
        Ok(Self((0..count).map(part).collect()))
    }

    /// Returns the next part; `None` if all were examined.
    pub(in super::super) fn next(&mut self) -> Option<RangeInclusive<i64>> {
        self.0.pop_front()
    }

    /// Puts back the rest of a part that is too large; it waits until all others had their turn.
    pub(in super::super) fn put_back(&mut self, part: RangeInclusive<i64>) {
        self.0.push_back(part);
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A count in progress: the question, and the result so far.
struct Count<'a> {
    workspace: WorkspaceId,
    present: Present,
    filters: Vec<&'a Filter>,
    sample: usize,
    progress: Option<CountProgress>,
}

struct CountProgress {
    parts: Parts,
    tally: Tally,
}

/// Counts the contacts that match a query, and those that match each of the conditions.
pub(super) async fn counted(
    reads: &Reads,
    workspace: WorkspaceId,
    query: &MemberQuery,
    conditions: &[Filter],
    sample: usize,
) -> Result<MatchCount, Fault> {
    let began = Instant::now();
    let filters = std::iter::once(&query.filter).chain(conditions).collect();
    let mut count = Count { workspace, present: present(query), filters, sample, progress: None };
    loop {
        let mut on = reads.snapshot().await?;
        let is_all = count.go_on(&mut on).await?;
        if is_all || is_over(count.progress.as_ref().map_or(0, |progress| progress.tally.contacts), began) {
            let counted = count.counted(&mut on).await?;
            on.end().await?;
            return Ok(counted);
        }
        on.end().await?;
    }
}

impl Count<'_> {
    /// Examines some more contacts; returns true if those were the last.
    async fn go_on(&mut self, on: &mut Snapshot) -> Result<bool, Fault> {
        let filters = self.filters.iter().copied();
        let evaluation = Evaluation::new(on, self.workspace, &self.present, filters).await?;
        let Some(evaluation) = evaluation else { return Ok(true) };
        let progress = if let Some(progress) = &mut self.progress {
            progress
        } else {
            let progress = CountProgress::begin(on, self.workspace, self.filters.len(), self.sample).await?;
            self.progress.insert(progress)
        };
        // The preparation does not count, so that every look makes progress.
        let began = Instant::now();
        while began.elapsed() < LOOK
            && let Some(part) = progress.parts.next()
        {
            let evaluated = evaluation.in_range(on, &part, PIECE).await?;
            for (contact, holds) in evaluated.each() {
                progress.tally.note(contact, holds);
            }
            if let Some(rest) = evaluated.rest {
                progress.parts.put_back(rest..=*part.end());
            }
        }
        Ok(progress.parts.is_empty())
    }

    /// Result of the count: sizes, exact if all contacts were examined, and a sample.
    async fn counted(self, on: &mut Snapshot) -> Result<MatchCount, Fault> {
        let Some(progress) = self.progress else { return Ok(MatchCount::nobody(self.filters.len())) };
        let exact = progress.parts.is_empty();
        progress.tally.counted(on, exact).await
    }
}

/// Number of contacts in a workspace, which is given by its number.
pub(in super::super) async fn contact_count(on: &mut impl Queries, workspace_number: i64) -> Result<u64, Fault> {
    const SQL: &str = "SELECT coalesce(sum(contacts), 0)::bigint FROM contact_counts WHERE workspace_number = $1";
    Ok(one(on, SQL, params![workspace_number], |row| count(row, 0)).await?.unwrap_or(0))
}

impl CountProgress {
    async fn begin(on: &mut Snapshot, workspace: WorkspaceId, filters: usize, sample: usize) -> Result<Self, Fault> {
        let number = workspace_number(on, workspace).await?.unwrap_or(0);
        let contacts = contact_count(on, number).await?;
        let parts = Parts::new(on, number, contacts, PART).await?;
        Ok(Self { parts, tally: Tally::new(contacts, filters, sample) })
    }
}
