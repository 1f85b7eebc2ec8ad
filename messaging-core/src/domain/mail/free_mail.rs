//! Mailbox providers: domains where everybody can have an address and no user owns the DNS.
//!
//! Contract section 14 refuses them as sending domains. The list has the well known ones; a provider that is missing
//! does no harm, because only its operator can publish its DNS records.

use crate::domain::mail::public_suffix::{known_suffix, organizational};

/// Registered domains of providers.
#[rustfmt::skip]
const DOMAINS: &[&str] = &[
    "126.com", "139.com", "163.com", "189.cn", "abv.bg", "aim.com", "alice.it", "aol.com", "arcor.de",
    "att.net", "bellsouth.net", "bigpond.com", "bk.ru", "bluewin.ch", "btinternet.com", "centrum.cz",
    "charter.net", "comcast.net", "cox.net", "daum.net", "docomo.ne.jp", "duck.com", "earthlink.net",
    "email.com", "email.cz", "ezweb.ne.jp", "fastmail.com", "fastmail.fm", "foxmail.com", "free.fr",
    "freemail.hu", "freenet.de", "gmail.com", "googlemail.com", "hanmail.net", "hey.com", "hotmail.com",
    "hushmail.com", "i.ua", "icloud.com", "inbox.lv", "inbox.ru", "interia.pl", "internet.ru", "juno.com",
    "laposte.net", "libero.it", "list.ru", "live.com", "mac.com", "mail.bg", "mail.com", "mail.de",
    "mail.ee", "mail.ru", "mailbox.org", "mailfence.com", "me.com", "meta.ua", "msn.com", "nate.com",
    "naver.com", "netzero.net", "ntlworld.com", "o2.pl", "onet.pl", "optonline.net", "optusnet.com.au",
    "orange.fr", "outlook.com", "passport.com", "pm.me", "posteo.de", "posteo.net", "prodigy.net.mx",
    "proton.me", "protonmail.ch", "protonmail.com", "qq.com", "rambler.ru", "rediffmail.com",
    "rocketmail.com", "runbox.com", "sapo.pt", "sbcglobal.net", "seznam.cz", "sfr.fr", "shaw.ca", "sina.cn",
    "sina.com", "sky.com", "softbank.ne.jp", "sohu.com", "sympatico.ca", "t-online.de", "talktalk.net",
    "telenet.be", "terra.com.br", "tiscali.it", "tuta.com", "tuta.io", "tutamail.com", "tutanota.com",
    "tutanota.de", "ukr.net", "uol.com.br", "verizon.net", "virgilio.it", "virginmedia.com", "vodafone.it",
    "walla.co.il", "wanadoo.fr", "web.de", "wp.pl", "ya.ru", "yeah.net", "ymail.com", "zohomail.com",
    "zohomail.eu",
];

/// Names that providers have under the domains of many countries: `yahoo.fr`, `yahoo.co.jp`.
const NAMES: &[&str] = &["aol", "gmx", "hotmail", "outlook", "windowslive", "yahoo", "yandex"];

/// Returns true if the name (lower case, A-labels) is a mailbox provider's domain or below one.
pub fn covers(name: &str) -> bool {
    let is_below = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let registered = organizational(name);
    let label = registered.split('.').next().unwrap_or_default();
    let is_known_suffix = known_suffix(name).is_some();
    DOMAINS.iter().any(|domain| is_below(domain)) || (is_known_suffix && NAMES.contains(&label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_what_is_below_them() {
        for provider in ["gmail.com", "mail.gmail.com", "yahoo.com", "x.yahoo.co.uk", "gmx.at", "docomo.ne.jp"] {
            assert!(covers(provider), "{provider}");
        }
        for own in ["notgmail.com", "gmail.com.acme.org", "yahoo.test", "acme.com", "live.acme.com", "me.uk"] {
            assert!(!covers(own), "{own}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_has_nothing_twice() {
        assert!(DOMAINS.is_sorted_by(|one, next| one < next));
        assert!(NAMES.is_sorted_by(|one, next| one < next));
    }
}
