//! Text messages: an attempt that a kill cut off may have arrived.

use messaging_testing::fakes::{Case, FakeHttp, FakeProvider, Trouble};
use serde_json::{Value, json};

use super::{Installation, is_marked, runtime};
use crate::support::wait_for;

#[test]
fn a_text_message_that_a_kill_cut_off_waits_for_its_receipt() {
    let runtime = runtime();
    let api = FakeHttp::new(None);
    let provider = runtime.block_on(FakeProvider::start(api.clone())).unwrap();
    let channel = json!({"provider": "http", "config": api.settings(&provider.url())});
    let installation = Installation::new(vec!["--allow-private-targets".to_owned()], |server, workspace, key| {
        let path = format!("/v1/workspaces/{workspace}/channels/sms");
        let (status, answer) = server.request("PUT", &path, key, &channel);
        assert_eq!(status, 200, "{answer}");
    });
    provider.next(Case::Trouble(Trouble::Silent));
    let server = installation.serve();
    let message = json!({"channel": "sms", "to": "+14155550101", "text": "hello"});
    let (status, answer) = server.request("POST", "/v1/messages", &installation.key, &message);
    assert_eq!(status, 202, "{answer}");
    let path = format!("/v1/messages/{}", answer["message_id"].as_str().unwrap());
    wait_for(|| (!provider.requests().is_empty()).then_some(()));
    assert_eq!(installation.get(&server, &path)["status"], "sending");
    server.kill();

    let server = installation.serve();
    let report: Value = wait_for(|| {
        let report = installation.get(&server, &path);
        (report["status"] != "sending").then_some(report)
    });
    assert_eq!((&report["status"], is_marked(&report)), (&json!("deferred"), true), "{report}");
    assert_eq!(provider.requests().len(), 1, "it is not repeated before a receipt had its time");
    server.kill();
}
