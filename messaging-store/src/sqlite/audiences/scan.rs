//! Facts about the contacts in a range of numbers, found by set algebra.
//!
//! Each list and static segment is a range of its index and becomes a set of bits; only filters are evaluated contact by
//! contact. Contacts are read last, and only those that match.

use std::ops::RangeInclusive;
use std::time::Duration;

use messaging_core::domain::audience::contact::AddressSource;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{ContactFacts, number_at, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{ContactId, ListId, SegmentId, WorkspaceId};
use messaging_core::ports::store::audiences::AudienceQuery;
use messaging_core::ports::store::segments::MemberQuery;
use rusqlite::{CachedStatement, Connection, Row};

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, contact_number, list_number, segment_number, workspace_number};
use super::super::query::one;
use super::super::row::count;
use super::super::segments::{Evaluation, compile};
use super::suppressed::Suppressed;
use crate::audience_rows::any_of;
use crate::database::at_once;
use crate::tables::audiences::scanned_piece::ScannedPiece;
use crate::tables::audiences::walk::{Scanning, Walk};
use crate::tables::segments::keys::attribute_addresses;

/// Time limit of one look: other reads wait for the thread meanwhile.
pub(super) const LOOK: Duration = Duration::from_millis(25);

/// Most contacts in a step of a look if no filter is evaluated: some milliseconds.
const STEP: i64 = 8192;
/// Most contacts in a step of a look if filters are evaluated.
const FILTERED_STEP: i64 = 512;

/// Reads contacts of one workspace, at the moment of the connection's transaction.
pub(super) struct Scan<'c> {
    connection: &'c Connection,
    workspace: WorkspaceId,
    workspace_number: i64,
    channel: Channel,
    source: AddressSource,
    lists: Vec<i64>,
    segments: Vec<i64>,
    excluded: Vec<i64>,
    evaluation: Option<Evaluation<'c>>,
    list_members: CachedStatement<'c>,
    segment_members: CachedStatement<'c>,
    contacts: CachedStatement<'c>,
    contact: CachedStatement<'c>,
    suppressed: Suppressed<'c>,
    wants_zones: bool,
}

/// Number, consent, address, zone. A column that is not needed is not read.
macro_rules! contacts_sql {
    ($columns:literal) => {
        [
            concat!("SELECT n, ", $columns, ", NULL FROM contacts WHERE n BETWEEN ?1 AND ?2 ORDER BY n"),
            concat!("SELECT n, ", $columns, ", timezone FROM contacts WHERE n BETWEEN ?1 AND ?2 ORDER BY n"),
            concat!("SELECT n, ", $columns, ", NULL FROM contacts WHERE n = ?1"),
            concat!("SELECT n, ", $columns, ", timezone FROM contacts WHERE n = ?1"),
        ]
    };
}

impl<'c> Scan<'c> {
    /// Prepares to read contacts; `None` when the workspace has none.
    pub(super) fn begin(
        connection: &'c Connection,
        workspace: WorkspaceId,
        query: &AudienceQuery,
    ) -> Result<Option<Self>, Fault> {
        let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(None) };
        let lists = |ids: &[ListId]| numbers(ids, |id| list_number(connection, workspace, id));
        let segments = |ids: &[SegmentId]| numbers(ids, |id| segment_number(connection, workspace, id));
        let evaluation = match any_of(&query.filters) {
            None => None,
            Some(filter) => {
                let query = MemberQuery { filter, now: query.now, zone: query.zone.clone() };
                compile(connection, workspace, &query, [&query.filter])?
                    .map(|compiled| Evaluation::of_ranges(connection, compiled))
                    .transpose()?
            }
        };
        let source = AddressSource::of(query.channel, query.viber);
        let [range, range_with_zone, one, one_with_zone] = match source {
            AddressSource::Email => contacts_sql!("marketing_email, email"),
            AddressSource::Phone => contacts_sql!("sms, phone"),
            AddressSource::Attributes => contacts_sql!("sms, attributes"),
        };
        let (range, one) = if query.wants_zones { (range_with_zone, one_with_zone) } else { (range, one) };
        Ok(Some(Self {
            connection,
            workspace,
            workspace_number,
            channel: query.channel,
            source,
            lists: lists(&query.lists)?,
            segments: segments(&query.segments)?,
            excluded: lists(&query.excluded)?,
            evaluation,
            list_members: connection
                .prepare_cached("SELECT contact FROM list_members WHERE list = ?1 AND contact BETWEEN ?2 AND ?3")?,
            segment_members: connection.prepare_cached(
                "SELECT contact FROM segment_members WHERE segment = ?1 AND contact BETWEEN ?2 AND ?3",
            )?,
            contacts: connection.prepare_cached(range)?,
            contact: connection.prepare_cached(one)?,
            suppressed: Suppressed::new(connection, workspace, query.channel)?,
            wants_zones: query.wants_zones,
        }))
    }

    /// Range of the numbers of the contacts of the workspace, up to the newest.
    pub(super) fn bounds(&self) -> Result<RangeInclusive<i64>, Fault> {
        let sql = "SELECT newest FROM workspace_numbers WHERE number = ?1";
        let newest: i64 = one(self.connection, sql, [self.workspace_number], |row| Ok(row.get(0)?))?.unwrap_or(0);
        let first = self.workspace_number << COUNT_BITS;
        Ok(first..=first | newest)
    }

    /// Number of contacts in the workspace.
    pub(super) fn contacts(&self) -> Result<u64, Fault> {
        let sql = "SELECT contacts FROM workspace_numbers WHERE number = ?1";
        Ok(one(self.connection, sql, [self.workspace_number], |row| count(row, 0))?.unwrap_or(0))
    }

    /// Maximum number of contacts in a step.
    pub(super) const fn step(&self) -> i64 {
        if self.evaluation.is_some() { FILTERED_STEP } else { STEP }
    }

    /// Returns true if filters are evaluated contact by contact.
    pub(super) const fn evaluates(&self) -> bool {
        self.evaluation.is_some()
    }

    /// Returns the first contact of a range that may match.
    pub(super) fn first_in(&self, range: &RangeInclusive<i64>) -> Result<Option<i64>, Fault> {
        const CONTACT: &str = "SELECT n FROM contacts WHERE n BETWEEN ?1 AND ?2 ORDER BY n LIMIT 1";
        const IN_LIST: &str =
            "SELECT contact FROM list_members WHERE list = ?3 AND contact BETWEEN ?1 AND ?2 ORDER BY contact LIMIT 1";
        const IN_SEGMENT: &str = "SELECT contact FROM segment_members WHERE segment = ?3 AND contact BETWEEN ?1 AND ?2
            ORDER BY contact LIMIT 1";
        let (first, last) = (*range.start(), *range.end());
        if self.evaluates() {
            return one(self.connection, CONTACT, [first, last], |row| Ok(row.get(0)?));
        }
        let mut least = None;
        for (sql, sets) in [(IN_LIST, &self.lists), (IN_SEGMENT, &self.segments)] {
            for set in sets {
                let found: Option<i64> = one(self.connection, sql, [first, last, *set], |row| Ok(row.get(0)?))?;
                least = least.into_iter().chain(found).min();
            }
        }
        Ok(least)
    }

    /// Adds the facts about the contacts of a range, which belong to one piece.
    pub(super) fn read(&mut self, range: &RangeInclusive<i64>, scanned: &mut ScannedPiece) -> Result<(), Fault> {
        let mut wanted = Bits::default();
        for list in &self.lists {
            members(&mut self.list_members, *list, range, &mut wanted)?;
        }
        for segment in &self.segments {
            members(&mut self.segment_members, *segment, range, &mut wanted)?;
        }
        if let Some(evaluation) = &mut self.evaluation {
            for contact in evaluation.in_range(range)? {
                wanted.insert(place(contact));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        for list in &self.excluded {
            members(&mut self.list_members, *list, range, &mut scanned.facts.excluded)?;
        }
        let mut recorder = MatchRecorder {
            workspace: self.workspace,
            channel: self.channel,
            source: self.source,
            wants_zones: self.wants_zones,
            suppressed: &mut self.suppressed,
            scanned,
        };
        // Looking up a contact costs about as much as stepping over three.
        if i64::from(wanted.len()) * 3 < range.end() - range.start() {
            let (piece, _) = place_of(range.start().cast_unsigned());
            for place in wanted.iter() {
                let number = number_at(piece, place).cast_signed();
                let mut rows = self.contact.query([number])?;
                if let Some(row) = rows.next()? {
                    recorder.record(place, row)?;
                }
            }
        } else {
            let mut rows = self.contacts.query([*range.start(), *range.end()])?;
            while let Some(row) = rows.next()? {
                let place = place(row.get(0)?);
                if wanted.contains(place) {
                    recorder.record(place, row)?;
                }
            }
        }
        Ok(())
    }
}

impl Scanning for Scan<'_> {
    async fn bounds(&mut self) -> Result<RangeInclusive<i64>, Fault> {
        Scan::bounds(self)
    }

    async fn first_in(&mut self, range: &RangeInclusive<i64>) -> Result<Option<i64>, Fault> {
        Scan::first_in(self, range)
    }

    async fn read_first(
        &mut self,
        range: &RangeInclusive<i64>,
        scanned: &mut ScannedPiece,
    ) -> Result<Option<i64>, Fault> {
        let end = (*range.end()).min(range.start() + self.step() - 1);
        self.read(&(*range.start()..=end), scanned)?;
        Ok((end < *range.end()).then_some(end + 1))
    }
}

/// Reads more of a piece, in one snapshot; returns true if those were the last contacts.
pub(super) fn walk_on(
    connection: &Connection,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    walk: &mut Walk,
    look: Duration,
) -> Result<bool, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let Some(mut scan) = Scan::begin(connection, workspace, query)? else { return Ok(true) };
    at_once(walk.go_on(&mut scan, look))
}

/// Returns the facts about one contact; `None` if it does not match.
pub(super) fn facts_of(
    connection: &Connection,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    contact: ContactId,
) -> Result<Option<ContactFacts>, Fault> {
    let connection = &*connection.unchecked_transaction()?;
    let Some(number) = contact_number(connection, workspace, contact)? else { return Ok(None) };
    let Some(mut scan) = Scan::begin(connection, workspace, query)? else { return Ok(None) };
    let mut scanned = ScannedPiece::default();
    scan.read(&(number..=number), &mut scanned)?;
    Ok(scanned.facts_at(place(number)))
}

/// Records contacts that match.
struct MatchRecorder<'f, 'c> {
    workspace: WorkspaceId,
    channel: Channel,
    source: AddressSource,
    wants_zones: bool,
    suppressed: &'f mut Suppressed<'c>,
    scanned: &'f mut ScannedPiece,
}

impl MatchRecorder<'_, '_> {
    fn record(&mut self, place: u16, row: &Row<'_>) -> Result<(), Fault> {
        const WRONG_COLUMN: Fault = Fault::Malformed("a text column holds no text");
        let text = |column| row.get_ref(column)?.as_str_or_null().map_err(|_| WRONG_COLUMN);
        let zone = if self.wants_zones { text(3)? } else { None };
        self.scanned.note(place, self.channel, row.get(1)?, zone);
        let address = text(2)?;
        if self.source == AddressSource::Attributes {
            let addresses = attribute_addresses(self.channel, address)?;
            if addresses.is_empty() {
                return Ok(());
            }
            let mut free = Vec::new();
            for address in &addresses {
                if !self.suppressed.contains(address)? {
                    free.push(address);
                }
            }
            self.scanned.note_addresses(place, (self.workspace, self.channel), free.into_iter());
        } else if let Some(address) = address {
            let facts = &mut self.scanned.facts;
            facts.addressed.insert(place);
            // A contact that is excluded needs no other reason.
            if !facts.excluded.contains(place) && self.suppressed.contains(address)? {
                facts.suppressed.insert(place);
            }
        }
        Ok(())
    }
}

fn members(
    statement: &mut CachedStatement<'_>,
    of: i64,
    range: &RangeInclusive<i64>,
    bits: &mut Bits,
) -> Result<(), Fault> {
    let mut rows = statement.query([of, *range.start(), *range.end()])?;
    while let Some(row) = rows.next()? {
        bits.insert(place(row.get(0)?));
    }
    Ok(())
}

/// Numbers of the records that exist.
fn numbers<I: Copy>(ids: &[I], number: impl Fn(I) -> Result<Option<i64>, Fault>) -> Result<Vec<i64>, Fault> {
    ids.iter().filter_map(|id| number(*id).transpose()).collect()
}

const fn place(number: i64) -> u16 {
    place_of(number.cast_unsigned()).1
}
