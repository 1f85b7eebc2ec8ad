//! A virtual authenticator for passkeys, in place of a person's device: WebAuthn level 3, section 11.

use serde_json::{Value, json};

use super::webdriver::Browser;

/// An authenticator that is part of the machine. Its user consents to everything at once.
pub(crate) struct Authenticator<'a> {
    browser: &'a Browser,
    /// Path of its commands.
    path: String,
}

impl<'a> Authenticator<'a> {
    /// Adds an authenticator to a browser, which stores passkeys and verifies its user.
    pub(crate) async fn of(browser: &'a Browser) -> Self {
        let device = json!({"protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserConsenting": true, "isUserVerified": true});
        let id = browser.command("/webauthn/authenticator", device).await;
        Self { browser, path: format!("/webauthn/authenticator/{}", id.as_str().unwrap()) }
    }

    /// Stored passkeys, each with `credentialId`, `privateKey`, `signCount`, `rpId`, `userHandle` and other members.
    pub(crate) async fn passkeys(&self) -> Vec<Value> {
        let kept = self.browser.ask("GET", &format!("{}/credentials", self.path), None).await;
        kept.as_array().unwrap().clone()
    }

    /// Replaces all passkeys with this one.
    pub(crate) async fn keep_only(&self, passkey: &Value) {
        self.forget().await;
        self.browser.command(&format!("{}/credential", self.path), passkey.clone()).await;
    }

    /// Removes all passkeys.
    pub(crate) async fn forget(&self) {
        self.browser.ask("DELETE", &format!("{}/credentials", self.path), None).await;
    }

    /// Sets if the verification of the user succeeds from now on.
    pub(crate) async fn recognize(&self, recognizes: bool) {
        self.browser.command(&format!("{}/uv", self.path), json!({"isUserVerified": recognizes})).await;
    }
}
