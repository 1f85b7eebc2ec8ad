//! Many deliveries at a time: their number of store calls, which is counted because time depends on the machine, and
//! that none affects another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{WebhookWrite, Write};
use messaging_engine::App;
use messaging_testing::fetched;
use serde_json::Value;

use super::{Hooks, URL, body};
use crate::mortal::MortalStore;

/// Deliveries whose first attempt has failed, so that nothing but a second one is left to do after five seconds.
async fn failed_once(number: usize) -> Hooks {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.always(URL, Ok(fetched(500, &[], "")));
    for number in 0..number {
        hooks.product.send_to(&format!("user-{number}@example.com")).await;
    }
    hooks.product.work().await;
    assert_eq!(hooks.fetch.take().len(), number);
    hooks
}

/// Another process, which works on a store.
fn process(hooks: &Hooks, store: &MortalStore) -> App {
    let app = hooks.product.another_process_fetching_on(store.clone(), Arc::clone(&hooks.fetch) as _);
    hooks.product.clock.advance(Duration::from_secs(6));
    app
}

fn is_done(delivery: &Value) -> bool {
    delivery["status"] == "delivered" && delivery["attempts"] == 2
}

#[tokio::test]
async fn a_hundred_deliveries_take_few_reads_and_commits() {
    let hooks = failed_once(100).await;
    hooks.fetch.always(URL, Ok(fetched(200, &[], "ok")));
    let store = MortalStore::immortal(Arc::clone(&hooks.product.store));
    let app = process(&hooks, &store);
    let before = (store.commits(), store.reads());
    app.run_until_idle().await.unwrap();
    let (commits, reads) = (store.commits() - before.0, store.reads() - before.1);
    let requests = hooks.fetch.take();
    let told: HashSet<_> = requests.iter().map(|request| body(request)["data"]["to"].to_string()).collect();
    assert_eq!((requests.len(), told.len()), (100, 100));
    assert!(requests.iter().all(|request| hooks.is_signed(request, &hooks.secret)));
    assert!(hooks.deliveries().await.iter().all(is_done));
    // One by one they would be two of each for every delivery. The search index reads every message twice meanwhile.
    assert!(commits <= 50 && reads <= 200 + 100, "{commits} commits and {reads} reads");
}

#[tokio::test]
async fn an_outcome_that_is_refused_takes_no_other_with_it() {
    let hooks = failed_once(8).await;
    hooks.fetch.always(URL, Ok(fetched(200, &[], "ok")));
    for answer in ["ok", "ok", "poison", "ok", "poison"] {
        hooks.fetch.next_with(Ok(fetched(200, &[], answer)));
    }
    let is_poison = |write: &Write| match write {
        Write::Webhook(WebhookWrite::UpdateDelivery(update)) => {
            update.delivery.response_body.as_deref() == Some("poison")
        }
        _ => false,
    };
    let store = MortalStore::refusing(Arc::clone(&hooks.product.store), is_poison);
    process(&hooks, &store).run_until_idle().await.unwrap();
    assert_eq!(hooks.fetch.take().len(), 8, "each is called once");
    let deliveries = hooks.deliveries().await;
    assert!(deliveries.iter().all(is_done));
    assert_eq!(deliveries.iter().filter(|delivery| delivery["response_body"] == Value::Null).count(), 2);
    let (count, _) = hooks.product.store.quarantined(9).await.unwrap();
    assert_eq!(count, 2);
}

#[tokio::test]
async fn where_nothing_can_be_read_at_once_nothing_is_lost() {
    let hooks = failed_once(8).await;
    hooks.fetch.always(URL, Ok(fetched(200, &[], "ok")));
    let store = MortalStore::immortal(Arc::clone(&hooks.product.store));
    let app = process(&hooks, &store);
    store.cut_off_after_claim();
    // Nothing can be claimed either as long as nothing can be read.
    let _ = app.run_until_idle().await;
    assert_eq!(hooks.fetch.take().len(), 0);
    store.connect_again();
    hooks.product.pass(Duration::from_secs(3)).await;
    assert_eq!(hooks.fetch.take().len(), 8);
    assert!(hooks.deliveries().await.iter().all(is_done));
}

#[tokio::test]
async fn an_answer_that_disables_the_webhook_ends_what_was_claimed_with_it() {
    let hooks = failed_once(8).await;
    hooks.fetch.always(URL, Ok(fetched(410, &[], "")));
    hooks.product.pass(Duration::from_secs(6)).await;
    assert_eq!(hooks.status().await, "disabled");
    let deliveries = hooks.deliveries().await;
    assert!(deliveries.iter().all(|delivery| delivery["status"] == "failed"), "{deliveries:?}");
    assert_eq!(messaging_core::ports::store::Jobs::job_count(&*hooks.product.store).await.unwrap(), 0);
}
