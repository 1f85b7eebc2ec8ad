//! Writes of an operation or job: collected while it decides, committed together by its caller.
//!
//! No code can forget to commit, no transaction is open while a socket is, and a dropped request leaves nothing half
//! done. See "Read, decide, commit" in docs/design/commits.md.

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
/// A clone shares the writes, so that a commit that may be retried costs no copy.
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

    /// Adds all writes of `others`, after its own.
    pub fn append(&mut self, others: Self) {
        Arc::make_mut(&mut self.writes).append(&mut Arc::unwrap_or_clone(others.writes));
    }

    /// True if there are no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the writes, in order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Marks the writes as part of the installation's setup, which the operator runs on the machine itself: a few rows,
    /// for which the reserved disk space may be used.
    #[must_use]
    pub fn of_setup(self) -> Self {
        Self { is_setup: true, ..self }
    }

    /// True if the commit makes the database grow for something new, which a store refuses when the disk is nearly
    /// full. Commits of jobs do not count, because they continue work that was accepted before.
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

/// A change to another secret key.
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
    /// Changes nothing. A conflict unless the condition still holds.
    Expect(Condition),
    /// Changes data of users and keys: sessions, tickets, second factors, attempts to sign in, last uses.
    Account(AccountWrite),
    /// Stores the check value of the secret key. A conflict if there is one.
    PutKeyCheck(String),
    /// Makes another secret key the one that secrets are sealed under, for all processes. A conflict if the check value
    /// is not `before`, or if a process that works on the database does not hold the key
    /// ([`Installation::key_holders`](crate::ports::store::Installation::key_holders)).
    SwitchSecretKey(Box<SwitchSecretKey>),
    /// Stores the name of the installation. A conflict if the present name is not the second one; `None` for no name.
    PutInstallationName(String, Option<String>),
    /// Fences the installation, or ends that. A conflict if the present fence is not the second one; `None` for no
    /// fence.
    PutFence(Option<Fence>, Option<Fence>),
    /// Stores the MTA-STS policy of a domain of recipients, in place of an earlier one.
    PutStsPolicy(Box<StsPolicy>),
    /// Ends the removal of a workspace: only its id stays taken. A conflict if it is not being removed.
    EndWorkspace(WorkspaceId),
    /// Creates or replaces a suppression. The address is unique per channel.
    PutSuppression(Suppression, Expect),
    /// Makes a streak of soft bounces longer by one. A conflict if its length is not the one that was read.
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
    /// Moves product events of a merged contact to its primary.
    MoveProductEvents(MoveProductEvents),
    /// Deletes up to this many product events of a deleted contact; no conflict if there are none.
    DeleteProductEvents(WorkspaceId, ContactId, usize),
    /// Makes a contact a member of a list, at the present time. A conflict if it is one already, and if either is gone.
    JoinList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Ends a membership, at the present time; no conflict when there is none.
    LeaveList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Stores the subscription of a contact to a public list. A conflict if another one is stored than was read, and if
    /// contact or list is gone. Membership itself is [`JoinList`](Self::JoinList) and [`LeaveList`](Self::LeaveList).
    PutSubscription(Box<Subscription>, Expect),
    /// Deletes the subscription of a contact to a list; no conflict if there is none.
    ForgetSubscription(WorkspaceId, ListId, ContactId),
    /// Creates a segment, or replaces all of it except its size, which follows its members.
    PutSegment(Box<Segment>, Expect),
    /// Deletes a segment; its members are removed later. No conflict if it is gone already.
    DeleteSegment(WorkspaceId, SegmentId),
    /// Stores refused rows of an import.
    AppendRowErrors(RowErrors),
    /// Deletes a template; its versions stay for the messages that were accepted with them and are deleted later. No
    /// conflict if it is gone already.
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
    /// Records the first engagement of a kind with a message of a campaign; no conflict if it is recorded already.
    NoteEngagement(Engagement),
    /// Attributes a message to another contact.
    AttributeMessage(AttributeMessage),
    /// Removes the recipient and the content of a message: its address, content, attempts, capture.
    RedactMessage(Box<RedactMessage>),
    /// Removes a copied person from somebody else's message.
    EraseCopy(Box<EraseCopy>),
    /// Records the copied recipients of a new message, so that erasing finds them.
    ListCopies(WorkspaceId, MessageId, Vec<CopyKey>),
    /// Removes the record of a copied recipient of a message; no conflict if there is none.
    UnlistCopy(WorkspaceId, MessageId, CopyKey),
    /// Stores a provider's id of a message, in place of another message with that id, and deletes some that are older
    /// than [`KEPT`](crate::domain::channel::provider_link::KEPT).
    PutProviderLink(Box<ProviderLink>),
    /// Adds an event to a message.
    AppendEvent(Box<MessageEvent>),
    /// Changes nothing: a consequence of the commit for the log and the metrics of the process that commits.
    Observe(Box<Observation>),
    /// Adds an event, which is appended in the same commit, to the log of its workspace.
    LogEvent(LogEvent),
    /// Has the events of a workspace logged until a time.
    FollowEvents(WorkspaceId, Timestamp),
    /// Stores the dialog of an attempt.
    AppendAttempt(Box<MessageAttempt>),
    /// Stores a capture of the sandbox; replaces an earlier one of the same message.
    PutCapture(Box<Capture>),
    /// Stores the target of redirected links under its [`UrlKey`](crate::domain::mail::link_token::UrlKey); no conflict
    /// if it is there already.
    PutUrl(WorkspaceId, String),
    /// Marks bytes that were put before as used by the message of this commit. A conflict if they were abandoned. The
    /// committer then keeps them in its [`BlobStore`](crate::ports::BlobStore).
    KeepBlob(MessageBlob),
    /// Abandons bytes that were put and that no commit has marked as used: from now on none can. A conflict if their
    /// message exists; none if they were abandoned already. The committer then removes them.
    AbandonBlob(MessageBlob),
    /// Marks bytes as no longer needed. The committer then removes them.
    DeleteBlob(WorkspaceId, BlobId),
    /// Stores a set of contacts of a frozen audience, in place of an earlier one of the same piece and kind. Sets
    /// without contacts are not stored.
    PutAudience(Box<AudienceRow>),
    /// Records the key and time of an inbound event of a channel, which has its effect with this commit; deletes some
    /// that are older than [`InboundKey::KEPT`]. A conflict if it is recorded already.
    NoteInbound(WorkspaceId, Channel, InboundKey, Timestamp),
    /// Stores a report about a sending domain with its rows, and deletes the oldest ones of the domain as it says. A
    /// conflict if the report is stored already.
    PutDomainReport(Box<KeptReport>),
    /// Records digests of addresses that a campaign has taken, so that another contact with one of them is a duplicate;
    /// at most those of one piece at a time.
    TakeAddresses(WorkspaceId, CampaignId, Vec<u64>),
    /// Deletes the digests of addresses that a campaign has taken, because its audience is complete.
    ForgetAddresses(WorkspaceId, CampaignId),
    /// Records digests of addresses in a piece that other recipients have taken, in place of earlier ones of the piece:
    /// [`Audiences::campaign_recipients`](crate::ports::store::Audiences::campaign_recipients) and
    /// [`Audiences::addresses_left_in`](crate::ports::store::Audiences::addresses_left_in) leave them out.
    LeaveOutAddresses(WorkspaceId, CampaignId, u64, Vec<(u16, u64)>),
    /// Stores a new image with its octets. A conflict if the workspace has one with the same octets.
    PutImage(Box<Image>, Bytes),
    /// Removes an image; no conflict when it is gone already.
    DeleteImage(WorkspaceId, ImageId),
    /// Stores the search text of a block of contacts, in place of an earlier one. A conflict if one of the notes that
    /// it removes is gone: another commit has followed it.
    PutContactBlock(Box<ContactBlock>),
    /// Stores the search text of a block of messages. A conflict if the block that it replaces is not as it was read,
    /// and if there is one that begins with the same message.
    PutMessageBlock(Box<MessageBlock>),
    /// Deletes the records of addresses that are left out, because no message of the campaign is attempted any more.
    ForgetLeftOut(WorkspaceId, CampaignId),
    /// Stores new messages of a campaign that wait to be released.
    InsertWaiting(WorkspaceId, CampaignId, Vec<NewWaiting>),
    /// Removes messages of a campaign from those that wait, because this commit releases or cancels them. A conflict if
    /// one of them does not wait.
    TakeWaiting(WorkspaceId, CampaignId, Vec<WaitingKey>),
    /// Makes a message of a campaign wait again. A conflict if it does already.
    PutWaiting(WorkspaceId, CampaignId, WaitingKey),
    /// Creates or replaces an automation. A conflict if it begins to hold resources and one of these is gone.
    PutAutomation(Box<PutAutomation>, Expect),
    /// Removes an automation with its versions, runs and notes; its messages stay. No conflict when it is gone already.
    DeleteAutomation(WorkspaceId, AutomationId),
    /// Changes the state of automations and their runs.
    Automation(AutomationWrite),
    /// Changes deliveries of webhooks, or the state of a webhook.
    Webhook(WebhookWrite),
    /// Adds a job, or changes one.
    Job(JobWrite),
    /// Suspends a part of the queue; one that is suspended already keeps its time.
    Suspend(Suspension),
    /// Lifts the suspension of exactly this part of the queue, if there is one.
    LiftSuspension(QueueScope),
    /// Records that something was quarantined, and deletes the oldest records beyond
    /// [`KEPT`](crate::domain::installation::quarantine::KEPT).
    Quarantine(Box<Quarantined>),
    /// Removes the record of something that was quarantined. A conflict if it is gone.
    ForgetQuarantined(JobId),
    /// Changes sources and their paths, or the workspaces that may name them.
    Source(SourceWrite),
    /// Adds an entry at the end of an audit log, linked to the row before it. Commits that add to the same log wait for
    /// one another.
    Audit(Box<AuditRow>),
    /// Deletes the rows of an audit log up to a number, whose link stays as the anchor. A conflict if they are gone
    /// already.
    TrimAudit(Option<WorkspaceId>, u64),
    /// Logs requests, each with its bodies if these are kept.
    LogRequests(Vec<(LoggedRequest, LoggedBodies)>),
    /// Deletes the bodies of logged requests; no conflict if there are none.
    ForgetRequestBodies(WorkspaceId, Vec<RequestId>),
    /// Remembers the answer to a request with an Idempotency-Key. A conflict if there is one that has not expired.
    Remember(Box<Reply>),
}

impl Write {
    /// True if it stores something new on behalf of a caller. Writes that remove, end, or move to another state are
    /// allowed on a nearly full disk, with the events and the remembered reply that belong to them.
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

    /// Returns the claim that must be held for the write; `None` if it is not about a claimed job.
    pub const fn claim(&self) -> Option<&JobHandle> {
        match self {
            Self::Job(write) => write.claim(),
            _ => None,
        }
    }

    /// Returns a write that creates or replaces a document.
    pub fn put(document: impl Into<Document>, expect: Expect) -> Self {
        Self::Put(document.into(), expect)
    }

    /// Returns a write that creates or replaces one contact.
    pub fn put_contact(contact: impl Into<Arc<Contact>>, expect: Expect) -> Self {
        Self::PutContacts(vec![PutContact { contact: contact.into(), expect }])
    }
}
