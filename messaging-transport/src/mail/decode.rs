//! Transfer encodings and character sets.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;

/// Returns a body without its transfer encoding, which is given in lower case; `None` if it does not decode.
pub(crate) fn content<'a>(encoding: &str, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    match encoding {
        "base64" => base64_decode(body).map(Cow::Owned),
        "quoted-printable" => quoted_printable_decode(body).map(Cow::Owned),
        _ => Some(Cow::Borrowed(body)),
    }
}

/// Returns octets as text. UTF-8 is recognized whatever charset is declared; octets that are no character are replaced.
pub(crate) fn text(content: &[u8], charset: Option<&str>) -> String {
    if let Ok(text) = std::str::from_utf8(content) {
        // ISO-2022 and UTF-7 look like ASCII.
        let charset = charset.unwrap_or("").to_ascii_lowercase();
        if !(charset.starts_with("iso-2022") || charset.starts_with("utf-7") || charset.starts_with("hz")) {
            return text.to_owned();
        }
    }
    let decoder = charset.and_then(|charset| charset_decoder(charset.as_bytes()));
    decoder.map_or_else(|| String::from_utf8_lossy(content).into_owned(), |decode| decode(content))
}
