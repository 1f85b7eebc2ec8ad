//! Sends to the recipients of a message, each with a request of its own.

use messaging_core::ports::transport::{Admitted, Answer, LastLook, Outcome, Outgoing, Sent};

/// Asks for permission to send the request for a recipient. `Some` is the outcome if it may not leave.
///
/// Called right before the request leaves: everything else that it needs, such as an access token, is there already.
pub(crate) async fn refused_by_last_look(last_look: &LastLook, recipient: &str) -> Option<Outcome> {
    if last_look.is_held() {
        return Some(Outcome::Held);
    }
    let admitted = last_look.begin(std::slice::from_ref(&recipient.to_owned())).await;
    admitted.into_iter().find_map(Admitted::refusal)
}

/// Sends to one recipient after another, if permitted, and puts each outcome on record before the next begins.
pub(crate) async fn to_each<F, Answered>(outgoing: &Outgoing, send: F) -> Sent
where
    F: Fn(String) -> Answered + Sync,
    Answered: Future<Output = Answer> + Send,
{
    let mut outcomes = Vec::with_capacity(outgoing.recipients.len());
    for recipient in &outgoing.recipients {
        let outcome = if let Some(refusal) = refused_by_last_look(&outgoing.last_look, recipient).await {
            refusal
        } else {
            let outcome = Outcome::from(send(recipient.clone()).await);
            outgoing.last_look.ended(recipient, &outcome);
            outcome
        };
        outcomes.push(outcome);
    }
    Sent { outcomes, ..Sent::default() }
}
