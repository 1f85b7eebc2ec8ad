//! Maximum lengths of the content of each channel.
//!
//! Contract section 4.1, rows `html, text` and `buttons`; the limits of Viber's two services are those of its API.

use super::{ChannelContent, PushContent, TelegramContent, TelegramText, ViberContent, WhatsappContent};
use crate::domain::channel::address;
use crate::domain::channel::sms;
use crate::violation::FieldCode;

/// Maximum number of characters of an SMS.
pub const MAX_SMS: usize = 1600;
/// Maximum number of characters of the text of a push notification.
const MAX_PUSH: usize = 4000;
/// Maximum size of title, text and data of a push notification together, in bytes: with the rest they fit into the 4
/// KiB of a provider.
pub const MAX_PUSH_BYTES: usize = 3500;
/// Maximum number of characters of a Telegram or WhatsApp message.
const MAX_CHAT: usize = 4096;
/// Maximum number of characters of a Telegram or WhatsApp message with buttons or a medium.
const MAX_CAPTION: usize = 1024;
/// Maximum number of characters of a button of WhatsApp.
const MAX_WHATSAPP_BUTTON: usize = 20;
/// Maximum number of characters of a Viber message of a business.
const MAX_VIBER: usize = 1000;
/// Maximum numbers of characters of a Viber message of a bot, and of one with a picture.
const MAX_VIBER_BOT: (usize, usize) = (7000, 768);

/// Maximum number of bytes of a tag of Telegram's HTML, of which links are the longest; a longer one is taken for
/// text.
const MAX_TAG_BYTES: usize = 4096;

/// Service that sends a Viber message: the two have other addresses and other limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViberService {
    /// A business, to phone numbers.
    Business,
    /// A bot (provider `bot`), to the ids that Viber gives its users there.
    Bot,
}

impl ViberService {
    /// Returns true if the service sends to a Viber address.
    pub fn sends_to(self, address: &str) -> bool {
        self == Self::Bot || address::is_e164(address)
    }
}

/// Error: a part of a content is too long for its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLong {
    /// The member that is too long.
    pub member: &'static str,
    /// Code of the rule, for programs.
    pub code: FieldCode,
    /// Text of the rule, for people.
    pub rule: String,
}

impl TooLong {
    fn new(member: &'static str, rule: impl Into<String>) -> Self {
        Self { member, code: FieldCode::TooLong, rule: rule.into() }
    }
}

impl ChannelContent {
    /// Returns the member that is too long for the channel; on Viber by the limits of the service that sends it.
    pub fn too_long(&self, viber: ViberService) -> Option<TooLong> {
        match self {
            Self::Sms(sms) => sms_too_long(&sms.text),
            Self::Push(push) => push_too_long(push),
            Self::Telegram(telegram) => telegram_too_long(telegram),
            Self::Whatsapp(whatsapp) => whatsapp_too_long(whatsapp),
            Self::Viber(message) => viber_too_long(message, viber),
        }
    }
}

/// Returns true if a text has more than `most` characters; reads no more of it than necessary.
fn exceeds(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

fn text_too_long(member: &'static str, is_too_long: bool, most: usize) -> Option<TooLong> {
    is_too_long.then(|| TooLong::new(member, format!("must have at most {most} characters")))
}

fn sms_too_long(text: &str) -> Option<TooLong> {
    let by_characters = text_too_long("text", exceeds(text, MAX_SMS), MAX_SMS);
    by_characters.or_else(|| {
        let rule = "must fit in 10 segments: 153 characters of the GSM alphabet each, or 67 of any other";
        (sms::size(text).segments > sms::MAX_SEGMENTS).then(|| TooLong::new("text", rule))
    })
}

fn push_too_long(push: &PushContent) -> Option<TooLong> {
    let data: usize = push.data.iter().map(|(key, value)| key.len() + value.len()).sum();
    let all = data + push.text.len() + push.title.as_ref().map_or(0, String::len);
    let bytes = |member| {
        let rule = format!("title, text and data must have at most {MAX_PUSH_BYTES} bytes together");
        Some(TooLong { member, code: FieldCode::TooLarge, rule })
    };
    match () {
        () if exceeds(&push.text, MAX_PUSH) => text_too_long("text", true, MAX_PUSH),
        () if data > MAX_PUSH_BYTES => bytes("data"),
        () if all > MAX_PUSH_BYTES => bytes("text"),
        () => None,
    }
}

fn telegram_too_long(telegram: &TelegramContent) -> Option<TooLong> {
    let is_plain = telegram.buttons.is_empty() && telegram.media.is_none();
    let most = if is_plain { MAX_CHAT } else { MAX_CAPTION };
    match &telegram.text {
        TelegramText::Plain(text) => text_too_long("text", exceeds(text, most), most),
        TelegramText::Html(html) => text_too_long("html", shown_length(html, most + 1) > most, most),
    }
}

fn whatsapp_too_long(whatsapp: &WhatsappContent) -> Option<TooLong> {
    let WhatsappContent::Text { text, button, media, .. } = whatsapp else { return None };
    if button.as_ref().is_some_and(|button| exceeds(&button.text, MAX_WHATSAPP_BUTTON)) {
        let rule = format!("must have at most {MAX_WHATSAPP_BUTTON} characters on this channel");
        return Some(TooLong::new("buttons/0/text", rule));
    }
    let most = if button.is_none() && media.is_none() { MAX_CHAT } else { MAX_CAPTION };
    text_too_long("text", exceeds(text, most), most)
}

fn viber_too_long(message: &ViberContent, service: ViberService) -> Option<TooLong> {
    let most = match (service, &message.image) {
        (ViberService::Business, _) => MAX_VIBER,
        (ViberService::Bot, None) => MAX_VIBER_BOT.0,
        (ViberService::Bot, Some(_)) => MAX_VIBER_BOT.1,
    };
    text_too_long("text", exceeds(&message.text, most), most)
}

/// Returns the number of characters that Telegram counts in HTML: those that are left when tags are removed, a
/// character reference being one. Counts Unicode scalar values, not UTF-16 units: the API was found to take 4096 of
/// those outside of the basic plane.
///
/// At most `most` are counted, which bounds the cost of hostile markup.
fn shown_length(html: &str, most: usize) -> usize {
    let mut shown = 0;
    let mut rest = html;
    while let Some(first) = rest.chars().next().filter(|_| shown < most) {
        let length = match first {
            '<' => tag_length(rest),
            '&' => reference_length(rest),
            _ => None,
        };
        // A `<` that opens no tag is a character.
        shown += usize::from(first != '<' || length.is_none());
        rest = &rest[length.unwrap_or(first.len_utf8())..];
    }
    shown
}

/// Returns the length in bytes of the tag that a text begins with. A `>` within quotes does not end it.
fn tag_length(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(MAX_TAG_BYTES).skip(1) {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns the length in bytes of the character reference that a text begins with: a number, or one of the four names
/// that Telegram knows.
fn reference_length(text: &str) -> Option<usize> {
    const LONGEST: usize = "&#x10FFFF;".len();
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let is_known = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.is_ok_and(|code| code != 0 && char::from_u32(code).is_some())
        }
        None => matches!(name, "lt" | "gt" | "amp" | "quot"),
    };
    is_known.then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::channel::Channel;
    use crate::domain::message::channel_content::{Button, Media, MediaKind, Parts};

    #[track_caller]
    fn check(channel: Channel, parts: Parts<'_>, service: ViberService, expected: Option<&str>) {
        let content = ChannelContent::of(channel, parts).unwrap();
        assert_eq!(content.too_long(service).map(|fault| fault.member), expected, "{channel}");
    }

    #[track_caller]
    fn check_text(channel: Channel, most: usize, service: ViberService, others: Parts<'_>) {
        // Characters, not bytes.
        let (good, long) = ("\u{20ac}".repeat(most), "\u{20ac}".repeat(most + 1));
        check(channel, Parts { text: Some(&good), ..others }, service, None);
        check(channel, Parts { text: Some(&long), ..others }, service, Some("text"));
    }

    #[test]
    fn every_channel_has_its_limits() {
        let (business, bot) = (ViberService::Business, ViberService::Bot);
        let button = |length| [Button { text: "b".repeat(length), url: "https://a.example".to_owned() }];
        let (buttons, long_buttons) = (button(20), button(21));
        let media = Media { url: "https://a.example/b.png".to_owned(), kind: MediaKind::Image };
        let plain = Parts::default();
        let with_buttons = Parts { buttons: &buttons, ..plain };
        let with_media = Parts { media: Some(&media), ..plain };
        for channel in [Channel::Telegram, Channel::Whatsapp] {
            check_text(channel, 4096, business, plain);
            check_text(channel, 1024, business, with_buttons);
            check_text(channel, 1024, business, with_media);
        }
        check_text(Channel::Viber, 1000, business, plain);
        check_text(Channel::Viber, 1000, business, with_media);
        check_text(Channel::Viber, 7000, bot, plain);
        check_text(Channel::Viber, 7000, bot, with_buttons);
        check_text(Channel::Viber, 768, bot, with_media);
        // Ten segments hold fewer of them than the 1600 characters that are allowed: the sign takes two places, of
        // which a segment of 153 has 76.
        check_text(Channel::Sms, 760, business, plain);
        check(Channel::Whatsapp, Parts { text: Some("t"), ..with_buttons }, business, None);
        let long = Parts { text: Some("t"), buttons: &long_buttons, ..plain };
        check(Channel::Whatsapp, long, business, Some("buttons/0/text"));
        check(Channel::Telegram, long, business, None);
        // Of two forms of a Telegram message the HTML is sent.
        let unsent = "t".repeat(5000);
        check(Channel::Telegram, Parts { html: Some("h"), text: Some(&unsent), ..with_media }, business, None);
    }

    #[test]
    fn telegram_counts_what_is_shown() {
        for (html, expected) in [
            ("", 0),
            ("plain", 5),
            ("<b>bold</b>", 4),
            (r#"<a href="https://a.example/?x=1&y=2">link</a>"#, 4),
            (r#"<a href="a>b">c</a>"#, 1),
            ("&lt;&gt;&amp;&quot;", 4),
            ("&#65;&#x41;&#X1F600;", 3),
            // Names that Telegram does not know, and what is no reference, stand for themselves.
            ("&nbsp;", 6),
            ("a & b;", 6),
            ("&#0;&#x110000;", 14),
            ("&#55296;", 8),
            ("a < b", 5),
            ("\u{1f600}\u{1f600}", 2),
        ] {
            assert_eq!(shown_length(html, 100), expected, "{html}");
        }
        let html = format!("<b>{}</b>", "&amp;".repeat(4096));
        check(Channel::Telegram, Parts { html: Some(&html), ..Parts::default() }, ViberService::Business, None);
        let html = format!("{html}!");
        check(Channel::Telegram, Parts { html: Some(&html), ..Parts::default() }, ViberService::Business, Some("html"));
    }

    #[test]
    fn a_notification_is_measured_with_its_title_and_data() {
        let data = [("k".repeat(10), "v".repeat(90))].into_iter().collect();
        let with_data = Parts { subject: Some("title"), data: Some(&data), ..Parts::default() };
        let (fits, over) = ("t".repeat(3395), "t".repeat(3396));
        check(Channel::Push, Parts { text: Some(&fits), ..with_data }, ViberService::Business, None);
        check(Channel::Push, Parts { text: Some(&over), ..with_data }, ViberService::Business, Some("text"));
        let large = [("k".to_owned(), "v".repeat(3500))].into_iter().collect();
        let parts = Parts { text: Some("t"), data: Some(&large), ..Parts::default() };
        check(Channel::Push, parts, ViberService::Business, Some("data"));
    }
}
