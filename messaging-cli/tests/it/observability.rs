//! Log and metrics of a server with real traffic.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use messaging_testing::{Answer, ScriptedHttpServer, ScriptedSmtpServer};
use serde_json::{Value, json};

use crate::support::{Server, directory, wait_for, wait_or_tell};

/// Marker in every text that a log must not hold.
const PLANTED: &str = "pl4nted";

const FLAGS: &[&str] = &[
    "--allow-private-targets",
    "--smtp-listen",
    "127.0.0.1:0",
    "--metrics-listen",
    "127.0.0.1:0",
    "--hostname",
    "mail.sandbox.test",
];

struct Api<'a> {
    server: &'a Server,
    key: String,
    home: String,
}

impl Api<'_> {
    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = if path.starts_with("/messages") { format!("/v1{path}") } else { format!("{}{path}", self.home) };
        let (status, answer) = self.server.request(method, &path, &self.key, body);
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    #[track_caller]
    fn made(&self, path: &str, body: &Value) -> String {
        let answer = self.call("POST", path, body);
        let id = ["id", "message_id", "contact_id"].iter().find_map(|name| answer[name].as_str());
        id.unwrap_or_else(|| panic!("{path}: {answer}")).to_owned()
    }

    fn status_of(&self, path: &str, wanted: &str) {
        wait_or_tell(|| {
            let found = self.call("GET", path, &Value::Null);
            if found["status"] == wanted { Ok(()) } else { Err(format!("{path} is {}", found["status"])) }
        });
    }
}

/// One exchange with a server; returns its raw answer.
fn get(address: SocketAddr, path: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: {PLANTED}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn address_in(server: &Server, file: &str) -> SocketAddr {
    wait_for(|| fs::read_to_string(server.data.join(file)).ok()?.trim().parse().ok())
}

/// Delivers a mail as the mail server of the recipient would.
fn return_mail(to: SocketAddr, recipient: &str, mail: &str) {
    let mut client = TcpStream::connect(to).unwrap();
    let mut replies = BufReader::new(client.try_clone().unwrap()).lines().map(Result::unwrap);
    let mut expect = |code: &str| {
        let reply = replies.find(|line| line.as_bytes().get(3) == Some(&b' ')).unwrap();
        assert!(reply.starts_with(code), "{reply}");
    };
    expect("220");
    let steps = ["EHLO mx.inbox.example".to_owned(), "MAIL FROM:<>".to_owned(), format!("RCPT TO:<{recipient}>")];
    for step in steps {
        write!(client, "{step}\r\n").unwrap();
        expect("250");
    }
    client.write_all(b"DATA\r\n").unwrap();
    expect("354");
    write!(client, "{mail}\r\n.\r\n").unwrap();
    expect("250");
    client.write_all(b"QUIT\r\n").unwrap();
}

fn report_about(address: &str) -> String {
    format!(
        "From: mailer-daemon@inbox.example\r\nSubject: {PLANTED}\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nNobody of the name {PLANTED}.\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.inbox.example\r\n\r\n\
         Final-Recipient: rfc822; {address}\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 no {PLANTED}\r\n\r\n--b--"
    )
}

/// The log lines with a message, without the members that every line has.
fn lines<'a>(log: &'a [Value], message: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["message"] == message).collect()
}

#[test]
fn a_scrape_is_answered_whoever_holds_connections() {
    let data = directory();
    let server = Server::start("serve", data.path(), &["--metrics-listen", "127.0.0.1:0"]);
    let address: SocketAddr =
        wait_for(|| fs::read_to_string(data.path().join("metrics-listen")).ok()?.trim().parse().ok());
    // Some send nothing, some half of a request.
    let held: Vec<_> = (0..80)
        .map(|number| {
            let mut held = TcpStream::connect(address).unwrap();
            if number % 2 == 0 {
                write!(held, "GET /metrics HTTP/1.1\r\nHost: a").unwrap();
            }
            held
        })
        .collect();
    let mut scrape = TcpStream::connect(address).unwrap();
    scrape.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(scrape, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    scrape.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("messaging_build_info"), "{page}");
    drop(held);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn at_every_level_the_log_tells_each_outcome_once_and_names_nobody() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (data, files) = (directory(), directory());
    let log_file = files.path().join("log");
    let (relay, receiver, collector) = runtime.block_on(async {
        (ScriptedSmtpServer::start().await, ScriptedHttpServer::start().await, ScriptedHttpServer::start().await)
    });
    let server = Server::traced("dev", data.path(), FLAGS, &log_file, &collector.url(""));
    let dev = server.dev_json();
    let text = |name: &str| dev[name].as_str().unwrap().to_owned();
    let workspace = text("workspace_id");
    let api = Api { server: &server, key: text("api_key"), home: format!("/v1/workspaces/{workspace}") };
    // A message that the sandbox accepts and delivers at once.
    let kept = api.made(
        "/messages",
        &json!({"channel": "email", "to": format!("kept-{PLANTED}@kept.example"), "subject": PLANTED, "text": PLANTED}),
    );
    api.status_of(&format!("/messages/{kept}"), "delivered");
    let config = json!({"host": "127.0.0.1", "port": relay.port(), "tls": "none"});
    api.call("PUT", "/channels/email", &json!({"provider": "smtp", "config": config}));
    // The first call fails, so that its answer could be logged.
    receiver.next(Answer::status(500));
    let url = receiver.url(&format!("/hook?token={PLANTED}"));
    let hook = api.made("/webhooks", &json!({"url": url, "events": ["*"]}));

    // Mail that arrives, with a link that is followed and a bounce that comes back later.
    let reader = format!("reader-{PLANTED}@inbox.example");
    let message = |to: &str| {
        json!({
            "channel": "email", "to": to, "subject": format!("Subject {PLANTED}"), "text": format!("Body {PLANTED}"),
            "html": format!("<body><p>{PLANTED}</p><a href=\"https://example.org/?q={PLANTED}\">go</a></body>"),
            "tags": [PLANTED], "metadata": {PLANTED: PLANTED}, "headers": {"X-Planted": PLANTED},
            "attachments": [{"filename": format!("{PLANTED}.txt"), "content_b64": "cGw0bnRlZA=="}],
        })
    };
    let sent = api.made("/messages", &message(&reader));
    let mail = runtime.block_on(relay.received(1)).remove(0);
    api.status_of(&format!("/messages/{sent}"), "sent");
    let content = String::from_utf8(mail.content).unwrap().replace("=\r\n", "").replace("=3D", "=");
    let link = content.split("/t/c/").nth(1).map(|rest| rest.split(['"', '>']).next().unwrap()).unwrap();
    let followed = get(server.address, &format!("/t/c/{link}?{PLANTED}={PLANTED}"));
    assert!(followed.starts_with("HTTP/1.1 30"), "{followed}");
    return_mail(address_in(&server, "smtp-listen"), &mail.from, &report_about(&reader));

    // A message that bounces at once, one that is deferred, and requests that are refused.
    let gone = format!("gone-{PLANTED}@nowhere.example");
    relay.answer(&gone, &format!("550 5.1.1 <{gone}> {PLANTED} unknown"));
    let bounced = api.made("/messages", &message(&gone));
    api.status_of(&format!("/messages/{bounced}"), "bounced");
    let slow = format!("slow-{PLANTED}@slow.example");
    relay.answer(&slow, &format!("451 4.7.1 <{slow}> {PLANTED} later"));
    let deferred = api.made("/messages", &message(&slow));
    api.status_of(&format!("/messages/{deferred}"), "deferred");
    let (status, _) = server.request("POST", "/v1/messages", &api.key, &json!({"to": reader, PLANTED: PLANTED}));
    assert_eq!(status, 422);
    get(server.address, &format!("/{PLANTED}?{PLANTED}"));
    get(server.address, &format!("/callbacks/telegram/{PLANTED}?q={PLANTED}"));

    // An import, and a campaign to the imported contacts.
    let people = files.path().join(format!("{PLANTED}.csv"));
    fs::write(&people, format!("email,name\r\nann-{PLANTED}@inbox.example,Ann {PLANTED}\r\n{PLANTED},\r\n")).unwrap();
    let mapping = ["--map", "name=attributes.name", "--dedup-keys", "email"];
    server.command(&[&["contact", "import", people.to_str().unwrap()][..], &mapping].concat()).expect(0);
    let list = api.made("/lists", &json!({"name": PLANTED}));
    let consent = json!({"marketing_email": true});
    let fan = format!("fan-{PLANTED}@fans.example");
    api.made("/contacts", &json!({"email": fan, "consent": consent, "list_ids": [list]}));
    let template = api.made(
        "/templates",
        &json!({
            "name": PLANTED, "channel": "email", "subject": format!("{PLANTED} {{{{ contact.email }}}}"),
            "from_email": format!("{PLANTED}@sandbox.test"),
            "html": "<body><p>Hi</p><a href=\"{{ unsubscribe_url }}\">stop</a></body>",
        }),
    );
    let audience = json!({"list_ids": [list]});
    let campaign = json!({"name": PLANTED, "channel": "email", "template_id": template, "audience": audience});
    let campaign = api.made("/campaigns", &campaign);
    api.call("POST", &format!("/campaigns/{campaign}/schedule"), &json!({"send_now": true}));
    api.status_of(&format!("/campaigns/{campaign}"), "sent");

    // A receiver that is gone for good.
    receiver.always(Answer::status(410));
    api.made("/messages", &message(&reader));
    api.status_of(&format!("/webhooks/{hook}"), "disabled");
    let page = get(address_in(&server, "metrics-listen"), "/metrics");
    assert_eq!(server.stop(), Some(0));

    let raw = fs::read_to_string(&log_file).unwrap();
    let told: Vec<_> = raw.lines().filter(|line| line.contains(PLANTED) || line.contains("cGw0bnRlZA")).collect();
    assert!(told.is_empty(), "{told:#?}");
    let log: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &log {
        let members = line.as_object().unwrap();
        assert!(members.values().all(|value| !value.is_object() && !value.is_array()), "flat: {line}");
    }

    let outcomes = |id: &str, status: &str| {
        lines(&log, "message").into_iter().filter(|line| line["message_id"] == *id && line["status"] == *status).count()
    };
    assert_eq!((outcomes(&kept, "delivered"), outcomes(&kept, "sent")), (1, 0), "told once");
    for (id, status) in
        [(&sent, "sent"), (&sent, "clicked"), (&sent, "bounced"), (&bounced, "bounced"), (&deferred, "deferred")]
    {
        assert_eq!(outcomes(id, status), 1, "{id} {status}\n{raw}");
    }
    let line = lines(&log, "message").into_iter().find(|line| line["message_id"] == *bounced).unwrap();
    let mut found = line.clone();
    let members = found.as_object_mut().unwrap();
    assert!(members.remove("timestamp").is_some() && members.remove("duration_ms").unwrap().is_u64(), "{line}");
    assert_eq!(
        found,
        json!({
            "level": "INFO", "message": "message", "message_id": bounced, "workspace_id": workspace,
            "domain": "nowhere.example", "channel": "email", "status": "bounced", "class": "invalid_recipient",
            "code": "550", "attempt": 1, "mx": "127.0.0.1",
        })
    );
    let clicked = lines(&log, "message").into_iter().find(|line| line["status"] == "clicked").unwrap();
    assert!(["class", "code", "attempt", "mx", "duration_ms"].iter().all(|absent| clicked.get(absent).is_none()));
    let campaigned = lines(&log, "message").into_iter().find(|line| line["domain"] == "fans.example").unwrap();
    assert_eq!(campaigned["status"], "sent");
    let inbound = lines(&log, "inbound");
    assert_eq!((inbound.len(), &inbound[0]["kind"], &inbound[0]["message_id"]), (1, &json!("bounce"), &json!(sent)));
    assert_eq!(lines(&log, "an import begins")[0]["rows"], 2);
    let ended = lines(&log, "an import ended")[0];
    assert_eq!([&ended["created"], &ended["updated"], &ended["failed"]], [1, 0, 1]);
    assert_eq!(
        lines(&log, "a webhook is disabled: its receiver is gone or has failed for days")[0]["webhook_id"],
        hook
    );
    let start = lines(&log, "starting")[0];
    assert_eq!((&start["version"], &start["off"]), (&json!(env!("CARGO_PKG_VERSION")), &json!("submission-listen")));
    assert!(start["database"].as_str().unwrap().ends_with("messaging.db") && start["listen"].is_string(), "{start}");
    let answered = lines(&log, "answered");
    assert!(answered.iter().all(|line| line["level"] == "DEBUG"));
    assert!(answered.iter().any(|line| line["route"] == "/t/c/{token}" && line["status"] == 302), "{answered:#?}");

    let value = |series: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series}\n{page}")).parse::<u64>().unwrap()
    };
    for (series, expected) in [
        (r#"messaging_messages_accepted_total{channel="email"}"#, 6),
        (r#"messaging_messages_delivered_total{channel="email"}"#, 1),
        (r#"messaging_messages_accepted_total{channel="sms"}"#, 0),
        (r#"messaging_messages_bounced_total{channel="email",class="invalid_recipient"}"#, 2),
        (r#"messaging_messages_deferred_total{channel="email"}"#, 1),
        ("messaging_inbound_total", 1),
        ("messaging_imports_total", 1),
        ("messaging_attempts_ambiguous_total", 0),
        (r#"messaging_http_requests_total{method="GET",route="/t/c/{token}",status="3xx"}"#, 1),
    ] {
        assert_eq!(value(series), expected, "{series}\n{page}");
    }
    assert!(value(r#"messaging_messages_sent_total{channel="email"}"#) >= 2, "{page}");
    assert!(value("messaging_webhook_failures_total") >= 2 && value("messaging_webhook_deliveries_total") >= 1);
    assert!(value("messaging_commit_sync_seconds_count") >= 1 && value("messaging_database_bytes") > 0);
    // Paths and queries of callers do not become labels.
    assert!(!page.contains(PLANTED), "{page}");
    check_spans(&collector, &log);
}

/// With the feature, the collector gets all spans, and they name nobody either.
#[cfg(feature = "otlp")]
fn check_spans(collector: &ScriptedHttpServer, _: &[Value]) {
    let requests = collector.requests();
    assert!(requests.iter().all(|request| request.target == "/v1/traces"), "{requests:?}");
    let bodies: Vec<u8> = requests.into_iter().flat_map(|request| request.body).collect();
    let has = |text: &str| bodies.windows(text.len()).any(|found| found == text.as_bytes());
    for text in ["request", "commit", "attempt", "webhook", "http.route", "/t/c/{token}", "service.name", "committed"] {
        assert!(has(text), "{text}");
    }
    assert!(!has(PLANTED), "a span names somebody");
}

/// Without it, a log line says why a named collector gets nothing.
#[cfg(not(feature = "otlp"))]
fn check_spans(collector: &ScriptedHttpServer, log: &[Value]) {
    let told =
        lines(log, "OTEL_EXPORTER_OTLP_ENDPOINT is given, but this program was built without the feature `otlp`");
    assert_eq!((told.len(), collector.requests().len()), (1, 0));
}
