//! Turns that are reserved before the content is read.

use std::sync::Arc;

use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::transport::{Reservation, Route};

use super::*;

fn route(message: &Outgoing) -> Route {
    Route {
        recipient: None,
        terms: PathTerms::default(),
        workspace_id: message.workspace_id,
        class: JobClass::Transactional,
        settings: Arc::clone(&message.settings),
        domain: Some("b.test".to_owned()),
    }
}

#[tokio::test]
async fn a_turn_is_had_without_content_and_used_for_it() {
    let bed = Bed::start(1).await;
    let delivery = bed.builder().concurrency(1, 1).timeouts(Timeouts { queue: IMPATIENCE, ..PATIENT }).build();
    let mut first = message(&["a@b.test"], email());
    first.reservation = delivery.reserve(&route(&first)).await;
    // The only turn is taken: the next message is put off, with a reservation and without.
    let mut second = message(&["c@b.test"], email());
    assert_eq!(words(&attempt(&delivery, &second).await), "deferred - 4.4.5");
    second.reservation = delivery.reserve(&route(&second)).await;
    assert_eq!(words(&attempt(&delivery, &second).await), "deferred - 4.4.5");
    assert_eq!(words(&attempt(&delivery, &first).await), "accepted 250 2.0.0");
    assert_eq!(words(&attempt(&delivery, &message(&["d@b.test"], email())).await), "accepted 250 2.0.0");
}

#[tokio::test]
async fn a_turn_that_is_not_used_is_given_back() {
    let bed = Bed::start(1).await;
    let delivery = bed.builder().concurrency(1, 1).timeouts(Timeouts { queue: IMPATIENCE, ..PATIENT }).build();
    let message = message(&["a@b.test"], email());
    drop(delivery.reserve(&route(&message)).await);
    // A reservation for another domain does not count, and holds nobody up.
    let elsewhere = Route { domain: Some("c.test".to_owned()), ..route(&message) };
    let message = Outgoing { reservation: delivery.reserve(&elsewhere).await, ..message };
    assert_eq!(words(&attempt(&delivery, &message).await), "accepted 250 2.0.0");
    assert!(Reservation::default().take::<u8>().is_none());
}
