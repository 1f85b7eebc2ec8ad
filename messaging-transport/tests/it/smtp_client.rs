//! SMTP client that sends exactly the lines that a test gives it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// Longer than anything here takes; a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A client in the raw.
pub(crate) struct Client<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Sends a line and returns the code of the reply.
    pub(crate) async fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Sends a line and returns the whole reply.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.full_reply().await
    }

    pub(crate) async fn reply(&mut self) -> String {
        self.full_reply().await.chars().take(3).collect()
    }

    /// Reads several replies and returns their codes.
    pub(crate) async fn replies(&mut self, count: usize) -> String {
        let mut codes = Vec::new();
        for _ in 0..count {
            codes.push(self.reply().await);
        }
        codes.join(" ")
    }

    /// Reads a reply with all lines; empty at the end of the connection.
    pub(crate) async fn full_reply(&mut self) -> String {
        let mut text = String::new();
        loop {
            let line = self.line().await;
            text.push_str(&line);
            if line.get(3..4) != Some("-") {
                return text;
            }
        }
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        timeout(PATIENCE, async {
            while let Ok(byte) = self.0.read_u8().await {
                line.push(byte);
                if byte == b'\n' {
                    break;
                }
            }
        })
        .await
        .expect("a line comes");
        String::from_utf8(line).unwrap()
    }

    /// Reads everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _: Result<_, io::Error> =
            timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.expect("the connection ends");
        String::from_utf8(rest).unwrap()
    }
}
