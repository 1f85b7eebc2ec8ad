//! Contract section 16.

use std::sync::Arc;

use http::Method;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_engine::caller::Caller;
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::bed::{Bed, Call};

fn channels(workspace: impl std::fmt::Display) -> String {
    format!("/workspaces/{workspace}/channels")
}

async fn bed() -> (Bed, WorkspaceId, Caller) {
    let (bed, workspace, _) = Bed::carrying("smtp", Arc::new(MemoryTransport::default())).and_owner().await;
    let key = bed.key(workspace, &["*"]).await;
    (bed, workspace, key)
}

#[tokio::test]
async fn without_settings_every_channel_shows_its_default() {
    let (bed, workspace, key) = bed().await;
    let page = bed.get(&key, &channels(workspace)).await;
    let shown: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{} {} {} {}", item["channel"], item["provider"], item["configured"], item["config"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""email" "builtin" false {}"#,
            r#""sms" "http" false {}"#,
            r#""push" "fcm" false {}"#,
            r#""telegram" "bot_api" false {}"#,
            r#""whatsapp" "cloud_api" false {}"#,
            r#""viber" "http" false {}"#,
        ]
    );
    assert_eq!(page["next_cursor"], Value::Null);
    assert_eq!(bed.get(&key, &format!("{}?limit=0", channels(workspace))).await.summary(), "422 limit out_of_range");
    assert_eq!(bed.get(&key, &format!("{}?cursor=x", channels(workspace))).await.summary(), "400 invalid_cursor");
}

#[tokio::test]
async fn settings_are_shown_without_their_secrets_and_used_with_them() {
    let (bed, workspace, key) = bed().await;
    let path = format!("{}/email", channels(workspace));
    let config = json!({"host": "mail.example.com", "port": 587, "username": "acme", "password": "hunter22"});
    let set = bed.put(&key, &path, json!({"provider": "smtp", "config": config})).await;
    assert_eq!(set.summary(), "200");
    let expected = json!({"channel": "email", "provider": "smtp", "configured": true, "status": "active", "error": null,
        "callback_url": null,
        "config": {"host": "mail.example.com", "port": 587, "username": "acme", "password": "***", "tls": "starttls",
            "max_rate": null}});
    assert_eq!(set.body, expected);
    assert_eq!(bed.get(&key, &channels(workspace)).await["data"][0], expected);

    let provider = bed.app.provider(workspace, Channel::Email).await.unwrap().unwrap();
    assert_eq!(provider.settings["password"], "hunter22");
    let stored = bed.store.channel(workspace, Channel::Email).await.unwrap().unwrap().record;
    assert!(!serde_json::to_string(&stored).unwrap().contains("hunter22"));

    // The answer can be sent back: the secret stays.
    assert_eq!(bed.put(&key, &path, json!({"provider": "smtp", "config": set["config"]})).await.body, expected);
    let provider = bed.app.provider(workspace, Channel::Email).await.unwrap().unwrap();
    assert_eq!((&provider.settings["password"], &provider.settings["port"]), (&json!("hunter22"), &json!(587)));

    // Settings are replaced as a whole: a secret that is left out is gone, and the mask keeps nothing then.
    for password in [Value::Null, json!("")] {
        let config = json!({"host": "mail.example.com", "port": 587, "username": "acme", "password": password});
        let body = json!({"provider": "smtp", "config": config});
        assert_eq!(bed.put(&key, &path, body).await["config"]["password"], Value::Null);
    }
    let body = json!({"provider": "smtp", "config": set["config"]});
    assert_eq!(bed.put(&key, &path, body).await.summary(), "422 /config/password required");
}

#[tokio::test]
async fn a_secret_is_kept_only_while_it_goes_to_the_same_place() {
    let (bed, workspace, key) = bed().await;
    // Settings, and for each member that says where the secret goes another value.
    let cases = [
        (
            "email",
            json!({"provider": "smtp", "config": {"host": "mail.example.com", "port": 587, "username": "acme",
                "password": "hunter22", "tls": "starttls"}}),
            "password",
            json!({"host": "evil.example.com", "port": 25, "username": "eve", "tls": "none"}),
        ),
        (
            "sms",
            json!({"provider": "twilio", "config": {"api_base": "https://api.example.com", "sender": "ACME",
                "account_sid": "AC1", "auth_token": "hunter22"}}),
            "auth_token",
            json!({"api_base": "https://evil.example.com", "account_sid": "AC2"}),
        ),
        (
            "push",
            json!({"provider": "fcm", "config": {"project_id": "p", "service_account": {"private_key": "hunter22"}}}),
            "service_account",
            json!({"api_base": "https://evil.example.com", "project_id": "q"}),
        ),
        (
            "telegram",
            json!({"provider": "bot_api", "config": {"bot_token": "hunter22"}}),
            "bot_token",
            json!({"api_base": "https://evil.example.com"}),
        ),
        (
            "whatsapp",
            json!({"provider": "cloud_api", "config": {"phone_number_id": "1", "access_token": "hunter22"}}),
            "access_token",
            json!({"api_base": "https://evil.example.com", "phone_number_id": "2"}),
        ),
    ];
    for (channel, settings, secret, others) in cases {
        let path = format!("{}/{channel}", channels(workspace));
        let shown = bed.put(&key, &path, settings.clone()).await;
        assert_eq!((shown.status, &shown["config"][secret]), (200, &json!("***")), "{channel}");
        let sent_back = |member: &str, value: Value| {
            let mut body = settings.clone();
            body["config"][secret] = json!("***");
            body["config"][member] = value;
            body
        };
        for (member, other) in others.as_object().unwrap() {
            for value in [other.clone(), Value::Null] {
                // A member that was absent before and is absent now is unchanged, and `starttls` is the default.
                let was = &settings["config"][member];
                if *was == value || (value.is_null() && was == "starttls") {
                    continue;
                }
                let refused = bed.put(&key, &path, sent_back(member, value.clone())).await.summary();
                let wanted = format!("/config/{secret} required");
                assert!(refused.starts_with("422") && refused.contains(&wanted), "{channel} {member}: {refused}");
            }
        }
        // Nothing was changed; other members may change while the secret stays.
        let has_sender = settings["config"].get("sender").is_some();
        let other = if has_sender { sent_back("sender", json!("Other")) } else { sent_back(secret, json!("***")) };
        let kept = bed.put(&key, &path, other).await;
        assert_eq!(kept.status, 200, "{channel}");
        let channel = serde_json::from_value(json!(channel)).unwrap();
        let provider = bed.app.provider(workspace, channel).await.unwrap().unwrap();
        assert!(provider.settings[secret].as_str().unwrap().contains("hunter22"), "{channel}");
    }
}

#[tokio::test]
async fn the_mask_keeps_only_a_secret_of_the_same_provider() {
    let (bed, workspace, key) = bed().await;
    let path = format!("{}/sms", channels(workspace));
    let twilio = |token: &str| json!({"provider": "twilio", "config": {"sender": "ACME", "account_sid": "AC1", "auth_token": token}});
    assert_eq!(bed.put(&key, &path, twilio("***")).await.summary(), "422 /config/auth_token required");
    let http =
        json!({"provider": "http", "config": {"api_base": "https://sms.example.com", "sender": "ACME", "token": "t"}});
    assert_eq!(bed.put(&key, &path, http).await.summary(), "200");
    assert_eq!(bed.put(&key, &path, twilio("***")).await.summary(), "422 /config/auth_token required");
    assert_eq!(bed.put(&key, &path, twilio("secret")).await.summary(), "200");
    assert_eq!(bed.put(&key, &path, twilio("***")).await.summary(), "200");
    let provider = bed.app.provider(workspace, Channel::Sms).await.unwrap().unwrap();
    assert_eq!((provider.name.as_str(), &provider.settings["auth_token"]), ("twilio", &json!("secret")));
    // Only a secret can be kept: elsewhere three stars are a text like others.
    let body = json!({"provider": "http", "config": {"api_base": "https://sms.example.com", "sender": "***"}});
    assert_eq!(bed.put(&key, &path, body).await["config"]["sender"], "***");
}

#[tokio::test]
async fn a_document_may_be_an_object_or_its_text() {
    let (bed, workspace, key) = bed().await;
    let path = format!("{}/push", channels(workspace));
    let account = json!({"client_email": "a@b", "private_key": "k"});
    for service_account in [account.clone(), json!(account.to_string())] {
        let body = json!({"provider": "fcm", "config": {"project_id": "p", "service_account": service_account}});
        let set = bed.put(&key, &path, body).await;
        assert_eq!(
            set["config"],
            json!({"api_base": null, "project_id": "p", "service_account": "***", "max_rate": null, "routes": null})
        );
        let provider = bed.app.provider(workspace, Channel::Push).await.unwrap().unwrap();
        let opened: Value = serde_json::from_str(provider.settings["service_account"].as_str().unwrap()).unwrap();
        assert_eq!(opened, account);
    }
}

#[tokio::test]
async fn each_rule_of_the_input() {
    let (bed, workspace, key) = bed().await;
    let check = async |channel: &str, body: Value, expected: &str| {
        let reply = bed.put(&key, &format!("{}/{channel}", channels(workspace)), body.clone()).await;
        assert_eq!(reply.summary(), expected, "{channel} {body}");
    };
    check("email", json!({"provider": "sandbox"}), "200").await;
    check("email", json!({"provider": "sandbox", "config": null}), "200").await;
    check("email", json!({}), "422 /provider required").await;
    check("email", json!({"provider": ""}), "422 /provider required").await;
    check("email", json!({"provider": 1, "config": []}), "422 /config invalid_type /provider invalid_type").await;
    check("email", json!({"provider": "twilio"}), "422 /provider unknown_value").await;
    let mistyped = bed.put(&key, &format!("{}/email", channels(workspace)), json!({"provider": "smpt"})).await;
    let told = mistyped.body.to_string();
    assert!(told.contains("which has builtin, ") && told.contains("smtp") && !told.contains("twilio"), "{told}");
    check("sms", json!({"provider": "smtp"}), "422 /provider unknown_value").await;
    check("email", json!({"provider": "smtp"}), "422 /config/host required /config/port required").await;
    let smtp =
        |port: Value, tls: Value| json!({"provider": "smtp", "config": {"host": "a b", "port": port, "tls": tls}});
    check(
        "email",
        smtp(json!(0), json!("ssl")),
        "422 /config/host invalid_format /config/port out_of_range /config/tls unknown_value",
    )
    .await;
    check(
        "email",
        smtp(json!("25"), json!(1)),
        "422 /config/host invalid_format /config/port invalid_type /config/tls invalid_type",
    )
    .await;
    check(
        "email",
        json!({"provider": "smtp", "config": {"host": "a", "port": 25, "password": "a\0"}}),
        "422 /config/password invalid_format",
    )
    .await;
    check(
        "sms",
        json!({"provider": "http", "config": {"api_base": "ftp://x", "sender": ""}}),
        "422 /config/api_base invalid_format /config/sender required",
    )
    .await;
    check("fax", json!({"provider": "sandbox"}), "404 not_found").await;
    check("Email", json!({"provider": 1}), "404 not_found").await;
}

#[tokio::test]
async fn settings_that_the_provider_does_not_have_are_refused() {
    let (bed, workspace, key) = bed().await;
    let path = format!("{}/email", channels(workspace));
    let config = json!({"host": "mail.example", "port": 25, "pasword": "x", "a/b": null});
    let body = json!({"provider": "smtp", "config": config});
    let refused = bed.put(&key, &path, body.clone()).await;
    assert_eq!(refused.summary(), "422 /config/a~1b unknown_field /config/pasword unknown_field");
    assert!(refused.body.to_string().contains("did you mean password?"), "{}", refused.body);
    let sandbox = json!({"provider": "sandbox", "config": {"host": "mail.example"}});
    assert_eq!(bed.put(&key, &path, sandbox).await.summary(), "422 /config/host unknown_field");
    let lenient = bed.call(Call::new(&key, Method::PUT, &path).body(&body).leniently()).await;
    assert_eq!((lenient.summary().as_str(), &lenient["config"]["password"]), ("200", &Value::Null));
    // As it was read it can be sent back.
    let read = bed.get(&key, &channels(workspace)).await["data"][0].clone();
    let again = json!({"provider": read["provider"], "config": read["config"]});
    assert_eq!(bed.put(&key, &path, again).await.summary(), "200");
}

#[tokio::test]
async fn how_a_connection_is_secured_depends_on_the_port_where_it_is_not_said() {
    let (bed, workspace, key) = bed().await;
    for (port, given, expected) in [
        (465, Value::Null, "tls"),
        (587, Value::Null, "starttls"),
        (25, Value::Null, "starttls"),
        (465, json!("starttls"), "starttls"),
        (587, json!("none"), "none"),
    ] {
        let config = json!({"host": "mail.example", "port": port, "tls": given});
        let body = json!({"provider": "smtp", "config": config});
        let set = bed.put(&key, &format!("{}/email", channels(workspace)), body).await;
        assert_eq!((set.summary().as_str(), &set["config"]["tls"]), ("200", &json!(expected)), "{port} {given}");
    }
}

#[tokio::test]
async fn builtin_is_configured_only_where_direct_delivery_exists() {
    let (bed, workspace, key) = bed().await;
    let set = bed.put(&key, &format!("{}/email", channels(workspace)), json!({"provider": "builtin"})).await;
    assert_eq!(
        set.body,
        json!({"channel": "email", "provider": "builtin", "configured": false, "config": {},
        "status": "active", "error": null, "callback_url": null})
    );
}

#[tokio::test]
async fn deleting_goes_back_to_the_default() {
    let (bed, workspace, key) = bed().await;
    let path = format!("{}/email", channels(workspace));
    bed.put(&key, &path, json!({"provider": "sandbox"})).await;
    assert_eq!(bed.get(&key, &channels(workspace)).await["data"][0]["provider"], "sandbox");
    for _ in 0..2 {
        assert_eq!(bed.delete(&key, &path).await.summary(), "204");
        assert_eq!(bed.get(&key, &channels(workspace)).await["data"][0]["provider"], "builtin");
    }
    assert_eq!(bed.app.provider(workspace, Channel::Email).await.unwrap().unwrap().name, "builtin");
}

#[tokio::test]
async fn it_takes_a_wildcard_key_or_an_administrator() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = channels(workspace);
    assert_eq!(bed.get(&owner, &path).await.summary(), "200");
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    assert_eq!(bed.get(&admin, &path).await.summary(), "200");
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    assert_eq!(bed.get(&editor, &path).await.summary(), "403 role_forbidden");
    let key = bed.key(workspace, &["messages:send", "domains:write"]).await;
    assert_eq!(bed.get(&key, &path).await.summary(), "403 scope required: *");
    let unknown = channels("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    let body = json!({"provider": "sandbox"});
    assert_eq!(bed.put(&Caller::Operator(None), &format!("{unknown}/email"), body).await.summary(), "404 not_found");
}
