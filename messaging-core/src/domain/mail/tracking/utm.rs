//! Link parameters of a campaign: `utm_source`, `utm_medium`, `utm_campaign`.
//!
//! Contract section 12.5: each parameter is judged alone, and an empty one counts as present. The author's text stays
//! byte for byte; added parameters are form-encoded and precede the fragment.

use std::borrow::Cow;

use crate::domain::campaign::settings::Utm;

/// Returns a URL with the parameters that it lacks; borrowed if it lacks none. The caller leaves URLs alone that are
/// not `http` or `https`.
pub fn add<'a>(url: &'a str, utm: &Utm) -> Cow<'a, str> {
    let (address, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let query = address.split_once('?').map(|(_, query)| query);
    let has = |name: &str| form_urlencoded::parse(query.unwrap_or_default().as_bytes()).any(|(known, _)| known == name);
    let given = [("utm_source", &utm.source), ("utm_medium", &utm.medium), ("utm_campaign", &utm.campaign)];
    let lacking: Vec<_> = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .filter(|(name, _)| !has(name))
        .collect();
    if lacking.is_empty() {
        return Cow::Borrowed(url);
    }
    let added = form_urlencoded::Serializer::new(String::new()).extend_pairs(lacking).finish();
    let joint = match query {
        None => "?",
        Some(query) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    Cow::Owned(format!("{address}{joint}{added}{fragment}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utm() -> Utm {
        Utm {
            source: Some("news letter".to_owned()),
            medium: Some("email".to_owned()),
            campaign: Some("a&b=ü".to_owned()),
        }
    }

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(add(url, &utm()), expected);
    }

    #[test]
    fn what_lacks_is_added() {
        let all = "utm_source=news+letter&utm_medium=email&utm_campaign=a%26b%3D%C3%BC";
        check("https://a.co", &format!("https://a.co?{all}"));
        check("https://a.co/x?y=1", &format!("https://a.co/x?y=1&{all}"));
        check("https://a.co/x?", &format!("https://a.co/x?{all}"));
        check("https://a.co/x?y&", &format!("https://a.co/x?y&{all}"));
        check("https://a.co/x#top?utm_source=1", &format!("https://a.co/x?{all}#top?utm_source=1"));
        check("https://a.co/?ü=%FF#ü", &format!("https://a.co/?ü=%FF&{all}#ü"));
        // Names are exact.
        check("https://a.co/?UTM_SOURCE=1&utm_sourc=1", &format!("https://a.co/?UTM_SOURCE=1&utm_sourc=1&{all}"));
    }

    #[test]
    fn each_is_judged_alone_and_empty_is_there() {
        let rest = "utm_source=news+letter&utm_campaign=a%26b%3D%C3%BC";
        check("https://a.co/?utm_medium=sms", &format!("https://a.co/?utm_medium=sms&{rest}"));
        check("https://a.co/?utm_medium=", &format!("https://a.co/?utm_medium=&{rest}"));
        check("https://a.co/?utm_medium", &format!("https://a.co/?utm_medium&{rest}"));
        check("https://a.co/?utm%5Fmedium=x", &format!("https://a.co/?utm%5Fmedium=x&{rest}"));
        let whole = "https://a.co/?utm_campaign&utm_medium&utm_source#x";
        assert!(matches!(add(whole, &utm()), Cow::Borrowed(_)));
        assert!(matches!(add("https://a.co", &Utm::default()), Cow::Borrowed(_)));
        let source = Utm { source: Some("a".to_owned()), ..Utm::default() };
        assert_eq!(add("https://a.co", &source), "https://a.co?utm_source=a");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn once_is_enough_and_nothing_is_lost(url in "https://a\\.co[/a-z?&=#%_utm]{0,30}") {
            let once = add(&url, &utm()).into_owned();
            prop_assert_eq!(add(&once, &utm()), once.as_str());
            let (before, after) = url.split_at(url.find('#').unwrap_or(url.len()));
            prop_assert!(once.starts_with(before) && once.ends_with(after));
            let query = once.split('#').next().unwrap().split_once('?').map_or("", |(_, query)| query);
            for name in ["utm_source", "utm_medium", "utm_campaign"] {
                prop_assert!(form_urlencoded::parse(query.as_bytes()).any(|(known, _)| known == name), "{}", once);
            }
        }
    }
}
