use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::{Acceptance, Answer, Content, Outcome, OutcomeClass, PushContent, Transport};
use messaging_transport::{Options, Sandbox, defaults, mime};
use serde_json::{Value, json};

use crate::support::{email, outgoing};

#[tokio::test]
async fn an_email_is_captured_as_its_source() {
    let email = email();
    let source = mime::build(&email).unwrap();
    let sent = Sandbox::default()
        .send(&outgoing(&["ann@example.com", "b@example.com"], Content::Email(Box::new(email))))
        .await
        .unwrap();
    assert_eq!(sent.captured.unwrap(), source);
    assert_eq!(sent.outcomes.len(), 2);
    for outcome in &sent.outcomes {
        let Outcome::Answered(Answer { class: OutcomeClass::Accepted(Acceptance::Delivered), response, .. }) = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!((response.code, response.host.as_deref()), (Some(250), Some("sandbox")));
        assert_eq!((response.enhanced.as_deref(), response.text.as_str()), (Some("2.0.0"), "2.0.0 captured"));
    }
}

#[tokio::test]
async fn other_channels_are_captured_as_a_document() {
    let message = PushContent { title: Some("Hi".into()), text: "There".into(), ..PushContent::default() };
    let sent = Sandbox::default().send(&outgoing(&["token"], Content::Push(Box::new(message)))).await.unwrap();
    let document: Value = serde_json::from_slice(&sent.captured.unwrap()).unwrap();
    assert_eq!(
        document,
        json!({"channel": "push", "to": "token", "title": "Hi", "text": "There", "image": null, "data": {}})
    );
}

#[tokio::test]
async fn an_email_that_cannot_be_built_is_an_error() {
    let mut email = email();
    email.headers.push(("X Y".into(), "z".into()));
    assert!(Sandbox::default().send(&outgoing(&["a@b.co"], Content::Email(Box::new(email)))).await.is_err());
}

#[test]
fn a_server_starts_with_a_sandbox_for_every_channel() {
    let found: Vec<_> =
        defaults(&Options::new("mail.example.com")).iter().map(|(channel, name, _)| (*channel, *name)).collect();
    for channel in Channel::ALL {
        assert!(found.contains(&(channel, "sandbox")), "{channel}");
    }
    let others =
        [(Channel::Email, "builtin"), (Channel::Email, "smtp"), (Channel::Sms, "http"), (Channel::Viber, "http")];
    for one in others.into_iter().chain([(Channel::Sms, "twilio"), (Channel::Sms, "vonage")]) {
        assert!(found.contains(&one), "{one:?}");
    }
    let names: std::collections::HashSet<_> = found.iter().collect();
    assert_eq!(names.len(), found.len(), "each stands there once");
}
