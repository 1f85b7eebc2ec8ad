//! Messages, contents, events.

use messaging_core::changes::{MoveMessage, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones, Skip};
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::time::Timestamp;
use serde_json::Map;

use super::sample::{at, bare_message, change, content, event, id, insert, message};
use super::{all_pages, first, put, refuse};

async fn listed(store: &dyn Store, workspace: WorkspaceId, filter: MessageFilter) -> Vec<MessageId> {
    let pages = all_pages(2, async |page| store.messages(workspace, &filter, page).await, async || ()).await;
    pages.iter().map(|message| message.id).collect()
}

/// A message comes back with all fields and its content.
pub async fn messages_round_trip(store: &dyn Store) {
    let workspace = id();
    let complete = message(workspace);
    let bare = Message { channel: Channel::Viber, ..bare_message(workspace) };
    for message in [&complete, &bare] {
        let content = content("{\"text\":\"\u{0}ü\"}");
        put(store, [Write::InsertMessage(Box::new(message.clone()), content.clone())]).await;
        assert_eq!(store.message(workspace, message.id).await.unwrap().as_ref(), Some(message));
        let found = store.message_with_content(workspace, message.id).await.unwrap().unwrap();
        let length = content.request.len() as u64;
        assert_eq!(found, (message.clone(), Some(content)));
        let found = store.message_with_length(workspace, message.id).await.unwrap().unwrap();
        assert_eq!(found, (message.clone(), Some(length)));
    }
    assert_eq!(store.message(workspace, id()).await.unwrap(), None);
    assert_eq!(store.message_with_content(workspace, id()).await.unwrap(), None);
    assert_eq!(store.message_with_length(workspace, id()).await.unwrap(), None);
    assert_eq!(store.message_with_length(id(), complete.id).await.unwrap(), None);
    refuse(store, [insert(&complete)]).await;
    let all = store.messages(workspace, &MessageFilter::default(), first(10)).await.unwrap();
    assert_eq!((all.items, all.next), (vec![bare, complete], None));
}

/// A change of status needs the revision that was read, and changes nothing but what it names.
pub async fn status_moves_with_its_revision(store: &dyn Store) {
    let queued = message(id());
    put(store, [insert(&queued)]).await;
    put(store, [change(&queued, 1, MessageStatus::Sending)]).await;
    refuse(store, [change(&queued, 1, MessageStatus::Sent)]).await;
    refuse(store, [change(&message(queued.workspace_id), 1, MessageStatus::Sent)]).await;
    let elsewhere = Message { workspace_id: id(), ..queued.clone() };
    refuse(store, [change(&elsewhere, 2, MessageStatus::Sent)]).await;
    let sending = queued.moved(MessageStatus::Sending, at(20));
    let bounced = sending.moved(MessageStatus::Bounced, at(21));
    put(store, [Write::MoveMessage(MoveMessage::new(&sending, &bounced))]).await;
    assert_eq!((bounced.revision, bounced.hold), (3, None));
    assert_eq!(store.message(queued.workspace_id, queued.id).await.unwrap(), Some(bounced));
}

/// The hold of a message and its counted milestones change with its status, and alone.
pub async fn holds_and_milestones_move(store: &dyn Store) {
    let mut message = bare_message(id());
    put(store, [insert(&message)]).await;
    let nothing = Milestones::default();
    let all = Milestones {
        seen: EngagementFlags::from_bits(u8::MAX),
        links: u64::MAX,
        skip: Some(Skip::FrequencyCap),
        sent_at: Some(at(-5)),
        delivered_at: Some(at(1 << 40)),
    };
    let holds = HoldReason::ALL.map(|reason| Some(Hold { reason, until: Some(at(50)), since: at(49) }));
    let endless = Some(Hold { reason: HoldReason::Paused, until: None, since: at(48) });
    for hold in holds.into_iter().chain([endless, None]) {
        for milestones in [all, nothing, Milestones { skip: Some(Skip::Suppressed), links: 1 << 63, ..nothing }] {
            let next = Message { hold, milestones, ..message.moved(MessageStatus::Deferred, at(51)) };
            put(store, [Write::MoveMessage(MoveMessage::new(&message, &next))]).await;
            assert_eq!(store.message(message.workspace_id, message.id).await.unwrap().as_ref(), Some(&next));
            message = next;
        }
    }
    refuse(store, [Write::MoveMessage(MoveMessage { revision: 1, ..MoveMessage::new(&message, &message) })]).await;
}

/// Contents of old settled messages are removed, the messages stay; others keep theirs.
pub async fn contents_are_forgotten_when_settled(store: &dyn Store) {
    let workspace = id();
    let dated = |created, status| Message { created_at: at(created), status, ..message(workspace) };
    let old = [dated(0, MessageStatus::Sent), dated(1, MessageStatus::Failed), dated(2, MessageStatus::Delivered)];
    let waiting = dated(3, MessageStatus::Deferred);
    let young = dated(500, MessageStatus::Sent);
    let all = [&old[0], &waiting, &old[1], &old[2], &young];
    put(store, all.map(insert)).await;

    assert_eq!(store.forget_contents(at(100), 2).await.unwrap(), 2);
    assert_eq!(store.forget_contents(at(100), 2).await.unwrap(), 1);
    assert_eq!(store.forget_contents(at(100), 2).await.unwrap(), 0);
    for message in all {
        let kept = message.id == waiting.id || message.id == young.id;
        let (found, content) = store.message_with_content(workspace, message.id).await.unwrap().unwrap();
        assert_eq!((&found, content.is_some()), (message, kept));
    }
}

/// Messages accepted while the clock was wrong do not keep the contents of later ones from being removed.
pub async fn contents_dated_in_the_future_are_passed_over(store: &dyn Store) {
    let workspace = id();
    let dated = |created| Message {
        created_at: at(created),
        status: MessageStatus::Sent,
        ..super::sample::bare_message(workspace)
    };
    put(store, (0..2_500).map(|_| insert(&dated(1_000_000))).collect::<Vec<_>>()).await;
    put(store, [insert(&dated(0))]).await;
    let mut forgotten = 0;
    for _ in 0..4 {
        forgotten += store.forget_contents(at(100), 10).await.unwrap();
    }
    assert_eq!(forgotten, 1);
}

/// Events come in the order of their times, however they were stored.
pub async fn events_are_ordered_by_time(store: &dyn Store) {
    let (mine, other) = (message(id()), message(id()));
    let sent = event(&mine, EventKind::Sent, 30);
    let opened = event(&mine, EventKind::Open, 50);
    let mut delivered = event(&mine, EventKind::Delivered, 40);
    delivered.meta = Map::new();
    let events = [&opened, &sent, &delivered, &event(&other, EventKind::Sent, 35)];
    put(store, events.map(|event| Write::AppendEvent(Box::new(event.clone())))).await;

    let found = store.message_events(mine.workspace_id, mine.id, 10).await.unwrap();
    assert_eq!(found, [sent.clone(), delivered.clone(), opened]);
    assert_eq!(store.message_events(mine.workspace_id, mine.id, 2).await.unwrap(), [sent.clone(), delivered]);
    assert_eq!(store.message_events(other.workspace_id, mine.id, 10).await.unwrap(), []);

    let again = event(&mine, EventKind::Sent, 60);
    put(store, [Write::AppendEvent(Box::new(again.clone()))]).await;
    let of_kind =
        async |kind, limit| store.message_events_of_kind(mine.workspace_id, mine.id, kind, limit).await.unwrap();
    assert_eq!(of_kind(EventKind::Sent, 10).await, [sent.clone(), again]);
    assert_eq!(of_kind(EventKind::Sent, 1).await, [sent]);
    assert_eq!(of_kind(EventKind::Bounce, 10).await, []);
}

/// Each filter alone returns exactly the messages that match, newest first.
pub async fn every_filter_narrows(store: &dyn Store) {
    let workspace = id();
    let mut messages = Vec::new();
    for status in MessageStatus::ALL {
        messages.push(Message { status, tags: vec![status.as_str().to_owned()], ..bare_message(workspace) });
        messages.push(Message { status, ..message(workspace) });
    }
    for channel in Channel::ALL {
        messages.push(Message { channel, ..bare_message(workspace) });
    }
    let special = message(workspace);
    let relative = Message {
        contact_id: special.contact_id,
        campaign_id: special.campaign_id,
        automation_id: special.automation_id,
        tags: vec!["welcome back".to_owned()],
        ..message(workspace)
    };
    messages.extend([special.clone(), relative]);
    put(store, messages.iter().map(insert).collect::<Vec<_>>()).await;

    let expected = |matches: &dyn Fn(&Message) -> bool| -> Vec<MessageId> {
        messages.iter().rev().filter(|message| matches(message)).map(|message| message.id).collect()
    };
    let all = MessageFilter::default();
    assert_eq!(listed(store, workspace, all.clone()).await, expected(&|_| true));
    for status in MessageStatus::ALL {
        let filter = MessageFilter { statuses: vec![status], ..all.clone() };
        assert_eq!(listed(store, workspace, filter).await, expected(&|message| message.status == status), "{status:?}");
    }
    let (campaign_id, later) = (special.campaign_id, MessageStatus::Complained);
    for statuses in [
        vec![MessageStatus::Bounced, MessageStatus::Failed],
        vec![MessageStatus::Suppressed, MessageStatus::Bounced, MessageStatus::Suppressed, later],
        vec![MessageStatus::Sent, MessageStatus::Failed],
        vec![MessageStatus::Queued, MessageStatus::Sending],
    ] {
        let filter = MessageFilter { statuses: statuses.clone(), ..all.clone() };
        let is_wanted = |message: &Message| statuses.contains(&message.status);
        assert_eq!(listed(store, workspace, filter.clone()).await, expected(&is_wanted), "{statuses:?}");
        let filter = MessageFilter { campaign_id, ..filter };
        let is_of_campaign = |message: &Message| is_wanted(message) && message.campaign_id == campaign_id;
        assert_eq!(listed(store, workspace, filter).await, expected(&is_of_campaign), "{statuses:?}");
    }
    for channel in Channel::ALL {
        let filter = MessageFilter { channel: Some(channel), ..all.clone() };
        assert_eq!(listed(store, workspace, filter).await, expected(&|message| message.channel == channel));
    }
    let filter = MessageFilter { contact_id: special.contact_id, ..all.clone() };
    assert_eq!(listed(store, workspace, filter).await, expected(&|one| one.contact_id == special.contact_id));
    let filter = MessageFilter { campaign_id: special.campaign_id, ..all.clone() };
    assert_eq!(listed(store, workspace, filter).await, expected(&|one| one.campaign_id == special.campaign_id));
    let filter = MessageFilter { automation_id: special.automation_id, ..all.clone() };
    assert_eq!(listed(store, workspace, filter).await, expected(&|one| one.automation_id == special.automation_id));
    for tag in ["welcome", "de \"quoted\"", "welcome back", "bounced", "nothing has it"] {
        let filter = MessageFilter { tag: Some(tag.to_owned()), ..all.clone() };
        let has_tag = |message: &Message| message.tags.iter().any(|held| held == tag);
        assert_eq!(listed(store, workspace, filter).await, expected(&has_tag), "{tag}");
    }
}

/// A listing is narrowed to an address in any spelling, a template, and a time span without its end.
pub async fn listing_is_narrowed_to_recipient_template_and_time(store: &dyn Store) {
    let workspace = id();
    let at = |millis: i64, low: u8| {
        let mut bytes = [low; 16];
        bytes[..6].copy_from_slice(&(1_769_850_900_000 + millis).to_be_bytes()[2..]);
        MessageId::from_bytes(bytes)
    };
    let time = |millis: i64| Timestamp::from_millis(1_769_850_900_000 + millis);
    let template = Some(id());
    let one = Message { id: at(0, 1), to: "Ann@Example.org".to_owned(), ..message(workspace) };
    let two = Message { id: at(10, 0), to: "bob@example.org".to_owned(), template_id: template, ..message(workspace) };
    let three =
        Message { id: at(10, 9), to: "ann@example.org".to_owned(), template_id: template, ..message(workspace) };
    put(store, [&one, &two, &three].map(insert)).await;
    let all = MessageFilter::default();
    let to = MessageFilter { to: Some("ANN@example.ORG".to_owned()), ..all.clone() };
    assert_eq!(listed(store, workspace, to.clone()).await, [three.id, one.id]);
    let by_template = MessageFilter { template_id: template, ..all.clone() };
    assert_eq!(listed(store, workspace, by_template).await, [three.id, two.id]);
    for (since, until, expected) in [
        (Some(0), None, &[&three, &two, &one][..]),
        (Some(1), None, &[&three, &two]),
        (Some(10), Some(11), &[&three, &two]),
        (None, Some(10), &[&one]),
        (Some(11), None, &[]),
        (None, Some(0), &[]),
        (Some(10), Some(10), &[]),
    ] {
        let filter = MessageFilter { since: since.map(time), until: until.map(time), ..all.clone() };
        let expected: Vec<_> = expected.iter().map(|message| message.id).collect();
        assert_eq!(listed(store, workspace, filter).await, expected, "{since:?} {until:?}");
    }
    let lately = MessageFilter { since: Some(time(5)), ..to };
    assert_eq!(listed(store, workspace, lately).await, [three.id]);
}

/// Several filters return the messages that match all of them.
pub async fn filters_combine(store: &dyn Store) {
    let workspace = id();
    let one = message(workspace);
    let relative = |status, channel| Message {
        status,
        channel,
        contact_id: one.contact_id,
        campaign_id: one.campaign_id,
        ..message(workspace)
    };
    let bounced_email = relative(MessageStatus::Bounced, Channel::Email);
    let bounced_sms = relative(MessageStatus::Bounced, Channel::Sms);
    let sent_email = relative(MessageStatus::Sent, Channel::Email);
    put(store, [&one, &bounced_email, &bounced_sms, &sent_email].map(insert)).await;

    let bounced = MessageFilter {
        campaign_id: one.campaign_id,
        statuses: vec![MessageStatus::Bounced],
        ..MessageFilter::default()
    };
    assert_eq!(listed(store, workspace, bounced.clone()).await, [bounced_sms.id, bounced_email.id]);
    let by_email = MessageFilter { channel: Some(Channel::Email), ..bounced.clone() };
    assert_eq!(listed(store, workspace, by_email.clone()).await, [bounced_email.id]);
    let of_contact = MessageFilter { contact_id: one.contact_id, tag: Some("welcome".to_owned()), ..by_email };
    assert_eq!(listed(store, workspace, of_contact.clone()).await, [bounced_email.id]);
    let of_nobody = MessageFilter { contact_id: Some(id()), ..of_contact };
    assert_eq!(listed(store, workspace, of_nobody).await, []);
    let in_automation = MessageFilter { automation_id: one.automation_id, ..bounced };
    assert_eq!(listed(store, workspace, in_automation).await, []);
}

/// Pages neither skip nor repeat, filtered or not.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let model = message(workspace);
    let new =
        || Message { id: id(), status: MessageStatus::Bounced, campaign_id: model.campaign_id, ..message(workspace) };
    let all = MessageFilter::default();
    let filters = [
        all.clone(),
        MessageFilter { statuses: vec![MessageStatus::Bounced], ..all.clone() },
        MessageFilter { statuses: vec![MessageStatus::Bounced, MessageStatus::Failed], ..all.clone() },
        MessageFilter { campaign_id: model.campaign_id, ..all.clone() },
        MessageFilter { tag: Some("welcome".to_owned()), ..all },
    ];
    for filter in filters {
        put(store, [insert(&new()), insert(&new()), insert(&new())]).await;
        let expected = store.messages(workspace, &filter, first(100)).await.unwrap();
        assert_eq!(expected.next, None);
        let add_more = async || put(store, [insert(&new())]).await;
        let listed = all_pages(2, async |page| store.messages(workspace, &filter, page).await, add_more).await;
        assert_eq!(listed, expected.items, "{filter:?}");
    }
}

/// A message, its content and its events belong to their workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (message(id()), id());
    put(store, [insert(&mine), Write::AppendEvent(Box::new(event(&mine, EventKind::Sent, 1)))]).await;
    assert_eq!(store.message(other, mine.id).await.unwrap(), None);
    assert_eq!(store.message_with_content(other, mine.id).await.unwrap(), None);
    assert_eq!(store.message_events(other, mine.id, 10).await.unwrap(), []);
    let all = MessageFilter::default();
    let filters = [
        all.clone(),
        MessageFilter { contact_id: mine.contact_id, ..all.clone() },
        MessageFilter { campaign_id: mine.campaign_id, ..all.clone() },
        MessageFilter { automation_id: mine.automation_id, ..all },
    ];
    for filter in filters {
        assert_eq!(listed(store, other, filter).await, []);
    }
    let stolen = Message { workspace_id: other, ..mine.clone() };
    refuse(store, [change(&stolen, 1, MessageStatus::Sending)]).await;
    assert_eq!(store.message(mine.workspace_id, mine.id).await.unwrap(), Some(mine));
}
