//! Files in which reports come: plain, or packed by gzip (RFC 1952) or as the first member of a zip archive.
//!
//! Of an archive only the header before its first member is read (APPNOTE.TXT section 4.3.7), which every archiver
//! writes, and the member's octets: the directory at its end has nothing that a report needs.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

use flate2::read::{DeflateDecoder, GzDecoder};
use messaging_core::domain::mail::link_token::ReportPurpose;

use super::shared::{MAX_CONTENT, Unreadable};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZIP: &[u8] = b"PK\x03\x04";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Octets of the header of a member, without name and extra field.
const MEMBER_HEADER: usize = 30;

/// Maximum length of a piece of content that is examined at once: a tag, a text.
const MAX_PIECE: usize = 64 << 10;

/// Returns true if content looks like a report of a kind, packed or not.
pub(super) fn is_report(content: &[u8], purpose: ReportPurpose) -> bool {
    let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content).trim_ascii_start();
    let plain = match purpose {
        // The mail may have an HTML part.
        ReportPurpose::Dmarc => content.starts_with(b"<?xml") || content.starts_with(b"<feedback"),
        ReportPurpose::TlsRpt => content.starts_with(b"{"),
    };
    plain || content.starts_with(GZIP) || content.starts_with(ZIP)
}

/// Returns the content of a file without its container.
pub(super) fn unpack(file: &[u8]) -> std::result::Result<Content<'_>, Unreadable> {
    let reader: Box<dyn Read + '_> = if file.starts_with(GZIP) {
        Box::new(GzDecoder::new(file))
    } else if file.starts_with(ZIP) {
        first_member(file)?
    } else {
        Box::new(file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file))
    };
    Ok(Content { inner: BufReader::new(reader), left: MAX_CONTENT, piece: 0 })
}

fn first_member(file: &[u8]) -> std::result::Result<Box<dyn Read + '_>, Unreadable> {
    let header = file.get(..MEMBER_HEADER).ok_or(Unreadable::Damaged)?;
    let two = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let (flags, method, name, extra) = (two(6), two(8), two(26), two(28));
    let size = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
    let data = file.get(MEMBER_HEADER + name + extra..).ok_or(Unreadable::Damaged)?;
    let is_encrypted = flags & 1 == 1;
    match method {
        8 if !is_encrypted => Ok(Box::new(DeflateDecoder::new(data))),
        // Stored; its length has to be known beforehand.
        0 if !is_encrypted && flags & 8 == 0 => {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            Ok(Box::new(data.get(..size).ok_or(Unreadable::Damaged)?))
        }
        _ => Err(Unreadable::Container),
    }
}

/// A stream that fails beyond the maximum number of octets, and if one piece is too long.
pub(super) struct Content<'a> {
    inner: BufReader<Box<dyn Read + 'a>>,
    left: u64,
    piece: usize,
}

/// Error of a stream that is too long.
#[derive(Debug, thiserror::Error)]
#[error("the content is too long")]
struct TooLong;

impl Content<'_> {
    /// Begins another piece.
    pub(super) const fn begin_piece(&mut self) {
        self.piece = 0;
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let found = self.fill_buf()?;
        let length = found.len().min(buffer.len());
        buffer[..length].copy_from_slice(&found[..length]);
        self.consume(length);
        // A reader of octets limits its pieces itself.
        self.begin_piece();
        Ok(length)
    }
}

impl BufRead for Content<'_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let found = self.inner.fill_buf()?;
        if !found.is_empty() && (self.left == 0 || self.piece > MAX_PIECE) {
            return Err(Error::new(ErrorKind::InvalidData, TooLong));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        Ok(&found[..found.len().min(most)])
    }

    fn consume(&mut self, length: usize) {
        self.left = self.left.saturating_sub(length as u64);
        self.piece += length;
        self.inner.consume(length);
    }
}

/// Returns the reason to refuse a report whose stream ended with an error.
pub(super) fn fault_of(error: &Error) -> Unreadable {
    let is_too_long = error.get_ref().and_then(|inner| inner.downcast_ref::<TooLong>()).is_some();
    if is_too_long { Unreadable::TooLarge } else { Unreadable::Damaged }
}
