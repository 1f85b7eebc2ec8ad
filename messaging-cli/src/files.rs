//! Files of resources that people keep in version control: `template push`, `automation push`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches};

use crate::failure::Failure;

/// Bytes of a file that are read to be sent: more than a server accepts, so that the server refuses the request.
const LONGEST: u64 = 32 << 20;

/// The argument that names the directory.
const DIRECTORY: &str = "directory";

/// The argument that names the directory of the files.
pub(crate) fn directory_argument(help: &'static str) -> Arg {
    Arg::new(DIRECTORY).value_name("DIR").required(true).value_parser(ValueParser::path_buf()).help(help)
}

/// The directory that was named.
pub(crate) fn directory(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    matches.get_one::<PathBuf>(DIRECTORY).cloned().ok_or_else(|| Failure::usage("a directory is missing"))
}

/// A file or directory cannot be read.
pub(crate) fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}

/// A file or directory cannot be written.
pub(crate) fn unwritable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}

/// The text of a file of at most 8 MiB.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    Ok(messaging_import::files::read(path)?)
}

/// The bytes of a file that a request sends unchanged; longer files than any request may have are not read to their
/// end.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let open = std::fs::File::open(path).map_err(|error| unreadable(path, error))?;
    open.take(LONGEST).read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
    Ok(bytes)
}

/// A name for the file or folder of a resource: the resource's own name in letters that every system accepts, unique in
/// the directory with this suffix.
pub(crate) fn free_name(directory: &Path, name: &str, id: &str, suffix: &str) -> String {
    let mut file: String =
        name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).take(60).collect();
    while file.contains("--") {
        file = file.replace("--", "-");
    }
    let file = file.trim_matches('-');
    if file.is_empty() || directory.join(format!("{file}{suffix}")).exists() {
        return format!("{file}-{id}{suffix}").trim_start_matches('-').to_owned();
    }
    format!("{file}{suffix}")
}
