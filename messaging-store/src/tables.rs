//! Reads and writes of the tables of both databases, one file for each aggregate.
//!
//! A write is a function over [`Statements`](crate::database::Statements), or over an
//! [`OpenCommit`](crate::database::open_commit::OpenCommit) if it has to read first or to announce the change. A read
//! is a [`Query`](crate::database::Query). The modules `sqlite` and `postgres` execute them. SQL that has to differ
//! between the databases is written side by side, with the reason.

pub(crate) mod accounts;
pub(crate) mod apply;
pub(crate) mod attempts;
pub(crate) mod audiences;
pub(crate) mod audit_logs;
pub(crate) mod automations;
pub(crate) mod blobs;
pub(crate) mod campaigns;
pub(crate) mod channels;
pub(crate) mod contacts;
pub(crate) mod counters;
pub(crate) mod custom_fields;
pub(crate) mod domain_reports;
pub(crate) mod event_log;
pub(crate) mod forms;
pub(crate) mod holds;
pub(crate) mod images;
pub(crate) mod imports;
pub(crate) mod installation;
pub(crate) mod ip_pools;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod messages;
pub(crate) mod numbers;
pub(crate) mod operator_queue;
pub(crate) mod product_events;
pub(crate) mod provider_links;
pub(crate) mod quarantine;
pub(crate) mod replies;
pub(crate) mod request_logs;
pub(crate) mod sandbox;
pub(crate) mod search;
pub(crate) mod second_factors;
pub(crate) mod segments;
pub(crate) mod sending_domains;
pub(crate) mod sign_ins;
pub(crate) mod soft_bounces;
pub(crate) mod sources;
pub(crate) mod sts_policies;
pub(crate) mod subscriptions;
pub(crate) mod suppressions;
pub(crate) mod templates;
pub(crate) mod urls;
pub(crate) mod verification;
pub(crate) mod webhooks;

use messaging_core::changes::{AccountWrite, Document, DocumentKey, Expect, WebhookWrite};

use crate::database::Statements;
use crate::fault::Fault;

/// Creates or replaces a document. Fails with a conflict if the stored document does not match `expect`.
pub(crate) fn put(on: &mut dyn Statements, document: &Document, expect: Expect) -> Result<(), Fault> {
    match document {
        Document::User(user) => accounts::put_user(on, user, expect),
        Document::Workspace(workspace) => accounts::put_workspace(on, workspace, expect),
        Document::Member(member) => accounts::put_member(on, member, expect),
        Document::ApiKey(key) => keys::put(on, key, expect),
        Document::Domain(domain) => sending_domains::put(on, domain, expect),
        Document::Pool(pool) => ip_pools::put(on, pool, expect),
        Document::Channel(settings) => channels::put(on, settings, expect),
        Document::List(list) => lists::put(on, list, expect),
        Document::Form(form) => forms::put(on, form, expect),
        Document::Field(field) => custom_fields::put(on, field, expect),
        Document::Import(import) => imports::put(on, import, expect),
        Document::Template(template) => templates::put(on, template, expect),
        Document::Campaign(campaign) => campaigns::put(on, campaign, expect),
        Document::CampaignProgress(progress) => campaigns::put_progress(on, progress, expect),
        Document::ContactSends(sends) => campaigns::put_contact_sends(on, sends, expect),
        Document::Webhook(webhook) => webhooks::put(on, webhook, expect),
    }
}

/// Removes a document.
pub(crate) fn delete(on: &mut dyn Statements, key: &DocumentKey) -> Result<(), Fault> {
    match *key {
        DocumentKey::Member(workspace, user) => accounts::delete_member(on, workspace, user),
        DocumentKey::Domain(workspace, id) => sending_domains::delete(on, workspace, id),
        DocumentKey::Pool(workspace, id) => ip_pools::delete(on, workspace, id),
        DocumentKey::Channel(workspace, channel) => channels::delete(on, workspace, channel),
        DocumentKey::List(workspace, id) => lists::delete(on, workspace, id),
        DocumentKey::Form(workspace, id) => forms::delete(on, workspace, id),
        DocumentKey::Field(workspace, id) => custom_fields::delete(on, workspace, id),
        DocumentKey::Campaign(workspace, id) => campaigns::delete(on, workspace, id),
        DocumentKey::Webhook(workspace, id) => webhooks::delete(on, workspace, id),
        DocumentKey::Url(workspace, key) => urls::delete(on, workspace, key),
    }
}

/// Executes a write about users, sessions, second factors or API keys.
pub(crate) fn change_account(on: &mut dyn Statements, write: &AccountWrite) -> Result<(), Fault> {
    match write {
        AccountWrite::DeleteUser(user, revision) => accounts::delete_user(on, *user, *revision),
        AccountWrite::PutSession(session) => accounts::put_session(on, session),
        AccountWrite::DeleteSession(token) => accounts::delete_session(on, token),
        AccountWrite::TouchSession(token, at) => accounts::touch_session(on, token, *at),
        AccountWrite::PutTicket(ticket) => accounts::put_ticket(on, ticket),
        AccountWrite::TakeTicket(digest) => accounts::take_ticket(on, digest),
        AccountWrite::CountSignIn(attempt) => sign_ins::count(on, attempt),
        AccountWrite::ForgetSignIns(attempt) => sign_ins::forget_email(on, attempt),
        AccountWrite::LinkIdentity(identity) => accounts::link_identity(on, identity),
        AccountWrite::TouchApiKey(id, at) => keys::touch(on, *id, *at),
        AccountWrite::NoteKeyUses(uses) => keys::note_uses(on, uses),
        AccountWrite::PutFactor(factor, expect) => second_factors::put(on, factor, *expect),
        AccountWrite::DeleteFactor(user, id) => second_factors::delete(on, *user, *id),
        AccountWrite::DeleteFactors(user) => second_factors::delete_all(on, *user),
        AccountWrite::PutRecoveryCodes(user, codes) => second_factors::put_recovery_codes(on, *user, codes),
        AccountWrite::TakeRecoveryCode(user, code) => second_factors::take_recovery_code(on, *user, code),
        AccountWrite::PutPendingSignIn(pending) => second_factors::put_pending(on, pending),
        AccountWrite::CountCode(token) => second_factors::count_code(on, token),
        AccountWrite::TakePendingSignIn(token) => second_factors::take_pending(on, token),
    }
}

/// Executes a write about the deliveries of a webhook, or about its failures.
pub(crate) fn change_webhook(on: &mut dyn Statements, write: &WebhookWrite) -> Result<(), Fault> {
    match write {
        WebhookWrite::NoteFailure(workspace, id, at) => webhooks::note_failure(on, *workspace, *id, *at),
        WebhookWrite::EndFailures(workspace, id) => webhooks::end_failures(on, *workspace, *id),
        WebhookWrite::InsertDelivery(delivery) => webhooks::insert_delivery(on, delivery),
        WebhookWrite::UpdateDelivery(update) => webhooks::update_delivery(on, update),
        WebhookWrite::MarkReplayed(workspace, id) => webhooks::mark_replayed(on, *workspace, *id),
    }
}
