//! The archive of campaigns.

use super::*;

const HTML: &str = "<p>Hi {{ contact.attributes.first_name | default('there') }}</p>\
    <a href=\"https://acme.example/offer\">offer</a> <a href=\"{{ archive_url }}\">in a browser</a>\
    {% if unsubscribe_url %}<a href=\"{{ unsubscribe_url }}\">stop</a>{% endif %}\
    <a href=\"{{ preferences_url }}\">choose</a> {{ contact.email }} {{ message_id }}";

impl Readers {
    /// A workspace whose archive shows its list, which has a reader.
    async fn with_archive() -> Self {
        let readers = Self::start("single").await;
        let body = json!({"email": "ann@example.com", "attributes": {"first_name": "Ann"},
            "consent": {"marketing_email": true}, "list_ids": [readers.list]});
        readers.contact(body).await;
        readers.set_archive(json!({"enabled": true, "title": "The <News>", "lists": [readers.list]})).await;
        readers
    }

    async fn set_archive(&self, archive: Value) {
        let reply = self.patch(&self.caller, &self.at(""), json!({"archive": archive})).await;
        assert_eq!(reply.summary(), "200", "{}", reply.body);
    }

    /// A campaign that is a draft.
    async fn draft(&self, subject: &str, members: Value) -> CampaignId {
        let template = json!({"name": "t", "channel": "email", "subject": subject, "from_email": "shop@sandbox.test",
            "html": HTML});
        let template = created(&self.product, "templates", template).await;
        let mut body = json!({"name": "internal", "channel": "email", "template_id": template,
            "audience": {"list_ids": [self.list]}});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        created(&self.product, "campaigns", body).await.parse().unwrap()
    }

    async fn sent(&self, subject: &str, members: Value) -> CampaignId {
        let campaign = self.draft(subject, members).await;
        let path = self.at(&format!("campaigns/{campaign}/schedule"));
        assert_eq!(self.post(&self.caller, &path, json!({"send_now": true})).await.summary(), "202");
        self.pass(MINUTE).await;
        self.work().await;
        campaign
    }

    /// Titles of the archive, the latest first; `-` if there is no archive.
    async fn archive(&self) -> String {
        let page = self.app.archive_page(self.workspace, None, 20).await.unwrap();
        page.map_or("-".to_owned(), |page| {
            page.entries.iter().map(|entry| entry.title.as_str()).collect::<Vec<_>>().join(", ")
        })
    }

    async fn is_shown(&self, campaign: CampaignId) -> bool {
        self.app.archived_mail(self.workspace, campaign).await.unwrap().is_some()
    }

    async fn campaign_view(&self, campaign: CampaignId) -> Value {
        self.get(&self.caller, &self.at(&format!("campaigns/{campaign}"))).await.body
    }
}

#[tokio::test]
async fn an_archive_shows_a_mail_as_nobody_gets_it() {
    let readers = Readers::with_archive().await;
    let campaign = readers.sent("Hello {{ contact.email }}!", json!({})).await;
    let url = format!("https://track.service.test/a/{}/{campaign}", readers.workspace);
    assert_eq!(readers.campaign_view(campaign).await["archive_url"], json!(url));
    // The mail itself leads there.
    let outgoing = readers.transport.take();
    let Content::Email(email) = &outgoing[0].content else { panic!("no email") };
    let (html, plain) = (email.html.as_deref().unwrap(), email.text.as_deref().unwrap());
    assert!(html.contains("Hi Ann") && html.contains("/u/"), "{html}");
    assert!(plain.contains(&url) && plain.contains("/p/"), "{plain}");

    let mail = readers.app.archived_mail(readers.workspace, campaign).await.unwrap().unwrap();
    assert_eq!((mail.title.as_str(), mail.indexed), ("Hello !", false));
    let html = mail.html.unwrap();
    assert!(html.contains("Hi there") && html.contains("href=\"https://acme.example/offer\""), "{html}");
    assert!(html.contains(&format!("href=\"{url}\"")), "{html}");
    for personal in ["/u/", "/p/", "/c/", "/t/o/", "/t/c/", "ann@", "Ann", "con_", "msg_", "stop"] {
        assert!(!html.contains(personal) && !mail.text.contains(personal), "{personal}: {html} {}", mail.text);
    }
    assert_eq!(readers.archive().await, "Hello !");
    let page = readers.app.archive_page(readers.workspace, None, 20).await.unwrap().unwrap();
    assert_eq!((page.title(), page.entries[0].url.as_str(), page.older), ("The <News>", url.as_str(), None));
}

#[tokio::test]
async fn nothing_is_shown_that_did_not_go_to_readers() {
    let readers = Readers::with_archive().await;
    let private = created(&readers, "lists", json!({"name": "private"})).await;
    let other = created(&readers, "lists", json!({"name": "Offers", "visibility": "public"})).await;
    let segment = json!({"name": "all", "filter": {"type": "list", "op": "member", "id": readers.list}});
    let segment = created(&readers, "segments", segment).await;
    let mut hidden = Vec::new();
    for audience in [
        json!({"list_ids": [private]}),
        json!({"list_ids": [readers.list, private]}),
        json!({"list_ids": [other]}),
        json!({"list_ids": [readers.list], "segment_ids": [segment]}),
    ] {
        hidden.push(readers.sent("Hidden", json!({"audience": audience})).await);
    }
    hidden.push(readers.sent("Kept out", json!({"archived": false})).await);
    hidden.push(readers.draft("Draft", json!({})).await);
    let tested = readers.draft("Tested", json!({})).await;
    let test = readers.at(&format!("campaigns/{tested}/test"));
    assert_eq!(readers.post(&readers.caller, &test, json!({"to": ["ann@example.com"]})).await.summary(), "202");
    readers.work().await;
    hidden.push(tested);
    let cancelled = readers.draft("Cancelled", json!({})).await;
    let at = (readers.app.now() + DAY).to_string();
    for (action, body) in [("schedule", json!({"at": at})), ("cancel", json!({}))] {
        let path = readers.at(&format!("campaigns/{cancelled}/{action}"));
        assert_eq!(readers.post(&readers.caller, &path, body).await.summary(), "202", "{action}");
    }
    readers.work().await;
    hidden.push(cancelled);
    assert_eq!(readers.archive().await, "");
    for campaign in hidden {
        assert!(!readers.is_shown(campaign).await);
        assert_eq!(readers.campaign_view(campaign).await["archive_url"], Value::Null);
    }
    let shown = readers.sent("Shown", json!({})).await;
    assert_eq!(readers.archive().await, "Shown");
    // Of another workspace it is not.
    assert!(readers.app.archived_mail(readers.app.new_id(readers.app.now()), shown).await.unwrap().is_none());
}

#[tokio::test]
async fn what_an_archive_shows_can_be_taken_back() {
    let readers = Readers::with_archive().await;
    let first = readers.sent("First", json!({})).await;
    let second = readers.sent("Second", json!({})).await;
    assert_eq!(readers.archive().await, "Second, First");
    let path = readers.at(&format!("campaigns/{second}"));
    let changed = readers.patch(&readers.caller, &path, json!({"archived": false})).await;
    assert_eq!((changed.summary().as_str(), &changed["archived"]), ("200", &json!(false)));
    assert_eq!(changed["archive_url"], Value::Null);
    assert_eq!((readers.archive().await, readers.is_shown(second).await), ("First".to_owned(), false));
    let with_more = readers.patch(&readers.caller, &path, json!({"archived": true, "name": "x"})).await;
    assert_eq!(with_more.summary(), "409 invalid_state");
    assert_eq!(readers.patch(&readers.caller, &path, json!({"archived": null})).await.summary(), "200");
    assert_eq!(readers.archive().await, "Second, First");

    // A list that becomes private removes its campaigns from the archive, and so does switching the archive off.
    let list = readers.at(&format!("lists/{}", readers.list));
    assert_eq!(readers.patch(&readers.caller, &list, json!({"visibility": "private"})).await.summary(), "200");
    readers.pass(MINUTE).await;
    assert_eq!((readers.archive().await, readers.is_shown(first).await), (String::new(), false));
    assert_eq!(readers.patch(&readers.caller, &list, json!({"visibility": "public"})).await.summary(), "200");
    readers.pass(MINUTE).await;
    assert!(readers.is_shown(first).await);
    readers.set_archive(json!({"enabled": false, "lists": [readers.list]})).await;
    assert_eq!((readers.archive().await, readers.is_shown(first).await), ("-".to_owned(), false));
}

#[tokio::test]
async fn an_archive_is_read_page_by_page() {
    let readers = Readers::with_archive().await;
    for n in 0..5 {
        readers.sent(&format!("No. {n}"), json!({})).await;
        readers.sent("Kept out", json!({"archived": false})).await;
    }
    let (mut titles, mut before) = (Vec::new(), None);
    for _ in 0..3 {
        let page = readers.app.archive_page(readers.workspace, before, 2).await.unwrap().unwrap();
        titles.push(page.entries.iter().map(|entry| entry.title.clone()).collect::<Vec<_>>().join(", "));
        before = page.older;
    }
    assert_eq!((titles.join("; ").as_str(), before), ("No. 4, No. 3; No. 2, No. 1; No. 0", None));
    let nowhere = readers.app.new_id(readers.app.now());
    assert!(readers.app.archive_page(readers.workspace, Some(nowhere), 2).await.unwrap().is_none());
}

#[tokio::test]
async fn an_archive_names_public_lists() {
    let readers = Readers::start("single").await;
    let private = created(&readers, "lists", json!({"name": "private"})).await;
    let workspace = readers.at("");
    for (archive, expected) in [
        (json!({"enabled": true, "lists": [private]}), "422 /archive/lists/0 not_allowed"),
        (json!({"lists": [readers.list, "lst_1"]}), "422 /archive/lists/1 not_found"),
        (json!({"lists": [readers.list, readers.list]}), "422 /archive/lists/1 duplicate"),
        (json!({"title": ""}), "422 /archive/title too_short"),
        (json!({"pages": 1}), "422 /archive/pages unknown_field"),
        (json!({"enabled": "yes"}), "422 /archive/enabled invalid_type"),
    ] {
        let refused = readers.patch(&readers.caller, &workspace, json!({"archive": archive})).await;
        assert_eq!(refused.summary(), expected, "{archive}");
    }
    readers.set_archive(json!({"enabled": true, "lists": [readers.list], "indexed": true})).await;
    let shown = readers.get(&readers.caller, "/workspaces").await["data"][0].clone();
    let expected = json!({"enabled": true, "title": null, "lists": [readers.list], "indexed": true});
    assert_eq!(shown["archive"], expected);
    assert_eq!(shown["archive_url"], json!(format!("https://track.service.test/a/{}", readers.workspace)));
    let back = readers.patch(&readers.caller, &workspace, json!({"archive": null})).await;
    assert_eq!((&back["archive"]["enabled"], &back["archive_url"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn texts_of_pages_are_the_workspace_s_own() {
    let readers = Readers::start("double").await;
    let workspace = readers.at("");
    let texts = json!({"en": {"confirm_title": "Join us", "mail_ignore": "Not you? <Never mind>."}});
    let set = readers.patch(&readers.caller, &workspace, json!({"page_texts": texts})).await;
    assert_eq!((set.summary().as_str(), &set["page_texts"]), ("200", &texts));
    for (texts, expected) in [
        (json!({"xx": {}}), "422 /page_texts/xx unknown_field"),
        (json!({"en": {"title": "x"}}), "422 /page_texts/en/title unknown_field"),
        (json!({"en": {"form_button": 1}}), "422 /page_texts/en/form_button invalid_type"),
    ] {
        let refused = readers.patch(&readers.caller, &workspace, json!({"page_texts": texts})).await;
        assert_eq!(refused.summary(), expected);
    }
    let bob = readers.contact(json!({"email": "bob@example.com"})).await;
    assert_eq!(readers.add(&bob, json!({"status": "unconfirmed"})).await, "200");
    readers.work().await;
    let outgoing = readers.transport.take();
    let Content::Email(email) = &outgoing[0].content else { panic!("no email") };
    assert_eq!(email.subject, "Join us");
    assert!(email.html.as_deref().unwrap().contains("Not you? &lt;Never mind&gt;."), "{:?}", email.html);
    assert!(email.text.as_deref().unwrap().contains("Not you? <Never mind>."), "{:?}", email.text);
}
