//! Images in mail: `GET /i/{token}`.
//!
//! Contract section 26. Everybody who has the address gets the image, and may cache it: the image of a token never
//! changes.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use messaging_core::domain::image::Image;
use messaging_engine::{App, Error};

use crate::body::{BodyBudget, Sender, holding};
use crate::reply::{self, Reply};

/// The path.
pub(crate) const ROUTE: &str = "/i/{token}";

/// The method.
pub(crate) const METHOD: Method = Method::GET;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Caches keep an image for a year without revalidation.
const CACHING: &str = "public, max-age=31536000, immutable";

/// Answers with an image, or with 304 if the client has it. Its bytes are in memory only as the budget of bodies
/// allows.
pub(crate) async fn answer(
    app: &App,
    token: &str,
    headers: &HeaderMap,
    budget: &BodyBudget,
    sender: Sender,
) -> Result<Reply, Error> {
    let image = app.image_of_token(token).await?.ok_or(Error::NotFound)?;
    let tag = format!("\"{}\"", image.sha256);
    if is_known(headers, &tag) {
        return Ok(with_headers(reply::bare(StatusCode::NOT_MODIFIED), &tag));
    }
    let held = budget.hold(image.bytes, sender).await?;
    let octets = app.image_bytes(&image).await?.ok_or(Error::NotFound)?;
    Ok(with_headers(file(&image, holding(octets, held)), &tag))
}

fn file(image: &Image, octets: Bytes) -> Reply {
    let mut reply = reply::file(StatusCode::OK, image.kind.media_type(), octets);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("inline"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    // Webmail loads it from a page of another origin.
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    reply
}

fn with_headers(mut reply: Reply, tag: &str) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CACHING));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    reply
}

/// Returns true if the client has the image already (RFC 9110 section 13.1.2).
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let named = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|text| text.split(',')).any(|one| {
        let one = one.trim();
        one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&'static str], expected: bool) {
        let headers: HeaderMap = values.iter().map(|value| (IF_NONE_MATCH, HeaderValue::from_static(value))).collect();
        assert_eq!(is_known(&headers, "\"abc\""), expected, "{values:?}");
    }

    #[test]
    fn whoever_names_the_tag_has_the_image() {
        check(&[], false);
        check(&["\"abc\""], true);
        check(&["W/\"abc\""], true);
        check(&["\"a\", \"abc\""], true);
        check(&["\"a\"", "\"abc\""], true);
        check(&["*"], true);
        check(&["abc"], false);
        check(&["\"abcd\""], false);
    }
}
