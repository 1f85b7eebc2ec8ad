//! Notices of changes in the database, which invalidate caches and end waits.

use crate::changes::{AccountWrite, Changes, Document, DocumentKey, Expect, SourceWrite, Write};

/// Subject of a notice: rows that caches hold, or that tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Users with their passwords, memberships, API keys and sessions.
    Credentials,
    /// Workspaces.
    Workspaces,
    /// Sending domains.
    Domains,
    /// Settings of channels.
    Channels,
    /// Custom fields.
    Fields,
    /// Contacts that were added.
    Contacts,
    /// Segments, and with them the read masks of workspaces.
    Segments,
    /// Templates.
    Templates,
    /// Webhooks, and the time until which events are followed.
    Listeners,
    /// Targets of redirected links that were removed.
    Links,
    /// The name of the installation.
    Name,
    /// The fence of the installation, set or lifted.
    Fence,
    /// Jobs that may be due.
    Work,
    /// Events that were logged.
    Events,
    /// Campaigns.
    Campaigns,
    /// Automations.
    Automations,
    /// Parts of the queue that are suspended.
    Queue,
    /// The operator's orders for sources and paths.
    Sources,
    /// IP pools, and the IP addresses that workspaces may put into theirs.
    Pools,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 19] = [
        Self::Credentials,
        Self::Workspaces,
        Self::Domains,
        Self::Channels,
        Self::Fields,
        Self::Contacts,
        Self::Segments,
        Self::Templates,
        Self::Listeners,
        Self::Links,
        Self::Name,
        Self::Fence,
        Self::Work,
        Self::Events,
        Self::Campaigns,
        Self::Automations,
        Self::Queue,
        Self::Sources,
        Self::Pools,
    ];
}

/// A set of topics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Topics(u32);

impl Topics {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The set of all topics.
    pub const ALL: Self = Self((1 << Topic::ALL.len()) - 1);

    /// Returns the topics of the caches that a commit invalidates. `Topic::Work` and `Topic::Events` are not among
    /// them: the committer wakes their waiters, and the store itself gives notice of jobs that it makes due.
    pub fn of(changes: &Changes) -> Self {
        let mut topics = Self::NONE;
        for write in changes.writes() {
            let topic = match write {
                Write::Put(Document::User(_) | Document::Member(_) | Document::ApiKey(_), _)
                | Write::Delete(DocumentKey::Member(..))
                | Write::Account(AccountWrite::DeleteUser(..) | AccountWrite::DeleteSession(..)) => Topic::Credentials,
                Write::Put(Document::Workspace(_), _) | Write::EndWorkspace(..) => Topic::Workspaces,
                Write::Put(Document::Domain(_), _) | Write::Delete(DocumentKey::Domain(..)) => Topic::Domains,
                Write::Put(Document::Channel(_), _) | Write::Delete(DocumentKey::Channel(..)) => Topic::Channels,
                Write::Put(Document::Field(_), _) | Write::Delete(DocumentKey::Field(..)) => Topic::Fields,
                Write::PutSegment(..) | Write::DeleteSegment(..) => Topic::Segments,
                Write::Put(Document::Template(_), _) | Write::DeleteTemplate(..) => Topic::Templates,
                Write::Put(Document::Webhook(_), _)
                | Write::Delete(DocumentKey::Webhook(..))
                | Write::FollowEvents(..) => Topic::Listeners,
                Write::PutContacts(puts) if puts.iter().any(|put| put.expect == Expect::Absent) => Topic::Contacts,
                Write::Put(Document::Campaign(_), _) | Write::Delete(DocumentKey::Campaign(..)) => Topic::Campaigns,
                Write::PutAutomation(..) | Write::DeleteAutomation(..) => Topic::Automations,
                Write::Delete(DocumentKey::Url(..)) => Topic::Links,
                Write::PutInstallationName(..) => Topic::Name,
                Write::PutFence(..) => Topic::Fence,
                Write::Suspend(..) | Write::LiftSuspension(..) => Topic::Queue,
                Write::Put(Document::Pool(_), _)
                | Write::Delete(DocumentKey::Pool(..))
                | Write::Source(SourceWrite::Grant(_) | SourceWrite::Revoke(..)) => Topic::Pools,
                Write::Source(SourceWrite::OrderSource(..) | SourceWrite::OrderPath(..)) => Topic::Sources,
                _ => continue,
            };
            topics.insert(topic);
        }
        topics
    }

    /// Adds a topic.
    pub const fn insert(&mut self, topic: Topic) {
        self.0 |= 1 << topic as u16;
    }

    /// Returns true if a topic is in the set.
    pub const fn contains(self, topic: Topic) -> bool {
        self.0 & (1 << topic as u16) != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Number of notices about each topic. The counts only rise, so a reader that missed notices still sees every topic
/// that changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News([u64; Topic::ALL.len()]);

impl News {
    /// Counts a notice of each of these topics.
    pub fn tell(&mut self, topics: Topics) {
        for (topic, count) in Topic::ALL.iter().zip(&mut self.0) {
            *count += u64::from(topics.contains(*topic));
        }
    }

    /// Returns the topics with new notices since earlier news.
    pub fn since(&self, earlier: &Self) -> Topics {
        let mut topics = Topics::NONE;
        for ((topic, now), before) in Topic::ALL.iter().zip(&self.0).zip(&earlier.0) {
            if now != before {
                topics.insert(*topic);
            }
        }
        topics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_late_hears_of_everything_once() {
        let mut news = News::default();
        let seen = news;
        let mut told = Topics::NONE;
        told.insert(Topic::Domains);
        news.tell(told);
        news.tell(Topics::NONE);
        told = Topics::NONE;
        told.insert(Topic::Work);
        news.tell(told);
        let heard = news.since(&seen);
        let topics: Vec<_> = Topic::ALL.into_iter().filter(|topic| heard.contains(*topic)).collect();
        assert_eq!(topics, [Topic::Domains, Topic::Work]);
        assert!(news.since(&news).is_empty());
        news.tell(Topics::ALL);
        assert!(Topic::ALL.into_iter().all(|topic| news.since(&seen).contains(topic)));
    }
}
