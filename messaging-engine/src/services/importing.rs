//! Reading an uploaded file into contacts, a slice of rows at a time.
//!
//! Contract section 6.4. A slice is one commit: its contacts, the refused rows, the counts, and the place in the file
//! after it. So a crash in between neither skips a row nor applies one twice, and the progress can be queried. While a
//! slice is written, the next one is decided; it takes the decisions of the one before into account, and is decided
//! again if that one could not be written.

mod text;

use std::sync::Arc;

use messaging_core::DomainError;
use messaging_core::changes::{Changes, Expect, ImportObservation, JobHandle, JobWrite, Observation, Write};
use messaging_core::domain::audience::contact::identity_resolver::{DecidedContacts, IdentityResolver};
use messaging_core::domain::audience::contact::input::ContactInput;
use messaging_core::domain::audience::import::columns::Header;
use messaging_core::domain::audience::import::report::{self, RowErrors};
use messaging_core::domain::audience::import::row::{self, ReadRow};
use messaging_core::domain::audience::import::{Cursor, Import, ImportState};
use messaging_core::ids::{ImportId, ListId, WorkspaceId};
use messaging_core::ports::store::{CommitError, StoreError, Stored};
use messaging_core::ports::uploads::UploadFile;

use crate::app::App;
use crate::services::page_size::PageSize;
use crate::services::subscribing::Admitting;
use crate::services::upserting::{Upserted, named_lists};

use self::text::{ImportInterruption, Text};

/// Rows of a slice, written in some 10 ms, or a part of that while callers wait. The refused ones make one piece of the
/// report.
const SLICE_ROWS: usize = report::PIECE_ROWS;
/// Bytes of a slice, unless one row alone is longer.
const SLICE_BYTES: usize = 512 << 10;
/// Slices that are read before another import takes its turn.
const SLICES_A_TURN: usize = 100;
/// Largest number of times in a row that a slice is decided again because the data changed.
const MAX_CONFLICTS: u32 = 8;

/// A slice whose changes are decided.
struct Decided {
    changes: Changes,
    /// The import as the changes leave it.
    import: Import,
    /// Contacts decided so far, for the slices that come next.
    known: Arc<DecidedContacts>,
    /// True if the slice found a contact that existed before.
    found_any: bool,
    /// Number of rows of the file in the slice.
    rows: usize,
}

/// Bounds of the next slice of the file.
#[derive(Clone, Copy)]
struct Slice {
    /// Largest number of its rows.
    most: usize,
    /// True if its only row is refused, because the store does not accept it.
    is_refused: bool,
    /// True if the contacts that rows name are looked up; otherwise all count as new, and the commit finds out.
    reads: bool,
}

impl Slice {
    fn of(app: &App, page: &PageSize, reads: bool) -> Self {
        let most = app.0.callers.share(page.size(), app.monotonic());
        Self { most, is_refused: page.refused().is_some(), reads }
    }
}

impl App {
    /// Continues to read the file of an import, for a limited time. Returns true if there is more to read.
    ///
    /// A conflict means that another job reads the same file. Every commit is made under the claim, if there is one.
    pub(crate) async fn advance_import(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        claim: Option<&JobHandle>,
    ) -> Result<bool, CommitError> {
        let _turn = self.0.imports.acquire().await.expect("the semaphore is never closed");
        let Some(Stored { record: import, revision }) = self.store().import(workspace, id).await? else {
            return Ok(false);
        };
        let Some((upload_id, cursor)) = import.reading() else { return Ok(false) };
        let file = UploadFile { workspace_id: workspace, import_id: id, upload_id };
        let text = Text::new(self, file, import.size_bytes);
        let mut reading = Reading { app: self, claim, text, import, revision };
        match reading.advance(cursor).await {
            Ok(is_more) => Ok(is_more),
            Err(ImportInterruption::Store(why @ CommitError::Refused(_))) => {
                let aside = self.quarantine(Some(workspace), ("import", &id), &why, None);
                reading.end(reading.import.clone().fail(&why, self.now()), Some(aside)).await
            }
            Err(ImportInterruption::Store(error)) => Err(error),
            Err(ImportInterruption::File(why)) => {
                reading.end(reading.import.clone().fail(&why, self.now()), None).await
            }
        }
    }
}

/// Import whose file is being read.
struct Reading<'a> {
    app: &'a App,
    /// The claim of the job that reads it.
    claim: Option<&'a JobHandle>,
    text: Text<'a>,
    /// The import as it is stored.
    import: Import,
    /// Revision at which the import is stored.
    revision: u32,
}

impl Reading<'_> {
    /// Proof that the claim of the job is still held, for every commit of the import.
    fn hold(&self) -> Option<Write> {
        self.claim.cloned().map(|handle| Write::Job(JobWrite::Hold(handle)))
    }

    /// Ends the import as failed: the rest of its file cannot be read.
    async fn end(&self, failed: Import, aside: Option<Write>) -> Result<bool, CommitError> {
        let put = Write::put(Box::new(failed), Expect::Revision(self.revision));
        let writes = [put, ended(&self.import, "failed")].into_iter().chain(aside).chain(self.hold());
        self.app.commit_in_background(writes.collect()).await?;
        Ok(false)
    }

    async fn advance(&mut self, cursor: Cursor) -> Result<bool, ImportInterruption> {
        let header = self.text.header(&self.import.mapping).await?;
        if self.import.total_rows.is_none() {
            return self.count(&header).await;
        }
        self.text.seek(cursor);
        let mut guess = Guess::default();
        let mut page = PageSize::new(SLICE_ROWS);
        let mut conflicts = 0;
        let mut slices = 0;
        let (first, slice) = (self.import.clone(), Slice::of(self.app, &page, guess.reads()));
        let mut next = Some(decide(self.app, &mut self.text, &header, first, None, slice).await?);
        while let Some(Decided { mut changes, import, known, found_any, rows }) = next.take() {
            changes.push(Write::put(Box::new(import.clone()), Expect::Revision(self.revision)));
            if import.reading().is_none() {
                changes.push(ended(&import, "completed"));
            }
            changes.extend(self.hold());
            slices += 1;
            let goes_on = import.reading().is_some() && slices < SLICES_A_TURN;
            guess.learn(found_any);
            let (app, text, following) = (self.app, &mut self.text, import.clone());
            let deciding = async {
                if !goes_on {
                    return Ok(None);
                }
                let slice = Slice { is_refused: false, ..Slice::of(app, &page, guess.reads()) };
                decide(app, text, &header, following, Some(known), slice).await.map(Some)
            };
            // The commit is handed over first, and is written while the next slice is decided.
            let (written, decided) = tokio::join!(app.commit_in_background(changes), deciding);
            match written {
                Ok(()) => {
                    (self.import, self.revision, conflicts) = (import, self.revision + 1, 0);
                    page.kept();
                    next = decided?;
                }
                Err(error) => {
                    match error {
                        CommitError::Conflict => {
                            conflicts += 1;
                            guess.was_wrong();
                        }
                        error => page.failed(error, rows)?,
                    }
                    let Some(cursor) = self.place_again().await?.filter(|_| conflicts <= MAX_CONFLICTS) else {
                        return Err(CommitError::Conflict.into());
                    };
                    self.text.seek(cursor);
                    let (again, slice) = (self.import.clone(), Slice::of(self.app, &page, true));
                    next = Some(decide(self.app, &mut self.text, &header, again, None, slice).await?);
                }
            }
        }
        Ok(self.import.reading().is_some())
    }

    /// Returns the start of a slice that was not written; `None` if another job reads the file, too.
    async fn place_again(&self) -> Result<Option<Cursor>, StoreError> {
        let stored = self.app.store().import(self.import.workspace_id, self.import.id).await?;
        let is_ours = stored.is_some_and(|stored| stored.revision == self.revision);
        Ok(self.import.reading().filter(|_| is_ours).map(|(_, cursor)| cursor))
    }

    /// Reads the whole file once, so that one that cannot be read to its end changes nothing.
    async fn count(&mut self, header: &Header) -> Result<bool, ImportInterruption> {
        let start = Cursor { offset: header.rows_at as u64, row: 1 };
        self.text.seek(start);
        let total = self.text.count(header.delimiter).await?;
        let Some((upload, _)) = self.import.reading() else { return Ok(false) };
        let state = if total == 0 {
            ImportState::Completed { at: self.app.now() }
        } else {
            ImportState::Processing { upload, cursor: start }
        };
        let began = Observation::ImportBegan(self.import.workspace_id, self.import.id, total);
        let ended = (total == 0).then(|| ended(&self.import, "completed"));
        let counted = Import { total_rows: Some(total), state, ..self.import.clone() };
        let put = Write::put(Box::new(counted), Expect::Revision(self.revision));
        let told = [put, Write::Observe(Box::new(began))].into_iter().chain(ended);
        self.app.commit_in_background(told.chain(self.hold()).collect()).await?;
        Ok(total > 0)
    }
}

/// Returns the write that reports the end of an import.
pub(crate) fn ended(import: &Import, status: &'static str) -> Write {
    Write::Observe(Box::new(Observation::ImportEnded(ImportObservation {
        workspace_id: import.workspace_id,
        import_id: import.id,
        status,
        created: import.created,
        updated: import.updated,
        failed: import.failed,
    })))
}

/// Reads the next slice and decides on its rows.
async fn decide(
    app: &App,
    text: &mut Text<'_>,
    header: &Header,
    mut import: Import,
    earlier: Option<Arc<DecidedContacts>>,
    Slice { most, is_refused, reads }: Slice,
) -> Result<Decided, ImportInterruption> {
    let (workspace, store) = (import.workspace_id, app.store());
    let types = app.field_types(workspace).await?;
    let first_row = text.cursor().row + 1;
    let mut rows: Vec<ReadRow> = Vec::with_capacity(most);
    let read_row = |record: &csv::ByteRecord| rows.push(row::read(record, header, &types));
    text.rows(header.delimiter, most, SLICE_BYTES, read_row).await?;
    if text.ends_open()
        && let Some(last) = rows.last_mut()
    {
        *last = Err(row::unclosed_quote_violations());
    }

    let row_count = rows.len();
    if is_refused {
        rows.clear();
    }
    let sent = || rows.iter().filter_map(|row| row.as_ref().ok().map(|(sent, _)| sent));
    let identifiers = if reads { sent().flat_map(ContactInput::identifiers).collect() } else { Vec::new() };
    let contacts = if reads { store.contacts_identified(workspace, identifiers).await? } else { Vec::new() };
    let mut named: Vec<ListId> = sent().flat_map(named_lists).collect();
    named.sort_unstable();
    named.dedup();
    let lists = if named.is_empty() { Vec::new() } else { store.lists_among(workspace, &named).await? };
    let found_any = !contacts.is_empty();
    let known: Vec<_> = contacts.iter().map(|stored| stored.record.id).collect();
    let left = app.left_lists(workspace, &lists, &known).await?;
    let mut identities = IdentityResolver::new_after_batch(earlier, contacts, lists, &types).with_left(left);
    let (writes, mut outcomes) = app.decide_items(workspace, &mut identities, rows, &import.dedup_keys);
    let writes = app.with_subscriptions(workspace, writes, &Admitting::by_import(import.status_on_lists)).await?;
    outcomes.resize(row_count, Err(DomainError::NotStorable));

    let lines = tally(&mut import, first_row, &outcomes, header);
    let mut changes: Changes = writes.into_iter().collect();
    if !lines.is_empty() {
        let (workspace_id, import_id) = (workspace, import.id);
        changes.push(Write::AppendRowErrors(RowErrors { workspace_id, import_id, first_row, lines }));
    }
    import.state = match import.state {
        ImportState::Processing { upload, .. } if !text.is_at_end() => {
            ImportState::Processing { upload, cursor: text.cursor() }
        }
        _ => ImportState::Completed { at: app.now() },
    };
    Ok(Decided { changes, import, known: Arc::new(identities.into_decided()), found_any, rows: row_count })
}

/// Counts the outcomes of some rows; returns the report's lines on the refused ones.
fn tally(import: &mut Import, first_row: u64, outcomes: &[Upserted], header: &Header) -> String {
    let mut lines = String::new();
    for (row, outcome) in (first_row..).zip(outcomes) {
        match outcome {
            Ok((_, true)) => import.created += 1,
            Ok((_, false)) => import.updated += 1,
            Err(error) => {
                import.failed += 1;
                report::add(&mut lines, row, error, header);
            }
        }
    }
    lines
}

/// Guess about whether the contacts that rows name have to be looked up.
///
/// In a file that has only new contacts, looking each of them up is half of the work, and finds nothing. So after a
/// slice of new contacts alone the next is not looked up. The store refuses an identifier that exists already, and then
/// that slice and many after it are looked up.
#[derive(Debug, Default)]
struct Guess {
    all_new: bool,
    /// Number of further slices to look up in any case.
    wary: u32,
    /// Number of wrong guesses.
    wrong: u32,
}

impl Guess {
    /// Slices that are looked up after the first wrong guess; twice as many after every further one.
    const WARY: u32 = 16;

    const fn reads(&self) -> bool {
        !self.all_new || self.wary > 0
    }

    const fn learn(&mut self, found_any: bool) {
        self.all_new = !found_any;
        self.wary = self.wary.saturating_sub(1);
    }

    fn was_wrong(&mut self) {
        self.wary = Self::WARY << self.wrong.min(10);
        self.wrong += 1;
    }
}
