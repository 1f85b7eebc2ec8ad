//! Concurrent actions of a reader and of the workspace: the result is that of the reader's later action, and status,
//! membership, count and consent agree.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::{Message, MessageContent, MessageStatus};
use messaging_core::ids::ListId;
use messaging_engine::App;
use messaging_engine::services::preferences::Preferences;

use super::*;
use crate::bed::{self, Call};
use crate::imports::{announcement, upload};
use crate::mortal::MortalStore;

/// More reads than one action makes.
const MAX_READS: usize = 60;

/// An action on one contact and list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// The reader presses the button of the confirmation.
    Confirm,
    /// The reader leaves the list.
    Leave,
    /// The reader unsubscribes from everything.
    LeaveAll,
    /// The reader chooses the list on the page of preferences.
    Choose,
    /// Somebody posts the address to a form.
    Post,
    /// The workspace adds the contact to the list.
    Add,
    /// The workspace takes the contact off the list.
    Remove,
    /// The workspace upserts the contact, with the list.
    Upsert,
    /// The workspace upserts the contact among many, with the list.
    Bulk,
    /// Another contact is merged into the contact.
    Merge,
    /// The contact is merged into another one.
    MergedAway,
}

/// A workspace with a list that is changed concurrently.
struct Track {
    readers: Readers,
    campaign: CampaignId,
    list: ListId,
    form: FormPage,
}

/// A contact, another one of the same person, and the mails to the first.
struct Racer {
    contact: ContactId,
    twin: ContactId,
    email: String,
    campaign_mail: MessageId,
    confirmation: MessageId,
}

impl Track {
    async fn start() -> Self {
        let readers = Readers::undurable("single").await;
        let body =
            json!({"email": "seed@example.com", "consent": {"marketing_email": true}, "list_ids": [readers.list]});
        readers.contact(body).await;
        let campaign = readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
        readers.work().await;
        assert_eq!(readers.mails().len(), 1);
        let list = readers.list.parse().unwrap();
        let form = readers.form(json!({})).await;
        Self { readers, campaign, list, form }
    }

    /// A contact with this status on the list.
    async fn racer(&self, name: &str, status: Option<SubscriptionStatus>) -> Racer {
        let consent = json!({"marketing_email": true});
        let email = format!("{name}@example.com");
        let contact: ContactId =
            self.readers.contact(json!({"email": email, "consent": consent})).await.parse().unwrap();
        let body = json!({"email": format!("twin-{name}@example.com"), "consent": consent, "list_ids": [self.list]});
        let twin = self.readers.contact(body).await.parse().unwrap();
        let (workspace, now) = (self.readers.workspace, self.readers.app.now());
        let mail = |campaign_id| Message {
            status: MessageStatus::Delivered,
            contact_id: Some(contact),
            campaign_id,
            ..Message::queued(self.readers.app.new_id(now), workspace, Channel::Email, email.clone(), now)
        };
        let (campaign_mail, confirmation) = (mail(Some(self.campaign)), mail(None));
        let ids = (campaign_mail.id, confirmation.id);
        let mut writes: Vec<_> = [campaign_mail, confirmation]
            .into_iter()
            .map(|mail| Write::InsertMessage(Box::new(mail), MessageContent { request: "{}".into() }))
            .collect();
        if let Some(status) = status {
            let proof = Proof::of_reader(SubscriptionAct::Form, now, None, None);
            let new = Subscription::new((workspace, self.list, contact), status, proof);
            writes.push(Write::PutSubscription(Box::new(Subscription { asked: vec![now], ..new }), Expect::Absent));
        }
        if status == Some(SubscriptionStatus::Confirmed) {
            writes.push(Write::JoinList(workspace, self.list, contact, now));
        }
        self.readers.commit(writes.into_iter().collect()).await;
        Racer { contact, twin, email, campaign_mail: ids.0, confirmation: ids.1 }
    }

    async fn call(&self, app: &App, method: http::Method, path: &str, body: Value) -> String {
        let target = self.readers.at(path);
        bed::send(app, Call::new(&self.readers.caller, method, &target).body(&body)).await.summary()
    }

    /// Carries out an action in a process.
    async fn act(&self, app: &App, act: Act, racer: &Racer) {
        let (workspace, list, contact) = (self.readers.workspace, self.list, racer.contact);
        let named = json!({"email": racer.email, "list_ids": [list]});
        let leave = async |scope| {
            let scope = (UnsubscribeMethod::Link, scope);
            app.unsubscribe_from(workspace, racer.campaign_mail, scope, &reader()).await.unwrap();
        };
        let merge = async |primary: ContactId, duplicate: ContactId| {
            let body = json!({"primary_id": primary, "duplicate_id": duplicate});
            assert_eq!(self.call(app, http::Method::POST, "contacts/merge", body).await, "200");
        };
        match act {
            Act::Confirm => {
                app.confirm_subscription(workspace, racer.confirmation, &reader()).await.unwrap();
            }
            Act::Leave => leave(UnsubscribeScope::OfMessage).await,
            Act::LeaveAll => leave(UnsubscribeScope::Everything).await,
            Act::Choose => {
                let preferences = Preferences { shown: vec![list], wanted: vec![list], ..Preferences::default() };
                app.set_preferences(workspace, racer.campaign_mail, &preferences, &reader()).await.unwrap();
            }
            Act::Post => {
                let answers = vec![("email".to_owned(), racer.email.clone())];
                let post = FormPost { answers, ..FormPost::default() };
                // Each round has a caller of its own, so that none posts too often.
                let octets = racer.contact.to_string().bytes().rev().take(3).collect::<Vec<_>>();
                let from = std::net::IpAddr::from([10, octets[0], octets[1], octets[2]]);
                let reader = Reader { ip: Some(from), user_agent: None };
                assert!(matches!(app.post_to_form(&self.form, &post, &reader).await.unwrap(), Posted::Taken));
            }
            Act::Add => {
                let path = format!("lists/{list}/contacts");
                self.call(app, http::Method::POST, &path, json!({"contact_ids": [contact]})).await;
            }
            Act::Remove => {
                let path = format!("lists/{list}/contacts/{contact}");
                assert_eq!(self.call(app, http::Method::DELETE, &path, Value::Null).await, "204");
            }
            Act::Upsert => drop(self.call(app, http::Method::POST, "contacts", named).await),
            Act::Bulk => {
                let body = json!({"contacts": [named]});
                assert_eq!(self.call(app, http::Method::POST, "contacts/bulk", body).await, "200");
            }
            Act::Merge => merge(contact, racer.twin).await,
            Act::MergedAway => merge(racer.twin, contact).await,
        }
    }

    /// The state of a contact on the list: its status, `+` for a member, and differences of its consent and address
    /// from a contact who gave consent.
    async fn standing(&self, contact: ContactId) -> String {
        let (store, workspace) = (&self.readers.store, self.readers.workspace);
        let records = store.subscriptions_of(workspace, contact, 10).await.unwrap();
        let status = match records.first().map(|stored| stored.record.status) {
            None => "-",
            Some(SubscriptionStatus::Unconfirmed) => "unconfirmed",
            Some(SubscriptionStatus::Confirmed) => "confirmed",
            Some(SubscriptionStatus::Left) => "left",
        };
        let is_member = store.memberships(workspace, self.list, &[contact]).await.unwrap()[0].1;
        let known = store.contact(workspace, contact).await.unwrap().unwrap().record;
        assert_eq!(known.list_ids.contains(&self.list), is_member);
        let address = [known.email.unwrap()];
        let is_listed = !store.suppressed(workspace, Channel::Email, &address).await.unwrap().is_empty();
        let agrees = match (known.consent.marketing_email, is_listed) {
            (Some(true), false) => String::new(),
            (Some(false), true) => " withdrawn".to_owned(),
            other => format!(" torn {other:?}"),
        };
        format!("{status}{}{agrees}", if is_member { "+" } else { "" })
    }

    /// Returns true if the member count of the list is right.
    async fn counts_well(&self) -> bool {
        let (mut members, mut cursor) = (0, String::new());
        loop {
            let path = self.readers.at(&format!("lists/{}/contacts?limit=200{cursor}", self.list));
            let page = self.readers.get(&self.readers.caller, &path).await;
            members += page["data"].as_array().unwrap().len();
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return self.readers.count().await == members,
            }
        }
    }
}

/// Stops one process before each of the reads of an action, in turn, while another process does something else: the
/// stopped action is the later one. `expected` are the allowed states.
async fn check(track: &Track, status: Option<SubscriptionStatus>, [act, meanwhile]: [Act; 2], expected: &[&str]) {
    let mut stops = 0;
    for reads in 0..MAX_READS {
        let store = MortalStore::immortal(track.readers.store.clone());
        let app = track.readers.another_process_on(store.clone());
        let name = format!("{act:?}-{meanwhile:?}-{status:?}-{reads}").to_lowercase();
        let racer = track.racer(&name.replace(['(', ')'], "-"), status).await;
        store.pause_after_reads(reads);
        let acting = track.act(&app, act, &racer);
        tokio::pin!(acting);
        let has_stopped = tokio::select! {
            biased;
            () = store.died() => true,
            () = &mut acting => false,
        };
        if !has_stopped {
            break;
        }
        stops += 1;
        track.act(&track.readers.app, meanwhile, &racer).await;
        store.go_on();
        acting.await;
        let is_away = [act, meanwhile].contains(&Act::MergedAway);
        let standing = track.standing(if is_away { racer.twin } else { racer.contact }).await;
        let place = format!("{act:?} stops before read {reads}, {meanwhile:?} meanwhile, from {status:?}");
        assert!(expected.contains(&standing.as_str()), "{place}: {standing}");
    }
    assert!((1..MAX_READS).contains(&stops), "{act:?} has {stops} reads");
    assert!(track.counts_well().await, "{act:?} {meanwhile:?}");
}

const NOBODY: Option<SubscriptionStatus> = None;
const ASKED: Option<SubscriptionStatus> = Some(SubscriptionStatus::Unconfirmed);
const MEMBER: Option<SubscriptionStatus> = Some(SubscriptionStatus::Confirmed);
const GONE: Option<SubscriptionStatus> = Some(SubscriptionStatus::Left);

/// A status, an action with one that is done while it stops, and the allowed states.
type Case = (Option<SubscriptionStatus>, [Act; 2], &'static [&'static str]);

const CASES: &[Case] = &[
    (ASKED, [Act::Confirm, Act::Leave], &["confirmed+"]),
    (ASKED, [Act::Confirm, Act::LeaveAll], &["confirmed+"]),
    (ASKED, [Act::Leave, Act::Confirm], &["left"]),
    (ASKED, [Act::LeaveAll, Act::Confirm], &["left withdrawn"]),
    (GONE, [Act::Choose, Act::LeaveAll], &["confirmed+"]),
    (GONE, [Act::LeaveAll, Act::Choose], &["left withdrawn"]),
    (NOBODY, [Act::Choose, Act::LeaveAll], &["confirmed+"]),
    (NOBODY, [Act::LeaveAll, Act::Choose], &["left withdrawn"]),
    (NOBODY, [Act::LeaveAll, Act::Post], &["left withdrawn"]),
    (ASKED, [Act::Leave, Act::Choose], &["left"]),
    // A form proves nothing: a contact who withdrew is asked, one who left stays so until the link is followed.
    (NOBODY, [Act::Post, Act::LeaveAll], &["unconfirmed withdrawn"]),
    (MEMBER, [Act::Post, Act::Leave], &["left"]),
    (MEMBER, [Act::Post, Act::LeaveAll], &["left withdrawn"]),
    // A member who confirms again has done nothing, if that was seen before the other action.
    (MEMBER, [Act::Confirm, Act::Leave], &["confirmed+", "left"]),
    (MEMBER, [Act::Confirm, Act::LeaveAll], &["confirmed+", "left withdrawn"]),
    (MEMBER, [Act::Choose, Act::LeaveAll], &["confirmed+", "left withdrawn"]),
    (MEMBER, [Act::Leave, Act::Confirm], &["left"]),
    (MEMBER, [Act::LeaveAll, Act::Leave], &["left withdrawn"]),
    (MEMBER, [Act::Leave, Act::LeaveAll], &["left withdrawn"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn of_two_acts_of_a_reader_the_later_one_holds() {
    let track = Track::start().await;
    for (status, acts, expected) in CASES {
        check(&track, *status, *acts, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_workspace_does_meanwhile_takes_nobody_back() {
    let track = Track::start().await;
    for status in [ASKED, MEMBER] {
        for act in [Act::Add, Act::Remove, Act::Upsert, Act::Bulk, Act::Merge, Act::MergedAway] {
            check(&track, status, [act, Act::Leave], &["left"]).await;
            check(&track, status, [Act::Leave, act], &["left"]).await;
        }
    }
    for act in [Act::Add, Act::Upsert, Act::Bulk, Act::Merge] {
        check(&track, ASKED, [act, Act::Confirm], &["confirmed+"]).await;
        check(&track, ASKED, [Act::Confirm, act], &["confirmed+"]).await;
        check(&track, ASKED, [act, Act::LeaveAll], &["left withdrawn"]).await;
        check(&track, ASKED, [Act::LeaveAll, act], &["left withdrawn"]).await;
    }
    // A contact that the workspace took off the list has nothing left to confirm.
    check(&track, ASKED, [Act::Remove, Act::Confirm], &["-"]).await;
    check(&track, ASKED, [Act::Confirm, Act::Remove], &["-"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_come_and_go_while_a_file_with_them_is_read() {
    const READERS: usize = 60;
    let track = Track::start().await;
    let mut racers = Vec::new();
    for n in 0..READERS {
        racers.push(track.racer(&format!("r{n}"), if n % 2 == 0 { ASKED } else { MEMBER }).await);
    }
    let rows: String = racers.iter().map(|one| format!("{},{}\n", one.email, track.list)).collect();
    let file = format!("email,list_ids\n{rows}");
    let readers = &track.readers;
    let imports = readers.at("contacts/import");
    let import = readers.post(&readers.caller, &imports, announcement(file.as_bytes(), json!({})));
    let import = import.await;
    assert_eq!(import.summary(), "200");
    upload(&readers.app, &import.body, file.as_bytes()).await.unwrap();
    let other = readers.another_process();
    let read = async { readers.work().await };
    // Half of them confirm and half of those leave again; the others leave, and some of them come back.
    let come_and_go = async |app: &App, part: usize| {
        for (n, racer) in racers.iter().enumerate().filter(|(n, _)| n % 3 == part) {
            let [first, second] = if n % 2 == 0 { [Act::Confirm, Act::Leave] } else { [Act::Leave, Act::Confirm] };
            track.act(app, first, racer).await;
            if n % 4 < 2 {
                track.act(app, second, racer).await;
            }
        }
    };
    let noise = async {
        for racer in &racers {
            track.act(&other, Act::Bulk, racer).await;
            track.act(&other, Act::Add, racer).await;
        }
    };
    tokio::join!(read, come_and_go(&readers.app, 0), come_and_go(&other, 1), come_and_go(&readers.app, 2), noise,);
    // A job that conflicted with another writer continues a little later.
    readers.work().await;
    readers.pass(MINUTE).await;
    let path = readers.at(&format!("contacts/imports/{}", import["import_id"].as_str().unwrap()));
    assert_eq!(readers.get(&readers.caller, &path).await["status"], "completed");
    for (n, racer) in racers.iter().enumerate() {
        let is_member = (n % 2 == 0) != (n % 4 < 2);
        let expected = if is_member { "confirmed+" } else { "left" };
        assert_eq!(track.standing(racer.contact).await, expected, "reader {n}");
    }
    assert!(track.counts_well().await);
}
