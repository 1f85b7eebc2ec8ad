//! Reasons why a token is refused.

/// Reason why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Not a signed token with the claims that an ID token has.
    #[error("it is not a signed ID token with the claims that are needed")]
    Malformed,
    /// Signed by an algorithm that is not taken, or by none.
    #[error("its algorithm is not one of RS256, ES256, EdDSA; choose one of them at the provider")]
    Algorithm,
    /// The provider has no key of this name for the algorithm.
    #[error("the key set of the provider has no such key for its algorithm")]
    Key,
    /// The signature is not that of the key.
    #[error("its signature does not verify with the provider's key")]
    Signature,
    /// Of another issuer.
    #[error("it is of another issuer than --oidc-issuer")]
    Issuer,
    /// For another client.
    #[error("it is for another client than --oidc-client-id")]
    Audience,
    /// Of another sign-in.
    #[error("its nonce is that of another sign-in")]
    Nonce,
    /// The provider tells more about a person, and it is another one.
    #[error("the UserInfo endpoint answers about somebody else")]
    Subject,
    /// Its time is over.
    #[error("it has expired; is the clock of this server right?")]
    Expired,
    /// Its time has not come, or it was made in the future.
    #[error("it is not valid yet; is the clock of this server right?")]
    NotYetValid,
}
