//! Pieces of a workspace whose contacts have numbers far apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use messaging_core::changes::{Expect, PutContact};
use messaging_core::domain::audience::contact::{Consent, Contact};
use messaging_core::domain::audience::list::{ContactList, OptIn, Visibility};
use messaging_core::domain::campaign::audience::{AudienceVerdict, number_at};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::{ContactId, Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::audiences::{AudiencePiece, AudienceQuery};
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::super::change_subscribers::ChangeSubscribers;
use super::super::{connection, contacts, lists, schema};
use super::preview::Count;
use super::scan::walk_on;
use crate::tables::audiences::walk::Walk;

/// Numbers of the contacts within the workspace: around the ends of pieces, and pieces apart.
const COUNTS: [i64; 9] = [1, 2, 65_535, 65_536, 65_537, 131_071, 131_072, 10_000_000, 10_000_001];
/// Long enough for everything.
const LONG: Duration = Duration::from_mins(10);

struct AudienceFixture {
    connection: Connection,
    subscribers: ChangeSubscribers,
    workspace: WorkspaceId,
    first: u64,
    _directory: tempfile::TempDir,
}

impl AudienceFixture {
    /// A workspace with contacts of these numbers, beside another one with many.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messaging.db");
        std::fs::write(&path, "").unwrap();
        let mut connection = connection::writer(&path, false).unwrap();
        schema::migrate(&mut connection).unwrap();
        let workspace = WorkspaceId::from_bytes([2; 16]);
        let mut fixture = Self {
            connection,
            subscribers: ChangeSubscribers::default(),
            workspace,
            first: 2 << 40,
            _directory: directory,
        };
        fixture.connection.execute_batch("BEGIN").unwrap();
        for workspace in 1..=3 {
            fixture.workspace = WorkspaceId::from_bytes([workspace; 16]);
            for count in COUNTS {
                fixture.put(count);
            }
        }
        fixture.connection.execute_batch("COMMIT").unwrap();
        fixture.workspace = workspace;
        fixture
    }

    /// Creates the contact with a number within the workspace.
    fn put(&mut self, count: i64) {
        let sql = "UPDATE workspace_numbers SET newest = ?2 - 1 WHERE workspace = ?1";
        self.connection.execute(sql, rusqlite::params![self.workspace.to_bytes(), count]).unwrap();
        let time = Timestamp::from_millis(0);
        let contact = Contact {
            email: Some(format!("{count}@example.org")),
            timezone: Some("Europe/Riga".to_owned()),
            consent: Consent { marketing_email: Some(count % 2 == 1), sms: None },
            ..Contact::new(contact_id(self.workspace, count), self.workspace, time)
        };
        let put = PutContact { contact: Arc::new(contact), expect: Expect::Absent };
        contacts::put(&self.connection, &mut self.subscribers, &[put]).unwrap();
    }

    /// A list with some of the contacts.
    fn list(&mut self, byte: u8, counts: &[i64]) -> ListId {
        let time = Timestamp::from_millis(0);
        let id = ListId::from_bytes([byte; 16]);
        let name = "list".to_owned();
        let list = ContactList {
            id,
            workspace_id: self.workspace,
            name,
            visibility: Visibility::Private,
            opt_in: OptIn::Single,
            description: None,
            contact_count: 0,
            created_at: time,
            updated_at: time,
        };
        crate::tables::lists::put(&mut &self.connection, &list, Expect::Absent).unwrap();
        for count in counts {
            let contact = contact_id(self.workspace, *count);
            lists::join(
                &self.connection,
                &mut self.subscribers,
                self.workspace,
                (id, contact),
                Timestamp::from_millis(0),
            )
            .unwrap();
        }
        id
    }

    /// Reads a piece in looks of a given length; returns it with their number.
    fn piece(&self, query: &Arc<AudienceQuery>, piece: Option<u64>, look: Duration) -> (AudiencePiece, usize) {
        let mut walk = Walk::new(piece);
        let mut looks = 1;
        while !walk_on(&self.connection, self.workspace, query, &mut walk, look).unwrap() {
            looks += 1;
        }
        (walk.into_piece(), looks)
    }

    /// All verdicts by number, and the pieces that were read.
    fn verdicts(&self, query: AudienceQuery, look: Duration) -> (BTreeMap<u64, AudienceVerdict>, Vec<u64>) {
        let query = Arc::new(query);
        let (mut verdicts, mut pieces, mut next) = (BTreeMap::new(), Vec::new(), None);
        loop {
            let (piece, _) = self.piece(&query, next, look);
            let judged = piece.facts.judge();
            for place in piece.facts.matched.iter() {
                verdicts.insert(number_at(piece.piece, place) - self.first, judged.verdict_at(place).unwrap());
            }
            pieces.push(piece.piece - self.first / 65_536);
            next = piece.next;
            if next.is_none() {
                return (verdicts, pieces);
            }
        }
    }
}

fn contact_id(workspace: WorkspaceId, count: i64) -> ContactId {
    ContactId::from_bytes(((i128::from(workspace.to_bytes()[0]) << 64) | i128::from(count)).to_be_bytes())
}

fn query(lists: Vec<ListId>, filters: Vec<Filter>) -> AudienceQuery {
    AudienceQuery {
        channel: Channel::Email,
        viber: ViberService::Business,
        lists,
        segments: Vec::new(),
        filters,
        excluded: Vec::new(),
        now: Timestamp::from_millis(0),
        zone: TimeZone::UTC,
        wants_zones: true,
    }
}

fn counts(verdicts: &BTreeMap<u64, AudienceVerdict>) -> BTreeSet<i64> {
    verdicts.keys().map(|count| count.cast_signed()).collect()
}

#[test]
fn pieces_end_where_numbers_do_and_empty_ones_are_passed_by() {
    let mut fixture = AudienceFixture::new();
    let all = fixture.list(1, &COUNTS);
    let few = fixture.list(2, &[65_535, 10_000_001]);
    for look in [Duration::ZERO, LONG] {
        let (everybody, pieces) = fixture.verdicts(query(Vec::new(), vec![Filter::Everyone]), look);
        assert_eq!(counts(&everybody), BTreeSet::from(COUNTS));
        assert_eq!(pieces, [0, 1, 2, 152]);
        assert_eq!(fixture.verdicts(query(vec![all], Vec::new()), look), (everybody.clone(), pieces));
        for (count, verdict) in everybody {
            let consents = count % 2 == 1;
            let expected = if consents { AudienceVerdict::Recipient } else { AudienceVerdict::NoConsent };
            assert_eq!(verdict, expected, "{count}");
        }
        let (members, pieces) = fixture.verdicts(query(vec![few], Vec::new()), look);
        assert_eq!((counts(&members), pieces), (BTreeSet::from([65_535, 10_000_001]), vec![0, 152]));
        let excluding = AudienceQuery { excluded: vec![few], ..query(vec![all], Vec::new()) };
        let (verdicts, _) = fixture.verdicts(excluding, look);
        let excluded = verdicts.iter().filter(|(_, verdict)| **verdict == AudienceVerdict::Excluded);
        assert_eq!(excluded.map(|(count, _)| *count).collect::<Vec<_>>(), [65_535, 10_000_001]);
    }
}

#[test]
fn a_piece_is_the_same_however_many_looks_it_takes() {
    let mut fixture = AudienceFixture::new();
    let all = fixture.list(1, &COUNTS);
    for (query, most) in [(query(vec![all], Vec::new()), 8), (query(Vec::new(), vec![Filter::Everyone]), 128)] {
        let query = Arc::new(query);
        let piece = Some(fixture.first / 65_536 + 1);
        let (whole, looks) = fixture.piece(&query, piece, LONG);
        assert_eq!(looks, 1);
        let (parts, looks) = fixture.piece(&query, piece, Duration::ZERO);
        assert_eq!(looks, most);
        assert_eq!(parts.facts.judge().counts(), whole.facts.judge().counts());
        assert_eq!((parts.zones, parts.next), (whole.zones, whole.next));
        assert_eq!(whole.facts.matched.iter().collect::<Vec<_>>(), [0, 1, 65_535]);
    }
}

#[test]
fn a_preview_counts_everybody_or_estimates() {
    let mut fixture = AudienceFixture::new();
    let all = fixture.list(1, &COUNTS);
    for query in [query(vec![all], Vec::new()), query(Vec::new(), vec![Filter::Everyone])] {
        let mut count = Count::new(fixture.workspace, &Arc::new(query));
        while !count.go_on(&fixture.connection).unwrap() {}
        let preview = count.preview();
        assert!(preview.exact);
        assert_eq!((preview.counts.recipients, preview.counts.no_consent), (5, 4));
    }
}
