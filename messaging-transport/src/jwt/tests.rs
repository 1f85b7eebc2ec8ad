use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

use super::*;

/// RFC 7515 appendix A.2.1, written as PKCS#8.
const RSA: &str = include_str!("keys/rfc7515_a2.pem");
/// RFC 7515 appendix A.3.1, written as PKCS#8.
const P256: &str = include_str!("keys/rfc7515_a3.pem");

/// The payload of all examples in RFC 7515 appendix A.
const PAYLOAD: &str = "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

const A1: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const A1_KEY: &str = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";

const A2: &str = "eyJhbGciOiJSUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CU\
    Ar7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d\
    O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0ig\
    cN_IoypGlUPQGe77Rw";

const A3: &str = "eyJhbGciOiJFUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

fn a1_key() -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(A1_KEY).unwrap()
}

/// Returns true if a token was signed by ES256 with the private half of this key.
fn is_signed_by(token: &str, public_key: &[u8]) -> bool {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public_key).verify(signed.as_bytes(), &signature).is_ok()
}

#[test]
fn rs256_signs_as_rfc_7515_appendix_a2_says() {
    let key = SigningKey::rs256(RSA).unwrap();
    assert_eq!(key.compact(br#"{"alg":"RS256"}"#, PAYLOAD.as_bytes()), A2);
}

#[test]
fn es256_signs_what_the_key_of_rfc_7515_appendix_a3_verifies() {
    let key = SigningKey::es256(P256).unwrap();
    assert!(is_signed_by(A3, key.public_key()), "the published signature belongs to the published key");
    let ours = key.compact(br#"{"alg":"ES256"}"#, PAYLOAD.as_bytes());
    assert!(is_signed_by(&ours, key.public_key()));
    assert_eq!(ours.rsplit_once('.').unwrap().0, A3.rsplit_once('.').unwrap().0);
    let other = SigningKey::es256(&new_p256_key()).unwrap();
    assert!(!is_signed_by(&ours, other.public_key()));
}

#[test]
fn tokens_say_how_they_are_signed_and_with_which_key() {
    let part = |token: &str, at: usize| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
    };
    let claims = json!({"iss": "TEAM", "iat": 1_700_000_000});
    let token = SigningKey::es256(P256).unwrap().token(Some("KEY"), &claims);
    assert_eq!(part(&token, 0), json!({"alg": "ES256", "typ": "JWT", "kid": "KEY"}));
    assert_eq!(part(&token, 1), claims);
    let token = SigningKey::rs256(RSA).unwrap().token(None, &claims);
    assert_eq!(part(&token, 0), json!({"alg": "RS256", "typ": "JWT"}));
}

#[test]
fn keys_are_read_however_they_were_pasted() {
    for changed in [RSA.replace('\n', "\r\n"), RSA.replace('\n', " "), RSA.replace('\n', "\\n"), format!("\n {RSA} \n")]
    {
        let key = SigningKey::rs256(&changed).unwrap();
        assert_eq!(key.compact(br#"{"alg":"RS256"}"#, PAYLOAD.as_bytes()), A2, "{changed:?}");
    }
    assert!(SigningKey::es256(&new_p256_key()).is_ok(), "our own keys too");
}

#[test]
fn keys_that_cannot_sign_are_refused_with_the_reason() {
    let of = |key: Result<SigningKey, KeyFault>| key.err();
    assert_eq!(of(SigningKey::rs256("")), Some(KeyFault::Pem));
    assert_eq!(of(SigningKey::rs256(&RSA.replace("PRIVATE KEY", "RSA PRIVATE KEY"))), Some(KeyFault::Pem));
    assert_eq!(of(SigningKey::rs256(&format!("{BEGIN}\n!!!\n{END}"))), Some(KeyFault::Pem));
    assert_eq!(of(SigningKey::rs256(P256)), Some(KeyFault::Rsa));
    assert_eq!(of(SigningKey::es256(RSA)), Some(KeyFault::P256));
}

#[test]
fn hs256_is_checked_as_rfc_7515_appendix_a1_says() {
    let claims = hs256_claims(A1, &a1_key()).unwrap();
    assert_eq!(claims["iss"], "joe");
    assert!(is_current(&claims, Timestamp::from_millis(1_300_819_379_999)));
    assert!(!is_current(&claims, Timestamp::from_millis(1_300_819_380_000)));
}

#[test]
fn what_is_not_signed_with_the_secret_has_no_claims() {
    let sign = |header: &str, payload: &str| {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &a1_key()), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    assert!(hs256_claims(&sign(r#"{"alg":"HS256"}"#, "{}"), &a1_key()).is_some());
    let forged = A1.replace("joe", "jim").replacen("eyJpc3MiOiJqb2Ui", "eyJpc3MiOiJqaW0i", 1);
    let unsigned = format!("{}.", A1.rsplit_once('.').unwrap().0);
    for token in [
        forged,
        unsigned,
        A2.to_owned(),
        sign(r#"{"alg":"none"}"#, "{}"),
        sign(r#"{"alg":"HS256","crit":["b64"]}"#, "{}"),
        sign(r#"{"alg":"HS256"}"#, "[]"),
        String::new(),
        "..".to_owned(),
        "a".repeat(MAX_TOKEN + 1),
    ] {
        assert!(hs256_claims(&token, &a1_key()).is_none(), "{token}");
    }
    assert!(hs256_claims(A1, b"another").is_none());
    assert!(hs256_claims(A1, b"").is_none());
}

#[test]
fn claims_without_dates_hold_and_those_with_unreadable_dates_do_not() {
    let holds = |claims: Value, now: i64| is_current(claims.as_object().unwrap(), Timestamp::from_millis(now * 1000));
    assert!(holds(json!({}), 5) && holds(json!({"exp": null}), 5));
    assert!(holds(json!({"nbf": 5, "exp": 6}), 5) && !holds(json!({"nbf": 6}), 5) && !holds(json!({"exp": 5}), 5));
    assert!(holds(json!({"exp": 6.5}), 5) && !holds(json!({"exp": "soon"}), 5));
}
