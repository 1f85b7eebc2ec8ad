//! Reads of the contacts in a range of numbers that an audience matches, with the facts that decide on each: consent,
//! address, suppression, exclusion and time zone.
//!
//! Members of a list or a static segment are a range of an index; only filters are evaluated contact by contact. One
//! statement reads the contacts that match, with their facts.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use messaging_core::domain::audience::contact::AddressSource;
use messaging_core::domain::campaign::audience::{ContactFacts, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{ContactId, Id, WorkspaceId};
use messaging_core::ports::store::audiences::AudienceQuery;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::numbers::{COUNT_BITS, contact_number, workspace_number};
use super::super::query::{many, one, params};
use super::super::reads::{Reads, Snapshot};
use super::super::row::{get, number, uuid};
use super::super::segments::{EVALUATED, Evaluation};
use crate::audience_rows::any_of;
use crate::tables::audiences::scanned_piece::ScannedPiece;
use crate::tables::segments::keys::attribute_addresses;
use crate::tables::soft_bounces::digest;

/// Reader of the contacts of one workspace for an audience query.
pub(super) struct Scan {
    workspace: WorkspaceId,
    pub(super) workspace_number: i64,
    channel: Channel,
    source: AddressSource,
    /// Numbers of the lists whose members match.
    lists: Vec<i64>,
    /// Numbers of the static segments whose members match.
    segments: Vec<i64>,
    /// Numbers of the lists whose members are excluded.
    excluded: Vec<i64>,
    /// Evaluation of the query's filters, if it has any.
    evaluation: Option<Evaluation>,
    wants_zones: bool,
}

/// SQL for the contacts with numbers from `$1` to `$2` that are in the lists `$3` or the segments `$4`, and for those
/// with the numbers `$5`. A row is: number, consent and address (`$columns`), time zone if `$6` is true, true if the
/// contact is in one of the lists `$7`, and true if its address is suppressed (`$suppressed`, for which `$join` may
/// join the suppressions).
macro_rules! contacts_sql {
    ($columns:literal, $suppressed:literal, $join:literal) => {
        concat!(
            "WITH wanted AS (
                 SELECT contact FROM list_members WHERE list = ANY($3) AND contact BETWEEN $1 AND $2
                 UNION SELECT contact FROM segment_members WHERE segment = ANY($4) AND contact BETWEEN $1 AND $2
                 UNION SELECT unnest($5::bigint[])
             )
             SELECT c.n, ",
            $columns,
            ", CASE WHEN $6 THEN c.timezone END, c.n IN (
                 SELECT contact FROM list_members WHERE list = ANY($7) AND contact BETWEEN $1 AND $2), ",
            $suppressed,
            " FROM wanted w JOIN contacts c ON c.n = w.contact ",
            $join,
            " ORDER BY c.n"
        )
    };
}

impl Scan {
    /// Looks up the lists and segments that the query names, and prepares its filters; `None` if the workspace has no
    /// number, and so no contacts.
    pub(super) async fn begin(
        on: &mut Snapshot,
        workspace: WorkspaceId,
        query: &AudienceQuery,
    ) -> Result<Option<Self>, Fault> {
        const LISTS: &str = "SELECT n FROM lists WHERE workspace_number = $1 AND id = ANY($2) AND NOT removed";
        const SEGMENTS: &str = "SELECT n FROM segments WHERE workspace_number = $1 AND id = ANY($2) AND NOT removed";
        let Some(workspace_number) = workspace_number(on, workspace).await? else { return Ok(None) };
        let evaluation = match any_of(&query.filters) {
            None => None,
            Some(filter) => {
                let present = Present { now: query.now, zone: query.zone.clone() };
                Evaluation::new(on, workspace, &present, [&filter]).await?
            }
        };
        let queries = vec![
            (LISTS, params![workspace_number, keys(&query.lists)]),
            (SEGMENTS, params![workspace_number, keys(&query.segments)]),
            (LISTS, params![workspace_number, keys(&query.excluded)]),
        ];
        let found = on.rows_of_each(queries).await?;
        let mut groups = found.iter().map(|rows| rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>, _>>());
        let mut numbers = || groups.next().unwrap_or(Ok(Vec::new()));
        Ok(Some(Self {
            workspace,
            workspace_number,
            channel: query.channel,
            source: AddressSource::of(query.channel, query.viber),
            lists: numbers()?,
            segments: numbers()?,
            excluded: numbers()?,
            evaluation,
            wants_zones: query.wants_zones,
        }))
    }

    /// Returns the range of the numbers of the workspace's contacts, up to the newest contact.
    pub(super) async fn bounds(&self, on: &mut Snapshot) -> Result<RangeInclusive<i64>, Fault> {
        const SQL: &str = "SELECT max(n) FROM contacts WHERE n BETWEEN $1 AND $2";
        let first = self.workspace_number << COUNT_BITS;
        let whole = params![first, first | ((1 << COUNT_BITS) - 1)];
        let newest = one(on, SQL, whole, |row| get::<Option<i64>>(row, 0)).await?.flatten();
        Ok(first..=newest.unwrap_or(first))
    }

    /// Returns true if filters have to be evaluated, which looks at every contact.
    pub(super) const fn evaluates(&self) -> bool {
        self.evaluation.is_some()
    }

    /// Returns the number of the first contact in a range that may match; `None` if none may.
    pub(super) async fn first_in(&self, on: &mut Snapshot, range: &RangeInclusive<i64>) -> Result<Option<i64>, Fault> {
        const CONTACT: &str = "SELECT min(n) FROM contacts WHERE n BETWEEN $1 AND $2";
        const IN_LIST: &str = "SELECT min(m.contact) FROM unnest($3::bigint[]) AS g (n) CROSS JOIN LATERAL (
            SELECT contact FROM list_members WHERE list = g.n AND contact BETWEEN $1 AND $2 ORDER BY contact LIMIT 1) m";
        const IN_SEGMENT: &str = "SELECT min(m.contact) FROM unnest($3::bigint[]) AS g (n) CROSS JOIN LATERAL (
            SELECT contact FROM segment_members WHERE segment = g.n AND contact BETWEEN $1 AND $2
            ORDER BY contact LIMIT 1) m";
        let (first, last) = (*range.start(), *range.end());
        if self.evaluates() {
            return Ok(one(on, CONTACT, params![first, last], |row| get::<Option<i64>>(row, 0)).await?.flatten());
        }
        let mut queries = Vec::new();
        for (sql, groups) in [(IN_LIST, &self.lists), (IN_SEGMENT, &self.segments)] {
            if !groups.is_empty() {
                queries.push((sql, params![first, last, groups.clone()]));
            }
        }
        let mut least: Option<i64> = None;
        for row in on.rows_of_each(queries).await?.iter().flatten() {
            least = least.into_iter().chain(get::<Option<i64>>(row, 0)?).min();
        }
        Ok(least)
    }

    /// Reads the contacts of a range that match, and adds their facts to `scanned`. The range must be within one piece.
    /// With filters only [`EVALUATED`] contacts are looked at: returns the number at which the rest of the range
    /// begins, or `None` if nothing is left.
    pub(super) async fn read(
        &self,
        on: &mut Snapshot,
        range: &RangeInclusive<i64>,
        scanned: &mut ScannedPiece,
    ) -> Result<Option<i64>, Fault> {
        let (mut numbers, mut rest) = (Vec::new(), None);
        if let Some(evaluation) = &self.evaluation {
            let evaluated = evaluation.in_range(on, range, EVALUATED).await?;
            numbers = evaluated.matching();
            rest = evaluated.rest;
        }
        if self.lists.is_empty() && self.segments.is_empty() && numbers.is_empty() {
            return Ok(rest);
        }
        let last = rest.map_or(*range.end(), |rest| rest - 1);
        self.read_contacts(on, *range.start()..=last, numbers, scanned).await?;
        Ok(rest)
    }

    /// Reads the contacts of a range that are in the lists or segments, and the contacts with `numbers`.
    async fn read_contacts(
        &self,
        on: &mut Snapshot,
        range: RangeInclusive<i64>,
        numbers: Vec<i64>,
        scanned: &mut ScannedPiece,
    ) -> Result<(), Fault> {
        const BY_EMAIL: &str = contacts_sql!(
            "c.marketing_email, c.email",
            "s.address IS NOT NULL",
            "LEFT JOIN suppressions s ON s.workspace = $8 AND s.channel = $9::bigint \
             AND s.digest = sha256(convert_to(c.email, 'UTF8'))"
        );
        const BY_PHONE: &str = contacts_sql!(
            "c.sms, c.phone",
            "s.address IS NOT NULL",
            "LEFT JOIN suppressions s ON s.workspace = $8 AND s.channel = $9::bigint \
             AND s.digest = sha256(convert_to(c.phone, 'UTF8'))"
        );
        const BY_ATTRIBUTES: &str = contacts_sql!("c.sms, c.attributes", "false", "");
        let (lists, segments) = (self.lists.clone(), self.segments.clone());
        let (first, last) = (*range.start(), *range.end());
        let mut params = params![first, last, lists, segments, numbers, self.wants_zones, self.excluded.clone()];
        let suppressions = params![uuid(self.workspace), number(&Channel::ALL, &self.channel)];
        let mut addresses = Vec::new();
        match self.source {
            AddressSource::Email | AddressSource::Phone => {
                params.extend(suppressions);
                let sql = if self.source == AddressSource::Email { BY_EMAIL } else { BY_PHONE };
                on.each_row(sql, params, |row| self.note_with_column(row, scanned)).await
            }
            AddressSource::Attributes => {
                on.each_row(BY_ATTRIBUTES, params, |row| {
                    let place = self.note(row, scanned)?;
                    let of_contact = attribute_addresses(self.channel, get(row, 2)?)?;
                    if !of_contact.is_empty() {
                        addresses.push((place, of_contact));
                    }
                    Ok(())
                })
                .await?;
                self.note_addresses(on, addresses, scanned).await
            }
        }
    }

    /// Adds a contact that matches, without its address, and returns its place in the piece.
    fn note(&self, row: &Row, scanned: &mut ScannedPiece) -> Result<u16, Fault> {
        let (_, place) = place_of(get::<i64>(row, 0)?.cast_unsigned());
        scanned.note(place, self.channel, get(row, 1)?, get(row, 3)?);
        if get(row, 4)? {
            scanned.facts.excluded.insert(place);
        }
        Ok(place)
    }

    /// Adds a contact that matches and whose address, an email address or phone number, is in a column.
    fn note_with_column(&self, row: &Row, scanned: &mut ScannedPiece) -> Result<(), Fault> {
        let place = self.note(row, scanned)?;
        if get::<Option<&str>>(row, 2)?.is_some() {
            scanned.facts.addressed.insert(place);
            // An excluded contact counts as excluded, suppressed or not.
            if get(row, 5)? && !scanned.facts.excluded.contains(place) {
                scanned.facts.suppressed.insert(place);
            }
        }
        Ok(())
    }

    /// Adds the addresses that contacts have in their attributes. One query looks up the suppressed ones among all of
    /// them.
    async fn note_addresses(
        &self,
        on: &mut Snapshot,
        addresses: Vec<(u16, Vec<String>)>,
        scanned: &mut ScannedPiece,
    ) -> Result<(), Fault> {
        let all = addresses.iter().flat_map(|(_, of_contact)| of_contact).cloned().collect();
        let suppressed = suppressed(on, self.workspace, self.channel, all).await?;
        for (place, of_contact) in addresses {
            let free = of_contact.iter().filter(|address| !suppressed.contains(*address));
            scanned.note_addresses(place, (self.workspace, self.channel), free);
        }
        Ok(())
    }
}

/// Returns the facts about one contact; `None` if it does not match the query or does not exist.
pub(super) async fn facts_of(
    reads: &Reads,
    workspace: WorkspaceId,
    query: &AudienceQuery,
    contact: ContactId,
) -> Result<Option<ContactFacts>, Fault> {
    let mut on = reads.snapshot().await?;
    let mut known = None;
    if let Some(number) = contact_number(&mut on, workspace, contact).await?
        && let Some(scan) = Scan::begin(&mut on, workspace, query).await?
    {
        let mut scanned = ScannedPiece::default();
        scan.read(&mut on, &(number..=number), &mut scanned).await?;
        known = scanned.facts_at(place_of(number.cast_unsigned()).1);
    }
    on.end().await?;
    Ok(known)
}

/// Returns the given addresses that are on the suppression list. They must be spelled as on the list.
async fn suppressed(
    on: &mut Snapshot,
    workspace: WorkspaceId,
    channel: Channel,
    mut addresses: Vec<String>,
) -> Result<HashSet<String>, Fault> {
    const SQL: &str = "SELECT address FROM suppressions
        WHERE workspace = $1 AND channel = $2::bigint AND digest = ANY ($3)";
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Ok(HashSet::new());
    }
    let digests: Vec<_> = addresses.iter().map(|address| digest(address)).collect();
    let asked = params![uuid(workspace), number(&Channel::ALL, &channel), digests];
    Ok(many(on, SQL, asked, |row| get::<String>(row, 0)).await?.into_iter().collect())
}

/// Returns ids as the database stores them.
fn keys<I: Id + Copy>(ids: &[I]) -> Vec<Uuid> {
    ids.iter().map(|id| uuid(*id)).collect()
}
