//! Campaigns, the resources they hold, their progress, and marketing messages to a contact.

use std::time::Duration;

use messaging_core::changes::{Condition, ContactSends, DocumentKey, Engagement, Expect, WaitingKey, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::campaign::audience::AudienceCounts;
use messaging_core::domain::campaign::progress::{CampaignProgress, FanOut, Freeze, Group, Wave};
use messaging_core::domain::campaign::split::Split;
use messaging_core::domain::campaign::winner::Score;
use messaging_core::domain::campaign::{
    Audience, Campaign, CampaignKind, CampaignPhase, CampaignPlan, CampaignStatus, FailureReason, PauseReason,
    Reference, Variant,
};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::message::milestones::EngagementFlags;
use messaging_core::domain::segment::Segment;
use messaging_core::domain::template::Template;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::ports::store::{Store, Stored};
use messaging_core::time::Timestamp;
use serde_json::json;

use super::campaign_messages::new_waiting;
pub(super) use super::sample::create_campaign as create;
use super::sample::{at, campaign, contact, contact_list, domain, id, segment, template};
use super::segments::add_contact;
use super::{all_pages, first, put, refuse};

/// Longer than the period of any cap.
const WEEK: i64 = 168 * 3_600_000;

pub(super) fn replace(campaign: &Campaign, revision: u32) -> Write {
    Write::put(Box::new(campaign.clone()), Expect::Revision(revision))
}

/// Returns the campaign in another state.
pub(super) fn in_state(campaign: &Campaign, status: CampaignStatus) -> Campaign {
    Campaign { status, ..campaign.clone() }
}

/// A campaign with everything set, which names nothing but the sample.
fn complete(workspace: WorkspaceId) -> Campaign {
    let draft = campaign(workspace);
    let settings = json!({
        "utm": {"source": "«a»", "medium": "email", "campaign": "spring"},
        "quiet_hours": {"start": "22:00", "end": "07:30"},
        "frequency_cap": {"per_day": 2, "per_week": 5, "when_reached": "defer", "defer_hours": 48},
        "ab_test": {"test_percent": 20, "wait_minutes": 240, "winner_metric": "click_rate", "min_probability": 0.85},
        "rate_limit": 6000,
    });
    let variant = |name: &str, weight: f64| Variant {
        name: name.to_owned(),
        weight: weight.try_into().expect("a weight"),
        subject: Some(format!("{name} «subject»")),
        template_id: Some(id()),
    };
    Campaign {
        plan: CampaignPlan {
            kind: CampaignKind::AbTest,
            subject_override: Some("Hello {{ name }}".to_owned()),
            from_name: Some("Acme".to_owned()),
            from_email: Some("news@acme.example".to_owned()),
            reply_to: Some("help@acme.example".to_owned()),
            audience: Audience { list_ids: vec![id(), id()], segment_ids: vec![id()], exclude_list_ids: vec![id()] },
            variants: vec![variant("a", 1.0), variant("b", 2.5)],
            settings: serde_json::from_value(settings).expect("settings"),
            ..draft.plan
        },
        phase: Some(CampaignPhase::WaitingWinner),
        scheduled_at: Some(at(41)),
        wall_time: Some(jiff::civil::date(2030, 5, 17).at(9, 0, 0, 0)),
        schedule_called_at: Some(at(42)),
        started_at: Some(at(43)),
        completed_at: Some(at(44)),
        recipients: Some(1_000_000),
        test_sent_at: Some(at(45)),
        winner: Some(1),
        scores: vec![Score { probability_best: 0.0123, interval: (0.1, 0.2345) }],
        pause_reason: Some(PauseReason::Restored),
        failure_reason: Some(FailureReason::TemplateMissing),
        ..draft
    }
}

/// Progress of a campaign, with everything set.
pub fn progress(campaign: &Campaign) -> CampaignProgress {
    let fan_out = FanOut {
        group: Group::Rest,
        due_at: Some(at(60)),
        piece: 1 << 24,
        place: u16::MAX,
        variants: Some(Split::new(campaign.id, vec![1, 2])),
        is_done: true,
    };
    let variants = vec![
        (TemplateUse { id: id(), version: 3 }, Some("news@acme.example".to_owned())),
        (TemplateUse { id: id(), version: 1 }, None),
    ];
    CampaignProgress {
        freeze: Freeze::Drawing(1 << 24, Split::new(campaign.id, vec![3, 4])),
        counts: AudienceCounts { recipients: 7, excluded: 1, duplicates: 2, ..AudienceCounts::default() },
        waves: vec![Wave { due_at: at(60), recipients: 7 }],
        fan_out,
        ..CampaignProgress::new(campaign, at(50), variants)
    }
}

fn put_progress(progress: &CampaignProgress, expect: Expect) -> Write {
    Write::put(Box::new(progress.clone()), expect)
}

/// Resources that a campaign may name, stored in a workspace.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) list: ContactList,
    pub(super) excluded: ContactList,
    pub(super) segment: Segment,
    pub(super) template: Template,
    pub(super) other_template: Template,
}

impl Named {
    pub(super) async fn put(store: &dyn Store, workspace: WorkspaceId) -> Self {
        let template = || template(workspace, Channel::Email);
        let named = Self {
            list: contact_list(workspace),
            excluded: contact_list(workspace),
            segment: segment(workspace),
            template: template(),
            other_template: template(),
        };
        put(
            store,
            [
                Write::put(named.list.clone(), Expect::Absent),
                Write::put(named.excluded.clone(), Expect::Absent),
                Write::PutSegment(Box::new(named.segment.clone()), Expect::Absent),
                Write::put(Box::new(named.template.clone()), Expect::Absent),
                Write::put(Box::new(named.other_template.clone()), Expect::Absent),
            ],
        )
        .await;
        named
    }

    /// A draft that names all of them, some of them twice.
    pub(super) fn campaign(&self) -> Campaign {
        let draft = campaign(self.list.workspace_id);
        let variant = |template_id| Variant {
            name: "v".to_owned(),
            weight: messaging_core::domain::campaign::settings::Weight::ONE,
            subject: None,
            template_id,
        };
        Campaign {
            plan: CampaignPlan {
                template_id: self.template.id,
                audience: Audience {
                    list_ids: vec![self.list.id, self.list.id],
                    segment_ids: vec![self.segment.id],
                    exclude_list_ids: vec![self.excluded.id],
                },
                variants: vec![variant(None), variant(Some(self.template.id)), variant(Some(self.other_template.id))],
                ..draft.plan
            },
            ..draft
        }
    }

    fn all(&self) -> [Reference; 5] {
        [
            Reference::List(self.list.id),
            Reference::List(self.excluded.id),
            Reference::Segment(self.segment.id),
            Reference::Template(self.template.id),
            Reference::Template(self.other_template.id),
        ]
    }
}

/// A campaign comes back as it was put, and changes with its revision.
pub async fn campaigns_round_trip(store: &dyn Store) {
    let workspace = id();
    let (draft, full) = (campaign(workspace), complete(workspace));
    for campaign in [&draft, &full] {
        put(store, [create(campaign)]).await;
        refuse(store, [create(campaign)]).await;
        let found = store.campaign(workspace, campaign.id).await.unwrap();
        assert_eq!(found, Some(Stored { record: campaign.clone(), revision: 1 }));
    }
    let next = Campaign { id: draft.id, created_at: draft.created_at, ..complete(workspace) };
    put(store, [replace(&next, 1)]).await;
    refuse(store, [replace(&next, 1)]).await;
    refuse(store, [replace(&campaign(workspace), 1)]).await;
    assert_eq!(store.campaign(workspace, draft.id).await.unwrap(), Some(Stored { record: next, revision: 2 }));
    assert_eq!(store.campaign(workspace, id()).await.unwrap(), None);
}

/// Pages neither skip nor repeat, of all campaigns and of those in a state.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let (mut all, mut sent) = (Vec::new(), Vec::new());
    for n in 0..10 {
        let status = if n % 2 == 0 { CampaignStatus::Sent } else { CampaignStatus::Draft };
        let campaign = in_state(&campaign(workspace), status);
        put(store, [create(&campaign)]).await;
        all.insert(0, campaign.clone());
        if n % 2 == 0 {
            sent.insert(0, campaign);
        }
    }
    let more = async || put(store, [create(&in_state(&campaign(workspace), CampaignStatus::Sent))]).await;
    let listed = all_pages(3, async |page| store.campaigns(workspace, None, page).await, more).await;
    assert_eq!(listed, all);
    put(store, [replace(&in_state(&sent[0], CampaignStatus::Failed), 1)]).await;
    let page = async |page| store.campaigns(workspace, Some(CampaignStatus::Sent), page).await;
    let listed = all_pages(2, page, more).await;
    assert!(listed.ends_with(&sent[1..]) && !listed.contains(&sent[0]), "{listed:?}");
    let drafts = store.campaigns(workspace, Some(CampaignStatus::Draft), first(100)).await.unwrap();
    assert_eq!(drafts.items.len(), 5);
    assert_eq!(store.campaigns(workspace, Some(CampaignStatus::Paused), first(9)).await.unwrap().items, []);
}

/// Open campaigns of all workspaces are found, and only they.
pub async fn open_campaigns_are_found_in_every_workspace(store: &dyn Store) {
    let mut open = Vec::new();
    for _ in 0..2 {
        let workspace = id();
        let named = Named::put(store, workspace).await;
        for status in CampaignStatus::ALL {
            let campaign = in_state(&named.campaign(), status);
            put(store, [create(&campaign)]).await;
            if status.holds_references() {
                open.push(campaign.id);
            }
        }
    }
    let found = async |limit| {
        let page = async |page| store.open_campaigns(page).await;
        let mut found: Vec<CampaignId> =
            all_pages(limit, page, async || ()).await.into_iter().map(|campaign| campaign.id).collect();
        found.sort();
        found
    };
    assert_eq!(found(2).await, open);
    let gone = store.open_campaigns(first(1)).await.unwrap().items.remove(0);
    let ended = open.iter().copied().find(|id| *id != gone.id).unwrap();
    put(store, [Write::Delete(DocumentKey::Campaign(gone.workspace_id, gone.id))]).await;
    let page = store.open_campaigns(first(9)).await.unwrap().items;
    let ended = page.iter().find(|campaign| campaign.id == ended).unwrap();
    put(store, [replace(&in_state(ended, CampaignStatus::Cancelled), 1)]).await;
    open.retain(|id| *id != gone.id && *id != ended.id);
    assert_eq!(found(9).await, open);
}

/// The sending domains of an open campaign are held like the resources it names.
pub async fn the_domains_of_open_campaigns_are_held(store: &dyn Store) {
    let workspace = id();
    let named = Named::put(store, workspace).await;
    let domain = domain(workspace, "example.org");
    put(store, [Write::put(domain.clone(), Expect::Absent)]).await;
    let what = Reference::Domain(domain.id);
    let scheduled = in_state(&named.campaign(), CampaignStatus::Scheduled);
    let open = Campaign { sending_domains: vec![domain.id], ..scheduled };
    put(store, [create(&open)]).await;
    let delete = Write::Delete(DocumentKey::Domain(workspace, domain.id));
    refuse(store, [delete.clone(), Write::Expect(Condition::Unused(workspace, what))]).await;
    assert_eq!(store.campaigns_holding(workspace, what, 9).await.unwrap(), [open.id]);
    assert_eq!(store.domain(workspace, domain.id).await.unwrap().unwrap().record, domain);
    put(store, [replace(&in_state(&open, CampaignStatus::Sent), 1)]).await;
    put(store, [delete, Write::Expect(Condition::Unused(workspace, what))]).await;
    // A removed resource cannot be held any more.
    refuse(store, [create(&Campaign { id: id(), ..open })]).await;
}

/// The resources that an open campaign names are held from the commit that opens it to the one that closes it.
pub async fn what_open_campaigns_name_is_held(store: &dyn Store) {
    let workspace = id();
    let named = Named::put(store, workspace).await;
    let draft = named.campaign();
    let unused = async || {
        for what in named.all() {
            put(store, [Write::Expect(Condition::Unused(workspace, what))]).await;
            assert_eq!(store.campaigns_holding(workspace, what, 9).await.unwrap(), []);
        }
    };
    put(store, [create(&draft)]).await;
    unused().await;
    let mut revision = 1;
    for status in [CampaignStatus::Scheduled, CampaignStatus::Sending, CampaignStatus::Paused] {
        put(store, [replace(&in_state(&draft, status), revision)]).await;
        revision += 1;
        for what in named.all() {
            refuse(store, [Write::Expect(Condition::Unused(workspace, what))]).await;
            refuse(store, [create(&campaign(workspace)), Write::Expect(Condition::Unused(workspace, what))]).await;
            assert_eq!(store.campaigns_holding(workspace, what, 9).await.unwrap(), [draft.id]);
        }
    }
    // Other campaigns hold the same; ids of one kind mean nothing to another.
    let second = in_state(&named.campaign(), CampaignStatus::Sending);
    put(store, [create(&second)]).await;
    let list = Reference::List(named.list.id);
    let holders = store.campaigns_holding(workspace, list, 9).await.unwrap();
    assert_eq!(holders, [draft.id, second.id]);
    assert_eq!(store.campaigns_holding(workspace, list, 1).await.unwrap().len(), 1);
    put(store, [Write::Expect(Condition::Unused(workspace, Reference::List(id())))]).await;

    put(store, [replace(&in_state(&second, CampaignStatus::Sent), 1)]).await;
    assert_eq!(store.campaigns_holding(workspace, list, 9).await.unwrap(), [draft.id]);
    refuse(store, [Write::Expect(Condition::Unused(workspace, list))]).await;
    // Back to a draft that names other resources.
    let other = Campaign { plan: campaign(workspace).plan, ..draft.clone() };
    put(store, [replace(&other, revision)]).await;
    unused().await;
    put(store, [create(&in_state(&named.campaign(), CampaignStatus::Paused))]).await;
    let third = store.campaigns_holding(workspace, list, 9).await.unwrap()[0];
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, third))]).await;
    unused().await;
}

/// A campaign that names a resource that is gone, or of another workspace, cannot be opened.
pub async fn what_is_gone_cannot_be_held(store: &dyn Store) {
    let workspace = id();
    let foreign = Named::put(store, id()).await;
    let deletions: [fn(&Named) -> Write; 5] = [
        |named| Write::Delete(DocumentKey::List(named.list.workspace_id, named.list.id)),
        |named| Write::Delete(DocumentKey::List(named.list.workspace_id, named.excluded.id)),
        |named| Write::DeleteSegment(named.list.workspace_id, named.segment.id),
        |named| Write::DeleteTemplate(named.list.workspace_id, named.template.id, at(0)),
        |named| Write::DeleteTemplate(named.list.workspace_id, named.other_template.id, at(0)),
    ];
    for delete in deletions {
        let named = Named::put(store, workspace).await;
        let draft = named.campaign();
        let open = in_state(&draft, CampaignStatus::Scheduled);
        put(store, [create(&draft), delete(&named)]).await;
        refuse(store, [replace(&open, 1)]).await;
        refuse(store, [create(&Campaign { id: id(), ..open })]).await;
        assert_eq!(store.campaign(workspace, draft.id).await.unwrap().unwrap().record, draft);
        for what in named.all() {
            assert_eq!(store.campaigns_holding(workspace, what, 9).await.unwrap(), [], "nothing is held half");
        }
    }
    let mut stranger = Named::put(store, workspace).await.campaign();
    put(store, [create(&stranger)]).await;
    stranger.plan.audience.list_ids.push(foreign.list.id);
    stranger.status = CampaignStatus::Sending;
    refuse(store, [replace(&stranger, 1)]).await;
}

/// Progress belongs to its campaign and changes with its own revision.
pub async fn progress_changes_with_its_revision(store: &dyn Store) {
    let workspace = id();
    let campaign = campaign(workspace);
    let full = progress(&campaign);
    let bare = CampaignProgress::new(&campaign, at(50), Vec::new());
    refuse(store, [put_progress(&full, Expect::Absent)]).await;
    put(store, [create(&campaign)]).await;
    assert_eq!(store.campaign_progress(workspace, campaign.id).await.unwrap(), None);
    refuse(store, [put_progress(&full, Expect::Revision(1))]).await;
    put(store, [put_progress(&full, Expect::Absent)]).await;
    refuse(store, [put_progress(&full, Expect::Absent)]).await;
    let found = async || store.campaign_progress(workspace, campaign.id).await.unwrap().unwrap();
    assert_eq!(found().await, Stored { record: full, revision: 1 });
    put(store, [put_progress(&bare, Expect::Revision(1)), replace(&campaign, 1)]).await;
    refuse(store, [put_progress(&bare, Expect::Revision(1))]).await;
    assert_eq!(found().await, Stored { record: bare.clone(), revision: 2 });
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, campaign.id))]).await;
    assert_eq!(store.campaign_progress(workspace, campaign.id).await.unwrap(), None);
    refuse(store, [put_progress(&bare, Expect::Revision(2))]).await;
}

/// A commit that expects a state of a campaign succeeds while it is in that state.
pub async fn the_state_of_a_campaign_is_expected(store: &dyn Store) {
    let workspace = id();
    let campaign = in_state(&Named::put(store, workspace).await.campaign(), CampaignStatus::Sending);
    let expect = |status| Write::Expect(Condition::Campaign(workspace, campaign.id, status));
    refuse(store, [expect(CampaignStatus::Sending)]).await;
    put(store, [create(&campaign)]).await;
    put(store, [expect(CampaignStatus::Sending)]).await;
    put(store, [replace(&in_state(&campaign, CampaignStatus::Paused), 1), expect(CampaignStatus::Paused)]).await;
    refuse(store, [expect(CampaignStatus::Sending)]).await;
    refuse(store, [Write::Expect(Condition::Campaign(id(), campaign.id, CampaignStatus::Paused))]).await;
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, campaign.id))]).await;
    refuse(store, [expect(CampaignStatus::Paused)]).await;
}

/// A removed campaign is gone at once; its rows are removed a few at a time, its messages stay.
pub async fn a_removed_campaign_lets_its_rows_go(store: &dyn Store) {
    let workspace = id();
    let (gone, stays) = (campaign(workspace), campaign(workspace));
    let mut messages = Vec::new();
    for campaign in [&gone, &stays] {
        put(store, [create(campaign), put_progress(&progress(campaign), Expect::Absent)]).await;
        let mut waiting: Vec<_> = (0..4).map(|n| new_waiting(campaign, n, 100)).collect();
        for new in &mut waiting {
            new.message.milestones.seen = EngagementFlags::OPENED;
        }
        let seen = waiting.iter().map(|new| {
            let (campaign_id, message_id) = (campaign.id, new.message.id);
            Write::NoteEngagement(Engagement {
                workspace_id: workspace,
                campaign_id,
                seen: EngagementFlags::OPENED,
                message_id,
                at: at(1),
            })
        });
        put(store, seen).await;
        put(store, [Write::InsertWaiting(workspace, campaign.id, waiting.clone())]).await;
        messages.push(waiting);
    }
    let remove = Write::Delete(DocumentKey::Campaign(workspace, gone.id));
    put(store, [remove.clone()]).await;
    put(store, [remove]).await;
    assert_eq!(store.campaign(workspace, gone.id).await.unwrap(), None);
    assert_eq!(store.campaigns(workspace, None, first(9)).await.unwrap().items, std::slice::from_ref(&stays));
    assert_eq!(store.waiting_tracks(workspace, gone.id).await.unwrap(), []);
    assert_eq!(store.due_messages(workspace, gone.id, 0, at(100), 9).await.unwrap(), []);
    let seen = CampaignMessageFilter::Engaged(EngagementFlags::OPENED);
    assert_eq!(store.campaign_messages(workspace, gone.id, seen, first(9)).await.unwrap().items, []);
    refuse(store, [replace(&gone, 1)]).await;
    refuse(store, [create(&gone)]).await;
    let key = WaitingKey { track: 0, due_at: at(100), message_id: messages[0][0].message.id };
    refuse(store, [Write::TakeWaiting(workspace, gone.id, vec![key])]).await;
    refuse(store, [Write::PutWaiting(workspace, gone.id, key)]).await;
    refuse(store, [Write::InsertWaiting(workspace, gone.id, vec![new_waiting(&gone, 0, 1)])]).await;

    // Four waiting messages, four that were seen, the progress, the campaign.
    assert_eq!(store.forget_campaign_rows(at(0), 3).await.unwrap(), 3);
    assert_eq!(store.forget_campaign_rows(at(0), 100).await.unwrap(), 7);
    assert_eq!(store.forget_campaign_rows(at(0), 100).await.unwrap(), 0);
    for (campaign, messages) in [&gone, &stays].into_iter().zip(&messages) {
        let wanted = CampaignMessageFilter::All;
        let all = store.campaign_messages(workspace, campaign.id, wanted, first(9)).await.unwrap().items;
        assert_eq!(all.len(), messages.len(), "messages stay");
    }
    assert_eq!(store.waiting_tracks(workspace, stays.id).await.unwrap().len(), 4);
    assert_eq!(store.campaign_messages(workspace, stays.id, seen, first(9)).await.unwrap().items.len(), 4);
    assert!(store.campaign_progress(workspace, stays.id).await.unwrap().is_some());
    // The next campaign has none of its rows.
    let next = campaign(workspace);
    put(store, [create(&next)]).await;
    assert_eq!(store.campaign_progress(workspace, next.id).await.unwrap(), None);
    assert_eq!(store.waiting_tracks(workspace, next.id).await.unwrap(), []);
}

/// Campaigns that an archive may show are listed by the time of their start, the latest first, page by page.
pub async fn archived_campaigns_are_ordered_by_their_beginning(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let draft = || {
        let mut draft = campaign(workspace);
        draft.plan.audience.segment_ids.clear();
        draft
    };
    let begun =
        |minute: i64| Campaign { status: CampaignStatus::Sent, started_at: Some(at(minute * 60_000)), ..draft() };
    let (late, early, same) = (begun(9), begun(3), begun(3));
    let kept_out = Campaign { plan: CampaignPlan { archived: false, ..begun(5).plan }, ..begun(5) };
    let removed = begun(6);
    put(store, [create(&late), create(&early), create(&same), create(&kept_out), create(&removed), create(&draft())])
        .await;
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, removed.id))]).await;
    let found = async |before: Option<CampaignId>, limit| {
        let found = store.archived_campaigns(workspace, before, limit).await.unwrap();
        found.into_iter().map(|campaign| campaign.id).collect::<Vec<_>>()
    };
    let (second, third) = if early.id < same.id { (same.id, early.id) } else { (early.id, same.id) };
    assert_eq!(found(None, 9).await, [late.id, second, third]);
    assert_eq!(found(None, 2).await, [late.id, second]);
    assert_eq!(found(Some(second), 9).await, [third]);
    assert_eq!(found(Some(third), 9).await, []);
    for nowhere in [removed.id, kept_out.id, id()] {
        assert_eq!(found(Some(nowhere), 9).await, []);
    }
    assert_eq!(store.archived_campaigns(id(), None, 9).await.unwrap(), []);
    assert_eq!(store.archived_campaigns(id(), Some(late.id), 9).await.unwrap(), []);
    // A campaign that is excluded later is gone, and one that is included again is back.
    let later = Campaign { plan: CampaignPlan { archived: false, ..late.plan.clone() }, ..late.clone() };
    put(store, [replace(&later, 1)]).await;
    assert_eq!(found(None, 9).await, [second, third]);
    put(store, [replace(&late, 2)]).await;
    assert_eq!(found(None, 1).await, [late.id]);
}

/// A campaign belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let named = Named::put(store, mine).await;
    let campaign = in_state(&named.campaign(), CampaignStatus::Scheduled);
    put(store, [create(&campaign), put_progress(&progress(&campaign), Expect::Absent)]).await;
    assert_eq!(store.campaign(other, campaign.id).await.unwrap(), None);
    assert_eq!(store.campaign_progress(other, campaign.id).await.unwrap(), None);
    for status in [None, Some(CampaignStatus::Scheduled)] {
        assert_eq!(store.campaigns(other, status, first(9)).await.unwrap().items, []);
    }
    let stolen = Campaign { workspace_id: other, ..in_state(&campaign, CampaignStatus::Draft) };
    refuse(store, [replace(&stolen, 1)]).await;
    refuse(store, [put_progress(&progress(&stolen), Expect::Absent)]).await;
    refuse(store, [put_progress(&progress(&stolen), Expect::Revision(1))]).await;
    for what in named.all() {
        assert_eq!(store.campaigns_holding(other, what, 9).await.unwrap(), []);
        put(store, [Write::Expect(Condition::Unused(other, what))]).await;
    }
    put(store, [Write::Delete(DocumentKey::Campaign(other, campaign.id))]).await;
    assert_eq!(store.campaign(mine, campaign.id).await.unwrap().unwrap().revision, 1);
    assert_eq!(store.forget_campaign_rows(at(0), 9).await.unwrap(), 0);
}

fn sends(contact: &Contact, times: &[i64]) -> ContactSends {
    ContactSends {
        workspace_id: contact.workspace_id,
        contact_id: contact.id,
        channel: Channel::Email,
        times: times.iter().map(|time| at(*time)).collect(),
    }
}

fn put_sends(sends: &ContactSends, expect: Expect) -> Write {
    Write::put(sends.clone(), expect)
}

async fn sends_of(store: &dyn Store, workspace: WorkspaceId, contact: ContactId) -> Option<(Vec<Timestamp>, u32)> {
    let found = store.contact_sends(workspace, contact, Channel::Email).await.unwrap();
    found.map(|stored| (stored.record.times, stored.revision))
}

/// Sends come back in their order, kept at least to the second and never earlier, and change with their revision.
pub async fn sends_change_with_their_revision(store: &dyn Store) {
    let contact = contact(id());
    let workspace = contact.workspace_id;
    refuse(store, [put_sends(&sends(&contact, &[0]), Expect::Absent)]).await;
    put(store, [add_contact(&contact)]).await;
    assert_eq!(sends_of(store, workspace, contact.id).await, None);
    refuse(store, [put_sends(&sends(&contact, &[0]), Expect::Revision(1))]).await;
    let once = sends(&contact, &[1_000, 2_001, 5_999]);
    put(store, [put_sends(&once, Expect::Absent)]).await;
    refuse(store, [put_sends(&once, Expect::Absent)]).await;
    let found = store.contact_sends(workspace, contact.id, Channel::Email).await.unwrap().unwrap();
    let off: Vec<_> = found.record.times.iter().zip(&once.times).map(|(found, put)| found.since(*put)).collect();
    assert_eq!(off.len(), 3);
    assert!(off[0].is_zero() && off.iter().all(|off| *off < Duration::from_secs(1)), "{off:?}");
    assert!(found.record.times.iter().zip(&once.times).all(|(found, put)| found >= put));
    assert_eq!((found.record.contact_id, found.record.workspace_id), (contact.id, workspace));
    let more = sends(&contact, &[1_000, 9_000]);
    put(store, [put_sends(&more, Expect::Revision(found.revision))]).await;
    refuse(store, [put_sends(&more, Expect::Revision(found.revision))]).await;
    assert_eq!(sends_of(store, workspace, contact.id).await.unwrap().0, more.times);
    // Each channel and each contact has its own sends.
    assert_eq!(store.contact_sends(workspace, contact.id, Channel::Sms).await.unwrap(), None);
    put(store, [put_sends(&ContactSends { channel: Channel::Sms, ..sends(&contact, &[3_000]) }, Expect::Absent)]).await;
    assert_eq!(sends_of(store, workspace, contact.id).await.unwrap().0, more.times);
    // A removed contact leaves nothing behind.
    put(store, [Write::DeleteContact(workspace, contact.id)]).await;
    assert_eq!(sends_of(store, workspace, contact.id).await, None);
    refuse(store, [put_sends(&more, Expect::Absent)]).await;
}

/// A revision that was read is never used again: sends that were withdrawn, and added again, have another.
pub async fn a_revision_of_sends_is_met_once(store: &dyn Store) {
    let contact = contact(id());
    let workspace = contact.workspace_id;
    put(store, [add_contact(&contact)]).await;
    let mut met = Vec::new();
    let mut expect = Expect::Absent;
    for times in [&[1_000][..], &[], &[1_000], &[], &[2_000], &[2_000, 3_000]] {
        put(store, [put_sends(&sends(&contact, times), expect)]).await;
        expect = Expect::Absent;
        let Some((found, revision)) = sends_of(store, workspace, contact.id).await else { continue };
        assert_eq!(found, sends(&contact, times).times);
        met.push(revision);
        expect = Expect::Revision(revision);
    }
    // The same holds for sends that were removed because they are old, and are added again.
    let stale = met.last().copied().unwrap();
    while store.forget_campaign_rows(at(WEEK + 3_000), 9).await.unwrap() > 0 {}
    put(store, [put_sends(&sends(&contact, &[WEEK + 4_000]), Expect::Absent)]).await;
    refuse(store, [put_sends(&sends(&contact, &[5_000]), Expect::Revision(stale))]).await;
    met.push(sends_of(store, workspace, contact.id).await.unwrap().1);
    let count = met.len();
    met.sort_unstable();
    met.dedup();
    assert_eq!(met.len(), count, "{met:?}");
}

/// Sends that no cap counts any more are removed, a few at a time, and the others stay.
pub async fn stale_sends_are_forgotten(store: &dyn Store) {
    let workspace = id();
    let contacts: Vec<_> = (0..6).map(|_| contact(workspace)).collect();
    for (n, contact) in contacts.iter().enumerate() {
        let times: &[i64] = if n % 3 == 0 { &[0, 10_000] } else { &[0, 5_000] };
        put(store, [add_contact(contact), put_sends(&sends(contact, times), Expect::Absent)]).await;
    }
    let left = async || {
        let mut left = Vec::new();
        for (n, contact) in contacts.iter().enumerate() {
            left.extend(sends_of(store, workspace, contact.id).await.map(|_| n));
        }
        left
    };
    assert_eq!(store.forget_campaign_rows(at(WEEK + 4_000), 9).await.unwrap(), 0);
    assert_eq!(left().await.len(), 6);
    assert_eq!(store.forget_campaign_rows(at(WEEK + 5_000), 3).await.unwrap(), 3);
    let mut forgotten = 3;
    // A look may end after the remaining rows; the next begins anew.
    for _ in 0..3 {
        forgotten += store.forget_campaign_rows(at(WEEK + 5_000), 3).await.unwrap();
    }
    assert_eq!(forgotten, 4);
    assert_eq!(left().await, [0, 3]);
}

/// Sends belong to a workspace.
pub async fn sends_of_other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (contact(id()), contact(id()));
    put(store, [add_contact(&mine), add_contact(&other)]).await;
    put(store, [put_sends(&sends(&mine, &[1_000]), Expect::Absent)]).await;
    let (_, revision) = sends_of(store, mine.workspace_id, mine.id).await.unwrap();
    assert_eq!(sends_of(store, other.workspace_id, mine.id).await, None);
    let stolen = ContactSends { workspace_id: other.workspace_id, ..sends(&mine, &[2_000]) };
    refuse(store, [put_sends(&stolen, Expect::Absent)]).await;
    refuse(store, [put_sends(&stolen, Expect::Revision(revision))]).await;
    assert_eq!(sends_of(store, mine.workspace_id, mine.id).await, Some((vec![at(1_000)], revision)));
}
