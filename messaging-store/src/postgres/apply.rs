//! One write: which aggregate it belongs to.

use messaging_core::changes::Write;

use super::fault::Fault;
use super::lists::Join;
use super::transaction::Transaction;
use super::{accounts, audiences, contacts, jobs, lists, product_events, segments, waking};

/// Applies writes inside the open transaction, in order. Joins of lists that follow one another are one write.
pub(super) async fn apply(transaction: &mut Transaction, writes: &[Write]) -> Result<(), Fault> {
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
        Write::PutUser(user, expect) => accounts::put_user(transaction, user, *expect)?,
        Write::PutSession(session) => accounts::put_session(transaction, session)?,
        Write::DeleteSession(token) => accounts::delete_session(transaction, token),
        Write::TouchSession(token, at) => accounts::touch_session(transaction, token, *at),
        Write::PutTicket(ticket) => accounts::put_ticket(transaction, ticket)?,
        Write::TakeTicket(digest) => accounts::take_ticket(transaction, digest),
        Write::PutWorkspace(workspace, expect) => accounts::put_workspace(transaction, workspace, *expect)?,
        Write::PutMember(member, expect) => accounts::put_member(transaction, member, *expect)?,
        Write::DeleteMember(workspace, user) => accounts::delete_member(transaction, *workspace, *user),
        Write::PutSegment(segment, expect) => segments::put(transaction, segment, *expect).await?,
        Write::DeleteSegment(workspace, id) => segments::delete(transaction, *workspace, *id).await?,
        Write::PutAudience(row) => audiences::put(transaction, row),
        Write::TakeAddresses(workspace, campaign, digests) => {
            audiences::take(transaction, *workspace, *campaign, digests);
        }
        Write::ForgetAddresses(workspace, campaign) => audiences::forget_addresses(transaction, *workspace, *campaign),
        Write::LeaveOutAddresses(workspace, campaign, piece, entries) => {
            audiences::leave_out(transaction, *workspace, *campaign, *piece, entries);
        }
        Write::ForgetLeftOut(workspace, campaign) => audiences::forget_left_out(transaction, *workspace, *campaign),
        Write::PutContacts(puts) => contacts::put(transaction, puts).await?,
        Write::DeleteContact(workspace, id) => contacts::delete(transaction, *workspace, *id).await?,
        Write::AppendProductEvents(events) => product_events::append(transaction, events).await?,
        Write::MoveProductEvents(change) => product_events::relocate(transaction, change).await?,
        Write::DeleteProductEvents(workspace, contact, limit) => {
            product_events::delete(transaction, *workspace, *contact, *limit).await?;
        }
        Write::PutList(list, expect) => lists::put(transaction, list, *expect),
        Write::DeleteList(workspace, id) => lists::delete(transaction, *workspace, *id),
        Write::JoinList(workspace, list, contact, at) => {
            lists::join(transaction, &[Join { workspace: *workspace, list: *list, contact: *contact, at: *at }])
                .await?;
        }
        Write::LeaveList(workspace, list, contact, at) => {
            lists::leave(transaction, *workspace, (*list, *contact), *at).await?;
        }
        Write::CountMessages(count) => transaction.deltas.add(count),
        Write::CausedAt(depth) => transaction.depth = *depth,
        Write::Enqueue(job) => jobs::enqueue(transaction, job),
        Write::EnqueueOnce(job) => jobs::enqueue_once(transaction, job),
        Write::WakeLane(lane, at) => waking::wake_lane(transaction, lane, *at).await.map(drop)?,
        Write::FinishJob(handle) => jobs::finish(transaction, handle)?,
        Write::RemoveJob(place) => jobs::remove(transaction, place)?,
        Write::RescheduleJob(handle, to) => jobs::reschedule(transaction, handle, to)?,
        Write::PutJobBack(handle, to) => jobs::put_back(transaction, handle, *to)?,
        Write::SaveJob(handle, payload) => jobs::save(transaction, handle, payload)?,
        Write::HoldJob(handle) => jobs::require_lease(transaction, handle)?,
        // What is observed is for the process alone.
        Write::Observe(_) => {}
        _ => return Err(Fault::Malformed("not yet")),
    }
    Ok(())
}
