//! A transport of your own under a name of its own: it writes every email to a directory as an `.eml` file.
//!
//! Run it with `cargo run -p messaging-examples --bin custom_transport`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use messaging::Message;
use messaging::core::domain::channel::Channel;
use messaging::core::ports::transport::{
    Acceptance, Admitted, Content, Outcome, Outgoing, Response, Sent, Transport, TransportError,
};
use messaging::ops::channels::{ChannelInput, ChannelPath, SetChannel};
use messaging::transport::mime;
use serde_json::{Map, Value, json};

/// Delivers email into a directory.
#[derive(Debug)]
struct MailDirectory;

#[async_trait]
impl Transport for MailDirectory {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Email(email) = &outgoing.content else {
            return Err(TransportError::Content("this transport carries email only".to_owned()));
        };
        let directory = outgoing.settings.get("directory").and_then(Value::as_str);
        // The channel stops until somebody gives other settings.
        let directory = directory.ok_or_else(|| TransportError::Misconfigured("no directory".to_owned()))?;
        let bytes = mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?;
        // From here on the message may have left: that is put on record, so that a crash is noticed.
        let admitted = outgoing.last_look.begin(&outgoing.recipients).await;
        let refused: Vec<_> = admitted.into_iter().filter_map(Admitted::refusal).collect();
        if !refused.is_empty() {
            return Ok(Sent { outcomes: refused, ..Sent::default() });
        }
        let path = Path::new(directory).join(format!("{}.eml", outgoing.message_id));
        // A full disk is no reason to give up: the message is tried again later.
        tokio::fs::write(&path, bytes).await.map_err(|error| TransportError::Unreachable(error.to_string()))?;
        let written = Outcome::accepted(Acceptance::Delivered, Response::of_text("written"));
        Ok(Sent { outcomes: vec![written; outgoing.recipients.len()], ..Sent::default() })
    }

    /// JSON Schema of the settings that a workspace gives for this provider. `writeOnly` members are stored encrypted
    /// and shown as `***`.
    fn settings_schema(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "required": ["directory"],
            "properties": {
                "directory": {"type": "string", "minLength": 1},
                "token": {"type": "string", "writeOnly": true},
            },
        }))
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mail = directory.path().join("mail");
    std::fs::create_dir(&mail)?;
    let app = messaging::builder(directory.path())
        .workers(false)
        .configure(|builder| builder.transport(Channel::Email, "mail_directory", Arc::new(MailDirectory)))
        .open()
        .await?;

    let directory_name = mail.to_str().ok_or("a name in UTF-8")?;
    let config = [("directory", directory_name), ("token", "sealed at rest")];
    let config = config.map(|(name, value)| (name.to_owned(), Value::from(value)));
    let settings = ChannelInput::new("mail_directory").config(Map::from_iter(config));
    let path = ChannelPath { workspace_id: app.workspace_id(), channel: Channel::Email };
    let shown = app.app().run(SetChannel).path(path).body(settings).by(app.caller()).await?;
    println!("token: {}", shown.config["token"]);

    app.send(Message::email("ann@example.com").subject("Grüße").text("Hello, Ann.")).await?;
    app.app().run_until_idle().await?;

    for entry in std::fs::read_dir(&mail)? {
        println!("{}", std::fs::read_to_string(entry?.path())?);
    }
    Ok(())
}
