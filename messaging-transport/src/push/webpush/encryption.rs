//! Message encryption for web push (RFC 8291) in the content coding `aes128gcm` (RFC 8188).
//!
//! One record, without padding. The sender's key pair and the salt are new for every message.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::SecureRandom as _;

use crate::jwt::random;

/// Length of an uncompressed point on P-256, in octets.
pub(super) const POINT: usize = 65;
/// Length of the secret that a browser makes for a subscription, in octets.
pub(super) const AUTH_SECRET: usize = 16;
const SALT: usize = 16;

/// Record size that is announced: the message is one record, and the last one may be shorter.
const RECORD_SIZE: u32 = 4096;
/// Delimiter that ends the content of the last record (RFC 8188 section 2).
const LAST_RECORD: u8 = 2;

/// The public key of the browser is no point on the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadKey;

/// Encrypts a message for the browser that made this key and secret.
pub(super) fn encrypt(
    browser_key: &[u8; POINT],
    auth_secret: &[u8; AUTH_SECRET],
    message: &[u8],
) -> Result<Vec<u8>, BadKey> {
    const RANDOM: &str = "the operating system provides randomness";
    let random = random();
    let mut salt = [0; SALT];
    random.fill(&mut salt).expect(RANDOM);
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).expect(RANDOM);
    let own_key = own.compute_public_key().expect("a private key has a public one");
    let browser = UnparsedPublicKey::new(&ECDH_P256, browser_key);
    let seal = |shared: &[u8]| sealed(shared, browser_key, own_key.as_ref(), auth_secret, &salt, message);
    agree_ephemeral(own, &browser, seal).map_err(|_| BadKey)
}

/// Returns the header and the one record (RFC 8291 section 3.4, RFC 8188 section 2).
fn sealed(
    shared_secret: &[u8],
    browser_key: &[u8],
    own_key: &[u8],
    auth_secret: &[u8],
    salt: &[u8; SALT],
    message: &[u8],
) -> Vec<u8> {
    let keying: [u8; 32] = derived(auth_secret, shared_secret, &[b"WebPush: info\0".as_slice(), browser_key, own_key]);
    let key: [u8; 16] = derived(salt, &keying, &[b"Content-Encoding: aes128gcm\0"]);
    let nonce: [u8; 12] = derived(salt, &keying, &[b"Content-Encoding: nonce\0"]);

    let mut record = message.to_vec();
    record.push(LAST_RECORD);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).expect("the key has the length of the algorithm"));
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)
        .expect("a message is shorter than AES-GCM allows");

    let key_length = u8::try_from(own_key.len()).expect("a point has 65 octets");
    let mut body = salt.to_vec();
    body.extend(RECORD_SIZE.to_be_bytes());
    body.push(key_length);
    body.extend(own_key);
    body.extend(record);
    body
}

/// Derives a key with HKDF (RFC 5869) and SHA-256.
fn derived<const LENGTH: usize>(salt: &[u8], keying: &[u8], info: &[&[u8]]) -> [u8; LENGTH] {
    let mut output = [0; LENGTH];
    let key = Salt::new(HKDF_SHA256, salt).extract(keying);
    key.expand(info, Length(LENGTH))
        .and_then(|material| material.fill(&mut output))
        .expect("fewer octets than allowed");
    output
}

/// Number of octets that HKDF derives.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Decrypts a message as the browser does.
#[cfg(test)]
pub(super) fn decrypt(
    browser: EphemeralPrivateKey,
    browser_key: &[u8],
    auth_secret: &[u8],
    body: &[u8],
) -> Option<Vec<u8>> {
    let (salt, rest) = body.split_at_checked(SALT)?;
    let (_, rest) = rest.split_at_checked(4)?;
    let (&length, rest) = rest.split_first()?;
    let (sender_key, record) = rest.split_at_checked(length.into())?;
    let open = |shared: &[u8]| {
        let keying: [u8; 32] = derived(auth_secret, shared, &[b"WebPush: info\0".as_slice(), browser_key, sender_key]);
        let key: [u8; 16] = derived(salt, &keying, &[b"Content-Encoding: aes128gcm\0"]);
        let nonce: [u8; 12] = derived(salt, &keying, &[b"Content-Encoding: nonce\0"]);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        let mut record = record.to_vec();
        let opened = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record).ok()?;
        opened.strip_suffix(&[LAST_RECORD]).map(<[u8]>::to_vec)
    };
    agree_ephemeral(browser, &UnparsedPublicKey::new(&ECDH_P256, sender_key), open).ok()?
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn octets(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    const MESSAGE: &[u8] = b"When I grow up, I want to be a watermelon";

    /// RFC 8291 section 5 and appendix A, from the shared secret on: ring takes no private key for an agreement.
    #[test]
    fn a_message_is_sealed_as_rfc_8291_says() {
        let body = sealed(
            &octets("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"),
            &octets("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            &octets("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"),
            &octets("BTBZMqHH6r4Tts7J_aSIgg"),
            &octets("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap(),
            MESSAGE,
        );
        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzA\
            C8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(URL_SAFE_NO_PAD.encode(body), expected);
    }

    #[test]
    fn only_the_browser_that_subscribed_reads_a_message() {
        let browser = || {
            let key = EphemeralPrivateKey::generate(&ECDH_P256, &random()).unwrap();
            let public: [u8; POINT] = key.compute_public_key().unwrap().as_ref().try_into().unwrap();
            (key, public)
        };
        let ((key, public), auth) = (browser(), [7; AUTH_SECRET]);
        let body = encrypt(&public, &auth, MESSAGE).unwrap();
        assert_ne!(body, encrypt(&public, &auth, MESSAGE).unwrap(), "keys and salt are new each time");
        assert_eq!(decrypt(key, &public, &auth, &body).unwrap(), MESSAGE);

        let (stranger, _) = browser();
        assert_eq!(decrypt(stranger, &public, &auth, &body), None);
        let (key, public) = browser();
        let body = encrypt(&public, &auth, MESSAGE).unwrap();
        assert_eq!(decrypt(key, &public, &[8; AUTH_SECRET], &body), None);
    }

    #[test]
    fn a_key_that_is_no_point_on_the_curve_is_refused() {
        let mut key = [1; POINT];
        key[0] = 4;
        assert_eq!(encrypt(&key, &[0; AUTH_SECRET], MESSAGE), Err(BadKey));
        assert_eq!(encrypt(&[0; POINT], &[0; AUTH_SECRET], MESSAGE), Err(BadKey));
    }
}
