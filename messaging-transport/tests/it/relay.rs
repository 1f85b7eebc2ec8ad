//! The relay client against a scripted peer.

mod opening;
mod private;
mod refusal;
mod reuse;
mod transaction;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::ports::transport::{
    Acceptance, Answer, Content, Email, Outcome, OutcomeClass, Outgoing, Response, Transport, TransportError,
};
use messaging_testing::ScriptedSmtpServer;
use messaging_transport::SmtpRelay;
use messaging_transport::relay::SmtpRelayBuilder;
use messaging_transport::smtp::Timeouts;
use serde_json::{Value, json};

use crate::support::{email, kind_of, outgoing};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// For peers that are silent on purpose.
const IMPATIENCE: Duration = Duration::from_millis(100);

fn builder(server: &ScriptedSmtpServer) -> SmtpRelayBuilder {
    let builder = SmtpRelay::builder().ehlo_name("client.test").timeouts(Timeouts::all(PATIENCE)).allow_private(true);
    server.root().into_iter().fold(builder, SmtpRelayBuilder::extra_root)
}

fn relay(server: &ScriptedSmtpServer) -> SmtpRelay {
    builder(server).build()
}

fn settings(server: &ScriptedSmtpServer, tls: &str) -> Value {
    json!({"host": "127.0.0.1", "port": server.port(), "tls": tls})
}

fn with_login(server: &ScriptedSmtpServer, tls: &str, username: &str, password: &str) -> Value {
    let mut settings = settings(server, tls);
    settings["username"] = username.into();
    settings["password"] = password.into();
    settings
}

fn message(settings: &Value, recipients: &[&str], email: Email) -> Outgoing {
    let mut message = outgoing(recipients, Content::Email(Box::new(email)));
    message.settings = Arc::new(settings.as_object().unwrap().clone());
    message
}

/// Sends the usual message in plain text.
async fn send(
    relay: &SmtpRelay,
    server: &ScriptedSmtpServer,
    recipients: &[&str],
) -> Result<Vec<Outcome>, TransportError> {
    send_with(relay, &settings(server, "none"), recipients, email()).await
}

async fn send_with(
    relay: &SmtpRelay,
    settings: &Value,
    recipients: &[&str],
    email: Email,
) -> Result<Vec<Outcome>, TransportError> {
    let message = message(settings, recipients, email);
    let sent = tokio::time::timeout(3 * PATIENCE, relay.send(&message)).await.expect("every attempt ends");
    sent.map(|sent| {
        assert!(sent.captured.is_none());
        assert_eq!(sent.outcomes.len(), recipients.len());
        assert_eq!(sent.dialogs.len(), usize::from(!recipients.is_empty()));
        sent.outcomes
    })
}

/// A word for the kind of result: one for all where there was no reply, else one for each recipient.
fn word(result: &Result<Vec<Outcome>, TransportError>) -> String {
    let outcomes = match result {
        Ok(outcomes) => outcomes,
        Err(TransportError::Misconfigured(_)) => return "misconfigured".into(),
        Err(TransportError::Content(_)) => return "content".into(),
        Err(other) => panic!("an answer for each recipient, not {other}"),
    };
    let text = match outcomes.first() {
        Some(Outcome::Answered(it)) if it.class.is_retried() && it.response.code.is_none() => it.response.text.as_str(),
        _ => return outcomes.iter().map(|outcome| summary(outcome).0).collect::<Vec<_>>().join(" "),
    };
    assert!(outcomes.iter().all(|outcome| outcome == &outcomes[0]));
    let word = match text.split(':').next() {
        Some("the provider's settings do not work") => "misconfigured",
        Some("the peer could not be reached") => "unreachable",
        Some("the final reply was lost") => "ambiguous",
        _ => panic!("{text}"),
    };
    assert_eq!(word == "ambiguous", outcomes[0].class() == Some(OutcomeClass::Ambiguous));
    word.into()
}

fn summary(outcome: &Outcome) -> (&'static str, &Response) {
    match outcome {
        Outcome::Answered(Answer { class, response, .. }) => (kind_of(*class, Acceptance::Relayed), response),
        other @ (Outcome::Suppressed(_) | Outcome::Withheld(_) | Outcome::Held) => {
            panic!("everybody is admitted here: {other:?}")
        }
    }
}

#[track_caller]
fn assert_outcome(outcome: &Outcome, kind: &str, code: u16, enhanced: Option<&str>, text: &str) {
    let (found, response) = summary(outcome);
    assert_eq!((found, response.code, response.enhanced.as_deref()), (kind, Some(code), enhanced));
    assert_eq!(response.text, text);
    assert_eq!(response.host.as_deref(), Some("127.0.0.1"));
}

/// An email whose content does not fit into the buffers of a socket.
fn large_email() -> Email {
    let mut email = email();
    email.text = Some("A line of text that is not short, and so on and on.\r\n".repeat(400_000));
    email
}
