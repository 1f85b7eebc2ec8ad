//! Contract section 2.3: a membership belongs to the person. Adding an address to one's own workspace gives no access
//! to memberships that the person gets elsewhere.

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_engine::admin;
use messaging_engine::caller::Caller;
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply};
use crate::second_factors::{add, confirm, enrolled, first_step};

const ANYBODY: Caller = Caller::Anonymous;
const ANOTHER: &str = "a battery staple";
const VICTIM: &str = "victim@example.com";

/// An installation with "Acme" and its owner, and an attacker with another workspace.
struct Attack {
    bed: Bed,
    acme: WorkspaceId,
    owner: Caller,
    theirs: WorkspaceId,
    attacker: Caller,
}

impl Attack {
    async fn begin() -> Self {
        let (bed, acme, owner) = Bed::with_owner().await;
        bed.user("attacker@example.com").await;
        let attacker = bed.sign_in("attacker@example.com").await;
        let made = bed.post(&attacker, "/workspaces", json!({"name": "Theirs"})).await;
        let theirs = made["id"].as_str().unwrap().parse().unwrap();
        Self { bed, acme, owner, theirs, attacker }
    }

    /// Invites an address, and returns the id of its user.
    async fn invite(&self, by: &Caller, workspace: WorkspaceId, email: &str, role: &str) -> String {
        let body = json!({"email": email, "role": role});
        let added = self.bed.post(by, &format!("/workspaces/{workspace}/members"), body).await;
        assert_eq!((added.summary().as_str(), &added["status"]), ("201", &json!("invited")));
        added["user_id"].as_str().unwrap().to_owned()
    }

    async fn ticket(&self, by: &Caller, workspace: WorkspaceId, user: &str) -> Reply {
        let path = format!("/workspaces/{workspace}/members/{user}/ticket");
        self.bed.call(Call::new(by, Method::POST, &path)).await
    }

    /// The text of a ticket that was made.
    async fn ticket_text(&self, by: &Caller, workspace: WorkspaceId, user: &str) -> String {
        let made = self.ticket(by, workspace, user).await;
        assert_eq!(made.summary(), "201");
        made["url"].as_str().unwrap().split_once("#ticket=").unwrap().1.to_owned()
    }

    async fn redeem(&self, ticket: &str, password: Option<&str>) -> Reply {
        let mut body = json!({"ticket": ticket});
        if let Some(password) = password {
            body["password"] = json!(password);
        }
        self.bed.post(&ANYBODY, "/auth/redeem", body).await
    }

    async fn caller(&self, session: &Reply) -> Caller {
        assert_eq!(session.summary(), "200");
        self.bed.app.authenticate(session["token"].as_str().unwrap()).await.unwrap()
    }

    async fn accept(&self, by: &Caller, workspace: WorkspaceId, body: Value) -> String {
        self.bed.post(by, &format!("/auth/invitations/{workspace}/accept"), body).await.summary()
    }

    async fn sees(&self, by: &Caller, workspace: WorkspaceId) -> String {
        self.bed.get(by, &format!("/workspaces/{workspace}/contacts")).await.summary()
    }

    async fn status(&self, user: &str) -> Value {
        let listed = self.bed.get(&self.owner, &format!("/workspaces/{}/members", self.acme)).await;
        let rows = listed["data"].as_array().unwrap();
        rows.iter().find(|row| row["user_id"] == user).map_or(Value::Null, |row| row["status"].clone())
    }
}

#[tokio::test]
async fn an_account_that_a_stranger_set_up_gets_nothing_that_others_give_the_person() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    // The attacker adds the address of another person, and signs in by a ticket of their own workspace.
    let victim = attack.invite(&attack.attacker, attack.theirs, VICTIM, "viewer").await;
    let ticket = attack.ticket_text(&attack.attacker, attack.theirs, &victim).await;
    let squatter = attack.redeem(&ticket, Some(ANOTHER)).await;
    let squatter = attack.caller(&squatter).await;
    assert_eq!(attack.sees(&squatter, attack.theirs).await, "200");

    // The real owner of another workspace gives the person a role there.
    attack.invite(&attack.owner, attack.acme, VICTIM, "admin").await;
    let path = format!("/auth/invitations/{}", attack.acme);
    assert_eq!(attack.sees(&squatter, attack.acme).await, "403 workspace_forbidden");
    assert_eq!(bed.get(&squatter, "/auth/invitations").await["data"], json!([]));
    assert_eq!(attack.accept(&squatter, attack.acme, json!({})).await, "409 invalid_state");
    assert_eq!(attack.accept(&squatter, attack.acme, json!({"ticket": ticket})).await, "410 link_expired");
    assert_eq!(bed.delete(&squatter, &path).await.summary(), "409 invalid_state");
    let again = json!({"current": ANOTHER, "password": "another battery"});
    assert_eq!(bed.post(&squatter, "/auth/password", again).await.summary(), "204");
    let login = json!({"email": VICTIM, "password": "another battery"});
    let squatter = attack.caller(&bed.post(&ANYBODY, "/auth/login", login).await).await;
    assert_eq!(attack.accept(&squatter, attack.acme, json!({})).await, "409 invalid_state");
    let named = admin::create_workspace(&bed.app, "Another", VICTIM).await.unwrap_err();
    assert_eq!(named.code(), "validation_failed");
    assert_eq!(admin::set_operator(&bed.app, VICTIM, true).await.unwrap_err().code(), "validation_failed");

    // The ticket of the invitation proves the person. A password comes from the operator, and ends sessions and
    // tickets.
    let theirs = attack.ticket_text(&attack.owner, attack.acme, &victim).await;
    assert_eq!(attack.redeem(&theirs, Some(PASSWORD)).await.summary(), "409 invalid_state");
    admin::create_user(&bed.app, VICTIM, Some(PASSWORD.to_owned()), None).await.unwrap();
    let person = bed.sign_in(VICTIM).await;
    let listed = bed.get(&person, "/auth/invitations").await;
    let expected = json!([{"workspace_id": attack.acme, "name": "Acme", "role": "admin", "invited_by": "owner@acme.com",
        "created_at": "2026-01-31T09:15:00.000Z"}]);
    assert_eq!(listed["data"], expected);
    assert_eq!(attack.accept(&person, attack.acme, json!({})).await, "200");
    assert_eq!(attack.sees(&person, attack.acme).await, "200");
    assert_eq!(attack.accept(&person, attack.acme, json!({})).await, "404 not_found");
}

#[tokio::test]
async fn factors_that_a_stranger_added_end_when_the_operator_vouches_for_the_person() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    let victim = attack.invite(&attack.attacker, attack.theirs, VICTIM, "viewer").await;
    let ticket = attack.ticket_text(&attack.attacker, attack.theirs, &victim).await;
    let squatter = attack.redeem(&ticket, None).await;
    let squatter = attack.caller(&squatter).await;
    let (factor, secret) = add(bed, &squatter).await;
    assert_eq!(confirm(bed, &squatter, &factor, &secret.code_at(bed.app.now())).await.summary(), "200");
    bed.post(&squatter, "/auth/factors", json!({"kind": "passkey"})).await;

    admin::create_user(&bed.app, VICTIM, Some(PASSWORD.to_owned()), None).await.unwrap();
    let person = bed.sign_in(VICTIM).await;
    assert_eq!(bed.get(&person, "/auth/factors").await["data"], json!([]));
    let me = bed.get(&person, "/auth/me").await;
    assert_eq!((&me["second_factor"], &me["recovery_codes_left"]), (&json!(false), &json!(0)));
    assert!(admin::set_operator(&bed.app, VICTIM, true).await.unwrap().operator);

    // An account that no workspace created keeps its factors when the operator sets a password.
    enrolled(bed, "attacker@example.com").await;
    admin::create_user(&bed.app, "attacker@example.com", Some(PASSWORD.to_owned()), None).await.unwrap();
    first_step(bed, "attacker@example.com").await;
}

#[tokio::test]
async fn a_link_of_one_workspace_signs_in_as_nobody_who_exists_already() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    let victim = bed.member(attack.acme, VICTIM, "admin").await;
    let id = attack.invite(&attack.attacker, attack.theirs, VICTIM, "viewer").await;
    let ticket = attack.ticket_text(&attack.attacker, attack.theirs, &id).await;
    assert_eq!(attack.redeem(&ticket, Some(ANOTHER)).await.summary(), "409 invalid_state");
    let shown = attack.redeem(&ticket, None).await;
    assert_eq!((shown.summary().as_str(), &shown["token"]), ("200", &Value::Null));
    assert_eq!((&shown["invitation"]["name"], &shown["user"]["email"]), (&json!("Theirs"), &json!(VICTIM)));

    // Nor does it matter before she accepts, and only she can.
    let me = bed.get(&victim, "/auth/me").await;
    assert_eq!(me["workspaces"].as_array().unwrap().len(), 1);
    assert_eq!(attack.sees(&victim, attack.theirs).await, "403 workspace_forbidden");
    assert_eq!(attack.accept(&attack.attacker, attack.theirs, json!({"ticket": ticket})).await, "404 not_found");
    let invitations = format!("/auth/invitations/{}", attack.theirs);
    assert_eq!(bed.delete(&attack.attacker, &invitations).await.summary(), "404 not_found");
    assert_eq!(attack.accept(&victim, attack.theirs, json!({"ticket": ticket})).await, "200");
    assert_eq!(attack.redeem(&ticket, None).await.summary(), "410 link_expired");
    assert_eq!(attack.ticket(&attack.attacker, attack.theirs, &id).await.summary(), "409 invalid_state");
    let left = format!("/auth/memberships/{}", attack.theirs);
    assert_eq!(bed.delete(&victim, &left).await.summary(), "204");
    assert_eq!(bed.delete(&victim, &left).await.summary(), "404 not_found");
    assert_eq!(attack.sees(&victim, attack.acme).await, "200");
}

#[tokio::test]
async fn another_workspace_voids_no_invitation() {
    let attack = Attack::begin().await;
    let id = attack.invite(&attack.owner, attack.acme, VICTIM, "editor").await;
    let ticket = attack.ticket_text(&attack.owner, attack.acme, &id).await;
    // The attacker adds the same address, and tries everything to void the invitation.
    attack.bed.clock.advance(std::time::Duration::from_secs(1));
    attack.invite(&attack.attacker, attack.theirs, VICTIM, "viewer").await;
    let foreign = attack.ticket_text(&attack.attacker, attack.theirs, &id).await;
    assert_eq!(attack.redeem(&foreign, Some(ANOTHER)).await.summary(), "409 invalid_state");
    assert_eq!(attack.redeem(&foreign, None).await["token"], Value::Null);
    let removed = format!("/workspaces/{}/members/{id}", attack.theirs);
    assert_eq!(attack.bed.delete(&attack.attacker, &removed).await.summary(), "204");
    let person = attack.redeem(&ticket, Some(PASSWORD)).await;
    let person = attack.caller(&person).await;
    assert_eq!((attack.sees(&person, attack.acme).await.as_str(), attack.status(&id).await), ("200", json!("active")));
    assert_eq!(attack.redeem(&ticket, None).await.summary(), "410 link_expired");
}

#[tokio::test]
async fn a_ticket_opens_no_more_than_whoever_made_it_could_give() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    let admin = bed.member(attack.acme, "admin@acme.com", "admin").await;
    let id = attack.invite(&admin, attack.acme, VICTIM, "editor").await;
    let early = attack.ticket_text(&admin, attack.acme, &id).await;
    let member = format!("/workspaces/{}/members/{id}", attack.acme);
    let role = async |role: &str| bed.patch(&attack.owner, &member, json!({"role": role})).await;
    assert_eq!(role("owner").await.summary(), "200");
    assert_eq!(attack.redeem(&early, Some(ANOTHER)).await.summary(), "410 link_expired");
    assert_eq!(attack.ticket(&admin, attack.acme, &id).await.summary(), "403 role_forbidden");

    // The same holds for a session and a password that the ticket gave before.
    role("editor").await;
    let ticket = attack.ticket_text(&admin, attack.acme, &id).await;
    let session = attack.redeem(&ticket, Some(ANOTHER)).await;
    let caller = attack.caller(&session).await;
    assert_eq!(
        (role("admin").await["status"].clone(), attack.sees(&caller, attack.acme).await.as_str()),
        (json!("active"), "200")
    );
    assert_eq!(role("owner").await["status"], json!("invited"));
    let sign_in = json!({"email": VICTIM, "password": ANOTHER});
    let login = bed.post(&ANYBODY, "/auth/login", sign_in).await;
    for caller in [caller, attack.caller(&login).await] {
        assert_eq!(attack.sees(&caller, attack.acme).await, "403 workspace_forbidden");
        assert_eq!(attack.accept(&caller, attack.acme, json!({})).await, "409 invalid_state");
    }
    assert_eq!(bed.store.owner_count(attack.acme).await.unwrap(), 1);
    let person = attack.caller(&login).await;
    let of_owner = attack.ticket_text(&attack.owner, attack.acme, &id).await;
    assert_eq!(attack.accept(&person, attack.acme, json!({"ticket": of_owner})).await, "200");
    assert_eq!(bed.store.owner_count(attack.acme).await.unwrap(), 2);
}

#[tokio::test]
async fn people_leave_and_decline_by_themselves_but_the_last_owner() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    let own = format!("/auth/memberships/{}", attack.acme);
    assert_eq!(bed.delete(&attack.owner, &own).await.summary(), "409 in_use");
    bed.user(VICTIM).await;
    let person = bed.sign_in(VICTIM).await;
    let id = attack.invite(&attack.owner, attack.acme, VICTIM, "owner").await;
    assert_eq!(bed.delete(&attack.owner, &own).await.summary(), "409 in_use", "an owner who has not accepted is none");
    assert_eq!(bed.delete(&person, &own).await.summary(), "404 not_found", "declining is another matter");
    assert_eq!(bed.delete(&person, &format!("/auth/invitations/{}", attack.acme)).await.summary(), "204");
    assert_eq!(attack.status(&id).await, Value::Null);
    attack.invite(&attack.owner, attack.acme, VICTIM, "owner").await;
    bed.accept(&person, attack.acme).await;
    assert_eq!(bed.delete(&attack.owner, &own).await.summary(), "204");
    assert_eq!(attack.sees(&attack.owner, attack.acme).await, "403 workspace_forbidden");
    assert_eq!(attack.sees(&person, attack.acme).await, "200");
}

#[tokio::test]
async fn a_link_of_the_operator_frees_an_account_that_nobody_else_has_a_password_of() {
    let attack = Attack::begin().await;
    let bed = &attack.bed;
    let id = attack.invite(&attack.attacker, attack.theirs, VICTIM, "viewer").await;
    let ticket = attack.ticket_text(&attack.attacker, attack.theirs, &id).await;
    let session = attack.redeem(&ticket, None).await;
    let token = session["token"].as_str().unwrap();
    attack.invite(&attack.owner, attack.acme, VICTIM, "editor").await;
    let link = async || {
        let url = admin::login_link(&bed.app, VICTIM).await.unwrap().url.into_inner();
        url.split_once("#ticket=").unwrap().1.to_owned()
    };
    let person = attack.redeem(&link().await, None).await;
    let person = attack.caller(&person).await;
    assert_eq!(bed.app.authenticate(token).await.unwrap_err().code(), "invalid_credentials");
    assert_eq!(attack.accept(&person, attack.acme, json!({})).await, "200");

    // If another person may have set a password, only a new password proves the person.
    let other = "other@example.com";
    let id = attack.invite(&attack.attacker, attack.theirs, other, "viewer").await;
    let ticket = attack.ticket_text(&attack.attacker, attack.theirs, &id).await;
    assert_eq!(attack.redeem(&ticket, Some(ANOTHER)).await.summary(), "200");
    attack.invite(&attack.owner, attack.acme, other, "editor").await;
    for (password, expected) in [(None, "409 invalid_state"), (Some(PASSWORD), "200")] {
        let url = admin::login_link(&bed.app, other).await.unwrap().url.into_inner();
        let person = attack.redeem(url.split_once("#ticket=").unwrap().1, password).await;
        assert_eq!(attack.accept(&attack.caller(&person).await, attack.acme, json!({})).await, expected);
    }
}
