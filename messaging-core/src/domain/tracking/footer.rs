//! The footer of marketing email whose author forgot how to unsubscribe.
//!
//! Contract section 12.5: an HTML body without the link gets a footer with one. Add it before links are rewritten:
//! rewriting leaves links that unsubscribe alone.

use std::borrow::Cow;

use super::url_text::trimmed;
use super::{attribute, markup};
use crate::domain::plain_text;

/// Whether a rendered body shows the link that unsubscribes its recipient: as the target of a link, or as text. In a
/// comment or a script it is not shown.
pub fn has_unsubscribe_url(html: &str, url: &str) -> bool {
    // Most bodies without it do not have its token anywhere, whatever is escaped around it.
    let token = url.rsplit('/').next().unwrap_or(url);
    html.contains(token)
        && (markup::read(html).targets.iter().any(|target| trimmed(&target.url) == url)
            || plain_text::from_html(html).contains(url))
}

/// The body with a link that unsubscribes; as it is if it shows one already.
pub fn with_unsubscribe_url<'a>(html: &'a str, url: &str) -> Cow<'a, str> {
    if has_unsubscribe_url(html, url) {
        return Cow::Borrowed(html);
    }
    let (before, after) = html.split_at(markup::read(html).pixel_at);
    let href = attribute(url);
    let style = "margin:24px 0;text-align:center;font:12px sans-serif;color:#666";
    Cow::Owned(format!(
        "{before}<p style=\"{style}\"><a href=\"{href}\" style=\"color:#666\">Unsubscribe</a></p>{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://links.acme.com/u/Tok-en_1";

    #[test]
    fn a_link_counts_where_it_is_shown() {
        for html in [
            format!("<a href=\"{URL}\">stop</a>"),
            format!("<a data-no-track href=' {URL}\n'><img src=x></a>"),
            format!("<p>Copy {URL} to stop</p>"),
            format!("<a href={}>x</a>", URL.replace(':', "&#58;")),
        ] {
            assert!(has_unsubscribe_url(&html, URL), "{html}");
            assert!(matches!(with_unsubscribe_url(&html, URL), Cow::Borrowed(_)));
        }
        for html in [
            String::new(),
            "<a href=\"https://links.acme.com/u/other\">stop</a>".to_owned(),
            format!("<!-- {URL} --><p>x</p>"),
            format!("<script>let url = '{URL}'</script>"),
            format!("<img src=\"{URL}\">"),
        ] {
            assert!(!has_unsubscribe_url(&html, URL), "{html}");
            assert!(has_unsubscribe_url(&with_unsubscribe_url(&html, URL), URL), "{html}");
        }
    }

    #[test]
    fn the_footer_stands_at_the_end_of_the_body() {
        let html = "<html><body><p>Hi</p></body></html>";
        let footed = with_unsubscribe_url(html, URL);
        assert!(footed.starts_with("<html><body><p>Hi</p><p style="), "{footed}");
        assert!(footed.ends_with("Unsubscribe</a></p></body></html>"), "{footed}");
        assert!(with_unsubscribe_url("Hi", URL).starts_with("Hi<p "));
    }
}
