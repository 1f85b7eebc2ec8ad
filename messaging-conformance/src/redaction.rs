//! Messages of merged and erased contacts.

use messaging_core::changes::{AttributeMessage, Condition, EraseCopy, RedactMessage, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::ports::store::{PageRequest, Store};

use super::attempts::attempt;
use super::sample::{at, bare_message, capture, content, event, id, insert, message, object};
use super::{all_pages, first, put, refuse};

pub(super) fn redaction(message: &Message) -> RedactMessage {
    RedactMessage {
        workspace_id: message.workspace_id,
        message_id: message.id,
        revision: message.revision,
        status: message.status,
        updated_at: message.updated_at,
        tags: message.tags.clone(),
        events: Vec::new(),
    }
}

/// A message goes from one contact to another, unless it is another's by then.
pub async fn a_message_is_attributed_anew(store: &dyn Store) {
    let message = message(id());
    put(store, [insert(&message)]).await;
    let (from, to) = (message.contact_id.unwrap(), id());
    let attribute = |from, to| {
        Write::AttributeMessage(AttributeMessage {
            workspace_id: message.workspace_id,
            message_id: message.id,
            from,
            to,
        })
    };
    put(store, [attribute(from, to)]).await;
    put(store, [attribute(from, id())]).await;
    let found = store.message(message.workspace_id, message.id).await.unwrap();
    assert_eq!(found, Some(Message { contact_id: Some(to), ..message.clone() }));
    let filter = MessageFilter { contact_id: Some(to), ..MessageFilter::default() };
    assert_eq!(store.messages(message.workspace_id, &filter, first(10)).await.unwrap().items.len(), 1);
}

/// A redacted message keeps its state, its times and what is left of its events.
pub async fn a_redacted_message_names_nobody(store: &dyn Store) {
    for source in ["small", &"large ".repeat(20_000)] {
        let message = message(id());
        let (sent, bounced) = (event(&message, EventKind::Sent, 30), event(&message, EventKind::Bounce, 31));
        let append =
            |event: &messaging_core::domain::message::MessageEvent| Write::AppendEvent(Box::new(event.clone()));
        let captured = Write::PutCapture(Box::new(capture(&message, source.to_owned())));
        let attempted = Write::AppendAttempt(Box::new(attempt(message.workspace_id, message.id, 1, 0)));
        put(store, [insert(&message), append(&sent), append(&bounced), captured, attempted]).await;
        let left = object(&serde_json::json!({"code": 250}));
        let redaction = RedactMessage {
            status: MessageStatus::Cancelled,
            updated_at: at(77),
            tags: vec!["kept".to_owned()],
            events: vec![(bounced.at, bounced.id, left.clone())],
            ..redaction(&message)
        };
        put(store, [Write::RedactMessage(Box::new(redaction.clone()))]).await;
        let expected = Message {
            to: String::new(),
            contact_id: None,
            metadata: serde_json::Map::new(),
            tags: vec!["kept".to_owned()],
            hold: None,
            status: MessageStatus::Cancelled,
            updated_at: at(77),
            revision: 2,
            ..message.clone()
        };
        let found = store.message_with_content(message.workspace_id, message.id).await.unwrap();
        assert_eq!(found, Some((expected, None)));
        let events = store.message_events(message.workspace_id, message.id, 10).await.unwrap();
        assert_eq!(events[0], sent);
        assert_eq!((events[1].id, &events[1].meta), (bounced.id, &left));
        assert_eq!(store.capture(message.workspace_id, message.id).await.unwrap(), None);
        assert_eq!(store.attempts(message.workspace_id, message.id, first(10)).await.unwrap().items, []);
        let filter = MessageFilter { contact_id: message.contact_id, ..MessageFilter::default() };
        assert_eq!(store.messages(message.workspace_id, &filter, first(10)).await.unwrap().items, []);
        // The row has moved on.
        refuse(store, [Write::RedactMessage(Box::new(redaction))]).await;
    }
}

/// Messages are found by recipient, whatever its case, page after page.
pub async fn messages_are_found_by_recipient(store: &dyn Store) {
    let workspace = id();
    let to = |channel, to: &str| Message { channel, to: to.to_owned(), ..bare_message(workspace) };
    let mut expected = Vec::new();
    for n in 0..5 {
        let message = to(Channel::Email, if n % 2 == 0 { "Ann@Example.org" } else { "ann@example.org" });
        put(store, [insert(&message), insert(&to(Channel::Email, "bob@example.org"))]).await;
        put(store, [insert(&to(Channel::Viber, "+37120000000"))]).await;
        expected.insert(0, message);
    }
    let sms = to(Channel::Sms, "+37120000000");
    put(store, [insert(&sms)]).await;
    expected.insert(0, sms);
    let addresses = [(Channel::Email, "ann@example.org".to_owned()), (Channel::Sms, "+37120000000".to_owned())];
    let fetch = async |page: PageRequest| store.messages_to(workspace, &addresses, page).await;
    assert_eq!(all_pages(2, fetch, async || ()).await, expected);
    assert_eq!(store.messages_to(workspace, &[], first(10)).await.unwrap().items, []);
    assert_eq!(store.messages_to(id(), &addresses, first(10)).await.unwrap().items, []);
}

/// Messages are found by whom they copy, in their workspace, until that is forgotten.
pub async fn messages_are_found_by_whom_they_copy(store: &dyn Store) {
    let (workspace, other) = (id(), id());
    let (ann, bob) = (CopyKey([1; 16]), CopyKey([2; 16]));
    let mut copying = Vec::new();
    for n in 0..5 {
        let message = bare_message(workspace);
        let keys = if n == 0 { vec![ann] } else { vec![ann, bob, ann] };
        put(store, [insert(&message), Write::ListCopies(workspace, message.id, keys)]).await;
        copying.push(message.id);
    }
    let elsewhere = bare_message(other);
    put(store, [insert(&elsewhere), Write::ListCopies(other, elsewhere.id, vec![ann])]).await;
    let find = async |key, limit| {
        let mut found = store.messages_copying(workspace, key, limit).await.unwrap();
        found.sort_unstable();
        found
    };
    copying.sort_unstable();
    assert_eq!(find(ann, 10).await, copying);
    assert_eq!(find(ann, 2).await.len(), 2);
    assert_eq!(find(bob, 10).await.len(), 4);
    assert_eq!(find(CopyKey([3; 16]), 10).await, []);
    assert_eq!(store.messages_copying(other, ann, 10).await.unwrap(), [elsewhere.id]);
    for message in &copying {
        put(store, [Write::UnlistCopy(workspace, *message, ann), Write::UnlistCopy(workspace, *message, ann)]).await;
    }
    assert_eq!(find(ann, 10).await, []);
    assert_eq!(find(bob, 10).await.len(), 4);
    assert_eq!(store.messages_copying(other, ann, 10).await.unwrap(), [elsewhere.id]);
}

/// Taking a copy out changes what it says it changes, and nothing else.
pub async fn an_erased_copy_leaves_the_message(store: &dyn Store) {
    for (source, left_source) in [
        ("small", "less".to_owned()),
        (&"large ".repeat(20_000), "large".repeat(20_000)),
        (&"large ".repeat(20_000), "small".to_owned()),
    ] {
        let message = message(id());
        let (sent, bounced) = (event(&message, EventKind::Sent, 30), event(&message, EventKind::Bounce, 31));
        let first_attempt = attempt(message.workspace_id, message.id, 1, 0);
        let append =
            |event: &messaging_core::domain::message::MessageEvent| Write::AppendEvent(Box::new(event.clone()));
        let captured = capture(&message, source.to_owned());
        let writes = [
            insert(&message),
            append(&sent),
            append(&bounced),
            Write::PutCapture(Box::new(captured.clone())),
            Write::AppendAttempt(Box::new(first_attempt.clone())),
        ];
        put(store, writes).await;
        let left = object(&serde_json::json!({"code": 250}));
        let mut dialog = first_attempt.dialog.clone();
        dialog.transcript = vec!["> RCPT TO:<***>".to_owned()];
        let kept = messaging_core::domain::message::Capture { source: left_source.into(), ..captured };
        let erasure = EraseCopy {
            workspace_id: message.workspace_id,
            message_id: message.id,
            revision: message.revision,
            tags: vec!["kept".to_owned()],
            metadata: serde_json::Map::new(),
            content: Some(content("less")),
            events: vec![(bounced.at, bounced.id, left.clone())],
            attempts: vec![(first_attempt.id, dialog.clone())],
            capture: Some(kept.clone()),
        };
        put(store, [Write::EraseCopy(Box::new(erasure.clone()))]).await;
        let expected =
            Message { tags: vec!["kept".to_owned()], metadata: serde_json::Map::new(), revision: 2, ..message.clone() };
        let found = store.message_with_content(message.workspace_id, message.id).await.unwrap();
        assert_eq!(found, Some((expected, Some(content("less")))));
        let events = store.message_events(message.workspace_id, message.id, 10).await.unwrap();
        assert_eq!(events[0], sent);
        assert_eq!((events[1].id, &events[1].meta), (bounced.id, &left));
        let attempts = store.attempts(message.workspace_id, message.id, first(10)).await.unwrap().items;
        assert_eq!((attempts.len(), &attempts[0].dialog), (1, &dialog));
        assert_eq!(store.capture(message.workspace_id, message.id).await.unwrap(), Some(kept));
        // The row has moved on.
        refuse(store, [Write::EraseCopy(Box::new(erasure))]).await;
    }
}

/// A commit can depend on the revision of a message that it does not change.
pub async fn a_message_is_expected_at_its_revision(store: &dyn Store) {
    let message = bare_message(id());
    put(store, [insert(&message)]).await;
    let (workspace, revision) = (message.workspace_id, message.revision);
    put(store, [Write::Expect(Condition::Message(workspace, message.id, revision))]).await;
    put(store, [Write::Expect(Condition::Message(workspace, message.id, revision))]).await;
    refuse(store, [Write::Expect(Condition::Message(workspace, message.id, revision + 1))]).await;
    refuse(store, [Write::Expect(Condition::Message(id(), message.id, revision))]).await;
    refuse(store, [Write::Expect(Condition::Message(workspace, id(), revision))]).await;
}
