//! The keys that a provider signs with: its JWK set (RFC 7517, RFC 7518 section 6, RFC 8037).
//!
//! A key belongs to one algorithm, by its type, curve and `alg`: a token whose algorithm is another one has no key here. So no
//! key is ever used for what it was not made for (RFC 8725 section 2.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::jws::{CompactJws, JwsAlgorithm};
use super::token_fault::TokenFault;

/// Octets of a key set that is read.
pub const MAX_KEYS_BYTES: usize = 256 << 10;
/// Keys of a set that are looked at.
const MAX_KEYS: usize = 100;

/// The keys of a provider that signatures can be verified by.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<VerificationKey>);

#[derive(Debug, Clone)]
struct VerificationKey {
    id: Option<String>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    /// Modulus and exponent, big-endian, without zeros in front.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The point, uncompressed (SEC 1 section 2.3.3).
    P256([u8; 65]),
    Ed25519([u8; 32]),
}

/// The answer is no key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the provider's key set cannot be read")]
pub struct MalformedKeySet;

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<serde_json::Value>,
}

/// The members of a key that are looked at.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds, for other purposes and beyond the first hundred are passed over.
    pub fn parse(body: &[u8]) -> Result<Self, MalformedKeySet> {
        if body.len() > MAX_KEYS_BYTES {
            return Err(MalformedKeySet);
        }
        let set: JwkSet = serde_json::from_slice(body).map_err(|_| MalformedKeySet)?;
        let keys = set.keys.into_iter().take(MAX_KEYS);
        Ok(Self(keys.filter_map(|key| serde_json::from_value(key).ok().and_then(VerificationKey::of)).collect()))
    }

    /// True if no key can be the one that a token names, so that the set may be an old one.
    pub fn lacks_key_of(&self, token: &CompactJws<'_>) -> bool {
        match &token.key_id {
            Some(id) => self.0.iter().all(|key| key.id.as_ref() != Some(id)),
            None => self.of_algorithm(token.algorithm).next().is_none(),
        }
    }

    /// Verifies the signature of a token and hands its payload over.
    pub fn verified(&self, token: CompactJws<'_>) -> Result<Vec<u8>, TokenFault> {
        let key = self.key_of(&token).ok_or(TokenFault::Key)?;
        if key.has_signed(&token) { Ok(token.payload) } else { Err(TokenFault::Signature) }
    }

    /// The key of a token: the one that it names, or the only one of its algorithm where it names none.
    fn key_of(&self, token: &CompactJws<'_>) -> Option<&VerificationKey> {
        let mut fitting = self.of_algorithm(token.algorithm);
        if let Some(id) = &token.key_id {
            return fitting.find(|key| key.id.as_ref() == Some(id));
        }
        fitting.next().filter(|_| fitting.next().is_none())
    }

    fn of_algorithm(&self, algorithm: JwsAlgorithm) -> impl Iterator<Item = &VerificationKey> {
        self.0.iter().filter(move |key| key.material.algorithm() == algorithm)
    }
}

impl Material {
    const fn algorithm(&self) -> JwsAlgorithm {
        match self {
            Self::Rsa { .. } => JwsAlgorithm::Rs256,
            Self::P256(_) => JwsAlgorithm::Es256,
            Self::Ed25519(_) => JwsAlgorithm::EdDsa,
        }
    }
}

impl VerificationKey {
    /// A key that verifies signatures; `None` for one of another kind, for another purpose, or that is malformed.
    fn of(key: Jwk) -> Option<Self> {
        if key.purpose.is_some_and(|purpose| purpose != "sig")
            || key.key_ops.is_some_and(|operations| !operations.iter().any(|one| one == "verify"))
        {
            return None;
        }
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", None) => Material::Rsa { n: number(key.n?)?, e: number(key.e?)? },
            ("EC", Some("P-256")) => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(&octets::<32>(key.x?)?);
                point[33..].copy_from_slice(&octets::<32>(key.y?)?);
                Material::P256(point)
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(octets(key.x?)?),
            _ => return None,
        };
        let is_for_it = key.alg.is_none_or(|name| JwsAlgorithm::named(&name) == Some(material.algorithm()));
        is_for_it.then_some(Self { id: key.kid, material })
    }

    fn has_signed(&self, token: &CompactJws<'_>) -> bool {
        let CompactJws { signed, signature, .. } = token;
        let verified = match &self.material {
            // Keys of fewer than 2048 bits are refused.
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature),
            Material::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(signed, signature),
        };
        verified.is_ok()
    }
}

/// A positive number, big-endian, without zeros in front.
fn number(text: String) -> Option<Vec<u8>> {
    let octets = URL_SAFE_NO_PAD.decode(text).ok()?;
    let first = octets.iter().position(|octet| *octet != 0)?;
    Some(octets[first..].to_vec())
}

fn octets<const N: usize>(text: String) -> Option<[u8; N]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The RSA key of RFC 7515 appendix A.2 and the P-256 key of appendix A.3.
    const RSA_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
        T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS\
        -UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2et\
        hFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const EC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const EC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
    /// The token of RFC 7515 appendix A.3.
    const ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9p\
        c19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// The token of RFC 7515 appendix A.2.
    const RS256: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9p\
        c19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W\
        2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K\
        0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs\
        98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    fn set(keys: &[String]) -> KeySet {
        KeySet::parse(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes()).unwrap()
    }

    fn rsa(more: &str) -> String {
        format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AQAB"{more}}}"#)
    }

    fn ec(more: &str) -> String {
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{EC_X}","y":"{EC_Y}"{more}}}"#)
    }

    fn verify(keys: &KeySet, token: &str) -> Result<(), TokenFault> {
        keys.verified(CompactJws::parse(token).unwrap()).map(drop)
    }

    #[test]
    fn the_signatures_of_the_specification_verify() {
        let keys = set(&[rsa(r#","kid":"r","use":"sig","alg":"RS256""#), ec(r#","kid":"e""#)]);
        assert_eq!(verify(&keys, RS256), Ok(()));
        assert_eq!(verify(&keys, ES256), Ok(()));
        for token in [RS256, ES256] {
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let (header, payload) = signed.split_once('.').unwrap();
            let other = format!("{header}.{}.{signature}", payload.replacen('J', "K", 1));
            assert_eq!(verify(&keys, &other), Err(TokenFault::Signature));
            assert_eq!(verify(&keys, &format!("{signed}.")), Err(TokenFault::Signature));
        }
        // The same with zeros in front of the modulus.
        let mut octets = URL_SAFE_NO_PAD.decode(RSA_N).unwrap();
        octets.insert(0, 0);
        let padded = format!(r#"{{"kty":"RSA","n":"{}","e":"AAEAAQ"}}"#, URL_SAFE_NO_PAD.encode(octets));
        assert_eq!(verify(&set(&[padded]), RS256), Ok(()));
    }

    #[test]
    fn a_key_serves_its_own_algorithm_alone() {
        for (keys, token) in [
            (set(&[ec("")]), RS256),
            (set(&[rsa("")]), ES256),
            (set(&[rsa(r#","alg":"RS512""#)]), RS256),
            (set(&[rsa(r#","alg":"HS256""#)]), RS256),
            (set(&[rsa(r#","use":"enc""#)]), RS256),
            (set(&[rsa(r#","key_ops":["encrypt"]"#)]), RS256),
            (set(&[rsa(r#","crv":"P-256""#)]), RS256),
            (set(&[ec("").replace("P-256", "P-384")]), ES256),
            (set(&[ec("").replace(EC_X, "AAAA")]), ES256),
            (set(&[r#"{"kty":"oct","k":"c2VjcmV0"}"#.to_owned(), r#""key""#.to_owned()]), RS256),
            // Which of two is meant nobody says.
            (set(&[rsa(""), rsa("")]), RS256),
        ] {
            assert_eq!(verify(&keys, token), Err(TokenFault::Key), "{keys:?}");
        }
    }

    #[test]
    fn a_token_that_names_a_key_is_verified_by_it() {
        let token = |header: &str| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
        let keys = set(&[rsa(r#","kid":"one""#), ec(r#","kid":"two""#)]);
        let lacks = |header: &str| keys.lacks_key_of(&CompactJws::parse(&token(header)).unwrap());
        assert!(lacks(r#"{"alg":"RS256","kid":"new"}"#));
        assert!(lacks(r#"{"alg":"EdDSA"}"#));
        assert!(!lacks(r#"{"alg":"RS256"}"#));
        assert!(!lacks(r#"{"alg":"RS256","kid":"one"}"#));
        let of = |header: &str| verify(&keys, &token(header));
        assert_eq!(of(r#"{"alg":"RS256","kid":"one"}"#), Err(TokenFault::Signature));
        assert_eq!(of(r#"{"alg":"RS256","kid":"two"}"#), Err(TokenFault::Key), "it is of another algorithm");
        assert_eq!(of(r#"{"alg":"RS256","kid":"new"}"#), Err(TokenFault::Key));
    }

    #[test]
    fn what_is_no_key_set_is_told_apart() {
        for body in ["", "[]", "{}", r#"{"keys":{}}"#, "<html>"] {
            assert!(KeySet::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(KeySet::parse(&vec![b' '; MAX_KEYS_BYTES + 1]).is_err());
        assert!(KeySet::parse(br#"{"keys":[]}"#).is_ok());
    }
}
