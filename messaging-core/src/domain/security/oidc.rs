//! Single sign-on by OpenID Connect: the rules of the authorization code flow, without a socket.
//!
//! Contract section 25; OpenID Connect Core 1.0, Discovery 1.0, RFC 7515 to 7519, RFC 7636 (PKCE). The provider's documents
//! are read in [`discovery`] and [`keys`], a token in [`jws`] and verified in [`id_token`]; [`flow`] is what a browser carries
//! from the beginning of a sign-in to its end, and [`group_roles`] what groups of the provider open here.

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

/// Characters of an issuer, at most.
pub const MAX_ISSUER: usize = 512;
/// Characters of a client id, at most.
pub const MAX_CLIENT_ID: usize = 512;
/// Characters of the provider's name as people read it, at most.
pub const MAX_NAME: usize = 60;
/// Characters of the name of a claim, at most.
pub const MAX_CLAIM: usize = 200;
/// Entries of the map from groups to roles, at most.
pub const MAX_GROUP_ROLES: usize = 500;

/// The provider that people sign in with, as the settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// The provider's issuer identifier, a URL: that of its discovery document and of every token.
    pub issuer: String,
    /// The id under which the provider knows this server.
    pub client_id: String,
    /// The secret of that client; `None` for a public client, which PKCE alone protects.
    pub client_secret: Option<Secret>,
    /// The provider's name as people read it.
    pub name: String,
    /// The claim of ID tokens that lists a person's groups.
    pub groups_claim: String,
    /// The roles that groups give; at most [`MAX_GROUP_ROLES`].
    pub group_roles: Vec<GroupRole>,
    /// Whether this is the only way to sign in, but for links of the operator.
    pub only: bool,
}

/// Claims of a verified ID token that are needed to join a person to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedIdentity {
    /// The provider's issuer identifier.
    pub issuer: String,
    /// The person at that provider, who never changes.
    pub subject: String,
    /// A display name.
    pub name: Option<String>,
    /// Those of their groups that give roles here; at most [`MAX_GROUP_ROLES`].
    pub groups: Vec<String>,
}

/// A person at a provider who was joined to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The provider's issuer identifier.
    pub issuer: String,
    /// The person at that provider, who never changes (OpenID Connect Core section 2, `sub`).
    pub subject: String,
    /// The user.
    pub user_id: UserId,
    /// When the two were joined.
    pub linked_at: Timestamp,
}
