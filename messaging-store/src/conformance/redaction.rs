//! Messages of merged and erased contacts.

use messaging_core::changes::{AttributeMessage, RedactMessage, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::ports::store::{PageRequest, Store};

use super::attempts::attempt;
use super::sample::{at, bare_message, capture, event, id, insert, message, object};
use super::{all_pages, first, put, refuse};

fn redaction(message: &Message) -> RedactMessage {
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
