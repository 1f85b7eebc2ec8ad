//! The editor of email templates in blocks: additions, texts and moves are in the MJML that the API has.

use messaging_core::scope::Role;
use messaging_http::console;
use serde_json::{Value, json};

use super::filled::{self, Filling};
use super::page::Page;
use super::webdriver::keys;
use crate::harness::TestServer;

/// MJML written by hand: with elements that the editor does not know, and without order.
const BY_HAND: &str = "<mjml>\n<mj-head><mj-attributes><mj-all font-family='Arial' /></mj-attributes>\n  <mj-style>\n .a > p { color: red }\n</mj-style></mj-head>\n\n\
    <mj-body   width='600px'>\n  {# a remark with </mj-body> in it #}\n  {% if order.total > 10 %}\n\
    <mj-section><mj-column>\n\t<mj-text   color=\"{{ '#000000' }}\">1 &lt; 2 <b class='x'>kept</b>, {{ name | default(\"you\") }}</mj-text>\n\
    <mj-image src=\"https://shop.example/{{ order.id }}.png\"\n       alt='A tent' />\n\
    <mj-table><tr><td>{% for line in order.lines %}{{ line }}{% endfor %}</td></tr></mj-table>\n</mj-column></mj-section>\n\
    {% endif %}\n  <mj-raw><!-- nothing --></mj-raw>\n</mj-body>\n</mjml>\n";

/// Creates a template of an email, and opens it as a user who may change it.
async fn open(server: &TestServer, page: &Page, mjml: &str) -> String {
    let body = json!({"name": "Letter", "channel": "email", "subject": "Hello", "mjml": mjml});
    let id = Filling::of(server).await.make("letter", "templates", body).await;
    page.sign_in(&filled::member(server, Role::Editor).await).await;
    page.load(&format!("#/templates/{id}")).await;
    page.until("document.querySelector('.block-name')").await;
    id
}

async fn template(server: &TestServer, id: &str) -> Value {
    Filling::of(server).await.call("GET", &format!("templates/{id}"), &Value::Null).await
}

/// Saves by the keyboard, and returns the MJML that the API has then.
async fn save(server: &TestServer, page: &Page, id: &str) -> String {
    let before = template(server, id).await["version"].as_u64().unwrap();
    page.focus("textbox", "Name").await;
    page.browser.chord(keys::CONTROL, 's').await;
    page.until(&format!("document.querySelector('main').innerText.includes('version {}')", before + 1)).await;
    page.settle(None).await;
    template(server, id).await["mjml"].as_str().unwrap().to_owned()
}

/// The names of the blocks on the screen, with the notes on each.
async fn blocks(page: &Page) -> Vec<String> {
    let names =
        "return [...document.querySelectorAll('.block-name')].map((one) => one.innerText.replace(/\\s+/g, ' ').trim())";
    let names = page.browser.run(names, &[]).await;
    names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Focuses the first block whose name begins with `name`.
async fn focus_block(page: &Page, name: &str) {
    let focus = "const found = [...document.querySelectorAll('.block-name')].find((one) => one.textContent.trim().startsWith(arguments[0]));
        found?.focus(); return Boolean(found)";
    assert_eq!(page.browser.run(focus, &[json!(name)]).await, true, "no block {name:?}: {:?}", blocks(page).await);
}

const FOCUSED: &str = "document.activeElement.closest('.block-name')?.textContent.trim() ?? document.activeElement.outerHTML.slice(0, 200)";

/// Waits until a block whose name begins with `name` has the focus.
async fn until_focused(page: &Page, name: &str) {
    page.until(&format!("({FOCUSED}).startsWith({})", json!(name))).await;
}

/// Waits until the live region announces the words.
async fn until_said(page: &Page, words: &str) {
    page.until(&format!("document.querySelector('[aria-live]').textContent.includes({})", json!(words))).await;
}

#[tokio::test]
async fn each_kind_of_block_is_added_by_the_keyboard_and_is_mjml() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let empty = "<mjml><mj-head><mj-attributes><mj-all font-family=\"Arial\" /></mj-attributes></mj-head><mj-body></mj-body></mjml>";
    let id = open_empty(&server, &page, empty).await;
    let kinds = [
        ("Heading", "<mj-text font-size=\"24px\" line-height=\"1.3\"><h2"),
        ("Text", "<mj-text line-height=\"1.5\"><p"),
        ("Image", "<mj-image />"),
        ("Button", "<mj-button href="),
        ("Divider", "<mj-divider "),
        ("Space", "<mj-spacer "),
        ("Social links", "<mj-social "),
        ("Code", "<mj-raw>"),
        ("Columns", "<mj-column>"),
        ("Product row", "css-class=\"product-row\""),
    ];
    for (kind, _) in kinds {
        page.press("button", &format!("Add {kind}")).await;
        until_focused(&page, kind).await;
        until_said(&page, &format!("{kind} added")).await;
    }
    let mjml = save(&server, &page, &id).await;
    let mut rest = &*mjml;
    for (kind, source) in kinds {
        let at = rest.find(source).unwrap_or_else(|| panic!("no {kind} after the others in {mjml}"));
        rest = &rest[at..];
    }
    assert_eq!(page.faults().await, [""; 0]);
}

/// Like [`open`], for a template with only its outermost block.
async fn open_empty(server: &TestServer, page: &Page, mjml: &str) -> String {
    let id = open(server, page, mjml).await;
    assert_eq!(blocks(page).await, ["Whole email"]);
    id
}

#[tokio::test]
async fn arrows_tab_and_the_palette_need_no_mouse() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let source = "<mjml><mj-head><mj-attributes><mj-all font-family=\"Arial\" /></mj-attributes></mj-head><mj-body>\n  <mj-section>\n    <mj-column>\n      \
                  <mj-text>One</mj-text>\n      <mj-text>Two</mj-text>\n    </mj-column>\n  </mj-section>\n</mj-body></mjml>";
    let id = open(&server, &page, source).await;
    let press = async |key: char| page.browser.type_keys(&key.to_string()).await;
    page.focus("textbox", "Preview text").await;
    page.tab_to("button", "Add Heading").await;
    page.tab_to("button", "Whole email").await;
    for name in ["Section", "Text One", "Text Two", "Text Two"] {
        press(keys::DOWN).await;
        until_focused(&page, name).await;
    }
    // Into the text, and back.
    press(keys::ENTER).await;
    page.until("document.activeElement.isContentEditable").await;
    page.browser.chord(keys::CONTROL, 'a').await;
    page.browser.type_keys("Dear ").await;
    page.press("button", "Insert a value").await;
    page.focus("textbox", "Words for when there is no value optional").await;
    page.browser.type_keys("friend").await;
    press(keys::ENTER).await;
    page.until("document.activeElement.isContentEditable").await;
    page.browser.chord(keys::CONTROL, 'b').await;
    page.browser.type_keys("bold").await;
    page.browser.chord(keys::CONTROL, 'b').await;
    page.browser.type_keys(" 1 < 2 {{ order.id }}").await;
    page.until("document.querySelector('.rich-text').innerText.includes('order.id }}')").await;
    press(keys::ESCAPE).await;
    until_focused(&page, "Text Dear").await;
    let expected = source.replace(
        "Two",
        "Dear {{ contact.attributes.first_name | default(\"friend\") }}<strong>bold</strong> 1 &lt; 2 {{ order.id }}",
    );
    // Up, away, and back again.
    page.browser.chord(keys::ALT, keys::UP).await;
    until_said(&page, "Text moved up").await;
    until_focused(&page, "Text Dear").await;
    press(keys::DELETE).await;
    until_said(&page, "Text deleted").await;
    until_focused(&page, "Text One").await;
    assert_eq!(blocks(&page).await.len(), 3);
    for said in ["Undone", "Undone"] {
        page.browser.chord(keys::CONTROL, 'z').await;
        until_said(&page, said).await;
        page.settle(None).await;
    }
    page.until("document.querySelectorAll('.block-name').length === 4").await;
    assert_eq!(save(&server, &page, &id).await, expected);
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn what_was_written_by_hand_stays_but_for_what_is_changed() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let id = open(&server, &page, BY_HAND).await;
    let shown = blocks(&page).await.join(" | ");
    for name in ["Template code", "Section", "Text", "Image", "table", "Code"] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    focus_block(&page, "Image").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until("document.activeElement.closest('.block-fields')").await;
    page.fill("What the image shows", "A \"blue\" tent").await;
    let mjml = save(&server, &page, &id).await;
    assert_eq!(mjml, BY_HAND.replace("alt='A tent'", "alt='A \"blue\" tent'"));
    // The code beside the blocks is the same, and a change of it changes the blocks.
    page.press("button", "MJML").await;
    page.until("document.querySelector('.editor-text')").await;
    let typed = page.browser.run("return document.querySelector('.editor-text').value", &[]).await;
    assert_eq!(typed, mjml.as_str());
    page.fill("MJML", "<mjml><mj-body><mj-section>").await;
    page.press("button", "Blocks").await;
    page.until_it_says("This cannot be shown as blocks.").await;
    page.press("button", "Discard changes").await;
    page.until("document.querySelector('.block-name')").await;
    assert_eq!(template(&server, &id).await["mjml"], mjml.as_str());
    assert!(page.faults().await.iter().all(|fault| fault.contains("/frame")), "the frame alone keeps pictures away");
}

/// MJML with scripts that would set `ran` if they ran.
const HOSTILE: &str = r#"<mjml><mj-head><mj-attributes><mj-all font-family="Arial" /></mj-attributes></mj-head><mj-body background-color="red;background:url(https://evil.example/a)">
  <mj-section background-color="url(https://evil.example/b)" css-class="x onload=window.ran=1"><mj-column>
    <mj-text color="expression(window.ran=1)"><p onclick="window.ran=1">P</p><img src="x" onerror="window.ran=1"> <a href="javascript:window.ran=1">L</a><svg onload="window.ran=1"></svg></mj-text>
    <mj-text><h1><iframe src="javascript:window.ran=1"></iframe><style>@import url(https://evil.example/c)</style>H</h1></mj-text>
    <mj-button href="javascript:window.ran=1" color="url(https://evil.example/d)"><b onmouseover="window.ran=1">B</b></mj-button>
    <mj-image src="javascript:window.ran=1" alt="&quot;&gt;&lt;img src=x onerror=window.ran=1&gt;" href="data:text/html,&lt;script&gt;window.ran=1&lt;/script&gt;" />
    <mj-image src="https://evil.example/i/abcdefgh%2e%2e%2f" alt="e" />
    <mj-social><mj-social-element href="javascript:window.ran=1" src="https://evil.example/f"><i onclick="window.ran=1">S</i></mj-social-element></mj-social>
    <mj-divider border-color="red&quot; onload=&quot;window.ran=1" />
    <mj-raw><script>window.ran = 1; top.ran = 1</script><img src="https://evil.example/g" onerror="window.ran=1"><form action="https://evil.example/h"></form></mj-raw>
  </mj-column></mj-section>
</mj-body></mjml>"#;

const RAN: &str = "return typeof window.ran === 'undefined' ? 'nothing' : 'something'";

#[tokio::test]
async fn nothing_of_a_hostile_template_runs_in_the_editor() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let id = open(&server, &page, HOSTILE).await;
    let count = blocks(&page).await.len();
    assert!(count > 8, "{count}");
    for nth in 0..count {
        let press = "const one = document.querySelectorAll('.block-name')[arguments[0]]; if (one.ariaExpanded !== 'true') one.click()";
        page.browser.run(press, &[json!(nth)]).await;
        page.settle(None).await;
        assert_eq!(page.browser.run(RAN, &[]).await, "nothing", "block {nth}");
        let links = "return [...document.querySelectorAll('main [href], main [src], main [action]')]
            .flatMap((one) => ['href', 'src', 'action'].map((name) => one.getAttribute(name) ?? ''))
            .filter((target) => !/^(#|$|http:..127[.]0[.]0[.]1)/.test(target))";
        assert_eq!(page.browser.run(links, &[]).await, json!([]), "block {nth}");
        // Opening a block does not change it.
        assert!(!page.text().await.contains("Discard changes"), "block {nth} was changed by opening it");
    }
    assert_eq!(page.browser.run("return document.querySelectorAll('main :is(script, iframe:not([sandbox]), svg[onload], form form)').length", &[]).await, 0);
    assert_eq!(page.browser.strangers(), [""; 0]);
    let faults = page.faults().await;
    assert!(faults.iter().all(|fault| fault.contains("/frame")), "{faults:#?}");
    assert_eq!(template(&server, &id).await["mjml"], HOSTILE);
}

/// Pasted content is a text, whatever it is.
#[tokio::test]
async fn what_is_pasted_is_a_text() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let id = open(&server, &page, "<mjml><mj-head><mj-attributes><mj-all font-family=\"Arial\" /></mj-attributes></mj-head><mj-body><mj-section><mj-column><mj-text>One</mj-text></mj-column></mj-section></mj-body></mjml>").await;
    focus_block(&page, "Text").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until("document.activeElement.isContentEditable").await;
    page.browser.chord(keys::CONTROL, 'a').await;
    let paste = "const data = new DataTransfer();
        data.setData('text/html', '<img src=x onerror=\"window.ran=1\"><b>B</b>');
        data.setData('text/plain', '<b>B</b> {{ order.id }}');
        document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))";
    page.browser.run(paste, &[]).await;
    page.until("document.querySelector('.rich-text .expression')").await;
    assert!(save(&server, &page, &id).await.contains("<mj-text>&lt;b&gt;B&lt;/b&gt; {{ order.id }}</mj-text>"));
    assert_eq!(page.browser.run(RAN, &[]).await, "nothing");
    assert_eq!(page.faults().await, [""; 0]);
}

/// The files of the gallery by their path.
fn gallery() -> Vec<(Value, String)> {
    let files: Vec<_> = console::files().filter(|(path, _)| path.starts_with("gallery/")).collect();
    let read = |name: &str| {
        let (_, bytes) = files.iter().find(|(path, _)| *path == format!("gallery/{name}")).unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    };
    let list: Vec<Value> = serde_json::from_str(&read("gallery.json")).unwrap();
    assert_eq!(list.len() + 1, files.len());
    list.into_iter().map(|one| (one.clone(), read(&format!("{}.mjml", one["id"].as_str().unwrap())))).collect()
}

#[tokio::test]
async fn what_is_in_the_gallery_can_be_sent_and_loads_nothing() {
    let server = TestServer::start().await;
    let mut filling = Filling::of(&server).await;
    let list = gallery();
    assert_eq!(list.len(), 12);
    for (one, mjml) in list {
        let name = one["id"].as_str().unwrap();
        let body = json!({"name": one["name"], "channel": "email", "subject": one["subject"], "preheader": one["preheader"], "mjml": mjml});
        let id = filling.make("one", "templates", body).await;
        let made = template(&server, &id).await;
        let warnings = made["warnings"].as_array().unwrap();
        assert!(warnings.iter().all(|one| one["code"] == "no_unsubscribe_link"), "{name}: {warnings:?}");
        // Without a single value it is still readable.
        let preview = filling.call("POST", &format!("templates/{id}/preview"), &json!({})).await;
        let html = preview["html"].as_str().unwrap();
        for outside in ["src=", "background=", "url(", "@import", "<link", "<script"] {
            assert!(!html.contains(outside), "{name} has {outside}");
        }
        for part in ["subject", "preheader", "text"] {
            let text = preview[part].as_str().unwrap();
            assert!(text.len() > 10 && !text.contains("{{") && !text.contains("  "), "{name}: {part} {text:?}");
        }
    }
}

#[tokio::test]
async fn a_template_begins_with_one_of_the_gallery() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Editor).await).await;
    page.load("#/templates?new=gallery").await;
    page.until("document.querySelectorAll('.gallery-one').length === 12").await;
    page.focus("radio", "Receipt What was bought, line by line, with the total.").await;
    page.browser.type_keys(" ").await;
    page.until("document.querySelector('main form input:not([type=radio])').value === 'Receipt'").await;
    page.fill("Name", "Our receipt").await;
    page.press("button", "Create").await;
    page.settle(Some("Our receipt")).await;
    let id = page.browser.run("return location.hash.split('/').pop()", &[]).await;
    let made = template(&server, id.as_str().unwrap()).await;
    let (one, mjml) = gallery().into_iter().find(|(one, _)| one["id"] == "receipt").unwrap();
    assert_eq!((&made["subject"], &made["preheader"]), (&one["subject"], &one["preheader"]));
    assert_eq!(made["mjml"], mjml.as_str());
    page.until("document.querySelector('.block-name')").await;
    assert_eq!(page.faults().await, [""; 0]);
}
