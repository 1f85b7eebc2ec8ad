//! Who was suppressed while a message waited gets nothing.

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::suppression::SuppressionReason;
use messaging_core::ports::transport::{LastLook, Suppressed};

use super::*;

/// Everyone whose address starts with `no`.
#[derive(Debug)]
struct List;

#[async_trait]
impl Suppressed for List {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        recipients.iter().map(|it| it.starts_with("no").then_some(SuppressionReason::Complaint)).collect()
    }
}

/// Sends over a connection whose greeting took so long.
async fn send_after(wait: Duration, recipients: &[&str]) -> (Bed, Sent) {
    let bed = Bed::start(1).await;
    let gate = bed.first().gate(Stage::Greeting);
    let delivery = bed.delivery();
    let message = Outgoing { last_look: LastLook::at(Arc::new(List)), ..message(recipients, email()) };
    let (sent, ()) = tokio::join!(attempt(&delivery, &message), async {
        gate.reached().await;
        tokio::time::pause();
        tokio::time::advance(wait).await;
        tokio::time::resume();
        gate.open();
    });
    (bed, sent)
}

#[tokio::test]
async fn after_a_wait_the_list_is_asked_again() {
    let (bed, sent) = send_after(Duration::from_secs(2), &["yes@b.test", "no@b.test"]).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0, suppressed complaint");
    assert_eq!(bed.first().messages()[0].recipients, ["yes@b.test"]);
    assert!(!bed.first().commands().iter().any(|command| command.contains("no@b.test")));
}

#[tokio::test]
async fn with_nobody_left_there_is_no_transaction() {
    let (bed, sent) = send_after(Duration::from_secs(2), &["no@b.test"]).await;
    assert_eq!(words(&sent), "suppressed complaint");
    assert!(!bed.first().commands().iter().any(|command| command.starts_with("MAIL")));
}

/// A list that lets nobody through at the moment.
#[derive(Debug)]
struct Closed;

#[async_trait]
impl Suppressed for Closed {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        vec![None; recipients.len()]
    }

    fn is_held(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_is_held_never_reaches_the_wire_even_without_a_wait() {
    let bed = Bed::start(1).await;
    let message = Outgoing { last_look: LastLook::at(Arc::new(Closed)), ..message(&["yes@b.test"], email()) };
    let sent = attempt(&bed.delivery(), &message).await;
    assert_eq!(words(&sent), "held");
    assert!(!bed.first().commands().iter().any(|command| command.starts_with("MAIL")));
}

#[tokio::test]
async fn without_a_wait_the_check_of_core_is_fresh_enough() {
    let (_bed, sent) = send_after(Duration::ZERO, &["no@b.test"]).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0");
}
