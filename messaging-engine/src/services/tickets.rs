//! Tickets, each of which opens one session for a person without their password (contract section 2.3).
//!
//! A ticket is known to its holder alone; the store keeps its digest. A ticket of the operator is void as soon as a
//! password is set, so that nobody who kept an old one gets in after that; one of a workspace's administrator opens an
//! invitation.

use std::time::Duration;

use messaging_core::domain::security::account::{Ticket, TicketInvitation, User};
use messaging_core::domain::security::api_key::random_text;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::secret::Secret;
use messaging_core::time::Timestamp;

use crate::app::App;

/// Lifetime of a ticket that the operator makes.
pub(crate) const OPERATORS_LIFETIME: Duration = Duration::from_mins(10);
/// Lifetime of a ticket that an administrator of a workspace makes for a member.
pub(crate) const MEMBERS_LIFETIME: Duration = Duration::from_hours(72);

/// Prefix of a ticket.
const MARKER: &str = "mt_";
/// Number of random characters of a secret that signs in: 256 bits.
pub(crate) const SECRET_LENGTH: usize = 43;
/// Characters of which such secrets are made.
pub(crate) const SECRET_ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl App {
    /// Returns a new ticket for a user, and the link that holds it: in the part after `#`, which browsers send to no
    /// server.
    pub(crate) fn new_ticket(
        &self,
        user: &User,
        invitation: Option<TicketInvitation>,
        lifetime: Duration,
        now: Timestamp,
    ) -> (Ticket, Secret) {
        let text = format!("{MARKER}{}", random_text(self.entropy(), SECRET_ALPHABET, SECRET_LENGTH));
        let ticket = Ticket {
            digest: Digest::of(&text),
            user_id: user.id,
            password_version: user.password_version,
            invitation,
            created_at: now,
            expires_at: now + lifetime,
        };
        let url = format!("{}/console#ticket={text}", self.settings().public_url.trim_end_matches('/'));
        (ticket, url.into())
    }
}
