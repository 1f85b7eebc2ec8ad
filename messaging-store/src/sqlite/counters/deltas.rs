//! By how much the open transaction changes counters.
//!
//! Many commits of a batch change the same counter. Their deltas are collected in memory and each counter is written
//! once, before the transaction ends, so that counting costs a commit next to nothing and no row is hot. A set of changes
//! that is undone takes its deltas with it; a crash loses none, because rows and counters are one transaction.

use std::collections::BTreeMap;

use messaging_core::changes::CountMessages;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::MessageSource;
use messaging_core::domain::tally::Counts;
use messaging_core::domain::tally::buckets::Quarter;
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, ToSql};

use super::super::fault::Fault;
use super::super::numbers::campaign_number;
use super::super::row::number;
use super::columns::{ADD_ACTIVITY, ADD_CAMPAIGN_ACTIVITY, ADD_CAMPAIGN_COUNTS, SERIES, TOTALS};

/// What the open transaction adds to counters.
#[derive(Debug, Default)]
pub(in super::super) struct CounterDeltas {
    log: Vec<(Key, Counts)>,
    /// Product events by the number of their name.
    events: Vec<((i64, Quarter), i64)>,
    /// What is counted of automations.
    automations: Vec<(AutomationCounter, i64)>,
    /// Where the present set of changes begins: what stands before is not touched by it.
    mark: Mark,
}

/// How much was counted before a set of changes.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Mark {
    log: usize,
    events: usize,
    automations: usize,
}

/// A row of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Campaign(WorkspaceId, CampaignId, u8),
    CampaignActivity(WorkspaceId, CampaignId, Quarter),
    Activity(WorkspaceId, Quarter, Channel, SourceKind),
}

/// Who sent a message, without which of them. In the order of the stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum SourceKind {
    Transactional,
    Campaign,
    Automation,
}

impl SourceKind {
    pub(in super::super) const ALL: [Self; 3] = [Self::Transactional, Self::Campaign, Self::Automation];

    /// What reports call the messages.
    pub(in super::super) const fn as_str(self) -> &'static str {
        match self {
            Self::Transactional => "requests",
            Self::Campaign => "campaigns",
            Self::Automation => "automations",
        }
    }

    pub(super) const fn of(source: MessageSource) -> Self {
        match source {
            MessageSource::Transactional => Self::Transactional,
            MessageSource::Campaign(..) => Self::Campaign,
            MessageSource::Automation(_) => Self::Automation,
        }
    }
}

impl CounterDeltas {
    /// Begins a set of changes; answers the place for [`CounterDeltas::undo_to`].
    pub(in super::super) const fn mark(&mut self) -> Mark {
        self.mark = Mark { log: self.log.len(), events: self.events.len(), automations: self.automations.len() };
        self.mark
    }

    /// Forgets what was counted since the mark.
    pub(in super::super) fn undo_to(&mut self, mark: Mark) {
        self.log.truncate(mark.log);
        self.events.truncate(mark.events);
        self.automations.truncate(mark.automations);
    }

    /// The transaction was rolled back, or is done.
    pub(in super::super) fn clear(&mut self) {
        self.log.clear();
        self.events.clear();
        self.automations.clear();
        self.mark = Mark::default();
    }

    /// Counts.
    pub(in super::super) fn add(&mut self, count: &CountMessages) {
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

    /// Counts product events of a name, or fewer of them.
    pub(in super::super) fn add_events(&mut self, name: i64, at: Timestamp, number: i64) {
        let key = (name, Quarter::of(at));
        match self.events.get_mut(self.mark.events..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == key => *sum += number,
            _ => self.events.push((key, number)),
        }
    }

    /// Counts something of an automation.
    pub(in super::super) fn add_automation(&mut self, counter: AutomationCounter, number: i64) {
        match self.automations.get_mut(self.mark.automations..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == counter => *sum += number,
            _ => self.automations.push((counter, number)),
        }
    }

    /// Adds to the entry before, if that is of the same row and the same set of changes: a page of a campaign's new
    /// messages is one entry.
    fn push(&mut self, key: Key, counts: Counts) {
        match self.log.get_mut(self.mark.log..).and_then(<[_]>::last_mut) {
            Some((last, sum)) if *last == key => *sum += counts,
            _ => self.log.push((key, counts)),
        }
    }

    /// Writes each counter that changes once; the last thing before the transaction's commit.
    pub(in super::super) fn settle(&self, connection: &Connection) -> Result<(), Fault> {
        let mut sums: BTreeMap<Key, Counts> = BTreeMap::new();
        for (key, counts) in &self.log {
            *sums.entry(*key).or_default() += *counts;
        }
        for (key, counts) in sums.iter().filter(|(_, counts)| !counts.is_zero()) {
            add(connection, *key, counts)?;
        }
        self.settle_automations(connection)?;
        if self.events.is_empty() {
            return Ok(());
        }
        let mut sums: BTreeMap<(i64, Quarter), i64> = BTreeMap::new();
        for (key, number) in &self.events {
            *sums.entry(*key).or_default() += number;
        }
        let mut addition = connection.prepare_cached(
            "INSERT INTO product_event_activity (name, quarter, events) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET events = events + excluded.events",
        )?;
        for ((name, quarter), number) in sums.into_iter().filter(|(_, number)| *number != 0) {
            addition.execute([name, quarter.0.into(), number])?;
        }
        Ok(())
    }
}

/// What is counted of automations, by numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum AutomationCounter {
    /// Runs of an automation in a state.
    Runs(i64, i64),
    /// Rows of runs of an automation that name a version.
    Version(i64, u32),
    /// How often a node was reached.
    Entered(i64),
    /// How many open runs stand at a node.
    Waiting(i64),
    /// How often a branch of a node was taken.
    Branch(i64, String),
}

impl CounterDeltas {
    fn settle_automations(&self, connection: &Connection) -> Result<(), Fault> {
        let mut sums: BTreeMap<&AutomationCounter, i64> = BTreeMap::new();
        for (counter, number) in &self.automations {
            *sums.entry(counter).or_default() += number;
        }
        for (counter, number) in sums.into_iter().filter(|(_, number)| *number != 0) {
            let (sql, key): (_, [&dyn ToSql; 2]) = match counter {
                AutomationCounter::Runs(automation, status) => (
                    "INSERT INTO automation_run_counts (automation, status, runs) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET runs = runs + excluded.runs",
                    [automation, status],
                ),
                AutomationCounter::Version(automation, version) => (
                    "UPDATE automation_versions SET runs = runs + ?3 WHERE automation = ?1 AND version = ?2",
                    [automation, version],
                ),
                AutomationCounter::Entered(node) => {
                    ("UPDATE automation_nodes SET entered = entered + ?3 WHERE n = ?1 AND ?2 = 0", [node, &0])
                }
                AutomationCounter::Waiting(node) => {
                    ("UPDATE automation_nodes SET waiting = waiting + ?3 WHERE n = ?1 AND ?2 = 0", [node, &0])
                }
                AutomationCounter::Branch(node, branch) => (
                    "INSERT INTO automation_branches (node, branch, taken) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET taken = taken + excluded.taken",
                    [node, branch],
                ),
            };
            bind(connection.prepare_cached(sql)?, &key, [number])?;
        }
        Ok(())
    }
}

/// Adds to a row, which is made when it is not there. Nothing is counted for a campaign that is gone.
fn add(connection: &Connection, key: Key, counts: &Counts) -> Result<(), Fault> {
    match key {
        Key::Campaign(workspace, campaign, variant) => {
            let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(()) };
            let key: [&dyn ToSql; 2] = [&campaign, &variant];
            bind(connection.prepare_cached(ADD_CAMPAIGN_COUNTS)?, &key, TOTALS.map(|counter| counts.get(counter)))
        }
        Key::CampaignActivity(workspace, campaign, quarter) => {
            let Some(campaign) = campaign_number(connection, workspace, campaign)? else { return Ok(()) };
            let key: [&dyn ToSql; 2] = [&campaign, &quarter.0];
            bind(connection.prepare_cached(ADD_CAMPAIGN_ACTIVITY)?, &key, SERIES.map(|counter| counts.get(counter)))
        }
        Key::Activity(workspace, quarter, channel, kind) => {
            let (channel, kind) = (number(&Channel::ALL, &channel), number(&SourceKind::ALL, &kind));
            let key: [&dyn ToSql; 4] = [&workspace.to_bytes(), &quarter.0, &channel, &kind];
            bind(connection.prepare_cached(ADD_ACTIVITY)?, &key, SERIES.map(|counter| counts.get(counter)))
        }
    }
}

/// Runs a statement whose parameters are a key and then numbers.
fn bind<const N: usize>(
    mut statement: CachedStatement<'_>,
    key: &[&dyn ToSql],
    numbers: [i64; N],
) -> Result<(), Fault> {
    for (place, part) in key.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, part)?;
    }
    for (place, number) in numbers.into_iter().enumerate() {
        statement.raw_bind_parameter(key.len() + place + 1, number)?;
    }
    statement.raw_execute()?;
    Ok(())
}
