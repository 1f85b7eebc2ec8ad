//! CBOR (RFC 8949), as far as devices write it that keep passkeys: items of a definite length.

/// The deepest item within others.
const MAX_DEPTH: u8 = 8;

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cbor<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    Array(Vec<Cbor<'a>>),
    Map(Vec<(Cbor<'a>, Cbor<'a>)>),
    /// True, false, null, and numbers that are no integers: nothing that anybody asks for.
    Other,
}

impl<'a> Cbor<'a> {
    /// The item that octets begin with, and what follows it.
    pub(super) fn read(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        read(octets, 0)
    }

    /// The member of a map under a number.
    pub(super) fn member(&self, label: i64) -> Option<&Self> {
        self.found(&Cbor::Int(label))
    }

    /// The member of a map under a text.
    pub(super) fn text_member(&self, label: &str) -> Option<&Self> {
        self.found(&Cbor::Text(label))
    }

    fn found(&self, wanted: &Cbor<'_>) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(label, _)| label == wanted).map(|(_, member)| member)
    }

    pub(super) const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) const fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(octets) => Some(*octets),
            _ => None,
        }
    }
}

fn read(octets: &[u8], depth: u8) -> Option<(Cbor<'_>, &[u8])> {
    if depth > MAX_DEPTH {
        return None;
    }
    let (&first, rest) = octets.split_first()?;
    let (argument, rest) = argument(first & 31, rest)?;
    let length = usize::try_from(argument).ok();
    Some(match first >> 5 {
        0 => (Cbor::Int(i64::try_from(argument).ok()?), rest),
        1 => (Cbor::Int(-1 - i64::try_from(argument).ok()?), rest),
        2 => {
            let (bytes, rest) = rest.split_at_checked(length?)?;
            (Cbor::Bytes(bytes), rest)
        }
        3 => {
            let (text, rest) = rest.split_at_checked(length?)?;
            (Cbor::Text(std::str::from_utf8(text).ok()?), rest)
        }
        4 => {
            let (mut items, mut rest) = (Vec::new(), rest);
            for _ in 0..length? {
                let (item, after) = read(rest, depth + 1)?;
                items.push(item);
                rest = after;
            }
            (Cbor::Array(items), rest)
        }
        5 => {
            let (mut members, mut rest) = (Vec::new(), rest);
            for _ in 0..length? {
                let (label, after) = read(rest, depth + 1)?;
                let (member, after) = read(after, depth + 1)?;
                members.push((label, member));
                rest = after;
            }
            (Cbor::Map(members), rest)
        }
        7 => (Cbor::Other, rest),
        _ => return None,
    })
}

/// The number that belongs to the first octet; `None` for one of an indefinite length.
fn argument(short: u8, rest: &[u8]) -> Option<(u64, &[u8])> {
    let length = match short {
        0..=23 => return Some((short.into(), rest)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let (octets, rest) = rest.split_at_checked(length)?;
    Some((octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_the_standard_says() {
        // RFC 8949, appendix A.
        let cases: [(&[u8], Cbor<'_>); 9] = [
            (&[0x17], Cbor::Int(23)),
            (&[0x19, 0x03, 0xe8], Cbor::Int(1000)),
            (&[0x39, 0x01, 0x00], Cbor::Int(-257)),
            (&[0x44, 1, 2, 3, 4], Cbor::Bytes(&[1, 2, 3, 4])),
            (&[0x64, 0x49, 0x45, 0x54, 0x46], Cbor::Text("IETF")),
            (&[0x82, 1, 0x20], Cbor::Array(vec![Cbor::Int(1), Cbor::Int(-1)])),
            (&[0xa1, 0x61, 0x61, 1], Cbor::Map(vec![(Cbor::Text("a"), Cbor::Int(1))])),
            (&[0xf6], Cbor::Other),
            (&[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a], Cbor::Other),
        ];
        for (octets, expected) in cases {
            let mut longer = octets.to_vec();
            longer.push(0xFF);
            assert_eq!(Cbor::read(&longer), Some((expected, [0xFF].as_slice())));
            for end in 0..octets.len() {
                assert_eq!(Cbor::read(&octets[..end]), None, "{octets:?} up to {end}");
            }
        }
    }

    #[test]
    fn what_is_too_long_too_deep_or_endless_is_refused() {
        let cases: [&[u8]; 7] = [
            &[0x5f, 0x41, 1, 0xff],
            &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xc0, 0],
            &[0x61, 0xff],
            &[0x81; 100],
        ];
        for octets in cases {
            assert_eq!(Cbor::read(octets), None, "{octets:?}");
        }
    }
}
