//! Files of a directory, read for each request.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// The name of the folder that the files are answered in; nobody keeps them.
pub(super) const SET: &str = "files";

/// Bytes of a file, at most.
const MAX_FILE: u64 = 8 << 20;

/// Reads a file without blocking other requests; `None` if there is none.
pub(super) async fn read_later(directory: &Path, name: &str) -> Option<Bytes> {
    let (directory, name) = (directory.to_owned(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        let read = read(&directory, &name);
        if let Err(error) = &read {
            tracing::debug!(%error, "a file of the console was not answered");
        }
        read.ok()
    });
    read.await.ok().flatten()
}

/// Reads a file below a directory.
pub(super) fn read(directory: &Path, name: &str) -> io::Result<Bytes> {
    let path = locate(directory, name)?;
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is longer than 8 MiB"));
    }
    Ok(bytes.into())
}

/// Finds a file. Neither the name nor a symbolic link leads out of the directory, and only plain files are opened:
/// others could block for ever.
fn locate(directory: &Path, name: &str) -> io::Result<PathBuf> {
    let not_found = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if !name.split('/').all(is_name) {
        return Err(not_found());
    }
    let directory = directory.canonicalize()?;
    let path = directory.join(name).canonicalize()?;
    if path.starts_with(&directory) && path.metadata()?.is_file() { Ok(path) } else { Err(not_found()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_directory() {
        let around = tempfile::tempdir().unwrap();
        fs::write(around.path().join("secret.txt"), "secret").unwrap();
        let directory = around.path().join("console");
        fs::create_dir_all(directory.join("lib")).unwrap();
        fs::write(directory.join("lib/api.js"), "api").unwrap();
        fs::write(directory.join(".hidden"), "hidden").unwrap();
        symlink("../secret.txt", directory.join("link.txt")).unwrap();
        symlink("..", directory.join("up")).unwrap();
        symlink("lib/api.js", directory.join("inside.js")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let read = |name: &str| read(&directory, name).ok();
        assert_eq!(read("lib/api.js").unwrap(), "api");
        assert_eq!(read("inside.js").unwrap(), "api");
        for name in [
            "",
            "lib",
            "lib/",
            "/lib/api.js",
            "lib//api.js",
            "./lib/api.js",
            "lib/../lib/api.js",
            "../secret.txt",
            "..%2fsecret.txt",
            "..\\secret.txt",
            ".hidden",
            "link.txt",
            "up/secret.txt",
            "pipe",
            "no.js",
            "lib/api.js\0",
        ] {
            assert_eq!(read(name), None, "{name:?}");
        }
        let absolute = around.path().join("secret.txt");
        assert_eq!(read(absolute.to_str().unwrap()), None);
    }

    #[test]
    fn a_file_has_its_bound() {
        let directory = tempfile::tempdir().unwrap();
        let file = fs::File::create(directory.path().join("long.js")).unwrap();
        file.set_len(MAX_FILE).unwrap();
        assert_eq!(read(directory.path(), "long.js").unwrap().len() as u64, MAX_FILE);
        file.set_len(MAX_FILE + 1).unwrap();
        assert_eq!(read(directory.path(), "long.js").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
