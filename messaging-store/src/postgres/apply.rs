//! What a commit brings: the locks it needs, its writes, each with the aggregate that it belongs to, and its counts.

use messaging_core::changes::{Changes, Write};

use super::fault::Fault;
use super::lists::Join;
use super::transaction::Transaction;
use super::{
    automations, blobs, campaigns, contacts, counters, counts, events, installation_values, jobs, listeners, lists,
    messages, product_events, sandbox, segments, suppressions, waking, workspace_end,
};
use crate::tables;

/// Applies the changes of all commits of a transaction.
pub(super) async fn apply(transaction: &mut Transaction, all: &[&Changes]) -> Result<(), Fault> {
    jobs::lock_lanes(transaction, all);
    listeners::lock(transaction, all);
    automations::look_up(transaction, all).await?;
    for changes in all {
        transaction.begin_changes(changes);
        apply_each(transaction, changes.writes()).await?;
    }
    listeners::settle(transaction).await?;
    counts::settle(transaction);
    counters::settle(transaction);
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
        Write::PutKeyCheck(check) => tables::installation::put_key_check(transaction, check)?,
        Write::SwitchSecretKey(switch) => installation_values::switch_secret_key(transaction, switch),
        Write::PutInstallationName(name, before) => {
            tables::installation::put_name(transaction, name, before.as_deref())?;
        }
        Write::PutFence(fence, before) => installation_values::put_fence(transaction, *fence, *before).await?,
        Write::PutUser(user, expect) => tables::accounts::put_user(transaction, user, *expect)?,
        Write::PutSession(session) => tables::accounts::put_session(transaction, session)?,
        Write::DeleteSession(token) => tables::accounts::delete_session(transaction, token)?,
        Write::TouchSession(token, at) => tables::accounts::touch_session(transaction, token, *at)?,
        Write::PutTicket(ticket) => tables::accounts::put_ticket(transaction, ticket)?,
        Write::TakeTicket(digest) => tables::accounts::take_ticket(transaction, digest)?,
        Write::Quarantine(quarantined) => tables::quarantine::put(transaction, quarantined)?,
        Write::ForgetQuarantined(id) => tables::quarantine::forget(transaction, *id)?,
        Write::CountSignIn(attempt) => tables::sign_ins::count(transaction, attempt)?,
        Write::ForgetSignIns(attempt) => tables::sign_ins::forget_email(transaction, attempt)?,
        Write::PutWorkspace(workspace, expect) => tables::accounts::put_workspace(transaction, workspace, *expect)?,
        Write::EndWorkspace(workspace) => workspace_end::end(transaction, *workspace),
        Write::DeleteUser(user, revision) => tables::accounts::delete_user(transaction, *user, *revision)?,
        Write::PutMember(member, expect) => tables::accounts::put_member(transaction, member, *expect)?,
        Write::DeleteMember(workspace, user) => tables::accounts::delete_member(transaction, *workspace, *user)?,
        Write::PutApiKey(key, expect) => tables::keys::put(transaction, key, *expect)?,
        Write::TouchApiKey(id, at) => tables::keys::touch(transaction, *id, *at)?,
        Write::PutDomain(domain, expect) => tables::sending_domains::put(transaction, domain, *expect)?,
        Write::DeleteDomain(workspace, id) => tables::sending_domains::delete(transaction, *workspace, *id)?,
        Write::PutChannel(settings, expect) => tables::channels::put(transaction, settings, *expect)?,
        Write::DeleteChannel(workspace, channel) => tables::channels::delete(transaction, *workspace, *channel)?,
        Write::CountSoftBounce(streak) => tables::soft_bounces::lengthen(transaction, streak)?,
        Write::EndSoftBounces(workspace, channel, address) => {
            tables::soft_bounces::end(transaction, *workspace, *channel, address)?;
        }
        Write::PutField(field, expect) => tables::custom_fields::put(transaction, field, *expect)?,
        Write::DeleteField(workspace, id) => tables::custom_fields::delete(transaction, *workspace, *id)?,
        Write::PutImport(import, expect) => tables::imports::put(transaction, import, *expect)?,
        Write::AppendRowErrors(errors) => tables::imports::append_errors(transaction, errors)?,
        Write::PutTemplate(template, expect) => tables::templates::put(transaction, template, *expect)?,
        Write::DeleteTemplate(workspace, id, at) => tables::templates::delete(transaction, *workspace, *id, *at)?,
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
        Write::MoveProductEvents(change) => product_events::relocate(transaction, change).await?,
        Write::DeleteProductEvents(workspace, contact, limit) => {
            product_events::delete(transaction, *workspace, *contact, *limit).await?;
        }
        Write::PutList(list, expect) => tables::lists::put(transaction, list, *expect)?,
        Write::DeleteList(workspace, id) => tables::lists::delete(transaction, *workspace, *id)?,
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(transaction, &[Join { workspace: *workspace, list: *list, contact: *contact, at: *at }])
                .await?;
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(transaction, *workspace, (*list, *contact), *at).await?;
        }
        Write::CountMessages(count) => transaction.deltas.add(count),
        Write::CountLink(click) => counters::count_link(transaction, click),
        Write::NoteEngagement(engagement) => counters::note_engagement(transaction, engagement),
        Write::PutProviderLink(link) => tables::provider_links::put(transaction, link)?,
        Write::NoteInbound(workspace, channel, key, at) => {
            tables::provider_links::note_inbound(transaction, *workspace, *channel, *key, *at)?;
        }
        Write::PutCapture(capture) => sandbox::put(transaction, capture),
        Write::PutUrl(workspace, url) => tables::urls::put(transaction, *workspace, url)?,
        Write::DeleteUrl(workspace, key) => tables::urls::delete(transaction, *workspace, *key)?,
        Write::PutCampaign(campaign, expect) => tables::campaigns::put(transaction, campaign, *expect)?,
        Write::DeleteCampaign(workspace, id) => tables::campaigns::delete(transaction, *workspace, *id)?,
        Write::ExpectCampaign(workspace, id, status) => {
            tables::campaigns::expect(transaction, *workspace, *id, *status)?;
        }
        Write::ExpectUnused(workspace, what) => tables::holds::expect_unused(transaction, *workspace, *what)?,
        Write::PutCampaignProgress(progress, expect) => {
            tables::campaigns::put_progress(transaction, progress, *expect)?;
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
        Write::PutContactSends(sends, expect) => tables::campaigns::put_contact_sends(transaction, sends, *expect)?,
        Write::PutSuppression(suppression, expect) => suppressions::put(transaction, suppression, *expect).await?,
        Write::DeleteSuppression(workspace, id, at) => {
            suppressions::delete(transaction, *workspace, *id, *at).await?;
        }
        Write::InsertMessage(message, content) => messages::insert(transaction, message, content)?,
        Write::MoveMessage(movement) => tables::messages::change_status(transaction, movement)?,
        Write::AttributeMessage(change) => messages::attribute(transaction, change).await?,
        Write::RedactMessage(redaction) => messages::redact(transaction, redaction).await?,
        Write::EraseCopy(erasure) => messages::erase_copy(transaction, erasure).await?,
        Write::ListCopies(workspace, message, keys) => messages::list_copies(transaction, *workspace, *message, keys),
        Write::UnlistCopy(workspace, message, key) => messages::unlist_copy(transaction, *workspace, *message, *key),
        Write::ExpectMessage(workspace, id, revision) => messages::expect(transaction, *workspace, *id, *revision),
        Write::AppendEvent(event) => messages::append_event(transaction, event).await?,
        Write::LogEvent(event) => events::log(transaction, event),
        Write::FollowEvents(workspace, until) => events::follow(transaction, *workspace, *until),
        Write::AppendAttempt(attempt) => tables::attempts::append(transaction, attempt)?,
        Write::PutWebhook(webhook, expect) => tables::webhooks::put(transaction, webhook, *expect)?,
        Write::DeleteWebhook(workspace, id) => tables::webhooks::delete(transaction, *workspace, *id)?,
        Write::NoteWebhookFailure(workspace, id, at) => {
            tables::webhooks::note_failure(transaction, *workspace, *id, *at)?;
        }
        Write::EndWebhookFailures(workspace, id) => tables::webhooks::end_failures(transaction, *workspace, *id)?,
        Write::ExpectWebhook(workspace, id, status) => tables::webhooks::expect(transaction, *workspace, *id, *status)?,
        Write::InsertDelivery(delivery) => tables::webhooks::insert_delivery(transaction, delivery)?,
        Write::UpdateDelivery(update) => tables::webhooks::update_delivery(transaction, update)?,
        Write::MarkReplayed(workspace, id) => tables::webhooks::mark_replayed(transaction, *workspace, *id)?,
        Write::PutAutomation(put, expect) => automations::put(transaction, put, *expect).await?,
        Write::DeleteAutomation(workspace, id) => automations::delete(transaction, *workspace, *id).await?,
        Write::ExpectAutomation(workspace, id, status) => {
            tables::automations::expect(transaction, *workspace, *id, *status)?;
        }
        Write::PutRun(put) => automations::put_run(transaction, put).await?,
        Write::PutEntry(entry, expect) => tables::automations::put_entry(transaction, entry, *expect)?,
        Write::ExpectEntries(expected) => tables::automations::expect_entries(transaction, expected)?,
        Write::TakeNotes(take) => tables::automations::take_notes(transaction, take)?,
        Write::CountNodes(workspace, id, counts) => {
            automations::count_nodes(transaction, (*workspace, *id), counts).await?;
        }
        Write::PutDateFires(put) => automations::put_date_fires(transaction, put).await?,
        Write::TakeDateFire(workspace, id, fire) => {
            tables::automations::take_date_fire(transaction, *workspace, *id, fire)?;
        }
        Write::MoveRuns(change) => automations::move_runs(transaction, change).await?,
        Write::DeleteRuns(workspace, contact, limit) => {
            automations::delete_runs(transaction, *workspace, *contact, *limit).await?;
        }
        Write::CausedAt(depth) => transaction.depth = *depth,
        Write::KeepBlob(blob) => blobs::name(transaction, *blob),
        Write::AbandonBlob(blob) => blobs::abandon(transaction, *blob),
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => {}
        Write::Remember(reply) => tables::replies::remember(transaction, reply)?,
        Write::Enqueue(job) => jobs::enqueue(transaction, job),
        Write::EnqueueOnce(job) => jobs::enqueue_once(transaction, job),
        Write::MakeDue(jobs, at) => waking::make_due(transaction, jobs, *at),
        Write::Suspend(suspension) => tables::operator_queue::suspend(transaction, suspension)?,
        Write::LiftSuspension(scope) => tables::operator_queue::lift(transaction, scope)?,
        Write::WakeLane(lane, at) => waking::wake_lane(transaction, lane, *at).await.map(drop)?,
        Write::FinishJob(handle) => jobs::finish(transaction, handle)?,
        Write::RemoveJob(place) => jobs::remove(transaction, place)?,
        Write::RescheduleJob(handle, to) => jobs::reschedule(transaction, handle, to)?,
        Write::PutJobBack(handle, to) => jobs::put_back(transaction, handle, *to)?,
        Write::SaveJob(handle, payload) => jobs::save(transaction, handle, payload)?,
        Write::HoldJob(handle) => jobs::require_lease(transaction, handle)?,
    }
    Ok(())
}
