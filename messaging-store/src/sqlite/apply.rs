//! One write: which aggregate it belongs to.

use messaging_core::changes::Write;
use rusqlite::Connection;

use super::counters::{self, CounterDeltas};
use super::fault::Fault;
use super::interests::Interests;
use super::lanes::LaneIndex;
use super::{
    accounts, attempts, audiences, automations, blobs, campaigns, channels, contacts, custom_fields, events, holds,
    imports, installation_values, jobs, keys, lists, messages, operator_queue, product_events, provider_links,
    quarantine, replies, sandbox, segments, sending_domains, sign_ins, soft_bounces, suppressions, templates, urls,
    waking, webhooks, workspace_end,
};

/// Applies a write inside the open transaction.
pub(super) fn apply(
    connection: &Connection,
    index: &mut LaneIndex,
    deltas: &mut CounterDeltas,
    interests: &mut Interests,
    write: &Write,
) -> Result<(), Fault> {
    match write {
        Write::PutKeyCheck(check) => installation_values::put_key_check(connection, check),
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(connection, switch),
        Write::PutInstallationName(name, before) => installation_values::put_name(connection, name, before.as_deref()),
        Write::PutFence(fence, before) => installation_values::put_fence(connection, *fence, *before),
        Write::PutUser(user, expect) => accounts::put_user(connection, user, *expect),
        Write::PutSession(session) => accounts::put_session(connection, session),
        Write::DeleteSession(token) => accounts::delete_session(connection, token),
        Write::TouchSession(token, at) => accounts::touch_session(connection, token, *at),
        Write::PutTicket(ticket) => accounts::put_ticket(connection, ticket),
        Write::TakeTicket(digest) => accounts::take_ticket(connection, digest),
        Write::Quarantine(quarantined) => quarantine::put(connection, quarantined),
        Write::ForgetQuarantined(id) => quarantine::forget(connection, *id),
        Write::CountSignIn(attempt) => sign_ins::count(connection, attempt),
        Write::ForgetSignIns(attempt) => sign_ins::forget_email(connection, attempt),
        Write::PutWorkspace(workspace, expect) => accounts::put_workspace(connection, workspace, *expect),
        Write::EndWorkspace(workspace) => workspace_end::end(connection, *workspace),
        Write::DeleteUser(user, revision) => accounts::delete_user(connection, *user, *revision),
        Write::PutMember(member, expect) => accounts::put_member(connection, member, *expect),
        Write::DeleteMember(workspace, user) => accounts::delete_member(connection, *workspace, *user),
        Write::PutApiKey(key, expect) => keys::put(connection, key, *expect),
        Write::TouchApiKey(id, at) => keys::touch(connection, *id, *at),
        Write::PutDomain(domain, expect) => sending_domains::put(connection, domain, *expect),
        Write::DeleteDomain(workspace, id) => sending_domains::delete(connection, *workspace, *id),
        Write::PutChannel(settings, expect) => channels::put(connection, settings, *expect),
        Write::DeleteChannel(workspace, channel) => channels::delete(connection, *workspace, *channel),
        Write::PutSuppression(suppression, expect) => suppressions::put(connection, interests, suppression, *expect),
        Write::CountSoftBounce(streak) => soft_bounces::lengthen(connection, streak),
        Write::EndSoftBounces(workspace, channel, address) => {
            soft_bounces::end(connection, *workspace, *channel, address)
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
        Write::PutList(list, expect) => lists::put(connection, list, *expect),
        Write::DeleteList(workspace, id) => lists::delete(connection, *workspace, *id),
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(connection, interests, *workspace, (*list, *contact), *at)
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(connection, interests, *workspace, (*list, *contact), *at)
        }
        Write::PutSegment(segment, expect) => segments::put(connection, &mut interests.read_masks, segment, *expect),
        Write::DeleteSegment(workspace, id) => segments::delete(connection, &mut interests.read_masks, *workspace, *id),
        Write::PutField(field, expect) => custom_fields::put(connection, field, *expect),
        Write::DeleteField(workspace, id) => custom_fields::delete(connection, *workspace, *id),
        Write::PutImport(import, expect) => imports::put(connection, import, *expect),
        Write::AppendRowErrors(errors) => imports::append_errors(connection, errors),
        Write::PutTemplate(template, expect) => templates::put(connection, template, *expect),
        Write::DeleteTemplate(workspace, id, at) => templates::delete(connection, *workspace, *id, *at),
        Write::InsertMessage(message, content) => messages::insert(connection, message, content),
        Write::MoveMessage(movement) => messages::change_status(connection, movement),
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
        Write::PutProviderLink(link) => provider_links::put(connection, link),
        Write::NoteInbound(workspace, channel, key, at) => {
            provider_links::note_inbound(connection, *workspace, *channel, *key, *at)
        }
        Write::ExpectMessage(workspace, id, revision) => messages::expect(connection, *workspace, *id, *revision),
        Write::AppendEvent(event) => messages::append_event(connection, interests, event),
        Write::LogEvent(event) => events::log(connection, event),
        Write::FollowEvents(workspace, until) => events::follow(connection, *workspace, *until),
        Write::AppendAttempt(attempt) => attempts::append(connection, attempt),
        Write::PutCapture(capture) => sandbox::put(connection, capture),
        Write::PutUrl(workspace, url) => urls::put(connection, *workspace, url),
        Write::DeleteUrl(workspace, key) => urls::delete(connection, *workspace, *key),
        Write::PutCampaign(campaign, expect) => campaigns::put(connection, campaign, *expect),
        Write::DeleteCampaign(workspace, id) => campaigns::delete(connection, *workspace, *id),
        Write::ExpectCampaign(workspace, id, status) => campaigns::expect(connection, *workspace, *id, *status),
        Write::ExpectUnused(workspace, what) => holds::expect_unused(connection, *workspace, *what),
        Write::PutCampaignProgress(progress, expect) => campaigns::put_progress(connection, progress, *expect),
        Write::InsertWaiting(workspace, campaign, waiting) => {
            campaigns::insert_waiting(connection, *workspace, *campaign, waiting)
        }
        Write::TakeWaiting(workspace, campaign, keys) => {
            campaigns::take_waiting(connection, *workspace, *campaign, keys)
        }
        Write::PutWaiting(workspace, campaign, key) => campaigns::put_waiting(connection, *workspace, *campaign, *key),
        Write::PutContactSends(sends, expect) => campaigns::put_contact_sends(connection, sends, *expect),
        Write::PutAudience(row) => audiences::put(connection, row),
        Write::TakeAddresses(workspace, campaign, digests) => {
            audiences::take(connection, *workspace, *campaign, digests)
        }
        Write::ForgetAddresses(workspace, campaign) => audiences::forget_addresses(connection, *workspace, *campaign),
        Write::LeaveOutAddresses(workspace, campaign, piece, entries) => {
            audiences::leave_out(connection, *workspace, *campaign, *piece, entries)
        }
        Write::ForgetLeftOut(workspace, campaign) => audiences::forget_left_out(connection, *workspace, *campaign),
        Write::PutAutomation(put, expect) => automations::put(connection, &mut interests.listeners, put, *expect),
        Write::DeleteAutomation(workspace, id) => {
            automations::delete(connection, &mut interests.listeners, *workspace, *id)
        }
        Write::ExpectAutomation(workspace, id, status) => automations::expect(connection, *workspace, *id, *status),
        Write::PutRun(put) => automations::put_run(connection, deltas, &mut interests.listeners, put),
        Write::PutEntry(entry, expect) => automations::put_entry(connection, entry, *expect),
        Write::ExpectEntries(expected) => automations::expect_entries(connection, expected),
        Write::TakeNotes(take) => automations::take_notes(connection, take),
        Write::CountNodes(workspace, id, counts) => {
            automations::count_nodes(connection, deltas, &mut interests.listeners, (*workspace, *id), counts)
        }
        Write::PutDateFires(put) => automations::put_date_fires(connection, &mut interests.listeners, put),
        Write::TakeDateFire(workspace, id, fire) => automations::take_date_fire(connection, *workspace, *id, fire),
        Write::MoveRuns(change) => automations::move_runs(connection, &mut interests.listeners, change),
        Write::DeleteRuns(workspace, contact, limit) => {
            automations::delete_runs(connection, deltas, *workspace, *contact, *limit)
        }
        Write::CausedAt(depth) => {
            interests.caused_at(*depth);
            Ok(())
        }
        Write::PutWebhook(webhook, expect) => webhooks::put(connection, webhook, *expect),
        Write::DeleteWebhook(workspace, id) => webhooks::delete(connection, *workspace, *id),
        Write::NoteWebhookFailure(workspace, id, at) => webhooks::note_failure(connection, *workspace, *id, *at),
        Write::EndWebhookFailures(workspace, id) => webhooks::end_failures(connection, *workspace, *id),
        Write::ExpectWebhook(workspace, id, status) => webhooks::expect(connection, *workspace, *id, *status),
        Write::InsertDelivery(delivery) => webhooks::insert_delivery(connection, delivery),
        Write::UpdateDelivery(update) => webhooks::update_delivery(connection, update),
        Write::MarkReplayed(workspace, id) => webhooks::mark_replayed(connection, *workspace, *id),
        Write::KeepBlob(blob) => blobs::name(connection, *blob),
        Write::AbandonBlob(blob) => blobs::abandon(connection, *blob),
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => Ok(()),
        Write::Enqueue(job) => jobs::enqueue(connection, index, job),
        Write::EnqueueOnce(job) => jobs::enqueue_once(connection, index, job),
        Write::MakeDue(jobs, at) => waking::make_due(connection, index, jobs, *at),
        Write::Suspend(suspension) => operator_queue::suspend(connection, suspension),
        Write::LiftSuspension(scope) => operator_queue::lift(connection, scope),
        Write::WakeLane(lane, at) => waking::wake_lane(connection, index, lane, *at).map(drop),
        Write::FinishJob(handle) => jobs::finish(connection, index, handle),
        Write::RemoveJob(place) => jobs::remove(connection, index, place),
        Write::RescheduleJob(handle, to) => jobs::reschedule(connection, index, handle, to),
        Write::PutJobBack(handle, to) => jobs::put_back(connection, index, handle, *to),
        Write::SaveJob(handle, payload) => jobs::save(connection, index, handle, payload),
        Write::HoldJob(handle) => index.require_lease(handle),
        Write::Remember(reply) => replies::remember(connection, reply),
    }
}
