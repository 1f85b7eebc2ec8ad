//! Changes between reading and writing.

use jiff::tz::TimeZone;
use messaging_core::changes::{Expect, PutContact};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::{Segment, SegmentKind, SegmentStatus, StoredFilter};
use messaging_core::ids::{ContactId, Id as _, SegmentId, WorkspaceId};
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes, Moved};
use messaging_core::time::Timestamp;
use rusqlite::Connection;
use serde_json::json;

use super::super::change_subscribers::ChangeSubscribers;
use super::super::{connection, contacts, schema};
use super::preview::Count;
use super::{follow, members};
use crate::tables::segments::Difference;
use crate::tables::segments::follow::FollowedNote;

/// A workspace with two contacts and a dynamic segment of everybody.
struct SegmentFixture {
    connection: Connection,
    subscribers: ChangeSubscribers,
    workspace: WorkspaceId,
    segment: SegmentId,
    query: MemberQuery,
    _directory: tempfile::TempDir,
}

impl SegmentFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messaging.db");
        std::fs::write(&path, "").unwrap();
        let mut connection = connection::writer(&path, false).unwrap();
        schema::migrate(&mut connection).unwrap();
        let query = MemberQuery { filter: Filter::Everyone, now: Timestamp::from_millis(0), zone: TimeZone::UTC };
        let (workspace, segment) = (WorkspaceId::from_bytes([1; 16]), SegmentId::from_bytes([2; 16]));
        let mut fixture = Self {
            connection,
            subscribers: ChangeSubscribers::default(),
            workspace,
            segment,
            query,
            _directory: directory,
        };
        fixture.put_segment();
        for number in 1..=2 {
            fixture.put(number, Expect::Absent);
        }
        fixture
    }

    fn put_segment(&mut self) {
        let time = Timestamp::from_millis(0);
        let segment = Segment {
            id: self.segment,
            workspace_id: self.workspace,
            name: "everybody".to_owned(),
            kind: SegmentKind::Dynamic,
            filter: StoredFilter::new(&json!({}), Filter::Everyone),
            status: SegmentStatus::Recalculating,
            size: None,
            calculated_at: None,
            created_at: time,
            updated_at: time,
            calculation: 1,
        };
        super::put(&self.connection, &mut self.subscribers.read_masks, &segment, Expect::Absent).unwrap();
    }

    fn id(number: u8) -> ContactId {
        ContactId::from_bytes([number; 16])
    }

    fn put(&mut self, number: u8, expect: Expect) {
        let time = Timestamp::from_millis(i64::from(number));
        let contact = Contact {
            external_id: Some(number.to_string()),
            locale: matches!(expect, Expect::Revision(_)).then(|| "de".to_owned()),
            ..Contact::new(Self::id(number), self.workspace, time)
        };
        contacts::put(&self.connection, &mut self.subscribers, &[PutContact { contact: contact.into(), expect }])
            .unwrap();
    }

    fn delete(&self, number: u8) {
        contacts::delete(&self.connection, self.workspace, Self::id(number)).unwrap();
    }

    fn count(&self, sql: &str) -> i64 {
        self.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Number of rows of members, and the stored number of members.
    fn members(&self) -> (i64, i64) {
        (self.count("SELECT count(*) FROM segment_members"), self.count("SELECT members FROM segments"))
    }

    fn outbox(&self) -> i64 {
        self.count("SELECT count(*) FROM changed_contacts")
    }

    /// Writes the result of a calculation; returns the numbers of contacts that joined and left.
    fn write(&self, found: &Difference) -> (u64, u64) {
        let mut subscribers = ChangeSubscribers::default();
        members::write(&self.connection, &mut subscribers.listeners, found, &found.moves, MoveNotes::Written).unwrap()
    }

    fn follow(&self, followed: &[FollowedNote]) -> Vec<Moved> {
        follow::write(&self.connection, &mut ChangeSubscribers::default(), self.workspace, followed).unwrap()
    }

    fn look(&self) -> Vec<FollowedNote> {
        let segments = [(self.segment, self.query.clone())];
        follow::look(&self.connection, self.workspace, &segments, 10).unwrap().0
    }
}

#[test]
fn a_contact_erased_during_a_calculation_does_not_come_back() {
    let fixture = SegmentFixture::new();
    let found = members::difference(&fixture.connection, fixture.workspace, fixture.segment, &fixture.query, None);
    let found = found.unwrap().unwrap();
    assert_eq!(found.moves.len(), 2);
    fixture.delete(1);
    assert_eq!(fixture.write(&found), (1, 0));
    assert_eq!(fixture.members(), (1, 1));
}

#[test]
fn a_segment_removed_during_a_calculation_gets_no_members() {
    let mut fixture = SegmentFixture::new();
    let found = members::difference(&fixture.connection, fixture.workspace, fixture.segment, &fixture.query, None);
    let found = found.unwrap().unwrap();
    super::delete(&fixture.connection, &mut fixture.subscribers.read_masks, fixture.workspace, fixture.segment)
        .unwrap();
    assert_eq!(fixture.write(&found), (0, 0));
    assert_eq!(fixture.members(), (0, 0));
    // Nor does following give it any.
    let followed = fixture.look();
    assert_eq!(fixture.follow(&followed), []);
}

#[test]
fn a_contact_that_changes_once_more_keeps_its_note() {
    let mut fixture = SegmentFixture::new();
    let followed = fixture.look();
    fixture.put(2, Expect::Revision(1));
    // The segment of everybody reads only the existence of a contact, which did not change.
    assert_eq!(fixture.outbox(), 2);
    let moved = fixture.follow(&followed);
    assert_eq!(moved.iter().map(|one| one.contact).collect::<Vec<_>>(), [SegmentFixture::id(1), SegmentFixture::id(2)]);

    fixture.connection.execute("UPDATE workspace_numbers SET read_mask = 1023", []).unwrap();
    fixture.subscribers.forget_all();
    fixture.put(1, Expect::Revision(1));
    let followed = fixture.look();
    fixture.connection.execute("UPDATE changed_contacts SET mark = mark + 1", []).unwrap();
    assert_eq!(fixture.follow(&followed), []);
    assert_eq!(fixture.outbox(), 1);
    assert_eq!(fixture.follow(&fixture.look()), []);
    assert_eq!((fixture.outbox(), fixture.members()), (0, (2, 2)));
}

#[test]
fn an_erased_contact_leaves_no_note_and_no_membership() {
    let fixture = SegmentFixture::new();
    let followed = fixture.look();
    fixture.delete(2);
    assert_eq!((fixture.outbox(), fixture.members()), (1, (0, 0)));
    let moved = fixture.follow(&followed);
    assert_eq!(moved.iter().map(|one| one.contact).collect::<Vec<_>>(), [SegmentFixture::id(1)]);
    assert_eq!(fixture.members(), (1, 1));
    fixture.delete(1);
    assert_eq!((fixture.outbox(), fixture.members()), (0, (0, 0)));
}

#[test]
fn what_nobody_reads_is_not_noted() {
    let mut fixture = SegmentFixture::new();
    fixture.follow(&fixture.look());
    fixture.put(1, Expect::Revision(1));
    assert_eq!(fixture.outbox(), 0);
    super::delete(&fixture.connection, &mut fixture.subscribers.read_masks, fixture.workspace, fixture.segment)
        .unwrap();
    fixture.put(3, Expect::Absent);
    assert_eq!(fixture.outbox(), 0);
}

#[test]
fn a_small_workspace_is_counted_whole_in_one_look_where_most_are_gone() {
    let fixture = SegmentFixture::new();
    fixture.connection.execute("UPDATE workspace_numbers SET newest = 1 << 30", []).unwrap();
    let mut count = Count::new(fixture.workspace, &fixture.query, &[], 5);
    assert!(count.go_on(&fixture.connection).unwrap(), "not all of two contacts");
    let counted = count.counted(&fixture.connection).unwrap();
    assert_eq!((counted.sizes, counted.exact, counted.sample.len()), (vec![2], true, 2));
}
