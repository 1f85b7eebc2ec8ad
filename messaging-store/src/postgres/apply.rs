//! Carries out a commit: the locks it needs, its writes, and its counts. Here are the writes that look first or are about
//! jobs; the rest are the same on both databases.

use messaging_core::changes::{AutomationWrite, Changes, JobWrite, Write};

use super::fault::Fault;
use super::lists::Join;
use super::transaction::Transaction;
use super::{
    automations, campaigns, contacts, counts, installation_values, jobs, listeners, lists, product_events, segments,
    subscriptions, waking,
};
use crate::tables;

/// Applies the changes of all commits of a transaction.
pub(super) async fn apply(transaction: &mut Transaction, all: &[&Changes]) -> Result<(), Fault> {
    tables::audit_logs::lock_all(transaction, all)?;
    jobs::lock_lanes(transaction, all);
    listeners::lock(transaction, all);
    subscriptions::look_up(transaction, all).await?;
    automations::look_up(transaction, all).await?;
    for changes in all {
        transaction.begin_changes(changes);
        apply_each(transaction, changes.writes()).await?;
    }
    listeners::settle(transaction).await?;
    counts::settle(transaction);
    let deltas = std::mem::take(&mut transaction.deltas);
    tables::counters::settle(transaction, &deltas)?;
    Ok(())
}

/// Applies writes inside the open transaction, in order. Joins of lists that follow one another are one write.
async fn apply_each(transaction: &mut Transaction, writes: &[Write]) -> Result<(), Fault> {
    let mut rest = writes;
    while let Some(first) = rest.first() {
        let joins = lists::leading_joins(rest);
        if joins.is_empty() {
            apply_one(transaction, first).await?;
        } else {
            lists::join(transaction, &joins).await?;
        }
        rest = &rest[joins.len().max(1)..];
    }
    Ok(())
}

/// Applies a write: queues its statements, or asks where it has to look first.
async fn apply_one(transaction: &mut Transaction, write: &Write) -> Result<(), Fault> {
    match write {
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(transaction, switch),
        Write::PutFence(fence, before) => tables::installation::put_fence(transaction, *fence, *before).await?,
        Write::PutSegment(segment, expect) => segments::put(transaction, segment, *expect).await?,
        Write::DeleteSegment(workspace, id) => segments::delete(transaction, *workspace, *id).await?,
        Write::PutContacts(puts) => contacts::put(transaction, puts).await?,
        Write::DeleteContact(workspace, id) => contacts::delete(transaction, *workspace, *id).await?,
        Write::AppendProductEvents(events) => product_events::append(transaction, events).await?,
        Write::MoveProductEvents(change) => tables::product_events::move_events(transaction, change).await?,
        Write::DeleteProductEvents(workspace, contact, limit) => {
            tables::product_events::delete(transaction, *workspace, *contact, *limit).await?;
        }
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(transaction, &[Join { workspace: *workspace, list: *list, contact: *contact, at: *at }])
                .await?;
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(transaction, *workspace, (*list, *contact), *at).await?;
        }
        Write::PutSubscription(subscription, expect) => {
            tables::subscriptions::put(transaction, subscription, *expect).await?;
        }
        Write::ForgetSubscription(workspace, list, contact) => {
            tables::subscriptions::forget(transaction, *workspace, (*list, *contact)).await?;
        }
        Write::CountMessages(count) => transaction.deltas.add(count),
        Write::CountSites(count) => transaction.deltas.add_sites(count),
        Write::PutCapture(capture) => tables::sandbox::put(transaction, capture, false)?,
        Write::InsertWaiting(workspace, campaign, waiting) => {
            campaigns::insert_waiting(transaction, *workspace, *campaign, waiting)?;
        }
        Write::TakeWaiting(workspace, campaign, keys) => {
            campaigns::take_waiting(transaction, *workspace, *campaign, keys);
        }
        Write::PutWaiting(workspace, campaign, key) => {
            campaigns::put_waiting(transaction, *workspace, *campaign, *key);
        }
        Write::PutSuppression(suppression, expect) => {
            tables::suppressions::put(transaction, suppression, *expect).await?;
        }
        Write::DeleteSuppression(workspace, id, at) => {
            tables::suppressions::delete(transaction, *workspace, *id, *at).await?;
        }
        Write::AttributeMessage(change) => tables::messages::attribute(transaction, change).await?,
        Write::RedactMessage(redaction) => tables::messages::redact(transaction, redaction).await?,
        Write::EraseCopy(erasure) => tables::messages::erase_copy(transaction, erasure, |_| false).await?,
        Write::AppendEvent(event) => tables::messages::append_event(transaction, event).await?,
        Write::PutAutomation(put, expect) => automations::put(transaction, put, *expect).await?,
        Write::DeleteAutomation(workspace, id) => automations::delete(transaction, *workspace, *id).await?,
        Write::Automation(AutomationWrite::PutRun(put)) => automations::put_run(transaction, put).await?,
        Write::Automation(AutomationWrite::CountNodes(workspace, id, counts)) => {
            automations::count_nodes(transaction, (*workspace, *id), counts).await?;
        }
        Write::Automation(AutomationWrite::PutDateFires(put)) => automations::put_date_fires(transaction, put).await?,
        Write::Automation(AutomationWrite::MoveRuns(change)) => automations::move_runs(transaction, change).await?,
        Write::Automation(AutomationWrite::DeleteRuns(workspace, contact, limit)) => {
            automations::delete_runs(transaction, *workspace, *contact, *limit).await?;
        }
        Write::Automation(AutomationWrite::CausedAt(depth)) => transaction.depth = *depth,
        Write::Audit(row) => tables::audit_logs::append(transaction, row).await?,
        Write::Job(JobWrite::Enqueue(job)) => jobs::enqueue(transaction, job),
        Write::Job(JobWrite::EnqueueOnce(job)) => jobs::enqueue_once(transaction, job),
        Write::Job(JobWrite::MakeDue(jobs, at)) => waking::make_due(transaction, jobs, *at),
        Write::Job(JobWrite::WakeLane(lane, at)) => waking::wake_lane(transaction, lane, *at).await.map(drop)?,
        Write::Job(JobWrite::Finish(handle)) => jobs::finish(transaction, handle)?,
        Write::Job(JobWrite::Remove(place)) => jobs::remove(transaction, place)?,
        Write::Job(JobWrite::Reschedule(handle, to)) => jobs::reschedule(transaction, handle, to)?,
        Write::Job(JobWrite::PutBack(handle, to)) => jobs::put_back(transaction, handle, *to)?,
        Write::Job(JobWrite::Save(handle, payload)) => jobs::save(transaction, handle, payload)?,
        Write::Job(JobWrite::Hold(handle)) => jobs::require_lease(transaction, handle)?,
        _ => tables::apply::apply(transaction, write)?,
    }
    Ok(())
}
