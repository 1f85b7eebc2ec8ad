//! Relays at private addresses.

use super::*;

#[tokio::test]
async fn a_relay_at_a_private_address_is_not_connected_to_unless_that_is_allowed() {
    let server = ScriptedSmtpServer::start().await;
    for host in ["127.0.0.1", "localhost", "0x7f.1", "::ffff:127.0.0.1"] {
        let mut settings = settings(&server, "none");
        settings["host"] = host.into();
        let relay = builder(&server).allow_private(false).build();
        let sent = relay.send(&message(&settings, &["a@b.co"], email())).await;
        // A spelling that is no host is refused as such.
        let Ok(sent) = sent else { continue };
        let Outcome::Answered(Answer { class: OutcomeClass::Auth, response, .. }) = &sent.outcomes[0] else {
            panic!("{sent:?}")
        };
        assert!(response.text.contains(&format!("the address of {host} is private")), "{response:?}");
        assert!(response.text.contains("--allow-private-targets permits it"), "{response:?}");
        assert!(sent.dialogs[0].transcript.iter().all(|line| !line.starts_with("< ")), "{sent:?}");
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(word(&send(&relay(&server), &server, &["a@b.co"]).await), "accepted");
}

#[tokio::test]
async fn settings_that_name_a_private_host_are_found_out() {
    let relay = |allow| SmtpRelay::builder().allow_private(allow).build();
    let check = |allow, host: &str| relay(allow).check(json!({"host": host}).as_object().unwrap());
    for host in ["127.0.0.1", "10.1.2.3", "[::1]", "::1", "localhost", "a.LOCALHOST", "0x7f.1", "2130706433", "fd00::1"]
    {
        assert_eq!(check(false, host).unwrap_err().member, "host", "{host}");
        assert_eq!(check(true, host), Ok(()), "{host}");
    }
    for host in ["smtp.example.com", "1.1.1.1", "2606:4700::1", "a b", ""] {
        assert_eq!(check(false, host), Ok(()), "{host}");
    }
}
