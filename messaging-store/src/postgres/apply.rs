//! One write: which aggregate it belongs to.

use messaging_core::changes::Write;

use super::fault::Fault;
use super::transaction::Transaction;
use super::{accounts, attempts, events, messages, suppressions, webhooks};

/// Applies a write inside the open transaction: queues its statements, or asks where it has to look first.
pub(super) async fn apply(transaction: &mut Transaction, write: &Write) -> Result<(), Fault> {
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
        Write::PutSuppression(suppression, expect) => suppressions::put(transaction, suppression, *expect).await?,
        Write::DeleteSuppression(workspace, id, at) => {
            suppressions::delete(transaction, *workspace, *id, *at).await?;
        }
        Write::InsertMessage(message, content) => messages::insert(transaction, message, content)?,
        Write::MoveMessage(movement) => messages::change_status(transaction, movement),
        Write::CountMessages(count) => transaction.deltas.add(count),
        Write::AttributeMessage(change) => messages::attribute(transaction, change).await?,
        Write::RedactMessage(redaction) => messages::redact(transaction, redaction).await?,
        Write::EraseCopy(erasure) => messages::erase_copy(transaction, erasure).await?,
        Write::ListCopies(workspace, message, keys) => messages::list_copies(transaction, *workspace, *message, keys),
        Write::UnlistCopy(workspace, message, key) => messages::unlist_copy(transaction, *workspace, *message, *key),
        Write::ExpectMessage(workspace, id, revision) => messages::expect(transaction, *workspace, *id, *revision),
        Write::AppendEvent(event) => messages::append_event(transaction, event).await?,
        Write::LogEvent(event) => events::log(transaction, event),
        Write::FollowEvents(workspace, until) => events::follow(transaction, *workspace, *until),
        Write::AppendAttempt(attempt) => attempts::append(transaction, attempt)?,
        Write::PutWebhook(webhook, expect) => webhooks::put(transaction, webhook, *expect)?,
        Write::DeleteWebhook(workspace, id) => webhooks::delete(transaction, *workspace, *id),
        Write::NoteWebhookFailure(workspace, id, at) => webhooks::note_failure(transaction, *workspace, *id, *at),
        Write::EndWebhookFailures(workspace, id) => webhooks::end_failures(transaction, *workspace, *id),
        Write::ExpectWebhook(workspace, id, status) => webhooks::expect(transaction, *workspace, *id, *status),
        Write::InsertDelivery(delivery) => webhooks::insert_delivery(transaction, delivery)?,
        Write::UpdateDelivery(update) => webhooks::update_delivery(transaction, update),
        Write::MarkReplayed(workspace, id) => webhooks::mark_replayed(transaction, *workspace, *id),
        Write::CausedAt(depth) => transaction.depth = *depth,
        // What is observed is for the process alone.
        Write::Observe(_) => {}
        _ => return Err(Fault::Malformed("not yet")),
    }
    Ok(())
}
