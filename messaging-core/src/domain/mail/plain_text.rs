//! Text part of an email whose sender gave only HTML.
//!
//! Links are kept as `text (url)`, blocks become lines, lists get dashes, images their `alt`. Linear in
//! the input: the tokenizer builds no tree, so nesting costs nothing.

use crate::domain::mail::html_events::{self, Piece, RawText};

/// Derives plain text from HTML.
pub fn from_html(html: &str) -> String {
    let mut writer = Writer::default();
    html_events::pieces(html, RawText::Markup, &mut |piece| match piece {
        Piece::Start { name, attributes, is_closed } => {
            let is_hidden = attributes.get("style").is_some_and(|style| is_not_displayed(style));
            if !writer.leave_out(name, is_hidden, is_closed) {
                writer.open(name, attributes.get("href").cloned(), attributes.get("alt").map(String::as_str));
            }
        }
        Piece::End(name) => {
            if !writer.end_left_out(name) {
                writer.close(name);
            }
        }
        Piece::Text(text) => writer.text(text),
    });
    writer.finish()
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Number of line ends to write before the next text.
    breaks: usize,
    /// True if a space has to be written before the next text.
    space: bool,
    /// Number of open elements whose text is not for readers.
    hidden: usize,
    /// Name of the open element that is not displayed, and number of open elements of this name, itself included.
    left_out: Option<(String, usize)>,
    /// Target of the open link, and place in `out` where its text began.
    link: Option<(String, usize)>,
}

impl Writer {
    /// Returns true if an opening element is, or is inside, one that is not displayed.
    fn leave_out(&mut self, name: &str, is_hidden: bool, is_closed: bool) -> bool {
        const WITHOUT_END: [&str; 8] = ["area", "br", "col", "hr", "img", "input", "link", "meta"];
        match &mut self.left_out {
            Some((outer, open)) => {
                *open += usize::from(outer == name && !is_closed);
                true
            }
            None if is_hidden && name != "body" && name != "html" => {
                if !is_closed && !WITHOUT_END.contains(&name) {
                    self.left_out = Some((name.to_owned(), 1));
                    self.hidden += 1;
                }
                true
            }
            None => false,
        }
    }

    fn end_left_out(&mut self, name: &str) -> bool {
        let Some((outer, open)) = &mut self.left_out else { return false };
        if outer == name {
            *open -= 1;
            if *open == 0 {
                self.left_out = None;
                self.hidden = self.hidden.saturating_sub(1);
            }
        }
        true
    }

    fn open(&mut self, name: &str, href: Option<String>, alt: Option<&str>) {
        match name {
            "script" | "style" | "head" | "title" | "template" => self.hidden += 1,
            "br" => self.breaks += 1,
            "li" => {
                self.line(1);
                self.word("-");
                self.space = true;
            }
            "hr" => {
                self.line(1);
                self.word("----");
                self.line(1);
            }
            "td" | "th" => self.space = true,
            "img" => {
                if let Some(alt) = alt.filter(|alt| !alt.trim().is_empty()) {
                    self.text(alt);
                }
            }
            "a" => {
                let target = href.filter(|href| href.contains(':') && !href.starts_with('#'));
                self.link = target.map(|target| (target, self.out.len()));
            }
            "body" => self.hidden = 0,
            _ => self.line(block_distance(name)),
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "script" | "style" | "head" | "title" | "template" => self.hidden = self.hidden.saturating_sub(1),
            "a" => {
                if let Some((target, start)) = self.link.take() {
                    let shown = self.out[start..].trim();
                    let bare = target.strip_prefix("mailto:").unwrap_or(&target);
                    if shown.is_empty() {
                        self.text(bare);
                    } else if shown != bare {
                        let target = format!("({bare})");
                        self.space = true;
                        self.word(&target);
                    }
                }
            }
            _ => self.line(block_distance(name)),
        }
    }

    fn line(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
    }

    fn text(&mut self, text: &str) {
        if self.hidden > 0 {
            return;
        }
        let white = |c: char| c.is_whitespace() && c != '\u{a0}';
        self.space |= text.starts_with(white);
        for word in text.split(white).filter(|word| !word.is_empty()) {
            self.word(word);
            self.space = true;
        }
        self.space = text.ends_with(white) || (self.space && text.trim().is_empty());
    }

    fn word(&mut self, word: &str) {
        if self.hidden > 0 {
            return;
        }
        if self.breaks > 0 && !self.out.is_empty() {
            // At most one empty line, however many blocks ended here.
            self.out.push_str(&"\n".repeat(self.breaks.min(2)));
        } else if self.space && !self.out.is_empty() && self.breaks == 0 {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
        self.out.push_str(word);
    }

    fn finish(self) -> String {
        let mut out = self.out;
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }
}

/// Returns true if an element's own style hides it: a preheader, or content for other screens.
fn is_not_displayed(style: &str) -> bool {
    let mut declarations = style.split(';').filter_map(|declaration| declaration.split_once(':'));
    declarations.any(|(name, value)| {
        let value = value.trim().to_ascii_lowercase();
        name.trim().eq_ignore_ascii_case("display") && value.split_whitespace().next() == Some("none")
    })
}

/// Returns the line ends around a block: 2 for a paragraph, 1 for other blocks, 0 for inline elements.
fn block_distance(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "table" | "blockquote" | "pre" => 2,
        "div" | "tr" | "section" | "article" | "header" | "footer" | "address" | "dl" | "dt" | "dd" | "center"
        | "figure" | "main" | "nav" | "form" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(from_html(html), expected);
    }

    #[test]
    fn blocks_links_and_lists() {
        check("<p>Hello <b>Ann</b>,</p><p>thanks.</p>", "Hello Ann,\n\nthanks.\n");
        check("a<br>b", "a\nb\n");
        check("<ul><li>one</li><li>two</li></ul>", "- one\n- two\n");
        check(r#"See <a href="https://a.co/x?y=1&amp;z=2">here</a>."#, "See here (https://a.co/x?y=1&z=2).\n");
        check(r#"<a href="https://a.co">https://a.co</a>"#, "https://a.co\n");
        check(r#"<a href="mailto:a@b.co">a@b.co</a>"#, "a@b.co\n");
        check(r##"<a href="#top">up</a>"##, "up\n");
        check(r#"<img src="x" alt="Logo"> Shop"#, "Logo Shop\n");
        check("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc\n");
    }

    #[test]
    fn what_nobody_reads_is_left_out() {
        check("<html><head><title>T</title><style>p{}</style></head><body>x<script>y</script></body></html>", "x\n");
        check("a<!-- b -->c", "ac\n");
        check("<div style='color:red; DISPLAY : none!important'>a</div>b", "a\nb\n");
        check("<div style='display:none;x:y'>a<div>b</div><a href='https://a.co'>c</a></div>d", "d\n");
        check(
            "<p>a<img alt='b' style='display:none'>c</p><span style='display: none !important'>d</span>e",
            "ac\n\ne\n",
        );
        check("", "");
        check("  \n ", "");
        check("Tom &amp; J&eacute;r&ocirc;me &lt;3", "Tom & Jérôme <3\n");
    }

    #[test]
    fn nesting_costs_nothing() {
        let deep = format!("{}x{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        assert_eq!(from_html(&deep), "x\n");
    }
}
