//! "Show as" of the console: the shown command and line of curl are carried out, and their answers are those the page
//! got.

// Driven from here because the commands are this crate's; the client of the browser is that of the server's tests.
#[path = "../../../messaging-http/tests/it/console/elsewhere.rs"]
#[allow(dead_code, reason = "the server's tests need more of it")]
mod elsewhere;
#[path = "../../../messaging-http/tests/it/console/webdriver.rs"]
#[allow(dead_code, reason = "the server's tests need more of it")]
mod webdriver;

use messaging_core::scope::Access;
use messaging_engine::ops;
use serde_json::{Value, json};
use webdriver::Browser;

use crate::support::{Server, directory, run_script, wait_for};

/// Script that runs in every document before its own: it tells when a screen is drawn.
const WATCH: &str = include_str!("../../../messaging-http/tests/it/console/watch.js");

/// Makes one of every resource that screens show; returns the routes.
fn fill(server: &Server, key: &str, workspace: &str) -> Vec<String> {
    let id = |path: &str, body: Value| {
        let path = match path.strip_prefix('/') {
            Some(path) => format!("/v1/{path}"),
            None => format!("/v1/workspaces/{workspace}/{path}"),
        };
        let (status, made) = server.request("POST", &path, key, &body);
        assert!(status < 300, "{path}: {status} {made}");
        let id = ["id", "message_id"].iter().find_map(|member| made[*member].as_str());
        id.unwrap_or_else(|| panic!("no id in {made}")).to_owned()
    };
    let list = id("lists", json!({"name": "Newsletter"}));
    let person = json!({"email": "ann@people.example", "attributes": {"plan": "it's \"pro\" & <more>"}, "tags": ["vip"],
        "list_ids": [list], "consent": {"marketing_email": true}});
    let contact = id("contacts", person);
    let segment = id("segments", json!({"name": "Vip", "filter": {"type": "tag", "op": "has_any", "values": ["vip"]}}));
    let template = json!({"name": "Order", "channel": "email", "subject": "Order {{ id }}", "html": "<p>Hi</p>"});
    let template = id("templates", template);
    let campaign =
        json!({"name": "Spring", "channel": "email", "template_id": template, "audience": {"list_ids": [list]}});
    let campaign = id("campaigns", campaign);
    let graph = json!({"nodes": [{"id": "end", "kind": "exit"}], "edges": []});
    let trigger = json!({"kind": "event", "config": {"name": "order_placed"}});
    let automation = id("automations", json!({"name": "Welcome", "trigger": trigger, "graph": graph}));
    let webhook = id("webhooks", json!({"url": "https://shop.example/hooks", "events": ["bounce"]}));
    let domain = id("sending-domains", json!({"domain": "mail.acme.example"}));
    id("suppressions", json!({"channel": "email", "address": "gone@people.example", "reason": "manual"}));
    let mail = json!({"channel": "email", "to": "ann@people.example", "subject": "It's $HOME & \"more\"", "text": "Thanks", "tags": ["a b"]});
    let message = id("/messages", mail);
    wait_for(|| {
        let (_, message) = server.request("GET", &format!("/v1/messages/{message}"), key, &Value::Null);
        (message["status"] == "delivered").then_some(())
    });
    let fixed = [
        "",
        "messages",
        "messages?to=ann%40people.example&status=delivered",
        "sandbox",
        "contacts",
        "lists",
        "segments",
        "suppressions",
        "templates",
        "campaigns",
        "automations",
        "analytics",
        "domains",
        "webhooks",
        "keys",
        "members",
        "channels",
        "fields",
        "account",
        "system",
    ];
    let mut routes: Vec<_> = fixed.iter().map(|route| format!("#/{route}")).collect();
    for (path, id) in [
        ("messages", message.clone()),
        ("sandbox", message),
        ("contacts", contact),
        ("segments", segment),
        ("templates", template),
        ("campaigns", campaign),
        ("automations", automation),
        ("webhooks", webhook),
        ("domains", domain),
    ] {
        routes.push(format!("#/{path}/{id}"));
    }
    routes
}

/// An answer without the parts that change with every request: cursors, times, counters of the machine.
fn steady(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| {
                !name.ends_with("_at")
                    && !["next_cursor", "free_bytes", "duration_ms", "since"].contains(&name.as_str())
            })
            .map(|(name, value)| (name, steady(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(steady).collect(),
        Value::String(text) if is_time(&text) => "a time".into(),
        // A browser writes 0.0 as 0.
        Value::Number(number) => number.as_f64().into(),
        other => other,
    }
}

/// Returns true if a text is a time as the API writes it.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

/// The calls that the dialog shows in one of its forms, each as the id of the operation and the text.
async fn shown_as(browser: &Browser, form: &str) -> Vec<(String, String)> {
    let script = "const [button] = [...document.querySelectorAll('dialog button')].filter((one) => one.textContent.trim() === arguments[0]);
        button.click();
        return seen.until(() => button.getAttribute('aria-pressed') === 'true', 20000).then(() =>
            [...document.querySelectorAll('dialog [data-operation]')].map((call) => [call.dataset.operation, call.querySelector('pre').textContent]))";
    let calls = browser.run(script, &[json!(form)]).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    calls.as_array().unwrap().iter().map(|call| (text(&call[0]), text(&call[1]))).collect()
}

#[tokio::test]
async fn what_is_shown_as_a_command_and_as_curl_answers_what_was_shown() {
    let Some(browser) = Browser::start().await else { return };
    let (data, work) = (directory(), directory());
    let server = Server::dev(data.path());
    let dev = server.dev_json();
    let text = |name: &str| dev[name].as_str().unwrap();
    let routes = fill(&server, text("api_key"), text("workspace_id"));
    let login = json!({"email": text("console_email"), "password": text("console_password")});
    let session = server.request("POST", "/v1/auth/login", "", &login).1["token"].as_str().unwrap().to_owned();

    browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
    browser.open(&format!("http://{}/health", server.address)).await;
    browser.set_cookie("messaging_session", &session).await;
    let mut operations = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for route in routes {
        browser.open("about:blank").await;
        browser.open(&format!("http://{}/console/{route}", server.address)).await;
        assert_eq!(browser.run("return seen.settled(null, 20000)", &[]).await, Value::Null, "{route}");
        browser.type_keys(".").await;
        let is_open = "return seen.until(() => document.querySelector('dialog [data-operation]'), 20000)";
        assert_eq!(browser.run(is_open, &[]).await, true, "{route}: no call is shown");
        let answers = shown_as(&browser, "JSON").await;
        for form in ["Command", "curl"] {
            let calls = shown_as(&browser, form).await;
            assert_eq!(calls.len(), answers.len(), "{route}");
            for ((operation, call), (_, answer)) in calls.into_iter().zip(&answers) {
                if !operations.insert((operation.clone(), form)) {
                    continue;
                }
                let expected = match serde_json::from_str::<Value>(answer) {
                    Ok(mut shown) => shown["answer"].take(),
                    Err(error) => panic!("{route} {operation}: {error}: {answer}"),
                };
                // Some operations refuse API keys, so a session is used instead.
                let key = if needs_session(&operation) { session.as_str() } else { text("api_key") };
                let script = format!("export MESSAGING_API_KEY={key}\nunset MESSAGING_URL\n{call}\n");
                let (told, _) = run_script(&server, work.path(), &script);
                // A mail is no JSON: curl prints it as it is, and a command puts it into a member.
                let told = match serde_json::from_str::<Value>(&told) {
                    Ok(mut value) if expected.is_string() => value["body"].take(),
                    Ok(value) => value,
                    Err(_) => Value::String(told),
                };
                if steady(told.clone()) != steady(expected.clone()) {
                    wrong.push(format!("{route} {operation} as {form}:\n{call}\nanswers {told}\nshown was {expected}"));
                }
            }
        }
    }
    assert!(operations.len() > 40, "{operations:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn the_call_that_a_button_would_make_does_what_the_button_would() {
    let Some(browser) = Browser::start().await else { return };
    let (data, work) = (directory(), directory());
    let server = Server::dev(data.path());
    let dev = server.dev_json();
    let text = |name: &str| dev[name].as_str().unwrap();
    let login = json!({"email": text("console_email"), "password": text("console_password")});
    let session = server.request("POST", "/v1/auth/login", "", &login).1["token"].as_str().unwrap().to_owned();
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
    browser.open(&format!("http://{}/health", server.address)).await;
    browser.set_cookie("messaging_session", &session).await;
    let form = "#/send?to=ann%40people.example&subject=It's%20%24HOME%20%22here%22&text=One%0Atwo";
    browser.open(&format!("http://{}/console/{form}", server.address)).await;
    assert_eq!(browser.run("return seen.settled('Send', 20000)", &[]).await, Value::Null);
    let open =
        "[...document.querySelectorAll('main button')].find((one) => one.textContent.trim() === 'Show as').click();
        return seen.until(() => document.querySelector('dialog [data-operation]'), 20000)";
    assert_eq!(browser.run(open, &[]).await, true);
    for form in ["Command", "curl"] {
        let calls = shown_as(&browser, form).await;
        let [(operation, call)] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(operation, "sendMessage");
        let script = format!("export MESSAGING_API_KEY={}\nunset MESSAGING_URL\n{call}\n", text("api_key"));
        let (told, _) = run_script(&server, work.path(), &script);
        let sent: Value = serde_json::from_str(&told).unwrap();
        let content = format!("/v1/messages/{}/content", sent["message_id"].as_str().unwrap());
        let (_, content) = server.request("GET", &content, text("api_key"), &Value::Null);
        let request = &content["request"];
        assert_eq!(
            (&request["subject"], &request["text"]),
            (&json!("It's $HOME \"here\""), &json!("One\ntwo")),
            "{form}"
        );
    }
}

/// Returns true if only a session may make the call, or gets the answer that the page got.
fn needs_session(operation: &str) -> bool {
    let endpoint = ops::all().iter().find(|endpoint| endpoint.id == operation).expect("the page names an operation");
    operation == "getMe" || matches!(endpoint.access, Access::Session | Access::SessionRole(_) | Access::Operator)
}
