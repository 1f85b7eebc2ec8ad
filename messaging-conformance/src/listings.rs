//! Listings with any key to continue after: each returns rows of its own workspace and no others.
//!
//! Cursors are authenticated before they reach a store; a store does not rely on that.

use std::fmt::Debug;

use messaging_core::changes::{Engagement, Expect, Write};
use messaging_core::domain::audience::contact::erasure::Names;
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::audience::suppression::SuppressionFilter;
use messaging_core::domain::automation::run::RunStatus;
use messaging_core::domain::automation::{Automation, AutomationStatus};
use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::milestones::EngagementFlags;
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::domain::search::Search;
use messaging_core::domain::security::account::MemberStatus;
use messaging_core::domain::security::audit::AuditFilter;
use messaging_core::domain::security::request_log::RequestFilter;
use messaging_core::domain::segment::Segment;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::Webhook;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus, Subject};
use messaging_core::ids::{UserId, WorkspaceId};
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::ports::store::segments::MemberQuery;
use messaging_core::ports::store::{PageRequest, RunFilter, Slice, Store, StoreCursor, StoreError};
use messaging_core::scope::Role;

use super::sample::{
    self, at, automation, campaign, capture, contact, contact_list, custom_field, domain, event, id, import, insert,
    ip_pool, joined, key, member, message, product_event, run, segment, suppression, template, user, workspace,
};
use super::{
    attempts, audit_logs, automation_samples, campaigns, domain_reports, events, first, images, put, request_logs,
    segments, templates, webhooks,
};

/// More rows than a workspace has.
const ALL: usize = 100;

/// Recipient of the messages.
const RECIPIENT: &str = "grete@example.org";

/// Rows of every kind in one workspace, and the arguments of its listings.
#[derive(Debug)]
pub struct World {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its owner, who is a member of others too.
    pub user: UserId,
    /// Message with attempts and logged events.
    pub message: Message,
    /// Contact with product events.
    pub contact: Contact,
    /// List with members.
    pub list: ContactList,
    /// Segment with members.
    pub segment: Segment,
    /// Template with two versions.
    pub template: Template,
    /// Webhook with deliveries.
    pub webhook: Webhook,
    /// Sending domain of the workspace.
    pub domain: SendingDomain,
    /// The campaign of the messages.
    pub campaign: Campaign,
    /// Automation with runs.
    pub automation: Automation,
}

/// A part of a listing: the name of the listing, its items as text, and the key after which the rest begins.
struct Listed {
    listing: &'static str,
    items: Vec<String>,
    next: Option<StoreCursor>,
}

impl World {
    /// Creates a workspace in which every listing has at least two items.
    pub async fn populate(store: &dyn Store) -> Self {
        let own = workspace();
        let home = own.id;
        let person = user();
        let (campaign, automation) = (campaign(home), automation(home));
        let message = Message { to: RECIPIENT.to_owned(), campaign_id: Some(campaign.id), ..message(home) };
        let (contact, list) = (contact(home), contact_list(home));
        let (segment, template, webhook) = (segment(home), template(home, Channel::Email), sample::webhook(home));
        let domain = domain(home, "acme.example");
        put(
            store,
            [
                Write::put(domain.clone(), Expect::Absent),
                campaigns::create(&campaign),
                automation_samples::create(&automation),
                Write::put(own, Expect::Absent),
                Write::put(person.clone(), Expect::Absent),
                Write::put(member(home, person.id, Role::Owner), Expect::Absent),
                insert(&message),
                Write::put_contact(contact.clone(), Expect::Absent),
                Write::put(list.clone(), Expect::Absent),
                Write::PutSegment(Box::new(segment.clone()), Expect::Absent),
                Write::put(Box::new(template.clone()), Expect::Absent),
                Write::put(Box::new(templates::next(&template, "Second")), Expect::Revision(1)),
                Write::put(Box::new(webhook.clone()), Expect::Absent),
                Write::JoinList(home, list.id, contact.id, at(0)),
            ],
        )
        .await;
        let world = Self {
            workspace: home,
            user: person.id,
            message,
            contact,
            list,
            segment,
            template,
            webhook,
            domain,
            campaign,
            automation,
        };
        for n in 0..2 {
            put(store, world.more(n)).await;
        }
        let query = MemberQuery { filter: Filter::Everyone, now: at(0), zone: jiff::tz::TimeZone::UTC };
        segments::keeping::calculate(store, home, world.segment.id, &query).await;
        world
    }

    /// Writes of one more row of every kind.
    fn more(&self, n: u32) -> Vec<Write> {
        let home = self.workspace;
        let (_, _, [another, membership]) = joined(home, Role::Viewer);
        let elsewhere = workspace();
        let joining = Write::put(member(elsewhere.id, self.user, Role::Viewer), Expect::Absent);
        let other = Contact { tags: self.contact.tags.clone(), ..contact(home) };
        let sent = Message {
            contact_id: self.message.contact_id,
            campaign_id: self.message.campaign_id,
            automation_id: self.message.automation_id,
            status: MessageStatus::Sent,
            to: RECIPIENT.to_owned(),
            ..message(home)
        };
        let ended = Message { id: id(), status: MessageStatus::Bounced, ..sent.clone() };
        let opened = Engagement {
            workspace_id: home,
            campaign_id: self.campaign.id,
            seen: EngagementFlags::OPENED,
            message_id: sent.id,
            at: at(1),
        };
        let delivery = webhooks::delivery(home, self.webhook.id, 1);
        let failed = webhooks::full(home, self.webhook.id);
        let subject = Subject::Event { message_id: self.message.id, at: at(1) };
        let told = Delivery { subject, ..webhooks::delivery(home, self.webhook.id, 1) };
        let mut writes = vec![
            another,
            membership,
            Write::put(elsewhere, Expect::Absent),
            joining,
            Write::put(key(home), Expect::Absent),
            insert(&sent),
            insert(&ended),
            Write::NoteEngagement(opened),
            campaigns::create(&campaign(home)),
            automation_samples::create(&automation(home)),
            automation_samples::put_run(&run(&self.automation, &self.contact), Expect::Absent),
            Write::AppendAttempt(Box::new(attempts::attempt(home, self.message.id, n + 1, 0))),
            Write::PutCapture(Box::new(capture(&sent, "source"))),
            Write::put_contact(other.clone(), Expect::Absent),
            Write::JoinList(home, self.list.id, other.id, at(0)),
            Write::AppendProductEvents(vec![product_event(&self.contact, "order_placed")]),
            Write::put(Box::new(import(home)), Expect::Absent),
            Write::put(contact_list(home), Expect::Absent),
            Write::put(custom_field(home, &format!("field{n}")), Expect::Absent),
            Write::put(ip_pool(Some(home), &format!("pool{n}")), Expect::Absent),
            images::add(&images::image(home, n.to_string().as_bytes()), n.to_string().as_bytes()),
            Write::PutSegment(Box::new(segment(home)), Expect::Absent),
            Write::PutSuppression(suppression(home, Channel::Email, &format!("{n}@example.org")), Expect::Absent),
            Write::put(Box::new(template(home, Channel::Email)), Expect::Absent),
            Write::put(domain(home, &format!("{n}.example.org")), Expect::Absent),
            Write::put(Box::new(sample::webhook(home)), Expect::Absent),
            webhooks::insert(&delivery),
            webhooks::insert(&failed),
            webhooks::insert(&told),
            Write::PutUrl(home, format!("https://acme.example/{home}/{n}?m=ann@example.com")),
        ];
        let tls_report = domain_reports::tls_report(home, self.domain.id, i64::from(n));
        writes.push(domain_reports::keep(&tls_report));
        writes.push(audit_logs::record(Some(home), &audit_logs::entry(i64::from(n))));
        writes.push(request_logs::log(&request_logs::request(home)));
        writes.extend(events::logged(&event(&self.message, EventKind::Sent, 50)));
        writes
    }

    /// Reads every listing with the same page request.
    async fn listings(&self, store: &dyn Store, page: PageRequest) -> Vec<Listed> {
        let home = self.workspace;
        let contacts =
            async |listing, filter: ContactFilter| listed(listing, store.contacts(home, &filter, page).await);
        let messages =
            async |listing, filter: MessageFilter| listed(listing, store.messages(home, &filter, page).await);
        let suppressions =
            async |listing, filter: SuppressionFilter| listed(listing, store.suppressions(home, &filter, page).await);
        let deliveries =
            async |listing, status| listed(listing, store.deliveries(home, self.webhook.id, status, page).await);
        let (of_contact, of_message) = (ContactFilter::default, MessageFilter::default);
        let names = Names::new(["ann@example.com".to_owned()]);
        let recipient = [(Channel::Email, RECIPIENT.to_owned())];
        let of_campaign = async |listing, wanted| {
            listed(listing, store.campaign_messages(home, self.campaign.id, wanted, page).await)
        };
        let runs = async |listing, filter: RunFilter| {
            listed(listing, store.runs(home, self.automation.id, &filter, page).await)
        };
        let logged = store.events_after(home, page.after, page.limit).await.unwrap();
        vec![
            listed("workspaces of a user", store.workspaces_of(self.user, MemberStatus::Active, page).await),
            listed("members", store.members(home, page).await),
            listed("api keys", store.api_keys(home, page).await),
            listed("attempts", store.attempts(home, self.message.id, page).await),
            contacts("contacts", of_contact()).await,
            contacts("contacts updated since", ContactFilter { updated_since: Some(at(0)), ..of_contact() }).await,
            contacts("contacts with a tag", ContactFilter { tag: self.contact.tags.first().cloned(), ..of_contact() })
                .await,
            contacts("contacts of a list", ContactFilter { list_id: Some(self.list.id), ..of_contact() }).await,
            contacts("contacts of a segment", ContactFilter { segment_id: Some(self.segment.id), ..of_contact() })
                .await,
            listed("members of a segment", store.segment_contacts(home, self.segment.id, page).await),
            listed("custom fields", store.custom_fields(home, page).await),
            listed("imports", store.imports(home, page).await),
            listed("lists", store.lists(home, page).await),
            messages("messages", of_message()).await,
            messages("messages of a contact", MessageFilter { contact_id: self.message.contact_id, ..of_message() })
                .await,
            messages("messages of a campaign", MessageFilter { campaign_id: self.message.campaign_id, ..of_message() })
                .await,
            messages(
                "messages of an automation",
                MessageFilter { automation_id: self.message.automation_id, ..of_message() },
            )
            .await,
            messages("messages in a state", MessageFilter { statuses: vec![MessageStatus::Sent], ..of_message() })
                .await,
            of_campaign("all messages of a campaign", CampaignMessageFilter::All).await,
            of_campaign("messages of a campaign that went well", CampaignMessageFilter::Statuses(1 << 2)).await,
            of_campaign("messages of a campaign with a bad end", CampaignMessageFilter::Statuses(1 << 5)).await,
            of_campaign(
                "messages of a campaign that were opened",
                CampaignMessageFilter::Engaged(EngagementFlags::OPENED),
            )
            .await,
            listed("campaigns", store.campaigns(home, None, page).await),
            listed("drafts of campaigns", store.campaigns(home, Some(CampaignStatus::Draft), page).await),
            listed("automations", store.automations(home, None, page).await),
            listed("active automations", store.automations(home, Some(AutomationStatus::Active), page).await),
            runs("runs", RunFilter::default()).await,
            runs("runs of a contact", RunFilter { contact_id: Some(self.contact.id), ..RunFilter::default() }).await,
            runs("runs in a state", RunFilter { status: Some(RunStatus::Waiting), ..RunFilter::default() }).await,
            listed("messages to somebody", store.messages_to(home, &recipient, page).await),
            listed("product events", store.product_events(home, self.contact.id, page).await),
            listed("captures", store.captures(home, page).await),
            listed("segments", store.segments(home, page).await),
            listed("domains", store.domains(home, page).await),
            listed("IP pools", store.ip_pools(home, page).await),
            listed("audit log", store.audit_entries(Some(home), &AuditFilter::default(), page).await),
            listed("logged requests", store.logged_requests(home, &RequestFilter::default(), page).await),
            listed("images", store.images(home, page).await),
            contacts(
                "contacts with a text",
                ContactFilter { search: Some(Search::new("example", true)), ..of_contact() },
            )
            .await,
            messages(
                "messages with a text",
                MessageFilter { search: Some(Search::new("msg_", false)), ..of_message() },
            )
            .await,
            listed("rows of TLS reports", store.tls_rows(home, self.domain.id, page).await),
            suppressions("suppressions", SuppressionFilter::default()).await,
            listed("templates", store.templates(home, None, page).await),
            listed("templates of a channel", store.templates(home, Some(Channel::Email), page).await),
            listed("versions of a template", store.template_versions(home, self.template.id, page).await),
            listed("webhooks", store.webhooks(home, page).await),
            listed("deliveries of a message", store.deliveries_of_message(home, self.message.id, page).await),
            deliveries("deliveries", None).await,
            deliveries("pending deliveries", Some(DeliveryStatus::Pending)).await,
            deliveries("failed deliveries", Some(DeliveryStatus::Failed)).await,
            listed("urls that name somebody", store.urls_naming(home, &names, page).await),
            Listed {
                listing: "event log",
                next: logged.last().map(|(position, _, _)| *position),
                items: logged.iter().map(|entry| format!("{entry:?}")).collect(),
            },
        ]
    }
}

fn listed<T: Debug>(listing: &'static str, slice: Result<Slice<T>, StoreError>) -> Listed {
    let slice = slice.unwrap_or_else(|error| panic!("{listing}: {error:?}"));
    Listed { listing, items: slice.items.iter().map(|item| format!("{item:?}")).collect(), next: slice.next }
}

/// A position in a listing by number.
fn numbered(number: i64) -> StoreCursor {
    let mut key = [0; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    StoreCursor::from_bytes(key)
}

/// With any key, a listing returns rows of its own workspace, and no row twice.
pub async fn a_forged_key_stays_in_its_workspace(store: &dyn Store) {
    let mut worlds = Vec::new();
    for _ in 0..3 {
        worlds.push(World::populate(store).await);
    }
    let mut forged: Vec<_> = [[0; 16], [0xFF; 16], [0x7F; 16]].map(StoreCursor::from_bytes).into();
    forged.extend([0, 1, -1, 1 << 40, (1 << 40) + 1, 1 << 62, i64::MAX, i64::MIN].map(numbered));
    // The ends of pages of other workspaces, in all their listings.
    for world in &worlds {
        for Listed { listing, items, next } in world.listings(store, first(1)).await {
            assert_eq!(items.len(), 1, "{listing}");
            forged.push(next.unwrap_or_else(|| panic!("{listing} has one item only")));
        }
    }
    for world in &worlds {
        let own = world.listings(store, first(ALL)).await;
        for after in forged.iter().copied().map(Some) {
            let asked = world.listings(store, PageRequest { after, limit: ALL }).await;
            for (own, asked) in own.iter().zip(asked) {
                let mut rest = own.items.iter();
                let is_part = asked.items.iter().all(|item| rest.any(|own| own == item));
                assert!(is_part, "{} after {after:02x?}: {:?}", own.listing, asked.items);
            }
        }
    }
    let nobody = World { workspace: id(), user: id(), ..World::populate(store).await };
    for after in forged.iter().copied().map(Some) {
        for Listed { listing, items, .. } in nobody.listings(store, PageRequest { after, limit: ALL }).await {
            assert_eq!(items, Vec::<String>::new(), "{listing} of nobody after {after:02x?}");
        }
    }
}
