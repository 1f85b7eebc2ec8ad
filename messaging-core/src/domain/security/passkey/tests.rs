//! Devices of three kinds, each answering as a browser hands it on.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};

use super::*;

const CHALLENGE: [u8; 32] = [7; 32];

#[expect(clippy::disallowed_methods, reason = "keys of tests are nobody's")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

fn site() -> Site {
    Site::of("https://mail.example.com/console").unwrap()
}

fn encoded(octets: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(octets)
}

/// A device with a key, and what it says unless told otherwise.
struct Device {
    ec: Option<EcdsaKeyPair>,
    ed: Ed25519KeyPair,
    flags: u8,
    count: u32,
    site: String,
    client: Value,
}

impl Device {
    fn new(is_ec: bool) -> Self {
        let source = random();
        let ec = is_ec.then(|| {
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &source).unwrap();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &source).unwrap()
        });
        let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&source).unwrap().as_ref()).unwrap();
        let client =
            json!({"challenge": encoded(CHALLENGE), "origin": "https://mail.example.com", "crossOrigin": false});
        Self { ec, ed, flags: PRESENT | VERIFIED, count: 0, site: "mail.example.com".to_owned(), client }
    }

    fn cose(&self) -> Vec<u8> {
        match &self.ec {
            // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
            Some(pair) => {
                let point = pair.public_key().as_ref();
                [b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20".as_slice(), &point[1..33], b"\x22\x58\x20", &point[33..]]
                    .concat()
            }
            // {1: 1, 3: -8, -1: 6, -2: x}
            None => [b"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20".as_slice(), self.ed.public_key().as_ref()].concat(),
        }
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let site = digest(&SHA256, self.site.as_bytes());
        [site.as_ref(), &[flags], &self.count.to_be_bytes()].concat()
    }

    fn client(&self, kind: &str) -> Vec<u8> {
        let mut client = self.client.clone();
        client["type"] = client.get("type").cloned().unwrap_or(json!(kind));
        client.to_string().into_bytes()
    }

    fn made(&self) -> NewCredential {
        self.made_with(&self.cose())
    }

    fn made_with(&self, key: &[u8]) -> NewCredential {
        let data = [self.data(self.flags | HAS_KEY).as_slice(), &[0; 16], &[0, 4], b"cred", key].concat();
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let length = u16::try_from(data.len()).unwrap().to_be_bytes();
        let attestation = [b"\xa3cfmtdnonegattStmt\xa0hauthData\x59".as_slice(), &length, &data].concat();
        let response = NewCredentialResponse {
            client_data: encoded(self.client("webauthn.create")),
            attestation: encoded(attestation),
        };
        NewCredential { id: encoded("cred"), response }
    }

    fn used(&self) -> Assertion {
        let (data, client) = (self.data(self.flags), self.client("webauthn.get"));
        let signed = [data.as_slice(), digest(&SHA256, &client).as_ref()].concat();
        let signature = match &self.ec {
            Some(pair) => pair.sign(&random(), &signed).unwrap().as_ref().to_vec(),
            None => self.ed.sign(&signed).as_ref().to_vec(),
        };
        Assertion {
            id: encoded("cred"),
            response: AssertionResponse {
                client_data: encoded(client),
                authenticator_data: encoded(data),
                signature: encoded(signature),
                user_handle: Some(encoded([9; 16])),
            },
        }
    }

    fn passkey(&self) -> Passkey {
        Passkey { credential: encoded("cred"), key: encoded(self.cose()), count: 0 }
    }
}

#[test]
fn a_passkey_is_made_and_used() {
    for is_ec in [true, false] {
        let mut device = Device::new(is_ec);
        let made = device.made().verify(&site(), &CHALLENGE).unwrap();
        assert_eq!(made, device.passkey());
        // Devices that synchronize keys count nothing.
        for _ in 0..2 {
            assert_eq!(device.used().verify(&site(), &CHALLENGE, &made), Ok(made.clone()));
        }
        device.count = 5;
        let after = device.used().verify(&site(), &CHALLENGE, &made).unwrap();
        assert_eq!((after.count, device.used().user_handle()), (5, Some([9; 16])));
        assert_eq!(device.used().verify(&site(), &CHALLENGE, &after), Err(PasskeyFault::Copied));
        device.count = 0;
        assert_eq!(device.used().verify(&site(), &CHALLENGE, &after), Err(PasskeyFault::Copied));
    }
}

#[test]
fn answers_to_another_question_or_for_another_site_are_refused() {
    use PasskeyFault::{NotVerified, OtherChallenge, OtherSite};
    type Change = fn(&mut Device);
    let changes: [(Change, PasskeyFault); 9] = [
        (|device| device.client["challenge"] = json!(encoded([8; 32])), OtherChallenge),
        (|device| device.client["type"] = json!("payment.get"), OtherChallenge),
        (|device| device.client["origin"] = json!("https://mail.example.com.evil.example"), OtherSite),
        (|device| device.client["origin"] = json!("http://mail.example.com"), OtherSite),
        (|device| device.client["crossOrigin"] = json!(true), OtherSite),
        (|device| device.site = "example.com".to_owned(), OtherSite),
        (|device| device.flags = 0, NotVerified),
        (|device| device.flags = PRESENT, NotVerified),
        (|device| device.flags = VERIFIED, NotVerified),
    ];
    for (place, (change, expected)) in changes.into_iter().enumerate() {
        let mut device = Device::new(place % 2 == 0);
        change(&mut device);
        assert_eq!(device.made().verify(&site(), &CHALLENGE), Err(expected), "made {place}");
        assert_eq!(device.used().verify(&site(), &CHALLENGE, &device.passkey()), Err(expected), "used {place}");
    }
    // What was made is not what is used.
    let device = Device::new(true);
    let mut swapped = device.used();
    swapped.response.client_data = device.made().response.client_data;
    assert_eq!(swapped.verify(&site(), &CHALLENGE, &device.passkey()), Err(OtherChallenge));
}

#[test]
fn signatures_of_other_keys_and_of_other_data_are_refused() {
    for is_ec in [true, false] {
        let (device, other) = (Device::new(is_ec), Device::new(is_ec));
        let wrong = Err(PasskeyFault::WrongSignature);
        assert_eq!(other.used().verify(&site(), &CHALLENGE, &device.passkey()), wrong);
        let mut raised = Device { count: 9, ..Device::new(is_ec) }.used();
        raised.response.signature = device.used().response.signature;
        assert_eq!(raised.verify(&site(), &CHALLENGE, &device.passkey()), wrong);
        let mut renamed = device.used();
        renamed.id = encoded("derc");
        assert_eq!(renamed.verify(&site(), &CHALLENGE, &device.passkey()), wrong);
        let mut empty = device.used();
        empty.response.signature = String::new();
        assert_eq!(empty.verify(&site(), &CHALLENGE, &device.passkey()), wrong);
    }
}

#[test]
fn octets_that_mean_nothing_are_refused() {
    let device = Device::new(true);
    for end in [0, 10, 31, 36, 60] {
        let mut cut = device.made();
        let attestation = decoded(&cut.response.attestation).unwrap();
        cut.response.attestation = encoded(&attestation[..end]);
        assert_eq!(cut.verify(&site(), &CHALLENGE), Err(PasskeyFault::Malformed), "{end}");
        let mut cut = device.used();
        let data = decoded(&cut.response.authenticator_data).unwrap();
        cut.response.authenticator_data = encoded(&data[..end.min(36)]);
        assert_eq!(cut.verify(&site(), &CHALLENGE, &device.passkey()), Err(PasskeyFault::Malformed), "{end}");
    }
    let other = NewCredential { id: encoded("derc"), ..device.made() };
    assert_eq!(other.verify(&site(), &CHALLENGE), Err(PasskeyFault::Malformed));
    let key = Passkey { key: encoded([0xa2, 1, 2, 3, 0x38, 0x22]), ..device.passkey() };
    assert_eq!(device.used().verify(&site(), &CHALLENGE, &key), Err(PasskeyFault::OtherAlgorithm));
}

#[test]
fn what_is_longer_than_any_device_says_it_is_refused() {
    let device = Device::new(false);
    // The same key with a further member, {99: octets}.
    let padded = |octets: u16| {
        let mut key = device.cose();
        key[0] += 1;
        key.extend([0x18, 99, 0x59]);
        key.extend(octets.to_be_bytes());
        key.resize(key.len() + usize::from(octets), 0);
        device.made_with(&key).verify(&site(), &CHALLENGE).map(drop)
    };
    assert_eq!(padded(1900), Ok(()));
    assert_eq!(padded(2048), Err(PasskeyFault::Malformed));
    let followed_by = |octets: usize| {
        let mut made = device.made();
        let attestation = decoded(&made.response.attestation).unwrap();
        made.response.attestation = encoded([attestation, vec![0; octets]].concat());
        made.verify(&site(), &CHALLENGE).map(drop)
    };
    assert_eq!(followed_by(10_000), Ok(()));
    assert_eq!(followed_by(MAX_PART), Err(PasskeyFault::Malformed));
}

#[test]
fn browsers_keep_passkeys_for_names_over_https() {
    let of = |url| Site::of(url).map(|site| (site.id, site.origin));
    let made = |id: &str, origin: &str| Some((id.to_owned(), origin.to_owned()));
    assert_eq!(of("https://mail.example.com"), made("mail.example.com", "https://mail.example.com"));
    assert_eq!(of("https://Mail.Example.com:8443/x"), made("mail.example.com", "https://mail.example.com:8443"));
    assert_eq!(of("http://localhost:8080"), made("localhost", "http://localhost:8080"));
    for other in ["http://mail.example.com", "https://192.0.2.1", "https://[::1]", "mail.example.com", ""] {
        assert_eq!(of(other), None, "{other}");
    }
}
