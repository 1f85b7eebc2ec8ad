//! One write: which aggregate it belongs to.

use messaging_core::changes::Write;
use rusqlite::Connection;

use super::counters::{self, CounterDeltas};
use super::fault::Fault;
use super::interests::Interests;
use super::lanes::LaneIndex;
use super::{
    automations, blobs, campaigns, contacts, events, installation_values, jobs, lists, messages, product_events,
    sandbox, segments, suppressions, waking, workspace_end,
};
use crate::database::Statements;
use crate::tables;

/// Applies a write inside the open transaction.
pub(super) fn apply(
    connection: &Connection,
    index: &mut LaneIndex,
    deltas: &mut CounterDeltas,
    interests: &mut Interests,
    write: &Write,
) -> Result<(), Fault> {
    let mut direct = connection;
    let on: &mut dyn Statements = &mut direct;
    match write {
        Write::PutKeyCheck(check) => tables::installation::put_key_check(on, check),
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(connection, switch),
        Write::PutInstallationName(name, before) => tables::installation::put_name(on, name, before.as_deref()),
        Write::PutFence(fence, before) => installation_values::put_fence(connection, *fence, *before),
        Write::PutUser(user, expect) => tables::accounts::put_user(on, user, *expect),
        Write::PutSession(session) => tables::accounts::put_session(on, session),
        Write::DeleteSession(token) => tables::accounts::delete_session(on, token),
        Write::TouchSession(token, at) => tables::accounts::touch_session(on, token, *at),
        Write::PutTicket(ticket) => tables::accounts::put_ticket(on, ticket),
        Write::TakeTicket(digest) => tables::accounts::take_ticket(on, digest),
        Write::Quarantine(quarantined) => tables::quarantine::put(on, quarantined),
        Write::ForgetQuarantined(id) => tables::quarantine::forget(on, *id),
        Write::CountSignIn(attempt) => tables::sign_ins::count(on, attempt),
        Write::ForgetSignIns(attempt) => tables::sign_ins::forget_email(on, attempt),
        Write::PutWorkspace(workspace, expect) => tables::accounts::put_workspace(on, workspace, *expect),
        Write::EndWorkspace(workspace) => workspace_end::end(connection, *workspace),
        Write::DeleteUser(user, revision) => tables::accounts::delete_user(on, *user, *revision),
        Write::PutMember(member, expect) => tables::accounts::put_member(on, member, *expect),
        Write::DeleteMember(workspace, user) => tables::accounts::delete_member(on, *workspace, *user),
        Write::PutApiKey(key, expect) => tables::keys::put(on, key, *expect),
        Write::TouchApiKey(id, at) => tables::keys::touch(on, *id, *at),
        Write::PutDomain(domain, expect) => tables::sending_domains::put(on, domain, *expect),
        Write::DeleteDomain(workspace, id) => tables::sending_domains::delete(on, *workspace, *id),
        Write::PutChannel(settings, expect) => tables::channels::put(on, settings, *expect),
        Write::DeleteChannel(workspace, channel) => tables::channels::delete(on, *workspace, *channel),
        Write::PutSuppression(suppression, expect) => suppressions::put(connection, interests, suppression, *expect),
        Write::CountSoftBounce(streak) => tables::soft_bounces::lengthen(on, streak),
        Write::EndSoftBounces(workspace, channel, address) => {
            tables::soft_bounces::end(on, *workspace, *channel, address)
        }
        Write::DeleteSuppression(workspace, id, at) => {
            suppressions::delete(connection, interests, *workspace, *id, *at)
        }
        Write::PutContacts(puts) => contacts::put(connection, interests, puts),
        Write::DeleteContact(workspace, id) => contacts::delete(connection, *workspace, *id),
        Write::AppendProductEvents(events) => product_events::append(connection, deltas, interests, events),
        Write::MoveProductEvents(change) => {
            product_events::relocate(connection, deltas, &mut interests.read_masks, change)
        }
        Write::DeleteProductEvents(workspace, contact, limit) => {
            product_events::delete(connection, deltas, *workspace, *contact, *limit)
        }
        Write::PutList(list, expect) => tables::lists::put(on, list, *expect),
        Write::DeleteList(workspace, id) => tables::lists::delete(on, *workspace, *id),
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(connection, interests, *workspace, (*list, *contact), *at)
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(connection, interests, *workspace, (*list, *contact), *at)
        }
        Write::PutSegment(segment, expect) => segments::put(connection, &mut interests.read_masks, segment, *expect),
        Write::DeleteSegment(workspace, id) => segments::delete(connection, &mut interests.read_masks, *workspace, *id),
        Write::PutField(field, expect) => tables::custom_fields::put(on, field, *expect),
        Write::DeleteField(workspace, id) => tables::custom_fields::delete(on, *workspace, *id),
        Write::PutImport(import, expect) => tables::imports::put(on, import, *expect),
        Write::AppendRowErrors(errors) => tables::imports::append_errors(on, errors),
        Write::PutTemplate(template, expect) => tables::templates::put(on, template, *expect),
        Write::DeleteTemplate(workspace, id, at) => tables::templates::delete(on, *workspace, *id, *at),
        Write::InsertMessage(message, content) => messages::insert(connection, message, content),
        Write::MoveMessage(movement) => tables::messages::change_status(on, movement),
        Write::CountMessages(count) => {
            deltas.add(count);
            Ok(())
        }
        Write::CountLink(click) => counters::count_link(connection, click),
        Write::NoteEngagement(engagement) => counters::note_engagement(connection, engagement),
        Write::AttributeMessage(change) => messages::attribute(connection, &mut interests.read_masks, change),
        Write::RedactMessage(redaction) => messages::redact(connection, &mut interests.read_masks, redaction),
        Write::EraseCopy(erasure) => messages::erase_copy(connection, &mut interests.read_masks, erasure),
        Write::ListCopies(workspace, message, keys) => messages::list_copies(connection, *workspace, *message, keys),
        Write::UnlistCopy(workspace, message, key) => messages::unlist_copy(connection, *workspace, *message, *key),
        Write::PutProviderLink(link) => tables::provider_links::put(on, link),
        Write::NoteInbound(workspace, channel, key, at) => {
            tables::provider_links::note_inbound(on, *workspace, *channel, *key, *at)
        }
        Write::ExpectMessage(workspace, id, revision) => messages::expect(connection, *workspace, *id, *revision),
        Write::AppendEvent(event) => messages::append_event(connection, interests, event),
        Write::LogEvent(event) => events::log(connection, event),
        Write::FollowEvents(workspace, until) => events::follow(connection, *workspace, *until),
        Write::AppendAttempt(attempt) => tables::attempts::append(on, attempt),
        Write::PutCapture(capture) => sandbox::put(connection, capture),
        Write::PutUrl(workspace, url) => tables::urls::put(on, *workspace, url),
        Write::DeleteUrl(workspace, key) => tables::urls::delete(on, *workspace, *key),
        Write::PutCampaign(campaign, expect) => tables::campaigns::put(on, campaign, *expect),
        Write::DeleteCampaign(workspace, id) => tables::campaigns::delete(on, *workspace, *id),
        Write::ExpectCampaign(workspace, id, status) => tables::campaigns::expect(on, *workspace, *id, *status),
        Write::ExpectUnused(workspace, what) => tables::holds::expect_unused(on, *workspace, *what),
        Write::PutCampaignProgress(progress, expect) => tables::campaigns::put_progress(on, progress, *expect),
        Write::InsertWaiting(workspace, campaign, waiting) => {
            campaigns::insert_waiting(connection, *workspace, *campaign, waiting)
        }
        Write::TakeWaiting(workspace, campaign, keys) => {
            campaigns::take_waiting(connection, *workspace, *campaign, keys)
        }
        Write::PutWaiting(workspace, campaign, key) => campaigns::put_waiting(connection, *workspace, *campaign, *key),
        Write::PutContactSends(sends, expect) => tables::campaigns::put_contact_sends(on, sends, *expect),
        Write::PutAudience(row) => tables::audiences::put(on, row),
        Write::TakeAddresses(workspace, campaign, digests) => {
            tables::audiences::take_addresses(on, *workspace, *campaign, digests)
        }
        Write::ForgetAddresses(workspace, campaign) => tables::audiences::forget_addresses(on, *workspace, *campaign),
        Write::LeaveOutAddresses(workspace, campaign, piece, entries) => {
            tables::audiences::leave_out(on, *workspace, *campaign, *piece, entries)
        }
        Write::ForgetLeftOut(workspace, campaign) => tables::audiences::forget_left_out(on, *workspace, *campaign),
        Write::PutAutomation(put, expect) => {
            interests.listeners.forget(put.automation.workspace_id);
            tables::automations::put(on, put, *expect)
        }
        Write::DeleteAutomation(workspace, id) => {
            interests.listeners.forget(*workspace);
            tables::automations::delete(on, *workspace, *id)
        }
        Write::ExpectAutomation(workspace, id, status) => tables::automations::expect(on, *workspace, *id, *status),
        Write::PutRun(put) => automations::put_run(connection, deltas, &mut interests.listeners, put),
        Write::PutEntry(entry, expect) => tables::automations::put_entry(on, entry, *expect),
        Write::ExpectEntries(expected) => tables::automations::expect_entries(on, expected),
        Write::TakeNotes(take) => tables::automations::take_notes(on, take),
        Write::CountNodes(workspace, id, counts) => {
            automations::count_nodes(connection, deltas, &mut interests.listeners, (*workspace, *id), counts)
        }
        Write::PutDateFires(put) => automations::put_date_fires(connection, &mut interests.listeners, put),
        Write::TakeDateFire(workspace, id, fire) => tables::automations::take_date_fire(on, *workspace, *id, fire),
        Write::MoveRuns(change) => automations::move_runs(connection, &mut interests.listeners, change),
        Write::DeleteRuns(workspace, contact, limit) => {
            automations::delete_runs(connection, deltas, *workspace, *contact, *limit)
        }
        Write::CausedAt(depth) => {
            interests.caused_at(*depth);
            Ok(())
        }
        Write::PutWebhook(webhook, expect) => tables::webhooks::put(on, webhook, *expect),
        Write::DeleteWebhook(workspace, id) => tables::webhooks::delete(on, *workspace, *id),
        Write::NoteWebhookFailure(workspace, id, at) => tables::webhooks::note_failure(on, *workspace, *id, *at),
        Write::EndWebhookFailures(workspace, id) => tables::webhooks::end_failures(on, *workspace, *id),
        Write::ExpectWebhook(workspace, id, status) => tables::webhooks::expect(on, *workspace, *id, *status),
        Write::InsertDelivery(delivery) => tables::webhooks::insert_delivery(on, delivery),
        Write::UpdateDelivery(update) => tables::webhooks::update_delivery(on, update),
        Write::MarkReplayed(workspace, id) => tables::webhooks::mark_replayed(on, *workspace, *id),
        Write::KeepBlob(blob) => blobs::name(connection, *blob),
        Write::AbandonBlob(blob) => blobs::abandon(connection, *blob),
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => Ok(()),
        Write::Enqueue(job) => jobs::enqueue(connection, index, job),
        Write::EnqueueOnce(job) => jobs::enqueue_once(connection, index, job),
        Write::MakeDue(jobs, at) => waking::make_due(connection, index, jobs, *at),
        Write::Suspend(suspension) => tables::operator_queue::suspend(on, suspension),
        Write::LiftSuspension(scope) => tables::operator_queue::lift(on, scope),
        Write::WakeLane(lane, at) => waking::wake_lane(connection, index, lane, *at).map(drop),
        Write::FinishJob(handle) => jobs::finish(connection, index, handle),
        Write::RemoveJob(place) => jobs::remove(connection, index, place),
        Write::RescheduleJob(handle, to) => jobs::reschedule(connection, index, handle, to),
        Write::PutJobBack(handle, to) => jobs::put_back(connection, index, handle, *to),
        Write::SaveJob(handle, payload) => jobs::save(connection, index, handle, payload),
        Write::HoldJob(handle) => index.require_lease(handle),
        Write::Remember(reply) => tables::replies::remember(on, reply),
    }
}
