//! TLS where it is offered and works.

use super::*;

#[tokio::test]
async fn tls_is_spoken_with_whoever_offers_it() {
    // A certificate for another name, signed by nobody that is known.
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls().named(&["elsewhere.test"])]).await;
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0");
    assert!(bed.first().messages()[0].is_tls);
    assert_eq!(sent.dialogs[0].tls.as_ref().map(|tls| tls.version.as_str()), Some("TLSv1.3"));
    let transcript = transcript(&sent.dialogs[0], bed.port);
    assert!(transcript.contains("> STARTTLS\n< 220 2.0.0 go\n* TLSv1.3 started\n> EHLO client.test"), "{transcript}");
}

#[tokio::test]
async fn without_working_tls_the_message_goes_in_plain_text() {
    let injected = b"220 go\r\n250-scripted.test\r\n250 STARTTLS\r\n";
    for action in [
        Action::reply("502 5.5.1 not really"),
        Action::reply("454 4.7.0 not now"),
        Action::ReplyAndClose("220 go".into()),
        Action::Raw(b"220 go\r\n220 this is no handshake\r\n".to_vec()),
        Action::Raw(injected.to_vec()),
        Action::Close,
    ] {
        let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls()]).await;
        bed.first().next(Stage::StartTls, action.clone());
        let delivery = bed.delivery();
        let sent = attempt(&delivery, &message(&["a@b.test"], email())).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0", "{action:?}");
        assert!(!bed.first().messages()[0].is_tls);
        let [dialog] = &sent.dialogs[..] else { panic!("one dialog") };
        assert_eq!((dialog.tls.clone(), dialog.outcome), (None, AttemptOutcome::Delivered));
        assert!(transcript(dialog, bed.port).contains("* TLS failed, plain text is next"), "{dialog:?}");
        assert_eq!(bed.connections(), [2]);

        // The next connection does not try again at once.
        delivery.close().await;
        assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
        assert_eq!(bed.connections(), [3]);
        let tried = bed.first().commands().iter().filter(|command| *command == "STARTTLS").count();
        assert_eq!(tried, 1, "{action:?}");
    }
}

#[tokio::test]
async fn a_peer_that_hangs_in_the_handshake_is_spoken_to_in_plain_text() {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls()]).await;
    // The peer says yes and never answers the handshake: it takes it for commands that have no end.
    bed.first().next(Stage::StartTls, Action::Raw(b"220 go\r\n".to_vec()));
    let timeouts = Timeouts { handshake: IMPATIENCE, ..PATIENT };
    let delivery = bed.builder().timeouts(timeouts).build();
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    assert!(!bed.first().messages()[0].is_tls);
}
