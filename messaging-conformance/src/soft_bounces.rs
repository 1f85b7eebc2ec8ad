//! Cases for streaks: the number of soft bounces in a row that a store keeps for each address.

use messaging_core::changes::Write;
use messaging_core::domain::audience::soft_bounce::Streak;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::id;
use super::{put, refuse};

const ADDRESS: &str = "a@example.org";

async fn streak(store: &dyn Store, workspace: WorkspaceId) -> Streak {
    store.soft_bounces(workspace, Channel::Email, ADDRESS).await.unwrap()
}

fn end(workspace: WorkspaceId) -> Write {
    Write::EndSoftBounces(workspace, Channel::Email, ADDRESS.to_owned())
}

/// Every soft bounce that is counted makes the streak one longer; ending the streak sets its length back to 0.
pub async fn a_streak_grows_and_ends(store: &dyn Store) {
    let workspace = id();
    for length in 0..3 {
        let read = streak(store, workspace).await;
        let expected = Streak { workspace_id: workspace, channel: Channel::Email, address: ADDRESS.to_owned(), length };
        assert_eq!(read, expected);
        put(store, [Write::CountSoftBounce(read)]).await;
    }
    put(store, [end(workspace)]).await;
    assert_eq!(streak(store, workspace).await.length, 0);
    // Most deliveries end a streak that never began, so that is no conflict.
    put(store, [end(workspace)]).await;
}

/// Of two callers that read a streak of the same length, only one may count a bounce; the other has a conflict. So has
/// one that read the streak before it ended.
pub async fn a_length_is_counted_from_once(store: &dyn Store) {
    let workspace = id();
    let none = streak(store, workspace).await;
    put(store, [Write::CountSoftBounce(none.clone())]).await;
    refuse(store, [Write::CountSoftBounce(none)]).await;
    let one = streak(store, workspace).await;
    put(store, [Write::CountSoftBounce(one.clone())]).await;
    refuse(store, [Write::CountSoftBounce(one)]).await;
    let two = streak(store, workspace).await;
    put(store, [end(workspace)]).await;
    refuse(store, [Write::CountSoftBounce(two)]).await;
    assert_eq!(streak(store, workspace).await.length, 0);
}

/// A streak belongs to one address on one channel of one workspace: counting or ending it changes no other streak.
pub async fn others_have_their_own(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let read = streak(store, mine).await;
    put(store, [Write::CountSoftBounce(read)]).await;
    put(store, [end(other), Write::EndSoftBounces(mine, Channel::Viber, ADDRESS.to_owned())]).await;
    assert_eq!(streak(store, mine).await.length, 1);
    assert_eq!(streak(store, other).await.length, 0);
    assert_eq!(store.soft_bounces(mine, Channel::Viber, ADDRESS).await.unwrap().length, 0);
    assert_eq!(store.soft_bounces(mine, Channel::Email, "b@example.org").await.unwrap().length, 0);
}
