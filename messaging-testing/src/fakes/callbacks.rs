//! Calls of a fake to the server under test.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{HOST, HeaderValue};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Position, Url};

use super::{CalledBack, FakeApi, FakeCallback, Order, Report, Signature, Submission};

/// Time limit for the answer to a call.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Maximum octets of an answer that are read.
const BODY_LIMIT: usize = 64 << 10;

/// Octets by which a call exceeds the size that any server reads (3 MiB).
const PADDING: usize = (3 << 20) + 1;

/// Returns the calls that report about a message.
pub(super) fn planned(
    api: &dyn FakeApi,
    submission: &Submission,
    reports: &[Report],
    order: Order,
) -> Vec<FakeCallback> {
    let signature = match order {
        Order::Forged => Signature::Forged,
        Order::Unsigned => Signature::Missing,
        Order::OldSecret => Signature::OldSecret,
        _ => Signature::Valid,
    };
    let of = |submission: &Submission, report: Report| api.report(&[(submission.clone(), report)], signature);
    let mut calls: Vec<_> = reports.iter().filter_map(|report| of(submission, *report)).collect();
    match order {
        Order::Reversed => calls.reverse(),
        Order::Twice => calls = calls.into_iter().flat_map(|call| [call.clone(), call]).collect(),
        Order::Unknown => {
            let mut unknown = submission.clone();
            unknown.id.insert(0, '9');
            unknown.reference = None;
            calls.splice(..0, reports.first().and_then(|report| of(&unknown, *report)));
        }
        Order::Batched => {
            let all: Vec<_> = reports.iter().map(|report| (submission.clone(), *report)).collect();
            if let Some(call) = api.report(&all, signature) {
                calls = vec![call];
            }
        }
        Order::Large => {
            for call in &mut calls {
                let mut body = call.body.to_vec();
                body.resize(body.len() + PADDING, b' ');
                call.body = body.into();
            }
        }
        Order::InOrder | Order::BeforeAnswer | Order::Forged | Order::Unsigned | Order::OldSecret => {}
    }
    calls
}

/// A server that is called directly, past its proxy.
#[derive(Debug, Clone)]
pub(super) struct Shortcut {
    /// Beginning of the URLs of calls to it.
    pub(super) base: String,
    /// The address that the server listens at.
    pub(super) address: SocketAddr,
}

impl Shortcut {
    /// Returns the request target for a call to this URL; `None` if the URL is not the server's.
    fn target<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(&self.base).filter(|rest| rest.starts_with('/'))
    }
}

/// Makes a call.
pub(super) async fn call(callback: FakeCallback, shortcut: Option<&Shortcut>) -> CalledBack {
    let answer = timeout(TIME_LIMIT, exchange(&callback, shortcut)).await;
    match answer {
        Ok(Ok((status, body))) => CalledBack { callback, status: Some(status), body },
        _ => CalledBack { callback, status: None, body: Bytes::new() },
    }
}

async fn exchange(callback: &FakeCallback, shortcut: Option<&Shortcut>) -> io::Result<(http::StatusCode, Bytes)> {
    let url = Url::parse(&callback.url).map_err(io::Error::other)?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(io::Error::other("a URL without a host"));
    };
    let straight = shortcut.and_then(|shortcut| Some((shortcut.address, shortcut.target(&callback.url)?)));
    let (stream, target) = if let Some((address, target)) = straight {
        (TcpStream::connect(address).await?, target)
    } else {
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        (stream, &url[Position::BeforePath..Position::AfterQuery])
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let mut request = Request::builder().method(&callback.method).uri(target);
    for (name, value) in &callback.headers {
        request = request.header(*name, value);
    }
    let mut request = request.body(Full::new(callback.body.clone())).map_err(io::Error::other)?;
    let authority = HeaderValue::try_from(format!("{host}:{port}")).map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, authority);
    let answer = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map(http_body_util::Collected::to_bytes);
        Ok((head.status, body.unwrap_or_default()))
    };
    tokio::pin!(answer, connection);
    tokio::select! {
        answer = &mut answer => answer,
        // The connection may end first, with the answer already there.
        _ = &mut connection => answer.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_server_take_the_shortcut() {
        let shortcut = Shortcut { base: "https://a.example/m".to_owned(), address: ([127, 0, 0, 1], 1).into() };
        for (url, target) in [
            ("https://a.example/m/callbacks/sms/t?a=b", Some("/callbacks/sms/t?a=b")),
            ("https://a.example/m2/callbacks/sms/t", None),
            ("https://a.example/callbacks/sms/t", None),
            ("https://b.example/m/callbacks/sms/t", None),
        ] {
            assert_eq!(shortcut.target(url), target, "{url}");
        }
    }
}
