use std::io::Write as _;

use super::*;
use crate::command::{self, part};

/// Checks the request that a command line becomes: path parameters, query and body, each as text.
#[track_caller]
fn check(line: &[&str], path: &str, query: &str, body: &str) {
    let request = read(line).unwrap();
    let joined = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(joined(&request.path), path, "{line:?}");
    assert_eq!(joined(&request.query), query, "{line:?}");
    assert_eq!(std::str::from_utf8(&request.body).unwrap(), body, "{line:?}");
}

fn read(line: &[&str]) -> Result<Request, Failure> {
    let whole = std::iter::once("messaging").chain(line.iter().copied());
    let matches = command::root().try_get_matches_from(whole).unwrap();
    let mut words = Vec::new();
    let mut inner = &matches;
    while let Some((word, next)) = inner.subcommand() {
        words.push(word);
        inner = next;
    }
    Request::read(part::endpoint(&words).unwrap(), inner)
}

#[track_caller]
fn check_refused(line: &[&str], word: &str) {
    let whole = std::iter::once("messaging").chain(line.iter().copied());
    let error = command::root().try_get_matches_from(whole).unwrap_err().to_string();
    assert!(error.contains(word), "{line:?}: {error}");
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn path_parameters_are_positional_and_the_workspace_is_not_among_them() {
    check(&["message", "get", "msg_1"], "id=msg_1", "", "");
    check(&["sandbox", "get", "msg_1"], "message_id=msg_1", "", "");
    check(&["sandbox", "list", "--workspace", "wsp_1"], "", "", "");
    check_refused(&["message", "get"], "<ID>");
}

#[test]
fn query_members_are_flags() {
    check(&["message", "list", "--limit", "3", "--tag", "a b"], "", "limit=3 tag=a b", "");
    check(&["message", "list", "--campaign-id=cmp_1", "--status", "queued"], "", "campaign_id=cmp_1 status=queued", "");
    check_refused(&["message", "list", "--limit", "3.5"], "not a whole number");
    check_refused(&["message", "list", "--status", "lost"], "possible values: queued");
}

#[test]
fn the_word_null_empties_what_can_be_empty() {
    let line = ["domain", "update", "dom_1", "--ip-pool-id", "null", "--tracking-subdomain=null"];
    check(&line, "id=dom_1", "", r#"{"ip_pool_id":null,"tracking_subdomain":null}"#);
    check(&["domain", "update", "dom_1", "--ip-pool-id", "main"], "id=dom_1", "", r#"{"ip_pool_id":"main"}"#);
    // Members that always have a value, and creations, take the word literally.
    check(&["pool", "update", "ipp_1", "--name", "null"], "id=ipp_1", "", r#"{"name":"null"}"#);
    check(&["custom-field", "create", "--label", "null"], "", "", r#"{"label":"null"}"#);
}

#[test]
fn the_state_of_a_source_is_a_flag() {
    let set = ["source", "set", "203.0.113.7"];
    for (flag, status) in [("--warmed", "warm"), ("--warming", "warming"), ("--stopped", "stopped")] {
        let line = [&set[..], &[flag]].concat();
        check(&line, "ip=203.0.113.7", "", &format!(r#"{{"status":"{status}"}}"#));
    }
    check(&[&set[..], &["--status", "warm"]].concat(), "ip=203.0.113.7", "", r#"{"status":"warm"}"#);
    check_refused(&[&set[..], &["--warmed", "--stopped"]].concat(), "cannot be used with");
    check_refused(&[&set[..], &["--warmed", "--status", "warm"]].concat(), "cannot be used with");
    check(
        &["source", "set-path", "default", "gmail", "--status", "ok"],
        "ip=default site=gmail",
        "",
        r#"{"status":"ok"}"#,
    );
}

#[test]
fn states_that_only_the_server_sets_are_not_offered() {
    check_refused(&["source", "set", "203.0.113.7", "--status", "resting"], "possible values: warm, warming, stopped");
    for status in ["slowed", "resting"] {
        check_refused(&["source", "set-path", "default", "gmail", "--status", status], "possible values: ok, stopped");
    }
}

#[test]
fn body_members_are_flags() {
    check(&["workspace", "update", "--name", "Acme"], "", "", r#"{"name":"Acme"}"#);
    check(&["workspace", "update"], "", "", "{}");
    check(
        &["key", "create", "--name", "b", "--scopes", "messages:send,pii:read", "--scope", "*", "--rate-limit", "10"],
        "",
        "",
        r#"{"name":"b","rate_limit":10,"scopes":["messages:send","pii:read","*"]}"#,
    );
    check(
        &["channel", "set", "sms", "--provider", "http", "--config", r#"{"sender":"ACME"}"#],
        "channel=sms",
        "",
        r#"{"config":{"sender":"ACME"},"provider":"http"}"#,
    );
    check_refused(&["channel", "set", "sms", "--config", "{"], "not JSON");
    check_refused(&["channel", "set", "fax"], "possible values: email");
}

#[test]
fn values_may_look_like_flags_or_be_empty() {
    let body = r#"{"channel":"email","subject":"--text","text":"-1","to":""}"#;
    check(&["message", "send", "--to", "", "--subject", "--text", "--text", "-1"], "", "", body);
}

#[test]
fn a_message_is_an_email_unless_told_otherwise() {
    check(&["message", "send", "--to", "a@b.c"], "", "", r#"{"channel":"email","to":"a@b.c"}"#);
    check(&["message", "send", "--channel", "sms"], "", "", r#"{"channel":"sms"}"#);
    let given = file(r#"{"channel":"sms"}"#);
    check(&["message", "send", "--json-body", given.path().to_str().unwrap()], "", "", r#"{"channel":"sms"}"#);
}

#[test]
fn headers_tags_and_files_of_a_message() {
    let line = ["message", "send", "--header", "X-A=1=2", "--header", "X-B=", "--tag", "a", "--tag", "b,c"];
    check(&line, "", "", r#"{"channel":"email","headers":{"X-A":"1=2","X-B":""},"tags":["a","b","c"]}"#);
    check_refused(&["message", "send", "--header", "X"], "NAME=VALUE");

    let attached = file("{}");
    let name = attached.path().file_name().unwrap().to_str().unwrap();
    check(
        &["message", "send", "--attach", attached.path().to_str().unwrap()],
        "",
        "",
        &format!(
            r#"{{"attachments":[{{"content_b64":"e30=","content_type":"application/json","filename":"{name}"}}],"channel":"email"}}"#
        ),
    );
    assert!(matches!(read(&["message", "send", "--attach", "/nowhere/a.pdf"]), Err(Failure::Usage(_))));
}

#[test]
fn a_file_is_sent_as_it_is_until_flags_change_it() {
    let given = file("{ \"name\": \"Acme\",\n \"more\": 1.0 }");
    let path = given.path().to_str().unwrap();
    check(&["workspace", "update", "--json-body", path], "", "", "{ \"name\": \"Acme\",\n \"more\": 1.0 }");
    let line = ["workspace", "update", "--json-body", path, "--name", "Other"];
    check(&line, "", "", r#"{"more":1.0,"name":"Other"}"#);

    let array = file("[1]");
    let path = array.path().to_str().unwrap();
    check(&["workspace", "update", "--json-body", path], "", "", "[1]");
    assert!(matches!(read(&["workspace", "update", "--json-body", path, "--name", "x"]), Err(Failure::Usage(_))));
    let broken = file("{");
    let line = ["workspace", "update", "--json-body", broken.path().to_str().unwrap()];
    assert!(matches!(read(&line), Err(Failure::Usage(text)) if text.contains("line 1")));
    assert!(matches!(read(&["workspace", "update", "--json-body", "/nowhere"]), Err(Failure::Usage(_))));
}

#[test]
fn an_idempotency_key_is_for_what_changes_something() {
    let request = read(&["workspace", "update", "--idempotency-key", "k"]).unwrap();
    assert_eq!(request.idempotency_key.as_deref(), Some("k"));
    check_refused(&["message", "list", "--idempotency-key", "k"], "unexpected argument");
}

#[test]
fn shared_arguments_may_stand_before_the_command() {
    for line in [
        ["messaging", "--json", "--url", "http://x", "workspace", "list"],
        ["messaging", "workspace", "list", "--url", "http://x", "--json"],
    ] {
        let matches = command::root().try_get_matches_from(line).unwrap();
        assert!(arguments::is_set(arguments::innermost(&matches), arguments::JSON), "{line:?}");
        let (_, inner) = matches.subcommand().unwrap();
        let (_, inner) = inner.subcommand().unwrap();
        assert_eq!(arguments::text(inner, arguments::URL), Some("http://x"), "{line:?}");
    }
}
