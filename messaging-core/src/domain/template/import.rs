//! A page from the web as the HTML of a template.

use url::Url;

use super::{gate, markup};
use crate::domain::mail::html_events::{self, Piece, RawText};

/// Attributes that hold one address.
const ADDRESSES: [&str; 6] = ["href", "src", "background", "poster", "action", "cite"];

/// Makes relative addresses absolute; everything else stays as it was. What an address stands in is found
/// by the tokenizer, and only its value is exchanged.
pub fn absolute(html: &str, page: &Url) -> String {
    let Ok(tokens) = gate::tokens(html) else { return html.to_owned() };
    let masked = markup::mask_template_tags(html, &tokens);
    let found = markup::read(&masked);
    let base = found
        .elements
        .iter()
        .find(|element| element.name == "base")
        .and_then(|element| page.join(element.attribute("href")?).ok());
    let base = base.as_ref().unwrap_or(page);
    let tag_ranges = markup::template_tag_ranges(html, &tokens);
    let mut out = String::with_capacity(html.len() + 1024);
    let mut written = 0;
    for element in &found.elements {
        if element.name == "base" {
            continue;
        }
        for (name, place) in markup::values_of(&masked, element) {
            let is_list = name == "srcset";
            let is_ours = tag_ranges.iter().any(|tag| tag.start < place.end && place.start < tag.end);
            if place.start < written || is_ours || !(is_list || ADDRESSES.contains(&name.as_str())) {
                continue;
            }
            let Some(value) = element.attribute(&name) else { continue };
            let new = if is_list { sources(value, base) } else { joined(value, base) };
            if let Some(new) = new.filter(|new| new != value) {
                out.push_str(&html[written..place.start]);
                out.push('"');
                out.push_str(&new.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;"));
                out.push('"');
                written = place.end;
            }
        }
    }
    out.push_str(&html[written..]);
    out
}

/// An address beside a base; `None` where it is nothing to join: empty, a place in the page, of its own scheme.
fn joined(address: &str, base: &Url) -> Option<String> {
    let address = address.trim();
    if address.is_empty() || address.starts_with('#') || Url::parse(address).is_ok() {
        return None;
    }
    base.join(address).ok().map(String::from)
}

/// The addresses of `srcset`, each with its condition.
fn sources(list: &str, base: &Url) -> Option<String> {
    if list.contains("data:") {
        return None;
    }
    let sources = list.split(',').map(|source| {
        let source = source.trim();
        let (address, condition) = source.split_once(char::is_whitespace).unwrap_or((source, ""));
        let address = joined(address, base).unwrap_or_else(|| address.to_owned());
        format!("{address} {}", condition.trim()).trim().to_owned()
    });
    Some(sources.collect::<Vec<_>>().join(", "))
}

/// The title of a page, for a subject; at most so many characters.
pub fn title(html: &str, most: usize) -> Option<String> {
    let (mut inside, mut is_done) = (false, false);
    let mut title = String::new();
    html_events::pieces(html, RawText::Text, &mut |piece| match piece {
        Piece::Start { name: "title", .. } => inside = true,
        Piece::End("title") => is_done = true,
        Piece::Text(text) if inside && !is_done => title.push_str(text),
        _ => {}
    });
    let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = words.chars().filter(|c| !c.is_control()).take(most).collect();
    // Somebody else's page says nothing in the language of templates.
    Some(line.replace("{{", "").replace("{%", "").replace("{#", "")).filter(|line| !line.is_empty())
}

/// The text of a page: UTF-8, or one of the two encodings of the old web where it says so.
pub fn decoded(bytes: &[u8], content_type: &str) -> Option<String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text.replace('\0', ""));
    }
    let content_type = content_type.to_ascii_lowercase();
    let is_western =
        ["iso-8859-1", "latin1", "windows-1252", "us-ascii"].iter().any(|name| content_type.contains(name));
    is_western.then(|| bytes.iter().map(|byte| char::from(*byte)).filter(|c| *c != '\0').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, expected: &str) {
        let page = Url::parse("https://a.example/news/today.html?x=1").unwrap();
        assert_eq!(absolute(html, &page), expected);
    }

    #[test]
    fn relative_addresses_become_absolute() {
        check("<a href=b.html>x</a>", "<a href=\"https://a.example/news/b.html\">x</a>");
        check("<img src='/i.png' alt='a>b'>", "<img src=\"https://a.example/i.png\" alt='a>b'>");
        check("<a href=\"//b.example/?a=1&amp;b=2\">", "<a href=\"https://b.example/?a=1&amp;b=2\">");
        check(
            "<img srcset=\"a.png 1x, b.png 2x\">",
            "<img srcset=\"https://a.example/news/a.png 1x, https://a.example/news/b.png 2x\">",
        );
        check("<base href=\"/other/\"><a href=x>", "<base href=\"/other/\"><a href=\"https://a.example/other/x\">");
        for same in [
            "<a href=\"#top\">",
            "<a href=\"mailto:a@b.c\">",
            "<a href=\"https://b.example/\">",
            "<a href=\"{{ url }}\">",
            "<a>",
            "text /x.png",
            "<script>a='<img src=x>'</script>",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn titles_and_encodings() {
        assert_eq!(title("<head><title> A\n &amp; B </title><title>C</title>", 99).as_deref(), Some("A & B"));
        assert_eq!(title("<p>none", 99), None);
        assert_eq!(decoded("é".as_bytes(), "text/html").as_deref(), Some("é"));
        assert_eq!(decoded(b"\xe9", "text/html; charset=ISO-8859-1").as_deref(), Some("é"));
        assert_eq!(decoded(b"\xe9", "text/html"), None);
    }
}
