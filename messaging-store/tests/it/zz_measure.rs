use messaging_core::changes::{Changes, CountMessages, MoveMessage, Write};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ports::store::{Priority, Store as _};
use messaging_store::conformance::commit::at_once;
use messaging_store::conformance::put;
use messaging_store::conformance::sample::{at, bare_message, id, insert};
use messaging_store::{SqliteOptions, SqliteStore};
use std::time::Instant;

#[tokio::test]
#[ignore]
async fn measure() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(SqliteOptions::new(directory.path().join("m.db"))).unwrap();
    let workspace = id();
    let mut messages: Vec<Message> = Vec::new();
    for _ in 0..20 {
        let some: Vec<_> = (0..256).map(|_| bare_message(workspace)).collect();
        put(&store, some.iter().map(insert)).await;
        messages.extend(some);
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..10 {
        let counted = round % 2 == 1;
        let began = Instant::now();
        for chunk in messages.chunks_mut(256) {
            let commits: Vec<_> = chunk
                .iter()
                .map(|message| {
                    let sending = Message { status: MessageStatus::Sending, ..message.clone() };
                    let after = sending.moved(MessageStatus::Delivered, at(round));
                    let mut writes = vec![Write::MoveMessage(MoveMessage::new(&sending, &after))];
                    let count = CountMessages::of_change(&sending, &after, None, at(round));
                    if counted {
                        writes.extend(count.map(|count| Write::CountMessages(Box::new(count))));
                    }
                    store.commit(Changes::from_iter(writes), Priority::Foreground)
                })
                .collect();
            for outcome in at_once(commits).await {
                outcome.unwrap();
            }
            for message in chunk {
                message.revision += 1;
                message.milestones.sent_at = None;
            }
        }
        times[usize::from(counted)].push(began.elapsed().as_micros() as f64 / messages.len() as f64);
    }
    println!("without {:?}\nwith {:?}", times[0], times[1]);
}
