//! Sessions in the browser: links that sign in once, sessions that end during work, several windows.

use std::time::Duration;

use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::account::{Member, MemberStatus};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::UserId;
use messaging_core::scope::{Role, Scope};
use messaging_engine::admin;
use serde_json::{Value, json};

use super::filled;
use super::page::Page;
use super::people::{PASSWORD, Person};

#[tokio::test]
async fn a_link_signs_in_once_and_leaves_no_trace() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    let link = admin::login_link(&server.app, &ann.email).await.unwrap().url;
    let ticket = link.expose().split_once("#ticket=").unwrap().1.to_owned();
    page.browser.open(&page.url(&format!("#ticket={ticket}"))).await;
    page.settle(Some("Home")).await;
    let traces =
        "return [location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]";
    let traces = page.browser.run(traces, &[]).await;
    assert!(!traces.to_string().contains(&ticket) && !traces.to_string().contains("ms_"), "{traces}");
    assert_eq!(traces[3], "", "scripts see no cookie");
    assert_eq!(page.faults().await, [""; 0]);

    page.press("button", "Sign out").await;
    page.settle(Some("Sign in")).await;
    page.browser.open("about:blank").await;
    page.browser.open(&page.url(&format!("#ticket={ticket}"))).await;
    page.settle(Some("Sign in")).await;
    page.until_it_says("This link was used already").await;
}

#[tokio::test]
async fn a_new_member_sets_a_password_by_the_link() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let owner = server.session(Some(Role::Owner)).await;
    let members = format!("/v1/workspaces/{}/members", server.workspace);
    let bob = server.post(&members, &owner, r#"{"email":"bob@example.com","role":"viewer"}"#).await.json();
    let link = format!("{members}/{}/ticket", bob["user_id"].as_str().unwrap());
    let link = server.post(&link, &owner, "").await.json()["url"].as_str().unwrap().to_owned();
    page.browser.open(&page.url(&link[link.find("#ticket=").unwrap()..])).await;
    page.settle(Some("Choose a password")).await;
    page.fill("Password", "password1234").await;
    page.press("button", "Save").await;
    assert_eq!(page.browser.run("return document.querySelector('h1').textContent", &[]).await, "Choose a password");
    page.fill("Password", PASSWORD).await;
    page.press("button", "Save").await;
    page.settle(Some("Home")).await;
    let body = json!({"email": "bob@example.com", "password": PASSWORD}).to_string();
    let headers = [("content-type", "application/json")];
    assert_eq!(server.request("POST", "/v1/auth/login", &headers, Some(&body)).await.status, 200);
}

#[tokio::test]
async fn whoever_has_an_account_accepts_an_invitation_signed_in() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    admin::create_user(&server.app, "ann@example.com", Some(PASSWORD.to_owned()), None).await.unwrap();
    let owner = server.session(Some(Role::Owner)).await;
    let members = format!("/v1/workspaces/{}/members", server.workspace);
    let ann = server.post(&members, &owner, r#"{"email":"ann@example.com","role":"viewer"}"#).await.json();
    let link = format!("{members}/{}/ticket", ann["user_id"].as_str().unwrap());
    let link = server.post(&link, &owner, "").await.json()["url"].as_str().unwrap().to_owned();
    page.browser.open(&page.url(&link[link.find("#ticket=").unwrap()..])).await;
    page.settle(Some("Sign in")).await;
    page.until_it_says("You are invited to Test as viewer").await;
    page.fill("Password", PASSWORD).await;
    page.press("button", "Sign in").await;
    page.settle(Some("You are invited to Test")).await;
    page.press("button", "Accept").await;
    page.settle(Some("Home")).await;
    assert_eq!(page.faults().await, [""; 0]);
    let status = server.get(&members, &owner).await.json()["data"][0]["status"].clone();
    assert_eq!(status, "active");

    // Another workspace is on the account screen.
    let other = server.other_workspace().await;
    let invited =
        Member { status: MemberStatus::Invited, ..Member::active(other, id_of(&ann), Role::Editor, server.app.now()) };
    server.commit([Write::put(invited, Expect::Absent)]).await;
    page.load("#/account").await;
    page.press("button", "Decline Test").await;
    page.until_it_says("Declined").await;
    assert!(server.app.store().member(other, id_of(&ann)).await.unwrap().is_none());
}

fn id_of(member: &Value) -> UserId {
    member["user_id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn whoever_guesses_is_told_how_long_to_wait() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    page.load("#/sign-in").await;
    for _ in 0..12 {
        page.fill("Email", &ann.email).await;
        page.fill("Password", "not the password").await;
        page.press("button", "Sign in").await;
        if page.text().await.contains("Too many attempts") {
            break;
        }
        assert!(page.text().await.contains("Email or password is wrong"), "{}", page.text().await);
    }
    let text = page.text().await;
    assert!(text.contains("Try again in ") && text.contains(" seconds"), "{text}");
}

#[tokio::test]
async fn a_session_that_ends_in_the_middle_of_work_takes_nothing_along() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    let token = ann.token(&server).await;
    page.sign_in(&token).await;
    page.load("#/send").await;
    for (label, text) in
        [("To", "delivered@simulator.invalid"), ("Subject", "Written for long"), ("Text", "Many words")]
    {
        page.fill(label, text).await;
    }
    server.commit([Write::Account(AccountWrite::DeleteSession(Digest::of(&token)))]).await;
    page.focus("button", "Send").await;
    page.browser.type_keys(&super::webdriver::keys::ENTER.to_string()).await;
    page.until_it_says("Your session has ended").await;
    page.fill("Password", PASSWORD).await;
    page.browser.type_keys(&super::webdriver::keys::ENTER.to_string()).await;
    page.settle(None).await;
    let key = server.key(&[Scope::All]).await;
    let sent = server.get("/v1/messages", &key).await.json();
    let sent: Vec<&Value> = sent["data"].as_array().unwrap().iter().map(|message| &message["subject"]).collect();
    assert_eq!(sent, [&json!("Written for long")], "{}", page.text().await);
}

#[tokio::test]
async fn signing_out_in_one_window_is_noticed_by_the_other() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    page.sign_in(&ann.token(&server).await).await;
    let first = page.browser.window().await;
    page.open_window().await;
    page.load("#/lists").await;
    page.press("button", "Sign out").await;
    page.settle(Some("Sign in")).await;
    page.browser.go_to(&first).await;
    page.browser.run("location.hash = '#/messages'", &[]).await;
    page.until_it_says("Password").await;
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_asked_again_by_itself() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let token = filled::member(&server, Role::Owner).await;
    page.sign_in(&token).await;
    // Uses up the requests that the person has left in this minute; the server's clock stands still.
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", &*authorization)];
    while server.request("GET", "/v1/workspaces", &headers, None).await.status == 200 {}
    page.browser.run("location.hash = '#/lists'", &[]).await;
    page.until("seen.refused > 0").await;
    server.clock.advance(Duration::from_secs(30));
    page.settle(Some("Lists")).await;
    let text = page.text().await;
    assert!(!text.contains("Try again"), "{text}");
    assert!(page.browser.run("return seen.refused", &[]).await.as_u64() <= Some(3));
}
