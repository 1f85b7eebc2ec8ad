//! Records to store: complete, valid, different from one another.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use messaging_core::changes::{Expect, JobHandle, JobWrite, MoveMessage, NewJob, Reply, ReplyKey, Write};
use messaging_core::domain::audience::contact::fields::ContactField;
use messaging_core::domain::audience::contact::{Consent, Contact, IdentifierKind};
use messaging_core::domain::audience::custom_field::{CustomField, FieldType};
use messaging_core::domain::audience::import::columns::ColumnTarget;
use messaging_core::domain::audience::import::{Import, ImportState};
use messaging_core::domain::audience::list::{ContactList, OptIn, Visibility};
use messaging_core::domain::audience::product_event::ProductEvent;
use messaging_core::domain::audience::subscription::NewStatus;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::automation::run::{Held, Run, RunStatus};
use messaging_core::domain::automation::{Automation, AutomationStatus, Design as AutomationDesign, ReEntry};
use messaging_core::domain::campaign::archive::ReaderSettings;
use messaging_core::domain::campaign::settings::Settings;
use messaging_core::domain::campaign::{Audience, Campaign, CampaignKind, CampaignPlan, CampaignStatus};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::{CallbackRegistration, ChannelSettings};
use messaging_core::domain::delivery::ip_pool::IpPool;
use messaging_core::domain::mail::sending_domain::{DomainStatus, SendingDomain};
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones, Skip};
use messaging_core::domain::message::{Capture, EventKind, Message, MessageContent, MessageEvent, MessageStatus};
use messaging_core::domain::security::account::{Member, Session, Ticket, User, Workspace};
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::{Factor, FactorProof, FirstFactor, PendingSignIn};
use messaging_core::domain::security::oidc::{LinkedIdentity, VerifiedIdentity};
use messaging_core::domain::security::request_log::RequestLog;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::domain::template::warning::{Warning, WarningCode};
use messaging_core::domain::template::{Design, Parts, Template};
use messaging_core::domain::webhook::{Topic, Webhook, WebhookStatus};
use messaging_core::ids::{ApiKeyId, ContactId, EventId, Id, IdSource, UserId, WorkspaceId};
use messaging_core::ports::Store;
use messaging_core::ports::clock::SeededEntropy;
use messaging_core::ports::store::jobs::{Claim, ClaimedJob};
use messaging_core::scope::{Role, Scope};
use messaging_core::time::{Monotonic, Timestamp};
use serde_json::{Map, Value, json};

static IDS: LazyLock<(IdSource, SeededEntropy)> = LazyLock::new(|| (IdSource::default(), SeededEntropy::new(0x5EED)));

/// So many milliseconds after the beginning of the test's time.
pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

/// A new id, larger than all before.
pub fn id<I: Id>() -> I {
    IDS.0.next(at(0), &IDS.1)
}

/// A new id whose time is so many milliseconds after the beginning; not larger than all before.
pub fn id_at<I: Id>(millis: i64) -> I {
    IdSource::default().next(at(millis), &IDS.1)
}

/// A user with everything set.
pub fn user() -> User {
    let id: UserId = id();
    User {
        id,
        email: format!("{}@example.org", id.to_string().to_lowercase()),
        name: Some("Ада Лавлейс".to_owned()),
        password_hash: Some("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".to_owned()),
        password_version: 3,
        operator: true,
        second_factor: true,
        created_by: Some(WorkspaceId::from_bytes([7; 16])),
        signed_in: true,
        created_at: at(1),
    }
}

/// A person at a single sign-on provider who is a user.
pub fn identity(subject: &str, user_id: UserId) -> LinkedIdentity {
    let issuer = "https://id.example.org".to_owned();
    LinkedIdentity { issuer, subject: subject.to_owned(), user_id, linked_at: at(2) }
}

/// A ticket that the operator made.
pub fn ticket(text: &str, expires_at: Timestamp) -> Ticket {
    Ticket {
        digest: Digest::of(text),
        user_id: id(),
        password_version: 3,
        invitation: None,
        created_at: at(2),
        expires_at,
    }
}

/// A session.
pub fn session(token: &str, expires_at: Timestamp) -> Session {
    Session {
        id: id(),
        token_digest: Digest::of(token),
        user_id: id(),
        password_version: 3,
        created_at: at(2),
        expires_at,
        ip: Some("192.0.2.7".parse().expect("an address")),
        user_agent: Some("curl/8".to_owned()),
    }
}

/// A confirmed second factor.
pub fn factor(user_id: UserId) -> Factor {
    Factor {
        id: id(),
        user_id,
        name: "Телефон".to_owned(),
        proof: FactorProof::Totp { sealed: "sealed:1:AAAA".to_owned(), used_step: Some(56_666_666) },
        confirmed_at: Some(at(3)),
        last_used_at: Some(at(4)),
        created_at: at(2),
    }
}

/// A sign-in that waits for a second factor.
pub fn pending_sign_in(token: &str, user_id: UserId) -> PendingSignIn {
    PendingSignIn {
        digest: Digest::of(token),
        user_id,
        password_version: 3,
        first_factor: FirstFactor::SignOn(Box::new(VerifiedIdentity {
            issuer: "https://id.example.com".to_owned(),
            subject: "248289761001".to_owned(),
            name: Some("Ann Lee".to_owned()),
            groups: vec!["staff".to_owned()],
        })),
        cookie: true,
        is_vouched: true,
        password_hash: Some("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".to_owned()),
        created_at: at(1),
        expires_at: at(2),
    }
}

/// A workspace.
pub fn workspace() -> Workspace {
    Workspace {
        id: id(),
        name: "Acme «Ltd»".to_owned(),
        timezone: "Europe/Riga".to_owned(),
        opt_out_keywords: vec!["STOPP".to_owned()],
        request_log: RequestLog::Writes,
        require_second_factor: true,
        readers: ReaderSettings::default(),
        end: None,
        created_at: at(3),
    }
}

/// A membership.
pub fn member(workspace_id: WorkspaceId, user_id: UserId, role: Role) -> Member {
    let up_to = Some(Role::Admin);
    Member {
        invited_by: Some("ann@example.org".to_owned()),
        up_to,
        ..Member::active(workspace_id, user_id, role, at(4))
    }
}

/// A user, put with a membership.
pub fn joined(workspace_id: WorkspaceId, role: Role) -> (User, Member, [Write; 2]) {
    let user = user();
    let member = member(workspace_id, user.id, role);
    let writes = [Write::put(user.clone(), Expect::Absent), Write::put(member.clone(), Expect::Absent)];
    (user, member, writes)
}

/// An API key with everything set.
pub fn key(workspace_id: WorkspaceId) -> ApiKey {
    let id: ApiKeyId = id();
    ApiKey {
        id,
        workspace_id,
        name: "deploy \"bot\"".to_owned(),
        prefix: format!("mk_live_{}", id.to_string().to_lowercase()),
        secret_digest: Digest::of("secret"),
        scopes: vec![Scope::MessagesSend, Scope::ContactsWrite],
        rate_limit: 600,
        ip_allowlist: vec!["10.0.0.0/8".to_owned(), "2001:db8::1".to_owned()],
        created_at: at(5),
        expires_at: Some(at(6)),
        revoked_at: Some(at(7)),
        rotated_from: Some(self::id()),
        replaced_by: Some(self::id()),
        warned_days: Some(14),
    }
}

/// A sending domain.
pub fn domain(workspace_id: WorkspaceId, name: &str) -> SendingDomain {
    SendingDomain {
        status: DomainStatus::Verified,
        verified_at: Some(at(9)),
        ..SendingDomain::new(id(), workspace_id, name, at(8))
    }
}

/// An address of those that are kept for examples; it ends with a number.
pub fn ip(n: u8) -> IpAddr {
    IpAddr::from([203, 0, 113, n])
}

/// A pool with two addresses; one that is shared without a workspace.
pub fn ip_pool(workspace_id: Option<WorkspaceId>, name: &str) -> IpPool {
    let ips = vec![ip(7), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7])];
    IpPool { id: id(), workspace_id, name: name.to_owned(), ips, created_at: at(8), updated_at: at(8) }
}

/// Settings of a channel.
pub fn settings(workspace_id: WorkspaceId, channel: Channel) -> ChannelSettings {
    let config = object(&json!({"host": "relay.example.org", "port": 587, "password": {"sealed": "AAAA"}}));
    let registration = CallbackRegistration { job: id(), address: Some(Digest::of("address")), error: None };
    ChannelSettings { workspace_id, channel, provider: "smtp".to_owned(), config, registration: Some(registration) }
}

/// A suppression.
pub fn suppression(workspace_id: WorkspaceId, channel: Channel, address: &str) -> Suppression {
    Suppression {
        id: id(),
        workspace_id,
        channel,
        address: address.to_owned(),
        reason: SuppressionReason::Bounce,
        detail: Some("550 5.1.1 user unknown".to_owned()),
        source: SuppressionSource::System,
        created_at: at(10),
    }
}

/// A contact with everything set, but on no list.
pub fn contact(workspace_id: WorkspaceId) -> Contact {
    let id: ContactId = id();
    let digits: u64 = id.to_bytes()[8..].iter().fold(0, |sum, byte| (sum * 256 + u64::from(*byte)) % 10_000_000_000);
    Contact {
        external_id: Some(format!("user «{id}»")),
        email: Some(format!("{}@example.org", id.to_string().to_lowercase())),
        phone: Some(format!("+371{digits:010}")),
        attributes: object(&json!({"plan": "pro", "age": 31, "ü": [1.5, "x", null], "home": {"city": "Rīga"}})).into(),
        tags: vec!["vip".to_owned(), "de \"quoted\"".to_owned()],
        locale: Some("de-DE".to_owned()),
        timezone: Some("Europe/Berlin".to_owned()),
        consent: Consent { marketing_email: Some(true), sms: Some(false) },
        updated_at: at(15),
        ..Contact::new(id, workspace_id, at(14))
    }
}

/// A product event of a contact, with everything set but a unique id.
pub fn product_event(contact: &Contact, name: &str) -> ProductEvent {
    ProductEvent {
        id: id(),
        workspace_id: contact.workspace_id,
        contact_id: contact.id,
        name: name.to_owned(),
        occurred_at: at(-86_400_000),
        properties: object(&json!({"total": 59.9, "items": [{"sku": "A «1»"}], "ü": null})).into(),
        unique_id: None,
    }
}

/// A list without members.
pub fn contact_list(workspace_id: WorkspaceId) -> ContactList {
    let name = "News «weekly»".to_owned();
    ContactList {
        id: id(),
        workspace_id,
        name,
        visibility: Visibility::Private,
        opt_in: OptIn::Single,
        description: None,
        contact_count: 0,
        created_at: at(16),
        updated_at: at(17),
    }
}

/// A dynamic segment of everybody, not calculated yet.
pub fn segment(workspace_id: WorkspaceId) -> Segment {
    Segment {
        id: id(),
        workspace_id,
        name: "Pro «buyers»".to_owned(),
        kind: SegmentKind::Dynamic,
        filter: StoredFilter::new(&json!({}), Filter::Everyone),
        status: SegmentStatus::Recalculating,
        size: None,
        calculated_at: None,
        created_at: at(21),
        updated_at: at(22),
        calculation: 1,
    }
}

/// A custom field.
pub fn custom_field(workspace_id: WorkspaceId, key: &str) -> CustomField {
    let label = Some("Tariff «new»".to_owned());
    CustomField { id: id(), workspace_id, key: key.to_owned(), kind: FieldType::StringArray, label, created_at: at(18) }
}

/// The first version of a template with everything set.
pub fn template(workspace_id: WorkspaceId, channel: Channel) -> Template {
    let text = |text: &str| Some(text.to_owned());
    Template {
        id: id(),
        workspace_id,
        channel,
        version: 1,
        reverted_from: None,
        design: Design {
            name: "Order «new»".to_owned(),
            subject: text("Order {{ order.id }}"),
            preheader: text("Grüße"),
            from_name: text("Acme"),
            from_email: text("shop@acme.example"),
            reply_to: text("help@acme.example"),
            html: text("<p>{{ name }}</p>"),
            mjml: text("<mjml></mjml>"),
            text: text("Hi {{ name }}"),
            declared: vec!["order.id".to_owned()],
            inline_css: true,
        },
        ready: text("<p style=\"x:y\">{{ name }}</p>"),
        variables: vec!["order.id".to_owned(), "name".to_owned()],
        warnings: vec![Warning::new(WarningCode::NoUnsubscribeLink, "there is none")],
        parts: Parts { subject: true, html: true, text: true },
        created_at: at(30),
        updated_at: at(31),
    }
}

/// A queued message with everything set.
pub fn message(workspace_id: WorkspaceId) -> Message {
    Message {
        from_email: Some("news@acme.example".to_owned()),
        contact_id: Some(id()),
        campaign_id: Some(id()),
        automation_id: Some(id()),
        variant: Some(3),
        template_id: Some(id()),
        tags: vec!["welcome".to_owned(), "de \"quoted\"".to_owned()],
        metadata: object(&json!({"order": 17, "items": ["a", "b"], "ü": null})),
        hold: Some(Hold { reason: HoldReason::QuietHours, until: Some(at(23)), since: at(22) }),
        milestones: Milestones {
            seen: EngagementFlags::OPENED.union(EngagementFlags::UNSUBSCRIBED),
            links: 1 << 63 | 5,
            skip: Some(Skip::NoConsent),
            sent_at: Some(at(24)),
            delivered_at: Some(at(25)),
        },
        updated_at: at(12),
        ..Message::queued(id(), workspace_id, Channel::Email, "Grete Hermann <grete@example.org>".to_owned(), at(11))
    }
}

/// A queued message with nothing optional.
pub fn bare_message(workspace_id: WorkspaceId) -> Message {
    Message {
        from_email: None,
        contact_id: None,
        campaign_id: None,
        automation_id: None,
        variant: None,
        template_id: None,
        fallback_of: None,
        has_fallback: false,
        is_test: false,
        tags: Vec::new(),
        metadata: Map::new(),
        hold: None,
        milestones: Milestones::default(),
        ..message(workspace_id)
    }
}

/// A draft of a campaign.
pub fn campaign(workspace_id: WorkspaceId) -> Campaign {
    Campaign {
        id: id(),
        workspace_id,
        plan: CampaignPlan {
            name: "Spring «1»".to_owned(),
            channel: Channel::Email,
            kind: CampaignKind::Regular,
            template_id: id(),
            subject_override: Some("Hello {{ name }}".to_owned()),
            from_name: None,
            from_email: Some("news@acme.example".to_owned()),
            reply_to: None,
            audience: Audience { list_ids: vec![id()], segment_ids: vec![id()], exclude_list_ids: vec![id()] },
            variants: Vec::new(),
            settings: Settings::default(),
            archived: true,
        },
        status: CampaignStatus::Draft,
        phase: None,
        scheduled_at: None,
        wall_time: None,
        schedule_called_at: None,
        started_at: None,
        completed_at: None,
        recipients: None,
        test_sent_at: None,
        winner: None,
        scores: Vec::new(),
        pause_reason: None,
        failure_reason: None,
        sending_domains: Vec::new(),
        created_at: at(35),
        updated_at: at(36),
    }
}

/// Creates a campaign.
pub fn create_campaign(campaign: &Campaign) -> Write {
    Write::put(Box::new(campaign.clone()), Expect::Absent)
}

/// An active automation that contacts enter by an event.
pub fn automation(workspace_id: WorkspaceId) -> Automation {
    Automation {
        id: id(),
        workspace_id,
        name: "Cart «1»".to_owned(),
        status: AutomationStatus::Active,
        pause_reason: None,
        design: AutomationDesign {
            trigger: object(&json!({"kind": "event", "config": {"name": "cart_updated"}})),
            graph: object(&json!({"nodes": [{"id": "w", "kind": "exit"}], "edges": []})),
            re_entry: ReEntry::AfterExit,
            re_entry_key: Some("event.cart".to_owned()),
            masked: true,
        },
        version: 1,
        activated_at: Some(at(38)),
        created_at: at(37),
        updated_at: at(39),
    }
}

/// A run that waits, with everything set that a waiting one has.
pub fn run(automation: &Automation, contact: &Contact) -> Run {
    let entry_event: EventId = id();
    Run {
        id: id(),
        workspace_id: automation.workspace_id,
        automation_id: automation.id,
        version: automation.version,
        contact_id: contact.id,
        status: RunStatus::Waiting,
        node_id: Some("w".to_owned()),
        due_at: Some(at(5_000)),
        entered_at: entry_event.made_at(),
        arrived_at: at(1_000),
        ended_at: None,
        exit_reason: None,
        steps: 1,
        depth: 1,
        event: object(&json!({"cart": "A «1»", "total": 59.9})),
        entry_event: Some(entry_event),
        key: Some("\"A «1»\"".to_owned()),
        held: Some(Held::Sending { reason: HoldReason::QuietHours, since: at(8) }),
    }
}

/// The content of a message.
pub fn content(text: &str) -> MessageContent {
    MessageContent { request: Bytes::copy_from_slice(text.as_bytes()) }
}

/// Stores a message with some content.
pub fn insert(message: &Message) -> Write {
    Write::InsertMessage(Box::new(message.clone()), content("{\"subject\":\"Hello\"}"))
}

/// Moves a message that was read at `revision`.
pub fn change(message: &Message, revision: u32, status: MessageStatus) -> Write {
    let before = Message { revision, ..message.clone() };
    Write::MoveMessage(MoveMessage::new(&before, &before.moved(status, at(20))))
}

/// An event of a message.
pub fn event(message: &Message, kind: EventKind, millis: i64) -> MessageEvent {
    MessageEvent {
        id: id(),
        workspace_id: message.workspace_id,
        message_id: message.id,
        kind,
        at: at(millis),
        meta: object(&json!({"code": 250, "mx": "mx.example.org"})),
    }
}

/// A capture of a message.
pub fn capture(message: &Message, source: impl Into<Bytes>) -> Capture {
    Capture {
        workspace_id: message.workspace_id,
        message_id: message.id,
        channel: Channel::Email,
        to: "grete@example.org".to_owned(),
        from: Some("news@acme.example".to_owned()),
        subject: Some("Grüße".to_owned()),
        captured_at: at(13),
        source: source.into(),
    }
}

/// A webhook with everything set.
pub fn webhook(workspace_id: WorkspaceId) -> Webhook {
    Webhook {
        id: id(),
        workspace_id,
        url: "https://acme.com/hook?ü=1".to_owned(),
        events: vec![Topic::Bounce, Topic::Everything],
        status: WebhookStatus::Paused,
        pii: true,
        secret: "sealed:1:AAAA".to_owned(),
        previous_secret: Some(("sealed:1:BBBB".to_owned(), at(9))),
        draining: true,
        created_at: at(1),
        updated_at: at(2),
    }
}

/// A job.
pub fn job(lane: &str, due: i64) -> NewJob {
    NewJob {
        id: id(),
        kind: "deliver_message",
        lane: lane.into(),
        due_at: at(due),
        payload: Bytes::copy_from_slice(format!("{{\"lane\":\"{lane}\"}}").as_bytes()),
    }
}

/// Adds a job.
pub fn enqueue(lane: &str, due: i64) -> Write {
    Write::Job(JobWrite::Enqueue(job(lane, due)))
}

/// A claim at a time, leased for a second, without limits.
pub fn claim(now: i64) -> Claim {
    Claim::new(at(now), monotonic(now), Duration::from_secs(1))
}

/// So many milliseconds after the beginning of the test, on the clock that is never set.
pub fn monotonic(millis: i64) -> Monotonic {
    Monotonic::new(Duration::from_millis(millis.unsigned_abs()))
}

/// When something is due next, while both clocks stand at the beginning.
pub async fn next_due(store: &dyn Store) -> Option<Timestamp> {
    store.next_due(at(0), monotonic(0)).await.unwrap().map(|wait| at(0) + wait)
}

/// Finishes claimed jobs.
pub fn finish(jobs: &[ClaimedJob]) -> Vec<Write> {
    jobs.iter().map(|job| Write::Job(JobWrite::Finish(job.handle.clone()))).collect()
}

/// The handles of claimed jobs.
pub fn handles(jobs: &[ClaimedJob]) -> Vec<JobHandle> {
    jobs.iter().map(|job| job.handle.clone()).collect()
}

/// A reply to remember.
pub fn reply(key: &str, created: i64, expires: i64) -> Reply {
    Reply {
        key: ReplyKey { credential: [7; 16], route: "POST /messages".to_owned(), key: key.to_owned() },
        fingerprint: u128::MAX - 5,
        status: 202,
        content_type: "application/json".to_owned(),
        body: Bytes::from_static(b"{\"message_id\":\"msg_1\"}"),
        expires_at: at(expires),
        created_at: at(created),
    }
}

/// The members of an object.
pub fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// An import that waits for its file.
pub fn import(workspace_id: WorkspaceId) -> Import {
    let mapping = [("E-Mail".to_owned(), Some(ColumnTarget::Field(ContactField::Email))), ("Notes".to_owned(), None)];
    Import {
        status_on_lists: NewStatus::Confirmed,
        id: id(),
        workspace_id,
        filename: "contacts.csv".to_owned(),
        size_bytes: 1234,
        sha256: "ab".repeat(32),
        mapping: mapping.into_iter().collect(),
        dedup_keys: vec![IdentifierKind::Email, IdentifierKind::ExternalId],
        state: ImportState::AwaitingUpload,
        total_rows: None,
        created: 0,
        updated: 0,
        failed: 0,
        created_at: at(0),
    }
}
