//! Passkeys, by a device that is a key in memory.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use messaging_engine::Caller;
use messaging_engine::work::sweep::sweep;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{ANN, ANYBODY, STEP, enrolled, login, second_step};
use crate::bed::{Bed, PASSWORD, PUBLIC_URL, Reply};

const SITE: &str = "track.service.test";
const VERIFIED: u8 = 0b101;

#[expect(clippy::disallowed_methods, reason = "keys of tests are nobody's")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

fn encoded(octets: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(octets)
}

/// A device with one key, which answers as a browser hands it on.
struct Device {
    pair: Ed25519KeyPair,
    credential: &'static str,
    user: Option<String>,
    origin: &'static str,
    flags: u8,
    count: u32,
}

impl Device {
    fn new(credential: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&random()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        Self { pair, credential, user: None, origin: PUBLIC_URL, flags: VERIFIED, count: 0 }
    }

    fn client(&self, kind: &str, options: &Value) -> Vec<u8> {
        json!({"type": kind, "challenge": options["challenge"], "origin": self.origin}).to_string().into_bytes()
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        [digest(&SHA256, SITE.as_bytes()).as_ref(), &[flags], &self.count.to_be_bytes()].concat()
    }

    fn make(&mut self, options: &Value) -> Value {
        self.user = options["user"]["id"].as_str().map(ToOwned::to_owned);
        let id = self.credential.as_bytes();
        let key = [b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20".as_slice(), self.pair.public_key().as_ref()].concat();
        let length = u16::try_from(id.len()).unwrap().to_be_bytes();
        let data = [self.data(self.flags | 0x40).as_slice(), &[0; 16], &length, id, &key].concat();
        let length = u16::try_from(data.len()).unwrap().to_be_bytes();
        let attestation = [b"\xa3cfmtdnonegattStmt\xa0hauthData\x59".as_slice(), &length, &data].concat();
        let client = encoded(self.client("webauthn.create", options));
        json!({"id": encoded(id), "type": "public-key", "clientExtensionResults": {},
            "response": {"clientDataJSON": client, "attestationObject": encoded(attestation), "transports": ["internal"]}})
    }

    fn sign(&self, options: &Value) -> Value {
        let (data, client) = (self.data(self.flags), self.client("webauthn.get", options));
        let signed = [data.as_slice(), digest(&SHA256, &client).as_ref()].concat();
        json!({"id": encoded(self.credential), "type": "public-key", "response": {
            "clientDataJSON": encoded(client), "authenticatorData": encoded(data),
            "signature": encoded(self.pair.sign(&signed)), "userHandle": self.user}})
    }
}

/// Adds a passkey for the signed-in person; returns the answer to its confirmation.
async fn register(bed: &Bed, caller: &Caller, device: &mut Device) -> Reply {
    let made = bed.post(caller, "/auth/factors", json!({"kind": "passkey"})).await;
    assert_eq!((made.summary().as_str(), &made["name"]), ("201", &json!("Passkey")));
    assert_eq!((&made["secret"], &made["uri"]), (&Value::Null, &Value::Null));
    assert_eq!(made["options"]["rp"]["id"], SITE);
    let path = format!("/auth/factors/{}/confirm", made["id"].as_str().unwrap());
    let credential = device.make(&made["options"]);
    bed.post(caller, &path, json!({"credential": credential})).await
}

async fn with_passkey() -> (Bed, Device, String) {
    let bed = Bed::start();
    bed.user(ANN).await;
    let token = login(&bed, ANN).await["token"].as_str().unwrap().to_owned();
    let caller = bed.app.authenticate(&token).await.unwrap();
    let mut device = Device::new("laptop");
    let confirmed = register(&bed, &caller, &mut device).await;
    assert_eq!((confirmed.summary().as_str(), &confirmed["kind"]), ("200", &json!("passkey")));
    assert_eq!(confirmed["recovery_codes"].as_array().unwrap().len(), 10);
    (bed, device, token)
}

async fn begin(bed: &Bed) -> (String, Value) {
    let begun = bed.post(&ANYBODY, "/auth/login/passkey", json!({})).await;
    assert_eq!(begun.summary(), "200");
    (begun["token"].as_str().unwrap().to_owned(), begun["options"].clone())
}

async fn show(bed: &Bed, token: &str, assertion: Value) -> Reply {
    bed.post(&ANYBODY, "/auth/login/factor", json!({"token": token, "assertion": assertion})).await
}

#[tokio::test]
async fn a_passkey_alone_signs_in_and_each_challenge_once() {
    let (bed, device, _) = with_passkey().await;
    let (token, options) = begin(&bed).await;
    assert_eq!((&options["rpId"], &options["allowCredentials"]), (&json!(SITE), &json!([])));
    let session = show(&bed, &token, device.sign(&options)).await;
    assert_eq!((session.summary().as_str(), &session["user"]["email"]), ("200", &json!(ANN)));
    assert!(bed.app.authenticate(session["token"].as_str().unwrap()).await.is_ok());
    assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), "401 invalid_credentials", "it was used");

    let (token, options) = begin(&bed).await;
    bed.clock.advance(Duration::from_mins(10));
    assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), "401 invalid_credentials", "it is over");
}

#[tokio::test]
async fn a_challenge_that_was_used_is_not_taken_after_the_clock_was_set_back() {
    let (bed, device, _) = with_passkey().await;
    let (token, options) = begin(&bed).await;
    let began = bed.app.now();
    let assertion = device.sign(&options);
    assert_eq!(show(&bed, &token, assertion.clone()).await.summary(), "200");
    bed.clock.advance(Duration::from_mins(11));
    sweep(&bed.app).await.unwrap();
    bed.clock.set(began);
    assert_eq!(show(&bed, &token, assertion).await.summary(), "401 invalid_credentials");
}

#[tokio::test]
async fn a_password_is_asked_for_the_passkey() {
    let (bed, device, _) = with_passkey().await;
    let asked = login(&bed, ANN).await;
    assert_eq!(asked.summary(), "401 second_factor_required");
    let details = &asked["error"]["details"];
    assert_eq!(details["kinds"], json!(["passkey"]));
    let options = details["options"].clone();
    assert_eq!(options["allowCredentials"][0]["id"], encoded("laptop"));
    let token = details["token"].as_str().unwrap();
    // An assertion for another challenge is refused, and each signature works once.
    let (_, other) = begin(&bed).await;
    assert_eq!(show(&bed, token, device.sign(&other)).await["error"]["details"]["tries_left"], 4);
    assert_eq!(show(&bed, token, device.sign(&options)).await.summary(), "200");
    assert_eq!(show(&bed, token, device.sign(&options)).await.summary(), "401 invalid_credentials");
}

#[tokio::test]
async fn assertions_of_other_devices_people_and_sites_open_nothing() {
    let (bed, device, _) = with_passkey().await;
    bed.user("bob@example.com").await;
    let bob = bed.sign_in("bob@example.com").await;
    let mut bobs = Device::new("phone");
    assert_eq!(register(&bed, &bob, &mut bobs).await.summary(), "200");
    let ann = device.user.clone();
    let devices = [
        // Another key with Ann's credential id, Bob's key with Ann's user handle, another key without one, and with an
        // unknown one.
        Device { user: ann.clone(), ..Device::new("laptop") },
        Device { user: ann.clone(), credential: "phone", ..bobs },
        Device { user: None, ..Device::new("laptop") },
        Device { user: Some(encoded([5; 16])), ..Device::new("laptop") },
    ];
    for one in devices {
        let (token, options) = begin(&bed).await;
        assert_eq!(show(&bed, &token, one.sign(&options)).await.summary(), "401 invalid_credentials");
    }
    let mut device = device;
    for (origin, flags) in [("https://evil.example", VERIFIED), (PUBLIC_URL, 1)] {
        (device.origin, device.flags) = (origin, flags);
        let (token, options) = begin(&bed).await;
        assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), "401 invalid_credentials");
    }
    (device.origin, device.flags) = (PUBLIC_URL, VERIFIED);
    let (token, options) = begin(&bed).await;
    let other = if token.ends_with('A') { 'B' } else { 'A' };
    for forged in ["mp_AAAA".to_owned(), format!("{}{other}", &token[..token.len() - 1]), "mp_".to_owned()] {
        assert_eq!(show(&bed, &forged, device.sign(&options)).await.summary(), "401 invalid_credentials");
    }
    assert_eq!(second_step(&bed, &token, "123456").await.summary(), "422 /assertion required");
    assert_eq!(show(&bed, &token, json!({"id": 1})).await.summary(), "422 /assertion invalid_format");
    assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), "200");
}

#[tokio::test]
async fn a_counter_that_does_not_rise_is_a_copy() {
    let (bed, mut device, _) = with_passkey().await;
    for (count, expected) in [(5, "200"), (5, "401 invalid_credentials"), (4, "401 invalid_credentials"), (6, "200")] {
        device.count = count;
        let (token, options) = begin(&bed).await;
        assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), expected, "{count}");
    }
}

#[tokio::test]
async fn a_passkey_that_was_not_made_for_the_challenge_is_refused() {
    let (bed, _, token) = with_passkey().await;
    let caller = bed.app.authenticate(&token).await.unwrap();
    let made = bed.post(&caller, "/auth/factors", json!({"kind": "passkey", "name": "Key"})).await;
    assert_eq!(made["options"]["excludeCredentials"][0]["id"], encoded("laptop"));
    let path = format!("/auth/factors/{}/confirm", made["id"].as_str().unwrap());
    let confirm = async |body: Value| bed.post(&caller, &path, body).await.summary();
    let (_, other) = begin(&bed).await;
    assert_eq!(confirm(json!({"credential": Device::new("key").make(&other)})).await, "422 /credential conflict");
    let mut unverified = Device { flags: 1, ..Device::new("key") };
    assert_eq!(confirm(json!({"credential": unverified.make(&made["options"])})).await, "422 /credential conflict");
    assert_eq!(confirm(json!({"code": "123456"})).await, "422 /credential required");
    assert_eq!(confirm(json!({"credential": Device::new("key").make(&made["options"])})).await, "200");
    let listed = bed.get(&caller, "/auth/factors").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn beside_an_app_either_signs_in() {
    let bed = Bed::start();
    bed.user(ANN).await;
    let ann = enrolled(&bed, ANN).await;
    bed.clock.advance(STEP);
    let caller = ann.caller(&bed).await;
    let mut device = Device::new("laptop");
    assert_eq!(register(&bed, &caller, &mut device).await["recovery_codes"], Value::Null);
    let asked = login(&bed, ANN).await;
    assert_eq!(asked["error"]["details"]["kinds"], json!(["totp", "passkey"]));
    let token = asked["error"]["details"]["token"].as_str().unwrap().to_owned();
    assert_eq!(second_step(&bed, &token, &ann.code(&bed)).await.summary(), "200");
    let target = format!("/auth/factors/{}", ann.factor);
    let call =
        crate::bed::Call::new(&caller, http::Method::DELETE, &target).body(&json!({"password": PASSWORD})).key("k");
    assert_eq!(bed.call(call).await.summary(), "204");
    let asked = login(&bed, ANN).await;
    let options = asked["error"]["details"]["options"].clone();
    let token = asked["error"]["details"]["token"].as_str().unwrap().to_owned();
    assert_eq!(show(&bed, &token, device.sign(&options)).await.summary(), "200");
}
