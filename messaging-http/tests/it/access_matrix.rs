//! Every operation against every kind of caller.
//!
//! The expected result is derived here from the contract's tables (sections 2.1 and 2.3) and the operation's declared
//! access, without the code that decides.

use messaging_core::changes::Write;
use messaging_core::scope::{Access, Role, Scope};
use messaging_engine::ops::{self, Endpoint};

use crate::harness::{TestServer, long_ago, request_text};
use crate::wire::{Response, Wire};

/// A kind of caller: its credential, and the scopes or role that come with it.
#[derive(Debug, Clone)]
enum Caller {
    Nobody,
    Revoked,
    Expired,
    /// A key with every scope, from an address outside its allowlist.
    Elsewhere,
    /// A key of the workspace.
    Key(Vec<Scope>),
    /// A key with every scope of another workspace.
    ForeignKey,
    /// A person with this role in the workspace; `None` for no member.
    Session(Option<Role>),
    /// An owner whose request names no workspace.
    Unspecific,
    /// An operator of the installation who is no member.
    Operator,
}

/// The code of the refusal, or `None` if the operation itself is reached.
fn expected(endpoint: &Endpoint, caller: &Caller) -> Option<String> {
    let refused = |code: &str| Some(code.to_owned());
    let is_in_path = endpoint.path.starts_with("/workspaces/{workspace_id}");
    let access = endpoint.access;
    if access == Access::Public {
        return None;
    }
    match caller {
        Caller::Nobody => refused("missing_credentials"),
        Caller::Revoked | Caller::Expired => refused("invalid_credentials"),
        Caller::Elsewhere => refused("ip_not_allowed"),
        Caller::ForeignKey if is_in_path => refused("workspace_forbidden"),
        Caller::ForeignKey => key_expected(access, &[Scope::All]),
        Caller::Key(scopes) => key_expected(access, scopes),
        Caller::Unspecific if is_in_path => None,
        Caller::Unspecific => match access {
            Access::AnyCredential | Access::Session => None,
            Access::Operator => refused("role_forbidden"),
            _ => refused("workspace_forbidden"),
        },
        Caller::Operator if access == Access::Operator => None,
        Caller::Session(_) if access == Access::Operator => refused("role_forbidden"),
        Caller::Operator => expected(endpoint, &Caller::Session(None)),
        Caller::Session(role) => match (access, role) {
            (Access::AnyCredential | Access::Session, _) if !is_in_path => None,
            (_, None) => refused("workspace_forbidden"),
            (access, Some(role)) if role_suffices(access, *role) => None,
            _ => refused("role_forbidden"),
        },
    }
}

fn key_expected(access: Access, held: &[Scope]) -> Option<String> {
    let needed = match access {
        Access::Public | Access::AnyCredential => return None,
        Access::Session | Access::SessionRole(_) | Access::Operator => return Some("session_required".to_owned()),
        Access::Scope(scope) | Access::ScopeOrAdmin(scope) => vec![scope.as_str()],
        Access::Scopes(first, second) => vec![first.as_str(), second.as_str()],
        Access::Administration => vec!["*"],
    };
    let has = |wanted: &str| {
        held.iter().map(|scope| scope.as_str()).any(|scope| {
            let reads =
                if scope == "messages:send" { "messages:read".to_owned() } else { scope.replace(":write", ":read") };
            scope == "*" || scope == wanted || reads == wanted
        })
    };
    // Refusals of operations that read messages still name the scope that was required before `messages:read` existed.
    let named = |scope: &str| scope.replace("messages:read", "messages:send");
    needed.into_iter().find(|scope| !has(scope)).map(|scope| format!("scope required: {}", named(scope)))
}

fn role_suffices(access: Access, role: Role) -> bool {
    let is_administrator = matches!(role, Role::Admin | Role::Owner);
    let has = |wanted: Scope| {
        let editor = [
            "contacts:read",
            "contacts:write",
            "templates:read",
            "templates:write",
            "campaigns:read",
            "campaigns:write",
            "automations:read",
            "automations:write",
            "messages:send",
            "messages:read",
            "events:write",
            "analytics:read",
            "domains:read",
            "webhooks:read",
            "pii:read",
        ];
        match role {
            Role::Owner | Role::Admin => true,
            Role::Editor => editor.contains(&wanted.as_str()),
            Role::Viewer => wanted.as_str().ends_with(":read") && wanted.as_str() != "pii:read",
        }
    };
    match access {
        Access::Scope(scope) => has(scope),
        Access::Scopes(first, second) => has(first) && has(second),
        Access::Administration | Access::ScopeOrAdmin(_) | Access::SessionRole(Role::Admin) => is_administrator,
        Access::SessionRole(Role::Owner) => role == Role::Owner,
        Access::Operator => false,
        Access::SessionRole(Role::Editor) => role != Role::Viewer,
        Access::Public | Access::AnyCredential | Access::Session | Access::SessionRole(Role::Viewer) => true,
    }
}

fn callers(endpoint: &Endpoint) -> Vec<Caller> {
    let mut callers = vec![
        Caller::Nobody,
        Caller::Revoked,
        Caller::Expired,
        Caller::Elsewhere,
        Caller::ForeignKey,
        Caller::Key(vec![]),
        Caller::Session(None),
        Caller::Unspecific,
        Caller::Operator,
    ];
    callers.extend(Scope::ALL.iter().map(|scope| Caller::Key(vec![*scope])));
    if let Access::Scopes(first, second) = endpoint.access {
        callers.push(Caller::Key(vec![first, second]));
    }
    callers.extend([Role::Viewer, Role::Editor, Role::Admin, Role::Owner].map(|role| Caller::Session(Some(role))));
    callers
}

/// Creates a caller of this kind and returns its token.
fn token(
    server: &TestServer,
    caller: &Caller,
    foreign: messaging_core::ids::WorkspaceId,
) -> (Option<String>, Vec<Write>) {
    let key = |(token, write): (String, Write)| (Some(token), vec![write]);
    let session = |(token, writes): (String, Vec<Write>)| (Some(token), writes);
    match caller {
        Caller::Nobody => (None, vec![]),
        Caller::Revoked => key(server.new_key(&[Scope::All], |key| key.revoked_at = Some(long_ago()))),
        Caller::Expired => key(server.new_key(&[Scope::All], |key| key.expires_at = Some(long_ago()))),
        Caller::Elsewhere => key(server.new_key(&[Scope::All], |key| key.ip_allowlist = vec!["192.0.2.1".into()])),
        Caller::Key(scopes) => key(server.new_key(scopes, |_| {})),
        Caller::ForeignKey => key(server.new_key(&[Scope::All], |key| key.workspace_id = foreign)),
        Caller::Session(role) => session(server.new_session(*role)),
        Caller::Unspecific => session(server.new_session(Some(Role::Owner))),
        Caller::Operator => session(server.new_operator(None)),
    }
}

async fn call(
    wire: &mut Wire,
    server: &TestServer,
    endpoint: &Endpoint,
    caller: &Caller,
    token: Option<&str>,
) -> Response {
    let path: String = endpoint
        .path
        .split('/')
        .map(|part| match part {
            "{workspace_id}" => server.workspace.to_string(),
            part if part.starts_with('{') => "nobody".to_owned(),
            part => part.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("/");
    let authorization = token.map(|token| format!("Bearer {token}"));
    let workspace = server.workspace.to_string();
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    if !matches!(caller, Caller::Unspecific) {
        headers.push(("x-workspace-id", &workspace));
    }
    let method = (endpoint.method)();
    // Most operations refuse an empty object, after the checks that this test is about.
    wire.send(request_text(method.as_str(), &format!("/v1{path}"), &headers, Some("{}"))).await;
    wire.response().await.unwrap()
}

#[tokio::test]
async fn every_operation_admits_exactly_whom_the_contract_says() {
    let server = TestServer::start().await;
    let foreign = server.other_workspace().await;
    let mut wire = Wire::connect(server.address).await;
    let mut wrong = Vec::new();
    for endpoint in ops::all() {
        let callers = callers(endpoint);
        let tokens: Vec<_> = callers.iter().map(|caller| token(&server, caller, foreign)).collect();
        let (tokens, writes): (Vec<_>, Vec<_>) = tokens.into_iter().unzip();
        server.commit(writes.into_iter().flatten()).await;
        for (caller, token) in callers.iter().zip(tokens) {
            let response = call(&mut wire, &server, endpoint, caller, token.as_deref()).await;
            let refused = matches!(response.status, 401 | 403 | 429).then(|| response.code());
            let expected = expected(endpoint, caller);
            if refused != expected {
                wrong.push(format!("{endpoint:?} {caller:?}: {refused:?}, expected {expected:?}"));
            }
            let is_admitted = endpoint.access != Access::Public
                && !matches!(caller, Caller::Nobody | Caller::Revoked | Caller::Expired | Caller::Elsewhere);
            if response.header("ratelimit").is_some() != is_admitted {
                wrong.push(format!("{endpoint:?} {caller:?}: RateLimit {:?}", response.header("ratelimit")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
