//! Campaigns of an installation with real programs: backups made while a campaign is being sent, and pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Site;
use crate::support::{Server, wait_for, wait_or_tell};

/// Domains of the recipients.
const DOMAINS: usize = 7;

/// Time after a pause within which the last message begins.
const PAUSED_WITHIN: Duration = Duration::from_secs(5);

impl Site {
    fn post(&self, server: &Server, path: &str, body: &Value) -> Value {
        let path = format!("/v1/workspaces/{}/{path}", self.workspace);
        let (status, answer) = server.request("POST", &path, &self.key, body);
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    /// Sends a campaign to `count` contacts now. Returns its path.
    fn send_campaign(&self, server: &Server, count: usize) -> String {
        let list = self.post(server, "lists", &json!({"name": "all"}))["id"].clone();
        let contact = |number: usize| {
            json!({"email": format!("p{number}@d{}.test", number % DOMAINS), "list_ids": [list],
                "consent": {"marketing_email": true}})
        };
        for first in (0..count).step_by(1000) {
            let contacts: Vec<_> = (first..count.min(first + 1000)).map(contact).collect();
            self.post(server, "contacts/bulk", &json!({"contacts": contacts}));
        }
        let template = json!({"name": "t", "channel": "email", "subject": "s",
            "html": "<p>Hello</p><a href=\"{{ unsubscribe_url }}\">stop</a>"});
        let template = self.post(server, "templates", &template)["id"].clone();
        let campaign = json!({"name": "c", "channel": "email", "template_id": template,
            "audience": {"list_ids": [list]}});
        let campaign = self.post(server, "campaigns", &campaign)["id"].clone();
        let path = format!("campaigns/{}", campaign.as_str().unwrap());
        self.post(server, &format!("{path}/schedule"), &json!({"send_now": true}));
        path
    }

    fn campaign(&self, server: &Server, path: &str) -> Value {
        self.get(server, &format!("/v1/workspaces/{}/{path}", self.workspace))
    }

    fn wait_until_sent(&self, server: &Server, path: &str) {
        wait_or_tell(|| {
            let stats = self.campaign(server, &format!("{path}/stats"));
            let is_over = ["sending", "deferred", "waiting"].iter().all(|name| stats[name] == 0);
            let campaign = self.campaign(server, path);
            if is_over && campaign["status"] == "sent" { Ok(()) } else { Err(format!("{campaign} {stats}")) }
        });
    }

    /// Number of messages for each recipient, without the first `after` messages.
    fn arrived(&self, after: usize) -> BTreeMap<String, usize> {
        let mut arrived = BTreeMap::new();
        for received in self.sink.messages().into_iter().skip(after) {
            *arrived.entry(received.recipients.join(" ")).or_default() += 1;
        }
        arrived
    }
}

#[test]
fn a_copy_of_a_campaign_at_work_goes_on_only_where_it_is_told_to_and_once() {
    const COUNT: usize = 600;
    let site = Site::new();
    let server = site.start("serve", "data");
    let path = site.send_campaign(&server, COUNT);
    wait_for(|| (site.sink.messages().len() >= 50).then_some(()));
    let file = site.back_up("data");
    assert_eq!(site.campaign(&server, &path)["status"], "sending");
    server.kill();
    wait_for(|| (site.sink.open() == 0).then_some(()));
    let before = site.sink.messages().len();
    assert!(before < COUNT);

    site.restore(&file, "cancelled");
    site.restore(&file, "resumed");
    let cancelling = site.start("serve", "cancelled");
    let resuming = site.start("serve", "resumed");
    for server in [&cancelling, &resuming] {
        let campaign = site.campaign(server, &path);
        assert_eq!((&campaign["status"], &campaign["pause_reason"]), (&json!("paused"), &json!("restored")));
        site.let_it_work(server);
    }
    assert_eq!(site.sink.messages().len(), before, "nothing leaves a copy");
    // Recipients who have the message as far as the copy knows.
    let id = path.rsplit('/').next().unwrap();
    let known: BTreeSet<_> = site
        .messages(&resuming)
        .into_iter()
        .filter(|message| message["campaign_id"] == id && message["status"] == "delivered")
        .map(|message| message["to"].as_str().unwrap().to_owned())
        .collect();
    assert!((1..COUNT).contains(&known.len()), "{}", known.len());

    site.resume("cancel", "cancelled").expect(0);
    assert_eq!(site.campaign(&cancelling, &path)["status"], "cancelled");
    let schedule = format!("/v1/workspaces/{}/{path}/schedule", site.workspace);
    assert_eq!(cancelling.request("POST", &schedule, &site.key, &json!({})).0, 409);
    site.resume("send", "resumed").expect(0);
    site.let_it_work(&resuming);
    assert_eq!(site.sink.messages().len(), before, "a campaign waits for a person");
    site.post(&resuming, &format!("{path}/schedule"), &json!({}));
    site.wait_until_sent(&resuming, &path);
    site.let_it_work(&cancelling);

    // The other copy was running all the while: anything it had sent would be second copies.
    let all = (0..COUNT).map(|number| format!("p{number}@d{}.test", number % DOMAINS));
    let expected: BTreeMap<_, _> = all.filter(|to| !known.contains(to)).map(|to| (to, 1)).collect();
    assert_eq!(site.arrived(before), expected);
    assert_eq!(site.waiting(&cancelling), [] as [Value; 0]);
}

#[test]
fn a_pause_in_the_middle_stops_within_five_seconds_and_a_resume_reaches_everybody_once() {
    const COUNT: usize = 600;
    let site = Site::new();
    let server = site.start("serve", "data");
    let path = site.send_campaign(&server, COUNT);
    wait_for(|| (site.sink.messages().len() >= 50).then_some(()));
    site.post(&server, &format!("{path}/pause"), &json!({}));
    thread::sleep(PAUSED_WITHIN);
    // The remaining messages would have been sent meanwhile, or would still be sent.
    let stopped_at = site.sink.messages().len();
    assert!(stopped_at < COUNT, "the pause stopped nothing");
    thread::sleep(Duration::from_secs(1));
    site.let_it_work(&server);
    assert_eq!(site.sink.messages().len(), stopped_at);
    let campaign = site.campaign(&server, &path);
    assert_eq!((&campaign["status"], &campaign["waiting"]), (&json!("paused"), &json!(COUNT - stopped_at)));

    site.post(&server, &format!("{path}/schedule"), &json!({}));
    site.wait_until_sent(&server, &path);
    let arrived = site.arrived(0);
    assert_eq!((arrived.len(), arrived.values().max()), (COUNT, Some(&1)));
    assert_eq!(server.stop(), Some(0));
}
