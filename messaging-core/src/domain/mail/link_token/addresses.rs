//! Return addresses, which name a message and perhaps one of its recipients.

use ring::hmac;
use subtle::ConstantTimeEq as _;

use super::LinkKey;
use crate::ids::{Id as _, MessageId, WorkspaceId};

/// Octets of the MAC in an address, where a token must be short: guessing one takes 2^79 messages on average.
pub(super) const ADDRESS_MAC: usize = 10;

/// Octets that identify one of the at most 101 recipients of a message: two tags of a message are equal once in 10^8
/// messages.
const RECIPIENT_TAG: usize = 5;

/// Tag of a recipient in a return address: octets of a MAC, which do not reveal the recipient's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipientTag([u8; RECIPIENT_TAG]);

/// Purpose of a return address: receiving bounces or requests to unsubscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnPurpose {
    /// `bounce+TOKEN@…`, the envelope sender.
    Bounce,
    /// `unsubscribe+TOKEN@…`, the mailto form of List-Unsubscribe.
    Unsubscribe,
}

impl ReturnPurpose {
    /// Both purposes.
    pub const ALL: [Self; 2] = [Self::Bounce, Self::Unsubscribe];

    /// Returns the word before the plus sign.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

impl LinkKey {
    /// Returns the tag of a recipient of a message, whose address is spelled as in the stored request.
    pub fn recipient_tag(&self, message: MessageId, address: &str) -> RecipientTag {
        let mac = self.sign(&[b"recipient\0", &message.to_bytes()[..], address.as_bytes()].concat());
        RecipientTag(mac.as_ref()[..RECIPIENT_TAG].try_into().expect("SHA-256 has 32 octets"))
    }

    /// Returns true if a tag belongs to this recipient of the message, under any of the keys.
    pub fn is_recipient(&self, tag: RecipientTag, message: MessageId, address: &str) -> bool {
        self.each().any(|key| key.recipient_tag(message, address) == tag)
    }

    /// Returns the local part of a return address: at most 62 characters, lower case, because mail systems may change
    /// the case. With a recipient, returned mail concerns that recipient alone.
    ///
    /// The workspace is not in the local part, to keep it short; a reader tries the workspaces that the domain belongs
    /// to.
    pub fn local_part(
        &self,
        purpose: ReturnPurpose,
        workspace: WorkspaceId,
        message: MessageId,
        recipient: Option<RecipientTag>,
    ) -> String {
        let mut octets = message.to_bytes().to_vec();
        octets.extend(recipient.iter().flat_map(|tag| tag.0));
        octets.extend(&address_mac(&self.0[0], purpose, workspace, &octets));
        format!("{}+{}", purpose.word(), base32(&octets))
    }

    /// Returns the purpose, the message and, if named, the recipient of a local part; `None` unless one of the keys
    /// made it for this workspace.
    pub fn read_local_part(
        &self,
        workspace: WorkspaceId,
        local_part: &str,
    ) -> Option<(ReturnPurpose, MessageId, Option<RecipientTag>)> {
        let (word, token) = local_part.split_once('+')?;
        let purpose = ReturnPurpose::ALL.into_iter().find(|purpose| purpose.word().eq_ignore_ascii_case(word))?;
        let octets =
            from_base32(token, 16 + ADDRESS_MAC).or_else(|| from_base32(token, 16 + RECIPIENT_TAG + ADDRESS_MAC))?;
        let (named, mac) = octets.split_at(octets.len() - ADDRESS_MAC);
        let is_of = |key: &hmac::Key| bool::from(address_mac(key, purpose, workspace, named).ct_eq(mac));
        if !self.0.iter().any(is_of) {
            return None;
        }
        let (id, tag) = named.split_at(16);
        Some((purpose, MessageId::from_bytes(id.try_into().ok()?), tag.try_into().ok().map(RecipientTag)))
    }
}

/// Returns the MAC over the purpose, the workspace and the octets that name a message and perhaps one of its
/// recipients.
fn address_mac(key: &hmac::Key, purpose: ReturnPurpose, workspace: WorkspaceId, named: &[u8]) -> [u8; ADDRESS_MAC] {
    let text = [purpose.word().as_bytes(), b"\0", &workspace.to_bytes(), named].concat();
    hmac::sign(key, &text).as_ref()[..ADDRESS_MAC].try_into().expect("SHA-256 has 32 bytes")
}

/// Crockford's alphabet in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

pub(super) fn base32(octets: &[u8]) -> String {
    let (mut text, mut bits, mut held) = (String::new(), 0_u32, 0_u32);
    for octet in octets {
        held = (held << 8) | u32::from(*octet);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(held << (5 - bits)) as usize & 31]));
    }
    text
}

/// Returns the `length` octets from which [`base32`] makes this text, in any case; `None` for any other text.
pub(super) fn from_base32(text: &str, length: usize) -> Option<Vec<u8>> {
    if text.len() != (length * 8).div_ceil(5) {
        return None;
    }
    let (mut octets, mut bits, mut held) = (Vec::with_capacity(length), 0_u32, 0_u32);
    for byte in text.bytes() {
        let value = ALPHABET.iter().position(|letter| letter.eq_ignore_ascii_case(&byte))?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            octets.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
        held &= (1 << bits) - 1;
    }
    (held == 0 && octets.len() == length).then_some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (WorkspaceId, MessageId) {
        ("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(), "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap())
    }

    #[test]
    fn local_parts_round_trip_in_any_case() {
        let (workspace, message) = ids();
        let key = LinkKey::new(&[7; 32]);
        let tag = key.recipient_tag(message, "ann@example.com");
        for (purpose, tag) in ReturnPurpose::ALL.into_iter().flat_map(|purpose| [(purpose, None), (purpose, Some(tag))])
        {
            let local = key.local_part(purpose, workspace, message, tag);
            assert!(local.len() <= 62, "{local}");
            assert_eq!(key.read_local_part(workspace, &local), Some((purpose, message, tag)));
            assert_eq!(key.read_local_part(workspace, &local.to_uppercase()), Some((purpose, message, tag)));
            let other = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGK".parse().unwrap();
            assert_eq!(key.read_local_part(other, &local), None);
            let elsewhere = local.replace(purpose.word(), "postmaster");
            assert_eq!(key.read_local_part(workspace, &elsewhere), None);
        }
        let swapped = key.local_part(ReturnPurpose::Bounce, workspace, message, None).replace("bounce", "unsubscribe");
        for bad in ["", "bounce", "bounce+", "bounce+0", &swapped] {
            assert_eq!(key.read_local_part(workspace, bad), None);
        }
    }

    #[test]
    fn an_address_in_mail_of_earlier_versions_is_still_read() {
        let (workspace, message) = ids();
        let read =
            LinkKey::new(&[7; 32]).read_local_part(workspace, "bounce+069cex3wpmvgzn3s7x9dhnsy2b0k4axexmae889k4r");
        assert_eq!(read, Some((ReturnPurpose::Bounce, message, None)));
    }

    #[test]
    fn a_recipient_cannot_be_exchanged_for_another() {
        let (workspace, message) = ids();
        let key = LinkKey::new(&[7; 32]);
        let tag = |address| key.recipient_tag(message, address);
        assert_ne!(tag("ann@example.com"), tag("bob@example.com"));
        assert_ne!(LinkKey::new(&[8; 32]).recipient_tag(message, "ann@example.com"), tag("ann@example.com"));
        let local = key.local_part(ReturnPurpose::Bounce, workspace, message, Some(tag("ann@example.com")));
        for at in "bounce+".len()..local.len() {
            let mut forged = local.clone().into_bytes();
            forged[at] = if forged[at] == b'a' { b'b' } else { b'a' };
            assert_eq!(key.read_local_part(workspace, std::str::from_utf8(&forged).unwrap()), None);
        }
    }
}
