//! Published example keys, which nobody takes for a secret.

use ring::signature::{KeyPair as _, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

/// An RSA key of 2048 bits as PKCS#8 in PEM (RFC 7515 appendix A.2).
pub(crate) const RSA: &str = include_str!("keys/rfc7515_a2.pem");

/// An ECDSA key on P-256 as PKCS#8 in PEM (RFC 7515 appendix A.3).
pub(crate) const P256: &str = include_str!("keys/rfc7515_a3.pem");

/// The public half of [`P256`]: the uncompressed point in base64url.
pub(crate) const P256_PUBLIC: &str =
    "BH_Nzidw9sRdQYPL7m_bS3tYBzM1e-nvE7rPbjx70VRFx_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

/// The modulus of [`RSA`] in base64url.
#[cfg(feature = "peers")]
pub(crate) const RSA_MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
    T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB\
    dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia\
    GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";

/// Returns the public half of an RSA key in PKCS#8 in PEM: its `RSAPublicKey` in DER. `None` if it is no such key.
pub(super) fn rsa_public_key(pem: &str) -> Option<Vec<u8>> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?;
    Some(key.public_key().as_ref().to_vec())
}
