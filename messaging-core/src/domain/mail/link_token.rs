//! Tokens in links and return addresses, which name a message and prove that we made them.
//!
//! Contract section 18. A token holds ids and a MAC (HMAC-SHA256, truncated), never an address. A wrong one is refused
//! without saying what is wrong with it.

mod forms;
mod reports;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::domain::channel::Channel;
use crate::domain::security::secret_key::KeyRing;
use crate::ids::{Id as _, ImageId, ImportId, MessageId, WorkspaceId};

pub use self::reports::ReportPurpose;

/// Octets of the MAC in a link.
const LINK_MAC: usize = 16;

/// Octets of the MAC in an address, where a token must be short: guessing one takes 2^79 letters.
const ADDRESS_MAC: usize = 10;

/// Octets that identify one of the at most 101 recipients of a message: two of them are equal once in 10^8 messages.
const RECIPIENT_TAG: usize = 5;

/// Identifies a recipient of a message in a return address, without revealing the address: octets of a MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipientTag([u8; RECIPIENT_TAG]);

/// First octet of the token of an upload; those of [`Link`] are 1 to 3, 7 and 11 to 14.
const UPLOAD: u8 = 4;

/// First octet of the token of a redirected link with a number; a redirected link without one has 2.
const NUMBERED_CLICK: u8 = 7;

/// First octet of the token by which a provider's receipt names a message.
const RECEIPT: u8 = 6;

/// First octet of the data that a [`CopyKey`] is made of.
const COPY: u8 = 5;

/// First octet of the token of a channel's callback address.
const CALLBACK: u8 = 8;

/// First octet of the data that a [`SettingsTag`] is made of.
const SETTINGS: u8 = 9;

/// First octet of the data that the secret of a callback address is made of.
const CALLBACK_SECRET: u8 = 10;

/// First octet of the token of an image.
const IMAGE: u8 = 11;

/// Number of octets of the secret of a callback address.
const SECRET_LENGTH: usize = 24;

/// Identifies the settings of a channel: a truncated MAC over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsTag([u8; LINK_MAC]);

/// Purpose of a link in a message: open pixel, redirect, or one of the pages for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The open pixel.
    Open,
    /// A redirected link: the key of its target, and its number among the links of its template, if it has one.
    Click(UrlKey, Option<u8>),
    /// The unsubscribe page.
    Unsubscribe,
    /// The page that confirms a subscription.
    Confirm,
    /// The page of preferences.
    Preferences,
    /// The page that makes the address of the message the address of its contact.
    ChangeAddress,
    /// The page that erases the contact.
    Erase,
}

impl Link {
    /// The pages for the reader of a message, each with the first octet of its token.
    const PAGES: [(Self, u8); 5] = [
        (Self::Unsubscribe, 3),
        (Self::Confirm, 11),
        (Self::Preferences, 12),
        (Self::ChangeAddress, 13),
        (Self::Erase, 14),
    ];
}

/// Identifies a stored URL: the first 16 octets of its SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlKey(pub [u8; 16]);

impl UrlKey {
    /// Returns the key of a URL.
    pub fn of(url: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, url.as_bytes());
        Self(digest.as_ref()[..16].try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// Identifies an address that is copied on messages: the first 16 octets of a MAC over workspace and address, so that
/// nobody without the key file can tell whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyKey(pub [u8; 16]);

/// Purpose of a return address: receiving bounces or requests to unsubscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnPurpose {
    /// `bounce+TOKEN@…`, the envelope sender.
    Bounce,
    /// `unsubscribe+TOKEN@…`, the mailto form of List-Unsubscribe.
    Unsubscribe,
}

impl ReturnPurpose {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Bounce, Self::Unsubscribe];

    /// Returns the word before the plus sign.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// Makes tokens with the first key of a ring, and reads tokens that were made with any of them.
///
/// Invariant: at least one key.
pub struct LinkKey(Vec<hmac::Key>);

impl LinkKey {
    /// Returns a key for tokens, from the 32 bytes of a secret key.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(vec![derived(secret)])
    }

    /// Returns a key for tokens, from the secret keys of an installation.
    pub fn of(ring: &KeyRing) -> Self {
        Self(ring.keys().iter().map(|key| derived(key.as_bytes())).collect())
    }

    /// Returns each key alone, the one that makes tokens first: for comparing a stored value with a newly made one.
    pub fn each(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.iter().map(|key| Self(vec![key.clone()]))
    }

    fn sign(&self, octets: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0[0], octets)
    }

    /// Returns the token of a link in a message.
    pub fn link(&self, workspace: WorkspaceId, message: MessageId, link: Link) -> String {
        let mut octets = Vec::with_capacity(66);
        octets.push(match link {
            Link::Open => 1,
            Link::Click(_, None) => 2,
            Link::Click(_, Some(_)) => NUMBERED_CLICK,
            page => Link::PAGES.into_iter().find(|(known, _)| *known == page).map_or(0, |(_, octet)| octet),
        });
        octets.extend(workspace.to_bytes());
        octets.extend(message.to_bytes());
        if let Link::Click(url, number) = link {
            octets.extend(url.0);
            octets.extend(number);
        }
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the workspace, message and link of a token, if it is one of ours.
    pub fn read_link(&self, token: &str) -> Option<(WorkspaceId, MessageId, Link)> {
        let said = self.read(token)?;
        let id = |from: usize| said.get(from..from + 16).and_then(|id| <[u8; 16]>::try_from(id).ok());
        let link = match (said.first()?, said.len()) {
            (1, 33) => Link::Open,
            (2, 49) => Link::Click(UrlKey(id(33)?), None),
            (&NUMBERED_CLICK, 50) => Link::Click(UrlKey(id(33)?), said.last().copied()),
            (octet, 33) => Link::PAGES.into_iter().find(|(_, known)| known == octet)?.0,
            _ => return None,
        };
        Some((WorkspaceId::from_bytes(id(1)?), MessageId::from_bytes(id(17)?), link))
    }

    /// Returns octets with their MAC, as text.
    fn token(&self, mut octets: Vec<u8>) -> String {
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the token of the link that a file for an import is uploaded to.
    pub fn upload(&self, workspace: WorkspaceId, import: ImportId) -> String {
        let mut octets = vec![UPLOAD];
        octets.extend(workspace.to_bytes());
        octets.extend(import.to_bytes());
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the workspace and import of a token, if it is one of ours.
    pub fn read_upload(&self, token: &str) -> Option<(WorkspaceId, ImportId)> {
        let said = self.read(token)?;
        let id = |from: usize| said.get(from..from + 16).and_then(|id| <[u8; 16]>::try_from(id).ok());
        if said.first() != Some(&UPLOAD) || said.len() != 33 {
            return None;
        }
        Some((WorkspaceId::from_bytes(id(1)?), ImportId::from_bytes(id(17)?)))
    }

    /// Returns the token of the address of an image.
    pub fn image(&self, workspace: WorkspaceId, image: ImageId) -> String {
        let mut octets = vec![IMAGE];
        octets.extend(workspace.to_bytes());
        octets.extend(image.to_bytes());
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the workspace and image of a token, if it is one of ours.
    pub fn read_image(&self, token: &str) -> Option<(WorkspaceId, ImageId)> {
        let said = self.read(token)?;
        let id = |from: usize| said.get(from..from + 16).and_then(|id| <[u8; 16]>::try_from(id).ok());
        if said.first() != Some(&IMAGE) || said.len() != 33 {
            return None;
        }
        Some((WorkspaceId::from_bytes(id(1)?), ImageId::from_bytes(id(17)?)))
    }

    /// Returns the token by which a provider's receipt names a message.
    pub fn receipt(&self, workspace: WorkspaceId, message: MessageId) -> String {
        let mut octets = vec![RECEIPT];
        octets.extend(workspace.to_bytes());
        octets.extend(message.to_bytes());
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the workspace and message of a receipt's token, if it is one of ours.
    pub fn read_receipt(&self, token: &str) -> Option<(WorkspaceId, MessageId)> {
        let said = self.read(token)?;
        let id = |from: usize| said.get(from..from + 16).and_then(|id| <[u8; 16]>::try_from(id).ok());
        if said.first() != Some(&RECEIPT) || said.len() != 33 {
            return None;
        }
        Some((WorkspaceId::from_bytes(id(1)?), MessageId::from_bytes(id(17)?)))
    }

    /// Returns the tag of the settings of a channel, given as octets that only equal settings share.
    pub fn settings_tag(&self, workspace: WorkspaceId, channel: Channel, settings: &[u8]) -> SettingsTag {
        let mac = self.sign(&channel_octets(SETTINGS, workspace, channel, settings));
        SettingsTag(mac.as_ref()[..LINK_MAC].try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Returns the token of the callback address of a channel under settings.
    pub fn callback(&self, workspace: WorkspaceId, channel: Channel, settings: SettingsTag) -> String {
        let mut octets = channel_octets(CALLBACK, workspace, channel, &settings.0);
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the workspace and channel of a callback address's token, if it is one of ours, and the settings that it
    /// was made under, which the caller compares with the present ones.
    pub fn read_callback(&self, token: &str) -> Option<(WorkspaceId, Channel, SettingsTag)> {
        let said = self.read(token)?;
        let (CALLBACK, 34) = (*said.first()?, said.len()) else { return None };
        let channel = Channel::ALL.get(usize::from(said[17]))?;
        let tag = SettingsTag(said[18..].try_into().ok()?);
        Some((WorkspaceId::from_bytes(said[1..17].try_into().ok()?), *channel, tag))
    }

    /// Returns a secret that the provider of a channel may be asked to send along: 32 letters, digits, `-` and `_`.
    pub fn callback_secret(&self, workspace: WorkspaceId, channel: Channel, settings: SettingsTag) -> String {
        let mac = self.sign(&channel_octets(CALLBACK_SECRET, workspace, channel, &settings.0));
        URL_SAFE_NO_PAD.encode(&mac.as_ref()[..SECRET_LENGTH])
    }

    /// Returns the key of an email address (normalized) that is copied on messages of a workspace.
    pub fn copy(&self, workspace: WorkspaceId, address: &str) -> CopyKey {
        let mut octets = vec![COPY];
        octets.extend(workspace.to_bytes());
        octets.extend(address.as_bytes());
        let mac = self.sign(&octets);
        CopyKey(mac.as_ref()[..16].try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Returns the keys of an address that is copied, one for each secret key: messages are listed under the key of
    /// their time.
    pub fn copies(&self, workspace: WorkspaceId, address: &str) -> Vec<CopyKey> {
        self.each().map(|key| key.copy(workspace, address)).collect()
    }

    /// Returns the octets of a token before its MAC, if the MAC is right.
    fn read(&self, token: &str) -> Option<Vec<u8>> {
        // The longest token is 66 octets, 88 characters.
        let mut octets = (token.len() <= 90).then(|| URL_SAFE_NO_PAD.decode(token).ok())??;
        let mac = octets.split_off(octets.len().checked_sub(LINK_MAC)?);
        let is_of = |key: &hmac::Key| bool::from(hmac::sign(key, &octets).as_ref()[..LINK_MAC].ct_eq(&mac));
        self.0.iter().any(is_of).then_some(octets)
    }

    /// Returns the tag of a recipient of a message, whose address is spelled as in the stored request.
    pub fn recipient_tag(&self, message: MessageId, address: &str) -> RecipientTag {
        let mac = self.sign(&[b"recipient\0", &message.to_bytes()[..], address.as_bytes()].concat());
        RecipientTag(mac.as_ref()[..RECIPIENT_TAG].try_into().expect("SHA-256 has 32 octets"))
    }

    /// Returns true if a tag is that of a recipient of a message, under any of the keys.
    pub fn is_recipient(&self, tag: RecipientTag, message: MessageId, address: &str) -> bool {
        self.each().any(|key| key.recipient_tag(message, address) == tag)
    }

    /// Returns the local part of a return address: at most 62 characters, lower case, because mail systems may change
    /// the case. With a recipient, returned mail concerns that recipient alone.
    ///
    /// The workspace is not in it, to keep it short; a reader tries the workspaces that the domain belongs to.
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

    /// Returns purpose and message of a local part, and the recipient if it names one, if it is one of ours for this
    /// workspace.
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

/// Returns the key that makes tokens, derived from the 32 bytes of a secret key.
fn derived(secret: &[u8; 32]) -> hmac::Key {
    let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), b"messaging/links/1");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

/// Returns the MAC over the names in an address: a message, and perhaps a recipient of it.
fn address_mac(key: &hmac::Key, purpose: ReturnPurpose, workspace: WorkspaceId, named: &[u8]) -> [u8; ADDRESS_MAC] {
    let text = [purpose.word().as_bytes(), b"\0", &workspace.to_bytes(), named].concat();
    hmac::sign(key, &text).as_ref()[..ADDRESS_MAC].try_into().expect("SHA-256 has 32 bytes")
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(…)")
    }
}

/// Returns the octets about a channel of a workspace that are signed.
fn channel_octets(purpose: u8, workspace: WorkspaceId, channel: Channel, settings: &[u8]) -> Vec<u8> {
    let number = Channel::ALL.iter().position(|one| *one == channel).unwrap_or_default();
    let mut octets = vec![purpose];
    octets.extend(workspace.to_bytes());
    octets.extend(u8::try_from(number));
    octets.extend(settings);
    octets
}

/// Crockford's alphabet in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn base32(octets: &[u8]) -> String {
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

/// Returns the octets from which [`base32`] makes this text, in any case; `None` for any other text.
fn from_base32(text: &str, length: usize) -> Option<Vec<u8>> {
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
    use crate::domain::security::secret_key::SecretKey;

    fn ids() -> (WorkspaceId, MessageId) {
        ("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(), "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap())
    }

    fn kinds() -> [Link; 8] {
        let url = UrlKey::of("https://a.b");
        let [unsubscribe, confirm, preferences, change, erase] = Link::PAGES.map(|(page, _)| page);
        [
            Link::Open,
            Link::Click(url, None),
            Link::Click(url, Some(63)),
            unsubscribe,
            confirm,
            preferences,
            change,
            erase,
        ]
    }

    #[test]
    fn a_link_in_mail_of_earlier_versions_is_still_read() {
        let (workspace, message) = ids();
        let token = "AgGSx3R8tTcP1Hk_UtjXPhEBksd0fLU3D9R5P1LY1z4SBlZEuqcZErnm39LuQL7EbAHEy-C82S095FL7RcwJBoU";
        let read = LinkKey::new(&[7; 32]).read_link(token);
        assert_eq!(read, Some((workspace, message, Link::Click(UrlKey::of("https://a.b"), None))));
    }

    #[test]
    fn links_round_trip_and_no_other_text_is_one() {
        let (workspace, message) = ids();
        let key = LinkKey::new(&[7; 32]);
        for link in kinds() {
            let token = key.link(workspace, message, link);
            assert_eq!(key.read_link(&token), Some((workspace, message, link)));
            assert_eq!(LinkKey::new(&[8; 32]).read_link(&token), None);
            for at in 0..token.len() {
                let mut changed = token.clone().into_bytes();
                changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
                assert_eq!(key.read_link(std::str::from_utf8(&changed).unwrap()), None);
            }
            assert_eq!(key.read_link(&token[1..]), None);
        }
        for bad in ["", "A", "é", &"A".repeat(90), &"A".repeat(1000)] {
            assert_eq!(key.read_link(bad), None);
        }
    }

    #[test]
    fn what_an_older_key_made_is_read_and_new_tokens_are_of_the_first() {
        let (workspace, message) = ids();
        let (old, new) = (SecretKey::from_bytes([7; 32]), SecretKey::from_bytes([8; 32]));
        let (before, alone) = (LinkKey::new(old.as_bytes()), LinkKey::new(new.as_bytes()));
        let both = LinkKey::of(&KeyRing::new([new, old]).unwrap());
        for link in kinds() {
            let token = before.link(workspace, message, link);
            assert_eq!(both.read_link(&token), Some((workspace, message, link)));
            assert_eq!(both.link(workspace, message, link), alone.link(workspace, message, link));
        }
        let import = "imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        assert_eq!(both.read_upload(&before.upload(workspace, import)), Some((workspace, import)));
        assert_eq!(both.read_receipt(&before.receipt(workspace, message)), Some((workspace, message)));
        let tag = before.settings_tag(workspace, Channel::Sms, b"a");
        let callback = before.callback(workspace, Channel::Sms, tag);
        assert_eq!(both.read_callback(&callback), Some((workspace, Channel::Sms, tag)));
        let recipient = before.recipient_tag(message, "ann@example.com");
        assert!(both.is_recipient(recipient, message, "ann@example.com"));
        assert!(!both.is_recipient(recipient, message, "bob@example.com"));
        assert!(!alone.is_recipient(recipient, message, "ann@example.com"));
        for purpose in ReturnPurpose::ALL {
            let local_part = before.local_part(purpose, workspace, message, Some(recipient));
            assert_eq!(both.read_local_part(workspace, &local_part), Some((purpose, message, Some(recipient))));
            assert_eq!(alone.read_local_part(workspace, &local_part), None);
        }
        let copy = |key: &LinkKey| key.copy(workspace, "ann@example.com");
        assert_eq!(both.copies(workspace, "ann@example.com"), [copy(&alone), copy(&before)]);
    }

    #[test]
    fn uploads_are_links_of_their_own() {
        let (workspace, message) = ids();
        let import = "imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let key = LinkKey::new(&[7; 32]);
        let token = key.upload(workspace, import);
        assert_eq!(key.read_upload(&token), Some((workspace, import)));
        assert_eq!(LinkKey::new(&[8; 32]).read_upload(&token), None);
        assert_eq!(key.read_link(&token), None);
        for link in kinds() {
            assert_eq!(key.read_upload(&key.link(workspace, message, link)), None);
        }
        for bad in ["", "A", "é", &token[1..], &"A".repeat(65), &"A".repeat(1000)] {
            assert_eq!(key.read_upload(bad), None);
        }
    }

    #[test]
    fn the_token_of_a_channel_says_which_and_under_what_settings() {
        let (workspace, message) = ids();
        let key = LinkKey::new(&[7; 32]);
        let tag = key.settings_tag(workspace, Channel::Sms, b"a");
        let token = key.callback(workspace, Channel::Sms, tag);
        assert_eq!(key.read_callback(&token), Some((workspace, Channel::Sms, tag)));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{token}");
        for other in [
            key.settings_tag(workspace, Channel::Sms, b"b"),
            key.settings_tag(workspace, Channel::Viber, b"a"),
            key.settings_tag("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGK".parse().unwrap(), Channel::Sms, b"a"),
            LinkKey::new(&[8; 32]).settings_tag(workspace, Channel::Sms, b"a"),
        ] {
            assert_ne!(other, tag);
            assert_ne!(
                key.callback_secret(workspace, Channel::Sms, other),
                key.callback_secret(workspace, Channel::Sms, tag)
            );
        }
        assert_eq!(LinkKey::new(&[8; 32]).read_callback(&token), None);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.read_callback(std::str::from_utf8(&changed).unwrap()), None);
        }
        assert_eq!(key.read_callback(&key.receipt(workspace, message)), None);
        assert_eq!((key.read_receipt(&token), key.read_link(&token), key.read_upload(&token)), (None, None, None));
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
