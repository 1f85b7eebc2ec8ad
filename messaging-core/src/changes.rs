//! What an operation or job wants changed: collected while it decides, committed as one by its caller.
//!
//! Nobody can forget to commit, no transaction is open while a socket is, and a dropped request leaves
//! nothing half done. See ARCHITECTURE.md, "Read, decide, commit".

mod automations;
mod campaigns;
mod contacts;
mod jobs;
mod messages;
mod observation;
mod replies;
mod webhooks;

use std::sync::Arc;

use bytes::Bytes;

use crate::domain::account::{Member, Session, Ticket, User, Workspace};
use crate::domain::api_key::ApiKey;
use crate::domain::attachment::MessageBlob;
use crate::domain::attempt::MessageAttempt;
use crate::domain::automation::AutomationStatus;
use crate::domain::automation::run::Entry;
use crate::domain::campaign::progress::CampaignProgress;
use crate::domain::campaign::{Campaign, CampaignStatus, Reference};
use crate::domain::channel::Channel;
use crate::domain::contact::Contact;
use crate::domain::custom_field::CustomField;
use crate::domain::digest::Digest;
use crate::domain::fence::Fence;
use crate::domain::import::Import;
use crate::domain::import::report::RowErrors;
use crate::domain::inbound_message::InboundKey;
use crate::domain::lane::Lane;
use crate::domain::link_token::{CopyKey, UrlKey};
use crate::domain::list::ContactList;
use crate::domain::login_attempts::SignInAttempt;
use crate::domain::message::{Capture, Message, MessageContent, MessageEvent};
use crate::domain::product_event::ProductEvent;
use crate::domain::provider_link::ProviderLink;
use crate::domain::quarantine::Quarantined;
use crate::domain::queue::{QueueScope, Suspension};
use crate::domain::segment::Segment;
use crate::domain::sending_domain::SendingDomain;
use crate::domain::settings::ChannelSettings;
use crate::domain::soft_bounce::Streak;
use crate::domain::suppression::Suppression;
use crate::domain::template::Template;
use crate::domain::webhook::delivery::Delivery;
use crate::domain::webhook::{Webhook, WebhookStatus};
use crate::ids::{
    ApiKeyId, AutomationId, BlobId, CampaignId, ContactId, DeliveryId, DomainId, FieldId, JobId, ListId, MessageId,
    SegmentId, SuppressionId, TemplateId, UserId, WebhookId, WorkspaceId,
};
use crate::time::Timestamp;

pub use self::automations::{
    CountNodes, DateFire, ExpectEntries, MoveRuns, PutAutomation, PutDateFires, PutRun, RunKey, TakeNotes,
};
pub use self::campaigns::{AudienceRow, ContactSends, CountLink, Engagement, NewWaiting, WaitingKey, track_of};
pub use self::contacts::{MoveProductEvents, PutContact};
pub use self::jobs::{JobHandle, JobPlace, NewJob, PutBack, Reschedule};
pub use self::messages::{
    AttributeMessage, CountMessages, EraseCopy, LogEvent, MoveMessage, RedactMessage, moves, visited,
};
pub use self::observation::{AttemptSubject, EventSubject, ImportObservation, MessageObservation, Observation};
pub use self::replies::{Reply, ReplyKey};
pub use self::webhooks::UpdateDelivery;
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
    /// Creates or replaces a user. The email is unique.
    PutUser(User, Expect),
    /// Removes a user with their sessions, tickets and memberships. A conflict when the user changed since.
    DeleteUser(UserId, u32),
    /// Opens a session.
    PutSession(Session),
    /// Ends a session; no conflict when it is gone already.
    DeleteSession(Digest),
    /// Notes when a session was used; nothing where it is gone or was used later.
    TouchSession(Digest, Timestamp),
    /// Keeps a ticket.
    PutTicket(Ticket),
    /// Uses a ticket up. A conflict when it is gone already.
    TakeTicket(Digest),
    /// Counts an attempt to sign in as failed. A conflict when the failures before it use up a limit, or others had to wait
    /// as often as it says that it had to.
    CountSignIn(SignInAttempt),
    /// Forgets the failures of an attempt's email from its network, the attempt itself among them.
    ForgetSignIns(SignInAttempt),
    /// Creates or replaces a workspace. A conflict when it is to be created under the id of one that was deleted.
    PutWorkspace(Workspace, Expect),
    /// Ends the removal of a workspace: of it nothing stays but that its id is taken. A conflict when it is not being removed.
    EndWorkspace(WorkspaceId),
    /// Creates or replaces a membership.
    PutMember(Member, Expect),
    /// Ends a membership; no conflict when it is gone already.
    DeleteMember(WorkspaceId, UserId),
    /// Creates or replaces an API key. The prefix is unique.
    PutApiKey(ApiKey, Expect),
    /// Notes when a key was last used.
    TouchApiKey(ApiKeyId, Timestamp),
    /// Creates or replaces a sending domain. The name is unique in its workspace.
    PutDomain(SendingDomain, Expect),
    /// Removes a sending domain; no conflict when it is gone already.
    DeleteDomain(WorkspaceId, DomainId),
    /// Creates or replaces a channel's settings.
    PutChannel(ChannelSettings, Expect),
    /// Removes a channel's settings; no conflict when they are gone already.
    DeleteChannel(WorkspaceId, Channel),
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
    /// within [`UNIQUE_FOR`](crate::domain::product_event::UNIQUE_FOR) before the event.
    AppendProductEvents(Vec<ProductEvent>),
    /// Gives product events of a merged contact to the one it became.
    MoveProductEvents(MoveProductEvents),
    /// Deletes up to so many product events of a contact that is gone; no conflict when there are none.
    DeleteProductEvents(WorkspaceId, ContactId, usize),
    /// Creates a list, or replaces its name.
    PutList(ContactList, Expect),
    /// Removes a list; its members are let go later. No conflict when it is gone already.
    DeleteList(WorkspaceId, ListId),
    /// Makes a contact a member of a list, at the present time. A conflict when it is one already, and when either is gone.
    JoinList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Ends a membership, at the present time; no conflict when there is none.
    LeaveList(WorkspaceId, ListId, ContactId, Timestamp),
    /// Creates a segment, or replaces all of it but its size, which follows its members.
    PutSegment(Box<Segment>, Expect),
    /// Removes a segment; its members are let go later. No conflict when it is gone already.
    DeleteSegment(WorkspaceId, SegmentId),
    /// Creates or replaces a custom field. The key is unique in the workspace.
    PutField(CustomField, Expect),
    /// Removes a custom field; no conflict when it is gone already.
    DeleteField(WorkspaceId, FieldId),
    /// Creates or replaces an import.
    PutImport(Box<Import>, Expect),
    /// Keeps which rows of an import were refused.
    AppendRowErrors(RowErrors),
    /// Creates a template, or adds its next version and makes it the current one.
    PutTemplate(Box<Template>, Expect),
    /// Removes a template; its versions stay for the messages that were accepted with them and go later. No
    /// conflict when it is gone already.
    DeleteTemplate(WorkspaceId, TemplateId, Timestamp),
    /// Stores a new message with its content.
    InsertMessage(Box<Message>, MessageContent),
    /// Moves a message to another state.
    MoveMessage(MoveMessage),
    /// Changes counters.
    CountMessages(Box<CountMessages>),
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
    /// older than [`KEPT`](crate::domain::provider_link::KEPT).
    PutProviderLink(Box<ProviderLink>),
    /// Changes nothing. A conflict when a message is not at the revision that was read.
    ExpectMessage(WorkspaceId, MessageId, u32),
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
    /// Stores the target of redirected links under its [`UrlKey`]; no
    /// conflict when it is there already.
    PutUrl(WorkspaceId, String),
    /// Removes the target of redirected links, which lead nowhere from then on; no conflict when it is gone
    /// already.
    DeleteUrl(WorkspaceId, UrlKey),
    /// Names bytes that were put before, because the message of this commit does. A conflict when they were abandoned.
    /// Whoever commits keeps them afterwards in their [`BlobStore`](crate::ports::BlobStore).
    KeepBlob(MessageBlob),
    /// Gives up bytes that were put and that no commit has named: from now on none can. A conflict when their message
    /// is there; none when they were abandoned already. Whoever commits removes them afterwards.
    AbandonBlob(MessageBlob),
    /// Names bytes that nobody needs any more. Whoever commits removes them afterwards.
    DeleteBlob(WorkspaceId, BlobId),
    /// Creates or replaces a campaign. A conflict when it is to hold what it names from now on
    /// ([`CampaignStatus::holds_references`]) and some of that is gone.
    PutCampaign(Box<Campaign>, Expect),
    /// Removes a campaign with its progress, its audience and its counters; its messages stay. No conflict when it is
    /// gone already.
    DeleteCampaign(WorkspaceId, CampaignId),
    /// Changes nothing. A conflict when a campaign is not in the state that was read: what is made or released for one
    /// that was paused or cancelled would be sent all the same.
    ExpectCampaign(WorkspaceId, CampaignId, CampaignStatus),
    /// Changes nothing. A conflict when a campaign, or an automation, holds this: with it in the same commit, nothing is
    /// removed that somebody has begun to need.
    ExpectUnused(WorkspaceId, Reference),
    /// Creates or replaces the progress of a campaign.
    PutCampaignProgress(Box<CampaignProgress>, Expect),
    /// Keeps a set of contacts of a frozen audience, in place of an earlier one of the same piece and kind. Sets without
    /// contacts are not kept.
    PutAudience(Box<AudienceRow>),
    /// Notes that something that came in over a channel of a workspace has its effect with this commit, and when that is;
    /// forgets some of what is older than [`InboundKey::KEPT`]. A conflict when it is noted already.
    NoteInbound(WorkspaceId, Channel, InboundKey, Timestamp),
    /// Notes digests of addresses that a campaign has taken, so that whoever has them as well is a duplicate; not more
    /// than those of a piece at a time.
    TakeAddresses(WorkspaceId, CampaignId, Vec<u64>),
    /// Forgets the digests of addresses that a campaign has taken, because its audience is complete.
    ForgetAddresses(WorkspaceId, CampaignId),
    /// Notes digests of addresses of recipients of a piece that other recipients have taken, in place of what was noted of
    /// the piece: [`Audiences::campaign_recipients`](crate::ports::store::Audiences::campaign_recipients) and
    /// [`Audiences::addresses_left_in`](crate::ports::store::Audiences::addresses_left_in) leave them out.
    LeaveOutAddresses(WorkspaceId, CampaignId, u64, Vec<(u16, u64)>),
    /// Forgets which addresses are left out, because no message of the campaign is attempted any more.
    ForgetLeftOut(WorkspaceId, CampaignId),
    /// Stores new messages of a campaign that wait to be released.
    InsertWaiting(WorkspaceId, CampaignId, Vec<NewWaiting>),
    /// Takes messages of a campaign off those that wait, because this commit releases or cancels them. A conflict when
    /// one of them does not wait.
    TakeWaiting(WorkspaceId, CampaignId, Vec<WaitingKey>),
    /// Lets a message of a campaign wait again. A conflict when it does already.
    PutWaiting(WorkspaceId, CampaignId, WaitingKey),
    /// Creates or replaces what is known of the marketing messages to a contact. A conflict when the contact is gone. No
    /// revision of a contact and channel is met twice: what has no times any more stays until it is let go.
    PutContactSends(ContactSends, Expect),
    /// Creates or replaces an automation. A conflict when it is to hold something from now on, and some of that is gone.
    PutAutomation(Box<PutAutomation>, Expect),
    /// Removes an automation with its versions, runs and notes; its messages stay. No conflict when it is gone already.
    DeleteAutomation(WorkspaceId, AutomationId),
    /// Changes nothing. A conflict when an automation is not in the state that was read: whoever goes on in one that was
    /// paused would be sent to all the same.
    ExpectAutomation(WorkspaceId, AutomationId, AutomationStatus),
    /// Creates or replaces a run with what it did. A conflict when its contact is gone. The job of its share of the
    /// contacts becomes due when the run is, unless this commit is that job's own.
    PutRun(Box<PutRun>),
    /// Creates or replaces what is known of the entries of a contact.
    PutEntry(Box<Entry>, Expect),
    /// Changes nothing. A conflict when a contact has entered an automation, or was refused, too often by now: entries
    /// under different keys do not meet in [`PutEntry`](Self::PutEntry). Goes before what lets the contact in.
    ExpectEntries(Box<ExpectEntries>),
    /// Takes notes away, because this commit works them off. A conflict when the last of them is gone.
    TakeNotes(TakeNotes),
    /// Counts how often nodes and branches were reached.
    CountNodes(WorkspaceId, AutomationId, Box<CountNodes>),
    /// Keeps moments of dates; one that is there, or was taken already, stays as it is. Those of contacts that are gone
    /// are not kept. The job of a share of the contacts becomes due with them, as for [`PutRun`](Self::PutRun).
    PutDateFires(Box<PutDateFires>),
    /// Takes a moment of a date away, because this commit works it off. A conflict when it is gone.
    TakeDateFire(WorkspaceId, AutomationId, DateFire),
    /// Gives runs of a contact that is merged, with what is known of its entries, moments of dates and notes, to the one
    /// it becomes, and makes the jobs of their automations due. Of two entries under one key the later is kept.
    MoveRuns(MoveRuns),
    /// Deletes up to so many runs of a contact that is gone, and with the last of them what is known of its entries; no
    /// conflict when there are none.
    DeleteRuns(WorkspaceId, ContactId, usize),
    /// What follows in this commit was caused by so many automations in a row, and its notes say so; 0 when nothing else
    /// is said.
    CausedAt(u8),
    /// Creates or replaces a webhook.
    PutWebhook(Box<Webhook>, Expect),
    /// Removes a webhook; its deliveries cannot be reached any more. No conflict when it is gone already.
    DeleteWebhook(WorkspaceId, WebhookId),
    /// Notes that an attempt at a webhook failed, unless the one before it did too.
    NoteWebhookFailure(WorkspaceId, WebhookId, Timestamp),
    /// Ends a webhook's failures; no conflict when there are none.
    EndWebhookFailures(WorkspaceId, WebhookId),
    /// Changes nothing. A conflict when a webhook is not in the state that was read: what is held for one that is not
    /// paused any more would be sent by nobody.
    ExpectWebhook(WorkspaceId, WebhookId, WebhookStatus),
    /// Stores a new delivery.
    InsertDelivery(Box<Delivery>),
    /// Replaces a delivery.
    UpdateDelivery(Box<UpdateDelivery>),
    /// Notes that a delivery was replayed: its receiver no longer misses it. No conflict when it is gone.
    MarkReplayed(WorkspaceId, DeliveryId),
    /// Adds a job.
    Enqueue(NewJob),
    /// Adds a job unless its lane has one, claimed or not.
    EnqueueOnce(NewJob),
    /// Makes the jobs of a lane due, those that are in work as soon as they are put back; `at` is the present. Nothing
    /// happens when there are none.
    WakeLane(Lane, Timestamp),
    /// Makes some jobs due at once that are not due yet; the time is the present. Those that are claimed, gone or dated
    /// anew stay as they are.
    MakeDue(Vec<JobPlace>, Timestamp),
    /// Suspends a part of the queue; one that is suspended already stays so since then.
    Suspend(Suspension),
    /// Lifts the suspension of exactly this part of the queue, if there is one.
    LiftSuspension(QueueScope),
    /// Removes a claimed job. `LeaseLost` when the claim is not held.
    FinishJob(JobHandle),
    /// Removes a job that nobody has claimed; no conflict when it is gone already, one when it is claimed. Only for the
    /// process that claims jobs.
    RemoveJob(JobPlace),
    /// Puts a claimed job back for later. `LeaseLost` when the claim is not held.
    RescheduleJob(JobHandle, Reschedule),
    /// Puts a claimed job back for later as it is stored: [`SaveJob`](Self::SaveJob) may have changed it since it was
    /// claimed. `LeaseLost` when the claim is not held.
    PutJobBack(JobHandle, PutBack),
    /// Replaces the payload of a claimed job, which stays claimed: what has to be known if its run does not end.
    /// `LeaseLost` when the claim is not held.
    SaveJob(JobHandle, Bytes),
    /// Changes nothing. `LeaseLost` when the claim is not held. In the last commit before something leaves the process,
    /// and in every commit of a job that goes on after it: whoever lost its claim is stopped here.
    HoldJob(JobHandle),
    /// Records that something was put aside, and lets the oldest records go beyond
    /// [`KEPT`](crate::domain::quarantine::KEPT).
    Quarantine(Box<Quarantined>),
    /// Removes the record of something that was put aside. A conflict when it is gone.
    ForgetQuarantined(JobId),
    /// Remembers the answer to a request with an Idempotency-Key. A conflict when there is one that
    /// has not expired.
    Remember(Box<Reply>),
}

impl Write {
    /// Whether it stores something new on behalf of somebody. What removes, ends, or moves to another state
    /// is let through on a nearly full disk, with the events and the remembered reply that go with it.
    const fn adds(&self) -> bool {
        !matches!(
            self,
            Self::DeleteSession(..)
                | Self::TouchSession(..)
                | Self::TakeTicket(..)
                | Self::DeleteMember(..)
                | Self::DeleteUser(..)
                | Self::EndWorkspace(..)
                | Self::TouchApiKey(..)
                | Self::SwitchSecretKey(..)
                | Self::PutInstallationName(..)
                | Self::PutFence(..)
                | Self::RemoveJob(..)
                | Self::DeleteDomain(..)
                | Self::DeleteChannel(..)
                | Self::PutSuppression(..)
                | Self::CountSoftBounce(..)
                | Self::EndSoftBounces(..)
                | Self::DeleteSuppression(..)
                | Self::DeleteContact(..)
                | Self::MoveProductEvents(..)
                | Self::DeleteProductEvents(..)
                | Self::DeleteList(..)
                | Self::LeaveList(..)
                | Self::DeleteSegment(..)
                | Self::DeleteField(..)
                | Self::DeleteTemplate(..)
                | Self::MoveMessage(..)
                | Self::CountMessages(..)
                | Self::CountLink(..)
                | Self::NoteEngagement(..)
                | Self::AttributeMessage(..)
                | Self::RedactMessage(..)
                | Self::EraseCopy(..)
                | Self::UnlistCopy(..)
                | Self::PutProviderLink(..)
                | Self::NoteInbound(..)
                | Self::ExpectMessage(..)
                | Self::AppendEvent(..)
                | Self::Observe(..)
                | Self::LogEvent(..)
                | Self::FollowEvents(..)
                | Self::AppendAttempt(..)
                | Self::PutUrl(..)
                | Self::DeleteUrl(..)
                | Self::AbandonBlob(..)
                | Self::DeleteBlob(..)
                | Self::DeleteCampaign(..)
                | Self::ExpectCampaign(..)
                | Self::ExpectUnused(..)
                | Self::PutCampaignProgress(..)
                | Self::ForgetAddresses(..)
                | Self::ForgetLeftOut(..)
                | Self::TakeWaiting(..)
                | Self::PutWaiting(..)
                | Self::PutContactSends(..)
                | Self::DeleteAutomation(..)
                | Self::ExpectAutomation(..)
                | Self::ExpectEntries(..)
                | Self::TakeNotes(..)
                | Self::CountNodes(..)
                | Self::TakeDateFire(..)
                | Self::MoveRuns(..)
                | Self::DeleteRuns(..)
                | Self::CausedAt(..)
                | Self::DeleteWebhook(..)
                | Self::NoteWebhookFailure(..)
                | Self::EndWebhookFailures(..)
                | Self::ExpectWebhook(..)
                | Self::InsertDelivery(..)
                | Self::UpdateDelivery(..)
                | Self::MarkReplayed(..)
                | Self::Enqueue(..)
                | Self::EnqueueOnce(..)
                | Self::WakeLane(..)
                | Self::MakeDue(..)
                | Self::Suspend(..)
                | Self::LiftSuspension(..)
                | Self::FinishJob(..)
                | Self::RescheduleJob(..)
                | Self::PutJobBack(..)
                | Self::SaveJob(..)
                | Self::HoldJob(..)
                | Self::Quarantine(..)
                | Self::ForgetQuarantined(..)
                | Self::ForgetSignIns(..)
                | Self::Remember(..)
        )
    }

    /// The claim that must be held for the write; `None` for one that is not about a claimed job.
    pub const fn claim(&self) -> Option<&JobHandle> {
        match self {
            Self::FinishJob(handle)
            | Self::RescheduleJob(handle, _)
            | Self::PutJobBack(handle, _)
            | Self::SaveJob(handle, _)
            | Self::HoldJob(handle) => Some(handle),
            _ => None,
        }
    }

    /// Creates or replaces one contact.
    pub fn put_contact(contact: impl Into<Arc<Contact>>, expect: Expect) -> Self {
        Self::PutContacts(vec![PutContact { contact: contact.into(), expect }])
    }
}
