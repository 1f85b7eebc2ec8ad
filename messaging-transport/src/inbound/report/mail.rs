//! Parts of a mail, as far as a report needs them.
//!
//! A report is in the first parts of a mail, the returned message in the last one, and only the header of that is read.
//! So parsing stays flat and short: a bounded number of parts at a bounded depth, each line looked at once for every
//! level.

use std::borrow::Cow;

use messaging_core::domain::mail::plain_text;

use crate::mail::boundaries::between_boundaries;
use crate::mail::decode;
use crate::mail::fields::{self, Fields, Parametrized};

/// Maximum number of parts that are not multipart themselves.
const MAX_PARTS: usize = 40;

/// Maximum nesting of multipart bodies.
const MAX_DEPTH: usize = 6;

/// A mail.
#[derive(Debug)]
pub(crate) struct Mail<'a> {
    /// Its header.
    pub(crate) header: Fields,
    /// Its parts that are not multipart themselves, in order.
    pub(crate) parts: Vec<Part<'a>>,
}

/// A part that is not multipart itself.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// Media type in lower case, such as `text/plain`.
    pub(super) media_type: String,
    charset: Option<String>,
    encoding: String,
    body: &'a [u8],
}

impl<'a> Mail<'a> {
    pub(crate) fn read(source: &'a [u8]) -> Self {
        let (header, body) = fields::split(source);
        let mut parts = Vec::new();
        walk(&header, body, 0, &mut parts);
        Self { header, parts }
    }

    /// Returns the first part of one of the media types.
    pub(super) fn part(&self, media_types: &[&str]) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| media_types.contains(&part.media_type.as_str()))
    }

    /// Returns the text for people: all plain parts before the returned message, or else the text of the HTML.
    pub(super) fn text(&self) -> String {
        let before = self.parts.iter().take_while(|part| !part.is_returned_message());
        let of_type = |media_type: &str| {
            let texts: Vec<_> = before.clone().filter(|part| part.media_type == media_type).map(Part::text).collect();
            texts.join("\n\n")
        };
        let plain = of_type("text/plain");
        if plain.trim().is_empty() { plain_text::from_html(&of_type("text/html")) } else { plain }
    }

    /// Returns the header of the returned message, if there is one.
    pub(super) fn returned_header(&self) -> Option<Fields> {
        let part = self.parts.iter().find(|part| part.is_returned_message())?;
        let (header, _) = fields::split(&part.content());
        (!header.is_empty()).then_some(header)
    }
}

impl Part<'_> {
    /// Returns the content without its transfer encoding. Content that does not decode is taken as it is.
    pub(crate) fn content(&self) -> Cow<'_, [u8]> {
        decode::content(&self.encoding, self.body).unwrap_or(Cow::Borrowed(self.body))
    }

    /// Returns the content as text.
    pub(super) fn text(&self) -> String {
        decode::text(&self.content(), self.charset.as_deref())
    }

    fn is_returned_message(&self) -> bool {
        matches!(
            self.media_type.as_str(),
            "message/rfc822" | "text/rfc822-headers" | "message/global" | "message/global-headers"
        )
    }
}

fn walk<'a>(header: &Fields, body: &'a [u8], depth: usize, parts: &mut Vec<Part<'a>>) {
    if parts.len() >= MAX_PARTS {
        return;
    }
    let content_type = header.get("Content-Type").map(Parametrized::read).unwrap_or_default();
    let boundary = content_type.parameter("boundary").filter(|boundary| !boundary.is_empty());
    if let Some(boundary) = boundary
        && content_type.value.starts_with("multipart/")
        && depth < MAX_DEPTH
    {
        for part in between_boundaries(body, boundary.as_bytes(), MAX_PARTS) {
            let (header, body) = fields::split(part);
            walk(&header, body, depth + 1, parts);
        }
        return;
    }
    let media_type =
        if content_type.value.contains('/') { content_type.value.clone() } else { "text/plain".to_owned() };
    let encoding = header.get("Content-Transfer-Encoding").unwrap_or("").trim().to_ascii_lowercase();
    let charset = content_type.parameter("charset").map(ToOwned::to_owned);
    parts.push(Part { media_type, charset, encoding, body });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        Mail::read(text.as_bytes()).parts.iter().map(|part| (part.media_type.clone(), part.text())).collect()
    }

    fn part(media_type: &str, text: &str) -> (String, String) {
        (media_type.to_owned(), text.to_owned())
    }

    #[test]
    fn parts_come_in_order_and_decoded() {
        let text = "Content-Type: multipart/mixed; boundary=a\r\n\r\npreamble\r\n--a\r\n\r\nplain\r\n\
            --a\r\nContent-Type: multipart/alternative; boundary=\"ab\"\r\n\r\n\
            --ab\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nf=FCr\r\n\
            --ab\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+\r\n--ab--\r\n\
            --a\r\nContent-Type: message/rfc822\r\n\r\nSubject: s\r\n\r\nbody\r\n--a--\r\nepilogue";
        let expected = [
            part("text/plain", "plain"),
            part("text/plain", "für"),
            part("text/html", "<p>"),
            part("message/rfc822", "Subject: s\r\n\r\nbody"),
        ];
        assert_eq!(read(text), expected);
        assert_eq!(Mail::read(text.as_bytes()).text(), "plain\n\nfür");
        let returned = Mail::read(text.as_bytes()).returned_header().unwrap();
        assert_eq!(returned.get("subject"), Some("s"));
    }

    #[test]
    fn a_letter_that_was_cut_off_has_what_came() {
        let text = "Content-Type: multipart/mixed; boundary=a\n\n--a\n\none\n--a\nContent-Type: text/x\n\ntw";
        assert_eq!(read(text), [part("text/plain", "one"), part("text/x", "tw")]);
        assert_eq!(read("Content-Type: multipart/mixed\n\nbody"), [part("multipart/mixed", "body")]);
        assert_eq!(read(""), [part("text/plain", "")]);
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let mut nested = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned();
        for _ in 0..1000 {
            nested.push_str("--b\nContent-Type: multipart/mixed; boundary=b\n\n");
        }
        assert!(Mail::read(nested.as_bytes()).parts.len() <= MAX_PARTS);
        let many = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "--b\n\nx\n".repeat(1000));
        assert_eq!(Mail::read(many.as_bytes()).parts.len(), MAX_PARTS);
    }
}
