//! What an operation or job wants changed: collected while it decides, committed as one by its caller.
//!
//! Nobody can forget to commit, no transaction is open while a socket is, and a dropped request leaves
//! nothing half done. See "Read, decide, commit" in docs/design/commits.md.

mod accounts;
mod automations;
mod campaigns;
mod conditions;
mod contacts;
mod documents;
mod jobs;
mod messages;
mod observation;
mod replies;
mod sources;
mod webhooks;

use std::sync::Arc;

use bytes::Bytes;

use crate::domain::audience::contact::Contact;
use crate::domain::audience::import::report::RowErrors;
use crate::domain::audience::product_event::ProductEvent;
use crate::domain::audience::soft_bounce::Streak;
use crate::domain::audience::subscription::Subscription;
use crate::domain::audience::suppression::Suppression;
use crate::domain::channel::Channel;
use crate::domain::channel::inbound_message::InboundKey;
use crate::domain::channel::provider_link::ProviderLink;
use crate::domain::delivery::attempt::MessageAttempt;
use crate::domain::delivery::queue::{QueueScope, Suspension};
use crate::domain::image::Image;
use crate::domain::installation::fence::Fence;
use crate::domain::installation::quarantine::Quarantined;
use crate::domain::mail::dmarc::report::KeptReport;
use crate::domain::mail::link_token::CopyKey;
use crate::domain::mail::mta_sts::StsPolicy;
use crate::domain::message::attachment::MessageBlob;
use crate::domain::message::{Capture, Message, MessageContent, MessageEvent};
use crate::domain::search::contacts::ContactBlock;
use crate::domain::search::messages::MessageBlock;
use crate::domain::security::audit::AuditRow;
use crate::domain::security::request_log::{LoggedBodies, LoggedRequest};
use crate::domain::segment::Segment;
use crate::ids::{
    AutomationId, BlobId, CampaignId, ContactId, ImageId, JobId, ListId, MessageId, RequestId, SegmentId,
    SuppressionId, TemplateId, WorkspaceId,
};
use crate::time::Timestamp;

pub use self::accounts::AccountWrite;
pub use self::automations::{
    AutomationWrite, CountNodes, DateFire, ExpectEntries, MoveRuns, PutAutomation, PutDateFires, PutRun, RunKey,
    TakeNotes,
};
pub use self::campaigns::{AudienceRow, ContactSends, CountLink, Engagement, NewWaiting, WaitingKey, track_of};
pub use self::conditions::Condition;
pub use self::contacts::{MoveProductEvents, PutContact};
pub use self::documents::{Document, DocumentKey};
pub use self::jobs::{JobHandle, JobPlace, JobWrite, NewJob, PutBack, Reschedule};
pub use self::messages::{
    AttributeMessage, CountMessages, CountSites, EraseCopy, LogEvent, MoveMessage, RedactMessage, moves, visited,
};
pub use self::observation::{AttemptSubject, EventSubject, ImportObservation, MessageObservation, Observation};
pub use self::replies::{Reply, ReplyKey};
pub use self::sources::SourceWrite;
pub use self::webhooks::{UpdateDelivery, WebhookWrite};
pub use crate::revision::Expect;

/// A set of writes that happens completely or not at all.
///
/// A clone shares the writes, so that a commit that may have to be tried again costs no copy.
#[derive(Debug, Default, Clone)]
pub struct Changes {
    writes: Arc<Vec<Write>>,
    is_setup: bool,
}

impl Changes {
    /// Adds a write. Writes are applied in the order they were added.
    pub fn push(&mut self, write: Write) {
        Arc::make_mut(&mut self.writes).push(write);
    }

    /// Adds all writes of others, after its own.
    pub fn append(&mut self, others: Self) {
        Arc::make_mut(&mut self.writes).append(&mut Arc::unwrap_or_clone(others.writes));
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes, in order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The same as part of setting the installation up, which whoever runs it does on the machine itself: a few rows, which
    /// the space that is kept free is there for.
    #[must_use]
    pub fn of_setup(self) -> Self {
        Self { is_setup: true, ..self }
    }

    /// Whether the commit makes the database grow for something new: what a store refuses when the disk is
    /// nearly full. What a job commits does not count, because it goes on with work that was accepted before.
    pub fn adds(&self) -> bool {
        !self.is_setup
            && self.writes.iter().any(Write::adds)
            && !self.writes.iter().any(|write| write.claim().is_some())
    }
}

impl Extend<Write> for Changes {
    fn extend<T: IntoIterator<Item = Write>>(&mut self, writes: T) {
        Arc::make_mut(&mut self.writes).extend(writes);
    }
}

impl IntoIterator for Changes {
    type Item = Write;
    type IntoIter = std::vec::IntoIter<Write>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.writes).into_iter()
    }
}

impl FromIterator<Write> for Changes {
    fn from_iter<T: IntoIterator<Item = Write>>(writes: T) -> Self {
        Self { writes: Arc::new(writes.into_iter().collect()), is_setup: false }
    }
}

/// The change to another secret key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSecretKey {
    /// The check value that is replaced.
    pub before: String,
    /// The check value of the other key.
    pub after: String,
    /// The id of the other key.
    pub key: String,
}

/// One typed write.
#[derive(Debug, Clone)]
pub enum Write {
    /// Creates or replaces a document.
    Put(Document, Expect),
    /// Removes a document; no conflict when it is gone already.
    Delete(DocumentKey),
    /// Changes nothing. A conflict unless something is as it was read.
    Expect(Condition),
    /// Changes what belongs to users and keys: sessions, tickets, second factors, attempts to sign in, last uses.
    Account(AccountWrite),
    /// Keeps the check value of the secret key. A conflict when there is one.
    PutKeyCheck(String),
    /// Makes another secret key the one that secrets are sealed under, for all processes. A conflict when the check value
    /// is another one than `before`, or when a process that works on the database does not hold the key
    /// ([`Installation::key_holders`](crate::ports::store::Installation::key_holders)).
    SwitchSecretKey(Box<SwitchSecretKey>),
    /// Keeps the name of the installation. A conflict when there is another one than the second, `None` for none.
    PutInstallationName(String, Option<String>),
    /// Fences the installation, or ends that. A conflict when the fence is another one than the second; `None` for none.
    PutFence(Option<Fence>, Option<Fence>),
    /// Keeps the MTA-STS policy of a domain of recipients, in the place of the one before.
    PutStsPolicy(Box<StsPolicy>),
    /// Ends the removal of a workspace: of it nothing stays but that its id is taken. A conflict when it is not being removed.
    EndWorkspace(WorkspaceId),
    /// Creates or replaces a suppression. The address is unique per channel.
    PutSuppression(Suppression, Expect),
    /// Makes a streak of soft bounces one longer. A conflict when it is not as long as it was read.
    CountSoftBounce(Streak),
    /// Ends the streak of an address (normalised); no conflict when there is none.
    EndSoftBounces(WorkspaceId, Channel, String),
    /// Takes an address off the list, at the present time; no conflict when it is gone already.
    DeleteSuppression(WorkspaceId, SuppressionId, Timestamp),
    /// Creates or replaces contacts in order, except for their lists. Identifiers are unique in the workspace.
    PutContacts(Vec<PutContact>),
    /// Removes a contact with its tags and its memberships of lists and segments; no conflict when it is gone
    /// already. Its product events stay until they are moved or deleted.
    DeleteContact(WorkspaceId, ContactId),
    /// Adds product events, in order. A conflict when a contact is gone, and when a unique id arrived already
    /// within [`UNIQUE_FOR`](crate::domain::audience::product_event::UNIQUE_FOR) before the event.
    AppendProductEvents(Vec<ProductEvent>),
    /// Gives product events of a merged contact to the one it became.
    MoveProductEvents(MoveProductEvents),
    /// Deletes up to so many product events of a contact that is gone; no conflict when there are none.
    DeleteProductEvents(WorkspaceId, ContactId, usize),
    /// Makes a contact a member of a list, at the present time. A conflict when it is one already, and when either is gone.
    JoinList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Ends a membership, at the present time; no conflict when there is none.
    LeaveList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Keeps what is recorded of a contact on a public list. A conflict when something else is recorded than was read, and
    /// when either is gone. Membership itself is [`JoinList`](Self::JoinList) and [`LeaveList`](Self::LeaveList).
    PutSubscription(Box<Subscription>, Expect),
    /// Forgets what is recorded of a contact on a list; no conflict when that is nothing.
    ForgetSubscription(WorkspaceId, ListId, ContactId),
    /// Creates a segment, or replaces all of it but its size, which follows its members.
    PutSegment(Box<Segment>, Expect),
    /// Removes a segment; its members are let go later. No conflict when it is gone already.
    DeleteSegment(WorkspaceId, SegmentId),
    /// Keeps which rows of an import were refused.
    AppendRowErrors(RowErrors),
    /// Removes a template; its versions stay for the messages that were accepted with them and go later. No
    /// conflict when it is gone already.
    DeleteTemplate(WorkspaceId, TemplateId, Timestamp),
    /// Stores a new message with its content.
    InsertMessage(Box<Message>, MessageContent),
    /// Moves a message to another state.
    MoveMessage(MoveMessage),
    /// Changes counters.
    CountMessages(Box<CountMessages>),
    /// Changes counters of sites.
    CountSites(Box<CountSites>),
    /// Counts a click on a link.
    CountLink(Box<CountLink>),
    /// Notes that something was first seen of a message of a campaign; no conflict when it was noted already.
    NoteEngagement(Engagement),
    /// Attributes a message to another contact.
    AttributeMessage(AttributeMessage),
    /// Removes whom a message went to and what it said: its content, attempts, capture.
    RedactMessage(Box<RedactMessage>),
    /// Takes somebody who was copied out of a message of somebody else.
    EraseCopy(Box<EraseCopy>),
    /// Notes whom a new message copies, so that erasing finds it.
    ListCopies(WorkspaceId, MessageId, Vec<CopyKey>),
    /// Forgets that a message copies somebody; no conflict when that was not noted.
    UnlistCopy(WorkspaceId, MessageId, CopyKey),
    /// Keeps a provider's name for a message, in place of another message of that name, and lets go of some that are
    /// older than [`KEPT`](crate::domain::channel::provider_link::KEPT).
    PutProviderLink(Box<ProviderLink>),
    /// Adds an event to a message.
    AppendEvent(Box<MessageEvent>),
    /// Changes nothing: what the commit makes true, for the log and the metrics of the process that commits.
    Observe(Box<Observation>),
    /// Adds an event, which is appended with it, to the log of its workspace.
    LogEvent(LogEvent),
    /// Wants the events of a workspace logged until a time.
    FollowEvents(WorkspaceId, Timestamp),
    /// Keeps what was said on the wire.
    AppendAttempt(Box<MessageAttempt>),
    /// Keeps what the sandbox captured; replaces an earlier capture of the same message.
    PutCapture(Box<Capture>),
    /// Stores the target of redirected links under its [`UrlKey`](crate::domain::mail::link_token::UrlKey); no
    /// conflict when it is there already.
    PutUrl(WorkspaceId, String),
    /// Names bytes that were put before, because the message of this commit does. A conflict when they were abandoned.
    /// Whoever commits keeps them afterwards in their [`BlobStore`](crate::ports::BlobStore).
    KeepBlob(MessageBlob),
    /// Gives up bytes that were put and that no commit has named: from now on none can. A conflict when their message
    /// is there; none when they were abandoned already. Whoever commits removes them afterwards.
    AbandonBlob(MessageBlob),
    /// Names bytes that nobody needs any more. Whoever commits removes them afterwards.
    DeleteBlob(WorkspaceId, BlobId),
    /// Keeps a set of contacts of a frozen audience, in place of an earlier one of the same piece and kind. Sets without
    /// contacts are not kept.
    PutAudience(Box<AudienceRow>),
    /// Notes that something that came in over a channel of a workspace has its effect with this commit, and when that is;
    /// forgets some of what is older than [`InboundKey::KEPT`]. A conflict when it is noted already.
    NoteInbound(WorkspaceId, Channel, InboundKey, Timestamp),
    /// Keeps a report about a sending domain with its rows, and lets go of the oldest ones of the domain as it says. A
    /// conflict when the report is kept already.
    PutDomainReport(Box<KeptReport>),
    /// Notes digests of addresses that a campaign has taken, so that whoever has them as well is a duplicate; not more
    /// than those of a piece at a time.
    TakeAddresses(WorkspaceId, CampaignId, Vec<u64>),
    /// Forgets the digests of addresses that a campaign has taken, because its audience is complete.
    ForgetAddresses(WorkspaceId, CampaignId),
    /// Notes digests of addresses of recipients of a piece that other recipients have taken, in place of what was noted of
    /// the piece: [`Audiences::campaign_recipients`](crate::ports::store::Audiences::campaign_recipients) and
    /// [`Audiences::addresses_left_in`](crate::ports::store::Audiences::addresses_left_in) leave them out.
    LeaveOutAddresses(WorkspaceId, CampaignId, u64, Vec<(u16, u64)>),
    /// Stores a new image with its octets. A conflict when the workspace has one of the same octets.
    PutImage(Box<Image>, Bytes),
    /// Removes an image; no conflict when it is gone already.
    DeleteImage(WorkspaceId, ImageId),
    /// Keeps what is searched of a block of contacts, in place of what was kept of it. A conflict when one of the notes that
    /// it takes away is gone: somebody else has followed it.
    PutContactBlock(Box<ContactBlock>),
    /// Keeps what is searched of a block of messages. A conflict when the block that it replaces is not as it was read, and
    /// when there is one that begins with the same message.
    PutMessageBlock(Box<MessageBlock>),
    /// Forgets which addresses are left out, because no message of the campaign is attempted any more.
    ForgetLeftOut(WorkspaceId, CampaignId),
    /// Stores new messages of a campaign that wait to be released.
    InsertWaiting(WorkspaceId, CampaignId, Vec<NewWaiting>),
    /// Takes messages of a campaign off those that wait, because this commit releases or cancels them. A conflict when
    /// one of them does not wait.
    TakeWaiting(WorkspaceId, CampaignId, Vec<WaitingKey>),
    /// Lets a message of a campaign wait again. A conflict when it does already.
    PutWaiting(WorkspaceId, CampaignId, WaitingKey),
    /// Creates or replaces an automation. A conflict when it is to hold something from now on, and some of that is gone.
    PutAutomation(Box<PutAutomation>, Expect),
    /// Removes an automation with its versions, runs and notes; its messages stay. No conflict when it is gone already.
    DeleteAutomation(WorkspaceId, AutomationId),
    /// Changes what automations do and wait for.
    Automation(AutomationWrite),
    /// Changes deliveries of webhooks, or how a webhook fares.
    Webhook(WebhookWrite),
    /// Adds a job, or changes one.
    Job(JobWrite),
    /// Suspends a part of the queue; one that is suspended already stays so since then.
    Suspend(Suspension),
    /// Lifts the suspension of exactly this part of the queue, if there is one.
    LiftSuspension(QueueScope),
    /// Records that something was put aside, and lets the oldest records go beyond
    /// [`KEPT`](crate::domain::installation::quarantine::KEPT).
    Quarantine(Box<Quarantined>),
    /// Removes the record of something that was put aside. A conflict when it is gone.
    ForgetQuarantined(JobId),
    /// Changes what is kept of sources and their paths, or which workspaces may name them.
    Source(SourceWrite),
    /// Adds an entry at the end of an audit log, linked to the row before it. Commits that add to the same log wait for one
    /// another.
    Audit(Box<AuditRow>),
    /// Lets the rows of an audit log go up to a number, whose link stays as the anchor. A conflict when they are gone already.
    TrimAudit(Option<WorkspaceId>, u64),
    /// Logs requests, each with bodies where they are kept.
    LogRequests(Vec<(LoggedRequest, LoggedBodies)>),
    /// Forgets the bodies of logged requests; no conflict when there are none.
    ForgetRequestBodies(WorkspaceId, Vec<RequestId>),
    /// Remembers the answer to a request with an Idempotency-Key. A conflict when there is one that
    /// has not expired.
    Remember(Box<Reply>),
}

impl Write {
    /// Whether it stores something new on behalf of somebody. What removes, ends, or moves to another state
    /// is let through on a nearly full disk, with the events and the remembered reply that go with it.
    const fn adds(&self) -> bool {
        match self {
            Self::Put(document, _) => document.adds(),
            Self::Account(write) => write.adds(),
            Self::Automation(write) => write.adds(),
            Self::Source(write) => write.adds(),
            Self::Delete(_)
            | Self::Expect(_)
            | Self::Job(_)
            | Self::Webhook(_)
            | Self::EndWorkspace(..)
            | Self::SwitchSecretKey(..)
            | Self::PutInstallationName(..)
            | Self::PutFence(..)
            | Self::PutStsPolicy(..)
            | Self::PutSuppression(..)
            | Self::CountSoftBounce(..)
            | Self::EndSoftBounces(..)
            | Self::DeleteSuppression(..)
            | Self::DeleteContact(..)
            | Self::MoveProductEvents(..)
            | Self::DeleteProductEvents(..)
            | Self::LeaveList(..)
            | Self::ForgetSubscription(..)
            | Self::DeleteSegment(..)
            | Self::DeleteTemplate(..)
            | Self::DeleteImage(..)
            | Self::PutContactBlock(..)
            | Self::PutMessageBlock(..)
            | Self::MoveMessage(..)
            | Self::CountMessages(..)
            | Self::CountSites(..)
            | Self::CountLink(..)
            | Self::NoteEngagement(..)
            | Self::AttributeMessage(..)
            | Self::RedactMessage(..)
            | Self::EraseCopy(..)
            | Self::UnlistCopy(..)
            | Self::PutProviderLink(..)
            | Self::NoteInbound(..)
            | Self::AppendEvent(..)
            | Self::Observe(..)
            | Self::LogEvent(..)
            | Self::FollowEvents(..)
            | Self::AppendAttempt(..)
            | Self::PutUrl(..)
            | Self::AbandonBlob(..)
            | Self::DeleteBlob(..)
            | Self::ForgetAddresses(..)
            | Self::ForgetLeftOut(..)
            | Self::TakeWaiting(..)
            | Self::PutWaiting(..)
            | Self::DeleteAutomation(..)
            | Self::Suspend(..)
            | Self::LiftSuspension(..)
            | Self::Quarantine(..)
            | Self::ForgetQuarantined(..)
            | Self::Audit(..)
            | Self::TrimAudit(..)
            | Self::ForgetRequestBodies(..)
            | Self::Remember(..) => false,
            _ => true,
        }
    }

    /// The claim that must be held for the write; `None` for one that is not about a claimed job.
    pub const fn claim(&self) -> Option<&JobHandle> {
        match self {
            Self::Job(write) => write.claim(),
            _ => None,
        }
    }

    /// Creates or replaces a document.
    pub fn put(document: impl Into<Document>, expect: Expect) -> Self {
        Self::Put(document.into(), expect)
    }

    /// Creates or replaces one contact.
    pub fn put_contact(contact: impl Into<Arc<Contact>>, expect: Expect) -> Self {
        Self::PutContacts(vec![PutContact { contact: contact.into(), expect }])
    }
}
