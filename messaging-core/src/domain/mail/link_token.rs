//! Tokens in links and return addresses, which name a message and prove that we made them.
//!
//! Contract section 18. A token holds ids and a MAC (HMAC-SHA256, truncated), never an address. A wrong one is refused
//! without saying what is wrong with it.

mod addresses;
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

pub use self::addresses::{RecipientTag, ReturnPurpose};
pub use self::reports::ReportPurpose;

/// Octets of the MAC in a link.
const LINK_MAC: usize = 16;

/// First octet of a token, or of other octets that are signed. No two purposes share one, so no token is taken for
/// one of another purpose. Links in mail that was sent last, so a number never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Purpose {
    /// [`Link::Open`].
    Open = 1,
    /// [`Link::Click`] without a number.
    Click = 2,
    /// [`Link::Unsubscribe`].
    Unsubscribe = 3,
    /// Link that a file for an import is uploaded to.
    Upload = 4,
    /// Data that a [`CopyKey`] is made of.
    Copy = 5,
    /// Token by which a provider's receipt names a message.
    Receipt = 6,
    /// [`Link::Click`] with a number.
    NumberedClick = 7,
    /// Callback address of a channel.
    Callback = 8,
    /// Data that a [`SettingsTag`] is made of.
    Settings = 9,
    /// Data that the secret of a callback address is made of.
    CallbackSecret = 10,
    /// Address of an image.
    Image = 11,
    /// [`Link::Preferences`].
    Preferences = 12,
    /// [`Link::ChangeAddress`].
    ChangeAddress = 13,
    /// [`Link::Erase`].
    Erase = 14,
    /// Address of the page of a form.
    Form = 15,
    /// Time at which a page of a form was made.
    FormPage = 16,
    /// [`Link::Confirm`].
    Confirm = 17,
}

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
    /// Links that have no data but the message.
    const PLAIN: [Self; 6] =
        [Self::Open, Self::Unsubscribe, Self::Confirm, Self::Preferences, Self::ChangeAddress, Self::Erase];

    const fn purpose(self) -> Purpose {
        match self {
            Self::Open => Purpose::Open,
            Self::Click(_, None) => Purpose::Click,
            Self::Click(_, Some(_)) => Purpose::NumberedClick,
            Self::Unsubscribe => Purpose::Unsubscribe,
            Self::Confirm => Purpose::Confirm,
            Self::Preferences => Purpose::Preferences,
            Self::ChangeAddress => Purpose::ChangeAddress,
            Self::Erase => Purpose::Erase,
        }
    }
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
        let (workspace, message) = (workspace.to_bytes(), message.to_bytes());
        let (url, number) = match &link {
            Link::Click(url, number) => (&url.0[..], number.as_slice()),
            _ => Default::default(),
        };
        self.token(link.purpose(), &[&workspace, &message, url, number])
    }

    /// Returns the workspace, message and link of a token, if it is one of ours.
    pub fn read_link(&self, token: &str) -> Option<(WorkspaceId, MessageId, Link)> {
        let (purpose, data) = self.read(token)?;
        let (workspace, rest) = data.split_first_chunk()?;
        let (message, rest) = rest.split_first_chunk()?;
        let link = if rest.is_empty() {
            Link::PLAIN.into_iter().find(|link| link.purpose() as u8 == purpose)?
        } else {
            let (url, number) = rest.split_first_chunk()?;
            let link = Link::Click(UrlKey(*url), number.first().copied());
            (number.len() <= 1 && link.purpose() as u8 == purpose).then_some(link)?
        };
        Some((WorkspaceId::from_bytes(*workspace), MessageId::from_bytes(*message), link))
    }

    /// Returns a token: the purpose, the parts of its data, and their MAC, as text.
    fn token(&self, purpose: Purpose, data: &[&[u8]]) -> String {
        let mut octets = [&[purpose as u8][..], &data.concat()].concat();
        let mac = self.sign(&octets);
        octets.extend(&mac.as_ref()[..LINK_MAC]);
        URL_SAFE_NO_PAD.encode(octets)
    }

    /// Returns the token of an object of a workspace, by its id.
    fn object(&self, purpose: Purpose, workspace: WorkspaceId, id: [u8; 16]) -> String {
        self.token(purpose, &[&workspace.to_bytes(), &id])
    }

    /// Returns the workspace and the id of the object that a token was made for, if it is one of ours.
    fn read_object(&self, wanted: Purpose, token: &str) -> Option<(WorkspaceId, [u8; 16])> {
        let data = self.read_data(wanted, token)?;
        let (workspace, id) = data.split_first_chunk()?;
        Some((WorkspaceId::from_bytes(*workspace), id.try_into().ok()?))
    }

    /// Returns the token of the link that a file for an import is uploaded to.
    pub fn upload(&self, workspace: WorkspaceId, import: ImportId) -> String {
        self.object(Purpose::Upload, workspace, import.to_bytes())
    }

    /// Returns the workspace and import of a token, if it is one of ours.
    pub fn read_upload(&self, token: &str) -> Option<(WorkspaceId, ImportId)> {
        self.read_object(Purpose::Upload, token).map(|(workspace, id)| (workspace, ImportId::from_bytes(id)))
    }

    /// Returns the token of the address of an image.
    pub fn image(&self, workspace: WorkspaceId, image: ImageId) -> String {
        self.object(Purpose::Image, workspace, image.to_bytes())
    }

    /// Returns the workspace and image of a token, if it is one of ours.
    pub fn read_image(&self, token: &str) -> Option<(WorkspaceId, ImageId)> {
        self.read_object(Purpose::Image, token).map(|(workspace, id)| (workspace, ImageId::from_bytes(id)))
    }

    /// Returns the token by which a provider's receipt names a message.
    pub fn receipt(&self, workspace: WorkspaceId, message: MessageId) -> String {
        self.object(Purpose::Receipt, workspace, message.to_bytes())
    }

    /// Returns the workspace and message of a receipt's token, if it is one of ours.
    pub fn read_receipt(&self, token: &str) -> Option<(WorkspaceId, MessageId)> {
        self.read_object(Purpose::Receipt, token).map(|(workspace, id)| (workspace, MessageId::from_bytes(id)))
    }

    /// Returns the tag of the settings of a channel, given as octets that only equal settings share.
    pub fn settings_tag(&self, workspace: WorkspaceId, channel: Channel, settings: &[u8]) -> SettingsTag {
        let mac = self.mac(Purpose::Settings, &[&workspace.to_bytes(), &[number(channel)], settings]);
        SettingsTag(mac.as_ref()[..LINK_MAC].try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Returns the token of the callback address of a channel under settings.
    pub fn callback(&self, workspace: WorkspaceId, channel: Channel, settings: SettingsTag) -> String {
        self.token(Purpose::Callback, &[&workspace.to_bytes(), &[number(channel)], &settings.0])
    }

    /// Returns the workspace and channel of a callback address's token, if it is one of ours, and the settings that it
    /// was made under, which the caller compares with the present ones.
    pub fn read_callback(&self, token: &str) -> Option<(WorkspaceId, Channel, SettingsTag)> {
        let data = self.read_data(Purpose::Callback, token)?;
        let (workspace, rest) = data.split_first_chunk()?;
        let (channel, tag) = rest.split_first()?;
        let channel = Channel::ALL.get(usize::from(*channel))?;
        Some((WorkspaceId::from_bytes(*workspace), *channel, SettingsTag(tag.try_into().ok()?)))
    }

    /// Returns a secret that the provider of a channel may be asked to send along: 32 letters, digits, `-` and `_`.
    pub fn callback_secret(&self, workspace: WorkspaceId, channel: Channel, settings: SettingsTag) -> String {
        let mac = self.mac(Purpose::CallbackSecret, &[&workspace.to_bytes(), &[number(channel)], &settings.0]);
        URL_SAFE_NO_PAD.encode(&mac.as_ref()[..SECRET_LENGTH])
    }

    /// Returns the key of an email address (normalized) that is copied on messages of a workspace.
    pub fn copy(&self, workspace: WorkspaceId, address: &str) -> CopyKey {
        let mac = self.mac(Purpose::Copy, &[&workspace.to_bytes(), address.as_bytes()]);
        CopyKey(mac.as_ref()[..16].try_into().expect("SHA-256 has 32 bytes"))
    }

    /// Returns the keys of an address that is copied, one for each secret key: messages are listed under the key of
    /// their time.
    pub fn copies(&self, workspace: WorkspaceId, address: &str) -> Vec<CopyKey> {
        self.each().map(|key| key.copy(workspace, address)).collect()
    }

    /// Returns the first octet of a token and its data, if the MAC is right.
    fn read(&self, token: &str) -> Option<(u8, Vec<u8>)> {
        // The longest token is 66 octets, 88 characters.
        let mut octets = (token.len() <= 90).then(|| URL_SAFE_NO_PAD.decode(token).ok())??;
        let mac = octets.split_off(octets.len().checked_sub(LINK_MAC)?);
        let is_of = |key: &hmac::Key| bool::from(hmac::sign(key, &octets).as_ref()[..LINK_MAC].ct_eq(&mac));
        if octets.is_empty() || !self.0.iter().any(is_of) {
            return None;
        }
        Some((octets.remove(0), octets))
    }

    /// Returns the data of a token that was made for this purpose, if it is one of ours.
    fn read_data(&self, wanted: Purpose, token: &str) -> Option<Vec<u8>> {
        self.read(token).and_then(|(purpose, data)| (purpose == wanted as u8).then_some(data))
    }

    /// Returns the MAC over data that is signed for a purpose.
    fn mac(&self, purpose: Purpose, data: &[&[u8]]) -> hmac::Tag {
        self.sign(&[&[purpose as u8][..], &data.concat()].concat())
    }
}

/// Returns the key that makes tokens, derived from the 32 bytes of a secret key.
fn derived(secret: &[u8; 32]) -> hmac::Key {
    let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), b"messaging/links/1");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(…)")
    }
}

/// Returns the number of a channel in tokens.
fn number(channel: Channel) -> u8 {
    u8::try_from(Channel::ALL.iter().position(|one| *one == channel).unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::security::secret_key::SecretKey;
    use crate::ids::FormId;
    use crate::time::Timestamp;

    fn ids() -> (WorkspaceId, MessageId) {
        ("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(), "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap())
    }

    fn kinds() -> impl Iterator<Item = Link> {
        let url = UrlKey::of("https://a.b");
        Link::PLAIN.into_iter().chain([Link::Click(url, None), Link::Click(url, Some(63))])
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
    fn a_token_is_read_for_its_purpose_alone() {
        let (workspace, message) = ids();
        let key = LinkKey::new(&[7; 32]);
        // One id everywhere, so that only the purpose tells the tokens apart.
        let id = message.to_bytes();
        let tag = key.settings_tag(workspace, Channel::Sms, b"a");
        let tokens = [
            ("upload", key.upload(workspace, ImportId::from_bytes(id))),
            ("image", key.image(workspace, ImageId::from_bytes(id))),
            ("receipt", key.receipt(workspace, message)),
            ("form", key.form(workspace, FormId::from_bytes(id))),
            ("form page", key.form_page(FormId::from_bytes(id), Timestamp::from_millis(0), [0; 8])),
            ("callback", key.callback(workspace, Channel::Sms, tag)),
        ]
        .into_iter()
        .chain(kinds().map(|link| ("link", key.link(workspace, message, link))));
        for (made_for, token) in tokens {
            let read = [
                ("upload", key.read_upload(&token).is_some()),
                ("image", key.read_image(&token).is_some()),
                ("receipt", key.read_receipt(&token).is_some()),
                ("form", key.read_form(&token).is_some()),
                ("form page", key.read_form_page(FormId::from_bytes(id), &token).is_some()),
                ("callback", key.read_callback(&token).is_some()),
                ("link", key.read_link(&token).is_some()),
            ];
            let read: Vec<_> = read.into_iter().filter(|(_, is_read)| *is_read).map(|(reader, _)| reader).collect();
            assert_eq!(read, [made_for]);
        }
    }

    #[test]
    fn no_other_text_is_an_upload() {
        let (workspace, _) = ids();
        let import = "imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let token = LinkKey::new(&[7; 32]).upload(workspace, import);
        assert_eq!(LinkKey::new(&[7; 32]).read_upload(&token), Some((workspace, import)));
        assert_eq!(LinkKey::new(&[8; 32]).read_upload(&token), None);
        for bad in ["", "A", "é", &token[1..], &"A".repeat(65), &"A".repeat(1000)] {
            assert_eq!(LinkKey::new(&[7; 32]).read_upload(bad), None);
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
}
