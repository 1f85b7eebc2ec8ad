//! Merging of two contacts into one.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use messaging_core::changes::{
    AttributeMessage, AutomationWrite, ContactSends, Expect, JobWrite, MoveProductEvents, MoveRuns, PutRun, Write,
};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::contact::merge::merge;
use messaging_core::domain::audience::subscription::{self, Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::automation::AutomationStatus;
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::recipient_time::frequency_cap::remembered;
use messaging_core::domain::message::MessageFilter;
use messaging_core::ids::{ContactId, ListId, WorkspaceId};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::store::{PageRequest, Stored};
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContactView, view};
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::move_messages::{EVENTS_AT_A_TIME, MoveMessages};
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::services::subscribing::unchanged;

/// The contacts to merge.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MergeInput {
    /// Contact that stays.
    #[validate(length(min = 1))]
    pub primary_id: String,
    /// Contact that disappears.
    #[validate(length(min = 1))]
    pub duplicate_id: String,
}

impl Input for MergeInput {}

/// `POST /workspaces/{workspace_id}/contacts/merge`
pub struct MergeContacts;

impl Operation for MergeContacts {
    const ID: &'static str = "mergeContacts";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/contacts/merge";
    const ACCESS: Access = Access::Scope(Scope::ContactsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "contact merge";
    const SUMMARY: &'static str = "Merge a duplicate into another contact";
    const LOOKS_UP: bool = true;
    const ANSWERS_SECRET: bool = true;
    type Path = InWorkspace;
    type Query = Empty;
    type Body = MergeInput;
    type Output = ContactView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContactView, Error> {
        let workspace = call.path.workspace_id;
        let MergeInput { primary_id, duplicate_id } = call.body;
        let primary = look_up(cx, workspace, "/primary_id", &primary_id).await?;
        let duplicate = look_up(cx, workspace, "/duplicate_id", &duplicate_id).await?;
        let (Some(primary), Some(duplicate)) = (primary, duplicate) else {
            return Err(std::mem::take(&mut cx.violations).into());
        };
        if primary.record.id == duplicate.record.id {
            cx.violations.add("/duplicate_id", FieldCode::Conflict, "is the primary itself");
            return Err(std::mem::take(&mut cx.violations).into());
        }
        let mut merged = Contact { updated_at: cx.now, ..merge(&primary.record, &duplicate.record)? };
        let Stored { record: duplicate, revision } = duplicate;
        // The removal itself has no condition: this write conflicts if the duplicate changes meanwhile.
        cx.change(Write::put_contact(duplicate.clone(), Expect::Revision(revision)));
        // The events of most contacts are moved at once; the job does the rest.
        let (from, to) = (duplicate.id, merged.id);
        cx.change(Write::MoveProductEvents(MoveProductEvents {
            workspace_id: workspace,
            from,
            to,
            limit: EVENTS_AT_A_TIME,
        }));
        attribute_newest(cx, workspace, [from, to]).await?;
        exit_merged_runs(cx, workspace, [from, to]).await?;
        cx.change(Write::Automation(AutomationWrite::MoveRuns(MoveRuns { workspace_id: workspace, from, to })));
        join_sends(cx, &duplicate, merged.id).await?;
        let (memberships, list_ids) = join_memberships(cx, &primary.record, &duplicate).await?;
        merged.list_ids = list_ids;
        // The duplicate's identifiers are free before the primary takes them.
        cx.change(Write::DeleteContact(workspace, duplicate.id));
        cx.change(Write::put_contact(merged.clone(), Expect::Revision(primary.revision)));
        for write in memberships {
            cx.change(write);
        }
        let job = MoveMessages::new(workspace, duplicate.id, merged.id).enqueue(cx.new_id(), cx.now);
        cx.change(Write::Job(JobWrite::Enqueue(job)));
        view(cx, merged).await
    }
}

/// Number of messages that a merge attributes to the remaining contact at once; its job does the rest.
const MESSAGES_AT_ONCE: usize = 200;

/// Attributes the newest messages of one contact to the other at once, so that a visitor of a link in one of them is
/// known at this moment.
async fn attribute_newest(
    cx: &mut Context<'_>,
    workspace_id: WorkspaceId,
    [from, to]: [ContactId; 2],
) -> Result<(), Error> {
    let filter = MessageFilter { contact_id: Some(from), ..MessageFilter::default() };
    let page = PageRequest { after: None, limit: MESSAGES_AT_ONCE };
    for message in cx.store().messages(workspace_id, &filter, page).await?.items {
        cx.change(Write::AttributeMessage(AttributeMessage { workspace_id, message_id: message.id, from, to }));
    }
    Ok(())
}

/// Number of automations in a page.
const AUTOMATIONS: usize = 200;

/// If both contacts have open runs in an automation, under the same re-entry key, the runs of the one that entered
/// first continue and those of the other end: nobody gets everything twice.
async fn exit_merged_runs(cx: &mut Context<'_>, workspace: WorkspaceId, both: [ContactId; 2]) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = cx.store().automations(workspace, None, PageRequest { after, limit: AUTOMATIONS }).await?;
        for automation in page.items.iter().filter(|one| one.status != AutomationStatus::Draft) {
            let open = cx.store().open_runs(workspace, automation.id, &both).await?;
            let first = |key: &Option<String>| {
                let same = open.iter().map(|stored| &stored.record).filter(|run| run.key == *key);
                same.min_by_key(|run| (run.entered_at, run.id)).map(|run| run.contact_id)
            };
            let goes_on = |run: &Run| first(&run.key) == Some(run.contact_id);
            for stored in open.iter().filter(|stored| !goes_on(&stored.record)) {
                let (run, steps) = stored.record.clone().exit("merged", cx.now)?;
                let expect = Expect::Revision(stored.revision);
                cx.change(Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
                    run,
                    expect,
                    steps,
                    messages: Vec::new(),
                }))));
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Counts the marketing messages that the duplicate was sent for the caps of the remaining contact: it is one person.
async fn join_sends(cx: &mut Context<'_>, duplicate: &Contact, primary: ContactId) -> Result<(), Error> {
    for channel in Channel::ALL {
        let (sent, expect) = sends(cx, duplicate.workspace_id, duplicate.id, channel).await?;
        let times = sent.times.clone();
        // As for the duplicate itself: this write conflicts if a message is sent to it meanwhile.
        cx.change(Write::put(sent, expect));
        if times.is_empty() {
            continue;
        }
        let (mut kept, expect) = sends(cx, duplicate.workspace_id, primary, channel).await?;
        kept.times.extend(times);
        kept.times = remembered(&kept.times, cx.now);
        cx.change(Write::put(kept, expect));
    }
    Ok(())
}

/// Returns the writes that give the remaining contact the memberships of both, and the lists that it is on afterwards.
/// On public lists the reader's last act counts.
async fn join_memberships(
    cx: &mut Context<'_>,
    primary: &Contact,
    duplicate: &Contact,
) -> Result<(Vec<Write>, Vec<ListId>), Error> {
    let workspace = primary.workspace_id;
    let mut kept = cx.app.records_of(workspace, primary.id).await?;
    let gone = cx.app.records_of(workspace, duplicate.id).await?;
    // As for the duplicate itself: these writes conflict if its reader acts meanwhile.
    for stored in gone.values() {
        cx.change(unchanged(stored));
    }
    let unrecorded: Vec<_> = duplicate.list_ids.iter().filter(|list| !gone.contains_key(list)).copied().collect();
    if !unrecorded.is_empty() {
        let api = Proof::of_workspace(SubscriptionAct::Api, cx.now);
        for list in cx.store().public_lists_among(workspace, &unrecorded).await? {
            let nothing_yet =
                Subscription::new((workspace, list, duplicate.id), SubscriptionStatus::Confirmed, api.clone());
            cx.change(Write::PutSubscription(Box::new(nothing_yet), Expect::Absent));
        }
    }
    let mut lists: BTreeSet<ListId> = primary.list_ids.iter().chain(&duplicate.list_ids).copied().collect();
    let recorded: BTreeSet<ListId> = kept.keys().chain(gone.keys()).copied().collect();
    let mut writes = Vec::new();
    for list in recorded {
        let (own, other) = (kept.remove(&list), gone.get(&list).map(|stored| stored.record.clone()));
        let expect = own.as_ref().map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
        let own = own.map(|stored| stored.record);
        let Some(both) = subscription::merged(own.clone(), other) else { continue };
        let both = Subscription { contact_id: primary.id, ..both };
        if both.status == SubscriptionStatus::Confirmed {
            lists.insert(list);
        } else {
            lists.remove(&list);
        }
        if own.as_ref() != Some(&both) {
            writes.push(Write::PutSubscription(Box::new(both), expect));
        }
    }
    let (joins, leaves) = (lists.iter(), primary.list_ids.iter().filter(|list| !lists.contains(list)));
    let joins = joins.filter(|list| !primary.list_ids.contains(list));
    writes.extend(joins.map(|list| Write::JoinList(workspace, *list, primary.id, cx.now)));
    writes.extend(leaves.map(|list| Write::LeaveList(workspace, *list, primary.id, cx.now)));
    Ok((writes, lists.into_iter().collect()))
}

/// Returns the sends to a contact on a channel, and the condition for replacing them.
async fn sends(
    cx: &Context<'_>,
    workspace_id: WorkspaceId,
    contact_id: ContactId,
    channel: Channel,
) -> Result<(ContactSends, Expect), Error> {
    Ok(match cx.store().contact_sends(workspace_id, contact_id, channel).await? {
        Some(Stored { record, revision }) => (record, Expect::Revision(revision)),
        None => (ContactSends { workspace_id, contact_id, channel, times: Vec::new() }, Expect::Absent),
    })
}

async fn look_up(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    pointer: &str,
    id: &str,
) -> Result<Option<Stored<Contact>>, Error> {
    let found = match id.parse() {
        Ok(id) => cx.store().contact(workspace, id).await?,
        Err(_) => None,
    };
    if found.is_none() {
        cx.violations.add(pointer, FieldCode::NotFound, "no such contact in this workspace");
    }
    Ok(found)
}
