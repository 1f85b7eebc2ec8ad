//! The records that the database of every release holds.
//!
//! A member that is new since a release has here the value that its rows are read with.

use std::path::Path;

use messaging_conformance::{put, sample};
use messaging_core::changes::{Expect, PutAutomation, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::audience::suppression::Suppression;
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::note::{EntrySubscription, EventSubscription};
use messaging_core::domain::campaign::{Audience, Campaign, CampaignPlan};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageStatus};
use messaging_core::domain::security::account::{Member, User, Workspace};
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::Id;
use messaging_core::ports::Store;
use messaging_core::scope::Role;
use serde_json::json;

/// The content of the message.
const CONTENT: &str = r#"{"channel":"email","to":"grete@example.org","subject":"Grüße"}"#;

/// An id that does not depend on what else ran.
fn fixed<I: Id>(number: u8) -> I {
    I::from_bytes([number; 16])
}

/// One record of each of the main aggregates.
pub(super) struct Records {
    workspace: Workspace,
    user: User,
    member: Member,
    key: ApiKey,
    template: Template,
    list: ContactList,
    contact: Contact,
    message: Message,
    event: MessageEvent,
    campaign: Campaign,
    automation: Automation,
    webhook: Webhook,
    suppression: Suppression,
}

impl Records {
    pub(super) fn new() -> Self {
        // The first release had no log of requests to be set, and no second factors.
        let workspace = Workspace {
            id: fixed(1),
            request_log: RequestLog::default(),
            require_second_factor: false,
            ..sample::workspace()
        };
        let home = workspace.id;
        let user = User { id: fixed(2), email: "ada@example.org".to_owned(), second_factor: false, ..sample::user() };
        let contact = Contact {
            id: fixed(6),
            external_id: Some("user «6»".to_owned()),
            email: Some("grete@example.org".to_owned()),
            phone: Some("+37120000006".to_owned()),
            ..sample::contact(home)
        };
        let automation = Automation { id: fixed(10), ..sample::automation(home) };
        let template = Template { id: fixed(4), ..sample::template(home, Channel::Email) };
        let list = ContactList { id: fixed(5), ..sample::contact_list(home) };
        let campaign = sample::campaign(home);
        let audience =
            Audience { list_ids: vec![list.id], segment_ids: vec![fixed(13)], exclude_list_ids: vec![fixed(14)] };
        let plan = CampaignPlan { template_id: template.id, audience, ..campaign.plan };
        let campaign = Campaign { id: fixed(9), plan, ..campaign };
        let message = Message {
            id: fixed(7),
            status: MessageStatus::Delivered,
            contact_id: Some(contact.id),
            campaign_id: Some(campaign.id),
            automation_id: Some(automation.id),
            template_id: Some(template.id),
            ..sample::message(home)
        };
        Self {
            member: sample::member(home, user.id, Role::Owner),
            // The first release had no rotations and no warnings.
            key: ApiKey {
                id: fixed(3),
                prefix: "mk_live_3".to_owned(),
                rotated_from: None,
                replaced_by: None,
                warned_days: None,
                ..sample::key(home)
            },
            event: MessageEvent { id: fixed(8), ..sample::event(&message, EventKind::Delivered, 25) },
            webhook: Webhook { id: fixed(11), ..sample::webhook(home) },
            suppression: Suppression { id: fixed(12), ..sample::suppression(home, Channel::Email, "no@example.org") },
            workspace,
            user,
            template,
            list,
            contact,
            message,
            campaign,
            automation,
        }
    }

    /// Stores them, each counted by one commit.
    pub(super) async fn put_into(self, store: &dyn Store) {
        let (home, list, contact) = (self.workspace.id, self.list.id, self.contact.id);
        let automation = PutAutomation {
            automation: self.automation,
            subscription: EventSubscription {
                entry: Some(EntrySubscription::EventWhere(
                    "cart_updated".to_owned(),
                    vec![json!({"property": "total", "op": "gte", "value": 50})],
                )),
                ..EventSubscription::default()
            },
            lanes: Vec::new(),
            holds: Vec::new(),
        };
        put(
            store,
            [
                Write::put(self.workspace, Expect::Absent),
                Write::put(self.user, Expect::Absent),
                Write::put(self.member, Expect::Absent),
                Write::put(self.key, Expect::Absent),
                Write::put(Box::new(self.template), Expect::Absent),
                Write::put(self.list, Expect::Absent),
                Write::put_contact(self.contact, Expect::Absent),
                Write::put(Box::new(self.campaign), Expect::Absent),
                Write::PutAutomation(Box::new(automation), Expect::Absent),
                Write::put(Box::new(self.webhook), Expect::Absent),
                Write::PutSuppression(self.suppression, Expect::Absent),
            ],
        )
        .await;
        put(store, [Write::JoinList(home, list, contact, sample::at(19))]).await;
        put(store, [Write::InsertMessage(Box::new(self.message), sample::content(CONTENT))]).await;
        put(store, [Write::AppendEvent(Box::new(self.event))]).await;
    }

    /// Asserts that they are read back from a database, and that it takes further ones.
    pub(super) async fn assert_in(self, store: &dyn Store, file: &Path) {
        let file = file.display();
        let home = self.workspace.id;
        /// Compares what a call answers with a record.
        macro_rules! is {
            ($call:expr, $record:expr) => {
                assert_eq!($call.await.unwrap().map(|stored| stored.record), Some($record), "{file}");
            };
        }
        let listed = Contact { list_ids: vec![self.list.id], ..self.contact.clone() };
        is!(store.user(self.user.id), self.user);
        is!(store.member(home, self.member.user_id), self.member);
        is!(store.api_key(home, self.key.id), self.key);
        is!(store.template(home, self.template.id), self.template);
        is!(store.list(home, self.list.id), ContactList { contact_count: 1, ..self.list });
        is!(store.contact(home, self.contact.id), listed);
        is!(store.campaign(home, self.campaign.id), self.campaign);
        is!(store.automation(home, self.automation.id), self.automation);
        is!(store.webhook(home, self.webhook.id), self.webhook);
        is!(store.workspace(home), self.workspace);
        let suppressed =
            store.suppressed(home, Channel::Email, std::slice::from_ref(&self.suppression.address)).await.unwrap();
        let suppressed: Vec<_> = suppressed.into_iter().map(|stored| stored.record).collect();
        assert_eq!(suppressed, std::slice::from_ref(&self.suppression), "{file}");
        is!(store.suppression(home, self.suppression.id), self.suppression);
        let found = store.message_with_content(home, self.message.id).await.unwrap();
        let events = store.message_events(home, self.message.id, 10).await.unwrap();
        assert_eq!(found, Some((self.message, Some(sample::content(CONTENT)))), "{file}");
        assert_eq!(events, [self.event], "{file}");

        let other = sample::contact(home);
        put(store, [Write::put_contact(other.clone(), Expect::Absent)]).await;
        is!(store.contact(home, other.id), other);
        assert_eq!(store.contact_count(home).await.unwrap(), 2, "{file}");
    }
}
