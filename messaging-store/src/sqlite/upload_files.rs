//! Uploaded files, in a directory beside the database.
//!
//! A file is named after its import, its workspace and itself, and has another name until it is kept. There
//! are few at a time, so they stand in one directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use messaging_core::ids::{BlobId, ImportId, WorkspaceId};
use messaging_core::ports::uploads::UploadFile;

use crate::files::{UNFINISHED, make_directory_durably, names, open_private, remove_file, sync_directory};

/// The directory of the files.
#[derive(Debug, Clone)]
pub(super) struct UploadFiles {
    root: Arc<Path>,
}

impl UploadFiles {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root: root.into() }
    }

    pub(super) fn path(&self, file: UploadFile) -> PathBuf {
        self.root.join(format!("{}.{}.{}", file.import_id, file.workspace_id, file.upload_id))
    }

    fn unfinished(&self, file: UploadFile) -> PathBuf {
        let mut path = self.path(file).into_os_string();
        path.push(UNFINISHED);
        path.into()
    }

    pub(super) fn append(&self, file: UploadFile, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut options, path) = (OpenOptions::new(), self.unfinished(file));
        options.write(true);
        let mut open = if at == 0 {
            make_directory_durably(&self.root)?;
            open_private(options.create(true).truncate(true), &path)?
        } else {
            options.open(&path)?
        };
        open.seek(SeekFrom::Start(at))?;
        open.write_all(bytes)
    }

    pub(super) fn keep(&self, file: UploadFile) -> io::Result<()> {
        let unfinished = self.unfinished(file);
        File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, self.path(file))?;
        sync_directory(&self.root)
    }

    pub(super) fn read(&self, file: UploadFile, at: u64, length: usize) -> io::Result<Option<Bytes>> {
        let mut open = match File::open(self.path(file)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        open.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::with_capacity(length);
        open.take(length as u64).read_to_end(&mut bytes)?;
        Ok(Some(bytes.into()))
    }

    pub(super) fn list(&self, workspace: WorkspaceId, import: ImportId) -> io::Result<Vec<BlobId>> {
        let start = format!("{import}.{workspace}.");
        let upload = |name: &String| {
            let name = name.strip_prefix(&start)?;
            name.strip_suffix(UNFINISHED).unwrap_or(name).parse().ok()
        };
        let mut found: Vec<BlobId> = names(&self.root)?.iter().filter_map(upload).collect();
        found.sort_unstable();
        Ok(found)
    }

    pub(super) fn list_of(&self, workspace: WorkspaceId, limit: usize) -> io::Result<Vec<UploadFile>> {
        let file = |name: &String| {
            let mut parts = name.strip_suffix(UNFINISHED).unwrap_or(name).split('.');
            let (import, of, upload) = (parts.next()?, parts.next()?, parts.next()?);
            let file = UploadFile {
                workspace_id: of.parse().ok()?,
                import_id: import.parse().ok()?,
                upload_id: upload.parse().ok()?,
            };
            (file.workspace_id == workspace).then_some(file)
        };
        Ok(names(&self.root)?.iter().filter_map(file).take(limit).collect())
    }

    pub(super) fn remove(&self, file: UploadFile) -> io::Result<()> {
        remove_file(&self.unfinished(file))?;
        remove_file(&self.path(file))
    }
}
