//! Links of a template, numbered in the order of the source.
//!
//! A link that a loop repeats, or whose address contains a variable, is one link. The output does not show which link
//! of the template an address came from, so a mark is compiled in before each `a` and `area`, which rendering removes
//! again. Marks begin with U+0000, which no value can hold. Links with the same address have one number, and so one
//! line in statistics.

use std::fmt::Write as _;

use super::gate::Tokens;
use super::markup::{self, Element};
use crate::domain::mail::tracking::{MAX_NUMBERED, NumberedLink, decoded};

/// First character of a mark; two digits follow.
const MARK: char = '\0';

/// Maximum number of characters of an address in a template that are kept.
const MAX_KEPT: usize = 2048;

/// A template source with marks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked {
    /// The source.
    pub(super) source: String,
    /// Addresses of the links by number, with the tags of the template language in them.
    pub(super) urls: Vec<String>,
}

/// Marks the links of a source that may lead to the web. The first [`MAX_NUMBERED`] addresses have numbers.
pub(super) fn marked(source: &str, tokens: &Tokens<'_>) -> Marked {
    let masked = markup::mask_template_tags(source, tokens);
    let tag_ranges = markup::template_tag_ranges(source, tokens);
    let mut marked = Marked { source: String::with_capacity(source.len() + 256), urls: Vec::new() };
    let mut written = 0;
    for element in markup::read(&masked).elements {
        let Some(url) = address_of(source, &masked, &element, &tag_ranges) else { continue };
        let at = element.range.start;
        if at < written || !source.is_char_boundary(at) {
            continue;
        }
        let known = marked.urls.iter().position(|known| *known == url);
        let number = known.unwrap_or(marked.urls.len());
        if number >= MAX_NUMBERED {
            continue;
        }
        if known.is_none() {
            marked.urls.push(url);
        }
        marked.source.push_str(&source[written..at]);
        // Writing into a string does not fail.
        let _ = write!(marked.source, "{MARK}{number:02}");
        written = at;
    }
    marked.source.push_str(&source[written..]);
    marked
}

/// Returns the address of a link as written in the source, entities decoded; `None` if the element is no link, cannot
/// lead to the web with any values, or is not counted (`data-no-track`, or the unsubscribe link).
fn address_of(source: &str, masked: &str, element: &Element, tag_ranges: &[std::ops::Range<usize>]) -> Option<String> {
    if !matches!(element.name.as_str(), "a" | "area") || element.attribute("data-no-track").is_some() {
        return None;
    }
    let values = markup::values_of(masked, element);
    let (_, place) = values.into_iter().find(|(name, _)| name == "href")?;
    let is_quote = |c: char| matches!(c, '"' | '\'');
    let is_quoted = source.get(place.clone())?.starts_with(is_quote);
    let place = if is_quoted { place.start + 1..place.end.checked_sub(1)? } else { place };
    let mut url = String::new();
    let mut at = place.start;
    for tag_range in tag_ranges.iter().filter(|tag| place.start <= tag.start && tag.end <= place.end) {
        url.push_str(&decoded(source.get(at..tag_range.start)?));
        url.push_str(source.get(tag_range.clone())?);
        at = tag_range.end;
    }
    url.push_str(&decoded(source.get(at..place.end)?));
    let url = url.trim();
    let begins = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    // An address that begins with a template tag may become any address.
    let may_lead = begins("http://") || begins("https://") || begins("{{") || begins("{%");
    (may_lead && !is_unsubscribe(url)).then(|| url.chars().take(MAX_KEPT).collect())
}

/// Returns true if an address is only the variable `unsubscribe_url`, with or without filters.
fn is_unsubscribe(url: &str) -> bool {
    let inner = url.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or_default();
    let inner = inner.trim_matches(|c: char| matches!(c, '-' | '+') || c.is_whitespace());
    let name = inner.split('|').next().unwrap_or_default().trim();
    name == "unsubscribe_url"
}

/// Removes the marks from a rendered marked source, and returns the positions of the links after them.
pub(super) fn take_marks(rendered: String) -> (String, Vec<NumberedLink>) {
    if !rendered.contains(MARK) {
        return (rendered, Vec::new());
    }
    let (mut out, mut found) = (String::with_capacity(rendered.len()), Vec::new());
    let mut parts = rendered.split(MARK);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        if let Some(number) = number {
            found.push(NumberedLink { at: out.len(), number });
        }
        // A filter may have cut a mark in two.
        out.push_str(if number.is_some() { &part[2..] } else { part });
    }
    (out, found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::budget::Limits;
    use super::super::compiled::{Compiled, Replaced};
    use super::super::values::Values;
    use super::super::{Design, Parts, Template, gate};
    use super::*;
    use crate::domain::channel::Channel;
    use crate::domain::mail::link_token::{Link, LinkKey, UrlKey};
    use crate::domain::mail::tracking::{self, Campaigned, Links};
    use crate::ids::{Id as _, MessageId, TemplateId, WorkspaceId};
    use crate::time::Timestamp;

    /// The source with numbers in place of marks, and the addresses.
    fn shown(source: &str) -> (String, Vec<String>) {
        let Marked { source, urls } = marked(source, &gate::tokens(source).unwrap());
        (source.replace(MARK, "#"), urls)
    }

    #[test]
    fn links_are_numbered_as_they_stand_in_the_source() {
        for (source, expected, urls) in [
            ("<a href=\"https://a.co\">x</a>", "#00<a href=\"https://a.co\">x</a>", &["https://a.co"][..]),
            (
                "<A class=x HREF='HTTP://a.co/?a=1&amp;b=2'><area href=https://b.co>",
                "#00<A class=x HREF='HTTP://a.co/?a=1&amp;b=2'>#01<area href=https://b.co>",
                &["HTTP://a.co/?a=1&b=2", "https://b.co"],
            ),
            // One link with names in it, repeated by a loop.
            (
                "{% for o in orders %}<p><a href=\"https://a.co/{{ o.id }}?x=1&amp;n={{ o.n | default(\"0\") }}\">x</a>{% endfor %}",
                "{% for o in orders %}<p>#00<a href=\"https://a.co/{{ o.id }}?x=1&amp;n={{ o.n | default(\"0\") }}\">x</a>{% endfor %}",
                &["https://a.co/{{ o.id }}?x=1&n={{ o.n | default(\"0\") }}"],
            ),
            // Links of one address are one line.
            (
                "<a href=\"https://a.co\">x</a><a href=\" {{ url }} \">y</a><a href='https://a.co'>z</a>",
                "#00<a href=\"https://a.co\">x</a>#01<a href=\" {{ url }} \">y</a>#00<a href='https://a.co'>z</a>",
                &["https://a.co", "{{ url }}"],
            ),
            (
                "<a href=\"{% if vip %}https://a.co/vip{% else %}https://a.co{% endif %}\">x</a>",
                "#00<a href=\"{% if vip %}https://a.co/vip{% else %}https://a.co{% endif %}\">x</a>",
                &["{% if vip %}https://a.co/vip{% else %}https://a.co{% endif %}"],
            ),
        ] {
            let (marked, found) = shown(source);
            assert_eq!(
                (marked.as_str(), found.iter().map(String::as_str).collect::<Vec<_>>()),
                (expected, urls.to_vec())
            );
        }
    }

    #[test]
    fn what_leads_nowhere_has_no_number() {
        for source in [
            "<a href=\"mailto:a@b.co\">x</a>",
            "<a href=\"#top\">x</a>",
            "<a name=\"https://a.co\">x</a>",
            "<a href=\"{{ unsubscribe_url }}\">x</a>",
            "<a href='{{- unsubscribe_url | safe -}}'>x</a>",
            "<a href=\"https://a.co\" data-no-track>x</a>",
            "<link href=\"https://a.co\">",
            "<!-- <a href=\"https://a.co\"> -->",
            "<script>'<a href=\"https://a.co\">'</script>",
            "{{ \"<a href='https://a.co'>\" | safe }}",
            "",
        ] {
            assert_eq!(shown(source), (source.to_owned(), Vec::new()));
        }
        assert_eq!(shown("<a href=\"{{ unsubscribe_urls }}\">").1, ["{{ unsubscribe_urls }}"]);
    }

    #[test]
    fn at_most_64_are_told_apart() {
        let source: String = (0..70).map(|n| format!("<a href=\"https://a.co/{n}\">x</a>")).collect();
        let (marked, urls) = shown(&source);
        assert_eq!((urls.len(), urls.last().map(String::as_str)), (64, Some("https://a.co/63")));
        assert!(marked.contains("#63<a href=\"https://a.co/63\">x</a><a href=\"https://a.co/64\">"));
        let again = format!("{source}<a href=\"https://a.co/7\">");
        assert!(shown(&again).0.ends_with("#07<a href=\"https://a.co/7\">"));
    }

    #[test]
    fn marks_are_taken_out_wherever_they_went() {
        let taken = |text: &str| {
            let (html, found) = take_marks(text.replace('#', "\0"));
            (html, found.into_iter().map(|link| (link.at, link.number)).collect::<Vec<_>>())
        };
        assert_eq!(taken("a"), ("a".to_owned(), vec![]));
        assert_eq!(taken("x#00<a>é#12<a>#00<a>"), ("x<a>é<a><a>".to_owned(), vec![(1, 0), (6, 12), (9, 0)]));
        assert_eq!(taken("#0#1x##123é"), ("01x3é".to_owned(), vec![(3, 12)]));
        assert_eq!(taken("#0é#"), ("0é".to_owned(), vec![]));
    }

    /// The redirected links of a rendering: number and target.
    fn followed(html: &str, values: &serde_json::Value) -> Vec<(Option<u8>, String)> {
        let template = Template {
            id: TemplateId::from_bytes([1; 16]),
            workspace_id: WorkspaceId::from_bytes([2; 16]),
            channel: Channel::Email,
            version: 1,
            reverted_from: None,
            design: Design {
                subject: Some("s".to_owned()),
                preheader: Some("first".to_owned()),
                html: Some(html.to_owned()),
                ..Design::default()
            },
            ready: None,
            variables: Vec::new(),
            warnings: Vec::new(),
            parts: Parts::default(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        };
        let replaced =
            Replaced { subject: Some("for {{ name }}".to_owned()), from_name: Some("A {{ name }}\n".to_owned()) };
        let compiled = Compiled::of_campaign(&template, &replaced).unwrap();
        let rendering = compiled.render(Values::new(values.as_object().unwrap()), Limits::WHOLE).unwrap();
        assert_eq!(rendering.subject.as_deref(), Some("for Ann"));
        assert_eq!(rendering.from_name.as_deref(), Some("A Ann"));
        let html = rendering.html.unwrap();
        assert!(!html.contains(MARK) && rendering.text.is_none());
        let key = LinkKey::new(&[7; 32]);
        let links = Links {
            key: &key,
            base: "https://l.co",
            workspace: template.workspace_id,
            message: MessageId::from_bytes([3; 16]),
            open: true,
            click: true,
        };
        let tracked = tracking::rewrite(&html, &links, Campaigned { utm: None, numbers: &rendering.links });
        let tokens =
            tracked.html.split("https://l.co/t/c/").skip(1).map(|rest| rest.split(['"', '\'']).next().unwrap());
        let read = tokens.map(|token| match key.read_link(token) {
            Some((_, _, Link::Click(url, number))) => {
                (number, tracked.urls.iter().find(|known| UrlKey::of(known) == url).unwrap().clone())
            }
            other => panic!("{other:?} {token}"),
        });
        read.collect()
    }

    #[track_caller]
    fn check(html: &str, values: serde_json::Value, expected: &[(Option<u8>, &str)]) {
        let mut values = values;
        values["name"] = "Ann".into();
        let found = followed(html, &values);
        let found: Vec<_> = found.iter().map(|(number, url)| (*number, url.as_str())).collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn what_is_rendered_knows_the_number_of_its_link() {
        check(
            "<body><a href=\"https://a.co\">1</a><a href=https://b.co/{{ name }}>2</a></body>",
            json!({}),
            &[(Some(0), "https://a.co"), (Some(1), "https://b.co/Ann")],
        );
        check(
            "{% for n in list -%} <a class='x' href=\"https://a.co/{{ n }}\">1</a>{%- endfor %}<a href='https://b.co'>2</a>",
            json!({"list": [1, 2]}),
            &[(Some(0), "https://a.co/1"), (Some(0), "https://a.co/2"), (Some(1), "https://b.co")],
        );
        check(
            "{% if no %}<a href='https://no.co'>0</a>{% endif %}<a href='https://a.co'>1</a>",
            json!({}),
            &[(Some(1), "https://a.co")],
        );
        // A macro's link is one link, wherever it is called; a block keeps its links when it is shown elsewhere.
        check(
            "{% macro button(url) %}<a href=\"{{ url }}\">go</a>{% endmacro %}{% set later %}<a href='https://l.co/x'>later</a>\
             {% endset %}{{ button('https://a.co') }}{{ button('https://b.co') }}{{ later }}\
             {% filter replace('go', 'come') %}<a href='https://c.co'>go</a>{% endfilter %}",
            json!({}),
            &[
                (Some(0), "https://a.co"),
                (Some(0), "https://b.co"),
                (Some(1), "https://l.co/x"),
                (Some(2), "https://c.co"),
            ],
        );
        // What a value brings along is followed, and counted as a click only.
        check(
            "{{ more | safe }}<a href='https://a.co'>1</a>",
            json!({"more": "<a href='https://m.co'>0</a>"}),
            &[(None, "https://m.co"), (Some(0), "https://a.co")],
        );
        // Nobody reads a mark, whatever became of what it stood before.
        check(
            "{% filter replace('<', '[') %}<a href='https://a.co'>1</a>{% endfilter %}{{ \"\\u0000\" }}",
            json!({}),
            &[],
        );
    }
}
