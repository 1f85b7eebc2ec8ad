//! Content of a mail on the wire (RFC 5321 section 4.1.1.4): its end, and the octets that are kept.
//!
//! Only CRLF, a dot and CRLF end it. A carriage return or line feed alone is refused everywhere: hosts that take one of
//! them for a line end see another end of the content than this server, so that content for one would be commands for
//! the other.

/// Reason why content is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A carriage return or line feed alone. The rest must not be read as commands.
    Bare,
    /// The content exceeds the limit, but its end was found.
    TooLarge,
    /// The content exceeds twice the limit: its end is not waited for.
    FarTooLarge,
}

/// State of the scan within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LineStart,
    /// After a dot at the beginning of a line.
    Dot,
    /// After such a dot and a carriage return.
    DotCr,
    InLine,
    /// After a carriage return in a line.
    Cr,
}

/// Takes content as it arrives, undoes the dot-stuffing, keeps the beginning, and counts the rest.
#[derive(Debug)]
pub(super) struct Collector {
    kept: Vec<u8>,
    keep: usize,
    seen: usize,
    limit: usize,
    state: State,
}

impl Collector {
    /// Creates a collector that keeps `keep` octets and accepts `limit`.
    pub(super) const fn new(keep: usize, limit: usize) -> Self {
        Self { kept: Vec::new(), keep, seen: 0, limit, state: State::LineStart }
    }

    /// Scans octets that arrived. Returns how many of them were used, and the outcome once it is known.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Result<(), Fault>>) {
        for (at, &byte) in bytes.iter().enumerate() {
            self.state = match (self.state, byte) {
                (State::DotCr, b'\n') => {
                    let outcome = if self.seen > self.limit { Err(Fault::TooLarge) } else { Ok(()) };
                    return (at + 1, Some(outcome));
                }
                (State::Cr, b'\n') => {
                    self.keep(b"\r\n");
                    State::LineStart
                }
                (State::Cr | State::DotCr, _) | (State::LineStart | State::Dot | State::InLine, b'\n') => {
                    return (at + 1, Some(Err(Fault::Bare)));
                }
                (State::LineStart, b'.') => State::Dot,
                (State::Dot, b'\r') => State::DotCr,
                (State::LineStart | State::InLine, b'\r') => State::Cr,
                (State::LineStart | State::Dot | State::InLine, _) => {
                    self.keep(&[byte]);
                    State::InLine
                }
            };
            // Content of more than twice the limit is not read to its end.
            if self.seen > self.limit.saturating_mul(2) {
                return (at + 1, Some(Err(Fault::FarTooLarge)));
            }
        }
        (bytes.len(), None)
    }

    /// Returns the number of octets that were kept.
    pub(super) const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the octets that were kept, their dot-stuffing undone.
    pub(super) fn into_kept(self) -> Vec<u8> {
        self.kept
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.seen += bytes.len();
        let room = self.keep.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome is the same however the octets arrive.
    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&[u8], Fault>, rest: &[u8]) {
        for size in [1, 2, 3, bytes.len()] {
            let mut collector = Collector::new(50, 40);
            let mut used = 0;
            let mut outcome = None;
            for chunk in bytes.chunks(size) {
                let (taken, found) = collector.take(chunk);
                used += taken;
                if found.is_some() {
                    outcome = found;
                    break;
                }
            }
            let outcome = outcome.unwrap_or_else(|| panic!("{bytes:?} has no end"));
            let kept = collector.into_kept();
            assert_eq!((outcome.map(|()| &kept[..]), &bytes[used..]), (expected, rest), "in pieces of {size}");
        }
    }

    #[test]
    fn only_a_dot_between_line_ends_is_the_end() {
        check(b".\r\n", Ok(b""), b"");
        check(b"a\r\n.\r\nQUIT\r\n", Ok(b"a\r\n"), b"QUIT\r\n");
        check(b"..\r\n...\r\n.a\r\n.\r\n", Ok(b".\r\n..\r\na\r\n"), b"");
        check(b"a.\r\n.\r\n", Ok(b"a.\r\n"), b"");
        check(b"\r\n\r\n.\r\n", Ok(b"\r\n\r\n"), b"");
    }

    #[test]
    fn line_ends_that_are_none_are_refused() {
        for bytes in [
            &b"a\n.\nMAIL FROM:<>\r\n"[..],
            b"a\n.\r\n",
            b"a\r\n.\n",
            b"a\r.\r\n",
            b"a\r\r\n.\r\n",
            b"a\r\n.\r\r\n",
            b"\n",
            b"\r\r\n.\r\n",
            b".\n",
            b".\r.\r\n",
            b"a\x00\n",
        ] {
            let mut collector = Collector::new(50, 40);
            assert_eq!(collector.take(bytes).1, Some(Err(Fault::Bare)), "{bytes:?}");
        }
    }

    #[test]
    fn no_end_is_found_before_it_came() {
        for bytes in [&b""[..], b"a", b"a\r\n", b"a\r\n.", b"a\r\n.\r", b".", b".\r", b"a\r\n..\r\n"] {
            let mut collector = Collector::new(50, 40);
            assert_eq!(collector.take(bytes), (bytes.len(), None), "{bytes:?}");
        }
    }

    #[test]
    fn size_is_counted_and_the_beginning_kept() {
        check(&[&[b'a'; 38][..], b"\r\n.\r\n"].concat(), Ok(&[&[b'a'; 38][..], b"\r\n"].concat()), b"");
        check(&[&[b'a'; 39][..], b"\r\n.\r\nx"].concat(), Err(Fault::TooLarge), b"x");
        let mut collector = Collector::new(10, 40);
        let (used, outcome) = collector.take(&[b'a'; 100]);
        assert_eq!((used, outcome), (81, Some(Err(Fault::FarTooLarge))));
        assert_eq!(collector.into_kept(), [b'a'; 10]);
    }
}
