//! Forms and confirmations.

use messaging_engine::Error;

use super::*;

#[tokio::test]
async fn forms_name_public_lists_and_what_they_ask_for() {
    let readers = Readers::start("double").await;
    let private = created(&readers, "lists", json!({"name": "private"})).await;
    let forms = readers.at("forms");
    for (body, expected) in [
        (json!({}), "422 /list_ids required /name required"),
        (json!({"name": "f", "list_ids": []}), "422 /list_ids too_short"),
        (json!({"name": "f", "list_ids": [private, "x"]}), "422 /list_ids/0 not_allowed /list_ids/1 not_found"),
        (
            json!({"name": "f", "list_ids": [readers.list], "fields": [{"field": "tags"}], "redirect_url": "x",
                "allowed_origins": ["*"], "theme": {"color": "red"}}),
            "422 /allowed_origins/0 invalid_format /fields/0/field unknown_value /redirect_url invalid_format \
             /theme/color invalid_format",
        ),
    ] {
        let reply = readers.post(&readers.caller, &forms, body).await;
        let mut faults: Vec<_> = reply.summary().split(" /").map(ToOwned::to_owned).collect();
        faults[1..].sort();
        assert_eq!(faults.join(" /"), expected);
    }
    let body =
        json!({"name": "f", "list_ids": [readers.list], "fields": [{"field": "attributes.plan", "label": "Plan <1>"}]});
    let form = readers.post(&readers.caller, &forms, body).await;
    assert_eq!(form.summary(), "201");
    assert_eq!(form["fields"][0], json!({"field": "email", "label": null, "required": true}));
    let embed = form["embed"].as_str().unwrap();
    assert!(embed.contains("name=\"attributes.plan\"") && embed.contains("Plan &lt;1&gt;"), "{embed}");
    let path = readers.at(&format!("forms/{}", form["id"].as_str().unwrap()));
    let changed = readers.patch(&readers.caller, &path, json!({"name": "g", "theme": {"color": "#123456"}})).await;
    assert_eq!((changed.summary().as_str(), &changed["name"], &changed["url"]), ("200", &json!("g"), &form["url"]));
    assert_eq!(readers.get(&readers.caller, &forms).await["data"][0], changed.body);
    assert_eq!(readers.delete(&readers.caller, &path).await.summary(), "204");
    assert_eq!(readers.get(&readers.caller, &path).await.summary(), "404 not_found");
    let token = form["url"].as_str().unwrap().rsplit('/').next().unwrap();
    assert!(readers.app.form_page(token).await.unwrap().is_none());
}

#[tokio::test]
async fn a_reader_subscribes_by_following_the_link() {
    let readers = Readers::start("double").await;
    let page = readers.form(json!({})).await;
    assert!(page.is_double());
    assert!(matches!(readers.subscribe(&page, "ann@example.com").await, Posted::Taken));
    assert!(matches!(readers.subscribe(&page, "nobody").await, Posted::Invalid(_)));
    assert_eq!(
        (readers.members("unconfirmed").await, readers.count().await),
        (vec!["ann@example.com:form".to_owned()], json!(0))
    );
    readers.work().await;
    let (to, _, text) = readers.mails().remove(0);
    assert_eq!(to, "ann@example.com");
    let (workspace, message) = readers.linked(&text, "/c/", Link::Confirm);
    // Looking at the page confirms nothing.
    let shown = readers.app.subscription_to_confirm(workspace, message).await.unwrap();
    assert!(matches!(shown, Followed::Found(page) if page.lists[0].name == "News"));
    assert_eq!(readers.count().await, 0);
    assert_eq!(readers.confirm(&text).await, "confirmed");
    assert_eq!(readers.members("confirmed").await, ["ann@example.com:confirmation"]);
    let member = readers.get(&readers.caller, &readers.at(&format!("lists/{}/contacts", readers.list))).await;
    let proof = &member["data"][0]["membership"]["proof"];
    assert_eq!((&proof["ip"], &proof["user_agent"]), (&json!("192.0.2.7"), &json!("Mozilla")));
    let key = readers.key(readers.workspace, &["contacts:read"]).await;
    let masked = readers.get(&key, &readers.at(&format!("lists/{}/contacts", readers.list))).await;
    assert_eq!(masked["data"][0]["membership"]["proof"]["ip"], Value::Null);
}

#[tokio::test]
async fn confirmations_are_few() {
    let readers = Readers::start("double").await;
    let page = readers.form(json!({})).await;
    let sent = async |wait: Duration| {
        readers.pass(wait).await;
        assert!(matches!(readers.subscribe(&page, "ann@example.com").await, Posted::Taken));
        readers.work().await;
        readers.mails().len()
    };
    assert_eq!(sent(MINUTE).await, 1);
    assert_eq!(sent(5 * MINUTE).await, 0);
    assert_eq!(sent(10 * MINUTE).await, 1);
    assert_eq!(sent(10 * MINUTE).await, 1);
    assert_eq!(sent(DAY).await, 0);
}

#[tokio::test]
async fn who_does_not_confirm_is_forgotten_after_thirty_days() {
    let readers = Readers::start("double").await;
    let page = readers.form(json!({})).await;
    readers.contact(json!({"email": "bob@example.com", "tags": ["customer"]})).await;
    for email in ["ann@example.com", "bob@example.com"] {
        assert!(matches!(readers.subscribe(&page, email).await, Posted::Taken));
    }
    readers.work().await;
    let mails = readers.mails();
    readers.pass(29 * DAY).await;
    sweep(&readers.app).await.unwrap();
    assert_eq!(readers.members("unconfirmed").await.len(), 2);
    readers.pass(DAY + MINUTE).await;
    assert_eq!(readers.confirm(&mails[0].2).await, "expired");
    sweep(&readers.app).await.unwrap();
    assert_eq!(readers.members("unconfirmed").await, Vec::<String>::new());
    // The contact that was there before stays.
    let left = readers.get(&readers.caller, &readers.at("contacts")).await;
    let emails: Vec<_> = left["data"].as_array().unwrap().iter().map(|one| one["email"].clone()).collect();
    assert_eq!(emails, ["bob@example.com"]);
}

#[tokio::test]
async fn an_address_that_unsubscribed_comes_back_only_by_confirming() {
    let readers = Readers::start("single").await;
    let body = json!({"channel": "email", "address": "ann@example.com", "reason": "unsubscribe"});
    assert_eq!(readers.post(&readers.caller, &readers.at("suppressions"), body).await.summary(), "201");
    let page = readers.form(json!({})).await;
    for email in ["ann@example.com", "new@example.com"] {
        assert!(matches!(readers.subscribe(&page, email).await, Posted::Taken));
    }
    assert_eq!(readers.members("confirmed").await, ["new@example.com:form"]);
    assert_eq!(readers.members("unconfirmed").await, ["ann@example.com:form"]);
    readers.work().await;
    let (to, _, text) = readers.mails().remove(0);
    assert_eq!(to, "ann@example.com");
    assert_eq!(readers.confirm(&text).await, "confirmed");
    let listed = readers.get(&readers.caller, &readers.at("suppressions")).await;
    assert_eq!(listed["data"], json!([]));
    assert_eq!(readers.count().await, 2);
}

#[tokio::test]
async fn a_post_changes_nothing_that_is_known() {
    let readers = Readers::start("double").await;
    let fields = json!([{"field": "attributes.plan"}, {"field": "attributes.city"}, {"field": "phone"}]);
    let page = readers.form(json!({"fields": fields})).await;
    readers.contact(json!({"email": "ann@example.com", "attributes": {"plan": "pro"}})).await;
    readers.contact(json!({"phone": "+37120000001"})).await;
    let answers = [
        ("email", "Ann@Example.com"),
        ("attributes.plan", "free"),
        ("attributes.city", "Riga"),
        ("phone", "+37120000001"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()));
    let post = FormPost { answers: answers.into(), ..FormPost::default() };
    assert!(matches!(readers.app.post_to_form(&page, &post, &reader()).await.unwrap(), Posted::Taken));
    let found = readers.get(&readers.caller, &readers.at("contacts?email=ann@example.com")).await;
    let ann = &found["data"][0];
    assert_eq!((&ann["attributes"], &ann["phone"]), (&json!({"plan": "pro", "city": "Riga"}), &Value::Null));
}

#[tokio::test]
async fn programs_and_haste_are_kept_out() {
    let readers = Readers::start("double").await;
    let page = readers.form(json!({})).await;
    let answers = vec![("email".to_owned(), "ann@example.com".to_owned())];
    let mut post = FormPost { answers, needs_page: true, ..FormPost::default() };
    let answer = async |post: &FormPost| readers.app.post_to_form(&page, post, &Reader::default()).await.unwrap();
    assert!(matches!(answer(&post).await, Posted::OutOfTime));
    post.started = Some(page.started.clone());
    assert!(matches!(answer(&post).await, Posted::OutOfTime));
    readers.pass(Duration::from_secs(2)).await;
    let trapped = FormPost { trap: "x".to_owned(), ..post.clone() };
    assert!(matches!(answer(&trapped).await, Posted::Taken));
    assert_eq!(readers.members("unconfirmed").await, Vec::<String>::new());
    assert!(matches!(answer(&post).await, Posted::Taken));
    assert_eq!(readers.members("unconfirmed").await, ["ann@example.com:form"]);
    for _ in 0..6 {
        assert!(matches!(answer(&post).await, Posted::Taken));
    }
    let refused = readers.app.post_to_form(&page, &post, &Reader::default()).await.unwrap_err();
    assert!(matches!(refused, Error::RateLimited { .. }), "{refused}");
}

#[tokio::test]
async fn a_template_of_the_workspace_says_it_in_its_own_words() {
    let readers = Readers::start("double").await;
    let template = json!({"name": "confirm", "channel": "email", "subject": "Really?", "from_email": "shop@sandbox.test",
        "text": "Ours: {{ confirm_url }}"});
    created(&readers, "templates", template).await;
    let page = readers.form(json!({})).await;
    assert!(matches!(readers.subscribe(&page, "ann@example.com").await, Posted::Taken));
    readers.work().await;
    let (_, _, text) = readers.mails().remove(0);
    assert!(text.starts_with("Ours: https://track.service.test/c/"), "{text}");
    assert_eq!(readers.confirm(&text).await, "confirmed");
}
