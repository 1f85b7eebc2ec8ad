//! Answers that are not the one to this sign-in, and tokens that do not count.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::ports::clock::Clock as _;
use messaging_engine::app::App;
use messaging_engine::services::single_sign_on::SignOnRefusal;
use messaging_testing::{MemoryOidcProvider, TokenSigning};
use serde_json::json;

use super::{SignOnBed, ann};
use crate::bed::{KEY, PUBLIC_URL};

async fn with_ann() -> SignOnBed {
    let sign_on = SignOnBed::start().await;
    messaging_engine::admin::create_user(&sign_on.bed.app, "ann@example.com", None, None).await.unwrap();
    sign_on
}

#[tokio::test]
async fn an_answer_counts_in_the_browser_that_began_for_ten_minutes() {
    let sign_on = with_ann().await;
    sign_on.provider.person(ann(json!({})));
    let (cookie, query) = sign_on.begin().await;
    let (other_cookie, other_query) = sign_on.begin().await;
    let changed = format!("{}x", cookie.trim_end_matches('='));
    for (cookie, query) in [
        (None, query.as_str()),
        (Some(other_cookie.as_str()), query.as_str()),
        (Some(cookie.as_str()), other_query.as_str()),
        (Some(changed.as_str()), query.as_str()),
        (Some("sealed:1:AAAA"), query.as_str()),
        (Some(cookie.as_str()), "code=code-1"),
        (Some(cookie.as_str()), "code=code-1&state="),
        (Some(cookie.as_str()), ""),
    ] {
        assert_eq!(sign_on.come_back(cookie, query).await.word(), "expired", "{query}");
    }
    assert_eq!(sign_on.provider.asked("/token"), 0, "nothing is asked before cookie and state belong together");
    let twice = format!("{query}&state=other");
    assert_eq!(sign_on.come_back(Some(&cookie), &twice).await.word(), "provider");

    assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), "signed in");
    assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), "provider", "the code was used");
    sign_on.bed.clock.advance(Duration::from_mins(10));
    assert_eq!(sign_on.come_back(Some(&other_cookie), &other_query).await.word(), "expired");
}

#[tokio::test]
async fn a_code_is_good_for_the_sign_in_that_it_was_made_for() {
    let sign_on = with_ann().await;
    sign_on.provider.person(ann(json!({})));
    let (cookie, query) = sign_on.begin().await;
    let (_, of_attacker) = sign_on.begin().await;
    // The state of the victim with the code of the attacker: its verifier is another one.
    let code = |query: &str| query.split('&').next().unwrap().to_owned();
    let mixed = query.replace(&code(&query), &code(&of_attacker));
    assert_eq!(sign_on.come_back(Some(&cookie), &mixed).await.word(), "provider");
}

#[tokio::test]
async fn a_token_that_was_not_made_for_this_sign_in_is_refused() {
    let sign_on = with_ann().await;
    let now = sign_on.bed.clock.now().as_seconds();
    for claims in [
        json!({"iss": "https://evil.example.com"}),
        json!({"iss": "https://id.example.com/realms/acme/"}),
        json!({"aud": "another app"}),
        json!({"aud": ["messaging app", "another app"]}),
        json!({"aud": ["messaging app", "another app"], "azp": "another app"}),
        json!({"nonce": "of another sign-in"}),
        json!({"nonce": null}),
        json!({"exp": now - 61}),
        json!({"exp": null}),
        json!({"nbf": now + 120}),
        json!({"iat": now + 120}),
        json!({"sub": ""}),
        json!({"sub": null}),
        json!({"sub": ["ann"]}),
    ] {
        assert_eq!(sign_on.sign_in(ann(claims.clone())).await.word(), "token", "{claims}");
    }
    assert_eq!(sign_on.sign_in(ann(json!({"exp": now - 30}))).await.word(), "signed in", "clocks may differ a little");
}

#[tokio::test]
async fn a_token_that_the_provider_did_not_sign_is_refused() {
    let sign_on = with_ann().await;
    for rotated in [false, true] {
        for signing in
            [TokenSigning::None, TokenSigning::HmacOfPublicKey, TokenSigning::UnknownKey, TokenSigning::Changed]
        {
            sign_on.provider.signing(signing);
            assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "token", "{signing:?} {rotated}");
            sign_on.bed.clock.advance(Duration::from_mins(2));
        }
        sign_on.provider.signing(TokenSigning::Right);
        assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in", "{rotated}");
        sign_on.provider.rotate();
        sign_on.bed.clock.advance(Duration::from_mins(2));
    }
}

#[tokio::test]
async fn keys_are_asked_for_once_a_minute_and_a_new_one_counts() {
    let sign_on = with_ann().await;
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    assert_eq!(sign_on.provider.asked("/keys"), 1);
    sign_on.provider.signing(TokenSigning::UnknownKey);
    for _ in 0..20 {
        assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "token");
    }
    assert_eq!(sign_on.provider.asked("/keys"), 1, "they were asked for less than a minute ago");
    sign_on.bed.clock.advance(Duration::from_mins(1));
    for _ in 0..20 {
        assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "token");
    }
    assert_eq!(sign_on.provider.asked("/keys"), 2);

    sign_on.provider.signing(TokenSigning::Right);
    sign_on.provider.rotate();
    sign_on.bed.clock.advance(Duration::from_mins(1));
    for _ in 0..3 {
        assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    }
    assert_eq!(sign_on.provider.asked("/keys"), 3);
    assert_eq!(sign_on.provider.asked("/.well-known/openid-configuration"), 1);
    sign_on.bed.clock.advance(Duration::from_hours(1));
    assert_eq!(sign_on.sign_in(ann(json!({}))).await.word(), "signed in");
    assert_eq!(sign_on.provider.asked("/keys"), 4, "a key that was withdrawn is taken no longer than an hour");
}

#[tokio::test]
async fn a_provider_that_is_down_is_asked_again_after_a_pause() {
    let sign_on = with_ann().await;
    sign_on.provider.is_down(true);
    for _ in 0..10 {
        let refused = sign_on.bed.app.begin_sign_on().await.unwrap_err();
        assert_eq!(refused, SignOnRefusal::Unreachable);
    }
    assert_eq!(sign_on.provider.asked("/.well-known/openid-configuration"), 1);
    sign_on.provider.is_down(false);
    sign_on.bed.clock.advance(Duration::from_secs(5));
    let (cookie, query) = sign_on.begin().await;
    // It goes down in the middle of a sign-in.
    sign_on.provider.is_down(true);
    assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), "unreachable");
    sign_on.provider.is_down(false);
    sign_on.provider.person(ann(json!({})));
    assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), "signed in");
}

#[tokio::test]
async fn a_document_of_another_issuer_is_not_taken() {
    let sign_on = with_ann().await;
    sign_on.provider.names_issuer("https://id.example.com/realms/other");
    assert_eq!(sign_on.bed.app.begin_sign_on().await.unwrap_err(), SignOnRefusal::Unreachable);
}

#[tokio::test]
async fn what_the_provider_reports_is_told_apart() {
    let sign_on = with_ann().await;
    let (cookie, query) = sign_on.begin().await;
    let state = query.split('&').next_back().unwrap();
    for (error, expected) in [("access_denied", "cancelled"), ("server_error", "provider"), ("<script>", "provider")] {
        let query = format!("error={error}&{state}");
        assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), expected, "{error}");
    }
    let query = format!("error=access_denied&{}", state.replace("state=", "state=x"));
    assert_eq!(sign_on.come_back(Some(&cookie), &query).await.word(), "expired");
    let other_issuer = format!("code=code-1&{state}&iss=https%3A%2F%2Fevil.example.com");
    assert_eq!(sign_on.come_back(Some(&cookie), &other_issuer).await.word(), "token");
}

#[tokio::test]
async fn another_node_ends_what_one_began() {
    let sign_on = with_ann().await;
    sign_on.provider.person(ann(json!({})));
    let (cookie, query) = sign_on.begin().await;
    let SignOnBed { mut bed, provider } = sign_on;
    let settings = messaging_engine::Settings::default().public_url(PUBLIC_URL).oidc(MemoryOidcProvider::settings());
    let builder = App::builder(Arc::clone(&bed.store), KEY).clock(Arc::clone(&bed.clock) as _);
    bed.app = builder.fetch(Arc::clone(&provider) as _).settings(settings).build().await.unwrap();
    let other = SignOnBed { bed, provider };
    assert_eq!(other.come_back(Some(&cookie), &query).await.word(), "signed in");
}
