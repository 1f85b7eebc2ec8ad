//! Encodes texts for message centers: in the GSM 7-bit alphabet, one septet in an octet, or in UCS-2; long ones in
//! parts with a user data header (3GPP TS 23.038 section 6.2.1, 23.040 section 9.2.3.24.1).

/// The GSM 7-bit default alphabet in its order; the escape to the extension table stands at 27.
const ALPHABET: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";

/// Its extension table.
const EXTENSION: &[(char, u8)] = &[
    ('\u{c}', 0x0A),
    ('^', 0x14),
    ('{', 0x28),
    ('}', 0x29),
    ('\\', 0x2F),
    ('[', 0x3C),
    ('~', 0x3D),
    (']', 0x3E),
    ('|', 0x40),
    ('€', 0x65),
];

const ESCAPE: u8 = 0x1B;

/// The values of `data_coding` (SMPP 3.4 section 5.2.19).
pub(super) const DEFAULT_ALPHABET: u8 = 0;
pub(super) const IA5: u8 = 1;
pub(super) const LATIN1: u8 = 3;
pub(super) const UCS2: u8 = 8;

/// Maximum octets of a message of one part, and of each of several, in both encodings.
const SEPTETS: (usize, usize) = (160, 153);
const OCTETS: (usize, usize) = (140, 134);

/// An encoded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    /// The encoding of the text, as the value of `data_coding`.
    pub(super) data_coding: u8,
    /// The parts, each with its header if there are several; at least one.
    pub(super) bodies: Vec<Vec<u8>>,
}

/// Encodes a text. The reference distinguishes the parts of one message from those of others.
pub(super) fn encode(text: &str, reference: u8) -> Parts {
    let septets: Option<Vec<Vec<u8>>> = text.chars().map(septets).collect();
    let (data_coding, characters, (alone, each)) = match septets {
        Some(septets) => (DEFAULT_ALPHABET, septets, SEPTETS),
        None => (UCS2, text.chars().map(ucs2).collect(), OCTETS),
    };
    let mut bodies = vec![Vec::new()];
    let limit = if characters.iter().map(Vec::len).sum::<usize>() <= alone { alone } else { each };
    for character in &characters {
        // No character is split.
        if bodies.last().is_some_and(|body| body.len() + character.len() > limit) {
            bodies.push(Vec::new());
        }
        if let Some(body) = bodies.last_mut() {
            body.extend_from_slice(character);
        }
    }
    let total = u8::try_from(bodies.len()).unwrap_or(u8::MAX);
    if total > 1 {
        for (body, number) in bodies.iter_mut().zip(1..=u8::MAX) {
            body.splice(..0, [5, 0, 3, reference, total, number]);
        }
    }
    Parts { data_coding, bodies }
}

fn septets(character: char) -> Option<Vec<u8>> {
    if let Some((_, septet)) = EXTENSION.iter().find(|(one, _)| *one == character) {
        return Some(vec![ESCAPE, *septet]);
    }
    let position = ALPHABET.chars().position(|one| one == character && one != '\u{1b}')?;
    u8::try_from(position).ok().map(|septet| vec![septet])
}

fn ucs2(character: char) -> Vec<u8> {
    let mut units = [0; 2];
    character.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_be_bytes()).collect()
}

/// Decodes a text that a recipient sent, without the user data header that it may have.
pub(super) fn decode(data_coding: u8, has_header: bool, body: &[u8]) -> String {
    let body = match body.first() {
        Some(&length) if has_header => body.get(usize::from(length) + 1..).unwrap_or_default(),
        _ => body,
    };
    match data_coding {
        UCS2 => {
            let units: Vec<u16> = body.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        IA5 => String::from_utf8_lossy(body).into_owned(),
        LATIN1 => body.iter().map(|octet| char::from(*octet)).collect(),
        _ => default_alphabet(body),
    }
}

fn default_alphabet(body: &[u8]) -> String {
    let mut text = String::with_capacity(body.len());
    let mut octets = body.iter();
    while let Some(&octet) = octets.next() {
        let found = if octet == ESCAPE {
            let escaped = octets.next();
            EXTENSION.iter().find(|(_, septet)| Some(septet) == escaped).map(|(character, _)| *character)
        } else {
            ALPHABET.chars().nth(usize::from(octet))
        };
        text.push(found.unwrap_or(' '));
    }
    text
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::channel::sms;

    use super::*;

    #[test]
    fn texts_come_back_as_they_went() {
        assert_eq!(ALPHABET.chars().count(), 128);
        let (all, extended): (String, String) =
            (ALPHABET.replace('\u{1b}', ""), EXTENSION.iter().map(|(one, _)| one).collect());
        for (text, data_coding) in
            [("Hi", 0), (all.as_str(), 0), (extended.as_str(), 0), ("жук", 8), ("😀`", 8), ("", 0)]
        {
            let parts = encode(text, 7);
            assert_eq!((parts.data_coding, parts.bodies.len()), (data_coding, 1), "{text}");
            assert_eq!(decode(parts.data_coding, false, &parts.bodies[0]), text);
        }
        assert_eq!(encode("@Aa€", 0).bodies[0], [0, 0x41, 0x61, 0x1B, 0x65]);
        assert_eq!(decode(LATIN1, false, &[0xE4]), "ä");
        assert_eq!(decode(IA5, false, b"STOP"), "STOP");
    }

    #[test]
    fn long_texts_have_as_many_parts_as_are_counted_and_split_no_character() {
        for text in [
            "a".repeat(160),
            "a".repeat(161),
            "a".repeat(306),
            "a".repeat(307),
            "€".repeat(80),
            "€".repeat(81),
            "€".repeat(153),
            "ж".repeat(70),
            "ж".repeat(71),
            "ж".repeat(135),
            "😀".repeat(35),
            "😀".repeat(36),
            "😀".repeat(67),
            format!("{}`", "a".repeat(70)),
        ] {
            let parts = encode(&text, 9);
            assert_eq!(parts.bodies.len(), sms::size(&text).segments, "{text}");
            let is_long = parts.bodies.len() > 1;
            let read: String = parts.bodies.iter().map(|body| decode(parts.data_coding, is_long, body)).collect();
            assert_eq!(read, text);
            for (number, body) in (1_u8..).zip(&parts.bodies) {
                let limit = if parts.data_coding == UCS2 { 140 } else { 160 };
                assert!(body.len() <= limit, "{}", body.len());
                if is_long {
                    let total = u8::try_from(parts.bodies.len()).unwrap();
                    assert_eq!(body[..6], [5, 0, 3, 9, total, number]);
                }
            }
        }
    }
}
