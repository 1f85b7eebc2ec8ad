//! Having members calculated and changes followed.

use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};

/// Calculates all members; answers how many joined and left.
pub async fn calculate(store: &dyn Store, workspace: WorkspaceId, id: SegmentId, query: &MemberQuery) -> (u64, u64) {
    calculate_with(store, workspace, id, query, MoveNotes::Silent).await
}

/// The same, and may tell who moved.
pub async fn calculate_with(
    store: &dyn Store,
    workspace: WorkspaceId,
    id: SegmentId,
    query: &MemberQuery,
    moves: MoveNotes,
) -> (u64, u64) {
    let (mut from, mut joined, mut left) = (None, 0, 0);
    loop {
        let calculated = store.calculate_members(workspace, id, query, from, moves).await.unwrap();
        joined += calculated.joined;
        left += calculated.left;
        match calculated.next {
            Some(next) => {
                assert_ne!(Some(next), from, "a calculation goes on");
                from = Some(next);
            }
            None => return (joined, left),
        }
    }
}

/// Follows some changes; answers whether there are more.
pub async fn follow(
    store: &dyn Store,
    workspace: WorkspaceId,
    segments: &[(SegmentId, MemberQuery)],
    limit: usize,
) -> bool {
    store.follow_changes(workspace, segments, limit).await.unwrap().1
}
