//! Footer of marketing email without an unsubscribe link.
//!
//! Contract section 12.5: an HTML body without the link gets a footer with one. It is added before links are rewritten:
//! rewriting leaves links that unsubscribe alone.

use super::url_text::trimmed;
use super::{NumberedLink, attribute, markup};
use crate::domain::mail::plain_text;

/// Returns true if a rendered body shows the link that unsubscribes its recipient: as the target of a link, or as text.
/// In a comment or a script it is not shown.
pub fn has_unsubscribe_url(html: &str, url: &str) -> bool {
    // Most bodies without the link do not contain its token either, however the rest is escaped.
    let token = url.rsplit('/').next().unwrap_or(url);
    html.contains(token)
        && (markup::read(html).targets.iter().any(|target| trimmed(&target.url) == url)
            || plain_text::from_html(html).contains(url))
}

/// Adds a link that unsubscribes to the body, unless it shows one already. The offsets of links behind it are moved.
pub fn add_unsubscribe_url(html: &mut String, numbers: &mut [NumberedLink], url: &str) {
    if has_unsubscribe_url(html, url) {
        return;
    }
    let at = markup::read(html).pixel_at;
    let href = attribute(url);
    let style = "margin:24px 0;text-align:center;font:12px sans-serif;color:#666";
    let footer = format!("<p style=\"{style}\"><a href=\"{href}\" style=\"color:#666\">Unsubscribe</a></p>");
    html.insert_str(at, &footer);
    for link in numbers.iter_mut().filter(|link| link.at >= at) {
        link.at += footer.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://links.acme.com/u/Tok-en_1";

    fn footed(html: &str) -> String {
        let mut html = html.to_owned();
        add_unsubscribe_url(&mut html, &mut [], URL);
        html
    }

    #[test]
    fn a_link_counts_where_it_is_shown() {
        for html in [
            format!("<a href=\"{URL}\">stop</a>"),
            format!("<a data-no-track href=' {URL}\n'><img src=x></a>"),
            format!("<p>Copy {URL} to stop</p>"),
            format!("<a href={}>x</a>", URL.replace(':', "&#58;")),
        ] {
            assert!(has_unsubscribe_url(&html, URL), "{html}");
            assert_eq!(footed(&html), html);
        }
        for html in [
            String::new(),
            "<a href=\"https://links.acme.com/u/other\">stop</a>".to_owned(),
            format!("<!-- {URL} --><p>x</p>"),
            format!("<script>let url = '{URL}'</script>"),
            format!("<img src=\"{URL}\">"),
        ] {
            assert!(!has_unsubscribe_url(&html, URL), "{html}");
            assert!(has_unsubscribe_url(&footed(&html), URL), "{html}");
        }
    }

    #[test]
    fn the_footer_stands_at_the_end_of_the_body() {
        assert!(footed("Hi").starts_with("Hi<p "));
        let html = "<html><body><p>Hi</p></body></html>";
        let footed = footed(html);
        assert!(footed.starts_with("<html><body><p>Hi</p><p style="), "{footed}");
        assert!(footed.ends_with("Unsubscribe</a></p></body></html>"), "{footed}");
    }

    #[test]
    fn links_behind_the_footer_move_with_what_they_name() {
        let mut html = "<a href=x>1</a></body><a href=y>2</a>".to_owned();
        let mut numbers = [NumberedLink { at: 0, number: 0 }, NumberedLink { at: 22, number: 1 }];
        add_unsubscribe_url(&mut html, &mut numbers, URL);
        let at = numbers.map(|link| html[link.at..].get(..9).map(ToOwned::to_owned));
        assert_eq!(at, [Some("<a href=x".to_owned()), Some("<a href=y".to_owned())]);
    }
}
