//! Searching messages.

use messaging_core::domain::message::{Message, MessageFilter};
use messaging_core::domain::search::messages::{DueMessages, MESSAGE_BLOCK, MessageBlock};
use messaging_core::domain::search::{Search, SearchTexts};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, StoreError};
use messaging_core::time::Timestamp;

use super::pieces::{PIECES, next_piece};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::{first_id_of, sql_limit};
use crate::row::{Row, get, id};
use crate::sql::{Sql, key, params, sql};
use crate::tables::messages::{MessageMatcher, message, message_columns, rows_between, span};

/// Messages of a block that is made anew are read up to this number; more came into it late.
const MAX_OF_BLOCK: usize = 20 * MESSAGE_BLOCK;
/// Blocks that PostgreSQL answers at once; the same number stands in its statement.
const ANSWERED: usize = 512;
/// Rows of messages that one call reads because their texts have what is looked for.
const MAX_READ: usize = 4_000;

/// Keeps the texts of a block.
pub(crate) fn put(on: &mut dyn Statements, block: &MessageBlock) -> Result<(), Fault> {
    // Whoever was erased since the texts were made is not put back.
    const ERASED: Sql =
        sql!("SELECT count(*) FROM messages WHERE workspace = $1 AND id >= $2 AND id <= $3 AND recipient = ''");
    let MessageBlock { workspace_id, replaces, first, last, messages, is_aged, texts } = block;
    on.expect(sql_limit(texts.without_recipient()), ERASED, params![key(*workspace_id), key(*first), key(*last)])?;
    let mut row = params![
        key(*workspace_id),
        key(*first),
        key(*last),
        *messages,
        *is_aged,
        texts.shown.as_str(),
        texts.hidden.as_str()
    ];
    match replaces {
        None => on.run(
            sql!(
                "INSERT INTO message_texts (workspace, first, last, messages, is_due, is_aged, shown, hidden)
                 VALUES ($1, $2, $3, $4, false, $5, $6, $7)"
            ),
            row,
        ),
        Some((old_first, old_last)) => {
            row.extend([key(*old_first), key(*old_last)]);
            on.run_one(
                sql!(
                    "UPDATE message_texts SET first = $2, last = $3, messages = $4, is_due = false, is_aged = $5,
                         shown = $6, hidden = $7
                     WHERE workspace = $1 AND first = $8 AND last = $9"
                ),
                row,
            )
        }
    }
}

/// Takes the texts out of the block that has a message, which is made anew: a message was erased, or what it says.
pub(crate) fn index_anew(on: &mut dyn Statements, workspace: WorkspaceId, message: MessageId) -> Result<(), Fault> {
    on.run(
        sql!(
            "UPDATE message_texts SET is_due = true, shown = '', hidden = '' WHERE workspace = $1 AND last >= $2
             AND first = (SELECT first FROM message_texts
                 WHERE workspace = $1 AND first <= $2 ORDER BY first DESC LIMIT 1)"
        ),
        params![key(workspace), key(message)],
    )
}

/// See [`SearchIndex::message_blocks_due`](messaging_core::ports::store::SearchIndex::message_blocks_due).
pub(super) async fn due(
    database: &impl Database,
    before: Timestamp,
    aged: Timestamp,
    limit: usize,
) -> Result<Vec<DueMessages>, StoreError> {
    const ANEW: Sql = sql!("SELECT workspace, first, last FROM message_texts WHERE is_due LIMIT $1");
    const AGED: Sql =
        sql!("SELECT workspace, first, last FROM message_texts WHERE NOT is_aged AND last < $1 ORDER BY last LIMIT $2");
    // PostgreSQL looks up each workspace by its own bounds, instead of joining all messages.
    const BEHIND: Sql = sql!(
        sqlite: "SELECT w.id FROM workspaces w WHERE EXISTS (
                SELECT 1 FROM messages m WHERE m.workspace = w.id AND m.id < $1 AND m.id > coalesce((
                    SELECT t.last FROM message_texts t WHERE t.workspace = w.id ORDER BY t.first DESC LIMIT 1), $2)
            ) LIMIT $3",
        postgres: "SELECT w.id FROM workspaces w CROSS JOIN LATERAL (
                SELECT coalesce((SELECT t.last FROM message_texts t
                    WHERE t.workspace = w.id ORDER BY t.first DESC LIMIT 1), $2) AS last OFFSET 0
            ) AS indexed CROSS JOIN LATERAL (
                SELECT 1 FROM messages m WHERE m.workspace = w.id AND m.id < $1 AND m.id > indexed.last
                ORDER BY m.id LIMIT 1
            ) AS behind LIMIT $3",
    );
    let mut blocks: Vec<(WorkspaceId, MessageId, MessageId)> =
        database.many(Query::new(ANEW, params![sql_limit(limit)], block)).await?;
    let rest = limit.saturating_sub(blocks.len());
    for one in database.many(Query::new(AGED, params![first_id_of(aged), sql_limit(rest)], block)).await? {
        if !blocks.contains(&one) {
            blocks.push(one);
        }
    }
    let mut found = Vec::with_capacity(limit);
    for (workspace, first, last) in blocks {
        let messages = between(database, workspace, (first.to_bytes(), last.to_bytes()), MAX_OF_BLOCK).await?;
        if !messages.is_empty() {
            found.push(DueMessages { workspace_id: workspace, replaces: Some((first, last)), messages });
        }
    }
    let bounds = params![first_id_of(before), [0_u8; 16], sql_limit(limit)];
    for workspace in database.many(Query::new(BEHIND, bounds, |row| id(row, 0))).await? {
        if found.len() >= limit {
            break;
        }
        found.extend(behind(database, workspace, before, limit - found.len()).await?);
    }
    Ok(found)
}

/// The workspace of a block, its first and its last message.
fn block(row: &dyn Row) -> Result<(WorkspaceId, MessageId, MessageId), Fault> {
    Ok((id(row, 0)?, id(row, 1)?, id(row, 2)?))
}

/// The messages of a workspace that come after its last block, or belong into it.
async fn behind(
    database: &impl Database,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<DueMessages>, StoreError> {
    const LAST: Sql =
        sql!("SELECT first, last, messages FROM message_texts WHERE workspace = $1 ORDER BY first DESC LIMIT 1");
    let last = Query::new(LAST, params![key(workspace)], |row| {
        Ok((id::<MessageId>(row, 0)?, id::<MessageId>(row, 1)?, get::<i64>(row, 2)?))
    });
    let last = database.one(last.point()).await?;
    let has_room = |messages: i64| messages < sql_limit(MESSAGE_BLOCK);
    let mut replaces = last.filter(|(_, _, messages)| has_room(*messages)).map(|(first, last, _)| (first, last));
    let start = match (replaces, last) {
        (Some((first, _)), _) => first.to_bytes(),
        (None, Some((_, last, _))) => after(last),
        (None, None) => [0; 16],
    };
    let end = (u128::from_be_bytes(first_id_of(before)).saturating_sub(1)).to_be_bytes();
    let messages = between(database, workspace, (start, end), limit * MESSAGE_BLOCK).await?;
    let blocks = messages.chunks(MESSAGE_BLOCK).map(|messages| DueMessages {
        workspace_id: workspace,
        replaces: replaces.take(),
        messages: messages.to_vec(),
    });
    Ok(blocks.collect())
}

/// The least id after one.
fn after(id: MessageId) -> [u8; 16] {
    u128::from_be_bytes(id.to_bytes()).saturating_add(1).to_be_bytes()
}

/// Messages from one id to another, oldest first.
async fn between(
    database: &impl Database,
    workspace: WorkspaceId,
    (first, last): ([u8; 16], [u8; 16]),
    limit: usize,
) -> Result<Vec<Message>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages {NOT INDEXED} WHERE workspace = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4"
    ));
    let bounds = params![key(workspace), first, last, sql_limit(limit)];
    database.many(Query::new(SQL, bounds, move |row| message(workspace, row))).await
}

/// A block that was looked at; one without texts is due.
struct Looked {
    first: MessageId,
    last: MessageId,
    texts: Option<SearchTexts>,
    is_last: bool,
}

/// Messages that match, the newest first.
pub(crate) async fn page(
    database: &impl Database,
    workspace: WorkspaceId,
    (filter, search): (&MessageFilter, &Search),
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    const NEWEST: Sql = sql!("SELECT last FROM message_texts WHERE workspace = $1 ORDER BY first DESC LIMIT 1");
    let (start, end) = span(filter, page);
    let newest: Option<MessageId> =
        database.one(Query::new(NEWEST, params![key(workspace)], |row| id(row, 0)).point()).await?;
    let matcher = MessageMatcher::new(filter);
    let tail = newest.map_or(end, |newest| after(newest).max(end));
    let mut slice = Slice { items: Vec::new(), next: None };
    if start > tail {
        slice = rows_between(database, workspace, matcher.clone(), (start, tail), page.limit).await?;
        if slice.next.is_some() || tail == end {
            return Ok(slice);
        }
    }
    let mut below = start.min(tail);
    let mut taken = Taken { workspace, matcher, span: (below, end), limit: page.limit, items: slice.items, read: 0 };
    let (mut piece, mut seen) = (PIECES.0, 0);
    loop {
        let looked = look(database, workspace, search, below, piece).await?;
        let is_end = looked.len() < piece.min(ANSWERED) && !looked.last().is_some_and(|last| last.is_last);
        let lowest = looked.last().map(|last| last.first.to_bytes());
        for block in looked {
            if block.last.to_bytes() < end {
                return Ok(Slice { items: taken.items, next: None });
            }
            if let Some(next) = taken.read(database, search, block).await? {
                return Ok(Slice { items: taken.items, next: Some(StoreCursor::from_bytes(next)) });
            }
        }
        seen += piece;
        let Some(lowest) = lowest.filter(|_| !is_end) else { return Ok(Slice { items: taken.items, next: None }) };
        below = lowest;
        piece = next_piece(piece, seen);
        if piece == 0 {
            return Ok(Slice { items: taken.items, next: Some(StoreCursor::from_bytes(below)) });
        }
    }
}

/// Looks at the next blocks that begin below an id. SQLite reads all of them, and answers those that have what is looked
/// for with their texts; so does PostgreSQL. Both answer the last one of the piece.
async fn look(
    database: &impl Database,
    workspace: WorkspaceId,
    search: &Search,
    below: [u8; 16],
    piece: usize,
) -> Result<Vec<Looked>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "SELECT first, last, is_due, NULL, NULL, shown, hidden FROM message_texts
            WHERE workspace = $1 AND first < $2 ORDER BY first DESC LIMIT $5",
        postgres: "SELECT first, last, is_due, is_hit, place = $5, CASE WHEN is_hit THEN shown END,
                CASE WHEN is_hit THEN hidden END FROM (
                SELECT first, last, is_due, shown, hidden, row_number() OVER (ORDER BY first DESC) AS place,
                    strpos(shown, $3) > 0 OR ($4 AND strpos(hidden, $3) > 0) AS is_hit
                FROM message_texts WHERE workspace = $1 AND first < $2 ORDER BY first DESC LIMIT $5
            ) AS looked WHERE is_hit OR is_due OR place = $5 ORDER BY first DESC LIMIT 512",
    );
    let bounds = params![key(workspace), below, search.needle(), search.sees_addresses(), sql_limit(piece)];
    let search = search.clone();
    let query = Query::new(SQL, bounds, move |row| {
        let (shown, hidden) = (get::<Option<&str>>(row, 5)?, get::<Option<&str>>(row, 6)?);
        let texts = shown.zip(hidden).filter(|(shown, hidden)| search.is_in(shown, hidden));
        let texts = texts.map(|(shown, hidden)| SearchTexts { shown: shown.to_owned(), hidden: hidden.to_owned() });
        let texts = if get::<bool>(row, 2)? { None } else { Some(texts.unwrap_or_default()) };
        Ok(Looked {
            first: id(row, 0)?,
            last: id(row, 1)?,
            texts,
            is_last: get::<Option<bool>>(row, 4)?.unwrap_or(false),
        })
    });
    database.many(query).await
}

/// The messages that were taken so far.
struct Taken {
    workspace: WorkspaceId,
    matcher: MessageMatcher,
    /// Ids below the first, and from the second on, are taken.
    span: ([u8; 16], [u8; 16]),
    limit: usize,
    items: Vec<Message>,
    /// Rows that were read.
    read: usize,
}

impl Taken {
    /// Takes the messages of a block that match; answers the id below which the next page begins where this one ends.
    async fn read(
        &mut self,
        database: &impl Database,
        search: &Search,
        block: Looked,
    ) -> Result<Option<[u8; 16]>, StoreError> {
        let (below, end) = self.span;
        let found = match block.texts {
            Some(texts) if texts.is_empty() => return Ok(None),
            Some(texts) => {
                let mut ids = search.messages_in(&texts);
                ids.retain(|id| id.to_bytes() < below && id.to_bytes() >= end);
                self.read += ids.len();
                self.rows(database, ids).await?
            }
            None => {
                let span = (below.min(after(block.last)), end.max(block.first.to_bytes()));
                self.read += MESSAGE_BLOCK;
                rows_between(database, self.workspace, self.matcher.clone(), span, MAX_OF_BLOCK).await?.items
            }
        };
        for message in found {
            if self.items.len() == self.limit {
                return Ok(self.items.last().map(|last| last.id.to_bytes()));
            }
            self.items.push(message);
        }
        Ok((self.read >= MAX_READ).then(|| block.first.to_bytes()))
    }

    /// The messages with these ids that match but for what is searched, in the order of the ids.
    async fn rows(&self, database: &impl Database, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError> {
        const SQL: Sql =
            sql!(concat!("SELECT ", message_columns!(), " FROM messages WHERE workspace = $1 AND id = $2"));
        let mut found = Vec::with_capacity(ids.len());
        for wanted in ids {
            let (workspace, matcher) = (self.workspace, self.matcher.clone());
            let query = Query::new(SQL, params![key(workspace), key(wanted)], move |row| {
                if matcher.matches(row)? { message(workspace, row).map(Some) } else { Ok(None) }
            });
            // Whoever was erased is found by nothing.
            found.extend(database.one(query.point()).await?.flatten().filter(|message| !message.is_redacted()));
        }
        Ok(found)
    }
}
