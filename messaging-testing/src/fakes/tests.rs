//! Features of fakes for interactive use: calls that bypass a proxy, and recipients that write.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use url::form_urlencoded;

use super::{FakeHttp, FakeProvider, FakeTwilio, Signature};
use crate::ScriptedHttpServer;

/// Posts to a fake; returns the status and the body of its answer.
async fn post(fake: &FakeProvider, path: &str, body: impl Into<Bytes>) -> (u16, Value) {
    let stream = TcpStream::connect(fake.address()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = http::Request::post(path).header("host", "fake").body(Full::new(body.into())).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    connection.abort();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn calls_to_a_public_address_go_to_the_server_itself_and_are_signed_for_the_public_one() {
    let server = ScriptedHttpServer::start().await;
    let fake = FakeProvider::start(FakeTwilio::new("AC1", "t0ken")).await.unwrap();
    let base = "https://mail.example.org/messaging";
    fake.call_straight(base, server.url("").trim_start_matches("http://").trim_end_matches('/').parse().unwrap());
    let url = format!("{base}/callbacks/sms/token");
    let through = fake.write(&url, "+4915112345678", "STOP", Signature::Valid).await.unwrap();
    let request = server.received(1).await.remove(0);
    assert_eq!((through.status.unwrap().as_u16(), request.target.as_str()), (200, "/callbacks/sms/token"));
    // The signature covers the public address.
    let mut members: Vec<_> = form_urlencoded::parse(&request.body).into_owned().collect();
    members.sort();
    let text = members.into_iter().fold(url, |text, (name, value)| text + &name + &value);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"t0ken");
    let expected = BASE64_STANDARD.encode(hmac::sign(&key, text.as_bytes()));
    let signature = through.callback.headers.iter().find(|(name, _)| *name == "x-twilio-signature");
    assert_eq!(signature.map(|(_, value)| value.as_str()), Some(expected.as_str()));
}

#[tokio::test]
async fn a_recipient_writes_by_a_request_to_the_fake() {
    let server = ScriptedHttpServer::start().await;
    let fake = FakeProvider::start(FakeTwilio::new("AC1", "t0ken")).await.unwrap();
    let console = fake.inbound_console();
    let path = console.strip_prefix(&fake.url()).unwrap();
    let said = json!({"from": "+4915112345678", "text": "STOP"}).to_string();
    assert_eq!(post(&fake, path, said.clone()).await.0, 404, "it was not told where to call");
    fake.set_inbound_url(&server.url("/callbacks/sms/token"));
    assert_eq!(post(&fake, path, "STOP").await.0, 400);
    assert_eq!(server.requests().len(), 0);
    assert_eq!(post(&fake, path, said.clone()).await, (200, json!({"answered": 200})));
    let request = server.received(1).await.remove(0);
    assert!(String::from_utf8_lossy(&request.body).contains("From=%2B4915112345678"), "{request:?}");
    assert_eq!(fake.requests().len(), 0, "that is no message");

    let gateway = FakeProvider::start(FakeHttp::new(None)).await.unwrap();
    gateway.set_inbound_url(&server.url("/callbacks/sms/token"));
    assert_eq!(post(&gateway, path, said).await.0, 404, "nobody can write through a gateway of one's own");
}

#[tokio::test]
async fn a_fake_remembers_64_mebibytes_of_requests() {
    let fake = FakeProvider::start(FakeHttp::new(None)).await.unwrap();
    for _ in 0..20 {
        assert_eq!(post(&fake, "/send", vec![b' '; (4 << 20) - 1]).await.0, 400);
    }
    let octets: usize = fake.requests().iter().map(|request| request.body.len()).sum();
    assert!(octets <= 64 << 20, "{octets}");
    assert_eq!(fake.requests().len(), 16);
}
