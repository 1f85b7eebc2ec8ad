//! The tests of the store.

mod backup;
mod campaigns;
mod health;
mod moving;
mod ownership;
mod postgres;
mod releases;
mod sqlite;
mod verification;
mod workspace_ends;

mod conformance {
    //! The conformance suite on SQLite.

    use std::future::{Ready, ready};
    use std::path::Path;
    use std::sync::Arc;

    use messaging_conformance::fresh_file::FreshFile;
    use messaging_conformance::memory_files::MemoryFiles;
    use messaging_conformance::{Opened, OpenedPort, Twice};
    use messaging_core::ports::{BlobStore, Uploads};
    use messaging_store::{SqliteOptions, SqliteStore};

    /// Options for an existing database without rows.
    fn fresh(directory: &Path) -> SqliteOptions {
        static FRESH: FreshFile = FreshFile::new();
        let options = SqliteOptions::new(directory.join("messaging.db"));
        FRESH.put_at(&options.path, |path| drop(SqliteStore::open(SqliteOptions::new(path)).unwrap()));
        options
    }

    fn open() -> Ready<Opened> {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(fresh(directory.path())).unwrap();
        ready(Opened { store: Arc::new(store), keep: Box::new(directory) })
    }

    /// A server, and a program that works beside it and does no jobs.
    fn open_twice() -> Ready<Twice> {
        let directory = tempfile::tempdir().unwrap();
        let server = fresh(directory.path());
        let beside = SqliteOptions { exclusive: false, ..server.clone() };
        let (first, second) = (SqliteStore::open(server).unwrap(), SqliteStore::open(beside).unwrap());
        let keep = Box::new(directory);
        ready(Twice { first: Arc::new(first), second: Arc::new(second), claims: false, keep })
    }

    fn open_two_handles() -> Ready<Opened> {
        ready(open_twice().into_inner().alternating())
    }

    fn open_blobs() -> Ready<OpenedPort<dyn BlobStore>> {
        let opened = open().into_inner();
        ready(OpenedPort { port: opened.store.blobs(), keep: Box::new(opened) })
    }

    fn open_uploads() -> Ready<OpenedPort<dyn Uploads>> {
        let opened = open().into_inner();
        ready(OpenedPort { port: opened.store.uploads(), keep: Box::new(opened) })
    }

    mod one_handle {
        messaging_conformance::conformance_tests!(super::super::open);
    }

    mod two_handles {
        messaging_conformance::conformance_tests!(super::super::open_two_handles);
    }

    messaging_conformance::race_tests!(super::open_twice);
    messaging_conformance::blob_conformance_tests!(super::open_blobs);
    messaging_conformance::upload_conformance_tests!(super::open_uploads);

    /// The suite also fits a blob store that is no directory.
    mod in_memory {
        use super::*;

        fn open() -> Ready<OpenedPort<MemoryFiles>> {
            ready(OpenedPort { port: Arc::default(), keep: Box::new(()) })
        }

        messaging_conformance::blob_conformance_tests!(super::open);
        messaging_conformance::upload_conformance_tests!(super::open);
    }
}
