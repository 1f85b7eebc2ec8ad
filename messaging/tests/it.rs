//! The library as an embedding program uses it.

use std::error::Error;

use messaging::core::domain::channel::Channel;
use messaging::core::domain::message::MessageStatus;
use messaging::{Builder, Message, OpenError};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

fn mail() -> Message {
    Message::email("ann@example.com").subject("Hi").text("Hello, Ann.")
}

/// Without workers, so that a test decides when messages leave.
fn by_hand(directory: &TempDir) -> Builder {
    messaging::builder(directory.path()).workers(false)
}

#[tokio::test]
async fn the_first_message_is_captured_and_reported() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = by_hand(&directory).open().await?;
    let id = app.send(mail()).await?.message_id;
    app.app().run_until_idle().await?;
    let report = app.message(id).await?;
    assert_eq!(report.status, MessageStatus::Delivered);
    let captured = app.captured(id).await?;
    let source = String::from_utf8_lossy(&captured.source);
    assert!(source.contains("Hello, Ann."), "{source}");
    app.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_send_without_being_asked() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = messaging::open(directory.path()).await?;
    let mut events = app.events(None).await?;
    let id = app.send(mail()).await?.message_id;
    let mut told = Vec::new();
    while !told.iter().any(|kind| kind == "delivered") {
        let page = events.next().await?.ok_or("closed")?;
        for event in page.data.iter().filter(|event| event.data.message_id == id) {
            told.push(serde_json::to_value(event.event_type)?.as_str().unwrap_or_default().to_owned());
        }
    }
    app.close().await;
    Ok(())
}

#[tokio::test]
async fn what_was_accepted_is_there_after_a_restart() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = by_hand(&directory).open().await?;
    let workspace = app.workspace_id();
    let id = app.send_once("order-17", mail()).await?.message_id;
    app.close().await;
    drop(app);
    let app = by_hand(&directory).open().await?;
    assert_eq!(app.workspace_id(), workspace);
    assert_eq!(app.send_once("order-17", mail()).await?.message_id, id, "the same key sends nothing more");
    app.app().run_until_idle().await?;
    assert_eq!(app.message(id).await?.status, MessageStatus::Delivered);
    app.close().await;
    Ok(())
}

#[tokio::test]
async fn a_cursor_survives_a_restart() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = by_hand(&directory).open().await?;
    let mut events = app.events(None).await?;
    app.send(mail()).await?;
    app.app().run_until_idle().await?;
    let cursor = events.next().await?.ok_or("closed")?.next_cursor;
    let second = app.send(mail()).await?.message_id;
    app.app().run_until_idle().await?;
    app.close().await;
    assert!(events.next().await?.is_none(), "a closed installation has no further events");
    drop((app, events));
    let app = by_hand(&directory).open().await?;
    let page = app.events(Some(cursor)).await?.next().await?.ok_or("closed")?;
    assert!(page.data.iter().all(|event| event.data.message_id == second), "{page:?}");
    app.close().await;
    Ok(())
}

#[tokio::test]
async fn a_sender_needs_its_records() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = by_hand(&directory).open().await?;
    app.close().await;
    drop(app);
    let app = by_hand(&directory).hostname("mail.example.com").sender("hello@example.com").open().await?;
    let records = app.dns_records().await?;
    assert!(records.iter().any(|record| record.host.ends_with("._domainkey.example.com")), "{records:?}");
    let refused = app.send(mail()).await.unwrap_err();
    assert!(matches!(refused, messaging::Error::SenderNotVerified(_)), "{refused}");
    let email = app.app().store().channel(app.workspace_id(), Channel::Email).await?;
    assert!(email.is_none(), "email is no longer captured");
    app.close().await;
    Ok(())
}

#[tokio::test]
async fn a_channel_takes_the_settings_of_its_provider() -> Outcome {
    let directory = tempfile::tempdir()?;
    let relay = |config: serde_json::Value| config.as_object().cloned().unwrap_or_default();
    let config = relay(serde_json::json!({"host": "relay.example.net", "port": 587}));
    let app = by_hand(&directory).channel(Channel::Email, "smtp", config).open().await?;
    let email = app.app().store().channel(app.workspace_id(), Channel::Email).await?.ok_or("stored")?;
    assert_eq!(email.record.provider, "smtp");
    app.close().await;
    drop(app);
    let config = relay(serde_json::json!({"hots": "relay.example.net"}));
    let refused = by_hand(&directory).channel(Channel::Email, "smtp", config).open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Settings(_)), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn workspaces_are_found_by_name_and_apart() -> Outcome {
    let directory = tempfile::tempdir()?;
    let app = by_hand(&directory).open().await?;
    let (tenant, again) = (app.workspace("Tenant 7").await?, app.workspace("Tenant 7").await?);
    assert_eq!(tenant.workspace_id(), again.workspace_id());
    assert_ne!(tenant.workspace_id(), app.workspace_id());
    let id = app.send(mail()).await?.message_id;
    assert!(tenant.message(id).await.is_err(), "messages of another workspace are not there");
    app.close().await;
    Ok(())
}

#[tokio::test]
async fn mistakes_say_what_to_do() -> Outcome {
    let directory = tempfile::tempdir()?;
    let refused = by_hand(&directory).sender("nobody").open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Sender), "{refused:?}");
    let refused = by_hand(&directory).sender("hello@example.com").open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Settings(_)), "a host that nobody can look up: {refused:?}");
    let _open = by_hand(&directory).open().await?;
    let refused = by_hand(&directory).open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Database(_)), "one process at a time: {refused:?}");
    Ok(())
}
