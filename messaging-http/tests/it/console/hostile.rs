//! Malicious texts: none of them runs, neither in the console nor in the frame that shows a mail, and no other server
//! is contacted.

use messaging_core::scope::{Role, Scope};
use serde_json::{Value, json};

use super::filled::{self, Filling, Ids, PEOPLE};
use super::page::Page;
use super::webdriver::keys;
use crate::harness::TestServer;

/// Texts that would set `ran` if they ran, for every place where a text may be shown.
fn texts() -> Vec<String> {
    let mut texts: Vec<_> = [
        "<script>top.ran = window.ran = 1</script>",
        "\"><img src=x onerror=\"top.ran = window.ran = 1\">",
        "'><svg onload='top.ran = window.ran = 1'>",
        "</textarea></title></style><script>window.ran = 1</script>",
        "javascript:window.ran=1",
        "{{ [].constructor.constructor('window.ran=1')() }} ${window.ran=1}",
        "\u{202e}gpj.exe \u{2066}\u{200f}moc.live",
    ]
    .map(str::to_owned)
    .into();
    texts.push("W".repeat(300));
    texts
}

/// All texts joined, for members that are long enough.
fn all() -> String {
    texts().join(" ")
}

/// The body of a mail that tries every attack.
const MAIL: &str = r#"<html><head><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example/">
    <link rel="stylesheet" href="https://evil.example/a.css"><style>@import url(https://evil.example/b.css);
    body { background: url(https://evil.example/c.png) } p { color: rgb(1, 2, 3) }</style>
    <script>window.ran = 1; parent.postMessage({ link: "ran" }, "*")</script></head>
    <body onload="window.ran = 1" background="https://evil.example/d.png"><p style="margin: 7px">Hello</p>
    <img src="x" onerror="window.ran = 1"><img src="https://evil.example/e.png" srcset="https://evil.example/f.png 2x">
    <a id="link" href="javascript:window.ran = 1">A</a><svg onload="window.ran = 1"><a xlink:href="javascript:window.ran = 1"><text>B</text></a></svg>
    <form action="https://evil.example/g"><input name="h" autofocus onfocus="window.ran = 1"><button id="submit" formaction="javascript:window.ran = 1">C</button></form>
    <iframe srcdoc="<script>top.ran = 1</script>"></iframe><object data="https://evil.example/i"></object><embed src="https://evil.example/j">
    <video src="https://evil.example/k" poster="https://evil.example/l"></video><template shadowrootmode="open"><script>window.ran = 1</script></template>
    <details open ontoggle="window.ran = 1"><summary>D</summary></details><a id="out" target="_top" href="https://evil.example/m">E</a></body></html>"#;

/// Creates resources with these names.
async fn spread(server: &TestServer) -> Ids {
    let mut filling = Filling::of(server).await;
    let (short, long) = (texts()[1].clone(), all());
    let name: String = long.chars().take(200).collect();
    let list = filling.make("list", "lists", json!({"name": name})).await;
    let person = json!({"email": format!("ann@{PEOPLE}"), "external_id": short, "attributes": {"first_name": long, "plan": texts()},
        "tags": texts().into_iter().map(|text| text.chars().take(64).collect::<String>()).collect::<Vec<_>>(),
        "list_ids": [list], "consent": {"marketing_email": true}});
    filling.make("contact", "contacts", person).await;
    let event = json!({"name": short, "contact": {"email": format!("ann@{PEOPLE}")}, "properties": {"text": long, short.as_str(): 1}});
    filling.call("POST", "/events", &event).await;
    let filter = json!({"type": "event", "name": short, "where": [{"property": short, "op": "eq", "value": long}]});
    filling.make("segment", "segments", json!({"name": name, "filter": filter})).await;
    filling.make("field", "custom-fields", json!({"key": "plan", "type": "string_array", "label": short})).await;
    // The text of a template is a program, so its syntax is escaped.
    let source = format!("{{% raw %}}{MAIL}{{% endraw %}}");
    let subject: String = format!("{{% raw %}}{long}{{% endraw %}}").chars().filter(|c| !c.is_control()).collect();
    let template =
        json!({"name": name, "channel": "email", "subject": subject, "html": source, "text": "{% raw %}x{% endraw %}"});
    let template = filling.make("template", "templates", template).await;
    let url = "https://shop.example/?x='onerror=window.ran=1//%22%3E%3Cimg%20src=x%20onerror=window.ran=1%3E";
    filling.make("webhook", "webhooks", json!({"url": url, "events": ["*"]})).await;
    let campaign = json!({"name": name, "channel": "email", "template_id": template, "audience": {"list_ids": [list]},
        "from_name": short, "settings": {"utm": {"source": short, "medium": short, "campaign": short}}});
    filling.make("campaign", "campaigns", campaign).await;
    let graph =
        json!({"nodes": [{"id": "end", "kind": "exit", "name": short, "config": {"reason": short}}], "edges": []});
    let automation = json!({"name": name, "trigger": {"kind": "event", "config": {"name": short}}, "graph": graph});
    filling.make("automation", "automations", automation).await;
    let more = json!({"subject": long.chars().filter(|c| !c.is_control()).take(900).collect::<String>(), "html": MAIL, "text": long,
        "from_name": short, "options": {"track_clicks": false}, "headers": {"X-Order": short}, "metadata": {short.as_str(): texts()},
        "tags": [short, texts()[4]], "attachments": [{"filename": "a\"><img src=x onerror=window.ran=1>.txt", "content_b64": "VGhhbmtz"}]});
    filling.email("message", &format!("ann@{PEOPLE}"), more.clone()).await;
    filling.work().await;
    // Answers of other servers are not trusted either.
    filling
        .call("PUT", "channels/email", &json!({"provider": "smtp", "config": {"host": "relay.test", "port": 25}}))
        .await;
    server.transport.answer(&format!("bob@{PEOPLE}"), &format!("550 5.1.1 {}", texts()[..4].join(" ")));
    filling.email("refused", &format!("bob@{PEOPLE}"), more).await;
    filling.work().await;
    let authorization = server.session(Some(Role::Owner)).await;
    let key = json!({"name": short, "scopes": [Scope::All.as_str()]}).to_string();
    let made = server.post(&format!("/v1/workspaces/{}/api-keys", server.workspace), &authorization, &key).await;
    assert_eq!(made.code(), "ok");
    let bearer = format!("Bearer {authorization}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let named = json!({"name": name}).to_string();
    let path = format!("/v1/workspaces/{}", server.workspace);
    assert_eq!(server.request("PATCH", &path, &headers, Some(&named)).await.code(), "ok");
    filling.ids
}

const RAN: &str =
    "return typeof window.ran === 'undefined' && typeof top.ran === 'undefined' ? 'nothing' : 'something'";

/// Routes that show the texts; `{name}` is the id of the resource created under this name.
const ROUTES: &[&str] = &[
    "#/",
    "#/messages",
    "#/messages/{message}",
    "#/messages/{refused}",
    "#/sandbox",
    "#/sandbox/{message}",
    "#/contacts",
    "#/contacts/{contact}",
    "#/lists",
    "#/segments",
    "#/segments/{segment}",
    "#/suppressions",
    "#/templates",
    "#/templates/{template}",
    "#/campaigns",
    "#/campaigns/{campaign}",
    "#/automations",
    "#/automations/{automation}",
    "#/analytics",
    "#/deliverability",
    "#/webhooks",
    "#/webhooks/{webhook}",
    "#/keys",
    "#/channels",
    "#/fields",
    // In the address itself.
    "#/messages?to=%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E&status=%3Cscript%3E",
    "#/contacts/%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E",
    "#/%3Cscript%3Ewindow.ran=1%3C/script%3E",
    "#javascript:window.ran=1",
];

#[tokio::test]
async fn nothing_of_a_hostile_text_runs_on_any_screen() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = spread(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let mut found = Vec::new();
    for route in ROUTES {
        page.load(&ids.iter().fold((*route).to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id)))
            .await;
        if page.browser.run(RAN, &[]).await != "nothing" {
            found.push(format!("{route}: something ran"));
        }
        let links = "return [...document.querySelectorAll('[href], [src], [action], [formaction]')]
            .flatMap((element) => ['href', 'src', 'action', 'formaction'].map((name) => element.getAttribute(name) ?? ''))
            .filter((target) => /^\\s*(javascript|vbscript|data:text)/i.test(target))";
        let links = page.browser.run(links, &[]).await;
        if links != json!([]) {
            found.push(format!("{route}: a link leads to {links}"));
        }
        // A word of 300 letters is broken.
        page.narrow(320, 700).await;
        page.settle(None).await;
        let width = page.browser.run("return document.documentElement.scrollWidth", &[]).await;
        if width.as_u64() > Some(320) {
            found.push(format!("{route}: scrolls sideways: {width}"));
        }
        page.narrow(1280, 900).await;
        // The frame logs what it kept a mail from doing.
        let of_frames = |fault: &String| fault.contains("/frame.html") || fault.contains("/frame-pictures.html");
        found.extend(
            page.faults().await.into_iter().filter(|fault| !of_frames(fault)).map(|fault| format!("{route}: {fault}")),
        );
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn nothing_of_a_hostile_text_runs_in_what_opens_over_a_screen() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = spread(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load(&format!("#/messages/{}", ids["message"])).await;
    page.browser.type_keys(".").await;
    page.until("document.querySelector('dialog[open] [data-operation]')").await;
    for form in ["curl", "JSON", "Command"] {
        page.press("button", form).await;
        assert_eq!(page.browser.run(RAN, &[]).await, "nothing", "Show as {form}");
    }
    page.browser.type_keys(&keys::ESCAPE.to_string()).await;
    page.until("!document.querySelector('dialog[open]')").await;
    page.browser.chord(keys::CONTROL, 'k').await;
    page.until_it_says("<script>").await;
    page.browser.type_keys("script").await;
    page.until_it_says("<script>").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(None).await;
    assert_eq!(page.browser.run(RAN, &[]).await, "nothing");
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn nothing_of_a_hostile_mail_runs_in_its_frame() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = spread(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    for route in ["#/messages/{message}?tab=content", "#/sandbox/{message}", "#/templates/{template}"] {
        page.load(&route.replace("{message}", &ids["message"]).replace("{template}", &ids["template"])).await;
        let frames = "return document.querySelectorAll('iframe').length";
        assert_ne!(page.browser.run(frames, &[]).await, 0, "{route} shows no mail: {}", page.text().await);
        page.browser.go_into(Some("iframe")).await;
        // The mail is shown, with its styles, in another origin.
        let shown = "const paragraph = document.querySelector('p'); const style = getComputedStyle(paragraph);
            return [paragraph.textContent, style.marginTop, style.color, origin]";
        assert_eq!(page.browser.run(shown, &[]).await, json!(["Hello", "7px", "rgb(1, 2, 3)", "null"]), "{route}");
        let tried = "document.querySelector('#link').click(); document.querySelector('svg a')?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
            document.querySelector('#submit')?.click(); document.querySelector('#out').click(); document.querySelector('input')?.focus();
            return new Promise((resolve) => setTimeout(() => resolve(typeof window.ran), 50))";
        assert_eq!(page.browser.run(tried, &[]).await, "undefined", "{route}: something ran in the frame");
        let reach = "try { return String(parent.document) } catch (error) { return error.name }";
        assert_eq!(page.browser.run(reach, &[]).await, "SecurityError", "{route}");
        page.browser.go_into(None).await;
        assert_eq!(page.browser.run(RAN, &[]).await, "nothing", "{route}");
        // The target of the link is shown.
        page.until_it_says("https://evil.example/m").await;
        assert_eq!(page.browser.strangers(), [""; 0], "{route}");
        let here = page.browser.run("return location.href", &[]).await;
        assert!(here.as_str().unwrap().starts_with(&page.url("#/")), "{here}");
    }
}

#[tokio::test]
async fn pictures_of_other_servers_are_asked_for_once_somebody_wants_them_and_our_pixel_never() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut filling = Filling::of(&server).await;
    let html = "<p>Look</p><img src=\"https://pictures.example/a.png\" alt=\"A\">";
    let more = json!({"html": html, "options": {"track_opens": true}});
    let id = filling.email("message", &format!("ann@{PEOPLE}"), more).await;
    filling.work().await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load(&format!("#/sandbox/{id}")).await;
    assert_eq!(page.browser.strangers(), [""; 0]);
    page.press("button", "Show pictures").await;
    page.browser.go_into(Some("iframe")).await;
    let loaded = "return new Promise((resolve) => { const look = () => document.querySelector('img') ? resolve(document.images.length) : setTimeout(look, 16); look(); })";
    assert_eq!(page.browser.run(loaded, &[]).await, 1, "the picture alone, without the pixel");
    page.browser.go_into(None).await;
    page.until("document.querySelector('iframe')").await;
    let mut asked = page.browser.strangers();
    // The browser tries again if nobody answers.
    asked.dedup();
    assert_eq!(asked, ["pictures.example"]);
    let opened = filling.call("GET", &format!("/messages/{id}"), &Value::Null).await;
    assert!(!opened["events"].to_string().contains("\"open\""), "a look is no open: {opened}");
}
