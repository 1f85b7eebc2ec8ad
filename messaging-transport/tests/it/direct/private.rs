//! Exchangers at private addresses.

use super::*;

#[tokio::test]
async fn an_exchanger_at_a_private_address_is_put_off_and_not_dialed() {
    let bed = Bed::start(1).await;
    let guarded = bed.builder().allow_private(false).build();
    let sent = attempt(&guarded, &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "deferred - 4.4.4");
    let text = "4.4.4 the address of mx1.b.test is private; --allow-private-targets permits it";
    assert_eq!(response(&sent).text, text);
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Deferred)]);
    assert_eq!(bed.connections(), [0]);
    assert_eq!(send(&bed.delivery(), &["a@b.test"]).await, "accepted 250 2.0.0");
}

#[tokio::test]
async fn an_override_is_the_operators_word() {
    let bed = Bed::start(1).await;
    let fixed = format!("127.0.0.1:{}", bed.port).parse().unwrap();
    let delivery = bed.builder().allow_private(false).mx_override(Some(fixed)).build();
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
}
