//! The file of a backup: a tar archive (POSIX.1-1988, "ustar") that ends with its own checksum.
//!
//! Every byte is either covered by the SHA-256 of the last entry or has only one valid value: headers are built anew
//! from name and length and compared, padding is zero, and nothing follows the end. So a reader finds every change.

use std::io::{self, Read, Write};

use ring::digest::{Context, SHA256};

const BLOCK: usize = 512;
/// Name of the last entry, with the checksum.
const SUM: &str = "SHA256";
/// Number of bytes copied at a time.
const PIECE: usize = 64 << 10;
/// Longest name in one field. The directory of a longer one is put into another field.
const MAX_NAME: usize = 100;
/// Longest directory in its field.
const MAX_PREFIX: usize = 155;
/// Largest length that eleven octal digits hold; larger ones are stored in binary, as GNU tar does.
const MAX_OCTAL: u64 = (1 << 33) - 1;

/// Builds the header of an entry. A pure function of its arguments, which is how readers check it.
fn header(name: &str, length: u64, modified_at: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let (prefix, rest) = split(name).unwrap_or_default();
    put(0, rest.as_bytes());
    put(345, prefix.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    if length <= MAX_OCTAL {
        put(124, format!("{length:011o}\0").as_bytes());
    } else {
        put(124, &[0x80, 0, 0, 0]);
        put(128, &length.to_be_bytes());
    }
    put(136, format!("{:011o}\0", modified_at.min(MAX_OCTAL)).as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Splits a name into its two fields; `None` if it is too long.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= MAX_NAME {
        return Some(("", name));
    }
    name.rsplit_once('/').filter(|(prefix, rest)| prefix.len() <= MAX_PREFIX && rest.len() <= MAX_NAME)
}

/// Number of bytes between the end of an entry and the next block.
fn padding(length: u64) -> usize {
    (BLOCK - usize::try_from(length % BLOCK as u64).unwrap_or(0)) % BLOCK
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes an archive.
pub(super) struct ArchiveWriter<W> {
    inner: W,
    sum: Context,
    written: u64,
    modified_at: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive whose entries all have this time, in seconds since 1970.
    pub(super) fn new(inner: W, modified_at: u64) -> Self {
        Self { inner, sum: Context::new(&SHA256), written: 0, modified_at }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)?;
        self.sum.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Number of bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Adds an entry with the first `length` bytes of `source`; fails if it has fewer.
    pub(super) fn add(&mut self, name: &str, length: u64, source: impl Read) -> io::Result<()> {
        if split(name).is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, "the name is too long for an archive"));
        }
        self.put(&header(name, length, self.modified_at))?;
        let mut source = source.take(length);
        let (mut piece, mut left) = (vec![0; PIECE], length);
        loop {
            let read = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.put(&piece[..read])?;
            left -= read as u64;
        }
        if left > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was read"));
        }
        self.put(&[0; BLOCK][..padding(length)])
    }

    /// Ends the archive; returns the checksum as well.
    pub(super) fn finish(mut self) -> io::Result<(W, String)> {
        let sum = hex(self.sum.clone().finish().as_ref());
        let line = format!("{sum}\n");
        self.add(SUM, line.len() as u64, line.as_bytes())?;
        self.inner.write_all(&[0; 2 * BLOCK])?;
        Ok((self.inner, sum))
    }
}

/// Reads an archive that [`ArchiveWriter`] wrote. Its entries are verified only once [`next`](Self::next) has returned
/// `None`.
pub(super) struct ArchiveReader<R> {
    inner: R,
    sum: Context,
    read: u64,
    modified_at: Option<u64>,
}

/// An entry, whose bytes follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) length: u64,
}

/// Damage found in an archive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("failed to read it")]
    Unreadable(#[source] io::Error),
    #[error("failed to write what it holds")]
    Unwritten(#[source] io::Error),
}

impl<R: Read> ArchiveReader<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, sum: Context::new(&SHA256), read: 0, modified_at: None }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Damage> {
        self.inner.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage::Malformed("it ends too early"),
            _ => Damage::Unreadable(error),
        })?;
        self.read += bytes.len() as u64;
        Ok(())
    }

    fn fill_padding(&mut self, length: u64, is_summed: bool) -> Result<(), Damage> {
        let mut bytes = [0; BLOCK];
        let bytes = &mut bytes[..padding(length)];
        self.fill(bytes)?;
        if is_summed {
            self.sum.update(bytes);
        }
        if bytes.iter().any(|byte| *byte != 0) { Err(Damage::Malformed("an entry has a damaged end")) } else { Ok(()) }
    }

    /// Returns the next entry; `None` once all were read and their checksum was right.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Damage> {
        let mut block = [0; BLOCK];
        self.fill(&mut block)?;
        let (name, length, modified_at) = parse(&block).ok_or(Damage::Malformed("it is no backup, or damaged"))?;
        let modified_at = *self.modified_at.get_or_insert(modified_at);
        if header(&name, length, modified_at) != block {
            return Err(Damage::Malformed("it is no backup, or damaged"));
        }
        if name == SUM {
            self.check_sum(length)?;
            return Ok(None);
        }
        self.sum.update(&block);
        Ok(Some(Entry { name, length }))
    }

    fn check_sum(&mut self, length: u64) -> Result<(), Damage> {
        let expected = format!("{}\n", hex(self.sum.clone().finish().as_ref()));
        let mut found = vec![0; expected.len()];
        if length != found.len() as u64 {
            return Err(Damage::Malformed("its checksum is damaged"));
        }
        self.fill(&mut found)?;
        if found != expected.as_bytes() {
            return Err(Damage::Malformed("its checksum is another one: it is damaged"));
        }
        self.fill_padding(length, false)?;
        let mut end = [0; 2 * BLOCK];
        self.fill(&mut end)?;
        let after = self.inner.read(&mut [0]).map_err(Damage::Unreadable)?;
        if after > 0 || end.iter().any(|byte| *byte != 0) {
            return Err(Damage::Malformed("something stands after its end"));
        }
        Ok(())
    }

    /// Writes the bytes of the entry that [`next`](Self::next) just returned; calls `note` with the number of bytes
    /// read so far.
    pub(super) fn copy(
        &mut self,
        entry: &Entry,
        target: &mut dyn Write,
        note: &mut dyn FnMut(u64),
    ) -> Result<(), Damage> {
        let (mut piece, mut left) = (vec![0; PIECE], entry.length);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            self.fill(&mut piece[..length])?;
            self.sum.update(&piece[..length]);
            target.write_all(&piece[..length]).map_err(Damage::Unwritten)?;
            left -= length as u64;
            note(self.read);
        }
        self.fill_padding(entry.length, true)
    }
}

/// Reads name, length and time from a header.
fn parse(block: &[u8; BLOCK]) -> Option<(String, u64, u64)> {
    let octal =
        |at: usize, length: usize| u64::from_str_radix(std::str::from_utf8(&block[at..at + length]).ok()?, 8).ok();
    let text = |at: usize, length: usize| {
        let field = &block[at..at + length];
        std::str::from_utf8(field.split(|byte| *byte == 0).next()?).ok()
    };
    let (prefix, rest) = (text(345, MAX_PREFIX)?, text(0, MAX_NAME).filter(|name| !name.is_empty())?);
    let name = if prefix.is_empty() { rest.to_owned() } else { format!("{prefix}/{rest}") };
    let length =
        if block[124] == 0x80 { u64::from_be_bytes(block[128..136].try_into().ok()?) } else { octal(124, 11)? };
    Some((name, length, octal(136, 11)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut archive = ArchiveWriter::new(Vec::new(), 1_700_000_000);
        for (name, content) in [("about", &b"one"[..]), ("empty", b""), ("full/block", &[7; BLOCK])] {
            archive.add(name, content.len() as u64, content).unwrap();
        }
        archive.finish().unwrap().0
    }

    fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Damage> {
        let (mut reader, mut found) = (ArchiveReader::new(bytes), Vec::new());
        while let Some(entry) = reader.next()? {
            let mut content = Vec::new();
            reader.copy(&entry, &mut content, &mut |_| {})?;
            found.push((entry.name, content));
        }
        Ok(found)
    }

    #[test]
    fn what_is_written_is_read() {
        let found = read(&archive()).unwrap();
        let names: Vec<_> = found.iter().map(|(name, content)| (name.as_str(), content.len())).collect();
        assert_eq!(names, [("about", 3), ("empty", 0), ("full/block", BLOCK)]);
        assert_eq!(found[0].1, b"one");
    }

    #[test]
    fn every_flipped_bit_and_every_length_is_found() {
        let whole = archive();
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes of {}", whole.len());
        }
        assert!(read(&[&whole[..], b"x"].concat()).is_err());
        for at in 0..whole.len() {
            for bit in [0, 3, 7] {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(read(&damaged).is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error_and_a_longer_one_is_cut() {
        let mut archive = ArchiveWriter::new(Vec::new(), 0);
        assert!(archive.add("short", 9, &b"12345678"[..]).is_err());
        let mut archive = ArchiveWriter::new(Vec::new(), 0);
        archive.add("long", 4, &b"12345678"[..]).unwrap();
        assert_eq!(read(&archive.finish().unwrap().0).unwrap()[0].1, b"1234");
    }

    #[test]
    fn long_names_are_told_and_longer_ones_refused() {
        let long = format!("{}/{}", "d".repeat(80), "n".repeat(90));
        assert_eq!(parse(&header(&long, 1, 5)), Some((long, 1, 5)));
        let too_long = format!("d/{}", "n".repeat(101));
        assert!(ArchiveWriter::new(Vec::new(), 0).add(&too_long, 0, &b""[..]).is_err());
    }

    #[test]
    fn lengths_beyond_eight_gibibytes_are_told() {
        for length in [0, MAX_OCTAL, MAX_OCTAL + 1, u64::MAX >> 1] {
            assert_eq!(parse(&header("big", length, 5)), Some(("big".to_owned(), length, 5)));
        }
    }
}
