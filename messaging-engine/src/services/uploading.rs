//! Receiving the file of an import.
//!
//! Contract section 6.4. The file goes to the store piece by piece under a name of its own, so that two uploads at once
//! do not mix; the commit that starts the import decides which of them counts.

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::audience::import::Import;
use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::error::Chain;
use messaging_core::ids::{ImportId, WorkspaceId};
use messaging_core::ports::store::{StoreError, Stored};
use messaging_core::ports::uploads::UploadFile;
use ring::digest;

use crate::app::App;
use crate::app::receiving::LinkInUse;
use crate::error::{Error, Unprocessable};
use crate::fair_semaphore::{Cap, Owner, Permit, Share};
use crate::jobs::JobData as _;
use crate::jobs::imports::ImportContacts;

/// Share of the places that uploads from one network may take, in all workspaces.
const OF_ONE_NETWORK: Cap = Cap::Eighths(7);

/// Bytes of one piece for the store.
const PIECE: usize = 256 << 10;

/// Seconds after which to try again if there are too many uploads.
const RETRY_AFTER: u64 = 5;

/// A file that is being received. Leaves nothing behind if it is dropped before its end.
#[derive(Debug)]
pub struct Uploading {
    app: App,
    file: UploadFile,
    /// Length of the file in bytes, as the import announced it.
    size: u64,
    received: u64,
    digest: Sum,
    /// Bytes that are not stored yet.
    piece: BytesMut,
    /// True if the store may hold pieces that have to be removed.
    is_begun: bool,
    _place: Permit,
    _link: LinkInUse,
}

/// A SHA-256 digest in progress.
struct Sum(digest::Context);

impl std::fmt::Debug for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sum(…)")
    }
}

impl App {
    /// Begins to receive the file that a link is for. A token that is none of ours is [`Error::NotFound`], a link that
    /// was used or is too old [`Error::LinkExpired`], one that is in use [`Error::InvalidState`]. Places are shared by
    /// workspace and by the network of `client`; without a free place the error is [`Error::Unavailable`].
    pub async fn receive_upload(&self, token: &str, client: Option<IpAddr>) -> Result<Uploading, Error> {
        let (workspace, id) = self.link_key().read_upload(token).ok_or(Error::NotFound)?;
        let import = self.store().import(workspace, id).await?.ok_or(Error::NotFound)?.record;
        self.refuse_at_the_end(workspace, false).await?;
        let now = self.now();
        import.admits_upload(now)?;
        let link = self.0.receiving.begin(id)?;
        let mut shares = vec![Share { owner: Owner::Workspace(workspace), cap: Cap::AsMuchAsIsLeft }];
        shares.extend(
            client.map(|address| Share { owner: Owner::Network(CallerNetwork::of(address)), cap: OF_ONE_NETWORK }),
        );
        let place = self.0.upload_places.try_acquire(shares, 1);
        let place = place.map_err(|_| Error::Unavailable { retry_after: RETRY_AFTER })?;
        Ok(Uploading {
            app: self.clone(),
            file: UploadFile { workspace_id: workspace, import_id: id, upload_id: self.new_id(now) },
            size: import.size_bytes,
            received: 0,
            digest: Sum(digest::Context::new(&digest::SHA256)),
            piece: BytesMut::new(),
            is_begun: false,
            _place: place,
            _link: link,
        })
    }
}

impl Uploading {
    /// Refuses a file whose announced length is too large.
    pub fn expect(&self, length: u64) -> Result<(), Error> {
        if length > self.size { Err(self.too_large()) } else { Ok(()) }
    }

    /// Takes the next bytes.
    pub async fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.received + bytes.len() as u64 > self.size {
            return Err(self.too_large());
        }
        self.digest.0.update(bytes);
        self.received += bytes.len() as u64;
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE { self.store_piece().await } else { Ok(()) }
    }

    /// Ends the file: it is stored, and the import starts.
    pub async fn finish(mut self) -> Result<Import, Error> {
        if self.received != self.size {
            return Err(Unprocessable::SizeMismatch.into());
        }
        let UploadFile { workspace_id, import_id, upload_id } = self.file;
        let import = self.import().await?;
        let digest = self.digest.0.clone().finish();
        if hexadecimal(digest.as_ref()) != import.record.sha256 {
            return Err(Unprocessable::ChecksumMismatch.into());
        }
        self.store_piece().await?;
        let kept = self.app.uploads().keep_upload(self.file).await;
        self.unless_late(kept).await?;
        let app = self.app.clone();
        // The commit may have succeeded although the answer is lost, and then it names the file. A file that nothing
        // names is removed by the job that is due when the link expires.
        self.is_begun = false;
        let outcome = app
            .until_committed(|| {
                let app = &app;
                async move {
                    let now = app.now();
                    let Stored { record, revision } = read(app, workspace_id, import_id).await?;
                    let import = record.uploaded(upload_id, now)?;
                    let job = ImportContacts::of(&import).enqueue(app.new_id(now), now);
                    let put = Write::put(Box::new(import.clone()), Expect::Revision(revision));
                    Ok((Changes::from_iter([put, Write::Job(JobWrite::Enqueue(job))]), import))
                }
            })
            .await;
        self.is_begun = !matches!(outcome, Ok(_) | Err(Error::OutcomeUnknown { .. }));
        outcome
    }

    async fn import(&self) -> Result<Stored<Import>, Error> {
        read(&self.app, self.file.workspace_id, self.file.import_id).await
    }

    async fn store_piece(&mut self) -> Result<(), Error> {
        self.app.refuse_at_the_end(self.file.workspace_id, false).await?;
        let piece: Bytes = self.piece.split().freeze();
        let at = self.received - piece.len() as u64;
        self.is_begun = true;
        let stored = self.app.uploads().append_upload(self.file, at, piece).await;
        self.unless_late(stored).await
    }

    /// Turns the error of an upload that is too late, whose file was removed meanwhile, into that cause: the store did
    /// not fail.
    async fn unless_late(&self, outcome: Result<(), StoreError>) -> Result<(), Error> {
        let Err(error) = outcome else { return Ok(()) };
        self.import().await?.record.admits_upload(self.app.now())?;
        Err(error.into())
    }

    fn too_large(&self) -> Error {
        Error::PayloadTooLarge { limit: usize::try_from(self.size).unwrap_or(usize::MAX) }
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        if !self.is_begun {
            return;
        }
        let (app, file) = (self.app.clone(), self.file);
        // Without a runtime the process is ending, and the job that ends the import removes the file.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = app.uploads().remove_upload(file).await {
                    tracing::warn!(error = %Chain(&error), "an unfinished upload could not be removed yet");
                }
            });
        }
    }
}

async fn read(app: &App, workspace: WorkspaceId, id: ImportId) -> Result<Stored<Import>, Error> {
    app.store().import(workspace, id).await?.ok_or(Error::NotFound)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
