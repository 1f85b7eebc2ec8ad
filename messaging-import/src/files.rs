//! Reads a whole file as text.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::Error;

/// Most bytes of a file that is read as a whole.
const MAX_FILE: u64 = 8 << 20;

/// Reads a file as text. Fails if it cannot be read, is not UTF-8, or is longer than 8 MiB.
pub fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| Error::unreadable(path, error))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| Error::unreadable(path, error))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Error::unreadable(path, "it is longer than 8 MiB"));
    }
    Ok(text)
}
