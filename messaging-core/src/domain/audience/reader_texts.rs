//! Texts that readers see on pages and in confirmations, in ten languages.
//!
//! Contract section 23, "Pages". All of them are in `reader_texts.json`: for each text a line for each language. A text
//! may contain `{list}` or `{sender}`, which the page fills in.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A language of pages for readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are the languages of the contract")]
pub enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Polish,
    Russian,
    Ukrainian,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 10] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Italian,
        Self::Portuguese,
        Self::Dutch,
        Self::Polish,
        Self::Russian,
        Self::Ukrainian,
    ];

    /// Code of ISO 639-1, such as `de`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Italian => "it",
            Self::Portuguese => "pt",
            Self::Dutch => "nl",
            Self::Polish => "pl",
            Self::Russian => "ru",
            Self::Ukrainian => "uk",
        }
    }

    /// Name of the language in itself.
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::German => "Deutsch",
            Self::French => "Français",
            Self::Spanish => "Español",
            Self::Italian => "Italiano",
            Self::Portuguese => "Português",
            Self::Dutch => "Nederlands",
            Self::Polish => "Polski",
            Self::Russian => "Русский",
            Self::Ukrainian => "Українська",
        }
    }

    /// Returns the language of a tag such as `de-AT`; `None` for one that pages are not available in.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let first = tag.trim().split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(first))
    }

    /// Returns the language that an `Accept-Language` header (RFC 9110 section 12.5.4) prefers among those of the
    /// pages. At most 20 of its entries are read.
    pub fn of_accept(header: &str) -> Option<Self> {
        let entry = |text: &str| {
            let (tag, weight) = text.split_once(';').unwrap_or((text, "q=1"));
            let weight: f32 = weight.trim().strip_prefix("q=")?.trim().parse().ok()?;
            Some((Self::of_tag(tag)?, weight)).filter(|(_, weight)| *weight > 0.0)
        };
        let mut best: Option<(Self, f32)> = None;
        for (language, weight) in header.split(',').take(20).filter_map(entry) {
            if best.is_none_or(|(_, known)| weight > known) {
                best = Some((language, weight));
            }
        }
        best.map(|(language, _)| language)
    }
}

/// A text for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the texts stand in the data file under these names")]
pub enum ReaderText {
    LinkTitle,
    LinkText,
    ExpiredTitle,
    ExpiredText,
    TroubleTitle,
    TroubleText,
    UnsubscribeTitle,
    UnsubscribeText,
    UnsubscribeButton,
    UnsubscribeList,
    UnsubscribeAll,
    UnsubscribedTitle,
    UnsubscribedText,
    ConfirmTitle,
    ConfirmText,
    ConfirmButton,
    ConfirmedTitle,
    ConfirmedText,
    MailIgnore,
    FormButton,
    FormEmail,
    FormPhone,
    FormRequired,
    FormError,
    FormAgain,
    FormLimited,
    SentTitle,
    SentText,
    PreferencesTitle,
    PreferencesLists,
    PreferencesAll,
    PreferencesWeekly,
    PreferencesLanguage,
    PreferencesSave,
    PreferencesSaved,
    AddressTitle,
    AddressNew,
    AddressText,
    AddressDone,
    DataTitle,
    DataButton,
    EraseTitle,
    EraseText,
    EraseDone,
    ArchiveTitle,
    ArchiveEmpty,
    ArchiveOlder,
    FormScript,
    FormWorking,
}

/// The name of each text in the data file.
const NAMES: [(ReaderText, &str); 49] = [
    (ReaderText::LinkTitle, "link_title"),
    (ReaderText::LinkText, "link_text"),
    (ReaderText::ExpiredTitle, "expired_title"),
    (ReaderText::ExpiredText, "expired_text"),
    (ReaderText::TroubleTitle, "trouble_title"),
    (ReaderText::TroubleText, "trouble_text"),
    (ReaderText::UnsubscribeTitle, "unsubscribe_title"),
    (ReaderText::UnsubscribeText, "unsubscribe_text"),
    (ReaderText::UnsubscribeButton, "unsubscribe_button"),
    (ReaderText::UnsubscribeList, "unsubscribe_list"),
    (ReaderText::UnsubscribeAll, "unsubscribe_all"),
    (ReaderText::UnsubscribedTitle, "unsubscribed_title"),
    (ReaderText::UnsubscribedText, "unsubscribed_text"),
    (ReaderText::ConfirmTitle, "confirm_title"),
    (ReaderText::ConfirmText, "confirm_text"),
    (ReaderText::ConfirmButton, "confirm_button"),
    (ReaderText::ConfirmedTitle, "confirmed_title"),
    (ReaderText::ConfirmedText, "confirmed_text"),
    (ReaderText::MailIgnore, "mail_ignore"),
    (ReaderText::FormButton, "form_button"),
    (ReaderText::FormEmail, "form_email"),
    (ReaderText::FormPhone, "form_phone"),
    (ReaderText::FormRequired, "form_required"),
    (ReaderText::FormError, "form_error"),
    (ReaderText::FormAgain, "form_again"),
    (ReaderText::FormLimited, "form_limited"),
    (ReaderText::SentTitle, "sent_title"),
    (ReaderText::SentText, "sent_text"),
    (ReaderText::PreferencesTitle, "preferences_title"),
    (ReaderText::PreferencesLists, "preferences_lists"),
    (ReaderText::PreferencesAll, "preferences_all"),
    (ReaderText::PreferencesWeekly, "preferences_weekly"),
    (ReaderText::PreferencesLanguage, "preferences_language"),
    (ReaderText::PreferencesSave, "preferences_save"),
    (ReaderText::PreferencesSaved, "preferences_saved"),
    (ReaderText::AddressTitle, "address_title"),
    (ReaderText::AddressNew, "address_new"),
    (ReaderText::AddressText, "address_text"),
    (ReaderText::AddressDone, "address_done"),
    (ReaderText::DataTitle, "data_title"),
    (ReaderText::DataButton, "data_button"),
    (ReaderText::EraseTitle, "erase_title"),
    (ReaderText::EraseText, "erase_text"),
    (ReaderText::EraseDone, "erase_done"),
    (ReaderText::ArchiveTitle, "archive_title"),
    (ReaderText::ArchiveEmpty, "archive_empty"),
    (ReaderText::ArchiveOlder, "archive_older"),
    (ReaderText::FormScript, "form_script"),
    (ReaderText::FormWorking, "form_working"),
];

type Texts = HashMap<(ReaderText, Language), String>;

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    let data: HashMap<String, HashMap<String, String>> =
        serde_json::from_str(include_str!("reader_texts.json")).unwrap_or_default();
    let mut texts = Texts::new();
    for (text, name) in NAMES {
        for language in Language::ALL {
            let found = data.get(name).and_then(|texts| texts.get(language.code()));
            texts.extend(found.map(|found| ((text, language), found.clone())));
        }
    }
    texts
});

/// Returns a text escaped for use between tags and in a quoted attribute of HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

impl ReaderText {
    /// The keys of all texts, in alphabetical order.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        let mut keys = NAMES.map(|(_, key)| key);
        keys.sort_unstable();
        keys.into_iter()
    }

    /// Its key, by which workspaces name it.
    pub fn key(self) -> &'static str {
        NAMES.into_iter().find(|(text, _)| *text == self).map_or("", |(_, key)| key)
    }

    /// The text in a language.
    pub fn in_language(self, language: Language) -> &'static str {
        TEXTS.get(&(self, language)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_in_every_language() {
        let data: HashMap<String, HashMap<String, String>> =
            serde_json::from_str(include_str!("reader_texts.json")).unwrap();
        assert_eq!(data.len(), NAMES.len());
        for (text, name) in NAMES {
            let english = ReaderText::in_language(text, Language::English);
            for language in Language::ALL {
                let found = text.in_language(language);
                assert!(!found.trim().is_empty() && !found.contains(['<', '&']), "{name} {}", language.code());
                for part in ["{list}", "{sender}"] {
                    assert_eq!(found.contains(part), english.contains(part), "{name} {} {part}", language.code());
                }
            }
        }
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escaped("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
    }

    #[track_caller]
    fn check(header: &str, expected: Option<Language>) {
        assert_eq!(Language::of_accept(header), expected, "{header}");
    }

    #[test]
    fn the_reader_s_language_is_chosen_by_weight() {
        check("de-AT,de;q=0.9,en;q=0.8", Some(Language::German));
        check("ja, fr;q=0.5, nl;q=0.7", Some(Language::Dutch));
        check("en;q=0, uk", Some(Language::Ukrainian));
        check("pl;q=0.5,ru;q=0.5", Some(Language::Polish));
        for none in ["", "*", "ja,zh", "de;q=x", ";;;,,,"] {
            check(none, None);
        }
        assert_eq!(Language::of_tag("pt_BR"), Some(Language::Portuguese));
        assert_eq!(Language::of_tag("english"), None);
    }
}
