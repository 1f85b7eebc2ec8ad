//! Limits of mail to one domain at a time, and a domain that cannot be reached.

use std::sync::Arc;

use super::*;

/// Starts sending to a recipient in a task of its own.
fn spawn(delivery: &Arc<DirectDelivery>, recipient: &str) -> tokio::task::JoinHandle<String> {
    let (delivery, recipient) = (Arc::clone(delivery), recipient.to_owned());
    tokio::spawn(async move { send(&delivery, &[&recipient]).await })
}

#[tokio::test]
async fn a_dead_domain_is_left_alone_for_a_while() {
    let bed = Bed::start(2).await;
    bed.exchangers("dead.test", &[8, 9]);
    let delivery = bed.builder().rest(PATIENCE).build();
    let first = attempt(&delivery, &message(&["a@dead.test"], email())).await;
    assert_eq!(words(&first), "deferred - 4.4.1");
    assert_eq!(ends(&first), [("mx8.b.test", AttemptOutcome::Deferred), ("mx9.b.test", AttemptOutcome::Deferred)]);
    let second = attempt(&delivery, &message(&["a@dead.test", "a@b.test"], email())).await;
    assert_eq!(words(&second), "deferred - 4.4.1, accepted 250 2.0.0");
    let text = &response(&second).text;
    assert!(text.starts_with(&response(&first).text) && text.contains("(not tried again: the same failed"), "{text}");
    assert_eq!(ends(&second), [("mx1.b.test", AttemptOutcome::Delivered)]);
}

#[tokio::test]
async fn a_dead_domain_is_tried_again_when_an_operator_asks_for_it() {
    let bed = Bed::start(1).await;
    let delivery = Arc::new(bed.builder().rest(PATIENCE).build());
    bed.first().next(Stage::Greeting, Action::Close);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.1");
    for other in ["c.test", "unknown.test"] {
        delivery.forget_unreachable(other);
    }
    assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.1");
    assert_eq!(bed.connections(), [1]);
    delivery.forget_unreachable("b.test");
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!(bed.connections(), [2]);
}

#[tokio::test]
async fn a_dead_domain_is_probed_by_one_message() {
    let bed = Bed::start(1).await;
    let delivery = Arc::new(bed.builder().rest(Duration::ZERO).build());
    bed.first().next(Stage::Greeting, Action::Close);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.1");

    let gate = bed.first().gate(Stage::Greeting);
    let probe = spawn(&delivery, "a@b.test");
    gate.reached().await;
    for _ in 0..3 {
        assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.1");
    }
    assert_eq!(bed.connections(), [2]);
    gate.open();
    assert_eq!(probe.await.unwrap(), "accepted 250 2.0.0");
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
}

#[tokio::test]
async fn whoever_waits_for_a_turn_learns_that_the_domain_died() {
    let bed = Bed::start(1).await;
    let delivery = Arc::new(bed.builder().concurrency(1, 1).build());
    let gate = Gate::default();
    bed.first().always(Stage::Greeting, Action::Wait(gate.clone()));
    bed.first().always(Stage::Ehlo, Action::Close);
    let mut tasks: Vec<_> = (0..5).map(|_| spawn(&delivery, "a@b.test")).collect();
    gate.reached().await;
    gate.open();
    for task in tasks.drain(..) {
        assert_eq!(task.await.unwrap(), "deferred - 4.4.1");
    }
    assert_eq!(bed.connections(), [1]);
}

#[tokio::test]
async fn only_so_many_messages_are_on_their_way_to_a_domain() {
    let bed = Bed::start(1).await;
    let timeouts = Timeouts { queue: IMPATIENCE, ..PATIENT };
    let delivery = Arc::new(bed.builder().timeouts(timeouts).concurrency(2, 2).build());
    let gates = [bed.first().gate(Stage::Dot), bed.first().gate(Stage::Dot)];
    let running: Vec<_> = gates.iter().map(|_| spawn(&delivery, "a@b.test")).collect();
    for gate in &gates {
        gate.reached().await;
    }
    assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.5");
    assert_eq!(bed.connections(), [2]);
    // Another domain has a lane of its own.
    bed.exchangers("c.test", &[1]);
    assert_eq!(send(&delivery, &["a@c.test"]).await, "accepted 250 2.0.0");
    gates.iter().for_each(Gate::open);
    for task in running {
        assert_eq!(task.await.unwrap(), "accepted 250 2.0.0");
    }
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
}

#[tokio::test]
async fn a_domain_that_takes_everything_gets_more_at_a_time() {
    let bed = Bed::start(1).await;
    let delivery = Arc::new(bed.builder().concurrency(1, 3).build());
    // One fine message makes two at a time, two more make three.
    for _ in 0..3 {
        send(&delivery, &["a@b.test"]).await;
    }
    let gates: Vec<_> = (0..3).map(|_| bed.first().gate(Stage::Dot)).collect();
    let running: Vec<_> = gates.iter().map(|_| spawn(&delivery, "a@b.test")).collect();
    for gate in &gates {
        gate.reached().await;
    }
    gates.iter().for_each(Gate::open);
    for task in running {
        assert_eq!(task.await.unwrap(), "accepted 250 2.0.0");
    }
}

#[tokio::test]
async fn a_receiver_that_wants_less_gets_it_slower() {
    let bed = Bed::start(1).await;
    // The pause that follows is longer than anybody waits for a turn.
    let timeouts = Timeouts { queue: Duration::from_millis(1), ..PATIENT };
    for reply in ["421 4.7.0 too many messages from you", "450 4.7.1 you are sending too fast"] {
        let delivery = bed.builder().timeouts(timeouts).build();
        bed.first().next(Stage::Mail, Action::reply(reply));
        assert_eq!(send(&delivery, &["a@b.test"]).await, format!("deferred {}", &reply[..9]));
        tokio::time::pause();
        assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred - 4.4.5");
        tokio::time::resume();
    }
    let delivery = bed.builder().timeouts(timeouts).build();
    bed.first().next(Stage::Mail, Action::reply("450 4.7.1 greylisted"));
    assert_eq!(send(&delivery, &["a@b.test"]).await, "deferred 450 4.7.1");
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
}

#[tokio::test]
async fn an_override_has_room_for_ten_connections() {
    let bed = Bed::start(1).await;
    let fixed = format!("127.0.0.1:{}", bed.port).parse().unwrap();
    let delivery = Arc::new(bed.builder().mx_override(Some(fixed)).build());
    let gates: Vec<_> = (0..10).map(|_| bed.first().gate(Stage::Dot)).collect();
    let recipients = (0..10).map(|number| format!("a@d{}.test", number % 2));
    let running: Vec<_> = recipients.map(|recipient| spawn(&delivery, &recipient)).collect();
    for gate in &gates {
        gate.reached().await;
    }
    assert_eq!(bed.connections(), [10]);
    gates.iter().for_each(Gate::open);
    for task in running {
        assert_eq!(task.await.unwrap(), "accepted 250 2.0.0");
    }
}
