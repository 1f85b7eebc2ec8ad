//! One write: which aggregate it belongs to.

use messaging_core::changes::{AutomationWrite, Condition, JobWrite, Write};
use rusqlite::Connection;

use super::blob_files::is_large;
use super::change_subscribers::ChangeSubscribers;
use super::fault::Fault;
use super::lanes::LaneIndex;
use super::open_commit::Applying;
use super::{automations, campaigns, contacts, installation_values, jobs, lists, product_events, segments, waking};
use crate::counter_deltas::CounterDeltas;
use crate::database::Statements;
use crate::database::at_once;
use crate::{tables, workspace_rows};

/// Applies a write inside the open transaction.
pub(super) fn apply(
    connection: &Connection,
    index: &mut LaneIndex,
    deltas: &mut CounterDeltas,
    subscribers: &mut ChangeSubscribers,
    write: &Write,
) -> Result<(), Fault> {
    let mut direct = connection;
    let on: &mut dyn Statements = &mut direct;
    let mut open = Applying { connection, deltas: &mut *deltas, subscribers: &mut *subscribers };
    match write {
        Write::Put(document, expect) => tables::put(on, document, *expect),
        Write::Delete(key) => tables::delete(on, key),
        Write::Account(write) => tables::change_account(on, write),
        Write::Webhook(write) => tables::change_webhook(on, write),
        Write::PutKeyCheck(check) => tables::installation::put_key_check(on, check),
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(connection, switch),
        Write::PutInstallationName(name, before) => tables::installation::put_name(on, name, before.as_deref()),
        Write::PutFence(fence, before) => at_once(tables::installation::put_fence(&mut open, *fence, *before)),
        Write::PutStsPolicy(policy) => tables::sts_policies::put(on, policy),
        Write::Quarantine(quarantined) => tables::quarantine::put(on, quarantined),
        Write::ForgetQuarantined(id) => tables::quarantine::forget(on, *id),
        Write::EndWorkspace(workspace) => workspace_rows::end(on, *workspace),
        Write::PutSuppression(suppression, expect) => {
            at_once(tables::suppressions::put(&mut open, suppression, *expect))
        }
        Write::CountSoftBounce(streak) => tables::soft_bounces::lengthen(on, streak),
        Write::EndSoftBounces(workspace, channel, address) => {
            tables::soft_bounces::end(on, *workspace, *channel, address)
        }
        Write::DeleteSuppression(workspace, id, at) => {
            at_once(tables::suppressions::delete(&mut open, *workspace, *id, *at))
        }
        Write::PutContacts(puts) => contacts::put(connection, subscribers, puts),
        Write::DeleteContact(workspace, id) => contacts::delete(connection, *workspace, *id),
        Write::AppendProductEvents(events) => product_events::append(connection, deltas, subscribers, events),
        Write::MoveProductEvents(change) => at_once(tables::product_events::move_events(&mut open, change)),
        Write::DeleteProductEvents(workspace, contact, limit) => {
            at_once(tables::product_events::delete(&mut open, *workspace, *contact, *limit))
        }
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(connection, subscribers, *workspace, (*list, *contact), *at)
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(connection, subscribers, *workspace, (*list, *contact), *at)
        }
        Write::PutSubscription(subscription, expect) => {
            at_once(tables::subscriptions::put(&mut open, subscription, *expect))
        }
        Write::ForgetSubscription(workspace, list, contact) => {
            at_once(tables::subscriptions::forget(&mut open, *workspace, (*list, *contact)))
        }
        Write::PutSegment(segment, expect) => segments::put(connection, &mut subscribers.read_masks, segment, *expect),
        Write::DeleteSegment(workspace, id) => {
            segments::delete(connection, &mut subscribers.read_masks, *workspace, *id)
        }
        Write::AppendRowErrors(errors) => tables::imports::append_errors(on, errors),
        Write::DeleteTemplate(workspace, id, at) => tables::templates::delete(on, *workspace, *id, *at),
        Write::PutImage(image, octets) => tables::images::put(on, image, octets),
        Write::PutContactBlock(block) => tables::search::put_contacts(on, block),
        Write::PutMessageBlock(block) => tables::search::put_messages(on, block),
        Write::DeleteImage(workspace, id) => tables::images::delete(on, *workspace, *id),
        Write::InsertMessage(message, content) => tables::messages::insert(on, message, content),
        Write::MoveMessage(movement) => tables::messages::change_status(on, movement),
        Write::CountMessages(count) => {
            deltas.add(count);
            Ok(())
        }
        Write::CountSites(count) => {
            deltas.add_sites(count);
            Ok(())
        }
        Write::CountLink(click) => tables::counters::count_link(on, click),
        Write::NoteEngagement(engagement) => tables::counters::note_engagement(on, engagement),
        Write::AttributeMessage(change) => at_once(tables::messages::attribute(&mut open, change)),
        Write::RedactMessage(redaction) => at_once(tables::messages::redact(&mut open, redaction)),
        Write::EraseCopy(erasure) => at_once(tables::messages::erase_copy(&mut open, erasure, is_large)),
        Write::ListCopies(workspace, message, keys) => tables::messages::list_copies(on, *workspace, *message, keys),
        Write::UnlistCopy(workspace, message, key) => tables::messages::unlist_copy(on, *workspace, *message, *key),
        Write::PutProviderLink(link) => tables::provider_links::put(on, link),
        Write::NoteInbound(workspace, channel, key, at) => {
            tables::provider_links::note_inbound(on, *workspace, *channel, *key, *at)
        }
        Write::PutDomainReport(report) => tables::domain_reports::put(on, report),
        Write::Expect(Condition::Message(workspace, id, revision)) => {
            tables::messages::expect(on, *workspace, *id, *revision)
        }
        Write::AppendEvent(event) => at_once(tables::messages::append_event(&mut open, event)),
        Write::LogEvent(event) => tables::event_log::log(on, event),
        Write::FollowEvents(workspace, until) => tables::event_log::follow(on, *workspace, *until),
        Write::AppendAttempt(attempt) => tables::attempts::append(on, attempt),
        Write::PutCapture(capture) => tables::sandbox::put(on, capture, is_large(&capture.source)),
        Write::PutUrl(workspace, url) => tables::urls::put(on, *workspace, url),
        Write::Expect(Condition::Campaign(workspace, id, status)) => {
            tables::campaigns::expect(on, *workspace, *id, *status)
        }
        Write::Expect(Condition::Unused(workspace, what)) => tables::holds::expect_unused(on, *workspace, *what),
        Write::InsertWaiting(workspace, campaign, waiting) => {
            campaigns::insert_waiting(connection, *workspace, *campaign, waiting)
        }
        Write::TakeWaiting(workspace, campaign, keys) => {
            campaigns::take_waiting(connection, *workspace, *campaign, keys)
        }
        Write::PutWaiting(workspace, campaign, key) => campaigns::put_waiting(connection, *workspace, *campaign, *key),
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
            subscribers.listeners.forget(put.automation.workspace_id);
            tables::automations::put(on, put, *expect)
        }
        Write::DeleteAutomation(workspace, id) => {
            subscribers.listeners.forget(*workspace);
            tables::automations::delete(on, *workspace, *id)
        }
        Write::Expect(Condition::Automation(workspace, id, status)) => {
            tables::automations::expect(on, *workspace, *id, *status)
        }
        Write::Automation(AutomationWrite::PutRun(put)) => {
            automations::put_run(connection, deltas, &mut subscribers.listeners, put)
        }
        Write::Automation(AutomationWrite::PutEntry(entry, expect)) => {
            tables::automations::put_entry(on, entry, *expect)
        }
        Write::Expect(Condition::Entries(expected)) => tables::automations::expect_entries(on, expected),
        Write::Automation(AutomationWrite::TakeNotes(take)) => tables::automations::take_notes(on, take),
        Write::Automation(AutomationWrite::CountNodes(workspace, id, counts)) => {
            automations::count_nodes(connection, deltas, &mut subscribers.listeners, (*workspace, *id), counts)
        }
        Write::Automation(AutomationWrite::PutDateFires(put)) => {
            automations::put_date_fires(connection, &mut subscribers.listeners, put)
        }
        Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire)) => {
            tables::automations::take_date_fire(on, *workspace, *id, fire)
        }
        Write::Automation(AutomationWrite::MoveRuns(change)) => {
            automations::move_runs(connection, &mut subscribers.listeners, change)
        }
        Write::Automation(AutomationWrite::DeleteRuns(workspace, contact, limit)) => {
            automations::delete_runs(connection, deltas, *workspace, *contact, *limit)
        }
        Write::Automation(AutomationWrite::CausedAt(depth)) => {
            subscribers.caused_at(*depth);
            Ok(())
        }
        Write::Expect(Condition::Webhook(workspace, id, status)) => {
            tables::webhooks::expect(on, *workspace, *id, *status)
        }
        Write::KeepBlob(blob) => tables::blobs::name(on, *blob),
        Write::AbandonBlob(blob) => tables::blobs::abandon(on, *blob),
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => Ok(()),
        Write::Job(JobWrite::Enqueue(job)) => jobs::enqueue(connection, index, job),
        Write::Job(JobWrite::EnqueueOnce(job)) => jobs::enqueue_once(connection, index, job),
        Write::Job(JobWrite::MakeDue(jobs, at)) => waking::make_due(connection, index, jobs, *at),
        Write::Suspend(suspension) => tables::operator_queue::suspend(on, suspension),
        Write::LiftSuspension(scope) => tables::operator_queue::lift(on, scope),
        Write::Job(JobWrite::WakeLane(lane, at)) => waking::wake_lane(connection, index, lane, *at).map(drop),
        Write::Job(JobWrite::Finish(handle)) => jobs::finish(connection, index, handle),
        Write::Job(JobWrite::Remove(place)) => jobs::remove(connection, index, place),
        Write::Job(JobWrite::Reschedule(handle, to)) => jobs::reschedule(connection, index, handle, to),
        Write::Job(JobWrite::PutBack(handle, to)) => jobs::put_back(connection, index, handle, *to),
        Write::Job(JobWrite::Save(handle, payload)) => jobs::save(connection, index, handle, payload),
        Write::Job(JobWrite::Hold(handle)) => index.require_lease(handle),
        Write::Source(write) => tables::sources::change(on, write),
        Write::Audit(row) => at_once(tables::audit_logs::append(&mut open, row)),
        Write::TrimAudit(workspace, up_to) => tables::audit_logs::trim(on, *workspace, *up_to),
        Write::LogRequests(requests) => tables::request_logs::add(on, requests),
        Write::ForgetRequestBodies(workspace, requests) => {
            tables::request_logs::forget_bodies(on, *workspace, requests)
        }
        Write::Remember(reply) => tables::replies::remember(on, reply),
    }
}
