use std::time::Duration;

use http::StatusCode;
use messaging_core::ports::fetch::{Fetch as _, FetchError};
use messaging_testing::Answer;

use super::{Bed, request};

#[tokio::test]
async fn an_answer_is_read_whole_and_the_connection_used_again() {
    let bed = Bed::start().await;
    bed.server.always(Answer::Headers(202, vec![("X-Thing", "1".to_owned())], "thanks".to_owned()));
    for _ in 0..3 {
        let fetched = bed.fetch().await.unwrap();
        assert_eq!(
            (fetched.status, &fetched.body[..], fetched.truncated),
            (StatusCode::ACCEPTED, &b"thanks"[..], false)
        );
        assert_eq!(fetched.headers["x-thing"], "1");
    }
    let requests = bed.server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.connection == 1 && request.body == b"{}"));
    assert_eq!(requests[0].header("host"), bed.server.address().to_string());
    assert!(requests[0].header("user-agent").starts_with("messaging/"));
}

#[tokio::test]
async fn any_status_is_an_answer() {
    let bed = Bed::start().await;
    for status in [200, 204, 301, 302, 400, 410, 429, 500, 503] {
        bed.server.next(Answer::status(status));
        assert_eq!(bed.fetch().await.unwrap().status.as_u16(), status);
    }
    assert_eq!(bed.server.requests().len(), 9, "no redirect is followed");
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    let bed = Bed::start().await;
    bed.server.next(Answer::Endless);
    let fetched = bed.fetch().await.unwrap();
    assert_eq!((fetched.status, fetched.body.len(), fetched.truncated), (StatusCode::OK, 4096, true));
    bed.server.next(Answer::Status(200, "x".repeat(4096)));
    let fetched = bed.fetch().await.unwrap();
    assert_eq!((fetched.body.len(), fetched.truncated), (4096, false));
    let requests = bed.server.requests();
    assert_ne!(requests[0].connection, requests[1].connection);
}

#[tokio::test]
async fn silence_and_dripping_end_in_time() {
    let bed = Bed::start().await;
    let body = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".iter().copied().chain([b'x'; 500]).collect();
    for answer in [
        Answer::Silence,
        Answer::Drip(b"HTTP/1.1 200 OK\r\nX: ".iter().copied().chain([b'x'; 500]).collect()),
        Answer::Drip(body),
    ] {
        bed.server.next(answer);
        let mut request = request(&bed.server.url("/hook"));
        request.time_limit = Duration::from_secs(1);
        assert_eq!(bed.fetch.fetch(request).await.unwrap_err(), FetchError::NoAnswer);
    }
}

#[tokio::test]
async fn broken_connections_are_told() {
    let bed = Bed::start().await;
    for answer in [
        Answer::Raw(Vec::new()),
        Answer::Reset(Vec::new()),
        Answer::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()),
        Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()),
        Answer::Raw(b"220 mail.test ESMTP\r\n".to_vec()),
        Answer::Raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000)).into_bytes()),
    ] {
        bed.server.next(answer);
        assert_eq!(bed.fetch().await.unwrap_err(), FetchError::Lost);
    }
    let url = bed.server.url("/hook");
    let Bed { server, fetch } = bed;
    drop(server);
    assert_eq!(fetch.fetch(request(&url)).await.unwrap_err(), FetchError::Connection, "nobody listens");
}

#[tokio::test]
async fn old_and_odd_servers_are_understood() {
    let bed = Bed::start().await;
    for (octets, body) in [
        (&b"HTTP/1.0 200 OK\r\n\r\nold"[..], &b"old"[..]),
        (b"HTTP/1.1 200 OK\r\nContent-Type: image/png; charset=\xff\r\nConnection: close\r\n\r\nodd", b"odd"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc"),
    ] {
        bed.server.next(Answer::Raw(octets.to_vec()));
        assert_eq!(&bed.fetch().await.unwrap().body[..], body);
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let bed = Bed::start().await;
    bed.server.next(Answer::Status(200, "1".to_owned()));
    bed.fetch().await.unwrap();
    bed.server.next(Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2".to_vec()));
    bed.fetch().await.unwrap();
    // The peer said nothing about closing and did so; sooner or later the client sees it.
    for _ in 0..3 {
        if bed.fetch().await.is_ok() {
            break;
        }
    }
    assert_eq!(bed.server.requests().last().unwrap().connection, 2);
}
