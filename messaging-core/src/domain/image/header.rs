//! Type and size of an image, read from its first octets.
//!
//! PNG (RFC 2083 section 4.1.1), JPEG (ITU T.81 section B.2.2), GIF (`GIF89a` section 18) and WebP (RFC 9649). Nothing of
//! the picture itself is decoded.

use serde::{Deserialize, Serialize};

/// The types of images that mail programs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageType {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Graphics Interchange Format.
    Gif,
    /// WebP.
    Webp,
}

impl ImageType {
    /// The media types of all of them.
    pub const MEDIA_TYPES: &'static [&'static str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// Type and size of an image, as its header says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeader {
    /// Type of the image.
    pub kind: ImageType,
    /// Width in pixels; at least 1.
    pub width: u32,
    /// Height in pixels; at least 1.
    pub height: u32,
}

impl ImageHeader {
    /// Reads the header of an image; `None` of what is none of the four types, is cut off before its size, or has none.
    pub fn read(octets: &[u8]) -> Option<Self> {
        let (kind, (width, height)) = if octets.starts_with(b"\x89PNG\r\n\x1a\n") {
            (ImageType::Png, png(octets)?)
        } else if octets.starts_with(b"\xff\xd8\xff") {
            (ImageType::Jpeg, jpeg(octets)?)
        } else if octets.starts_with(b"GIF87a") || octets.starts_with(b"GIF89a") {
            (ImageType::Gif, (little_16(octets, 6)?, little_16(octets, 8)?))
        } else if octets.starts_with(b"RIFF") && octets.get(8..12) == Some(b"WEBP") {
            (ImageType::Webp, webp(octets)?)
        } else {
            return None;
        };
        (width > 0 && height > 0).then_some(Self { kind, width, height })
    }
}

/// The first chunk of a PNG is `IHDR`.
fn png(octets: &[u8]) -> Option<(u32, u32)> {
    if octets.get(12..16)? != b"IHDR" {
        return None;
    }
    Some((big_32(octets, 16)?, big_32(octets, 20)?))
}

/// Goes from segment to segment until the start of a frame. Each step goes forward by at least two octets.
fn jpeg(octets: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *octets.get(at)? != 0xFF {
            return None;
        }
        match *octets.get(at + 1)? {
            // Fill octets before a marker.
            0xFF => at += 1,
            // Markers without a segment: TEM and the restarts.
            0x01 | 0xD0..=0xD7 => at += 2,
            // The frames, but for the tables of Huffman codes and of arithmetic coding, and the reserved marker.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((big_16(octets, at + 7)?, big_16(octets, at + 5)?));
            }
            // The picture begins, or ends, without a frame.
            0xD8..=0xDA => return None,
            _ => {
                let length = usize::try_from(big_16(octets, at + 2)?).ok()?;
                at += 2 + length.max(2);
            }
        }
    }
}

/// The first chunk of a WebP file says which of its three forms it has.
fn webp(octets: &[u8]) -> Option<(u32, u32)> {
    match octets.get(12..16)? {
        b"VP8 " if octets.get(23..26)? == b"\x9d\x01\x2a" => {
            Some((little_16(octets, 26)? & 0x3FFF, little_16(octets, 28)? & 0x3FFF))
        }
        b"VP8L" if *octets.get(20)? == 0x2F => {
            let bits = little_16(octets, 21)? | little_16(octets, 23)? << 16;
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => Some((little_24(octets, 24)? + 1, little_24(octets, 27)? + 1)),
        _ => None,
    }
}

fn at<const N: usize>(octets: &[u8], place: usize) -> Option<[u8; N]> {
    octets.get(place..)?.first_chunk().copied()
}

fn big_32(octets: &[u8], place: usize) -> Option<u32> {
    at(octets, place).map(u32::from_be_bytes)
}

fn big_16(octets: &[u8], place: usize) -> Option<u32> {
    at(octets, place).map(u16::from_be_bytes).map(u32::from)
}

fn little_16(octets: &[u8], place: usize) -> Option<u32> {
    at(octets, place).map(u16::from_le_bytes).map(u32::from)
}

fn little_24(octets: &[u8], place: usize) -> Option<u32> {
    at(octets, place).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(octets: &[u8], expected: Option<(ImageType, u32, u32)>) {
        let found = ImageHeader::read(octets).map(|header| (header.kind, header.width, header.height));
        assert_eq!(found, expected);
        // Wherever it is cut off, it is read the same or not at all.
        for length in 0..octets.len() {
            let cut = ImageHeader::read(&octets[..length]).map(|header| (header.kind, header.width, header.height));
            assert!(cut.is_none() || cut == expected, "cut off at {length}");
        }
    }

    #[test]
    fn png() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
        check(png, Some((ImageType::Png, 640, 480)));
        check(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\0\0\0\x01\xe0", None);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\x0dtEXt\0\0\x02\x80\0\0\x01\xe0", None);
    }

    #[test]
    fn gif() {
        check(b"GIF89a\x40\x01\xc8\x00\x80", Some((ImageType::Gif, 320, 200)));
        check(b"GIF87a\x01\x00\x02\x00\x80", Some((ImageType::Gif, 1, 2)));
        check(b"GIF90a\x01\x00\x02\x00\x80", None);
        check(b"GIF89a\x00\x00\x02\x00\x80", None);
    }

    #[test]
    fn jpeg() {
        let plain = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03";
        check(plain, Some((ImageType::Jpeg, 640, 480)));
        let progressive = b"\xff\xd8\xff\xe1\0\x02\xff\xff\xc2\0\x11\x08\0\x02\0\x01\x03";
        check(progressive, Some((ImageType::Jpeg, 1, 2)));
        // A table of codes is no frame.
        let tables = b"\xff\xd8\xff\xc4\0\x04\x01\x02\xff\xc0\0\x11\x08\0\x02\0\x01\x03";
        check(tables, Some((ImageType::Jpeg, 1, 2)));
        check(b"\xff\xd8\xff\xda\0\x04\x01\x02\xff\xc0\0\x11\x08\0\x02\0\x01\x03", None);
        check(b"\xff\xd8\xff\xe0\0\0\0\0\0\0\0\0\0\0\0\0\0", None);
        check(b"\xff\xd8\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None);
    }

    #[test]
    fn webp() {
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\x10\x02\0\x9d\x01\x2a\x80\x02\xe0\x01\0";
        check(lossy, Some((ImageType::Webp, 640, 480)));
        // 639 and 479 in 14 bits each.
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\x00\0";
        check(lossless, Some((ImageType::Webp, 640, 480)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        check(extended, Some((ImageType::Webp, 640, 480)));
        check(b"RIFF\0\0\0\0WEBPALPH\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0", None);
        check(b"RIFF\0\0\0\0WAVEfmt \x0a\0\0\0", None);
    }

    #[test]
    fn what_is_no_image() {
        for octets in
            [&b""[..], b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", b"%PDF-1.7", b"BM\0\0\0\0", b"\xff\xd8"]
        {
            check(octets, None);
        }
    }
}
