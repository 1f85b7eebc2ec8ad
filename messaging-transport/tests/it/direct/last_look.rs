//! Recipients that were suppressed while a message waited get nothing, and nothing leaves without admission.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::ports::transport::{Admission, Admitted, EnvelopeFrom, LastLook};

use super::*;
use crate::support::address as mailbox;

/// Suppresses addresses that start with `no`, and does not admit those that start with `wait`.
#[derive(Debug, Default)]
struct List {
    /// Calls of the port, in order.
    notes: Mutex<Vec<String>>,
}

impl List {
    fn note(&self, what: String) {
        self.notes.lock().unwrap().push(what);
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }
}

#[async_trait]
impl Admission for List {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        recipients.iter().map(|it| it.starts_with("no").then_some(SuppressionReason::Complaint)).collect()
    }

    async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        self.note(format!("begin {}", recipients.join(" ")));
        let admit = |recipient: &String| {
            if recipient.starts_with("wait") {
                Admitted::NotNow("the disk is full".to_owned())
            } else {
                Admitted::Granted
            }
        };
        recipients.iter().map(admit).collect()
    }

    fn ended(&self, recipient: &str, outcome: &Outcome) {
        let outcomes = vec![outcome.clone()];
        self.note(format!("{recipient} {}", words(&Sent { outcomes, ..Sent::default() })));
    }
}

fn asking(list: &Arc<List>, recipients: &[&str], email: Email) -> Outgoing {
    Outgoing { last_look: LastLook::at(Arc::clone(list) as _), ..message(recipients, email) }
}

/// Returns an email with another envelope sender for each recipient.
fn from_each(recipients: &[&str]) -> Email {
    let sender = |number| mailbox(&format!("bounce+{number}@mail.acme.com"));
    Email { envelope_from: EnvelopeFrom::PerRecipient((0..recipients.len()).map(sender).collect()), ..email() }
}

/// Sends over a connection whose greeting took so long.
async fn send_after(wait: Duration, recipients: &[&str]) -> (Bed, Sent) {
    let bed = Bed::start(1).await;
    let gate = bed.first().gate(Stage::Greeting);
    let delivery = bed.delivery();
    let message = asking(&Arc::default(), recipients, email());
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

/// A list that admits nobody at the moment.
#[derive(Debug)]
struct Closed;

#[async_trait]
impl Admission for Closed {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        vec![None; recipients.len()]
    }

    async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        vec![Admitted::Held; recipients.len()]
    }

    fn ended(&self, _: &str, _: &Outcome) {}

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

#[tokio::test]
async fn each_sender_has_a_transaction_that_begins_after_its_recipient_was_accepted() {
    for is_pipelined in [true, false] {
        let builder = ScriptedSmtpServer::builder();
        let bed = Bed::with(vec![if is_pipelined { builder } else { builder.without_pipelining() }]).await;
        bed.first().answer("gone@b.test", "550 5.1.1 no such user");
        let recipients = ["one@b.test", "gone@b.test", "two@b.test"];
        let list = Arc::default();
        let sent = attempt(&bed.delivery(), &asking(&list, &recipients, from_each(&recipients))).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0, refused 550 5.1.1, accepted 250 2.0.0");
        let messages = bed.first().messages();
        let carried: Vec<_> = messages.iter().map(|one| (one.from.as_str(), one.recipients[0].as_str())).collect();
        let expected = [("bounce+0@mail.acme.com", "one@b.test"), ("bounce+2@mail.acme.com", "two@b.test")];
        assert_eq!(carried, expected);
        assert_eq!(bed.connections(), [1]);
        let expected = [
            "begin one@b.test",
            "one@b.test accepted 250 2.0.0",
            "gone@b.test refused 550 5.1.1",
            "begin two@b.test",
            "two@b.test accepted 250 2.0.0",
        ];
        assert_eq!(list.notes(), expected);
    }
}

#[tokio::test]
async fn what_is_not_admitted_does_not_leave_and_the_others_do() {
    for is_pipelined in [true, false] {
        let builder = ScriptedSmtpServer::builder();
        let bed = Bed::with(vec![if is_pipelined { builder } else { builder.without_pipelining() }]).await;
        let recipients = ["wait@b.test", "yes@b.test"];
        let withheld = "withheld the disk is full, accepted 250 2.0.0";
        let sent = attempt(&bed.delivery(), &asking(&Arc::default(), &recipients, from_each(&recipients))).await;
        assert_eq!(words(&sent), withheld, "{is_pipelined}");
        // The same with recipients that would have shared a transaction.
        let sent = attempt(&bed.delivery(), &asking(&Arc::default(), &recipients, email())).await;
        assert_eq!(words(&sent), withheld, "{is_pipelined}");
        let arrived: Vec<_> = bed.first().messages().into_iter().map(|message| message.recipients).collect();
        assert_eq!(arrived, [["yes@b.test"], ["yes@b.test"]], "{is_pipelined}");
    }
}

#[tokio::test]
async fn a_peer_that_takes_one_transaction_a_connection_gets_all() {
    for action in [Action::Close, Action::ReplyAndClose("421 4.7.0 one at a time".into())] {
        let bed = Bed::start(1).await;
        for _ in 0..14 {
            bed.first().next(Stage::Mail, Action::reply("250 ok"));
            bed.first().next(Stage::Mail, action.clone());
        }
        let recipients: Vec<_> = (0..15).map(|number| format!("r{number}@b.test")).collect();
        let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
        let sent = attempt(&bed.delivery(), &message(&recipients, from_each(&recipients))).await;
        assert_eq!(words(&sent), ["accepted 250 2.0.0"; 15].join(", "), "{action:?}");
        assert_eq!((bed.first().messages().len(), bed.connections()), (15, vec![15]), "{action:?}");
    }
}

#[tokio::test]
async fn a_lost_reply_is_ambiguous_for_the_recipient_of_its_transaction_alone() {
    let bed = Bed::start(2).await;
    bed.first().next(Stage::Dot, Action::reply("250 2.0.0 taken"));
    bed.first().next(Stage::Dot, Action::LoseReply);
    let recipients = ["a@b.test", "b@b.test", "c@b.test"];
    let sent = attempt(&bed.delivery(), &message(&recipients, from_each(&recipients))).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0, ambiguous - 4.4.2, deferred - 4.4.2");
    assert_eq!(bed.connections(), [1, 0]);
}

#[tokio::test]
async fn a_refusal_of_the_sender_is_for_all_and_one_of_the_content_for_its_recipient() {
    let recipients = ["a@b.test", "b@b.test"];
    for (stage, expected) in [
        (Stage::Mail, "refused 550 5.7.1, refused 550 5.7.1"),
        (Stage::Data, "refused 550 5.7.1, accepted 250 2.0.0"),
        (Stage::Dot, "refused 550 5.7.1, accepted 250 2.0.0"),
    ] {
        let bed = Bed::start(1).await;
        bed.first().next(stage, Action::reply("550 5.7.1 no"));
        let sent = attempt(&bed.delivery(), &message(&recipients, from_each(&recipients))).await;
        assert_eq!(words(&sent), expected, "{stage:?}");
    }
}
