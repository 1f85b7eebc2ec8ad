//! Header fields: of a mail, of a part, of the groups in a notification. All have one grammar
//! (RFC 5322 section 2.2), and are read leniently.

use mail_parser::parsers::MessageStream;

/// Maximum number of fields of one block that are read.
const MAX_FIELDS: usize = 300;

/// Maximum number of characters of a value that are kept.
const MAX_VALUE: usize = 8192;

/// Fields in order, unfolded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns the first value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns every value of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn push(&mut self, name: String, value: String) {
        self.0.push((name, value));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first value of a name with its encoded words (RFC 2047) decoded.
    pub(crate) fn words(&self, name: &str) -> Option<String> {
        let value = self.get(name)?;
        if !value.contains("=?") {
            return Some(value.to_owned());
        }
        let line = format!("{value}\n");
        let read = MessageStream::new(line.as_bytes()).parse_unstructured();
        Some(read.as_text().unwrap_or(value).to_owned())
    }
}

impl IntoIterator for Fields {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Reads the fields at the beginning of `block`, up to the first empty line, and returns them with the rest. A line
/// that is no field ends them too, and belongs to the rest.
pub(crate) fn split(block: &[u8]) -> (Fields, &[u8]) {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut rest = block;
    // The separator of an mbox file, which some hosts return.
    if rest.starts_with(b"From ") {
        rest = after_line(rest);
    }
    while !rest.is_empty() {
        let line = first_line(rest);
        if line.is_empty() {
            return (Fields(fields), after_line(rest));
        }
        if line[0] == b' ' || line[0] == b'\t' {
            let Some((_, value)) = fields.last_mut() else { break };
            append(value, line);
        } else {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { break };
            let name = line[..colon].trim_ascii_end();
            if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
                break;
            }
            if fields.len() < MAX_FIELDS {
                let mut value = String::new();
                append(&mut value, &line[colon + 1..]);
                fields.push((String::from_utf8_lossy(name).into_owned(), value));
            }
        }
        rest = after_line(rest);
    }
    (Fields(fields), rest)
}

/// Adds a folded line, one space for the fold.
fn append(value: &mut String, line: &[u8]) {
    let line = line.trim_ascii();
    if line.is_empty() || value.len() >= MAX_VALUE {
        return;
    }
    if !value.is_empty() {
        value.push(' ');
    }
    let room = MAX_VALUE - value.len().min(MAX_VALUE);
    value.push_str(&String::from_utf8_lossy(&line[..line.len().min(room)]));
}

/// Returns the first line without its end.
pub(crate) fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    let line = &text[..end];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the text after its first line; empty if no line ends.
pub(crate) fn after_line(text: &[u8]) -> &[u8] {
    text.iter().position(|&byte| byte == b'\n').map_or(&[][..], |at| &text[at + 1..])
}

/// A value with parameters, such as that of `Content-Type` (RFC 2045 section 5.1).
#[derive(Debug, Clone, Default)]
pub(crate) struct Parametrized {
    /// The value before the first parameter, in lower case.
    pub(crate) value: String,
    parameters: Vec<(String, String)>,
}

impl Parametrized {
    pub(crate) fn read(text: &str) -> Self {
        let mut pieces = unquoted_pieces(text).into_iter();
        let value = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
        let parameters = pieces
            .filter_map(|piece| {
                let (name, value) = piece.split_once('=')?;
                let value = value.trim();
                let unquoted = value.strip_prefix('"').map(|rest| rest.strip_suffix('"').unwrap_or(rest));
                let value = unquoted.map_or_else(|| value.to_owned(), |quoted| quoted.replace('\\', ""));
                Some((name.trim().to_ascii_lowercase(), value))
            })
            .collect();
        Self { value, parameters }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Splits at semicolons outside of quotes.
fn unquoted_pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' if !quoted => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_unfolded_up_to_the_empty_line() {
        let (fields, rest) = split(b"From x\r\nA: b\r\n c\r\n\td\r\nNo-Value:\r\nA : e\r\n\r\nbody\r\n");
        assert_eq!(fields.all("a").collect::<Vec<_>>(), ["b c d", "e"]);
        assert_eq!(fields.get("no-value"), Some(""));
        assert_eq!(rest, b"body\r\n");
        let (fields, rest) = split(b"A: b\nnot a field\n");
        assert_eq!((fields.get("A"), rest), (Some("b"), &b"not a field\n"[..]));
    }

    #[test]
    fn parameters_may_be_quoted() {
        let read = Parametrized::read("Multipart/Report; report-type=delivery-status; Boundary=\"a;\\\"b\"; x");
        assert_eq!(read.value, "multipart/report");
        assert_eq!(read.parameter("boundary"), Some("a;\"b"));
        assert_eq!(read.parameter("report-type"), Some("delivery-status"));
        assert_eq!(read.parameter("charset"), None);
    }

    #[test]
    fn encoded_words_are_read() {
        let (fields, _) = split(b"Subject: =?utf-8?B?0J3QtSDQtNC+0YHRgtCw0LLQu9C10L3Qvg==?= x\n\n");
        assert_eq!(fields.words("subject").as_deref(), Some("Не доставлено x"));
    }
}
