//! What a commit brings: the locks it needs, its writes, each with the aggregate that it belongs to, and its counts.

use messaging_core::changes::{AutomationWrite, Changes, Condition, JobWrite, Write};

use super::fault::Fault;
use super::lists::Join;
use super::transaction::Transaction;
use super::{
    automations, campaigns, contacts, counts, installation_values, jobs, listeners, lists, product_events, segments,
    subscriptions, waking,
};
use crate::{tables, workspace_rows};

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
        Write::Put(document, expect) => tables::put(transaction, document, *expect)?,
        Write::Delete(key) => tables::delete(transaction, key)?,
        Write::Account(write) => tables::change_account(transaction, write)?,
        Write::Webhook(write) => tables::change_webhook(transaction, write)?,
        Write::PutKeyCheck(check) => tables::installation::put_key_check(transaction, check)?,
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(transaction, switch),
        Write::PutInstallationName(name, before) => {
            tables::installation::put_name(transaction, name, before.as_deref())?;
        }
        Write::PutFence(fence, before) => tables::installation::put_fence(transaction, *fence, *before).await?,
        Write::PutStsPolicy(policy) => tables::sts_policies::put(transaction, policy)?,
        Write::Quarantine(quarantined) => tables::quarantine::put(transaction, quarantined)?,
        Write::ForgetQuarantined(id) => tables::quarantine::forget(transaction, *id)?,
        Write::EndWorkspace(workspace) => workspace_rows::end(transaction, *workspace)?,
        Write::CountSoftBounce(streak) => tables::soft_bounces::lengthen(transaction, streak)?,
        Write::EndSoftBounces(workspace, channel, address) => {
            tables::soft_bounces::end(transaction, *workspace, *channel, address)?;
        }
        Write::AppendRowErrors(errors) => tables::imports::append_errors(transaction, errors)?,
        Write::DeleteTemplate(workspace, id, at) => tables::templates::delete(transaction, *workspace, *id, *at)?,
        Write::PutImage(image, octets) => tables::images::put(transaction, image, octets)?,
        Write::PutContactBlock(block) => tables::search::put_contacts(transaction, block)?,
        Write::PutMessageBlock(block) => tables::search::put_messages(transaction, block)?,
        Write::DeleteImage(workspace, id) => tables::images::delete(transaction, *workspace, *id)?,
        Write::PutSegment(segment, expect) => segments::put(transaction, segment, *expect).await?,
        Write::DeleteSegment(workspace, id) => segments::delete(transaction, *workspace, *id).await?,
        Write::PutAudience(row) => tables::audiences::put(transaction, row)?,
        Write::TakeAddresses(workspace, campaign, digests) => {
            tables::audiences::take_addresses(transaction, *workspace, *campaign, digests)?;
        }
        Write::ForgetAddresses(workspace, campaign) => {
            tables::audiences::forget_addresses(transaction, *workspace, *campaign)?;
        }
        Write::LeaveOutAddresses(workspace, campaign, piece, entries) => {
            tables::audiences::leave_out(transaction, *workspace, *campaign, *piece, entries)?;
        }
        Write::ForgetLeftOut(workspace, campaign) => {
            tables::audiences::forget_left_out(transaction, *workspace, *campaign)?;
        }
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
        Write::CountLink(click) => tables::counters::count_link(transaction, click)?,
        Write::NoteEngagement(engagement) => tables::counters::note_engagement(transaction, engagement)?,
        Write::PutProviderLink(link) => tables::provider_links::put(transaction, link)?,
        Write::NoteInbound(workspace, channel, key, at) => {
            tables::provider_links::note_inbound(transaction, *workspace, *channel, *key, *at)?;
        }
        Write::PutDomainReport(report) => tables::domain_reports::put(transaction, report)?,
        Write::PutCapture(capture) => tables::sandbox::put(transaction, capture, false)?,
        Write::PutUrl(workspace, url) => tables::urls::put(transaction, *workspace, url)?,
        Write::Expect(Condition::Campaign(workspace, id, status)) => {
            tables::campaigns::expect(transaction, *workspace, *id, *status)?;
        }
        Write::Expect(Condition::Unused(workspace, what)) => {
            tables::holds::expect_unused(transaction, *workspace, *what)?;
        }
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
        Write::InsertMessage(message, content) => tables::messages::insert(transaction, message, content)?,
        Write::MoveMessage(movement) => tables::messages::change_status(transaction, movement)?,
        Write::AttributeMessage(change) => tables::messages::attribute(transaction, change).await?,
        Write::RedactMessage(redaction) => tables::messages::redact(transaction, redaction).await?,
        Write::EraseCopy(erasure) => tables::messages::erase_copy(transaction, erasure, |_| false).await?,
        Write::ListCopies(workspace, message, keys) => {
            tables::messages::list_copies(transaction, *workspace, *message, keys)?;
        }
        Write::UnlistCopy(workspace, message, key) => {
            tables::messages::unlist_copy(transaction, *workspace, *message, *key)?;
        }
        Write::Expect(Condition::Message(workspace, id, revision)) => {
            tables::messages::expect(transaction, *workspace, *id, *revision)?;
        }
        Write::AppendEvent(event) => tables::messages::append_event(transaction, event).await?,
        Write::LogEvent(event) => tables::event_log::log(transaction, event)?,
        Write::FollowEvents(workspace, until) => tables::event_log::follow(transaction, *workspace, *until)?,
        Write::AppendAttempt(attempt) => tables::attempts::append(transaction, attempt)?,
        Write::Expect(Condition::Webhook(workspace, id, status)) => {
            tables::webhooks::expect(transaction, *workspace, *id, *status)?;
        }
        Write::PutAutomation(put, expect) => automations::put(transaction, put, *expect).await?,
        Write::DeleteAutomation(workspace, id) => automations::delete(transaction, *workspace, *id).await?,
        Write::Expect(Condition::Automation(workspace, id, status)) => {
            tables::automations::expect(transaction, *workspace, *id, *status)?;
        }
        Write::Automation(AutomationWrite::PutRun(put)) => automations::put_run(transaction, put).await?,
        Write::Automation(AutomationWrite::PutEntry(entry, expect)) => {
            tables::automations::put_entry(transaction, entry, *expect)?;
        }
        Write::Expect(Condition::Entries(expected)) => tables::automations::expect_entries(transaction, expected)?,
        Write::Automation(AutomationWrite::TakeNotes(take)) => tables::automations::take_notes(transaction, take)?,
        Write::Automation(AutomationWrite::CountNodes(workspace, id, counts)) => {
            automations::count_nodes(transaction, (*workspace, *id), counts).await?;
        }
        Write::Automation(AutomationWrite::PutDateFires(put)) => automations::put_date_fires(transaction, put).await?,
        Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire)) => {
            tables::automations::take_date_fire(transaction, *workspace, *id, fire)?;
        }
        Write::Automation(AutomationWrite::MoveRuns(change)) => automations::move_runs(transaction, change).await?,
        Write::Automation(AutomationWrite::DeleteRuns(workspace, contact, limit)) => {
            automations::delete_runs(transaction, *workspace, *contact, *limit).await?;
        }
        Write::Automation(AutomationWrite::CausedAt(depth)) => transaction.depth = *depth,
        Write::KeepBlob(blob) => tables::blobs::name(transaction, *blob)?,
        Write::AbandonBlob(blob) => tables::blobs::abandon(transaction, *blob)?,
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => {}
        Write::Source(write) => tables::sources::change(transaction, write)?,
        Write::Audit(row) => tables::audit_logs::append(transaction, row).await?,
        Write::TrimAudit(workspace, up_to) => tables::audit_logs::trim(transaction, *workspace, *up_to)?,
        Write::LogRequests(requests) => tables::request_logs::add(transaction, requests)?,
        Write::ForgetRequestBodies(workspace, requests) => {
            tables::request_logs::forget_bodies(transaction, *workspace, requests)?;
        }
        Write::Remember(reply) => tables::replies::remember(transaction, reply)?,
        Write::Job(JobWrite::Enqueue(job)) => jobs::enqueue(transaction, job),
        Write::Job(JobWrite::EnqueueOnce(job)) => jobs::enqueue_once(transaction, job),
        Write::Job(JobWrite::MakeDue(jobs, at)) => waking::make_due(transaction, jobs, *at),
        Write::Suspend(suspension) => tables::operator_queue::suspend(transaction, suspension)?,
        Write::LiftSuspension(scope) => tables::operator_queue::lift(transaction, scope)?,
        Write::Job(JobWrite::WakeLane(lane, at)) => waking::wake_lane(transaction, lane, *at).await.map(drop)?,
        Write::Job(JobWrite::Finish(handle)) => jobs::finish(transaction, handle)?,
        Write::Job(JobWrite::Remove(place)) => jobs::remove(transaction, place)?,
        Write::Job(JobWrite::Reschedule(handle, to)) => jobs::reschedule(transaction, handle, to)?,
        Write::Job(JobWrite::PutBack(handle, to)) => jobs::put_back(transaction, handle, *to)?,
        Write::Job(JobWrite::Save(handle, payload)) => jobs::save(transaction, handle, payload)?,
        Write::Job(JobWrite::Hold(handle)) => jobs::require_lease(transaction, handle)?,
    }
    Ok(())
}
