use http::header::{AUTHORIZATION, HeaderValue};
use messaging_core::ports::fetch::{Fetch as _, FetchError};
use messaging_testing::Answer;

use super::{PUBLIC, Public, request};

fn to(status: u16, location: &str) -> Answer {
    Answer::Headers(status, vec![("Location", location.to_owned())], String::new())
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_allowed() {
    let public = Public::start().await;
    public.server.at("/a", to(302, "/b"));
    public.server.at("/b", to(308, "https://acme.test/c?d=1"));
    public.server.at("/c?d=1", Answer::Status(200, "there".to_owned()));
    let mut asked = request("https://acme.test/a");
    asked.redirects = 2;
    let fetched = public.fetch.fetch(asked.clone()).await.unwrap();
    assert_eq!((fetched.url.as_str(), &fetched.body[..]), ("https://acme.test/c?d=1", &b"there"[..]));
    let methods: Vec<_> = public.server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["POST", "GET", "GET"]);
    asked.redirects = 1;
    assert_eq!(public.fetch.fetch(asked).await.unwrap_err(), FetchError::Redirects);
}

#[tokio::test]
async fn a_redirect_is_judged_like_a_first_address() {
    let public = Public::start().await;
    public.dns.addresses("inside.test", &["10.0.0.1".parse().unwrap()]);
    for location in [
        "http://acme.test/",
        "https://127.0.0.1/",
        "//2130706433/",
        "https://@acme.test/",
        "https://user@acme.test/",
        "https://inside.test/",
        "file:///etc/passwd",
    ] {
        public.server.next(to(302, location));
        let mut request = request("https://acme.test/");
        request.redirects = 3;
        assert_eq!(public.fetch.fetch(request).await.unwrap_err(), FetchError::Blocked, "{location}");
    }
    assert_eq!(public.server.requests().len(), 7);
}

#[tokio::test]
async fn credentials_stay_with_their_host() {
    let public = Public::start().await;
    public.dns.addresses("other.test", &[PUBLIC.parse().unwrap()]);
    public.server.at("/a", to(307, "/b"));
    public.server.at("/b", to(307, "https://other.test/c"));
    let mut request = request("https://acme.test/a");
    request.headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
    request.redirects = 3;
    public.fetch.fetch(request).await.unwrap();
    let requests = public.server.requests();
    let shown: Vec<_> = requests.iter().map(|request| request.headers.contains_key("authorization")).collect();
    assert_eq!(shown, [true, true, false]);
    assert!(requests.iter().all(|request| request.method == "POST" && request.body == b"{}"));
}

#[tokio::test]
async fn a_redirect_without_a_destination_is_an_answer() {
    let public = Public::start().await;
    public.server.next(Answer::status(302));
    let mut request = request("https://acme.test/");
    request.redirects = 3;
    assert_eq!(public.fetch.fetch(request).await.unwrap().status.as_u16(), 302);
}
