//! One write: which aggregate it belongs to.

use messaging_core::changes::Write;

use super::fault::Fault;
use super::lists::Join;
use super::transaction::Transaction;
use super::{accounts, contacts, lists, product_events};

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
        // What is observed is for the process alone.
        Write::Observe(_) => {}
        _ => return Err(Fault::Malformed("not yet")),
    }
    Ok(())
}
