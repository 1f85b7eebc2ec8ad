//! Reading files whole.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::Error;

/// The longest file that is read whole, in bytes; the API takes less.
const MAX_FILE: u64 = 8 << 20;

/// The text of a file of at most 8 MiB.
pub fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| Error::unreadable(path, error))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| Error::unreadable(path, error))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Error::unreadable(path, "it is longer than 8 MiB"));
    }
    Ok(text)
}
