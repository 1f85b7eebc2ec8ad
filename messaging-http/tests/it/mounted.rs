//! The API as a service of another server.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper_util::rt::TokioIo;
use messaging_core::scope::Scope;
use messaging_http::{ApiService, PeerAddress, ServiceOptions};
use serde_json::{Value, json};
use tower_service::Service;

use crate::harness::TestServer;

/// Status and body of the answer to a call of the service through `tower`.
async fn call(service: &ApiService, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
    let Ok(response) = Service::call(&mut service.clone(), request).await;
    let status = response.status();
    let Ok(body) = response.into_body().collect().await;
    (status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
}

/// The path of the lists of the workspace.
fn lists(server: &TestServer) -> String {
    format!("/v1/workspaces/{}/lists", server.workspace)
}

fn get(path: &str, key: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("authorization", format!("Bearer {key}")).body(Full::default()).unwrap()
}

#[tokio::test]
async fn the_prefix_is_taken_off_unless_the_router_did() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::All]).await;
    let service = ApiService::new(server.app.clone(), ServiceOptions::mounted_at("/mail/"));
    let lists = lists(&server);
    for path in [format!("/mail{lists}"), lists.clone()] {
        let (status, body) = call(&service, get(&path, &key)).await;
        assert_eq!((status, &body["data"]), (StatusCode::OK, &json!([])), "{path} {body}");
    }
    assert_eq!(call(&service, get(&format!("/mailing{lists}"), &key)).await.1["error"]["code"], "route_not_found");
    assert_eq!(call(&service, get(&lists, "mk_live_no")).await.0, StatusCode::UNAUTHORIZED);
    let (_, document) = call(&service, get("/mail/v1/openapi.json", "")).await;
    assert_eq!(document["servers"], json!([{"url": "/mail/v1"}]));
}

#[tokio::test]
async fn a_key_that_is_bound_to_addresses_needs_to_know_the_peer() {
    let server = TestServer::start().await;
    let key = server.key_with(&[Scope::All], |key| key.ip_allowlist = vec!["192.0.2.1".into()]).await;
    let service = ApiService::new(server.app.clone(), ServiceOptions::default());
    assert_eq!(call(&service, get(&lists(&server), &key)).await.1["error"]["code"], "ip_not_allowed");
    let mut request = get(&lists(&server), &key);
    request.extensions_mut().insert(PeerAddress([192, 0, 2, 1].into()));
    assert_eq!(call(&service, request).await.0, StatusCode::OK);
}

#[tokio::test]
async fn hyper_serves_it_with_a_body_that_comes_in_pieces() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::All]).await;
    let service = ApiService::new(server.app.clone(), ServiceOptions::mounted_at("/mail"));
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let serving = tokio::spawn(async move {
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service).await
    });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
    let connection = tokio::spawn(connection);
    let pieces =
        ["{\"name\": ", "\"Customers\"}"].map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(piece.into())));
    let body = StreamBody::new(futures_util::stream::iter::<[Result<http_body::Frame<Bytes>, _>; 2]>(pieces));
    let request = Request::post(format!("/mail{}", lists(&server)))
        .header("host", "example.org")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    assert!(response.headers().contains_key("x-request-id"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["name"], "Customers");
    drop(sender);
    connection.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
    // Clones and further services of an application see the same data.
    let other = ApiService::new(server.app.clone(), ServiceOptions::default());
    assert_eq!(call(&other, get(&lists(&server), &key)).await.1["data"][0]["name"], "Customers");
}
