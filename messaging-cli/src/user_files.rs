//! Files that the command line keeps for its user: in `$XDG_CONFIG_HOME/messaging`, or `~/.config/messaging`, readable
//! by that user alone, because they hold secrets.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::files::{unreadable, unwritable};

/// Bytes of a file, at most.
const MAX_FILE: u64 = 1 << 20;

/// The path of a file.
pub(crate) fn path(name: &str) -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let config = config.ok_or_else(|| Failure::usage("neither XDG_CONFIG_HOME nor HOME names a directory"))?;
    Ok(config.join("messaging").join(name))
}

/// The text of a file, if it is there.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    let mode = file.metadata().map_err(|error| unreadable(path, error))?.permissions().mode();
    if mode & 0o077 != 0 {
        let reason =
            format!("others may read it (mode {:03o}): chmod 600 it, and renew the secrets in it", mode & 0o777);
        return Err(unreadable(path, reason));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| unreadable(path, error))?;
    Ok(Some(text))
}

/// Puts a file into place as a whole, with mode 0600.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    put(path, text).map_err(|error| unwritable(path, error))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let aside = PathBuf::from(format!("{}.new.{}", path.display(), std::process::id()));
    let mut options = OpenOptions::new();
    let written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut out| out.write_all(text.as_bytes()).and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}
