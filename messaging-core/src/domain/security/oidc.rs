//! Single sign-on by OpenID Connect: the rules of the authorization code flow, without a socket.
//!
//! Contract section 25; OpenID Connect Core 1.0, Discovery 1.0, RFC 7515 to 7519, RFC 7636 (PKCE). The provider's
//! documents are read in [`discovery`] and [`keys`], a token is parsed in [`jws`] and verified in [`id_token`];
//! [`flow`] is the state that a browser carries from the beginning of a sign-in to its end, and [`group_roles`] maps
//! groups of the provider to roles.

pub mod discovery;
pub mod flow;
pub mod group_roles;
pub mod id_token;
pub mod jws;
pub mod keys;
pub mod token_fault;

use serde::{Deserialize, Serialize};

use crate::domain::security::secret::Secret;
use crate::ids::UserId;
use crate::time::Timestamp;
use group_roles::GroupRole;

/// Maximum length of an issuer, in characters.
pub const MAX_ISSUER: usize = 512;
/// Maximum length of a client id, in characters.
pub const MAX_CLIENT_ID: usize = 512;
/// Maximum length of the provider's display name, in characters.
pub const MAX_NAME: usize = 60;
/// Maximum length of the name of a claim, in characters.
pub const MAX_CLAIM: usize = 200;
/// Maximum number of entries of the map from groups to roles.
pub const MAX_GROUP_ROLES: usize = 500;

/// The provider that people sign in with, as the settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// The provider's issuer identifier, a URL: that of its discovery document and of every token.
    pub issuer: String,
    /// Id of this server at the provider.
    pub client_id: String,
    /// Secret of that client; `None` for a public client, which PKCE alone protects.
    pub client_secret: Option<Secret>,
    /// Display name of the provider.
    pub name: String,
    /// The claim of ID tokens that lists a person's groups.
    pub groups_claim: String,
    /// The roles that groups give; at most [`MAX_GROUP_ROLES`].
    pub group_roles: Vec<GroupRole>,
    /// True if this is the only way to sign in, except for links of the operator.
    pub only: bool,
}

/// Claims of a verified ID token that are needed to join a person to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedIdentity {
    /// The provider's issuer identifier.
    pub issuer: String,
    /// Identifier of the person at that provider, which never changes.
    pub subject: String,
    /// A display name.
    pub name: Option<String>,
    /// Groups of the person that give roles here; at most [`MAX_GROUP_ROLES`].
    pub groups: Vec<String>,
}

/// A person at a provider who is linked to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The provider's issuer identifier.
    pub issuer: String,
    /// Identifier of the person at that provider, which never changes (OpenID Connect Core section 2, `sub`).
    pub subject: String,
    /// The user.
    pub user_id: UserId,
    /// Time at which the two were linked.
    pub linked_at: Timestamp,
}
