//! Reacting to events of messages, which are read from a cursor that survives restarts.
//!
//! Run it with `cargo run -p messaging-examples --bin events`. It sends three messages, one of which bounces, reads
//! their events, stops in between, and continues from the cursor.

use std::error::Error;
use std::fs;
use std::path::Path;

use messaging::core::domain::webhook::EventType;
use messaging::{Message, Messaging};

/// Handles events until `enough` of them were bounces or deliveries; keeps its place in a file.
///
/// A program with its own database keeps the cursor there, in the transaction that handles the events: then each event
/// counts exactly once. With a file, a crash between the two makes the last page come again.
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn handle(app: &Messaging, cursor: &Path, mut enough: usize) -> Result<(), Box<dyn Error>> {
    let mut events = app.events(fs::read_to_string(cursor).ok()).await?;
    while enough > 0 {
        let Some(page) = events.next().await? else { break };
        for event in &page.data {
            match event.event_type {
                EventType::Delivered => println!("{} has arrived", event.data.message_id),
                EventType::Bounce => println!("{} came back: ask for another address", event.data.message_id),
                _ => continue,
            }
            enough = enough.saturating_sub(1);
        }
        fs::write(cursor, &page.next_cursor)?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (data, cursor) = (directory.path().join("data"), directory.path().join("cursor"));

    let app = messaging::open(&data).await?;
    handle(&app, &cursor, 0).await?;
    for to in ["ann@example.com", "bounce@simulator.invalid"] {
        app.send(Message::email(to).subject("Order 17").text("Thanks")).await?;
    }
    handle(&app, &cursor, 2).await?;
    app.close().await;
    drop(app);

    // The next start continues after the last event that was handled.
    let app = messaging::open(&data).await?;
    app.send(Message::email("ann@example.com").subject("Order 18").text("Thanks again")).await?;
    handle(&app, &cursor, 1).await?;
    app.close().await;
    Ok(())
}
