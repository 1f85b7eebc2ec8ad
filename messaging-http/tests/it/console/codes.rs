//! Codes of an authenticator app that is not part of this project: Debian's `oathtool` shows them, and `zbarimg` of
//! `zbar-tools` reads the QR code that is drawn for an app's camera.

use std::io::{ErrorKind, Write as _};
use std::process::Command;
use std::time::Duration;

use messaging_core::scope::Role;

use super::audit::audit;
use super::filled;
use super::page::Page;
use super::people::Person;
use crate::harness::TestServer;

const WRONG: &str = "The code is wrong, was used already or is too old.";

/// Time for which a code is shown.
const STEP: Duration = Duration::from_secs(30);

/// Output of a program; `None` if it is not installed, which is noted on standard error.
fn ask(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(done) => {
            assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
            Some(String::from_utf8(done.stdout).unwrap().trim().to_owned())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var_os("REQUIRE_BROWSER").is_none(), "there is no {program} on this machine");
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no {program} on this machine");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// True if the programs that stand for a person's app are installed.
fn has_app() -> bool {
    ask("oathtool", &["--version"]).is_some() && ask("zbarimg", &["--version"]).is_some()
}

/// The address that an app's camera reads from the screen.
async fn scanned(page: &Page, server: &TestServer) -> String {
    let file = server.directory.path().join("screen.png");
    std::fs::write(&file, page.browser.picture("svg.qr").await).unwrap();
    ask("zbarimg", &["--quiet", "--raw", file.to_str().unwrap()]).unwrap()
}

/// The code that an app with this key shows at the server's time.
fn shown(key: &str, server: &TestServer) -> String {
    let seconds = server.app.now().as_millis().div_euclid(1000);
    let now = format!("--now=@{seconds}");
    ask("oathtool", &["--totp", "--base32", now.as_str(), key]).unwrap()
}

/// A code that is not `code`, nor one beside it.
fn another(code: &str) -> String {
    code.chars().map(|digit| if digit == '9' { '0' } else { '9' }).collect()
}

#[tokio::test]
async fn an_app_scans_the_key_and_its_codes_sign_in_once_each() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    if !has_app() {
        return;
    }
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    page.load("#/sign-in").await;
    page.give_password(&ann.email).await;
    page.load("#/account").await;
    page.press("button", "Add an app").await;
    page.expect_focus("textbox", "Name").await;
    page.fill("Name", "Phone").await;
    page.press("button", "Go on").await;
    page.expect_focus("textbox", "Code").await;
    let mut found = audit(&page, true).await;

    let uri = scanned(&page, &server).await;
    assert!(uri.starts_with("otpauth://totp/") && uri.contains("ann%40example.com"), "{uri}");
    let key = uri.split_once("secret=").unwrap().1.split('&').next().unwrap().to_owned();
    let typed = "return document.querySelector('section[aria-labelledby=enrolment] details code').textContent";
    let typed = page.browser.run(typed, &[]).await;
    assert_eq!(typed.as_str().unwrap().replace(' ', ""), key, "what is typed is what is scanned");

    let first = shown(&key, &server);
    page.fill("Code", &another(&first)).await;
    page.press("button", "Confirm").await;
    assert!(page.alert().await.starts_with("The code was not taken."), "{}", page.text().await);
    found.extend(audit(&page, true).await);
    page.fill("Code", &first).await;
    page.press("button", "Confirm").await;
    page.until_it_says("Keep these recovery codes").await;
    found.extend(audit(&page, true).await);
    let recovery = page.recovery_codes().await;
    assert_eq!(recovery.len(), 10);
    page.press("button", "I have kept them").await;
    found.extend(audit(&page, true).await);

    // The code that was shown when the app was added is used up.
    page.sign_out().await;
    page.give_password(&ann.email).await;
    page.expect_focus("textbox", "Code").await;
    found.extend(audit(&page, false).await);
    page.fill("Code", &first).await;
    page.press("button", "Sign in").await;
    assert_eq!(page.alert().await, WRONG);
    page.expect_focus("textbox", "Code").await;
    found.extend(audit(&page, false).await);
    server.clock.advance(STEP);
    let second = shown(&key, &server);
    page.fill("Code", &second).await;
    page.press("button", "Sign in").await;
    page.settle(Some("Home")).await;

    page.sign_out().await;
    page.give_password(&ann.email).await;
    page.fill("Code", &second).await;
    page.press("button", "Sign in").await;
    assert_eq!(page.alert().await, WRONG);
    // As people copy them, and only once.
    page.fill("Code", &recovery[0].to_lowercase().replace('-', "")).await;
    page.press("button", "Sign in").await;
    page.settle(Some("Home")).await;
    page.sign_out().await;
    page.give_password(&ann.email).await;
    page.fill("Code", &recovery[0]).await;
    page.press("button", "Sign in").await;
    assert_eq!(page.alert().await, WRONG);
    page.fill("Code", &recovery[1]).await;
    page.press("button", "Sign in").await;
    page.settle(Some("Home")).await;
    page.load("#/account").await;
    assert!(page.text().await.contains("8 recovery codes left"), "{}", page.text().await);
    found.extend(page.faults().await);
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[tokio::test]
async fn five_wrong_codes_end_a_sign_in() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    if !has_app() {
        return;
    }
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    page.load("#/sign-in").await;
    page.give_password(&ann.email).await;
    page.load("#/account").await;
    page.press("button", "Add an app").await;
    page.press("button", "Go on").await;
    let uri = scanned(&page, &server).await;
    let key = uri.split_once("secret=").unwrap().1.split('&').next().unwrap().to_owned();
    page.fill("Code", &shown(&key, &server)).await;
    page.press("button", "Confirm").await;
    page.until_it_says("Keep these recovery codes").await;

    server.clock.advance(STEP);
    page.sign_out().await;
    page.give_password(&ann.email).await;
    let right = shown(&key, &server);
    for attempt in 1..=5 {
        page.fill("Code", &another(&right)).await;
        page.press("button", "Sign in").await;
        let said = page.alert().await;
        assert_eq!(said == WRONG, attempt < 5, "{attempt}: {said}");
    }
    let over = "This sign-in is over: too many tries were wrong, or it took too long. Begin again.";
    assert_eq!(page.alert().await, over);
    // Then even the right code is refused.
    page.fill("Code", &right).await;
    page.press("button", "Sign in").await;
    assert_eq!(page.alert().await, over);
    page.press("button", "Begin again").await;
    page.give_password(&ann.email).await;
    page.fill("Code", &right).await;
    page.press("button", "Sign in").await;
    page.settle(Some("Home")).await;
    assert_eq!(page.faults().await, [""; 0]);
}
