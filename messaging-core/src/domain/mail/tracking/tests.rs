use html5gum::{DefaultEmitter, Token, Tokenizer};
use proptest::prelude::*;

use super::*;
use crate::domain::mail::sending_domain::Check;
use crate::time::Timestamp;

const BASE: &str = "https://links.acme.com";

fn key() -> LinkKey {
    LinkKey::new(&[7; 32])
}

fn links(key: &LinkKey) -> Links<'_> {
    Links {
        key,
        base: BASE,
        workspace: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        message: "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap(),
        open: true,
        click: true,
    }
}

/// The rewritten text with redirects shown as `[target]` and the pixel as `[pixel]`.
fn shown(html: &str, links: &Links<'_>) -> String {
    let tracked = track(html, links);
    let mut text = tracked.html.replace(&links.pixel(), "[pixel]");
    for url in &tracked.urls {
        text = text.replace(&links.click_url(UrlKey::of(url), None), &format!("[{url}]"));
    }
    text
}

/// Checks how links are rewritten, without the pixel.
#[track_caller]
fn check(html: &str, expected: &str) {
    let key = key();
    assert_eq!(shown(html, &Links { open: false, ..links(&key) }), expected);
}

/// Checks that nothing is redirected.
#[track_caller]
fn check_untouched(html: &str) {
    check(html, html);
}

/// Checks where the tracking pixel is inserted, with links left as they are.
#[track_caller]
fn check_pixel(html: &str, expected: &str) {
    let key = key();
    assert_eq!(shown(html, &Links { click: false, ..links(&key) }), expected);
}

#[test]
fn web_links_of_a_and_area_are_redirected() {
    check(r#"<a href="https://a.co/x">x</a>"#, r#"<a href="[https://a.co/x]">x</a>"#);
    check("<a href='http://a.co'>x</a>", "<a href='[http://a.co]'>x</a>");
    check("<a href=https://a.co/x>x</a>", r#"<a href="[https://a.co/x]">x</a>"#);
    check("<a href=https://a.co/ title=x>x</a>", r#"<a href="[https://a.co/]" title=x>x</a>"#);
    check("<a href=https://a.co/\n>x</a>", "<a href=\"[https://a.co/]\"\n>x</a>");
    check("<A HREF=\"HTTPS://A.co\">x</A>", "<A HREF=\"[HTTPS://A.co]\">x</A>");
    check(
        "<a\r\n  class='b'\r\n  href = \r\n \"https://a.co\"\r\n>",
        "<a\r\n  class='b'\r\n  href = \r\n \"[https://a.co]\"\r\n>",
    );
    check(
        r#"<map><area shape="rect" href="https://a.co/"/></map>"#,
        r#"<map><area shape="rect" href="[https://a.co/]"/></map>"#,
    );
    check(
        r#"ü<b title="ä">ö</b><a href="https://a.co/ü">é</a>"#,
        r#"ü<b title="ä">ö</b><a href="[https://a.co/ü]">é</a>"#,
    );
    check(
        r#"<a class=x href="https://a.co" id=y><img src="https://a.co/i.png"></a>"#,
        r#"<a class=x href="[https://a.co]" id=y><img src="https://a.co/i.png"></a>"#,
    );
}

#[test]
fn targets_are_what_a_browser_reads() {
    check(r#"<a href="https://a.co/?a=1&amp;b=2&copy=3">x</a>"#, r#"<a href="[https://a.co/?a=1&b=2&copy=3]">x</a>"#);
    check("<a href=https&#58;//a.co>x</a>", r#"<a href="[https://a.co]">x</a>"#);
    check("<a href=\"&#104;ttps://a.co/&quot;\">x</a>", "<a href=\"[https://a.co/\"]\">x</a>");
    check("<a href=\"  https://a.co/\n  x \">x</a>", r#"<a href="[https://a.co/  x]">x</a>"#);
    // Only the first of a name counts.
    check(
        r#"<a href="https://a.co" href="https://b.co">x</a>"#,
        r#"<a href="[https://a.co]" href="https://b.co">x</a>"#,
    );
    check(r#"<a href="" href="https://b.co">x</a>"#, r#"<a href="" href="https://b.co">x</a>"#);
    check(r#"<a href href="https://b.co">x</a>"#, r#"<a href href="https://b.co">x</a>"#);
}

#[test]
fn other_links_stay() {
    for html in [
        r#"<a href="mailto:a@b.co">x</a>"#,
        r#"<a href="tel:+1">x</a>"#,
        r##"<a href="#top">x</a>"##,
        r#"<a href="/relative">x</a>"#,
        r#"<a href="//a.co">x</a>"#,
        r#"<a href="ftp://a.co">x</a>"#,
        r#"<a href="httpsx://a.co">x</a>"#,
        r#"<a href="https:a.co">x</a>"#,
        r#"<a href="https://">x</a>"#,
        r#"<a href="https:///a">x</a>"#,
        r#"<a href="javascript:https://a.co">x</a>"#,
        r#"<a href="https://a.co/&#1;x">x</a>"#,
        r#"<a name="https://a.co">x</a>"#,
        r#"<link href="https://a.co/style.css">"#,
        r#"<base href="https://a.co/">"#,
        r#"<a data-no-track href="https://a.co">x</a>"#,
        r#"<a href="https://a.co" DATA-NO-TRACK>x</a>"#,
        r#"<a href="https://a.co" data-no-track="false">x</a>"#,
        r#"<abbr href="https://a.co">x</abbr>"#,
        r#"https://a.co &lt;a href="https://a.co"&gt;"#,
        "",
        "plain text",
    ] {
        check_untouched(html);
    }
    let long = format!(r#"<a href="https://a.co/{}">x</a>"#, "x".repeat(MAX_URL));
    check_untouched(&long);
}

#[test]
fn what_is_no_markup_stays() {
    for html in [
        r#"<!-- <a href="https://a.co">x</a> -->"#,
        r#"<!--[if mso]><v:roundrect href="https://a.co"><a href="https://a.co">x</a></v:roundrect><![endif]-->"#,
        r#"<script>var a = '<a href="https://a.co">';</script>"#,
        r#"<style>a[href="https://a.co"]{} /* <a href="https://a.co"> */</style>"#,
        r#"<textarea><a href="https://a.co">x</a></textarea>"#,
        r#"<title><a href="https://a.co">x</a></title>"#,
        r#"<p title='<a href="https://a.co">'>x</p>"#,
        r#"</a href="https://a.co">"#,
    ] {
        check_untouched(html);
    }
    check(
        r#"<!--[if !mso]><!--><a href="https://a.co">x</a><!--<![endif]-->"#,
        r#"<!--[if !mso]><!--><a href="[https://a.co]">x</a><!--<![endif]-->"#,
    );
    check(
        r#"<![if !mso]><a href="https://a.co">x</a><![endif]>"#,
        r#"<![if !mso]><a href="[https://a.co]">x</a><![endif]>"#,
    );
}

#[test]
fn broken_markup_is_left_as_it_is() {
    for html in
        ["<a href=\"https://a.co", "<a href=\"https://a.co\"", "<a href=https://a.co", "<a href", "<", "</", "<a "]
    {
        check_untouched(html);
    }
    check(r#"<a href="https://a.co"title=x>x"#, r#"<a href="[https://a.co]"title=x>x"#);
    check(r#"<a / href="https://a.co">"#, r#"<a / href="[https://a.co]">"#);
    check(r#"<<a href="https://a.co">>"#, r#"<<a href="[https://a.co]">>"#);
    check(r#"<a href=https://a.co"'>x"#, r#"<a href="[https://a.co"']">x"#);
    check(r#"<td><a href="https://a.co"><b></td>"#, r#"<td><a href="[https://a.co]"><b></td>"#);
}

#[test]
fn unsubscribe_links_stay_under_each_of_our_names() {
    let key = key();
    let own = links(&key).unsubscribe_url();
    assert!(own.starts_with("https://links.acme.com/u/"), "{own}");
    let elsewhere = own.replace(BASE, "https://mail.service.example");
    check_untouched(&format!(r#"<a href="{own}">x</a><a href={elsewhere}>y</a>"#));
    check("<a href=https://links.acme.com/users>", r#"<a href="[https://links.acme.com/users]">"#);
    check("<a href=https://other.co/u/abc>", r#"<a href="[https://other.co/u/abc]">"#);
}

#[test]
fn the_pixel_stands_before_the_end_of_the_body() {
    check_pixel("<html><body><p>x</p></body></html>", "<html><body><p>x</p>[pixel]</body></html>");
    check_pixel("<p>x</p></BODY\n >", "<p>x</p>[pixel]</BODY\n >");
    check_pixel("<p>x", "<p>x[pixel]");
    check_pixel("", "[pixel]");
    check_pixel("a</body>b</body>c", "a</body>b[pixel]</body>c");
    check_pixel("<!-- </body> --><script>'</body>'</script>x", "<!-- </body> --><script>'</body>'</script>x[pixel]");
    // If the end would swallow the pixel, it goes before the unfinished construct.
    check_pixel("<p>x</p>y<!-- z", "<p>x</p>[pixel]y<!-- z");
    check_pixel("<p>x</p><style>y", "<p>x</p>[pixel]<style>y");
    check_pixel("<p>x</p><a href='y", "<p>x</p>[pixel]<a href='y");
    check_pixel("<p>x</p><!y", "<p>x</p>[pixel]<!y");
    check_pixel("x</", "[pixel]x</");
    check_pixel("<p>x<!-- y -->", "<p>x<!-- y -->[pixel]");
}

#[test]
fn every_target_is_named_once_and_the_number_of_links_is_bounded() {
    let key = key();
    let html = r#"<a href="https://a.co">1</a><a href="https://b.co">2</a><a href="https://a.co">3</a>"#;
    assert_eq!(track(html, &links(&key)).urls, ["https://a.co", "https://b.co"]);
    let many: String = (0..=MAX_LINKS).map(|n| format!(r#"<a href="https://a.co/{n}">x</a>"#)).collect();
    let tracked = track(&many, &links(&key));
    assert_eq!(tracked.urls.len(), MAX_LINKS);
    assert!(tracked.html.contains(&format!(r#"<a href="https://a.co/{MAX_LINKS}">"#)));
}

#[test]
fn nothing_is_touched_where_nothing_is_tracked() {
    let key = key();
    let html = r#"<a href="https://a.co">x</a></body>"#;
    let tracked = track(html, &Links { open: false, click: false, ..links(&key) });
    assert_eq!(tracked, Tracked { html: html.to_owned(), urls: Vec::new() });
}

#[test]
fn tokens_hold_neither_address_nor_url_and_lead_back() {
    let key = key();
    let tracked = track(r#"<a href="https://a.co/ann@example.com">x</a>"#, &links(&key));
    let token = tracked.html.split(CLICK_PATH).nth(1).unwrap().split('"').next().unwrap();
    let link = Link::Click(UrlKey::of(&tracked.urls[0]), None);
    assert_eq!(key.read_link(token), Some((links(&key).workspace, links(&key).message, link)));
    assert!(!tracked.html.contains("a.co") && !tracked.html.contains("ann"), "{}", tracked.html);
}

#[test]
fn a_base_with_special_characters_stays_one_attribute() {
    let key = key();
    let odd = Links { base: "http://h/\"><'&", ..links(&key) };
    let tracked = track("<a href='https://a.co'>x</a>", &odd);
    let tags: Vec<_> = tokens(&tracked.html).into_iter().filter(|token| matches!(token, Token::StartTag(_))).collect();
    assert_eq!(tags.len(), 2, "{}", tracked.html);
}

#[test]
fn the_host_is_the_tracking_sub_domain_once_it_leads_here() {
    let domain = |tracking: Option<&str>, status| SendingDomain {
        tracking_subdomain: tracking.map(ToOwned::to_owned),
        tracking: Check { status, detail: None },
        ..SendingDomain::new(
            "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            "acme.com",
            Timestamp::from_millis(0),
        )
    };
    let verified = domain(Some("links.acme.com"), RecordStatus::Verified);
    assert_eq!(base(Some(&verified), "https://m.example/"), "https://links.acme.com");
    assert_eq!(base(Some(&verified), "http://127.0.0.1:8080"), "http://links.acme.com:8080");
    assert_eq!(base(Some(&verified), "http://[::1]:8080/x"), "http://links.acme.com:8080");
    assert_eq!(base(Some(&verified), "http://[::1]"), "http://links.acme.com");
    let pending = domain(Some("links.acme.com"), RecordStatus::Pending);
    let none = domain(None, RecordStatus::Verified);
    for other in [Some(&pending), Some(&none), None] {
        assert_eq!(base(other, "https://m.example/x/"), "https://m.example/x");
    }
}

/// Returns every token, with adjacent texts joined, and without errors.
fn tokens(html: &str) -> Vec<Token> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut tokens: Vec<Token> = Vec::new();
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match (tokens.last_mut(), token) {
            (_, Token::Error(_)) => {}
            (Some(Token::String(text)), Token::String(more)) => text.extend(more.iter()),
            (_, token) => tokens.push(token),
        }
    }
    tokens
}

/// Returns the tokens without the pixel and with the redirects undone.
fn restored(tracked: &Tracked, links: &Links<'_>) -> Vec<Token> {
    let back = |href: &[u8]| {
        let token = std::str::from_utf8(href).ok()?.strip_prefix(BASE)?.strip_prefix(CLICK_PATH)?;
        let (_, _, Link::Click(key, _)) = links.key.read_link(token)? else { return None };
        tracked.urls.iter().find(|url| UrlKey::of(url) == key)
    };
    let mut pixels = 0;
    let mut restored: Vec<Token> = Vec::new();
    for mut token in tokens(&tracked.html) {
        if let Token::StartTag(tag) = &mut token {
            if tag
                .attributes
                .get(&b"src"[..])
                .is_some_and(|source| source.starts_with(format!("{BASE}{OPEN_PATH}").as_bytes()))
            {
                pixels += 1;
                continue;
            }
            if let Some(href) = tag.attributes.get_mut(&b"href"[..])
                && let Some(url) = back(href)
            {
                href.clear();
                href.extend(url.bytes());
            }
        }
        match (restored.last_mut(), token) {
            (Some(Token::String(text)), Token::String(more)) => text.extend(more.iter()),
            (_, token) => restored.push(token),
        }
    }
    assert_eq!(pixels, 1, "{}", tracked.html);
    restored
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "<a", "<A ", "<area", "<p>", "</a>", "</body>", "<body>", " href", " HREF=", "href=\"", "href='", "=", "\"", "'",
            ">", "/>", " ", "\r\n", "\n", "\r", "\t", "https://a.co/", "http://b.co?x=1&amp;y=2", "&quot;", "&#x3c;", "&", "&am",
            "<!--", "-->", "--!>", "<!", "<!doctype html>", "<?xml", "<![CDATA[", "]]>", "<style>", "</style>", "<script>",
            "</script>", "<!--<script>", "<title>", "</title>", "<textarea>", "</textarea>", "<plaintext>", " data-no-track",
            "mailto:a@b.co", "ü", "\u{feff}", "\0", "<", "</", "x", "<noscript>", "</noscript>", "<svg>",
        ]).prop_map(ToOwned::to_owned),
        2 => "<a( [a-z]{1,4}='[^']{0,5}')? href=(\"https://[a-z]{1,3}[^\"]{0,9}\"|'http://[a-z][^']{0,9}'|https://[a-z/&;#]{1,9})( data-no-track)?>",
        1 => "\\PC{0,12}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Links of a campaign without pixel, redirects shown as `[target]`.
#[track_caller]
fn check_campaign(html: &str, click: bool, expected: &str) {
    let key = key();
    let links = Links { open: false, click, ..links(&key) };
    let utm = Utm { source: Some("news".to_owned()), ..Utm::default() };
    let tracked = rewrite(html, &links, Campaigned { utm: Some(&utm), numbers: &[] });
    let redirect =
        |text: String, url: &String| text.replace(&links.click_url(UrlKey::of(url), None), &format!("[{url}]"));
    assert_eq!(tracked.urls.iter().fold(tracked.html.clone(), redirect), expected);
}

#[test]
fn parameters_of_a_campaign_are_added_in_the_same_pass() {
    let html = r#"<a href="https://a.co/?x=1&amp;y#f">x</a>"#;
    check_campaign(html, true, r#"<a href="[https://a.co/?x=1&y&utm_source=news#f]">x</a>"#);
    check_campaign(html, false, r#"<a href="https://a.co/?x=1&amp;y&amp;utm_source=news#f">x</a>"#);
    check_campaign("<a href=https://a.co>x</a>", false, r#"<a href="https://a.co?utm_source=news">x</a>"#);
    // No redirect was asked for; parameters are none.
    let untracked = r#"<a data-no-track href="https://a.co">x</a>"#;
    check_campaign(untracked, true, r#"<a data-no-track href="https://a.co?utm_source=news">x</a>"#);
    for same in [
        r#"<a data-no-track href="https://a.co?utm_source=own">x</a>"#,
        r#"<a href="mailto:a@b.co">x</a>"#,
        r#"<img src="https://a.co/i.png">"#,
        "<p>https://a.co</p>",
    ] {
        check_campaign(same, true, same);
        check_campaign(same, false, same);
    }
    let key = key();
    let own = format!("<a href=\"{}\">stop</a>", links(&key).unsubscribe_url());
    check_campaign(&own, true, &own);
    // Too long with them to be redirected.
    let long = format!("https://a.co/{}", "x".repeat(MAX_URL - 20));
    check_campaign(&format!("<a href=\"{long}\">"), true, &format!("<a href=\"{long}?utm_source=news\">"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn everything_but_links_and_pixel_stays(html in pieces()) {
        let key = key();
        let links = links(&key);
        let tracked = track(&html, &links);
        let mut original = tokens(&html);
        // A redirected link leads where a browser would have gone: the target without spaces around it.
        for (token, restored) in original.iter_mut().zip(restored(&tracked, &links)) {
            if let (Token::StartTag(tag), Token::StartTag(restored)) = (token, restored)
                && let Some(href) = tag.attributes.get_mut(&b"href"[..])
                && let Some(after) = restored.attributes.get(&b"href"[..])
                && trimmed(&String::from_utf8_lossy(href)).as_bytes() == ***after
            {
                **href = (**after).clone();
            }
        }
        prop_assert_eq!(restored(&tracked, &links), original, "{}", tracked.html);
    }

    #[test]
    fn any_text_is_taken(html in "\\PC{0,200}") {
        let key = key();
        let _ = track(&html, &links(&key));
    }
}
