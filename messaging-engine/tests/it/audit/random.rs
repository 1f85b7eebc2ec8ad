//! Two hundred operations in a random order, valid and refused ones: afterwards the audit logs have one row for each
//! that changed something and no other, and no secret is in the tables that people read.

mod kinds;
mod tried;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use messaging_engine::vault::Vault;
use messaging_engine::{AnsweredRequest, KeyRing};

use self::kinds::{KINDS, Kind};
use self::tried::{Effect, Tried};
use super::*;
use crate::bed::{KEY, send};
use crate::imports::announcement;
use crate::test_store;

/// Operations of a run that may be recorded.
const OPERATIONS: usize = 200;

/// Seeds of the random generator, a run for each.
const SEEDS: [u64; 2] = [0x5EED, 0xA0D1];

/// Fewest octets of a text that is searched for as a secret: a shorter one may occur by chance.
const LEAST: usize = 10;

/// Characters of a secret that are searched for.
const MOST: usize = 120;

/// Person who signs in and out.
const PAT: &str = "pat@acme.com";

/// The logs of the workspace and of the installation.
const BOTH: [bool; 2] = [true, true];

/// Tables whose rows people read.
const TABLES: [&str; 4] = ["audit_log", "audit_chains", "api_requests", "api_request_bodies"];

/// Members of requests and answers whose values are secrets.
const SECRET: [&str; 9] =
    ["key", "secret", "token", "password", "current", "auth_token", "uri", "upload_url", "recovery_codes"];

/// A repeatable random generator: xorshift.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    /// Returns true once in `many` times.
    fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// A caller, and the name of that caller in entries.
struct Somebody {
    caller: Caller,
    actor: Value,
}

impl Somebody {
    fn new(caller: Caller) -> Self {
        let actor = match &caller {
            Caller::Session(_) => bed_actor(&caller),
            Caller::Key(key) => json!({"kind": "key", "id": key.id, "name": key.name}),
            Caller::Operator(_) => json!({"kind": "command", "id": null, "name": null}),
            Caller::Anonymous => panic!("nobody"),
        };
        Self { caller, actor }
    }

    const fn is_operator(&self) -> bool {
        matches!(self.caller, Caller::Operator(_))
    }
}

/// A row that the logs must have.
#[derive(Debug)]
struct Expected {
    operation: &'static str,
    actor: Value,
    resource: Value,
    effect: Effect,
    /// True for each log that has the row: the workspace's, and the installation's.
    logs: [bool; 2],
}

/// A workspace in which people and programs do things.
struct World {
    bed: Bed,
    workspace: WorkspaceId,
    base: String,
    chance: Chance,
    /// Callers who may do everything, and the operator.
    able: Vec<Somebody>,
    /// Callers who may change nothing.
    weak: Vec<Somebody>,
    pat: Value,
    password: String,
    /// Tokens of Pat's sessions.
    sessions: Vec<String>,
    /// Existing resources of each kind, as they were last shown.
    live: BTreeMap<&'static str, Vec<Value>>,
    /// A public list and a template, which other resources refer to.
    fixed: [Value; 2],
    number: usize,
    tried: usize,
    refused: usize,
    expected: Vec<Expected>,
    secrets: BTreeSet<String>,
    sealed: BTreeSet<String>,
}

impl World {
    async fn begin(seed: u64) -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        let admin = bed.member(workspace, "admin@acme.com", "admin").await;
        let viewer = bed.member(workspace, "viewer@acme.com", "viewer").await;
        bed.member(workspace, PAT, "editor").await;
        admin::grant_ip(&bed.app, workspace, "203.0.113.7").await.unwrap();
        let (all, reading) = (bed.key(workspace, &["*"]).await, bed.key(workspace, &["contacts:read"]).await);
        let base = format!("/workspaces/{workspace}");
        // Bodies of all requests are logged, and a webhook gets every entry.
        assert_eq!(bed.patch(&owner, &base, json!({"request_log": "all"})).await.summary(), "200");
        let hook = json!({"url": "https://acme.com/audit", "events": ["audit.recorded"]});
        let hook = bed.post(&owner, &format!("{base}/webhooks"), hook).await;
        let list = json!({"name": "News", "visibility": "public"});
        let list = bed.post(&owner, &format!("{base}/lists"), list).await;
        let template = json!({"name": "Hi", "channel": "email", "subject": "Hi", "text": "Hello"});
        let template = bed.post(&owner, &format!("{base}/templates"), template).await;
        let operator = Caller::Operator(Some(workspace));
        let pat = bed.get(&owner, &format!("{base}/members?limit=200")).await;
        let pat = pat["data"].as_array().unwrap().iter().find(|one| one["email"] == PAT).unwrap().clone();
        let mut world = Self {
            bed,
            workspace,
            base,
            chance: Chance(seed),
            able: [owner, admin, all, operator].map(Somebody::new).into(),
            weak: [viewer, reading].map(Somebody::new).into(),
            pat: json!({"kind": "user", "id": pat["user_id"], "name": PAT}),
            password: PASSWORD.to_owned(),
            sessions: Vec::new(),
            live: BTreeMap::new(),
            fixed: [list["id"].clone(), template["id"].clone()],
            number: 0,
            tried: 0,
            refused: 0,
            expected: Vec::new(),
            secrets: BTreeSet::from([PASSWORD.to_owned()]),
            sealed: BTreeSet::new(),
        };
        world.keep_secrets(&hook.body);
        world
    }

    fn next(&mut self) -> usize {
        self.number += 1;
        self.number
    }

    /// Chooses the next caller; sometimes one without permission.
    fn somebody(&mut self) -> (Caller, Value, bool) {
        let is_weak = self.chance.once_in(8);
        let crowd = if is_weak { &self.weak } else { &self.able };
        let one = &crowd[self.chance.below(crowd.len())];
        (one.caller.clone(), one.actor.clone(), one.is_operator())
    }

    /// Makes a request as a front end does, and notes the row that it must leave if it changes something.
    async fn try_out(&mut self, tried: Tried) -> Reply {
        let (caller, actor, is_operator) = self.somebody();
        let logs = [true, is_operator || tried.kind == "workspace"];
        self.try_as(&caller, actor, logs, tried).await
    }

    async fn try_as(&mut self, caller: &Caller, actor: Value, logs: [bool; 2], tried: Tried) -> Reply {
        self.tried += 1;
        self.bed.clock.advance(Duration::from_secs(1));
        let once = format!("once-{}", self.tried);
        let may_repeat = tried.method == Method::POST && matches!(caller, Caller::Session(_) | Caller::Key(_));
        let is_repeated = may_repeat && self.chance.once_in(6);
        let call = || {
            let call = Call::new(caller, tried.method.clone(), &tried.path).bytes(tried.body.clone());
            if is_repeated { call.key(&once) } else { call }
        };
        let reply = send(&self.bed.app, call()).await;
        assert!(reply.status < 500, "{tried:?}: {}", reply.summary());
        if is_repeated && reply.status < 300 {
            let again = send(&self.bed.app, call()).await;
            assert!(again.replayed && again.body == reply.body, "{tried:?}: {}", again.summary());
        }
        self.log(caller, &tried, &reply);
        self.keep_secrets(&reply.body);
        self.keep_secrets(&tried.sent());
        self.keep_sealed().await;
        if reply.status >= 300 {
            self.refused += 1;
        } else if let Some(effect) = tried.effect(&reply.body) {
            let resource = tried.resource(&reply.body);
            self.expected.push(Expected { operation: tried.operation, actor, resource, effect, logs });
        }
        reply
    }

    /// Logs a request of the workspace, as the server does.
    fn log(&self, caller: &Caller, tried: &Tried, reply: &Reply) {
        if matches!(caller, Caller::Anonymous) {
            return;
        }
        let id = format!("req-{}", self.tried);
        let (method, path) = (tried.method.clone(), tried.path.clone());
        let mut request = AnsweredRequest::new(self.workspace, id, method, path, tried.operation);
        request.is_write = tried.method != Method::GET;
        request.status = reply.status;
        request.request = tried.body.clone().into();
        request.response = reply.body.to_string().into();
        self.bed.app.log_request(request);
    }

    /// Remembers the secrets in a request or an answer.
    fn keep_secrets(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(text) if SECRET.contains(&name.as_str()) => self.keep_secret(text),
                        Value::String(text) => {
                            // Tickets and tokens in links, and headers.
                            for part in ["#ticket=", "?token=", "Bearer "] {
                                self.secrets.extend(text.split_once(part).map(|(_, rest)| rest.to_owned()));
                            }
                        }
                        other => self.keep_secrets(other),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.keep_secrets(item);
                }
            }
            _ => {}
        }
    }

    fn keep_secret(&mut self, text: &str) {
        // The part of a key before the point is public, and so is that of a link before the token.
        let part = match text {
            key if key.starts_with("mk_live_") => key.split('.').next_back(),
            link if link.starts_with("https://") => link.rsplit('/').next(),
            whole => Some(whole),
        };
        self.secrets.extend(part.filter(|part| part.len() >= LEAST).map(ToOwned::to_owned));
    }

    /// Remembers the decrypted values of the database, such as DKIM keys, and their encrypted form.
    async fn keep_sealed(&mut self) {
        let vault = Vault::of(&KeyRing::from(KEY));
        for secret in self.bed.store.sealed_secrets(1000).await.unwrap() {
            if self.sealed.insert(secret.sealed.clone()) {
                let opened = vault.open(&secret.place, &secret.sealed).unwrap();
                let parts = opened.split(|c: char| c.is_whitespace() || "\"{}:,\\".contains(c));
                self.secrets.extend(parts.filter(|part| part.len() >= LEAST).map(ToOwned::to_owned));
            }
        }
    }

    async fn step(&mut self) {
        match self.chance.below(16) {
            0 => self.settings().await,
            1 | 2 => self.sign_in_or_out().await,
            3 => self.contact().await,
            4 => self.queue_or_import().await,
            _ => {
                let kind = &KINDS[self.chance.below(KINDS.len())];
                self.touch(kind).await;
            }
        }
    }

    /// Creates, changes, uses or deletes a resource of a kind, or is refused.
    async fn touch(&mut self, kind: &'static Kind) {
        let n = self.next();
        let path = format!("{}{}", self.base, kind.path);
        let live = self.live.get(kind.name).map_or(0, Vec::len);
        if live == 0 || self.chance.once_in(3) {
            let body = if self.chance.once_in(8) { b"{}".to_vec() } else { (kind.body)(n, &self.fixed) };
            let reply = self.try_out(Tried::create(kind, path, body)).await;
            if reply.status < 300 {
                self.live.entry(kind.name).or_default().push(reply.body);
            }
            return;
        }
        let place = self.chance.below(live);
        let before = self.live[kind.name][place].clone();
        let one = format!("{path}/{}", before[kind.id].as_str().unwrap());
        let choice = self.chance.below(4 + kind.acts.len());
        match (choice, kind.patch) {
            (0, _) => {
                let reply = self.try_out(Tried::delete(kind, one, before)).await;
                if reply.status < 300 {
                    self.live.get_mut(kind.name).unwrap().remove(place);
                }
            }
            (1, _) => {
                let missing = before[kind.id].as_str().unwrap();
                let missing = format!("{path}/{}", missing[..missing.len() - 6].to_owned() + "000000");
                let reply = self.try_out(Tried::delete(kind, missing, before)).await;
                assert!([403, 404].contains(&reply.status), "{}", reply.summary());
            }
            (2 | 3, Some((operation, patch))) => {
                let body = patch(n, &before);
                // The second time nothing changes.
                for _ in 0..2 {
                    let before = self.live[kind.name][place].clone();
                    let reply = self.try_out(Tried::update(kind, operation, one.clone(), before, &body)).await;
                    if reply.status < 300 {
                        self.live.get_mut(kind.name).unwrap()[place] = reply.body;
                    }
                }
            }
            (2 | 3, None) => {}
            (act, _) => {
                let act = &kind.acts[act - 4];
                let reply = self.try_out(Tried::act(kind, act, &one, &before)).await;
                if reply.status < 300 && act.is_copy {
                    self.live.get_mut(kind.name).unwrap().push(reply.body);
                }
            }
        }
    }

    async fn settings(&mut self) {
        let n = self.next();
        let channel = format!("{}/channels/email", self.base);
        let resource = json!({"kind": "channel", "id": "email", "name": "email"});
        match self.chance.below(4) {
            0 => {
                let all = self.bed.get(&self.able[0].caller, "/workspaces").await;
                let mut all = all["data"].as_array().unwrap().iter();
                let before = all.find(|one| self.base.ends_with(one["id"].as_str().unwrap())).unwrap().clone();
                let tried = Tried::of("updateWorkspace", "workspace", Method::PATCH, self.base.clone());
                let resource = json!({"kind": "workspace", "id": before["id"], "name": before["name"]});
                let name = format!("Acme {n}");
                let change = json!([{"pointer": "/name", "before": before["name"], "after": name}]);
                self.try_out(tried.sending(json!({"name": name})).about(resource).changing(change)).await;
            }
            1 => {
                // The second time there is nothing to delete.
                for _ in 0..2 {
                    let before = self.bed.get(&self.able[0].caller, &format!("{}/channels", self.base)).await;
                    let mut channels = before["data"].as_array().unwrap().iter();
                    let is_set = channels.any(|one| one["channel"] == "email" && one["provider"] == "smtp");
                    let tried = Tried::of("deleteChannel", "channel", Method::DELETE, channel.clone());
                    let tried = tried.about(resource.clone());
                    self.try_out(if is_set { tried } else { tried.without_effect() }).await;
                }
            }
            _ => {
                let config = json!({"host": format!("mx{n}.acme.com"), "port": 587, "username": "u",
                    "password": format!("hunter22-of-relay-{n}")});
                let tried = Tried::of("setChannel", "channel", Method::PUT, channel);
                let tried = tried.sending(json!({"provider": "smtp", "config": config})).about(resource);
                let change = json!([{"pointer": "/config/password", "after": "•••"}]);
                self.try_out(tried.changing(change)).await;
            }
        }
    }

    async fn sign_in_or_out(&mut self) {
        let choice = self.chance.below(6);
        match self.sessions.pop().filter(|_| choice > 1) {
            None if choice == 0 => self.sign_in_in_vain().await,
            None => self.sign_in().await,
            Some(token) => {
                let Ok(caller) = self.bed.app.authenticate(&token).await else { return };
                self.use_session(&caller, choice).await;
                if choice > 4 {
                    self.sessions.push(token);
                }
            }
        }
    }

    /// The person who signs in and out, as entries name them.
    fn person(&self) -> Value {
        json!({"kind": "user", "id": self.pat["id"], "name": PAT})
    }

    fn login(&self, password: &str) -> Tried {
        let body = json!({"email": PAT, "password": password});
        let tried = Tried::of("login", "user", Method::POST, "/auth/login".to_owned());
        tried.sending(body).about(self.person())
    }

    async fn sign_in(&mut self) {
        let (tried, pat) = (self.login(&self.password), self.pat.clone());
        let reply = self.try_as(&Caller::Anonymous, pat, BOTH, tried).await;
        if reply.status == 200 {
            self.sessions.push(reply["token"].as_str().unwrap().to_owned());
        }
    }

    async fn sign_in_in_vain(&mut self) {
        let n = self.next();
        let (tried, actor) = (self.login(&format!("not-the-password-{n}")), self.pat.clone());
        let reply = self.try_as(&Caller::Anonymous, actor.clone(), BOTH, tried).await;
        if reply.status == 401 {
            let (resource, effect) = (self.person(), Effect::default());
            self.expected.push(Expected { operation: "loginRefused", actor, resource, effect, logs: BOTH });
        }
    }

    async fn use_session(&mut self, caller: &Caller, choice: usize) {
        let (n, pat) = (self.next(), self.pat.clone());
        let person = self.person();
        let of =
            |operation, method, path: &str| Tried::of(operation, "user", method, path.to_owned()).about(person.clone());
        match choice {
            2 => {
                self.try_as(caller, pat, BOTH, of("logout", Method::POST, "/auth/logout")).await;
            }
            3 => {
                let new = format!("a horse of colour {n}");
                let body = json!({"current": self.password, "password": new});
                let change = json!([{"pointer": "/password", "before": "•••", "after": "•••"}]);
                let set = of("setPassword", Method::POST, "/auth/password").sending(body).changing(change);
                if self.try_as(caller, pat, BOTH, set).await.status < 300 {
                    self.password = new;
                }
            }
            4 => {
                let body = json!({"kind": "totp", "name": format!("Phone {n}"), "password": self.password});
                let tried = Tried::of("createFactor", "factor", Method::POST, "/auth/factors".to_owned());
                self.try_as(caller, pat, BOTH, tried.sending(body).naming_by_answer()).await;
            }
            _ => {
                self.try_as(caller, pat, BOTH, of("deleteOtherSessions", Method::DELETE, "/auth/sessions")).await;
            }
        }
    }

    /// Exports and erases a contact, whose creation is not recorded.
    async fn contact(&mut self) {
        let n = self.next();
        let contacts = format!("{}/contacts", self.base);
        let body = json!({"email": format!("reader-{n}@example.com")});
        let made = self.bed.post(&self.able[0].caller, &contacts, body).await;
        let one = format!("{contacts}/{}", made["id"].as_str().unwrap());
        let about = json!({"kind": "contact", "id": made["id"], "name": null});
        let path = format!("{one}/export");
        self.try_out(Tried::of("exportContact", "contact", Method::GET, path).about(about.clone())).await;
        self.try_out(Tried::of("deleteContact", "contact", Method::DELETE, one).about(about)).await;
    }

    async fn queue_or_import(&mut self) {
        let n = self.next();
        if self.chance.once_in(2) {
            let path = format!("{}/contacts/import", self.base);
            let tried = Tried::of("createImport", "import", Method::POST, path);
            let body = announcement(format!("email\nimported-{n}@example.com\n").as_bytes(), json!({}));
            self.try_out(tried.sending(body).naming_by_answer()).await;
            return;
        }
        let body = json!({"domain": format!("d{n}.example")});
        let change = json!([{"pointer": "/domain", "before": null, "after": body["domain"]}]);
        for (operation, act) in [("suspendQueue", "suspend"), ("resumeQueue", "resume")] {
            let tried = Tried::of(operation, "queue", Method::POST, format!("/system/queue/{act}"));
            let tried = tried.sending(body.clone()).about(json!({"kind": "queue", "id": null, "name": null}));
            let actor = json!({"kind": "command", "id": null, "name": null});
            self.try_as(&OPERATOR, actor, [false, true], tried.changing(change.clone())).await;
        }
    }
}

/// All entries of a log, oldest first, without the first ones.
async fn entries_after(bed: &Bed, caller: &Caller, path: &str, first: usize) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = bed.get(caller, &format!("{path}?limit=200{cursor}")).await;
        assert_eq!(page.summary(), "200");
        entries.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    entries.reverse();
    entries.split_off(first)
}

#[track_caller]
fn compare(found: &[Value], expected: &[&Expected]) {
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found["operation"], expected.operation, "row {place}: {found} for {expected:?}");
        assert_eq!(found["actor"], expected.actor, "row {place}: {found} for {expected:?}");
        let mut resource = found["resource"].clone();
        if expected.resource["name"].is_null() {
            resource["name"] = Value::Null;
        }
        assert_eq!(resource, expected.resource, "row {place}: {found}");
        expected.effect.check(found["changes"].as_array().unwrap());
    }
    assert_eq!(found.len(), expected.len(), "{:?}", found.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_random_operations_leave_their_rows_and_no_secret() {
    for seed in SEEDS {
        let mut world = World::begin(seed).await;
        let owner = world.able[0].caller.clone();
        let logs = [(owner, format!("{}/audit", world.base)), (OPERATOR, "/system/audit".to_owned())];
        let mut before = Vec::new();
        for (caller, path) in &logs {
            before.push(entries_after(&world.bed, caller, path, 0).await.len());
        }
        while world.tried < OPERATIONS {
            world.step().await;
        }
        world.bed.app.requests_written().await;

        for (log, (caller, path)) in logs.iter().enumerate() {
            let found = entries_after(&world.bed, caller, path, before[log]).await;
            let expected: Vec<_> = world.expected.iter().filter(|one| one.logs[log]).collect();
            compare(&found, &expected);
        }
        let operations: BTreeSet<_> = world.expected.iter().map(|one| one.operation).collect();
        assert!(operations.len() >= 25, "{seed:#x}: only {operations:?}");
        assert!(world.expected.len() >= 70 && world.refused >= 15, "{} and {}", world.expected.len(), world.refused);
        let report = admin::verify(&world.bed.app).await.unwrap();
        assert_eq!(report.differences, [], "{seed:#x}");

        // The logs keep only the beginning of a long value.
        let secrets: Vec<String> =
            world.secrets.iter().chain(&world.sealed).map(|one| one.chars().take(MOST).collect()).collect();
        assert!(secrets.len() >= 30, "{seed:#x}: {} secrets", secrets.len());
        for table in TABLES {
            let rows = test_store::rows(world.bed.directory.path(), table);
            assert!(!rows.is_empty(), "{table}");
            for row in &rows {
                let leaked: Vec<_> = secrets.iter().filter(|secret| row.contains(secret.as_str())).collect();
                assert!(leaked.is_empty(), "{seed:#x}: {leaked:?} in a row of {table}: {row}");
            }
        }
    }
}
