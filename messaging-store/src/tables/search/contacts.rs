//! Searching contacts.

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::search::contacts::{CONTACT_BLOCK_BITS, ContactBlock, ContactTexts};
use messaging_core::domain::search::{Search, SearchTexts};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError};

use super::pieces::{MAX_BLOCKS, PIECES, next_piece};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::{numbered_place, place_number, sql_limit};
use crate::row::get;
use crate::sql::{Sql, key, params, sql};
use crate::tables::contacts::rows::{contact, contact_columns, matches};

/// Bits of a contact's number behind that of its workspace.
const COUNT_BITS: u32 = 40;
/// Notes of changes that one look at what is due reads.
const NOTES: usize = 4_000;
/// The newest notes of changes that a listing reads.
const NOTES_OF_LISTING: usize = 20_000;
/// Blocks whose contacts one call reads.
const MAX_READ: usize = 640;

/// Keeps the texts of a block, and takes away the notes that it follows.
pub(crate) fn put(on: &mut dyn Statements, block: &ContactBlock) -> Result<(), Fault> {
    const FOLLOW: Sql = sql!(
        sqlite: "DELETE FROM changed_contact_texts WHERE n = $1",
        postgres: "DELETE FROM changed_contact_texts WHERE n = ANY ($1::bigint[])",
    );
    const KEEP: Sql = sql!(
        sqlite: "INSERT INTO contact_texts (block, shown, hidden) VALUES ($1, $2, $3)
            ON CONFLICT (block) DO UPDATE SET shown = excluded.shown, hidden = excluded.hidden",
        postgres: "INSERT INTO contact_texts (block, shown, hidden)
            SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
            ON CONFLICT (block) DO UPDATE SET shown = excluded.shown, hidden = excluded.hidden",
    );
    for note in &block.notes {
        on.gather_one(FOLLOW, params![*note])?;
    }
    if block.texts.is_empty() {
        return on.run(sql!("DELETE FROM contact_texts WHERE block = $1"), params![block.block]);
    }
    on.gather(KEEP, params![block.block, block.texts.shown.as_str(), block.texts.hidden.as_str()])
}

/// See [`SearchIndex::contact_blocks_due`](messaging_core::ports::store::SearchIndex::contact_blocks_due).
pub(super) async fn due(database: &impl Database, limit: usize) -> Result<Vec<ContactBlock>, StoreError> {
    const DUE: Sql = sql!("SELECT n, block FROM changed_contact_texts ORDER BY n LIMIT $1");
    let notes: Vec<(i64, i64)> =
        database.many(Query::new(DUE, params![sql_limit(NOTES)], |row| Ok((get(row, 0)?, get(row, 1)?)))).await?;
    let mut blocks: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (note, block) in notes {
        if blocks.len() < limit || blocks.contains_key(&block) {
            blocks.entry(block).or_default().push(note);
        }
    }
    let mut texts = texts_of(database, blocks.keys().copied()).await?;
    let found = blocks.into_iter().map(|(block, notes)| {
        let texts = texts.remove(&block).unwrap_or_default();
        ContactBlock { block, notes, texts }
    });
    Ok(found.collect())
}

/// The texts of the contacts of blocks as they are now.
async fn texts_of(
    database: &impl Database,
    blocks: impl Iterator<Item = i64>,
) -> Result<BTreeMap<i64, SearchTexts>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "SELECT external_id, email, phone, attributes, n FROM contacts WHERE n >= $1 AND n < $2 ORDER BY n",
        postgres: "SELECT external_id, email, phone, attributes, n
            FROM unnest($1::bigint[], $2::bigint[]) AS block (first, past)
            CROSS JOIN LATERAL (SELECT * FROM contacts WHERE n >= first AND n < past OFFSET 0) AS found ORDER BY n",
    );
    let keys = blocks.map(|block| params![block << CONTACT_BLOCK_BITS, (block + 1) << CONTACT_BLOCK_BITS]).collect();
    let rows = database.gathered(
        Query::new(SQL, Vec::new(), |row| {
            let attributes = get::<Option<&str>>(row, 3)?.map(Attributes::parse).transpose()?;
            let mut texts = SearchTexts::default();
            texts.add_contact(ContactTexts {
                external_id: get(row, 0)?,
                email: get(row, 1)?,
                phone: get(row, 2)?,
                attributes: attributes.as_ref(),
            });
            Ok((get::<i64>(row, 4)? >> CONTACT_BLOCK_BITS, texts))
        }),
        keys,
    );
    let mut found: BTreeMap<i64, SearchTexts> = BTreeMap::new();
    for (block, texts) in rows.await? {
        let block = found.entry(block).or_default();
        block.shown.push_str(&texts.shown);
        block.hidden.push_str(&texts.hidden);
    }
    Ok(found)
}

/// A block that was looked at.
struct Looked {
    block: i64,
    is_hit: bool,
    is_last: bool,
}

/// Contacts that match, the newest first.
pub(crate) async fn page(
    database: &impl Database,
    workspace: WorkspaceId,
    (filter, search): (&ContactFilter, &Search),
    page: &PageRequest,
) -> Result<Slice<Contact>, StoreError> {
    const NUMBER: Sql = sql!("SELECT number FROM workspace_numbers WHERE workspace = $1");
    let number = database.one(Query::new(NUMBER, params![key(workspace)], |row| get::<i64>(row, 0)).point()).await?;
    let Some(number) = number else { return Ok(Slice { items: Vec::new(), next: None }) };
    // The contacts of the workspace, whatever the place says.
    let (lowest, end) = (number << COUNT_BITS, (number + 1) << COUNT_BITS);
    let start = page.after.map_or(end, |place| place_number(place).clamp(lowest, end));
    let mut taken = Taken { workspace, filter, start, limit: page.limit, items: Vec::new(), last: 0, read: 0 };
    let floor = lowest >> CONTACT_BLOCK_BITS;
    // The block of the first contact below the start.
    let mut below = ((start - 1) >> CONTACT_BLOCK_BITS) + 1;
    let mut noted = noted(database, floor, below).await?;
    let (mut piece, mut seen) = (PIECES.0, 0);
    loop {
        let looked = look(database, search, (floor, below), piece).await?;
        let is_end = looked.len() < piece && !looked.last().is_some_and(|last| last.is_last);
        let lowest_looked = if is_end { floor } else { looked.last().map_or(floor, |last| last.block) };
        let mut candidates = noted.split_off(&lowest_looked);
        candidates.extend(looked.iter().filter(|one| one.is_hit).map(|one| one.block));
        for block in candidates.into_iter().rev() {
            if let Some(next) = taken.read(database, block).await? {
                return Ok(Slice { items: taken.items, next: Some(numbered_place(next)) });
            }
        }
        seen += piece;
        below = lowest_looked;
        if is_end {
            return Ok(Slice { items: taken.items, next: None });
        }
        piece = next_piece(piece, seen);
        if piece == 0 {
            return Ok(Slice { items: taken.items, next: Some(numbered_place(below << CONTACT_BLOCK_BITS)) });
        }
    }
}

/// Blocks of which contacts have changed and that the index does not follow yet.
async fn noted(database: &impl Database, floor: i64, below: i64) -> Result<BTreeSet<i64>, StoreError> {
    const SQL: Sql = sql!(
        "SELECT DISTINCT block FROM (SELECT block FROM changed_contact_texts ORDER BY n DESC LIMIT $3) AS newest
         WHERE block >= $1 AND block < $2"
    );
    let bounds = params![floor, below, sql_limit(NOTES_OF_LISTING)];
    Ok(database.many(Query::new(SQL, bounds, |row| get(row, 0))).await?.into_iter().collect())
}

/// Looks at the next blocks below one. SQLite answers all of them with their texts, which cost nothing to hand over;
/// PostgreSQL those that have what is looked for, and the last one of the piece.
async fn look(
    database: &impl Database,
    search: &Search,
    (floor, below): (i64, i64),
    piece: usize,
) -> Result<Vec<Looked>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "SELECT block, NULL, NULL, shown, hidden FROM contact_texts
            WHERE block >= $1 AND block < $2 ORDER BY block DESC LIMIT $5",
        postgres: "SELECT block, is_hit, place = $5 FROM (
                SELECT block, row_number() OVER (ORDER BY block DESC) AS place,
                    strpos(shown, $3) > 0 OR ($4 AND strpos(hidden, $3) > 0) AS is_hit
                FROM contact_texts WHERE block >= $1 AND block < $2 ORDER BY block DESC LIMIT $5
            ) AS looked WHERE is_hit OR place = $5 ORDER BY block DESC",
    );
    let bounds = params![floor, below, search.needle(), search.sees_addresses(), sql_limit(piece)];
    let search = search.clone();
    let query = Query::new(SQL, bounds, move |row| {
        let is_hit = match get::<Option<bool>>(row, 1)? {
            Some(is_hit) => is_hit,
            None => search.is_in(get(row, 3)?, get(row, 4)?),
        };
        Ok(Looked { block: get(row, 0)?, is_hit, is_last: get::<Option<bool>>(row, 2)?.unwrap_or(false) })
    });
    database.many(query).await
}

/// The contacts that were taken so far.
struct Taken<'a> {
    workspace: WorkspaceId,
    filter: &'a ContactFilter,
    /// Number below which contacts are taken.
    start: i64,
    limit: usize,
    items: Vec<Contact>,
    /// Number of the last one.
    last: i64,
    /// Blocks that were read.
    read: usize,
}

impl Taken<'_> {
    /// Takes the contacts of a block that match; answers the number below which the next page begins where this one ends.
    async fn read(&mut self, database: &impl Database, block: i64) -> Result<Option<i64>, StoreError> {
        macro_rules! of_block {
            ($database:ident, $segment:literal) => {
                concat!(
                    "SELECT ",
                    contact_columns!($database),
                    " FROM contacts c WHERE c.n >= $1 AND c.n < $2 AND (",
                    $segment,
                    " IS NULL OR EXISTS (SELECT 1 FROM segment_members WHERE contact = c.n AND segment = (
                        SELECT n FROM segments WHERE id = $4 AND NOT removed AND workspace_number = (
                            SELECT number FROM workspace_numbers WHERE workspace = $3)))) ORDER BY c.n DESC"
                )
            };
        }
        const SQL: Sql = sql!(sqlite: of_block!(sqlite, "$4"), postgres: of_block!(postgres, "$4::uuid"));
        let (workspace, first) = (self.workspace, block << CONTACT_BLOCK_BITS);
        let end = self.start.min((block + 1) << CONTACT_BLOCK_BITS);
        let bounds = params![first, end, key(workspace), self.filter.segment_id.map(Id::to_bytes)];
        let found = database.many(Query::new(SQL, bounds, move |row| contact(workspace, row))).await?;
        for (n, stored) in found {
            if !matches(self.filter, &stored.record) {
                continue;
            }
            if self.items.len() == self.limit {
                return Ok(Some(self.last));
            }
            self.items.push(stored.record);
            self.last = n;
        }
        self.read += 1;
        Ok((self.read == MAX_READ).then_some(first))
    }
}

const _: () = assert!(MAX_READ < MAX_BLOCKS);
