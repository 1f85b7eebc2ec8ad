//! Operations carried out by a server, over HTTP.

use std::path::Path;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use messaging_core::domain::image::header::ImageHeader;
use messaging_core::error::Chain;
use messaging_engine::ops::{self, BodyKind};
use messaging_http::client::{Refusal, Success};
use messaging_http::{Client, ClientError};
use serde_json::Value;

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::{Raw, Request};

/// Body and headers of a request that differ from operation to operation.
struct Sent<'a> {
    /// The body; empty for none.
    body: &'a Bytes,
    /// Media type of the body, where it is not JSON.
    content_type: Option<&'static str>,
    /// The Idempotency-Key.
    idempotency_key: Option<&'a str>,
}

/// A server and the credentials for it.
pub(super) struct Server {
    client: Client,
    url: String,
    /// Workspace of operations without one in the path; only sessions need it, which may open several.
    workspace: Option<HeaderValue>,
}

impl Server {
    /// A server by its address.
    pub(super) fn new(url: &str, token: Option<&str>, workspace: Option<&str>) -> Result<Self, Failure> {
        let mut client = Client::new(url).map_err(|error| failed(url, &error))?;
        if let Some(token) = token {
            client = client.token(token).map_err(|error| failed(url, &error))?;
        }
        let workspace = workspace.map(|id| header("--workspace", id)).transpose()?;
        Ok(Self { client, url: shown(url), workspace })
    }

    /// Carries out a raw request.
    pub(super) async fn raw(&self, raw: &Raw) -> Result<Reply, Failure> {
        let target = if raw.query.is_empty() { raw.path.clone() } else { format!("{}?{}", raw.path, raw.query) };
        let is_in_workspace = raw.path.starts_with("/workspaces/");
        let sent = Sent { body: &raw.body, content_type: None, idempotency_key: raw.idempotency_key.as_deref() };
        self.exchange(raw.method.clone(), &target, sent, is_in_workspace).await
    }

    /// Carries out a request.
    pub(super) async fn call(&self, request: &Request, path: &[(String, String)]) -> Result<Reply, Failure> {
        let mut target = ops::fill_path(request.endpoint.path, path);
        if !request.query.is_empty() {
            target = format!("{target}?{}", request.query_string());
        }
        let is_in_workspace = request.endpoint.is_in_workspace();
        let content_type = match request.endpoint.body {
            BodyKind::File(types) => {
                let known = ImageHeader::read(&request.body).map(|header| header.kind.media_type());
                known.or(types.first().copied())
            }
            _ => None,
        };
        let sent = Sent { body: &request.body, content_type, idempotency_key: request.idempotency_key.as_deref() };
        self.exchange((request.endpoint.method)(), &target, sent, is_in_workspace).await
    }

    async fn exchange(
        &self,
        method: Method,
        target: &str,
        sent: Sent<'_>,
        is_in_workspace: bool,
    ) -> Result<Reply, Failure> {
        let Sent { body, content_type, idempotency_key } = sent;
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        if let Some(workspace) = self.workspace.clone().filter(|_| !is_in_workspace) {
            headers.insert(HeaderName::from_static("x-workspace-id"), workspace);
        }
        if let Some(key) = idempotency_key {
            headers.insert(HeaderName::from_static("idempotency-key"), header("--idempotency-key", key)?);
        }
        let body = Some(body.clone()).filter(|body| !body.is_empty());
        match self.client.request(method, target, body, headers).await {
            Ok(success) => Ok(accepted(success)),
            Err(ClientError::Refused(refusal)) => Ok(refused(*refusal)),
            Err(error) => Err(failed(&self.url, &error)),
        }
    }
}

/// Sends the file of an import to the link that the server gave for it.
pub(super) async fn upload(
    url: &str,
    import: &Value,
    file: &Path,
    sent: impl Fn(u64) + Send + 'static,
) -> Result<Reply, Failure> {
    let content_type = import["upload_headers"]["Content-Type"].as_str().unwrap_or("text/csv");
    let length = import["size_bytes"].as_u64().unwrap_or_default();
    match Client::upload(url, content_type, file, length, sent).await {
        Ok(success) => Ok(accepted(success)),
        Err(ClientError::Refused(refusal)) => Ok(refused(*refusal)),
        Err(error) => Err(not_uploaded(url, &error)),
    }
}

fn accepted(success: Success) -> Reply {
    let text = |name: HeaderName| success.headers.get(name).and_then(|value| value.to_str().ok());
    Reply {
        status: success.status,
        content_type: text(CONTENT_TYPE).map(ToOwned::to_owned),
        retry_after: None,
        replayed: text(HeaderName::from_static("idempotent-replayed")) == Some("true"),
        body: success.body,
    }
}

fn refused(refusal: Refusal) -> Reply {
    Reply {
        status: refusal.status,
        content_type: refusal.body.is_some().then(|| ops::operation::JSON.to_owned()),
        retry_after: refusal.retry_after.map(|seconds| seconds.to_string()),
        replayed: false,
        body: refusal.body.map(|body| body.to_string().into()).unwrap_or_default(),
    }
}

fn failed(url: &str, error: &ClientError) -> Failure {
    let (url, text) = (&*shown(url), Chain(error).to_string());
    match error {
        ClientError::Unreachable(_) => Failure::Unreachable(format!("{text}; {}", cure(url, &text))),
        error if error.is_unreachable() => Failure::Unreachable(format!("{url}: {text}")),
        ClientError::Url => Failure::Usage(format!("{url}: {text}")),
        _ => Failure::Usage(text),
    }
}

/// Explains why a file was not sent. The link is a credential, so only its scheme and host are shown.
fn not_uploaded(link: &str, error: &ClientError) -> Failure {
    let (shown, text) = (shown(link), Chain(error).to_string());
    let host_at = shown.find("://").map_or(0, |at| at + "://".len());
    let end = shown[host_at..].find('/').map_or(shown.len(), |at| host_at + at);
    let text = format!(
        "the file was not sent to {}: {text}; the server names this address for files: its `public_url`, or the bucket \
         of `blobs`, has to be reached from here",
        &shown[..end]
    );
    match error {
        error if error.is_unreachable() => Failure::Unreachable(text),
        _ => Failure::Usage(text),
    }
}

/// A URL without parts that may be secret: user, password and query.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + "://".len()));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}{host}{path}")
}

/// Advice if a server cannot be reached.
fn cure(url: &str, why: &str) -> String {
    let other = |from, to| url.replacen(from, to, 1);
    // Errors of a TLS library that reads HTTP, and of an HTTP library that reads TLS.
    if url.starts_with("https:") && why.contains("InvalidContentType") {
        return format!("at {url} is a server without TLS: try {}", other("https:", "http:"));
    }
    if url.starts_with("http:") && why.contains("invalid HTTP version") {
        return format!("at {url} is no server that speaks HTTP without TLS: try {}", other("http:", "https:"));
    }
    format!("is a server running at {url}? The address is that of --url, MESSAGING_URL or `messaging login`")
}

fn header(flag: &str, text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::try_from(text)
        .map_err(|_| Failure::usage(format!("{flag} has characters that are not allowed in a header")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_no_secrets_of_urls() {
        for (url, expected) in [
            ("https://ann:pass@mail.example.com:8443/v1", "https://mail.example.com:8443/v1"),
            ("http://a@b@mail.example.com", "http://mail.example.com"),
            ("ann:pass@mail.example.com/v1?token=s3cret#x", "mail.example.com/v1"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
            ("", ""),
        ] {
            assert_eq!(shown(url), expected);
        }
        let link = "https://ann:pass@files.example.com/uploads/s3cret?signature=s3cret";
        for error in [ClientError::TimedOut, ClientError::Url, ClientError::Unreachable("refused".into())] {
            let text = not_uploaded(link, &error).to_string();
            assert!(text.contains("https://files.example.com: ") && text.contains("public_url"), "{text}");
            assert!(!text.contains("s3cret") && !text.contains("pass"), "{text}");
            assert!(!failed(link, &error).to_string().contains("pass"));
        }
    }
}
