//! Application of writes on SQLite: writes that read first, change state in memory, or are about jobs. `tables::apply`
//! applies the others, which are the same on both databases.

use messaging_core::changes::{AutomationWrite, JobWrite, Write};
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
use crate::tables;

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
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(connection, switch),
        Write::PutFence(fence, before) => at_once(tables::installation::put_fence(&mut open, *fence, *before)),
        Write::PutSuppression(suppression, expect) => {
            at_once(tables::suppressions::put(&mut open, suppression, *expect))
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
        Write::CountMessages(count) => {
            deltas.add(count);
            Ok(())
        }
        Write::CountSites(count) => {
            deltas.add_sites(count);
            Ok(())
        }
        Write::AttributeMessage(change) => at_once(tables::messages::attribute(&mut open, change)),
        Write::RedactMessage(redaction) => at_once(tables::messages::redact(&mut open, redaction)),
        Write::EraseCopy(erasure) => at_once(tables::messages::erase_copy(&mut open, erasure, is_large)),
        Write::AppendEvent(event) => at_once(tables::messages::append_event(&mut open, event)),
        Write::PutCapture(capture) => tables::sandbox::put(on, capture, is_large(&capture.source)),
        Write::InsertWaiting(workspace, campaign, waiting) => {
            campaigns::insert_waiting(connection, *workspace, *campaign, waiting)
        }
        Write::TakeWaiting(workspace, campaign, keys) => {
            campaigns::take_waiting(connection, *workspace, *campaign, keys)
        }
        Write::PutWaiting(workspace, campaign, key) => campaigns::put_waiting(connection, *workspace, *campaign, *key),
        Write::PutAutomation(put, expect) => {
            subscribers.listeners.forget(put.automation.workspace_id);
            tables::automations::put(on, put, *expect)
        }
        Write::DeleteAutomation(workspace, id) => {
            subscribers.listeners.forget(*workspace);
            tables::automations::delete(on, *workspace, *id)
        }
        Write::Automation(AutomationWrite::PutRun(put)) => {
            automations::put_run(connection, deltas, &mut subscribers.listeners, put)
        }
        Write::Automation(AutomationWrite::CountNodes(workspace, id, counts)) => {
            automations::count_nodes(connection, deltas, &mut subscribers.listeners, (*workspace, *id), counts)
        }
        Write::Automation(AutomationWrite::PutDateFires(put)) => {
            automations::put_date_fires(connection, &mut subscribers.listeners, put)
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
        Write::Job(JobWrite::Enqueue(job)) => jobs::enqueue(connection, index, job),
        Write::Job(JobWrite::EnqueueOnce(job)) => jobs::enqueue_once(connection, index, job),
        Write::Job(JobWrite::MakeDue(jobs, at)) => waking::make_due(connection, index, jobs, *at),
        Write::Job(JobWrite::WakeLane(lane, at)) => waking::wake_lane(connection, index, lane, *at).map(drop),
        Write::Job(JobWrite::Finish(handle)) => jobs::finish(connection, index, handle),
        Write::Job(JobWrite::Remove(place)) => jobs::remove(connection, index, place),
        Write::Job(JobWrite::Reschedule(handle, to)) => jobs::reschedule(connection, index, handle, to),
        Write::Job(JobWrite::PutBack(handle, to)) => jobs::put_back(connection, index, handle, *to),
        Write::Job(JobWrite::Save(handle, payload)) => jobs::save(connection, index, handle, payload),
        Write::Job(JobWrite::Hold(handle)) => index.require_lease(handle),
        Write::Audit(row) => at_once(tables::audit_logs::append(&mut open, row)),
        _ => tables::apply::apply(on, write),
    }
}
