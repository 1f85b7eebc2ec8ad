//! Having members calculated and changes followed.

use messaging_core::changes::{JobHandle, JobWrite, Write};
use messaging_core::ids::{SegmentId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::segments::{MemberQuery, MoveNotes};

use super::super::put;
use super::super::sample::{claim, handles, job};

/// The claim of a new job.
pub async fn claimed(store: &dyn Store) -> JobHandle {
    let new = job("keeping", 0);
    put(store, [Write::Job(JobWrite::Enqueue(new.clone()))]).await;
    let claimed = handles(&store.claim(claim(0)).await.unwrap());
    claimed.into_iter().find(|handle| handle.id == new.id).expect("the job is due and free")
}

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
    let job = claimed(store).await;
    loop {
        let calculated = store.calculate_members(workspace, id, query, from, moves, &job).await.unwrap();
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
    let job = claimed(store).await;
    store.follow_changes(workspace, segments, limit, &job).await.unwrap().1
}
