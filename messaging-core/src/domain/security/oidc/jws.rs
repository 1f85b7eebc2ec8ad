//! A signed token in its compact form (RFC 7515 section 7.1), as far as it can be read before its key is known.
//!
//! Only algorithms with a key pair are read at all. `none` would need no key, and with `HS256` the public key of the provider
//! would serve as the secret, so neither has a name here (RFC 8725 section 3.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::token_fault::TokenFault;

/// Octets of a token that is read. Lists of groups make some long.
pub const MAX_TOKEN_BYTES: usize = 64 << 10;

/// A signature algorithm that is taken (RFC 7518 section 3.1, RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwsAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl JwsAlgorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The name in `alg`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

/// A token that was taken apart, and whose signature nobody has verified yet.
pub struct CompactJws<'a> {
    /// The algorithm that its header names.
    pub algorithm: JwsAlgorithm,
    /// The key that its header names.
    pub key_id: Option<String>,
    /// The octets that are signed.
    pub(super) signed: &'a [u8],
    /// The payload, which counts for nothing before the signature is verified.
    pub(super) payload: Vec<u8>,
    /// The signature.
    pub(super) signature: Vec<u8>,
}

/// The members of the header that are looked at. One that is given twice is an error.
#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that must be understood (RFC 7515 section 4.1.11); none is.
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

impl<'a> CompactJws<'a> {
    /// Takes a token apart.
    pub fn parse(token: &'a str) -> Result<Self, TokenFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        // The alphabet has no dot, so a token of more parts, such as an encrypted one, is none of base64url.
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Malformed);
        let header = decode(header)?;
        // A list would be taken for the members in their order.
        if !header.trim_ascii_start().starts_with(b"{") {
            return Err(TokenFault::Malformed);
        }
        let header: Header = serde_json::from_slice(&header).map_err(|_| TokenFault::Malformed)?;
        let algorithm = JwsAlgorithm::named(&header.alg).ok_or(TokenFault::Algorithm)?;
        if header.crit.is_some() {
            return Err(TokenFault::Malformed);
        }
        let (payload, signature) = (decode(payload)?, decode(signature)?);
        Ok(Self { algorithm, key_id: header.kid, signed: signed.as_bytes(), payload, signature })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Result<JwsAlgorithm, TokenFault>) {
        let token = format!("{}.{}.AA", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode("{}"));
        assert_eq!(CompactJws::parse(&token).map(|token| token.algorithm), expected, "{header}");
    }

    #[test]
    fn only_algorithms_with_a_key_pair_are_read() {
        check(r#"{"alg":"RS256"}"#, Ok(JwsAlgorithm::Rs256));
        check(r#"{"alg":"ES256","kid":"1","typ":"JWT"}"#, Ok(JwsAlgorithm::Es256));
        check(r#"{"alg":"EdDSA"}"#, Ok(JwsAlgorithm::EdDsa));
        for name in ["none", "None", "nOnE", "HS256", "HS512", "RS1", "PS256", "ES512", "rs256", "RS256 ", ""] {
            check(&format!(r#"{{"alg":"{name}"}}"#), Err(TokenFault::Algorithm));
        }
        for header in [
            r"{}",
            r#"{"alg":null}"#,
            r#"{"alg":["RS256"]}"#,
            r#"{"alg":"RS256","alg":"ES256"}"#,
            r#"{"alg":"RS256","crit":["exp"]}"#,
            r#"{"alg":"RS256","kid":7}"#,
            r#"["RS256"]"#,
            "",
        ] {
            check(header, Err(TokenFault::Malformed));
        }
    }

    #[test]
    fn a_token_has_three_parts_of_base64url() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256"}"#);
        for token in [
            String::new(),
            header.clone(),
            format!("{header}.e30"),
            format!("{header}.e30.AA.AA.AA"),
            format!("{header}=.e30.AA"),
            format!("{header}.e30.A+"),
            format!(" {header}.e30.AA"),
            format!("{header}.{}.AA", "A".repeat(MAX_TOKEN_BYTES)),
        ] {
            assert!(matches!(CompactJws::parse(&token), Err(TokenFault::Malformed)), "{token:.40}");
        }
        assert!(CompactJws::parse(&format!("{header}.e30.AA")).is_ok());
    }
}
