//! Changes of counters by the open transaction.
//!
//! Many commits of a batch change the same counter. Their deltas are collected in memory and each counter is written
//! once, before the transaction ends, so that counting costs a commit next to nothing and no row is hot. A set of
//! changes that is undone takes its deltas with it; a crash loses none, because rows and counters are one transaction.

use std::collections::BTreeMap;

use messaging_core::changes::{CountMessages, CountSites};
use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::analytics::tally::Counts;
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::message::MessageSource;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::time::Timestamp;

/// Numbers that the open transaction adds to counters.
#[derive(Debug, Default)]
pub(crate) struct CounterDeltas {
    log: Vec<(Key, Counts)>,
    /// Product events by the number of their name.
    events: Vec<((i64, Quarter), i64)>,
    /// Counters of sites.
    sites: Vec<(SiteKey, SiteCounts)>,
    /// Changes of the counters of automations: each counter with the number to add to it.
    automations: Vec<(AutomationCounter, i64)>,
    /// Start of the present set of changes: it leaves earlier entries alone.
    mark: Mark,
}

/// Lengths of the lists of deltas before a set of changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    log: usize,
    events: usize,
    sites: usize,
    automations: usize,
}

/// Key of a row of counters of a site.
pub(crate) type SiteKey = (WorkspaceId, Quarter, SiteName);

/// Key of a row of counters of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Campaign(WorkspaceId, CampaignId, u8),
    CampaignActivity(WorkspaceId, CampaignId, Quarter),
    Activity(WorkspaceId, Quarter, Channel, SourceKind),
}

/// Source of a message without the id of the campaign or automation, in the order of the stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SourceKind {
    Transactional,
    Campaign,
    Automation,
}

impl SourceKind {
    pub(crate) const ALL: [Self; 3] = [Self::Transactional, Self::Campaign, Self::Automation];

    /// The name of these messages in reports of differences.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Transactional => "requests",
            Self::Campaign => "campaigns",
            Self::Automation => "automations",
        }
    }

    pub(crate) const fn of(source: MessageSource) -> Self {
        match source {
            MessageSource::Transactional => Self::Transactional,
            MessageSource::Campaign(..) => Self::Campaign,
            MessageSource::Automation(_) => Self::Automation,
        }
    }
}

impl CounterDeltas {
    /// Begins a set of changes; returns the mark for [`CounterDeltas::undo_to`].
    pub(crate) const fn mark(&mut self) -> Mark {
        self.mark = Mark {
            log: self.log.len(),
            events: self.events.len(),
            sites: self.sites.len(),
            automations: self.automations.len(),
        };
        self.mark
    }

    /// Drops the deltas added after the mark.
    pub(crate) fn undo_to(&mut self, mark: Mark) {
        self.log.truncate(mark.log);
        self.events.truncate(mark.events);
        self.sites.truncate(mark.sites);
        self.automations.truncate(mark.automations);
    }

    /// Drops all deltas: the transaction was rolled back, or is done.
    pub(crate) fn clear(&mut self) {
        self.log.clear();
        self.events.clear();
        self.sites.clear();
        self.automations.clear();
        self.mark = Mark::default();
    }

    /// Adds counts of messages.
    pub(crate) fn add(&mut self, count: &CountMessages) {
        let workspace = count.workspace_id;
        let kind = SourceKind::of(count.source);
        if let MessageSource::Campaign(campaign, variant) = count.source {
            self.push(Key::Campaign(workspace, campaign, variant), count.totals);
            for (quarter, counts) in &count.series {
                self.push(Key::CampaignActivity(workspace, campaign, *quarter), *counts);
            }
        }
        for (quarter, counts) in &count.series {
            self.push(Key::Activity(workspace, *quarter, count.channel, kind), *counts);
        }
    }

    /// Adds counts of sites.
    pub(crate) fn add_sites(&mut self, count: &CountSites) {
        let keyed = count.counts.iter().map(|(site, quarter, counts)| {
            let key = (count.workspace_id, *quarter, site.clone());
            (key, *counts)
        });
        self.sites.extend(keyed);
    }

    /// Adds a number of product events of a name; a negative number removes them.
    pub(crate) fn add_events(&mut self, name: i64, at: Timestamp, number: i64) {
        let key = (name, Quarter::of(at));
        match self.events.get_mut(self.mark.events..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == key => *sum += number,
            _ => self.events.push((key, number)),
        }
    }

    /// Adds a number to a counter of an automation.
    pub(crate) fn add_automation(&mut self, counter: AutomationCounter, number: i64) {
        match self.automations.get_mut(self.mark.automations..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == counter => *sum += number,
            _ => self.automations.push((counter, number)),
        }
    }

    /// Adds to the last entry, if that is of the same row and the same set of changes: a page of new messages of a
    /// campaign is one entry.
    fn push(&mut self, key: Key, counts: Counts) {
        match self.log.get_mut(self.mark.log..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == key => *sum += counts,
            _ => self.log.push((key, counts)),
        }
    }

    /// Changes of the counters of messages, in the order of their keys.
    pub(crate) fn of_messages(&self) -> BTreeMap<Key, Counts> {
        let mut sums: BTreeMap<Key, Counts> = BTreeMap::new();
        for (key, counts) in &self.log {
            *sums.entry(*key).or_default() += *counts;
        }
        sums.retain(|_, counts| !counts.is_zero());
        sums
    }

    /// Changes of the counters of sites, in the order of their keys.
    pub(crate) fn of_sites(&self) -> BTreeMap<&SiteKey, SiteCounts> {
        let mut sums: BTreeMap<&SiteKey, SiteCounts> = BTreeMap::new();
        for (key, counts) in &self.sites {
            *sums.entry(key).or_default() += *counts;
        }
        sums.retain(|_, counts| !counts.is_zero());
        sums
    }

    /// Changes of the numbers of product events, by the number of their name.
    pub(crate) fn of_events(&self) -> BTreeMap<(i64, Quarter), i64> {
        let mut sums: BTreeMap<(i64, Quarter), i64> = BTreeMap::new();
        for (key, number) in &self.events {
            *sums.entry(*key).or_default() += number;
        }
        sums.retain(|_, number| *number != 0);
        sums
    }

    /// Changes of the counters of automations.
    pub(crate) fn of_automations(&self) -> BTreeMap<&AutomationCounter, i64> {
        let mut sums: BTreeMap<&AutomationCounter, i64> = BTreeMap::new();
        for (counter, number) in &self.automations {
            *sums.entry(counter).or_default() += number;
        }
        sums.retain(|_, number| *number != 0);
        sums
    }
}

/// Counter of an automation; nodes, automations and states are given by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AutomationCounter {
    /// Runs of an automation in a state.
    Runs(i64, i64),
    /// Rows of runs of an automation that name a version.
    Version(i64, u32),
    /// Number of times that a node was reached.
    Entered(i64),
    /// Number of open runs at a node.
    Waiting(i64),
    /// Number of times that a branch of a node was taken.
    Branch(i64, String),
}
