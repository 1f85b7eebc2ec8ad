//! Rates, measured where messages arrive.

use futures_util::future::join_all;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::transport::{Outgoing, Route};
use tokio::time::Instant;

use super::{Chat, shown};

impl Chat {
    /// Sends with a place that was asked for before, as the product does; `false` when it is put off.
    async fn sent_in_turn(&self, to: &str) -> bool {
        let message = self.message(to, "Hi");
        let route = Route {
            workspace_id: message.workspace_id,
            class: JobClass::Transactional,
            settings: message.settings.clone(),
            domain: None,
            recipient: Some(to.to_owned()),
            terms: PathTerms::default(),
        };
        let reservation = self.transport.reserve(&route).await;
        if reservation.wait().is_some() {
            return false;
        }
        let sent = self.transport.send(&Outgoing { reservation, ..message }).await.unwrap();
        assert!(matches!(shown(&sent.outcomes[0]).as_str(), "Delivered" | "Relayed"));
        true
    }
}

#[tokio::test]
async fn a_full_chat_holds_up_no_other() {
    let (chat, _) = Chat::telegram().await;
    assert!(chat.sent_in_turn("100").await);
    let begin = Instant::now();
    let sent = join_all((0..200).map(|_| chat.sent_in_turn("100"))).await;
    // None was waited for: at most one left for each second that this took.
    let most = usize::try_from(begin.elapsed().as_secs()).unwrap() + 1;
    assert!(sent.into_iter().filter(|sent| *sent).count() <= most);
    for other in ["801", "901", "1001"] {
        assert!(chat.sent_in_turn(other).await);
    }
}
