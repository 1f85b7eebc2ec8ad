//! Images in mail, over the wire (contract section 26).

use messaging_core::scope::Scope;
use serde_json::json;

use crate::harness::TestServer;
use crate::wire::{Response, Wire};

/// A GIF of one point.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

async fn upload(server: &TestServer, content_type: &str, octets: &[u8]) -> Response {
    upload_announced(server, content_type, octets, octets.len()).await
}

/// Uploads an image with an announced length.
async fn upload_announced(server: &TestServer, content_type: &str, octets: &[u8], length: usize) -> Response {
    let key = server.key(&[Scope::TemplatesWrite]).await;
    let mut wire = Wire::connect(server.address).await;
    let head = format!(
        "POST /v1/workspaces/{}/images HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n\
         content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        server.workspace, length
    );
    wire.send(head).await;
    wire.send(octets).await;
    wire.response().await.expect("an answer")
}

/// The path of an image that was uploaded.
async fn uploaded(server: &TestServer) -> String {
    let answer = upload(server, "image/gif", GIF).await;
    assert_eq!(answer.status, 201, "{:?}", answer.json());
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    url[url.find("/i/").unwrap()..].to_owned()
}

#[tokio::test]
async fn an_image_is_served_to_everybody_for_good() {
    let server = TestServer::start().await;
    let path = uploaded(&server).await;
    let answer = server.request("GET", &path, &[], None).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, GIF));
    for (name, value) in [
        ("content-type", "image/gif"),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("content-disposition", "inline"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "cross-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("set-cookie"), None);
    let tag = answer.header("etag").unwrap().to_owned();
    let again = server.request("GET", &path, &[("if-none-match", tag.as_str())], None).await;
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())));
    let other = server.request("GET", &path, &[("if-none-match", "\"other\"")], None).await;
    assert_eq!(other.status, 200);
    for path in ["/i/nobody", &path[..path.len() - 1]] {
        assert_eq!(server.request("GET", path, &[], None).await.code(), "not_found");
    }
}

#[tokio::test]
async fn what_is_no_image_is_refused() {
    let server = TestServer::start().await;
    for (content_type, octets, status, code) in [
        ("image/svg+xml", GIF, 415, "unsupported_media_type"),
        ("application/json", GIF, 415, "unsupported_media_type"),
        ("image/png", &b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], 422, "validation_failed"),
        ("image/png", &b"{}"[..], 422, "validation_failed"),
    ] {
        let answer = upload(&server, content_type, octets).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{content_type}");
    }
    // The declared type is not trusted: browsers get the type that the bytes show.
    let answer = upload(&server, "image/png", GIF).await;
    assert_eq!((answer.status, &answer.json()["width"]), (201, &json!(1)));
    // A body that is too long is refused by its head.
    assert_eq!(upload_announced(&server, "image/png", &[], (5 << 20) + 1).await.status, 413);
}
