//! Images (contract section 26).

use http::Method;
use serde_json::json;

use crate::bed::{Bed, Call};

/// A PNG of 2 by 3 pixels as far as its header goes, told apart by its last octet.
pub(crate) fn png(n: u8) -> Vec<u8> {
    let mut octets = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0".to_vec();
    octets.push(n);
    octets
}

#[tokio::test]
async fn the_same_file_is_the_same_image() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/images");
    let send = async |octets: Vec<u8>| bed.call(Call::new(&owner, Method::POST, &path).bytes(octets)).await;
    let made = send(png(1)).await;
    assert_eq!(made.summary(), "201", "{}", made.body);
    assert_eq!((&made["width"], &made["height"], &made["bytes"]), (&json!(2), &json!(3), &json!(png(1).len())));
    assert!(made["url"].as_str().unwrap().starts_with("https://track.service.test/i/"), "{}", made.body);
    let again = send(png(1)).await;
    assert_eq!((again.status, &again.body), (200, &made.body));
    let other = send(png(2)).await;
    assert_eq!(other.summary(), "201");
    assert_ne!(other["url"], made["url"]);
    let listed = bed.get(&owner, &path).await;
    assert_eq!(listed["data"], json!([other.body, made.body]));
    for octets in [Vec::new(), b"<svg/>".to_vec(), b"\x89PNG\r\n\x1a\n".to_vec()] {
        assert_eq!(send(octets).await.status, 422);
    }
}

#[tokio::test]
async fn an_image_that_a_template_shows_stays() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/images");
    let made = bed.call(Call::new(&owner, Method::POST, &path).bytes(png(1))).await;
    let html = format!("<img src=\"{}\">", made["url"].as_str().unwrap());
    let template = json!({"name": "T", "channel": "email", "subject": "s", "html": html});
    let template = bed.post(&owner, &format!("/workspaces/{workspace}/templates"), template).await;
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    let refused = bed.delete(&owner, &one).await;
    assert_eq!(refused.status, 409);
    assert_eq!(refused.body["error"]["code"], json!("in_use"));
    assert_eq!(refused.body["error"]["details"], json!({"by": [template["id"]]}));
    let gone = format!("/workspaces/{workspace}/templates/{}", template["id"].as_str().unwrap());
    assert_eq!(bed.delete(&owner, &gone).await.status, 204);
    assert_eq!(bed.delete(&owner, &one).await.status, 204);
    assert_eq!(bed.delete(&owner, &one).await.status, 404);
    assert_eq!(bed.get(&owner, &path).await["data"], json!([]));
}

#[tokio::test]
async fn a_token_leads_to_the_image_of_its_workspace() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/images");
    let made = bed.call(Call::new(&owner, Method::POST, &path).bytes(png(1))).await;
    let token = made["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let image = bed.app.image_of_token(&token).await.unwrap().unwrap();
    assert_eq!(image.id.to_string(), made["id"].as_str().unwrap());
    assert!(bed.app.image_bytes(&image).await.unwrap().is_some_and(|octets| octets == png(1)));
    assert_eq!(bed.app.image_of_token(&token[1..]).await.unwrap(), None);
    let message = messaging_core::ids::Id::from_bytes([1; 16]);
    let receipt = bed.app.link_key().receipt(workspace, message);
    assert_eq!(bed.app.image_of_token(&receipt).await.unwrap(), None);
}
