//! A small HTTP/1.1 client that shows every detail.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// One connection.
pub(crate) struct Wire(BufReader<TcpStream>);

/// The response that came back over the connection.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// Connects from an address of the loopback network, as another caller.
    pub(crate) async fn connect_from(source: &str, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source.parse::<IpAddr>().unwrap(), 0).into()).unwrap();
        Self(BufReader::new(socket.connect(address).await.unwrap()))
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).await.unwrap();
    }

    /// The next answer, or `None` if the server has closed.
    pub(crate) async fn response(&mut self) -> Option<Response> {
        self.read(true).await
    }

    /// The answer to a HEAD request.
    pub(crate) async fn head_response(&mut self) -> Option<Response> {
        self.read(false).await
    }

    /// Returns true if the server closes without sending a byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(self.0.read_u8().await.ok()?);
        }
        line.truncate(line.len() - 2);
        Some(String::from_utf8(line).unwrap())
    }

    async fn read(&mut self, has_body: bool) -> Option<Response> {
        let status_line = self.line().await?;
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
        if has_body {
            response.body.resize(length, 0);
            self.0.read_exact(&mut response.body).await.ok()?;
        }
        Some(response)
    }
}

impl Response {
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of a refusal, or the message of the one without a code; `ok` for 2xx.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        if self.status < 300 {
            return "ok".to_owned();
        }
        match &self.json()["error"] {
            Value::String(sentence) => sentence.clone(),
            error => error["code"].as_str().unwrap().to_owned(),
        }
    }
}
