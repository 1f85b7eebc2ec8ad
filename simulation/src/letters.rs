//! Bounces by mail: a mail server accepted a message and could not deliver it after all.

use std::sync::Arc;

use messaging_core::domain::mail::report::{Action, RecipientReport, Report};
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::Response;
use messaging_engine::{App, Error};

use crate::world::World;

/// The longest time until a bounce, in seconds.
const LATEST: u64 = 300;

/// Number of times that a mail server tries to return a bounce.
const MAX_TRIES: usize = 60;

/// Sends a bounce to the envelope sender of a message after a while, repeatedly until it is accepted.
pub(crate) fn send_back(world: &Arc<World>, message: MessageId, sender: String, recipient: String) {
    world.ledger().count_fault("bounced after it was taken");
    world.letters.change(|letters| *letters += 1);
    let world = Arc::clone(world);
    tokio::spawn(async move {
        world.ledger().returned.insert((message, recipient.clone()));
        for _ in 0..MAX_TRIES {
            let pause = world.draw(|dice| dice.span(0, LATEST));
            tokio::time::sleep(pause).await;
            let Some(cluster) = world.cluster() else { break };
            let wish = world.draw(|dice| dice.index(8));
            let running = cluster.any(wish).await;
            let taken = tokio::select! {
                biased;
                () = running.life.over() => None,
                taken = hand_over(&running.app, &sender, &recipient) => Some(taken),
            };
            world.note(format_args!("a letter about {message} to {recipient}: {taken:?}"));
            match taken {
                Some(Ok(())) => break,
                Some(Err(Error::Internal(error))) => {
                    world.ledger().broken(format!("a letter about {message} ends with {error}"));
                }
                _ => {}
            }
        }
        world.letters.change(|letters| *letters -= 1);
    });
}

async fn hand_over(app: &App, sender: &str, recipient: &str) -> Result<(), Error> {
    let Some(to) = app.return_address(sender).await? else { return Err(Error::NotFound) };
    let response = Response { code: Some(550), enhanced: Some("5.1.1".to_owned()), ..Response::default() };
    let report = RecipientReport { addresses: vec![recipient.to_owned()], action: Action::Failed, response };
    app.receive(&to, &Report::Delivery(vec![report])).await
}
