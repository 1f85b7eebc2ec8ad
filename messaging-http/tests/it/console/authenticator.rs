//! A device that keeps passkeys, in the place of one that a person holds: WebAuthn level 3, section 11.

use serde_json::{Value, json};

use super::webdriver::Browser;

/// A device that is part of the machine. Its person consents to everything at once.
pub(crate) struct Authenticator<'a> {
    browser: &'a Browser,
    /// Path of its commands.
    path: String,
}

impl<'a> Authenticator<'a> {
    /// Gives a browser one that keeps passkeys and verifies its person.
    pub(crate) async fn of(browser: &'a Browser) -> Self {
        let device = json!({"protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserConsenting": true, "isUserVerified": true});
        let id = browser.command("/webauthn/authenticator", device).await;
        Self { browser, path: format!("/webauthn/authenticator/{}", id.as_str().unwrap()) }
    }

    /// What it keeps: `credentialId`, `privateKey`, `signCount`, `rpId`, `userHandle` and the like of each passkey.
    pub(crate) async fn passkeys(&self) -> Vec<Value> {
        let kept = self.browser.ask("GET", &format!("{}/credentials", self.path), None).await;
        kept.as_array().unwrap().clone()
    }

    /// Lets it keep nothing but this passkey.
    pub(crate) async fn keep_only(&self, passkey: &Value) {
        self.forget().await;
        self.browser.command(&format!("{}/credential", self.path), passkey.clone()).await;
    }

    /// Takes all passkeys away.
    pub(crate) async fn forget(&self) {
        self.browser.ask("DELETE", &format!("{}/credentials", self.path), None).await;
    }

    /// From now on it recognizes its person, or fails to.
    pub(crate) async fn recognize(&self, recognizes: bool) {
        self.browser.command(&format!("{}/uv", self.path), json!({"isUserVerified": recognizes})).await;
    }
}
