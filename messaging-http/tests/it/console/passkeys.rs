//! Passkeys of the browser's authenticator: created, used, copied, and removed.

use std::time::Duration;

use messaging_core::scope::Role;
use messaging_engine::Settings;
use serde_json::{Value, json};

use super::audit::audit;
use super::authenticator::Authenticator;
use super::filled;
use super::page::{NAMED, Page};
use super::people::{PASSWORD, Person};
use crate::harness::TestServer;

const REFUSED: &str = "The passkey was refused.";

/// A server at [`NAMED`], which passkeys are kept for.
async fn server() -> TestServer {
    TestServer::built(filled::options(), |builder, _| builder.settings(Settings::default().public_url(NAMED))).await
}

/// Signs in by password and creates a passkey; returns the recovery codes.
async fn enrol(page: &Page, person: &Person) -> Vec<String> {
    page.load("#/sign-in").await;
    page.give_password(&person.email).await;
    page.load("#/account").await;
    page.press("button", "Add a passkey").await;
    page.expect_focus("textbox", "Name").await;
    page.fill("Name", "Laptop").await;
    page.press("button", "Go on").await;
    page.expect_focus("button", "Go on").await;
    page.press("button", "Go on").await;
    page.until_it_says("Keep these recovery codes").await;
    let codes = page.recovery_codes().await;
    page.press("button", "I have kept them").await;
    codes
}

#[tokio::test]
async fn a_passkey_signs_in_alone_and_after_the_password_until_it_is_removed() {
    let server = server().await;
    let Some(page) = Page::start_named(&server).await else { return };
    let device = Authenticator::of(&page.browser).await;
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    let codes = enrol(&page, &ann).await;
    assert_eq!(codes.len(), 10);
    let kept = device.passkeys().await;
    assert_eq!((&kept[0]["rpId"], kept.len()), (&json!("localhost"), 1), "{kept:?}");

    // One of a person on a device is enough.
    page.press("button", "Add a passkey").await;
    page.fill("Name", "The same laptop").await;
    page.press("button", "Go on").await;
    let mut found = audit(&page, true).await;
    page.press("button", "Go on").await;
    page.until_it_says("This device has a passkey of yours already.").await;
    found.extend(audit(&page, true).await);
    page.press("button", "Cancel").await;
    assert_eq!(device.passkeys().await.len(), 1);
    assert!(!page.text().await.contains("not confirmed"), "{}", page.text().await);

    server.clock.advance(Duration::from_secs(30));
    page.sign_out().await;
    page.press("button", "Use a passkey").await;
    page.expect_focus("button", "Use your passkey").await;
    found.extend(audit(&page, false).await);
    page.press("button", "Use your passkey").await;
    page.settle(Some("Home")).await;

    page.sign_out().await;
    page.give_password(&ann.email).await;
    page.expect_focus("button", "Use your passkey").await;
    found.extend(audit(&page, false).await);
    page.press("button", "Use your passkey").await;
    page.settle(Some("Home")).await;

    // A person who has lost the device has the recovery codes, each for one sign-in.
    server.clock.advance(Duration::from_secs(30));
    page.sign_out().await;
    page.give_password(&ann.email).await;
    page.press("button", "Use a recovery code").await;
    page.expect_focus("textbox", "Recovery code").await;
    page.fill("Recovery code", &codes[0]).await;
    page.press("button", "Sign in").await;
    page.settle(Some("Home")).await;

    page.load("#/account").await;
    assert!(page.text().await.contains("9 recovery codes left"), "{}", page.text().await);
    page.press("button", "Remove Laptop").await;
    page.expect_focus("textbox", "Code").await;
    found.extend(audit(&page, true).await);
    page.fill("or your password", PASSWORD).await;
    page.press("button", "Remove").await;
    page.until("!document.body.innerText.includes('Laptop')").await;

    page.sign_out().await;
    page.press("button", "Use a passkey").await;
    page.press("button", "Use your passkey").await;
    assert_eq!(page.alert().await, REFUSED);
    page.expect_focus("button", "Use your passkey").await;
    page.press("button", "Use email and password").await;
    page.give_password(&ann.email).await;
    page.settle(Some("Home")).await;
    found.extend(page.faults().await);
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[tokio::test]
async fn a_passkey_is_of_one_device_and_of_its_person() {
    let server = server().await;
    let Some(page) = Page::start_named(&server).await else { return };
    let device = Authenticator::of(&page.browser).await;
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    let bob = Person::join(&server, "bob@example.com", Role::Viewer).await;
    enrol(&page, &bob).await;
    let of_bob = device.passkeys().await.remove(0);
    device.forget().await;
    page.sign_out().await;
    enrol(&page, &ann).await;
    let copied = device.passkeys().await.remove(0);
    let show = async |passkey: &Value| {
        server.clock.advance(Duration::from_secs(30));
        device.keep_only(passkey).await;
        page.press("button", "Use your passkey").await;
    };

    page.sign_out().await;
    page.press("button", "Use a passkey").await;
    // The device counts on; a copy of it, made before, says a number that was there already.
    show(&copied).await;
    page.settle(Some("Home")).await;
    let counted = device.passkeys().await.remove(0);
    assert!(counted["signCount"].as_u64() > copied["signCount"].as_u64(), "{counted} {copied}");
    page.sign_out().await;
    page.press("button", "Use a passkey").await;
    show(&copied).await;
    assert_eq!(page.alert().await, REFUSED);

    // The id of a passkey with the key of another one, and a passkey with the user handle of another person.
    for member in ["privateKey", "userHandle"] {
        let mut forged = counted.clone();
        forged[member] = of_bob[member].clone();
        show(&forged).await;
        assert_eq!(page.alert().await, REFUSED, "{member}");
    }
    // A device that does not recognize its person signs nothing, and one without passkeys neither.
    device.recognize(false).await;
    show(&counted).await;
    assert_eq!(page.alert().await, "No passkey was used.");
    device.recognize(true).await;
    device.forget().await;
    page.press("button", "Use your passkey").await;
    assert_eq!(page.alert().await, "No passkey was used.");

    // Nothing of that has done any harm to the right one.
    show(&counted).await;
    page.settle(Some("Home")).await;
    assert_eq!(page.faults().await, [""; 0]);
}
