use serde_json::{Value, json};

use super::*;
use crate::domain::segment::parse::{Purpose, parse};
use crate::domain::segment::{SegmentStatus, StoredFilter};
use crate::ids::Id as _;
use crate::time::Timestamp;
use crate::violation::Violations;

fn id(number: u8) -> SegmentId {
    SegmentId::from_bytes([number; 16])
}

fn tree(filter: &Value) -> Filter {
    parse(filter, "", Purpose::Segment, &mut Violations::new()).filter.unwrap()
}

fn segment(number: u8, kind: SegmentKind, filter: &Value) -> Segment {
    Segment {
        id: id(number),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        name: "S".to_owned(),
        kind,
        filter: StoredFilter::new(filter, tree(filter)),
        status: SegmentStatus::Ready,
        size: None,
        calculated_at: None,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        calculation: 1,
    }
}

fn member(number: u8) -> Value {
    json!({"type": "segment", "op": "member", "id": id(number)})
}

fn tag(tag: &str) -> Value {
    json!({"type": "tag", "op": "has_any", "values": [tag]})
}

fn graph(segments: &[(u8, Value)]) -> SegmentGraph {
    segments.iter().map(|(number, filter)| segment(*number, SegmentKind::Dynamic, filter)).collect()
}

#[test]
fn dynamic_segments_become_their_filters() {
    let mut graph = graph(&[(1, tag("a")), (2, json!({"or": [member(1), tag("b")]})), (3, json!({}))]);
    graph.insert(segment(4, SegmentKind::Static, &tag("c")));
    let not_member = json!({"type": "segment", "op": "not_member", "id": id(2)});
    let resolved = graph.resolve(&tree(&json!({"and": [not_member, member(4)]}))).unwrap();
    assert_eq!(resolved, tree(&json!({"and": [{"not": {"or": [tag("a"), tag("b")]}}, member(4)]})));
    let everyone = graph.resolve(&tree(&member(3))).unwrap();
    assert_eq!(everyone, tree(&json!({"type": "contact", "field": "created_at", "op": "exists"})));
    assert_eq!(graph.resolve(&tree(&json!({}))).unwrap(), Filter::Everyone);
    assert_eq!(graph.resolve(&tree(&member(9))), Err(Unresolvable::Unknown));
}

#[test]
fn nests_are_measured_and_bounded() {
    let chain: Vec<_> = (1..=7).map(|n| (n, if n == 1 { tag("a") } else { member(n - 1) })).collect();
    let graph = graph(&chain);
    for (number, depth) in [(1, 1), (5, 5), (6, 6), (7, 6)] {
        assert_eq!(graph.depth(&tree(&member(number))), depth, "{number}");
    }
    assert_eq!((graph.height(id(7)), graph.height(id(4)), graph.height(id(1))), (0, 3, 6));
    assert!(graph.resolve(&tree(&member(5))).is_ok());
    assert_eq!(graph.resolve(&tree(&member(6))), Err(Unresolvable::TooDeep));
    assert!(graph.leads_to(&tree(&member(7)), id(1)) && !graph.leads_to(&tree(&member(3)), id(4)));
}

#[test]
fn cycles_end() {
    let graph = graph(&[(1, member(2)), (2, json!({"and": [member(1), member(1)]}))]);
    assert_eq!(graph.resolve(&tree(&member(1))), Err(Unresolvable::TooDeep));
    assert!(graph.depth(&tree(&member(1))) > MAX_NESTING);
    assert!(graph.height(id(1)) > MAX_NESTING);
    assert!(!graph.leads_to(&tree(&member(1)), id(3)));
    assert_eq!(graph.dependents(id(1)), [id(2)]);
}

#[test]
fn what_is_named_often_is_not_followed_often() {
    let often = |number: u8| json!({"or": (0..100).map(|_| member(number)).collect::<Vec<_>>()});
    let graph = graph(&[(1, often(2)), (2, often(3)), (3, often(4)), (4, often(5)), (5, tag("a"))]);
    assert_eq!(graph.resolve(&tree(&member(1))), Err(Unresolvable::TooLong));
    assert_eq!(graph.depth(&tree(&member(1))), 5);
}

#[test]
fn changes_reach_those_who_use_a_segment_through_dynamic_ones() {
    let mut graph = graph(&[(1, tag("a")), (2, member(1)), (3, member(2)), (5, member(4))]);
    graph.insert(segment(4, SegmentKind::Static, &member(1)));
    let mut dependents = graph.dependents(id(1));
    dependents.sort();
    assert_eq!(dependents, [id(2), id(3)]);
    assert_eq!(graph.dependents(id(4)), [id(5)]);
    assert_eq!(graph.users(id(1)).count(), 2);
}
