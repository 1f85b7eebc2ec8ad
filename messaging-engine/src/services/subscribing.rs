//! Memberships of public lists, and the records of contacts that join and leave.
//!
//! Contract section 23. A record is written under the revision that it was read at, in the commit of the membership: a
//! confirmation, an unsubscription and an import at the same moment each find what the one before did, and decide
//! again.

use std::collections::{HashMap, HashSet};

use messaging_core::changes::{Changes, ContactSends, Expect, JobWrite, Write};
use messaging_core::domain::audience::contact::{Consent, Contact, Identifier};
use messaging_core::domain::audience::list::MAX_PUBLIC;
use messaging_core::domain::audience::subscription::{
    Admission, NewStatus, Proof, Subscription, SubscriptionAct, SubscriptionStatus, admit,
};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::channel::{Channel, address};
use messaging_core::domain::message::Message;
use messaging_core::ids::{ContactId, FormId, ListId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::erase_contact::EraseContact;
use crate::jobs::send_confirmation::SendConfirmation;

/// Number of records of a contact that are read: more than a workspace has or had public lists.
const MAX_RECORDS: usize = 10 * MAX_PUBLIC;

/// Records by list and contact.
pub(crate) type Records = HashMap<(ListId, ContactId), Stored<Subscription>>;

/// Terms on which the workspace adds contacts to public lists.
#[derive(Debug)]
pub(crate) struct Admitting<'a> {
    /// Act that is recorded as the proof.
    how: SubscriptionAct,
    status: NewStatus,
    /// Contacts that left and may be added again: the request says so, or was refused already.
    may_return: Option<&'a HashSet<(ContactId, ListId)>>,
    /// True if all contacts that left may be added again.
    takes_all_back: bool,
}

impl<'a> Admitting<'a> {
    /// Terms of a request whose contacts were decided on knowing who has left.
    pub(crate) const fn by_api(left: &'a HashSet<(ContactId, ListId)>) -> Self {
        Self { how: SubscriptionAct::Api, status: NewStatus::Confirmed, may_return: Some(left), takes_all_back: false }
    }

    /// Terms of a request that names a list.
    pub(crate) const fn to_list(status: NewStatus, takes_all_back: bool) -> Self {
        Self { how: SubscriptionAct::Api, status, may_return: None, takes_all_back }
    }

    /// Terms of an import.
    pub(crate) const fn by_import(status: NewStatus) -> Self {
        Self { how: SubscriptionAct::Import, status, may_return: None, takes_all_back: false }
    }

    /// Terms of an automation's node: contacts that left are not added again.
    pub(crate) const fn by_automation() -> Self {
        Self::to_list(NewStatus::Confirmed, false)
    }

    fn takes_back(&self, contact: ContactId, list: ListId) -> bool {
        self.takes_all_back || self.may_return.is_some_and(|known| known.contains(&(contact, list)))
    }
}

/// Origin of a reader's request, as it is stored in proofs.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Address that the request came from.
    pub ip: Option<std::net::IpAddr>,
    /// Program that sent the request.
    pub user_agent: Option<String>,
}

impl Reader {
    /// Returns the proof of an act of the reader.
    pub(crate) fn proof(&self, how: SubscriptionAct, at: Timestamp) -> Proof {
        Proof::of_reader(how, at, self.ip, self.user_agent.as_deref())
    }
}

impl App {
    /// Returns the public lists among `lists` that contacts among `contacts` have left.
    pub(crate) async fn left_lists(
        &self,
        workspace: WorkspaceId,
        lists: &[ListId],
        contacts: &[ContactId],
    ) -> Result<HashSet<(ContactId, ListId)>, StoreError> {
        if lists.is_empty() || contacts.is_empty() {
            return Ok(HashSet::new());
        }
        let public = self.store().public_lists_among(workspace, lists).await?;
        let records = self.records(workspace, &public, contacts).await?;
        let left = records.into_iter().filter(|(_, stored)| stored.record.status == SubscriptionStatus::Left);
        Ok(left.map(|((list, contact), _)| (contact, list)).collect())
    }

    /// Returns the records of contacts on public lists.
    pub(crate) async fn records(
        &self,
        workspace: WorkspaceId,
        lists: &[ListId],
        contacts: &[ContactId],
    ) -> Result<Records, StoreError> {
        if lists.is_empty() || contacts.is_empty() {
            return Ok(Records::new());
        }
        let found = self.store().subscriptions_among(workspace, lists, contacts).await?;
        Ok(found.into_iter().map(|stored| ((stored.record.list_id, stored.record.contact_id), stored)).collect())
    }

    /// Returns the records of a contact, by list.
    pub(crate) async fn records_of(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
    ) -> Result<HashMap<ListId, Stored<Subscription>>, StoreError> {
        let found = self.store().subscriptions_of(workspace, contact, MAX_RECORDS).await?;
        Ok(found.into_iter().map(|stored| (stored.record.list_id, stored)).collect())
    }

    /// Adds to the writes the records of joining and leaving public lists. A contact that left and may not be added
    /// again joins nothing.
    pub(crate) async fn with_subscriptions(
        &self,
        workspace: WorkspaceId,
        writes: Vec<Write>,
        admitting: &Admitting<'_>,
    ) -> Result<Vec<Write>, StoreError> {
        let named = |write: &Write| match write {
            Write::JoinList(_, list, contact, _) | Write::LeaveList(_, list, contact, _) => Some((*list, *contact)),
            _ => None,
        };
        let lists: HashSet<ListId> = writes.iter().filter_map(named).map(|(list, _)| list).collect();
        if lists.is_empty() {
            return Ok(writes);
        }
        let lists: Vec<_> = lists.into_iter().collect();
        let public = self.store().public_lists_among(workspace, &lists).await?;
        if public.is_empty() {
            return Ok(writes);
        }
        let contacts: HashSet<ContactId> =
            writes.iter().filter_map(named).filter(|(list, _)| public.contains(list)).map(|(_, one)| one).collect();
        let contacts: Vec<_> = contacts.into_iter().collect();
        let records = self.records(workspace, &public, &contacts).await?;
        let (mut all, mut asked) = (Vec::with_capacity(writes.len()), Asked::default());
        for write in writes {
            match write {
                Write::JoinList(_, list, contact, at) if public.contains(&list) => {
                    let known = records.get(&(list, contact));
                    let status = known.map(|stored| stored.record.status);
                    let wanted = admitting.status.into();
                    let takes_back = admitting.takes_back(contact, list);
                    let Admission::Becomes(status) = admit(wanted, status, false, takes_back) else { continue };
                    let proof = Proof::of_workspace(admitting.how, at);
                    all.push(record((workspace, list, contact), known, status, proof));
                    match status {
                        SubscriptionStatus::Unconfirmed => asked.add(contact, list),
                        _ => all.push(Write::JoinList(workspace, list, contact, at)),
                    }
                }
                Write::LeaveList(_, list, contact, _) if public.contains(&list) => {
                    let known = records.get(&(list, contact));
                    if let Some(stored) = known.filter(|stored| stored.record.status != SubscriptionStatus::Left) {
                        // The commit conflicts if the reader leaves meanwhile, whose act counts.
                        all.push(unchanged(stored));
                        all.push(Write::ForgetSubscription(workspace, list, contact));
                    }
                    all.push(write);
                }
                other => all.push(other),
            }
        }
        all.extend(asked.jobs(self, workspace, None));
        Ok(all)
    }

    /// Returns true if a contact has left a public list of a campaign, and is a member of none of its lists: its
    /// message is not sent any more. A contact in a segment of the campaign gets it all the same, unless it left the
    /// list since the campaign began.
    pub(crate) async fn has_left_since(&self, campaign: &Campaign, contact: ContactId) -> Result<bool, StoreError> {
        let audience = &campaign.plan.audience;
        // Without segments only members of a list are in the audience, whatever the clocks of nodes say.
        let began = campaign.started_at.filter(|_| !audience.segment_ids.is_empty());
        self.has_left(campaign.workspace_id, &audience.list_ids, (contact, began)).await
    }

    /// Returns true if a contact has left a public list among `lists`, since `began` if given, and is a member of none
    /// of `lists`.
    pub(crate) async fn has_left(
        &self,
        workspace: WorkspaceId,
        lists: &[ListId],
        (contact, began): (ContactId, Option<Timestamp>),
    ) -> Result<bool, StoreError> {
        if lists.is_empty() {
            return Ok(false);
        }
        let public = self.public_list_ids(workspace).await?;
        let named: Vec<_> = lists.iter().filter(|list| public.contains(list)).copied().collect();
        let records = self.records(workspace, &named, &[contact]).await?;
        let has_left =
            |one: &Subscription| one.status == SubscriptionStatus::Left && began.is_none_or(|began| one.since >= began);
        if !records.values().any(|stored| has_left(&stored.record)) {
            return Ok(false);
        }
        let contact = self.store().contact(workspace, contact).await?;
        Ok(contact.is_some_and(|stored| !stored.record.list_ids.iter().any(|list| lists.contains(list))))
    }

    /// Returns true if a contact wants at most one marketing mail a week.
    pub(crate) async fn wants_weekly(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        let public = self.public_list_ids(workspace).await?;
        let records = self.records(workspace, &public, &[contact]).await?;
        Ok(records.values().any(|stored| stored.record.is_weekly))
    }

    /// Returns the writes by which a reader leaves public lists. `lists` holds each with true if the contact is a
    /// member.
    pub(crate) async fn leave_writes(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        lists: &[(ListId, bool)],
        proof: &Proof,
    ) -> Result<Vec<Write>, StoreError> {
        let ids: Vec<_> = lists.iter().map(|(list, _)| *list).collect();
        let records = self.records(workspace, &ids, &[contact]).await?;
        let mut writes = Vec::new();
        for (list, is_member) in lists {
            let known = records.get(&(*list, contact));
            if known.is_some_and(|stored| stored.record.status == SubscriptionStatus::Left) && !is_member {
                continue;
            }
            writes.push(record((workspace, *list, contact), known, SubscriptionStatus::Left, proof.clone()));
            // Also for a contact that was no member: the record may be newer than that, and say that the reader has
            // confirmed.
            writes.push(Write::LeaveList(workspace, *list, contact, proof.at));
        }
        Ok(writes)
    }

    /// Returns the write by which marketing email to a contact that is about to leave is decided again. An attempt
    /// begins under the revision of these sends that its last check has read: a change after that check conflicts.
    pub(crate) async fn have_sends_looked_at(
        &self,
        workspace_id: WorkspaceId,
        contact_id: ContactId,
    ) -> Result<Write, StoreError> {
        let channel = Channel::Email;
        Ok(match self.store().contact_sends(workspace_id, contact_id, channel).await? {
            Some(Stored { record, revision }) => Write::put(record, Expect::Revision(revision)),
            None => Write::put(ContactSends { workspace_id, contact_id, channel, times: Vec::new() }, Expect::Absent),
        })
    }

    /// Returns the contact that a message was sent to, or the one that this was merged into.
    pub(crate) async fn contact_of_message(&self, message: &Message) -> Result<Option<Stored<Contact>>, StoreError> {
        let (workspace, Some(id)) = (message.workspace_id, message.contact_id) else { return Ok(None) };
        if let Some(found) = self.store().contact(workspace, id).await? {
            return Ok(Some(found));
        }
        // A merge attributes the messages to the remaining contact: the newest ones at once, the others soon. Until
        // then that contact is found by their address.
        let fresh = self.store().message(workspace, message.id).await?;
        let id = match fresh.filter(|fresh| !fresh.to.is_empty()) {
            Some(fresh) if fresh.contact_id != Some(id) => fresh.contact_id,
            Some(fresh) => match Identifier::of_address(fresh.channel, &fresh.to) {
                Some(identifier) => self.store().contact_identified(workspace, &identifier).await?,
                None => None,
            },
            None => None,
        };
        match id {
            Some(id) => self.store().contact(workspace, id).await,
            None => Ok(None),
        }
    }
}

impl App {
    /// Returns the writes that remove a subscription which was not confirmed in time, and erase its contact if that
    /// exists by the form alone: it is on no list, has no other record, and nothing but the form has changed it.
    pub(crate) async fn forget_unconfirmed(&self, stored: Stored<Subscription>) -> Result<Changes, StoreError> {
        let Subscription { workspace_id: workspace, list_id, contact_id: contact, brought_contact, .. } = stored.record;
        let mut changes = Changes::default();
        // The commit conflicts if the reader confirms meanwhile.
        changes.push(unchanged(&stored));
        changes.push(Write::ForgetSubscription(workspace, list_id, contact));
        if !brought_contact || self.records_of(workspace, contact).await?.len() > 1 {
            return Ok(changes);
        }
        let Some(Stored { record: contact, revision }) = self.store().contact(workspace, contact).await? else {
            return Ok(changes);
        };
        let is_bare = contact.list_ids.is_empty()
            && contact.external_id.is_none()
            && contact.tags.is_empty()
            && contact.consent == Consent::default()
            && contact.updated_at == contact.created_at;
        let page = PageRequest { after: None, limit: 1 };
        if is_bare && self.store().product_events(workspace, contact.id, page).await?.items.is_empty() {
            changes.push(Write::put_contact(contact.clone(), Expect::Revision(revision)));
            changes.extend(self.erasure(&contact));
        }
        Ok(changes)
    }

    /// Returns the writes that erase a contact; its job does the rest for its messages.
    pub(crate) fn erasure(&self, contact: &Contact) -> Vec<Write> {
        let (workspace, now) = (contact.workspace_id, self.now());
        let job = EraseContact::of(contact).enqueue(self.new_id(now), now);
        let streaks = contact
            .all_addresses()
            .into_iter()
            .map(|(channel, address)| Write::EndSoftBounces(workspace, channel, address::normalize(channel, &address)));
        [Write::DeleteContact(workspace, contact.id)]
            .into_iter()
            .chain(streaks)
            .chain([Write::Job(JobWrite::Enqueue(job))])
            .collect()
    }
}

/// Returns the write that does not change a record, and conflicts if it was changed meanwhile.
pub(crate) fn unchanged(stored: &Stored<Subscription>) -> Write {
    Write::PutSubscription(Box::new(stored.record.clone()), Expect::Revision(stored.revision))
}

/// Returns the write that records a status, in place of the known one.
pub(crate) fn record(
    ids: (WorkspaceId, ListId, ContactId),
    known: Option<&Stored<Subscription>>,
    status: SubscriptionStatus,
    proof: Proof,
) -> Write {
    let (record, expect) = match known {
        Some(stored) => (stored.record.with(status, proof), Expect::Revision(stored.revision)),
        None => (Subscription::new(ids, status, proof), Expect::Absent),
    };
    Write::PutSubscription(Box::new(record), expect)
}

/// Lists that contacts are asked to confirm, by contact.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashMap<ContactId, Vec<ListId>>);

impl Asked {
    /// Adds a list for a contact.
    pub(crate) fn add(&mut self, contact: ContactId, list: ListId) {
        self.0.entry(contact).or_default().push(list);
    }

    /// Returns the jobs that send the confirmations, one for each contact.
    pub(crate) fn jobs(self, app: &App, workspace_id: WorkspaceId, form_id: Option<FormId>) -> Vec<Write> {
        let now = app.now();
        let job = |(contact_id, list_ids)| {
            let job = SendConfirmation { workspace_id, contact_id, list_ids, form_id, behind: None };
            Write::Job(JobWrite::Enqueue(job.enqueue(app.new_id(now), now)))
        };
        self.0.into_iter().map(job).collect()
    }
}
