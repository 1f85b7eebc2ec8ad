//! Deletion of a workspace and of a user.

use std::time::Duration;

use http::Method;
use messaging_core::changes::{Changes, JobPlace, JobWrite, Write};
use messaging_core::domain::audience::unsubscribe::UnsubscribeMethod::OneClick;
use messaging_core::domain::message::MessageFilter;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Priority};
use messaging_engine::admin::{self, DeletedWorkspace};
use messaging_engine::ops;
use messaging_engine::{Caller, Error};
use serde_json::json;

use crate::bed::{Bed, Call, Reply};
use crate::mortal::MortalStore;
use crate::support::Product;

const WEEK: Duration = Duration::from_hours(7 * 24);
const ENDS: &str = "2026-02-07T09:15:00.000Z";

async fn delete(bed: &Bed, caller: &Caller, workspace: WorkspaceId, name: &str) -> Reply {
    let target = format!("/workspaces/{workspace}");
    bed.call(Call::new(caller, Method::DELETE, &target).body(&json!({"name": name}))).await
}

async fn restore(bed: &Bed, caller: &Caller, workspace: WorkspaceId) -> Reply {
    bed.call(Call::new(caller, Method::POST, &format!("/workspaces/{workspace}/restore"))).await
}

/// Number of messages, keys, members, domains and contacts of a workspace.
async fn left(bed: &Bed, workspace: WorkspaceId) -> Vec<usize> {
    let (store, page) = (&bed.store, || PageRequest { after: None, limit: 50 });
    vec![
        store.messages(workspace, &MessageFilter::default(), page()).await.unwrap().items.len(),
        store.api_keys(workspace, page()).await.unwrap().items.len(),
        store.members(workspace, page()).await.unwrap().items.len(),
        store.domains(workspace, page()).await.unwrap().items.len(),
        usize::try_from(store.contact_count(workspace).await.unwrap()).unwrap(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_is_asked_for_and_owners_alone_delete_and_restore() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    assert_eq!(delete(&bed, &admin, workspace, "Acme").await.status, 403);
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(delete(&bed, &key, workspace, "Acme").await["error"]["code"], "session_required");
    let refused = delete(&bed, &owner, workspace, "acme").await;
    assert!(refused.summary().contains("/name") && refused.summary().contains("conflict"), "{}", refused.summary());

    let deleted = delete(&bed, &owner, workspace, "Acme").await;
    assert_eq!((deleted.status, deleted.body), (202, json!({"deletes_at": ENDS})));
    bed.clock.advance(Duration::from_hours(1));
    assert_eq!(delete(&bed, &owner, workspace, "Acme").await.body, json!({"deletes_at": ENDS}), "once");
    assert_eq!(bed.get(&owner, "/workspaces").await["data"][0]["deletes_at"], ENDS);
    assert_eq!(restore(&bed, &admin, workspace).await.status, 403);
    let restored = restore(&bed, &owner, workspace).await;
    assert_eq!((restored.status, &restored["deletes_at"]), (200, &json!(null)));
    assert_eq!(restore(&bed, &owner, workspace).await.status, 200, "again");
    // The job of the first deletion finds nothing to do, and that of the second one its end time.
    delete(&bed, &owner, workspace, "Acme").await;
    bed.clock.advance(WEEK - Duration::from_mins(30));
    bed.app.run_until_idle().await.unwrap();
    assert_eq!(restore(&bed, &owner, workspace).await.status, 200);
    bed.clock.advance(WEEK);
    bed.app.run_until_idle().await.unwrap();
    assert_eq!(bed.get(&owner, "/workspaces").await["data"][0]["name"], "Acme");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_accepted_until_it_is_restored_and_everything_can_be_read() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let contacts = format!("/workspaces/{workspace}/contacts");
    bed.post(&owner, &contacts, json!({"email": "ann@example.com"})).await;
    let key = bed.key(workspace, &["*"]).await;
    delete(&bed, &owner, workspace, "Acme").await;
    let another = bed.another_process();
    for (caller, target, body) in [
        (&key, "/messages".to_owned(), json!({"channel": "email", "to": "a@b.co", "subject": "s", "text": "t"})),
        (&key, "/events".to_owned(), json!({"name": "bought", "email": "ann@example.com"})),
        (&owner, contacts.clone(), json!({"email": "ben@example.com"})),
        (&owner, format!("/workspaces/{workspace}/api-keys"), json!({"name": "k", "scopes": ["*"]})),
        (&owner, format!("/workspaces/{workspace}/members"), json!({"email": "x@y.co", "role": "viewer"})),
    ] {
        let call = || Call::new(caller, Method::POST, &target).body(&body);
        for refused in [bed.call(call()).await, crate::bed::send(&another, call()).await] {
            assert_eq!((refused.status, &refused["error"]["code"]), (409, &json!("invalid_state")), "{target}");
        }
    }
    assert_eq!(bed.patch(&owner, &format!("/workspaces/{workspace}"), json!({"name": "Other"})).await.status, 409);
    assert_eq!(bed.get(&key, &contacts).await["data"][0]["email"], "ann@example.com");
    let contact = bed.get(&key, &contacts).await["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(bed.get(&key, &format!("{contacts}/{contact}/export")).await.status, 200);
    restore(&bed, &owner, workspace).await;
    assert_eq!(bed.post(&owner, &contacts, json!({"email": "ben@example.com"})).await.status, 201);
}

#[test]
fn operations_that_only_read_are_known_by_method_or_scope() {
    let taken = ops::all().iter().filter(|one| one.only_reads() && (one.method)() != Method::GET);
    let taken: Vec<_> = taken.map(|one| one.id).collect();
    assert!(taken.contains(&"previewSegment"), "{taken:?}");
    for id in ["sendMessage", "upsertContact", "createApiKey", "deleteContact", "restoreWorkspace"] {
        assert!(!taken.contains(&id), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_held_says_why_and_goes_on_when_it_is_restored() {
    let product = Product::start().await;
    let owner = Caller::Operator(Some(product.workspace));
    let sent = product.send_to("eve@example.com").await;
    product.work().await;
    let id = product.send_to("ann@example.com").await;
    assert_eq!(delete(&product, &owner, product.workspace, "Acme").await.status, 202);
    product.work().await;
    product.pass(Duration::from_hours(24)).await;
    assert_eq!(product.transport.sent().len(), 1);
    let shown = product.bed.get(&product.caller, &format!("/messages/{id}")).await;
    let explanation = &shown["explanation"];
    assert_eq!(explanation["code"], "workspace_ending", "{explanation}");
    assert!(explanation["text"].as_str().unwrap().contains("under deletion"), "{explanation}");
    assert_eq!(explanation["cure"]["operation"], "restoreWorkspace");
    // An unsubscription is accepted.
    assert!(product.app.unsubscribe(product.workspace, sent, OneClick).await.unwrap());
    assert!(product.listed("eve@example.com").await.is_some());

    assert_eq!(restore(&product, &owner, product.workspace).await.status, 200);
    product.pass(Duration::from_mins(2)).await;
    assert_eq!(product.story(id).await, "delivered: Queued Sent Delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_seven_days_all_of_it_is_gone_and_nothing_of_others() {
    let product = Product::start().await;
    let other = admin::create_workspace(&product.app, "Other", "owner@acme.com").await.unwrap().id;
    let body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
        "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]});
    for workspace in [product.workspace, other] {
        let caller = Caller::Operator(Some(workspace));
        let contacts = format!("/workspaces/{workspace}/contacts");
        for n in 0..3 {
            product.bed.post(&caller, &contacts, json!({"email": format!("c{n}@example.com")})).await;
        }
        product.key(workspace, &["*"]).await;
    }
    for _ in 0..2 {
        product.send(&body).await;
    }
    product.work().await;
    product.send(&body).await;
    let before = left(&product, other).await;
    let owner = Caller::Operator(Some(product.workspace));
    delete(&product, &owner, product.workspace, "Acme").await;
    product.work().await;
    assert_eq!(left(&product, product.workspace).await, [3, 1, 1, 1, 3]);
    product.clock.advance(WEEK);
    assert_eq!(restore(&product, &owner, product.workspace).await.status, 404, "the end has come");
    product.work().await;
    product.pass(Duration::from_mins(1)).await;
    product.pass(Duration::from_mins(1)).await;
    assert!(product.store.workspace(product.workspace).await.unwrap().is_none());
    assert_eq!(left(&product, product.workspace).await, [0; 5]);
    assert_eq!(product.app.blobs().blobs_of(product.workspace, 9).await.unwrap(), []);
    assert_eq!(left(&product, other).await, before);
    assert_eq!(restore(&product, &owner, product.workspace).await.status, 404);
    assert!(product.store.jobs_of(&["deliver_message", "delete_workspace"], 9).await.unwrap().is_empty());
    assert!(product.post_message(&body, None).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_removes_a_workspace_at_once() {
    let product = Product::start().await;
    product.send_to("ann@example.com").await;
    product.work().await;
    let DeletedWorkspace { name, deletes_at, .. } =
        admin::delete_workspace(&product.app, product.workspace, false).await.unwrap();
    assert_eq!((name.as_str(), deletes_at.to_string().as_str()), ("Acme", ENDS));
    let nothing = admin::remove_workspace(&product.app, product.workspace, &mut |_| {}).await.unwrap();
    assert!(nothing.is_empty(), "its end has not come: {nothing:?}");
    admin::delete_workspace(&product.app, product.workspace, true).await.unwrap();
    let mut told = 0;
    let removed = admin::remove_workspace(&product.app, product.workspace, &mut |rows| told = rows).await.unwrap();
    assert_eq!((removed["messages"], removed["sending_domains"]), (1, 1));
    assert_eq!(told, removed.values().sum::<u64>());
    assert!(product.store.workspace(product.workspace).await.unwrap().is_none());
    let unknown = admin::delete_workspace(&product.app, product.workspace, true).await;
    assert!(matches!(unknown, Err(Error::NotFound)));
    product.work().await;
}

#[tokio::test]
async fn a_user_is_removed_unless_a_workspace_would_have_no_owner() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let email = bed.get(&owner, "/auth/me").await["user"]["email"].as_str().unwrap().to_owned();
    let refused = admin::delete_user(&bed.app, &email).await.unwrap_err();
    let told = format!("{refused:?}");
    assert!(
        told.contains("Acme") && told.contains(&workspace.to_string()) && told.contains("delete-workspace"),
        "{told}"
    );
    bed.member(workspace, "second@acme.com", "owner").await;
    let removed = admin::delete_user(&bed.app, &email).await.unwrap();
    assert_eq!(removed.email, email);
    let again = json!({"email": email, "password": crate::bed::PASSWORD});
    assert_eq!(bed.post(&Caller::Anonymous, "/auth/login", again).await.status, 401);
    assert_eq!(bed.store.members(workspace, PageRequest { after: None, limit: 9 }).await.unwrap().items.len(), 1);
    assert!(bed.store.user_by_email(&email).await.unwrap().is_none());
    let gone = admin::delete_user(&bed.app, &email).await.unwrap_err();
    assert!(format!("{gone:?}").contains("list-users"));
    // A member who may restore the workspace must remain until its end.
    admin::delete_workspace(&bed.app, workspace, false).await.unwrap();
    let refused = admin::delete_user(&bed.app, "second@acme.com").await.unwrap_err();
    assert!(format!("{refused:?}").contains("delete-workspace --now"), "{refused:?}");
    admin::delete_workspace(&bed.app, workspace, true).await.unwrap();
    admin::delete_user(&bed.app, "second@acme.com").await.unwrap();
}

/// Removes the job that is to delete the workspace, as a fault would.
async fn lose_the_job(bed: &Bed) {
    for job in jobs(bed).await {
        bed.store.commit(Changes::from_iter([Write::Job(JobWrite::Remove(job))]), Priority::Foreground).await.unwrap();
    }
}

async fn jobs(bed: &Bed) -> Vec<JobPlace> {
    bed.store.jobs_of(&["delete_workspace"], 9).await.unwrap().into_iter().map(|job| job.place).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_found_the_workspace_restored_does_not_end_when_it_is_deleted_again() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    delete(&bed, &owner, workspace, "Acme").await;
    bed.app.run_until_idle().await.unwrap();
    restore(&bed, &owner, workspace).await;
    bed.clock.advance(WEEK);
    let store = MortalStore::pausing_at(
        bed.store.clone(),
        |write| matches!(write, Write::Job(JobWrite::Finish(handle)) if handle.lane.as_str().contains("workspace-deletion:")),
    );
    let app = bed.another_process_on(store.clone());
    let working = tokio::spawn(async move { app.run_until_idle().await });
    store.died().await;
    assert_eq!(delete(&bed, &owner, workspace, "Acme").await.status, 202);
    store.go_on();
    working.await.unwrap().unwrap();
    assert_eq!(jobs(&bed).await.len(), 1);
    for span in [WEEK, Duration::from_mins(1), Duration::from_mins(1)] {
        bed.clock.advance(span);
        bed.app.run_until_idle().await.unwrap();
    }
    assert!(bed.store.workspace(workspace).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_and_every_start_sees_to_it_that_there_is_a_job() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    delete(&bed, &owner, workspace, "Acme").await;
    lose_the_job(&bed).await;
    assert_eq!(jobs(&bed).await, []);
    assert_eq!(delete(&bed, &owner, workspace, "Acme").await.body, json!({"deletes_at": ENDS}));
    assert_eq!(jobs(&bed).await.len(), 1);
    lose_the_job(&bed).await;
    admin::delete_workspace(&bed.app, workspace, false).await.unwrap();
    assert_eq!(jobs(&bed).await.len(), 1);
    lose_the_job(&bed).await;
    bed.app.prepare_to_work().await.unwrap();
    bed.app.prepare_to_work().await.unwrap();
    assert_eq!(jobs(&bed).await.len(), 1);
    bed.app.run_until_idle().await.unwrap();
    assert!(bed.store.workspace(workspace).await.unwrap().is_some(), "its end has not come");
}
