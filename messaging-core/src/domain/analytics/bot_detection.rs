//! Distinguishes people from machines that visit a tracking link.
//!
//! Contract section 18. Mail filters load pixels and follow links before anybody has read the mail, and
//! link previews do it when a mail is forwarded. A client that names itself a machine is believed; one that
//! pretends to be a browser is found by its speed.
//!
//! Image proxies of mailboxes (Gmail, Yahoo) load a pixel when a person looks at the mail, so they count
//! as that person. Apple's proxy loads it whether or not anybody looks; it calls itself a bare
//! `Mozilla/5.0` and so is a machine.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::domain::mail::link_token::UrlKey;
use crate::ids::MessageId;
use crate::time::Timestamp;

/// A click within this time after delivery counts as a machine's.
pub(crate) const HASTE: Duration = Duration::from_secs(2);

/// Number of different links of a message whose clicks within [`BURST_TIME`] count as a machine's.
pub(crate) const BURST_LINKS: usize = 3;

/// Span of time for [`BURST_LINKS`].
pub(crate) const BURST_TIME: Duration = Duration::from_secs(1);

/// Maximum number of messages whose clicks are remembered; the memory is cleared beyond that.
const MAX_MESSAGES: usize = 10_000;

/// Clicks of one message that are remembered: more than enough to be a burst.
const MAX_CLICKS: usize = 16;

/// Parts of the `User-Agent` of automatic clients, in lower case. They are names and not words such as
/// `bot`, which is also in the names of telephones.
const MARKS: &[&str] = &[
    // Mail filters and scanners of links.
    "barracuda",
    "cloudmark",
    "forcepoint",
    "fortiguard",
    "ironport",
    "messagelabs",
    "mimecast",
    "netcraft",
    "paloalto",
    "proofpoint",
    "safelinks",
    "sophos",
    "spamhaus",
    "symantec",
    "trendmicro",
    "trustwave",
    "urlscan",
    "virustotal",
    "zscaler",
    // Previews of links in messengers and office programs.
    "bitlybot",
    "discordbot",
    "embedly",
    "existence discovery",
    "facebookexternalhit",
    "google-pagerenderer",
    "iframely",
    "linkedinbot",
    "mattermost-bot",
    "protocol discovery",
    "redditbot",
    "skypeuripreview",
    "slack-imgproxy",
    "slackbot",
    "telegrambot",
    "twitterbot",
    "vkshare",
    "whatsapp/",
    "preview/",
    // Search engines and others that name their page; most do.
    "adsbot",
    "ahrefsbot",
    "applebot",
    "baiduspider",
    "bingbot",
    "crawler",
    "duckduckbot",
    "googlebot",
    "mediapartners-google",
    "petalbot",
    "semrushbot",
    "spider",
    "yandexbot",
    "+http",
    // Programs without a person.
    "aiohttp",
    "apache-httpclient",
    "axios/",
    "curl/",
    "go-http-client",
    "got (",
    "guzzlehttp",
    "headless",
    "java/",
    "libwww-perl",
    "lwp::",
    "node-fetch",
    "phantomjs",
    "playwright",
    "postmanruntime",
    "puppeteer",
    "python-httpx",
    "python-requests",
    "python-urllib",
    "python/",
    "ruby/",
    "scrapy",
    "selenium",
    "undici",
    "wget/",
];

/// Values of `User-Agent` that mean a machine if they are all of it.
const BARE: &[&str] = &["mozilla/5.0", "ruby"];

/// Properties of a visit by which a machine is recognized.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'a> {
    /// True for a request of the method HEAD.
    pub is_head: bool,
    /// The `User-Agent` header; empty when there is none.
    pub user_agent: &'a str,
    /// True if a header announces a prefetch: the page is loaded before a person has asked for it.
    pub is_prefetch: bool,
}

/// True if the properties of a visit name a machine.
pub fn shows_itself(signs: Signs<'_>) -> bool {
    let agent = signs.user_agent.trim().to_ascii_lowercase();
    signs.is_head
        || signs.is_prefetch
        || agent.is_empty()
        || BARE.contains(&agent.as_str())
        || MARKS.iter().any(|mark| agent.contains(mark))
}

/// True if a header announces a prefetch or a robot. `name` is in lower case.
pub fn announces_prefetch(name: &str, value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    match name {
        // Fetch Metadata and its forerunners.
        "sec-purpose" | "purpose" | "x-purpose" | "x-moz" => {
            value.starts_with("prefetch") || value.starts_with("prerender") || value.starts_with("preview")
        }
        // RFC 9110 section 10.1.2: robots name who runs them, browsers never send it.
        "from" => !value.is_empty(),
        _ => false,
    }
}

/// True if a click at `now` is within two seconds after one of the deliveries of its message.
pub fn is_hasty(now: Timestamp, deliveries: impl IntoIterator<Item = Timestamp>) -> bool {
    deliveries.into_iter().any(|delivered| delivered <= now && now.since(delivered) < HASTE)
}

/// The latest clicks by message, to find bursts.
///
/// They are in memory and not read from the events, because the clicks of a burst arrive at once: each would
/// be judged before the others are stored.
#[derive(Debug, Default)]
pub struct RecentClicks(HashMap<MessageId, Vec<(Timestamp, UrlKey)>>);

impl RecentClicks {
    /// Adds a click, and answers the latest clicks of the message in this process, including this one.
    pub fn note(&mut self, message: MessageId, url: UrlKey, now: Timestamp) -> Vec<(Timestamp, UrlKey)> {
        let is_recent = |at: Timestamp| is_recent(at, now);
        if self.0.len() >= MAX_MESSAGES && !self.0.contains_key(&message) {
            self.0.retain(|_, clicks| clicks.iter().any(|(at, _)| is_recent(*at)));
            if self.0.len() >= MAX_MESSAGES {
                self.0.clear();
            }
        }
        let clicks = self.0.entry(message).or_default();
        clicks.retain(|(at, _)| is_recent(*at));
        if clicks.len() == MAX_CLICKS {
            clicks.remove(0);
        }
        clicks.push((now, url));
        clicks.clone()
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.since(at) <= BURST_TIME
}

/// True if clicks of a message are a burst at a time. The earlier clicks of a burst have been counted as a person's,
/// because it was no burst yet.
pub fn is_burst(now: Timestamp, clicks: impl IntoIterator<Item = (Timestamp, UrlKey)>) -> bool {
    let recent = clicks.into_iter().filter(|(at, _)| is_recent(*at, now));
    recent.map(|(_, url)| url).collect::<HashSet<_>>().len() >= BURST_LINKS
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERSON: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                          Chrome/120.0.0.0 Safari/537.36";

    #[track_caller]
    fn check(user_agent: &str, machine: bool) {
        let signs = Signs { is_head: false, user_agent, is_prefetch: false };
        assert_eq!(shows_itself(signs), machine, "{user_agent}");
    }

    #[test]
    fn people_are_people() {
        for agent in [
            PERSON,
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
            "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
            "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
            "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17126; Pro)",
            "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.1; Trident/7.0; Microsoft Outlook 14.0.7113; ms-office)",
            "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.6.0",
            "Mozilla/5.0 (Linux; Android 11; CUBOT P50) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Mobile",
            "Dalvik/2.1.0 (Linux; U; Android 13; Pixel 7)",
        ] {
            check(agent, false);
        }
    }

    #[test]
    fn machines_are_machines() {
        for agent in [
            "",
            "  ",
            "Mozilla/5.0",
            " mozilla/5.0 ",
            "BarracudaCentral/1.0",
            "Mozilla/5.0 (compatible; Proofpoint URL Defense)",
            "Mimecast-URL-Scanner",
            "Microsoft Office Existence Discovery",
            "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
            "Slack-ImgProxy (+https://api.slack.com/robots)",
            "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
            "TelegramBot (like TwitterBot)",
            "WhatsApp/2.23.20.0",
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (compatible; SomeNewThing/1.0; +https://example.com/about)",
            "curl/8.5.0",
            "Wget/1.21",
            "python-requests/2.31.0",
            "Python/3.11 aiohttp/3.9.1",
            "Go-http-client/2.0",
            "Java/17.0.1",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36",
            "node-fetch/1.0",
        ] {
            check(agent, true);
        }
    }

    #[test]
    fn head_requests_and_prefetches_are_machines() {
        let person = Signs { is_head: false, user_agent: PERSON, is_prefetch: false };
        assert!(!shows_itself(person));
        assert!(shows_itself(Signs { is_head: true, ..person }));
        assert!(shows_itself(Signs { is_prefetch: true, ..person }));
        for (name, value, announces) in [
            ("sec-purpose", "prefetch;prerender", true),
            ("sec-purpose", "prerender", true),
            ("purpose", "Prefetch", true),
            ("x-purpose", "preview", true),
            ("x-moz", "prefetch", true),
            ("from", "googlebot(at)googlebot.com", true),
            ("from", "", false),
            ("purpose", "navigate", false),
            ("accept", "prefetch", false),
        ] {
            assert_eq!(announces_prefetch(name, value), announces, "{name}: {value}");
        }
    }

    #[test]
    fn clicks_within_two_seconds_of_a_delivery_are_hasty() {
        let at = Timestamp::from_millis;
        for (now, deliveries, hasty) in [
            (1_000, vec![], false),
            (1_000, vec![1_000], true),
            (2_999, vec![1_000], true),
            (3_000, vec![1_000], false),
            // A clock that went back is no haste.
            (900, vec![1_000], false),
            (60_500, vec![1_000, 60_000], true),
        ] {
            assert_eq!(is_hasty(at(now), deliveries.iter().copied().map(at)), hasty, "{now} {deliveries:?}");
        }
    }

    #[test]
    fn the_third_different_link_within_a_second_makes_a_burst() {
        let message: MessageId = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap();
        let other: MessageId = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGK".parse().unwrap();
        let mut clicks = RecentClicks::default();
        let mut note = |message, url: &str, at| {
            let now = Timestamp::from_millis(at);
            is_burst(now, clicks.note(message, UrlKey::of(url), now))
        };
        assert!(!note(message, "a", 0));
        assert!(!note(message, "b", 400));
        assert!(!note(message, "b", 500));
        assert!(!note(other, "c", 600));
        assert!(note(message, "c", 1_000));
        // Within a second of it are b, c and d, then only d and e.
        assert!(note(message, "d", 1_400));
        assert!(!note(message, "e", 2_300));
        assert!(!note(message, "e", 60_000));
    }

    #[test]
    fn the_memory_of_clicks_is_bounded() {
        let mut clicks = RecentClicks::default();
        let ids = crate::ids::IdSource::default();
        let entropy = crate::entropy::SeededEntropy::new(1);
        let now = Timestamp::from_millis(0);
        for _ in 0..=MAX_MESSAGES {
            clicks.note(ids.next(now, &entropy), UrlKey::of("a"), now);
        }
        assert_eq!(clicks.0.len(), 1);
        let message = ids.next(now, &entropy);
        for number in 0..100 {
            clicks.note(message, UrlKey::of(&number.to_string()), now);
        }
        assert_eq!(clicks.0[&message].len(), MAX_CLICKS);
    }
}
