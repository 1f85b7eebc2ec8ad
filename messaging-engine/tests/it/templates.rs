//! Contract section 11: templates.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use messaging_engine::caller::Caller;
use messaging_engine::work::sweep::sweep;
use serde_json::{Value, json};

use crate::bed::{Bed, Reply};

fn id(reply: &Reply) -> String {
    reply["id"].as_str().unwrap().to_owned()
}

/// An email template with everything set.
fn order() -> Value {
    json!({"name": "Order", "channel": "email", "subject": "Order {{order.id}}", "preheader": "Thanks {{ name }}",
        "from_name": "Acme", "from_email": "shop@mail.acme.com", "reply_to": "help@acme.com",
        "html": "<p>Hi {{ contact.attributes.first_name | default('there') }}, {{ order.id }} {{ note }}</p>",
        "text": null, "variables": ["order.id", "shop"]})
}

#[tokio::test]
async fn a_template_is_created_changed_shown_and_deleted() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let created = bed.post(&owner, &templates, order()).await;
    assert_eq!(created.summary(), "201");
    let mut expected = order();
    for (name, value) in json!({"id": created["id"], "mjml": null, "variables": ["order.id", "shop", "name", "note"], "text": null,
        "version": 1, "inline_css": true, "warnings": [
            {"code": "undeclared_variable", "message": "used but not declared: name, note"},
            {"code": "no_unsubscribe_link", "message": "there is no unsubscribe_url; a template that is used for marketing needs one"}],
        "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"})
    .as_object()
    .unwrap()
    {
        expected[name] = value.clone();
    }
    assert_eq!(created.body, expected);
    let path = format!("{templates}/{}", id(&created));
    assert_eq!(bed.get(&owner, &path).await.body, expected);

    bed.clock.advance(Duration::from_secs(5));
    let same =
        bed.patch(&owner, &path, json!({"name": "Order", "channel": "email", "subject": "Order {{order.id}}"})).await;
    assert_eq!(same.body, expected, "what changes nothing makes no version");
    let sent_back = bed.patch(&owner, &path, expected.clone()).await;
    assert_eq!(sent_back.body, expected, "what was shown changes nothing");
    let changed = json!({"name": "Order", "channel": "email", "subject": "Now {{order.id}}", "variables": null, "preheader": null});
    let changed = bed.patch(&owner, &path, changed).await;
    assert_eq!(
        (&changed["version"], &changed["subject"], &changed["preheader"]),
        (&json!(2), &json!("Now {{order.id}}"), &json!(null))
    );
    assert_eq!(changed["variables"], json!(["order.id", "note"]));
    assert_eq!(changed["html"], expected["html"]);
    assert_eq!(changed["updated_at"], "2026-01-31T09:15:05.000Z");

    let versions = bed.get(&owner, &format!("{path}/versions")).await;
    let first = json!({"version": 1, "name": "Order", "subject": "Order {{order.id}}",
        "created_at": "2026-01-31T09:15:00.000Z", "reverted_from": null});
    let second = json!({"version": 2, "name": "Order", "subject": "Now {{order.id}}",
        "created_at": "2026-01-31T09:15:05.000Z", "reverted_from": null});
    assert_eq!(versions.body, json!({"data": [second, first], "next_cursor": null}));
    let reverted = bed.post(&owner, &format!("{path}/revert/1"), json!(null)).await;
    assert_eq!(
        (reverted.summary().as_str(), &reverted["result"], &reverted["version"]),
        ("200", &json!("reverted"), &json!(3))
    );
    assert_eq!((&reverted["subject"], &reverted["preheader"]), (&expected["subject"], &expected["preheader"]));
    let one = bed.get(&owner, &format!("{path}/versions?limit=1")).await;
    assert_eq!((&one["data"][0]["version"], &one["data"][0]["reverted_from"]), (&json!(3), &json!(1)));
    let next = format!("{path}/versions?limit=5&cursor={}", one["next_cursor"].as_str().unwrap());
    assert_eq!(bed.get(&owner, &next).await["data"].as_array().unwrap().len(), 2);
    for unknown in ["0", "4", "x", "-1", "99999999999"] {
        let reply = bed.post(&owner, &format!("{path}/revert/{unknown}"), json!(null)).await;
        assert_eq!(reply.summary(), "404 not_found", "{unknown}");
    }

    assert_eq!(bed.delete(&owner, &path).await.summary(), "204");
    for gone in [
        bed.get(&owner, &path).await,
        bed.delete(&owner, &path).await,
        bed.patch(&owner, &path, json!({"name": ""})).await,
        bed.get(&owner, &format!("{path}/versions")).await,
        bed.post(&owner, &format!("{path}/revert/1"), json!(null)).await,
        bed.post(&owner, &format!("{path}/preview"), json!({})).await,
    ] {
        assert_eq!(gone.summary(), "404 not_found");
    }
    assert_eq!(bed.get(&owner, &templates).await["data"], json!([]));
}

#[tokio::test]
async fn templates_are_listed_without_their_bodies() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let email = bed.post(&owner, &templates, order()).await;
    let sms = bed.post(&owner, &templates, json!({"name": "Code", "channel": "sms", "text": "{{ code }}"})).await;
    let listed = bed.get(&owner, &templates).await;
    let ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, [sms["id"].clone(), email["id"].clone()]);
    for item in listed["data"].as_array().unwrap() {
        for body in ["html", "mjml", "text"] {
            assert!(item.get(body).is_none(), "{item}");
        }
    }
    assert_eq!(listed["data"][0]["variables"], json!(["code"]));
    let only = bed.get(&owner, &format!("{templates}?channel=email")).await;
    assert_eq!(only["data"].as_array().unwrap().len(), 1);
    assert_eq!(only["data"][0]["id"], email["id"]);
    assert_eq!(bed.get(&owner, &format!("{templates}?channel=fax")).await.summary(), "422 channel unknown_value");
    assert_eq!(bed.get(&owner, &format!("{templates}?channel=push")).await["data"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_saved_is_refused_with_its_place() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let email = |member: &str, value: Value| {
        let mut body = json!({"name": "x", "channel": "email"});
        body[member] = value;
        body
    };
    for (body, expected) in [
        (json!({}), "422 /channel required /name required"),
        (json!({"name": "x", "channel": "fax"}), "422 /channel unknown_value"),
        (email("name", json!("x".repeat(201))), "422 /name too_long"),
        (email("subject", json!("x".repeat(999))), "422 /subject too_long"),
        (email("subject", json!("a\nb")), "422 /subject invalid_format"),
        (email("from_name", json!("x".repeat(129))), "422 /from_name too_long"),
        (email("from_email", json!("nobody")), "422 /from_email invalid_format"),
        (email("reply_to", json!("nobody")), "422 /reply_to invalid_format"),
        (email("from_email", json!("")), "422 /from_email invalid_format"),
        (email("reply_to", json!("")), "422 /reply_to invalid_format"),
        (email("html", json!("x".repeat((2 << 20) + 1))), "422 /html too_long"),
        (email("mjml", json!("x".repeat((512 << 10) + 1))), "422 /mjml too_long"),
        (email("html", json!(5)), "422 /html invalid_type"),
        (email("variables", json!(["a b"])), "422 /variables/0 invalid_format"),
        (email("subject", json!("{{ x")), "422 /subject syntax"),
        (email("preheader", json!("{% if %}")), "422 /preheader syntax"),
        (email("text", json!("{{ x | nosuch }}")), "422 /text syntax"),
        (email("html", json!("{% include 'x' %}")), "422 /html syntax"),
        (email("mjml", json!("<mjml><mj-body><mj-foo/></mj-body></mjml>")), "422 /mjml syntax"),
        (
            json!({"name": "x", "channel": "email", "subject": "{{", "html": "{% for %}"}),
            "422 /html syntax /subject syntax",
        ),
        (
            json!({"name": "x", "channel": "sms", "subject": "s", "html": "h", "preheader": "p", "from_email": "a@b.co", "mjml": "m"}),
            "422 /from_email not_allowed /html not_allowed /mjml not_allowed /preheader not_allowed /subject not_allowed",
        ),
    ] {
        assert_eq!(bed.post(&owner, &templates, body).await.summary(), expected);
    }
    let reply = bed.post(&owner, &templates, email("html", json!("<p>\n  {{ name }</p>"))).await;
    let error = &reply["error"]["details"]["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(11)));
    assert!(error["message"].as_str().unwrap().starts_with("line 2, column 11: "), "{error}");
    assert_eq!(bed.get(&owner, &templates).await["data"], json!([]), "nothing was kept");

    let created = bed.post(&owner, &templates, json!({"name": "Empty", "channel": "email"})).await;
    assert_eq!(created.summary(), "201", "empty bodies may be saved");
    let path = format!("{templates}/{}", id(&created));
    for (body, expected) in [
        (json!({}), "422 /channel required /name required"),
        (json!({"name": "x"}), "422 /channel required"),
        (json!({"name": "x", "channel": "sms"}), "422 /channel immutable"),
        (json!({"name": "x", "channel": "email", "html": "{{"}), "422 /html syntax"),
    ] {
        assert_eq!(bed.patch(&owner, &path, body).await.summary(), expected);
    }
    assert_eq!(bed.get(&owner, &path).await.body, created.body);
}

#[tokio::test]
async fn what_hurts_in_the_inbox_is_a_warning() {
    #[track_caller]
    fn check(reply: &Reply, expected: &[&str]) {
        let codes: Vec<_> =
            reply["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect();
        assert_eq!(codes, expected, "{}", reply["warnings"]);
    }
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let html = |html: &str| json!({"name": "x", "channel": "email", "subject": "s", "html": html});
    let link = "<a href=\"{{ unsubscribe_url }}\">stop</a>";
    check(&bed.post(&owner, &templates, html(&format!("<p>Hi</p>{link}"))).await, &[]);
    check(&bed.post(&owner, &templates, html("<p>Hi</p>")).await, &["no_unsubscribe_link"]);
    let images = format!("<p>Hi\n<img src=a>\n<img src=b alt=''></p>{link}");
    let images = bed.post(&owner, &templates, html(&images)).await;
    check(&images, &["image_without_alt"]);
    assert_eq!(images["warnings"][0]["message"], "images without alt in line 2");
    let nothing = "<img src=a alt=''><a href=\"{{ unsubscribe_url }}\"></a>".replace("</a>", "<b></b></a>");
    check(
        &bed.post(
            &owner,
            &templates,
            html(&nothing.replace("<a href=\"{{ unsubscribe_url }}\">", "{% if unsubscribe_url %}{% endif %}<i>")),
        )
        .await,
        &["no_text"],
    );
    check(
        &bed.post(&owner, &templates, html(&format!("{}{link}", "<p>x</p>".repeat(14_000)))).await,
        &["html_too_large"],
    );
    let style = format!("<style>p{{color:{{{{ c }}}}}}</style><p>x</p>{link}");
    check(&bed.post(&owner, &templates, html(&style)).await, &["css_not_inlined"]);
    let mjml = "<mjml nosuch=\"1\"><mj-body><mj-section><mj-column><mj-text>{{ unsubscribe_url }}</mj-text></mj-column></mj-section></mj-body></mjml>";
    check(
        &bed.post(&owner, &templates, json!({"name": "x", "channel": "email", "mjml": mjml})).await,
        &["mjml_attribute_ignored"],
    );
    check(&bed.post(&owner, &templates, json!({"name": "x", "channel": "sms", "text": "{{ a }}"})).await, &[]);
}

#[tokio::test]
async fn mjml_becomes_html_and_wins() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let mjml = "<mjml><mj-body><mj-section><mj-column><mj-text>Hi {{ name }}</mj-text></mj-column></mj-section></mj-body></mjml>";
    let created = bed
        .post(
            &owner,
            &templates,
            json!({"name": "x", "channel": "email", "subject": "s", "mjml": mjml, "html": "<p>other</p>"}),
        )
        .await;
    assert_eq!(created["mjml"], mjml);
    let html = created["html"].as_str().unwrap();
    assert!(html.contains("Hi {{ name }}") && html.contains("<table") && !html.contains("other"));
    let path = format!("{templates}/{}", id(&created));
    let base = json!({"name": "x", "channel": "email"});
    let with = |member: &str, value: Value| {
        let mut body = base.clone();
        body[member] = value;
        body
    };
    let ignored = bed.patch(&owner, &path, with("html", json!("<p>other</p>"))).await;
    assert_eq!((&ignored["html"], &ignored["version"]), (&created["html"], &json!(1)));
    let cleared = bed.patch(&owner, &path, with("mjml", json!(null))).await;
    assert_eq!((&cleared["mjml"], &cleared["html"], &cleared["version"]), (&json!(null), &created["html"], &json!(2)));
    let replaced = bed.patch(&owner, &path, with("html", json!("<p>{{ a }}</p>"))).await;
    assert_eq!((&replaced["html"], &replaced["variables"]), (&json!("<p>{{ a }}</p>"), &json!(["a"])));
}

#[tokio::test]
async fn a_preview_shows_what_would_be_sent() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let mut body = order();
    body["html"] = json!(
        "<style>p{color:red}</style><body class=a><p>Hi {{ contact.attributes.first_name | default('there') }}</p>{{ note }} {{ workspace.name }}</body>"
    );
    let template = bed.post(&owner, &templates, body).await;
    assert_eq!(
        template["html"],
        "<style>p{color:red}</style><body class=a><p>Hi {{ contact.attributes.first_name | default('there') }}</p>{{ note }} {{ workspace.name }}</body>"
    );
    let path = format!("{templates}/{}/preview", id(&template));
    let shown =
        bed.post(&owner, &path, json!({"variables": {"order": {"id": 17}, "note": "<b>", "name": "Ann & Bob"}})).await;
    assert_eq!(
        shown.body,
        json!({
        "subject": "Order 17", "preheader": "Thanks Ann & Bob",
        "html": "<style>p{color:red}</style><body class=a><div style=\"display:none;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all\">Thanks Ann &amp; Bob</div><p style=\"color: red;\">Hi there</p>&lt;b&gt; Acme</body>",
        "text": "Hi there\n\n<b> Acme\n", "missing_variables": ["shop"]})
    );
    let bare = bed.post(&owner, &path, json!({})).await;
    assert_eq!(
        (&bare["subject"], &bare["missing_variables"]),
        (&json!("Order"), &json!(["order.id", "shop", "name", "note"]))
    );

    let contact = json!({"email": "ann@example.com", "phone": "+14155550123", "attributes": {"first_name": "Ann", "note": "N", "shop": null}});
    let contact = bed.post(&owner, &format!("/workspaces/{workspace}/contacts"), contact).await;
    let shown = bed.post(&owner, &path, json!({"contact_id": contact["id"]})).await;
    assert!(shown["html"].as_str().unwrap().contains("Hi Ann</p>N Acme"), "{}", shown["html"]);
    assert_eq!(shown["missing_variables"], json!(["order.id", "shop", "name"]));
    for unknown in ["con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "nonsense"] {
        let reply = bed.post(&owner, &path, json!({"contact_id": unknown})).await;
        assert_eq!(reply.summary(), "422 /contact_id not_found");
    }
    let personal =
        json!({"name": "p", "channel": "sms", "text": "{{ contact.email }} {{ contact.phone }} {{ contact.id }}"});
    let personal = format!("{templates}/{}/preview", id(&bed.post(&owner, &templates, personal).await));
    let clear = bed.post(&owner, &personal, json!({"contact_id": contact["id"]})).await;
    assert_eq!(clear["text"], format!("ann@example.com +14155550123 {}", id(&contact)));
    let key: Caller = bed.key(workspace, &["templates:read"]).await;
    let masked = bed.post(&key, &personal, json!({"contact_id": contact["id"]})).await;
    assert_eq!(masked["text"], format!("a***@example.com +*******0123 {}", id(&contact)));
}

#[tokio::test]
async fn a_preview_shows_what_is_not_saved_yet() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let body = json!({"name": "Order", "channel": "email", "subject": "Old", "html": "<p>Old</p>", "text": "Old"});
    let template = bed.post(&owner, &templates, body).await;
    let path = format!("{templates}/{}/preview", id(&template));
    let change = json!({"subject": "New {{ number }}", "html": "<p>New</p>{{ other }}", "variables": {"number": 7}});
    let shown = bed.post(&owner, &path, change).await;
    assert_eq!(shown.summary(), "200");
    assert_eq!((&shown["subject"], &shown["text"]), (&json!("New 7"), &json!("Old")));
    assert!(shown["html"].as_str().unwrap().contains("<p>New</p>"), "{}", shown.body);
    assert_eq!(shown["missing_variables"], json!(["other"]));
    let stored = bed.get(&owner, &format!("{templates}/{}", id(&template))).await;
    assert_eq!((&stored["subject"], &stored["version"]), (&json!("Old"), &json!(1)), "nothing is saved");
    for (change, expected) in [
        (json!({"html": "{{ broken"}), "422 /html syntax"),
        (json!({"subject": "a\nb"}), "422 /subject invalid_format"),
        (json!({"subject": "x".repeat(999)}), "422 /subject too_long"),
    ] {
        assert_eq!(bed.post(&owner, &path, change).await.summary(), expected);
    }
    let text = bed.post(&owner, &templates, json!({"name": "s", "channel": "sms", "text": "t"})).await;
    let path = format!("{templates}/{}/preview", id(&text));
    assert_eq!(bed.post(&owner, &path, json!({"html": "<p>"})).await.summary(), "422 /html not_allowed");
    assert_eq!(bed.post(&owner, &path, json!({"text": "x".repeat(161)})).await["segments"], 2);
}

#[tokio::test]
async fn an_earlier_version_is_shown_as_it_was() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let body = json!({"name": "Order", "channel": "email", "subject": "First", "html": "<p>1</p>"});
    let template = bed.post(&owner, &templates, body).await;
    let path = format!("{templates}/{}", id(&template));
    let change = json!({"name": "Order", "channel": "email", "subject": "Second", "html": "<p>2</p>"});
    assert_eq!(bed.patch(&owner, &path, change).await["version"], 2);
    for (version, subject, html) in [(1, "First", "<p>1</p>"), (2, "Second", "<p>2</p>")] {
        let shown = bed.get(&owner, &format!("{path}?version={version}")).await;
        assert_eq!(
            (&shown["version"], &shown["subject"], &shown["html"]),
            (&json!(version), &json!(subject), &json!(html))
        );
    }
    assert_eq!(bed.get(&owner, &format!("{path}?version=3")).await.summary(), "404 not_found");
    assert_eq!(bed.get(&owner, &format!("{path}?version=x")).await.summary(), "422 version invalid_type");
}

#[tokio::test]
async fn a_preview_that_costs_too_much_is_refused() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let loops = "{% for i in range(99999) %}{% for j in range(99999) %}{{ j }}{% endfor %}{% endfor %}";
    for (html, variables, expected) in [
        (loops, json!({}), "422 /html out_of_range"),
        ("{% for i in range(900) %}{{ s }}{% endfor %}", json!({"s": "x".repeat(4000)}), "422 /html too_large"),
        ("{{ s * 9 }}", json!({"s": "x"}), "422 /html syntax"),
        ("{{ s }}", json!({"s": "x".repeat(600 << 10)}), "422 /variables too_large"),
    ] {
        let created = bed.post(&owner, &templates, json!({"name": "x", "channel": "email", "html": html})).await;
        assert_eq!(created.summary(), "201");
        let reply =
            bed.post(&owner, &format!("{templates}/{}/preview", id(&created)), json!({"variables": variables})).await;
        assert_eq!(reply.summary(), expected, "{html}");
    }
    // A long rendering within its bounds runs on another thread and ends.
    let long = "{% for i in range(20000) %}{{ i }},{% endfor %}";
    let created = bed.post(&owner, &templates, json!({"name": "x", "channel": "email", "html": long})).await;
    let reply = bed.post(&owner, &format!("{templates}/{}/preview", id(&created)), json!({})).await;
    assert!(reply["html"].as_str().unwrap().ends_with("19999,"));
}

/// Fetches nothing and returns the answer that a test sets.
#[derive(Debug)]
struct Scripted {
    answer: Mutex<Result<Fetched, FetchError>>,
    asked: Mutex<Vec<FetchRequest>>,
}

#[async_trait]
impl Fetch for Scripted {
    fn check(&self, url: &str) -> Result<(), UrlFault> {
        match url {
            url if url.starts_with("https://127.") => Err(UrlFault::NotAllowed),
            url if url.starts_with("https://") => Ok(()),
            _ => Err(UrlFault::Malformed),
        }
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        self.asked.lock().unwrap().push(request);
        self.answer.lock().unwrap().clone()
    }
}

fn page(status: u16, content_type: &'static str, body: &str) -> Fetched {
    Fetched {
        url: "https://b.example/news/today.html".to_owned(),
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]),
        body: body.as_bytes().to_vec().into(),
        truncated: false,
    }
}

#[tokio::test]
async fn html_and_pages_become_templates() {
    let good = page(
        200,
        "text/html; charset=utf-8",
        "<title>News &amp; more</title><p><img src=i.png alt=x><a href='/y'>{{ name }}</a></p>",
    );
    let fetch = Arc::new(Scripted { answer: Mutex::new(Ok(good.clone())), asked: Mutex::default() });
    let (bed, workspace, owner) = Bed::fetching(Arc::clone(&fetch) as _).and_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let import = format!("{templates}/import-html");
    for (body, expected) in [
        (json!({}), "422 /html required /name required"),
        (json!({"name": "x", "html": ""}), "422 /html required"),
        (json!({"name": "x", "html": "{{"}), "422 /html syntax"),
    ] {
        assert_eq!(bed.post(&owner, &import, body).await.summary(), expected);
    }
    let created = bed.post(&owner, &import, json!({"name": "x", "html": "<p>{{ a }}</p>", "subject": "s"})).await;
    assert_eq!(created.summary(), "201");
    assert_eq!(
        (&created["channel"], &created["subject"], &created["variables"]),
        (&json!("email"), &json!("s"), &json!(["a"]))
    );

    let import = format!("{templates}/import-url");
    let ask = json!({"name": "x", "url": "https://a.example/"});
    let created = bed.post(&owner, &import, ask.clone()).await;
    assert_eq!(created.summary(), "201");
    assert_eq!(created["subject"], "News & more");
    assert_eq!(
        created["html"],
        "<title>News &amp; more</title><p><img src=\"https://b.example/news/i.png\" alt=x><a href=\"https://b.example/y\">{{ name }}</a></p>"
    );
    let asked = fetch.asked.lock().unwrap().pop().unwrap();
    assert_eq!((asked.redirects, asked.body_limit, asked.time_limit), (3, 2 << 20, Duration::from_secs(10)));
    for (url, expected) in [
        (json!("https://127.0.0.1/"), "422 url_not_allowed"),
        (json!("nonsense"), "422 /url invalid_format"),
        (json!(""), "422 /url required"),
    ] {
        assert_eq!(bed.post(&owner, &import, json!({"name": "x", "url": url})).await.summary(), expected);
    }
    let mut cut = good;
    cut.truncated = true;
    for (answer, expected) in [
        (Err(FetchError::Blocked), "422 url_not_allowed"),
        (Err(FetchError::Timeout), "422 url_fetch_failed"),
        (Err(FetchError::Redirects), "422 url_fetch_failed"),
        (Ok(page(404, "text/html", "<p>no")), "422 url_fetch_failed"),
        (Ok(page(200, "application/pdf", "<p>no")), "422 url_fetch_failed"),
        (Ok(page(200, "text/html", "  ")), "422 url_fetch_failed"),
        (Ok(page(200, "text/html", "<p>{{ a")), "422 /url syntax"),
        (Ok(cut), "422 url_fetch_failed"),
    ] {
        *fetch.answer.lock().unwrap() = answer;
        assert_eq!(bed.post(&owner, &import, ask.clone()).await.summary(), expected);
    }
}

#[tokio::test]
async fn removed_templates_are_forgotten_in_the_end() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let templates = format!("/workspaces/{workspace}/templates");
    let created = bed.post(&owner, &templates, order()).await;
    let template = id(&created).parse().unwrap();
    bed.delete(&owner, &format!("{templates}/{}", id(&created))).await;
    sweep(&bed.app).await.unwrap();
    assert!(bed.store.template_version(workspace, template, 1).await.unwrap().is_some());
    // As long as a message may wait that was accepted before, and a month longer.
    bed.clock.advance(Duration::from_hours(395 * 24));
    sweep(&bed.app).await.unwrap();
    assert!(bed.store.template_version(workspace, template, 1).await.unwrap().is_some());
    bed.clock.advance(Duration::from_hours(2 * 24));
    sweep(&bed.app).await.unwrap();
    assert!(bed.store.template_version(workspace, template, 1).await.unwrap().is_none());
}
