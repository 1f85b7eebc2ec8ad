//! Single sign-on from the console's button over the pages of a foreign provider to a session.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::domain::security::oidc::group_roles::GroupRole;
use messaging_core::ids::WorkspaceId;
use messaging_core::scope::Role;
use messaging_engine::{Settings, admin};
use messaging_transport::{Dns, GuardedFetch};
use serde_json::{Value, json};

use super::audit::audit;
use super::filled;
use super::page::{NAMED, Page};
use super::people::{PASSWORD, Person};
use super::sign_on_provider::Provider;
use crate::harness::TestServer;

/// Shortest interval between two requests for the provider's keys.
const KEYS_AGAIN: Duration = Duration::from_mins(1);

/// The workspace that groups give access to: its id must be known before the server starts.
const WORKSPACE: &str = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

fn workspace() -> WorkspaceId {
    WORKSPACE.parse().unwrap()
}

/// A server at [`NAMED`] that uses a provider over real sockets, with the workspace that groups give access to.
async fn server(oidc: OidcSettings) -> TestServer {
    let role = |group: &str, role| GroupRole { group: group.to_owned(), workspace: workspace(), role };
    let group_roles = vec![role("mail-team", Role::Editor), role("mail-admins", Role::Admin)];
    let settings = Settings::default().public_url(NAMED).oidc(OidcSettings { group_roles, ..oidc });
    let fetch = Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build());
    let mut server = TestServer::built(filled::options(), |builder, _| builder.settings(settings).fetch(fetch)).await;
    server.add_workspace(workspace()).await;
    server.workspace = workspace();
    server
}

fn person(email: &str, verified: bool, groups: &[&str]) -> Value {
    json!({"email": email, "email_verified": verified, "groups": groups})
}

/// Waits for a screen of the console with this heading.
async fn comes_back(page: &Page, heading: &str) {
    let heading_is = format!("document.querySelector('main h1')?.textContent.trim() === {}", json!(heading));
    page.until_there(&format!("location.origin === {} && {heading_is}", json!(NAMED))).await;
    page.settle(Some(heading)).await;
}

/// Waits for the sign-in screen, which shows why there is no session.
async fn is_refused(page: &Page, provider: &Provider, words: &str) -> Vec<String> {
    comes_back(page, "Sign in").await;
    let said = page.alert().await;
    assert!(said.contains(words), "{said}");
    let mut found = provider.faults_without_its_own(page).await;
    found.extend(audit(page, false).await);
    forget(page).await;
    page.load("#/sign-in").await;
    found
}

/// Deletes all cookies, also those of the provider.
async fn forget(page: &Page) {
    page.browser.devtools("Network.clearBrowserCookies", json!({})).await;
}

async fn role_of(server: &TestServer, email: &str) -> Value {
    let owner = server.session(Some(Role::Owner)).await;
    let listed = server.get(&format!("/v1/workspaces/{WORKSPACE}/members"), &owner).await.json();
    let members = listed["data"].as_array().unwrap().clone();
    members.into_iter().find(|member| member["email"] == email).map_or(Value::Null, |member| member["role"].clone())
}

#[tokio::test]
async fn people_sign_in_with_a_provider_and_have_the_roles_of_their_groups() {
    let people = json!({"ann": person("ann@example.com", true, &["mail-team", "choir"])});
    let Some(mut provider) = Provider::start(&people) else { return };
    let server = server(provider.oidc()).await;
    let Some(page) = Page::start_named(&server).await else { return };
    page.load("#/sign-in").await;
    let mut found = audit(&page, false).await;
    // Her claims are at the provider's UserInfo endpoint.
    provider.sign_in(&page, &server, "ann").await;
    comes_back(&page, "Home").await;
    assert!(page.text().await.contains("ann@example.com"), "{}", page.text().await);
    assert_eq!(role_of(&server, "ann@example.com").await, "editor");
    found.extend(provider.faults_without_its_own(&page).await);
    let traces =
        "return [location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]";
    let traces = page.browser.run(traces, &[]).await;
    assert_eq!((&traces[0], &traces[3]), (&json!(format!("{NAMED}/console/#/")), &json!("")), "{traces}");

    // Signing out ends the session here and not at the provider, which then asks for nothing.
    page.sign_out().await;
    Provider::follow_button(&page, &server).await;
    comes_back(&page, "Home").await;

    // New keys of another kind, claims in the token, and other groups.
    page.sign_out().await;
    let people = json!({"ann": person("ann@example.com", true, &["mail-admins"])});
    provider.restart(&json!({"algorithm": "ES256", "in_token": true, "people": people}));
    server.clock.advance(KEYS_AGAIN);
    provider.sign_in(&page, &server, "ann").await;
    comes_back(&page, "Home").await;
    assert_eq!(role_of(&server, "ann@example.com").await, "admin");

    // Keys that change twice within a minute are not known yet; a minute later they are.
    page.sign_out().await;
    provider.restart(&json!({"algorithm": "EdDSA"}));
    provider.sign_in(&page, &server, "ann").await;
    found.extend(is_refused(&page, &provider, "could not be verified").await);
    server.clock.advance(KEYS_AGAIN);
    provider.sign_in(&page, &server, "ann").await;
    comes_back(&page, "Home").await;
    found.extend(provider.faults_without_its_own(&page).await);
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[tokio::test]
async fn people_without_an_account_are_told_why_in_words() {
    let people = json!({
        "bob": person("bob@example.com", false, &["mail-team"]),
        "eve": person("eve@example.com", true, &["choir"]),
        "dan": {"groups": ["mail-team"]},
    });
    let Some(provider) = Provider::start(&people) else { return };
    let server = server(provider.oidc()).await;
    let Some(page) = Page::start_named(&server).await else { return };
    page.load("#/sign-in").await;
    let mut found = Vec::new();
    for (name, words) in [
        ("bob", "The sign-in service has not verified your email address."),
        ("eve", "You have no account here."),
        ("dan", "The sign-in service names no email address of yours."),
    ] {
        provider.sign_in(&page, &server, name).await;
        found.extend(is_refused(&page, &provider, words).await);
    }
    provider.ask_for_name(&page, &server).await;
    page.browser.run("document.querySelector('a[href$=\"/abort\"]').click()", &[]).await;
    found.extend(is_refused(&page, &provider, "The sign-in was cancelled").await);
    for email in ["bob@example.com", "eve@example.com"] {
        assert!(server.app.store().user_by_email(email).await.unwrap().is_none(), "{email}");
    }
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[tokio::test]
async fn somebody_with_a_password_confirms_once_that_it_is_them() {
    let people = json!({"ann": person("ann@example.com", true, &[])});
    let Some(provider) = Provider::start(&people) else { return };
    let server = server(provider.oidc()).await;
    let Some(page) = Page::start_named(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Viewer).await;
    page.load("#/sign-in").await;
    provider.sign_in(&page, &server, "ann").await;
    comes_back(&page, "Confirm that it is you").await;
    page.expect_focus("textbox", "Password").await;
    let mut found = provider.faults_without_its_own(&page).await;
    found.extend(audit(&page, false).await);
    page.fill("Password", "not the password").await;
    page.press("button", "Confirm").await;
    assert_eq!(page.alert().await, "The password is wrong.");
    page.fill("Password", PASSWORD).await;
    page.press("button", "Confirm").await;
    page.settle(Some("Home")).await;

    page.sign_out().await;
    Provider::follow_button(&page, &server).await;
    comes_back(&page, "Home").await;
    assert_eq!(role_of(&server, &ann.email).await, "viewer", "groups leave alone what somebody gave by hand");
    found.extend(provider.faults_without_its_own(&page).await);
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}

#[tokio::test]
async fn where_it_is_the_only_way_nothing_else_is_offered_or_taken() {
    let people = json!({"ann": person("ann@example.com", true, &["mail-team"])});
    let Some(mut provider) = Provider::start(&people) else { return };
    // A client without a secret, protected by PKCE alone.
    provider.restart(&json!({"secret": null}));
    let server = server(OidcSettings { only: true, ..provider.oidc() }).await;
    let Some(page) = Page::start_named(&server).await else { return };
    let bob = Person::join(&server, "bob@example.com", Role::Owner).await;
    page.load("#/sign-in").await;
    let controls = "return document.querySelectorAll('main input, main button').length";
    assert_eq!(page.browser.run(controls, &[]).await, 0, "{}", page.text().await);
    let mut found = audit(&page, false).await;
    let body = json!({"email": bob.email, "password": PASSWORD}).to_string();
    let headers = [("content-type", "application/json")];
    let refused = server.request("POST", "/v1/auth/login", &headers, Some(&body)).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "invalid_state"));
    provider.sign_in(&page, &server, "ann").await;
    comes_back(&page, "Home").await;
    assert_eq!(role_of(&server, "ann@example.com").await, "editor");
    found.extend(provider.faults_without_its_own(&page).await);

    // The operator can still sign in.
    page.sign_out().await;
    let link = admin::login_link(&server.app, &bob.email).await.unwrap().url;
    page.browser.open("about:blank").await;
    page.browser.open(link.expose()).await;
    page.settle(Some("Home")).await;
    assert!(page.text().await.contains(&bob.email), "{}", page.text().await);
    found.extend(page.faults().await);
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
}
