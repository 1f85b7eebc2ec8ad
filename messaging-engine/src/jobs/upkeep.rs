//! Housekeeping: jobs that remove expired data at intervals.

use std::time::Duration;

use messaging_core::domain::delivery::lane::Lane;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Time the content of a message is kept after acceptance, for retries and for support; the status and events stay. The
/// contract sets no time.
pub(crate) const CONTENT_KEPT: Duration = Duration::from_hours(30 * 24);

/// Kind of data that expires, or was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// Remembered replies and sessions that expired.
    Replies,
    /// Failed sign-ins that no longer count.
    SignIns,
    /// Captures of the sandbox beyond the newest.
    Captures,
    /// Members of removed lists.
    ListMembers,
    /// Subscriptions that were not confirmed.
    Subscriptions,
    /// Members of removed segments.
    SegmentMembers,
    /// Rows of removed campaigns, and sends that no frequency cap counts any more.
    Campaigns,
    /// Rows of removed automations, and of runs whose history is over.
    Automations,
    /// Contents of old messages.
    Contents,
    /// Attachments of old messages.
    Files,
    /// Files that no commit refers to.
    PendingFiles,
    /// Old SMTP dialogs of attempts.
    Attempts,
    /// Unique ids of product events.
    UniqueIds,
    /// Reports of old imports.
    RowErrors,
    /// Versions of removed templates.
    Templates,
    /// Deliveries of webhooks that are too old to be sent, or to be kept.
    Deliveries,
    /// Old entries of the event log.
    EventLog,
    /// Paths over which nothing was sent for so long that their sites have forgotten the source.
    Paths,
    /// MTA-STS policies that expired.
    StsPolicies,
    /// Old reports about sending domains.
    DomainReports,
    /// Old counters of sites.
    SiteActivity,
    /// Logged requests that are too old, or too many.
    Requests,
    /// Old entries of audit logs.
    Audit,
    /// API keys that end soon, about which their workspace is warned.
    KeyExpiry,
}

impl Sweep {
    /// Every kind; each is one job of the installation.
    pub const ALL: [Self; 24] = [
        Self::Replies,
        Self::SignIns,
        Self::Captures,
        Self::ListMembers,
        Self::SegmentMembers,
        Self::Campaigns,
        Self::Automations,
        Self::Contents,
        Self::Files,
        Self::PendingFiles,
        Self::Attempts,
        Self::UniqueIds,
        Self::RowErrors,
        Self::Templates,
        Self::Deliveries,
        Self::EventLog,
        Self::Paths,
        Self::StsPolicies,
        Self::DomainReports,
        Self::SiteActivity,
        Self::Requests,
        Self::Audit,
        Self::Subscriptions,
        Self::KeyExpiry,
    ];

    /// Interval of the sweep if the most frequent ones run every `shortest`. Data that is kept for days may wait ten
    /// times as long.
    pub fn interval(self, shortest: Duration) -> Duration {
        match self {
            Self::Replies
            | Self::SignIns
            | Self::Captures
            | Self::ListMembers
            | Self::SegmentMembers
            | Self::Campaigns
            | Self::Automations => shortest,
            _ => shortest * 10,
        }
    }

    /// Name of the kind, as in its lane.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replies => "replies",
            Self::SignIns => "sign_ins",
            Self::Captures => "captures",
            Self::ListMembers => "list_members",
            Self::Subscriptions => "subscriptions",
            Self::SegmentMembers => "segment_members",
            Self::Campaigns => "campaigns",
            Self::Automations => "automations",
            Self::Contents => "contents",
            Self::Files => "files",
            Self::PendingFiles => "pending_files",
            Self::Attempts => "attempts",
            Self::UniqueIds => "unique_ids",
            Self::RowErrors => "row_errors",
            Self::Templates => "templates",
            Self::Deliveries => "deliveries",
            Self::EventLog => "event_log",
            Self::Paths => "paths",
            Self::StsPolicies => "sts_policies",
            Self::DomainReports => "domain_reports",
            Self::SiteActivity => "site_activity",
            Self::Requests => "requests",
            Self::Audit => "audit",
            Self::KeyExpiry => "key_expiry",
        }
    }
}

/// Job that runs one sweep at its interval, for ever.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Upkeep {
    pub(crate) sweep: Sweep,
}

impl Upkeep {
    /// Returns the job of a sweep; an installation needs it once.
    pub const fn of(sweep: Sweep) -> Self {
        Self { sweep }
    }
}

impl JobData for Upkeep {
    const KIND: &'static str = "upkeep";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::of_installation(&format!("{}{}", lanes::UPKEEP, self.sweep.as_str()))
    }
}
