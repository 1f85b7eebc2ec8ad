//! Passkeys: public keys whose private keys a device keeps for a person and proves to have (WebAuthn level 3).
//!
//! The device verifies the person itself, by a fingerprint or a PIN (user verification), so a passkey is both factors
//! at once. Attestation is not asked for: whoever may add a passkey may choose the device. Accepted algorithms are
//! those of all devices: ES256, EdDSA with Ed25519, RS256.

use std::fmt;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cbor::Cbor;

/// COSE numbers of the algorithms, in order of preference.
const ALGORITHMS: [i64; 3] = [EDDSA, ES256, RS256];
const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;

/// Flags of authenticator data: the person was present, was verified, and a key comes with it.
const PRESENT: u8 = 1;
const VERIFIED: u8 = 1 << 2;
const HAS_KEY: u8 = 1 << 6;

/// Milliseconds that the browser waits for the person.
const PATIENCE: u32 = 300_000;

/// Maximum length of a part of an answer, in characters: it is far shorter even with the certificates that some devices
/// add unasked.
const MAX_PART: usize = 64 << 10;

/// Bytes of a COSE key at most; one of RSA with 8192 bits has 1100.
const MAX_KEY: usize = 2048;

/// Bytes of the longest id of a credential (WebAuthn, section 5.8.3).
const MAX_CREDENTIAL_ID: usize = 1023;

/// Reason why a passkey is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyFault {
    /// The answer of the browser cannot be read.
    #[error("is not the answer of a browser: send what `toJSON` of its PublicKeyCredential returns")]
    Malformed,
    /// The answer belongs to another challenge, or to another ceremony.
    #[error("answers another challenge: begin again, and answer the options that come then")]
    OtherChallenge,
    /// The answer was made for another site.
    #[error("was made for another site: open the console at the address of --public-url")]
    OtherSite,
    /// The device did not verify the person.
    #[error("the device did not verify you: try again with its PIN, fingerprint or face")]
    NotVerified,
    /// The algorithm of the key is not accepted.
    #[error("the key has an algorithm other than ES256, EdDSA or RS256: use another device")]
    OtherAlgorithm,
    /// The signature is not that of the key.
    #[error("the signature does not match the passkey: try again")]
    WrongSignature,
    /// The counter of the device did not rise: somebody may have copied the key.
    #[error("the counter of the device did not rise, so the passkey may have been copied: delete it and add a new one")]
    Copied,
}

/// The site of the passkeys: the address at which browsers reach the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Host of the site.
    pub id: String,
    /// Scheme, host and port, as browsers write them.
    pub origin: String,
}

impl Site {
    /// Returns the site of an address; `None` if browsers keep no passkeys for it, because it has no name of its own or
    /// is reached without encryption.
    pub fn of(public_url: &str) -> Option<Self> {
        let url = public_url.to_ascii_lowercase();
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (host, port) = authority.split_once(':').map_or((authority, ""), |(host, port)| (host, port));
        let is_of_name = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'.' || octet == b'-';
        let is_name = !host.is_empty() && host.bytes().all(is_of_name) && host.parse::<Ipv4Addr>().is_err();
        let is_local = host == "localhost" || host.ends_with(".localhost");
        let usual_port = match scheme {
            "https" => "443",
            "http" if is_local => "80",
            _ => return None,
        };
        if !is_name {
            return None;
        }
        let port = if port.is_empty() || port == usual_port { String::new() } else { format!(":{port}") };
        Some(Self { id: host.to_owned(), origin: format!("{scheme}://{host}{port}") })
    }
}

/// A passkey as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// Id of the credential, base64url.
    pub credential: String,
    /// The public key in COSE format, base64url.
    pub key: String,
    /// The counter of the device; 0 if it has none.
    pub count: u32,
}

/// Credential from a browser that made a passkey, as its `toJSON` writes it.
#[derive(Clone, Deserialize)]
pub struct NewCredential {
    /// Id of the credential, base64url.
    pub id: String,
    /// The answer of the device.
    pub response: NewCredentialResponse,
}

/// The answer of a device that has made a passkey.
#[derive(Clone, Deserialize)]
pub struct NewCredentialResponse {
    /// Client data: the challenge and the origin that asked for it, base64url.
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    /// Attestation object with the key, base64url.
    #[serde(rename = "attestationObject")]
    pub attestation: String,
}

/// Assertion from a browser that used a passkey, as its `toJSON` writes it.
#[derive(Clone, Deserialize)]
pub struct Assertion {
    /// Id of the credential, base64url.
    pub id: String,
    /// The answer of the device.
    pub response: AssertionResponse,
}

/// The answer of a device that has a passkey.
#[derive(Clone, Deserialize)]
pub struct AssertionResponse {
    /// Client data: the challenge and the origin that asked for it, base64url.
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    /// Authenticator data of the device, base64url.
    #[serde(rename = "authenticatorData")]
    pub authenticator_data: String,
    /// Signature of authenticator data and client data, base64url.
    pub signature: String,
    /// Id of the person that was given to the device with the key, base64url.
    #[serde(rename = "userHandle", default)]
    pub user_handle: Option<String>,
}

impl fmt::Debug for NewCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewCredential(…)")
    }
}

impl fmt::Debug for NewCredentialResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewCredentialResponse(…)")
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion(…)")
    }
}

impl fmt::Debug for AssertionResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AssertionResponse(…)")
    }
}

/// Returns the challenge for a secret text: its digest.
pub fn challenge_of(text: &str) -> [u8; 32] {
    digest(&SHA256, format!("passkey {text}").as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The person that a passkey is made for.
#[derive(Debug, Clone, Copy)]
pub struct PasskeyUser<'a> {
    /// Id of the person, which the device returns.
    pub handle: [u8; 16],
    /// The sign-in name.
    pub email: &'a str,
    /// The display name.
    pub name: &'a str,
}

/// Returns the options with which a browser makes a passkey, as its `parseCreationOptionsFromJSON` reads them. `known`
/// are the ids of the person's credentials, so that no device makes a second one.
pub fn creation_options(
    site: &Site,
    challenge: &[u8; 32],
    user: PasskeyUser<'_>,
    known: &[String],
) -> Map<String, Value> {
    object(json!({
        "rp": {"id": site.id, "name": site.id},
        "user": {"id": URL_SAFE_NO_PAD.encode(user.handle), "name": user.email, "displayName": user.name},
        "challenge": URL_SAFE_NO_PAD.encode(challenge),
        "pubKeyCredParams": ALGORITHMS.map(|algorithm| json!({"type": "public-key", "alg": algorithm})),
        "timeout": PATIENCE,
        "excludeCredentials": descriptors(known),
        "authenticatorSelection": {"residentKey": "required", "requireResidentKey": true, "userVerification": "required"},
        "attestation": "none",
    }))
}

/// Returns the options with which a browser uses a passkey, as its `parseRequestOptionsFromJSON` reads them: one of
/// `allowed`, or if that is empty any that the device has for the site.
pub fn request_options(site: &Site, challenge: &[u8; 32], allowed: &[String]) -> Map<String, Value> {
    object(json!({
        "rpId": site.id,
        "challenge": URL_SAFE_NO_PAD.encode(challenge),
        "timeout": PATIENCE,
        "allowCredentials": descriptors(allowed),
        "userVerification": "required",
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn descriptors(credentials: &[String]) -> Vec<Value> {
    credentials.iter().map(|id| json!({"type": "public-key", "id": id})).collect()
}

impl NewCredential {
    /// Reads a browser's answer from its `toJSON`; other members are ignored.
    pub fn read(members: Map<String, Value>) -> Result<Self, PasskeyFault> {
        serde_json::from_value(Value::Object(members)).map_err(|_| PasskeyFault::Malformed)
    }

    /// Verifies the passkey that a browser made for a challenge, and returns it (WebAuthn, section 7.1).
    pub fn verify(&self, site: &Site, challenge: &[u8; 32]) -> Result<Passkey, PasskeyFault> {
        check_client_data(&self.response.client_data, "webauthn.create", site, challenge)?;
        let attestation = decoded(&self.response.attestation)?;
        let (attestation, _) = Cbor::read(&attestation).ok_or(PasskeyFault::Malformed)?;
        let said = attestation.text_member("authData").and_then(Cbor::as_bytes).ok_or(PasskeyFault::Malformed)?;
        let said = AuthenticatorData::read(said)?;
        said.check(site)?;
        let (credential, key) = said.key.filter(|(_, key)| key.len() <= MAX_KEY).ok_or(PasskeyFault::Malformed)?;
        PublicKey::read(key)?;
        let (credential, key) = (URL_SAFE_NO_PAD.encode(credential), URL_SAFE_NO_PAD.encode(key));
        if credential != self.id {
            return Err(PasskeyFault::Malformed);
        }
        Ok(Passkey { credential, key, count: said.count })
    }
}

impl Assertion {
    /// Reads a browser's answer from its `toJSON`; other members are ignored.
    pub fn read(members: Map<String, Value>) -> Result<Self, PasskeyFault> {
        serde_json::from_value(Value::Object(members)).map_err(|_| PasskeyFault::Malformed)
    }

    /// Verifies the use of the passkey for a challenge, and returns it with its new counter (WebAuthn, section 7.2).
    pub fn verify(&self, site: &Site, challenge: &[u8; 32], passkey: &Passkey) -> Result<Passkey, PasskeyFault> {
        if self.id != passkey.credential {
            return Err(PasskeyFault::WrongSignature);
        }
        let client_data = check_client_data(&self.response.client_data, "webauthn.get", site, challenge)?;
        let mut signed = decoded(&self.response.authenticator_data)?;
        let said = AuthenticatorData::read(&signed)?;
        said.check(site)?;
        let count = said.count;
        signed.extend_from_slice(digest(&SHA256, &client_data).as_ref());
        let key = decoded(&passkey.key)?;
        PublicKey::read(&key)?.verify(&signed, &decoded(&self.response.signature)?)?;
        if (count > 0 || passkey.count > 0) && count <= passkey.count {
            return Err(PasskeyFault::Copied);
        }
        Ok(Passkey { count, ..passkey.clone() })
    }

    /// Returns the id of the person that the device has kept with the key.
    pub fn user_handle(&self) -> Option<[u8; 16]> {
        decoded(self.response.user_handle.as_deref()?).ok()?.try_into().ok()
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, PasskeyFault> {
    if text.len() > MAX_PART {
        return Err(PasskeyFault::Malformed);
    }
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| PasskeyFault::Malformed)
}

/// Client data of a browser; refused if the page is framed by one of another origin.
#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

/// Checks the client data of a browser, and returns it as it was signed.
fn check_client_data(text: &str, kind: &str, site: &Site, challenge: &[u8; 32]) -> Result<Vec<u8>, PasskeyFault> {
    let octets = decoded(text)?;
    let data: ClientData = serde_json::from_slice(&octets).map_err(|_| PasskeyFault::Malformed)?;
    if data.kind != kind || data.challenge != URL_SAFE_NO_PAD.encode(challenge) {
        return Err(PasskeyFault::OtherChallenge);
    }
    if data.origin != site.origin || data.cross_origin {
        return Err(PasskeyFault::OtherSite);
    }
    Ok(octets)
}

/// Authenticator data, which a device signs (WebAuthn, section 6.1).
struct AuthenticatorData<'a> {
    site: &'a [u8],
    flags: u8,
    count: u32,
    /// Id of the credential and the key, if the key is new.
    key: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> AuthenticatorData<'a> {
    fn read(octets: &'a [u8]) -> Result<Self, PasskeyFault> {
        let malformed = PasskeyFault::Malformed;
        let (site, rest) = octets.split_at_checked(32).ok_or(malformed)?;
        let (&flags, rest) = rest.split_first().ok_or(malformed)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or(malformed)?;
        let key = if flags & HAS_KEY == 0 {
            None
        } else {
            let (_, rest) = rest.split_at_checked(16).ok_or(malformed)?;
            let (length, rest) = rest.split_first_chunk::<2>().ok_or(malformed)?;
            let length = usize::from(u16::from_be_bytes(*length));
            if !(1..=MAX_CREDENTIAL_ID).contains(&length) {
                return Err(malformed);
            }
            let (credential, rest) = rest.split_at_checked(length).ok_or(malformed)?;
            let (_, left) = Cbor::read(rest).ok_or(malformed)?;
            Some((credential, &rest[..rest.len() - left.len()]))
        };
        Ok(Self { site, flags, count: u32::from_be_bytes(*count), key })
    }

    fn check(&self, site: &Site) -> Result<(), PasskeyFault> {
        if self.site != digest(&SHA256, site.id.as_bytes()).as_ref() {
            return Err(PasskeyFault::OtherSite);
        }
        let needed = PRESENT | VERIFIED;
        if self.flags & needed == needed { Ok(()) } else { Err(PasskeyFault::NotVerified) }
    }
}

/// A public key (RFC 9053).
enum PublicKey<'a> {
    Es256([u8; 65]),
    EdDsa(&'a [u8]),
    Rs256 { modulus: &'a [u8], exponent: &'a [u8] },
}

impl<'a> PublicKey<'a> {
    fn read(octets: &'a [u8]) -> Result<Self, PasskeyFault> {
        let (key, _) = Cbor::read(octets).ok_or(PasskeyFault::Malformed)?;
        let number = |label| key.member(label).and_then(Cbor::as_int);
        let bytes = |label| key.member(label).and_then(Cbor::as_bytes);
        // Type and curve: EC2 with P-256, OKP with Ed25519, RSA.
        match (number(1), number(3), number(-1)) {
            (Some(2), Some(ES256), Some(1)) => {
                let (x, y) = bytes(-2).zip(bytes(-3)).ok_or(PasskeyFault::Malformed)?;
                let mut point = [4_u8; 65];
                if x.len() != 32 || y.len() != 32 {
                    return Err(PasskeyFault::Malformed);
                }
                point[1..33].copy_from_slice(x);
                point[33..].copy_from_slice(y);
                Ok(Self::Es256(point))
            }
            (Some(1), Some(EDDSA), Some(6)) => {
                Ok(Self::EdDsa(bytes(-2).filter(|key| key.len() == 32).ok_or(PasskeyFault::Malformed)?))
            }
            (Some(3), Some(RS256), _) => {
                let (modulus, exponent) = bytes(-1).zip(bytes(-2)).ok_or(PasskeyFault::Malformed)?;
                Ok(Self::Rs256 { modulus, exponent })
            }
            _ => Err(PasskeyFault::OtherAlgorithm),
        }
    }

    fn verify(&self, signed: &[u8], signature: &[u8]) -> Result<(), PasskeyFault> {
        let outcome = match self {
            Self::Es256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(signed, signature),
            Self::EdDsa(key) => UnparsedPublicKey::new(&ED25519, key).verify(signed, signature),
            Self::Rs256 { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
        };
        outcome.map_err(|_| PasskeyFault::WrongSignature)
    }
}

#[cfg(test)]
mod tests;
