//! Content of each channel, made of the parts of a message.

use super::{Button, Media, ProviderTemplate, PushData};
use crate::domain::channel::Channel;

/// Parts of a message, given or rendered; an empty text counts as none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts<'a> {
    /// The title of a push notification.
    pub subject: Option<&'a str>,
    /// The HTML form of a Telegram message.
    pub html: Option<&'a str>,
    /// The text.
    pub text: Option<&'a str>,
    /// Buttons.
    pub buttons: &'a [Button],
    /// A medium.
    pub media: Option<&'a Media>,
    /// Values for the app.
    pub data: Option<&'a PushData>,
    /// A template that the provider keeps.
    pub provider_template: Option<&'a ProviderTemplate>,
    /// True if a preview of the first link is unwanted.
    pub without_preview: bool,
}

/// Content of a message of a channel other than email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelContent {
    /// A text message.
    Sms(SmsContent),
    /// A push notification.
    Push(Box<PushContent>),
    /// A message of a Telegram bot.
    Telegram(Box<TelegramContent>),
    /// A WhatsApp message.
    Whatsapp(Box<WhatsappContent>),
    /// A Viber message.
    Viber(Box<ViberContent>),
}

impl ChannelContent {
    /// Returns the content for a channel, made of the parts that it knows; `None` for email, whose content has more.
    pub fn of(channel: Channel, parts: Parts<'_>) -> Option<Self> {
        let given = |part: Option<&str>| part.filter(|part| !part.is_empty()).map(ToOwned::to_owned);
        let text = parts.text.unwrap_or_default().to_owned();
        let image = || parts.media.map(|media| media.url.clone());
        let button = || parts.buttons.first().cloned();
        let media = parts.media.cloned();
        let preview = !parts.without_preview;
        Some(match channel {
            Channel::Email => return None,
            Channel::Sms => Self::Sms(SmsContent { text }),
            Channel::Push => {
                let (title, data) = (given(parts.subject), parts.data.cloned().unwrap_or_default());
                Self::Push(Box::new(PushContent { title, text, image: image(), data }))
            }
            Channel::Telegram => {
                let text = given(parts.html).map_or(TelegramText::Plain(text), TelegramText::Html);
                let buttons = parts.buttons.to_vec();
                Self::Telegram(Box::new(TelegramContent { text, buttons, media, preview }))
            }
            Channel::Whatsapp => Self::Whatsapp(Box::new(match parts.provider_template {
                Some(template) => WhatsappContent::Template(template.clone()),
                None => WhatsappContent::Text { text, button: button(), media, preview },
            })),
            Channel::Viber => Self::Viber(Box::new(ViberContent { text, button: button(), image: image() })),
        })
    }
}

/// A text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmsContent {
    /// The text; checks have made sure that it has not too many segments.
    pub text: String,
}

/// A push notification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushContent {
    /// The title.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// Address from which the picture is fetched, https.
    pub image: Option<String>,
    /// Values for the app.
    pub data: PushData,
}

/// A message of a Telegram bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelegramContent {
    /// The text, or the caption of the medium.
    pub text: TelegramText,
    /// Buttons below the text, one a row.
    pub buttons: Vec<Button>,
    /// A medium that is sent with the text.
    pub media: Option<Media>,
    /// True if a preview of the first link is shown.
    pub preview: bool,
}

/// The text of a Telegram message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TelegramText {
    /// Plain text.
    Plain(String),
    /// HTML with the tags that Telegram knows.
    Html(String),
}

/// A WhatsApp message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhatsappContent {
    /// A text, within 24 hours of the recipient's last message.
    Text {
        /// The text, or the caption of the medium.
        text: String,
        /// The button.
        button: Option<Button>,
        /// A medium that is sent with the text.
        media: Option<Media>,
        /// True if a preview of the first link is shown.
        preview: bool,
    },
    /// A template that the provider keeps.
    Template(ProviderTemplate),
}

/// A Viber message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViberContent {
    /// The text.
    pub text: String,
    /// The button.
    pub button: Option<Button>,
    /// Address from which the picture is fetched, https.
    pub image: Option<String>,
}
