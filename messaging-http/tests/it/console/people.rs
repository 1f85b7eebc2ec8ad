//! Users who sign in by themselves.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::account::Member;
use messaging_core::scope::Role;
use messaging_engine::admin;
use serde_json::{Value, json};

use crate::harness::TestServer;

/// Everybody's password.
pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// A user with a password.
pub(crate) struct Person {
    pub(crate) email: String,
}

impl Person {
    /// A new member of the test's workspace.
    pub(crate) async fn join(server: &TestServer, email: &str, role: Role) -> Self {
        let user = admin::create_user(&server.app, email, Some(PASSWORD.to_owned()), None).await.unwrap();
        let member = Member::active(server.workspace, user.id, role, server.app.now());
        server.commit([Write::put(member, Expect::Absent)]).await;
        Self { email: email.to_owned() }
    }

    /// Signs in as a program does; returns the token.
    pub(crate) async fn token(&self, server: &TestServer) -> String {
        let body = json!({"email": self.email, "password": PASSWORD}).to_string();
        let answer =
            server.request("POST", "/v1/auth/login", &[("content-type", "application/json")], Some(&body)).await;
        let Value::String(token) = answer.json()["token"].take() else { panic!("{answer:?}") };
        token
    }
}
