//! IP pools: the addresses that a workspace may name in them, the domains that use them, and addresses that the
//! operator grants.

use std::net::IpAddr;

use messaging_core::domain::delivery::ip_pool::MAX_POOLS;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::ids::{PoolId, WorkspaceId};
use messaging_engine::admin::{self, SharedPoolChange, SharedPoolInput};
use messaging_engine::ops::PageQuery;
use messaging_engine::{App, Caller, Error, Settings};
use serde_json::{Value, json};

use crate::bed::{self, Bed, Call, Reply};

const ONE: &str = "203.0.113.7";
const SIX: &str = "2001:db8::7";

/// A workspace that two addresses were released to, and its owner.
struct Pools {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
}

impl Pools {
    async fn start() -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        for ip in [ONE, "2001:DB8:0::7"] {
            admin::grant_ip(&bed.app, workspace, ip).await.unwrap();
        }
        Self { bed, workspace, owner }
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/{}{rest}", self.workspace)
    }

    async fn post(&self, body: Value) -> Reply {
        self.bed.post(&self.owner, &self.path("/ip-pools"), body).await
    }

    async fn made(&self, name: &str, ips: &[&str]) -> String {
        let reply = self.post(json!({"name": name, "ips": ips})).await;
        assert_eq!(reply.summary(), "201");
        reply["id"].as_str().unwrap().to_owned()
    }

    async fn get(&self, id: &str) -> Reply {
        self.bed.get(&self.owner, &self.path(&format!("/ip-pools/{id}"))).await
    }

    async fn patch(&self, id: &str, body: Value) -> Reply {
        self.bed.patch(&self.owner, &self.path(&format!("/ip-pools/{id}")), body).await
    }

    async fn delete(&self, id: &str) -> Reply {
        self.bed.delete(&self.owner, &self.path(&format!("/ip-pools/{id}"))).await
    }

    async fn names(&self) -> Value {
        let page = self.bed.get(&self.owner, &self.path("/ip-pools")).await;
        page["data"].as_array().unwrap().iter().map(|pool| pool["name"].clone()).collect()
    }

    /// A sending domain, and its path.
    async fn domain(&self, name: &str) -> String {
        let reply = self.bed.post(&self.owner, &self.path("/sending-domains"), json!({"domain": name})).await;
        assert_eq!(reply.summary(), "201");
        self.path(&format!("/sending-domains/{}", reply["id"].as_str().unwrap()))
    }
}

async fn share(app: &App, name: &str, ips: &[&str]) -> Result<String, Error> {
    let ips = ips.iter().map(|ip| (*ip).to_owned()).collect();
    let pool = admin::create_shared_pool(app, &SharedPoolInput { name: name.to_owned(), ips }).await?;
    Ok(pool.id.to_string())
}

#[tokio::test]
async fn a_pool_is_made_shown_changed_and_deleted() {
    let pools = Pools::start().await;
    let made = pools.post(json!({"name": "marketing", "ips": [ONE, "2001:DB8::7"]})).await;
    let absent = |ip: &str| json!({"ip": ip, "status": "absent"});
    assert_eq!(
        made.body,
        json!({"id": made["id"], "name": "marketing", "ips": [ONE, SIX], "shared": false,
            "sources": [absent(ONE), absent(SIX)],
            "created_at": "2026-01-31T09:15:00.000Z", "updated_at": "2026-01-31T09:15:00.000Z"})
    );
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("ipp_"));
    assert_eq!(pools.get(id).await.body, made.body);
    // A node begins with one of the addresses.
    let source = NamedSource { ip: ONE.parse::<IpAddr>().unwrap().into(), name: "mx.service.test".to_owned() };
    pools.bed.store.announce_sources(&[source]).await.unwrap();
    let shown = pools.get(id).await;
    assert_eq!(shown["sources"], json!([{"ip": ONE, "status": "warming"}, absent(SIX)]));
    let changed = pools.patch(id, json!({"name": "news", "ips": [SIX]})).await;
    assert_eq!(
        (changed.summary(), &changed["name"], &changed["ips"]),
        ("200".to_owned(), &json!("news"), &json!([SIX]))
    );
    assert_eq!(pools.names().await, json!(["news"]));
    assert_eq!(pools.delete(id).await.summary(), "204");
    assert_eq!(pools.get(id).await.summary(), "404 not_found");
    assert_eq!(pools.delete(id).await.summary(), "404 not_found");
}

#[tokio::test]
async fn each_rule_of_a_pool() {
    let pools = Pools::start().await;
    let many: Vec<_> = (0..101).map(|n| format!("10.0.0.{n}")).collect();
    for (body, expected) in [
        (json!({}), "422 /ips required /name required"),
        (json!({"name": "", "ips": []}), "422 /ips too_short /name required"),
        (json!({"name": "n".repeat(101), "ips": [ONE]}), "422 /name too_long"),
        (json!({"name": "n", "ips": many}), "422 /ips too_many_items"),
        (
            json!({"name": "n", "ips": [ONE, "203.0.113.0/24", "mx.acme.com"]}),
            "422 /ips/1 invalid_format /ips/2 invalid_format",
        ),
        (json!({"name": "n", "ips": [SIX, ONE, "2001:DB8:0:0::7"]}), "422 /ips/2 duplicate"),
        (json!({"name": "n", "ips": ["203.0.113.9", ONE, "203.0.113.8"]}), "422 /ips/0 not_allowed /ips/2 not_allowed"),
        (json!({"name": "n", "ip": [ONE], "ips": [ONE]}), "422 /ip unknown_field"),
    ] {
        assert_eq!(pools.post(body.clone()).await.summary(), expected, "{body}");
    }
    assert_eq!(pools.names().await, json!([]));
    let id = pools.made("marketing", &[ONE]).await;
    pools.made("other", &[ONE]).await;
    assert_eq!(pools.post(json!({"name": "marketing", "ips": [SIX]})).await.summary(), "409 already_exists");
    for (body, expected) in [
        (json!({"ips": [ONE, "x"]}), "422 /ips/1 invalid_format"),
        (json!({"ips": ["203.0.113.9"]}), "422 /ips/0 not_allowed"),
        (json!({"ips": null}), "422 /ips required"),
        (json!({"name": "other"}), "409 already_exists"),
        (json!({"name": "other", "ips": ["203.0.113.9"]}), "422 /ips/0 not_allowed"),
    ] {
        assert_eq!(pools.patch(&id, body.clone()).await.summary(), expected, "{body}");
    }
    // A missing pool is reported before faults of the body.
    let unknown = "ipp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    assert_eq!(pools.patch(unknown, json!({"ips": ["x"]})).await.summary(), "404 not_found");
    assert_eq!(pools.get("ipp_1").await.summary(), "404 not_found");
    assert_eq!(pools.get(&id).await["name"], "marketing");
}

#[tokio::test]
async fn a_workspace_has_so_many_pools() {
    let pools = Pools::start().await;
    share(&pools.bed.app, "shared", &[ONE]).await.unwrap();
    for n in 0..MAX_POOLS {
        pools.made(&format!("pool {n}"), &[ONE]).await;
    }
    assert_eq!(pools.post(json!({"name": "one more", "ips": [ONE]})).await.summary(), "422 /name too_many_items");
}

#[tokio::test]
async fn scopes_and_workspaces_are_kept_apart() {
    let pools = Pools::start().await;
    let id = pools.made("marketing", &[ONE]).await;
    let reader = pools.bed.key(pools.workspace, &["domains:read"]).await;
    let path = pools.path("/ip-pools");
    assert_eq!(pools.bed.get(&reader, &path).await.summary(), "200");
    assert_eq!(pools.bed.get(&reader, &format!("{path}/{id}")).await.summary(), "200");
    let refused = "403 scope required: domains:write";
    assert_eq!(pools.bed.post(&reader, &path, json!({})).await.summary(), refused);
    assert_eq!(pools.bed.delete(&reader, &format!("{path}/{id}")).await.summary(), refused);
    let other = admin::create_workspace(&pools.bed.app, "Other", "owner@acme.com").await.unwrap().id;
    let foreign = format!("/workspaces/{other}/ip-pools");
    assert_eq!(pools.bed.get(&pools.owner, &format!("{foreign}/{id}")).await.summary(), "404 not_found");
    // An address that was released to one workspace was not to another.
    let body = json!({"name": "marketing", "ips": [ONE]});
    assert_eq!(pools.bed.post(&pools.owner, &foreign, body).await.summary(), "422 /ips/0 not_allowed");
}

#[tokio::test]
async fn a_domain_names_pools_and_keeps_them_from_being_deleted() {
    let pools = Pools::start().await;
    let (id, marketing) = (pools.made("all", &[ONE]).await, pools.made("marketing", &[SIX]).await);
    let domain = pools.domain("acme.com").await;
    let patch = async |body: Value| pools.bed.patch(&pools.owner, &domain, body).await;
    let shown = pools.bed.get(&pools.owner, &domain).await;
    assert_eq!((&shown["ip_pool_id"], &shown["marketing_ip_pool_id"]), (&Value::Null, &Value::Null));
    let changed = patch(json!({"ip_pool_id": id, "marketing_ip_pool_id": marketing})).await;
    assert_eq!((&changed["ip_pool_id"], &changed["marketing_ip_pool_id"]), (&json!(id), &json!(marketing)));
    let used = pools.delete(&marketing).await;
    assert_eq!(used.summary(), "409 in_use");
    assert!(domain.ends_with(used["error"]["details"]["by"][0].as_str().unwrap()));
    // An absent member stays unchanged; null removes the pool.
    let changed = patch(json!({"marketing_ip_pool_id": null})).await;
    assert_eq!((&changed["ip_pool_id"], &changed["marketing_ip_pool_id"]), (&json!(id), &Value::Null));
    assert_eq!(pools.delete(&marketing).await.summary(), "204");
    // One pool may be both.
    assert_eq!(patch(json!({"ip_pool_id": id, "marketing_ip_pool_id": id})).await.summary(), "200");
    assert_eq!(pools.delete(&id).await.summary(), "409 in_use");
    for (body, expected) in [
        (json!({"ip_pool_id": marketing}), "422 /ip_pool_id not_found"),
        (
            json!({"ip_pool_id": "x", "marketing_ip_pool_id": marketing}),
            "422 /ip_pool_id not_found /marketing_ip_pool_id not_found",
        ),
        (json!({"ip_pool_id": 5}), "422 /ip_pool_id invalid_type"),
    ] {
        assert_eq!(patch(body.clone()).await.summary(), expected, "{body}");
    }
    assert_eq!(pools.bed.get(&pools.owner, &domain).await["ip_pool_id"], json!(id));
    assert_eq!(pools.bed.delete(&pools.owner, &domain).await.summary(), "204");
    assert_eq!(pools.delete(&id).await.summary(), "204");
}

#[tokio::test]
async fn a_shared_pool_is_seen_by_all_and_changed_by_none() {
    let pools = Pools::start().await;
    let app = &pools.bed.app;
    // The operator's addresses need not be released to anybody.
    let id = share(app, "transactional", &["203.0.113.99"]).await.unwrap();
    assert!(matches!(share(app, "transactional", &[ONE]).await, Err(Error::AlreadyExists)));
    let shown = pools.get(&id).await;
    assert_eq!((shown.summary(), &shown["shared"]), ("200".to_owned(), &json!(true)));
    assert_eq!(pools.names().await, json!(["transactional"]));
    assert_eq!(pools.post(json!({"name": "transactional", "ips": [ONE]})).await.summary(), "409 already_exists");
    assert_eq!(pools.patch(&id, json!({"name": "mine"})).await.summary(), "409 invalid_state");
    let refused = pools.delete(&id).await;
    assert_eq!(refused.summary(), "409 invalid_state");
    assert_eq!(refused["error"]["details"], json!({"status": "shared", "allowed": ["own"]}));
    let domain = pools.domain("acme.com").await;
    assert_eq!(pools.bed.patch(&pools.owner, &domain, json!({"ip_pool_id": id})).await.summary(), "200");
    let id: PoolId = id.parse().unwrap();
    assert!(matches!(admin::delete_shared_pool(app, id).await, Err(Error::InUse { by }) if by.len() == 1));
    let change = SharedPoolChange { name: Some("all".to_owned()), ips: Some(vec![SIX.to_owned()]) };
    let changed = admin::update_shared_pool(app, id, &change).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.ips), ("all", vec![SIX.parse::<IpAddr>().unwrap()]));
    let wrong = SharedPoolChange { name: Some(String::new()), ips: Some(vec!["x".to_owned()]) };
    let error = admin::update_shared_pool(app, id, &wrong).await.unwrap_err();
    assert_eq!(error.code(), "validation_failed");
    assert_eq!(admin::list_shared_pools(app).await.unwrap().data.len(), 1);
    assert_eq!(pools.bed.patch(&pools.owner, &domain, json!({"ip_pool_id": null})).await.summary(), "200");
    admin::delete_shared_pool(app, id).await.unwrap();
    assert!(matches!(admin::delete_shared_pool(app, id).await, Err(Error::NotFound)));
    assert_eq!(pools.names().await, json!([]));
}

#[tokio::test]
async fn addresses_are_released_listed_and_taken_back() {
    let pools = Pools::start().await;
    let (app, workspace) = (&pools.bed.app, pools.workspace);
    let first = admin::grant_ip(app, workspace, ONE).await.unwrap();
    assert_eq!(admin::grant_ip(app, workspace, "::ffff:203.0.113.7").await.unwrap(), first);
    assert_eq!(admin::grant_ip(app, workspace, "mx.acme.com").await.unwrap_err().code(), "validation_failed");
    let nowhere: WorkspaceId = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    assert!(matches!(admin::grant_ip(app, nowhere, ONE).await, Err(Error::NotFound)));
    let mut page = PageQuery::of(Some(1), None);
    let mut listed = Vec::new();
    loop {
        let found = admin::list_grants(app, workspace, &page).await.unwrap();
        listed.extend(found.data.into_iter().map(|grant| grant.ip.to_string()));
        let Some(cursor) = found.next_cursor else { break };
        page = PageQuery::of(Some(1), Some(cursor));
    }
    assert_eq!(listed, [SIX, ONE]);
    let id = pools.made("marketing", &[ONE]).await;
    assert!(matches!(admin::revoke_ip(app, workspace, ONE).await, Err(Error::InUse { by }) if by == [id.clone()]));
    assert_eq!(pools.patch(&id, json!({"ips": [SIX]})).await.summary(), "200");
    admin::revoke_ip(app, workspace, ONE).await.unwrap();
    assert!(matches!(admin::revoke_ip(app, workspace, ONE).await, Err(Error::NotFound)));
    assert_eq!(pools.patch(&id, json!({"ips": [ONE]})).await.summary(), "422 /ips/0 not_allowed");
}

#[tokio::test]
async fn every_address_is_released_where_one_tries_out() {
    let pools = Pools::start().await;
    let settings = Settings::default().hostname("mx.service.test").grants_every_source(true);
    let app = pools.bed.another_process_told(settings);
    let path = pools.path("/ip-pools");
    let body = json!({"name": "any", "ips": ["198.51.100.1"]});
    let call = Call::new(&pools.owner, http::Method::POST, &path).body(&body);
    assert_eq!(bed::send(&app, call).await.summary(), "201");
}
