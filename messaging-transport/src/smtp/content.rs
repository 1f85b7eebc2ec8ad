//! Content of a message in the form that DATA carries.

/// End of the content (RFC 5321 section 4.1.1.4). The CRLF before it belongs to the content.
const END: &[u8] = b".\r\n";

/// A message with its dots stuffed (RFC 5321 section 4.5.2) and the dot that ends it, made once for all peers that get
/// it.
pub(crate) struct WireContent {
    octets: Vec<u8>,
    size: usize,
    is_ascii: bool,
}

impl WireContent {
    /// Takes a message that ends in CRLF. Most have no line that starts with a dot and are not copied.
    pub(crate) fn new(message: Vec<u8>) -> Self {
        let size = message.len();
        let is_ascii = message.is_ascii();
        let dots = leading_dots(&message).count();
        let mut octets = message;
        if dots > 0 {
            let mut stuffed = Vec::with_capacity(size + dots + END.len());
            let mut done = 0;
            for at in leading_dots(&octets) {
                stuffed.extend_from_slice(&octets[done..at]);
                stuffed.push(b'.');
                done = at;
            }
            stuffed.extend_from_slice(&octets[done..]);
            octets = stuffed;
        }
        octets.extend_from_slice(END);
        Self { octets, size, is_ascii }
    }

    /// Returns the octets that are written after the reply to DATA.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Returns the size as SIZE counts it (RFC 1870 section 3): without stuffing and the final dot.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Returns true if every octet is below 128.
    pub(super) const fn is_ascii(&self) -> bool {
        self.is_ascii
    }
}

/// Returns the offsets of dots that start a line.
fn leading_dots(octets: &[u8]) -> impl Iterator<Item = usize> {
    let first = octets.starts_with(b".").then_some(0);
    let others = octets.windows(2).enumerate().filter(|(_, pair)| *pair == b"\n.").map(|(at, _)| at + 1);
    first.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let content = WireContent::new(message.as_bytes().to_vec());
        assert_eq!(String::from_utf8_lossy(content.octets()), expected);
        assert_eq!((content.size(), content.is_ascii()), (message.len(), message.is_ascii()));
    }

    #[test]
    fn dots_are_stuffed_at_the_start_of_lines() {
        check("a\r\n", "a\r\n.\r\n");
        check(".\r\n", "..\r\n.\r\n");
        check("..\r\n.a\r\na.\r\n.\r\n", "...\r\n..a\r\na.\r\n..\r\n.\r\n");
        check("ü\r\n", "ü\r\n.\r\n");
    }
}
