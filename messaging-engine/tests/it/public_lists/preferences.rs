//! Preferences that readers choose themselves.

use messaging_core::domain::audience::reader_texts::Language;
use messaging_engine::services::preferences::{Preferences, ReaderMail};

use super::*;

/// A workspace with two public lists, and a reader of the first who got a campaign.
async fn with_reader() -> (Readers, String, WorkspaceId, MessageId, String) {
    let readers = Readers::start("single").await;
    let second = created(&readers, "lists", json!({"name": "Offers", "visibility": "public"})).await;
    let body = json!({"email": "ann@example.com", "consent": {"marketing_email": true}, "list_ids": [readers.list]});
    let ann = readers.contact(body).await;
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    let (_, _, text) = readers.mails().remove(0);
    let (workspace, message) = readers.linked(&text, "/p/", Link::Preferences);
    (readers, second, workspace, message, ann)
}

#[tokio::test]
async fn a_reader_chooses_lists_and_language() {
    let (readers, second, workspace, message, ann) = with_reader().await;
    let Followed::Found(page) = readers.app.preferences(workspace, message).await.unwrap() else { panic!("a page") };
    assert_eq!(
        page.lists.iter().map(|list| (list.name.as_str(), list.is_member)).collect::<Vec<_>>(),
        [("Offers", false), ("News", true)]
    );
    let preferences = Preferences {
        shown: page.lists.iter().map(|list| list.id).collect(),
        wanted: vec![second.parse().unwrap()],
        weekly: None,
        language: Some(Language::German),
    };
    for _ in 0..2 {
        let set = readers.app.set_preferences(workspace, message, &preferences, &reader()).await.unwrap();
        assert!(matches!(set, Followed::Found(())));
    }
    let contact = readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}"))).await;
    assert_eq!((&contact["list_ids"], &contact["locale"]), (&json!([second]), &json!("de")));
    assert_eq!(readers.members("left").await, ["ann@example.com:preferences"]);
    let Followed::Found(data) = readers.app.reader_data(workspace, message).await.unwrap() else { panic!("data") };
    assert_eq!(
        (&data["contact"]["email"], data["memberships"].as_array().unwrap().len()),
        (&json!("ann@example.com"), 2)
    );
}

#[tokio::test]
async fn an_address_changes_by_a_link_sent_to_the_new_one() {
    let (readers, _, workspace, message, ann) = with_reader().await;
    readers.contact(json!({"email": "taken@example.com"})).await;
    let ask = async |address: &str| {
        let mail = (ReaderMail::ChangeAddress, Some(address));
        readers.app.ask_reader(workspace, message, mail, &reader()).await.map(drop)
    };
    assert!(ask("nobody").await.is_err());
    ask("new@example.com").await.unwrap();
    ask("taken@example.com").await.unwrap();
    readers.work().await;
    let mut mails = readers.mails();
    mails.sort();
    let links: Vec<_> = mails.iter().map(|mail| readers.linked(&mail.2, "/c/", Link::ChangeAddress).1).collect();
    assert_eq!(mails.iter().map(|mail| mail.0.as_str()).collect::<Vec<_>>(), ["new@example.com", "taken@example.com"]);
    let email = async || readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}"))).await["email"].clone();
    assert!(matches!(readers.app.reader_to_confirm(workspace, links[0]).await.unwrap(), Followed::Found(_)));
    assert_eq!(email().await, "ann@example.com");
    assert!(matches!(readers.app.change_reader_address(workspace, links[1]).await.unwrap(), Followed::Expired));
    assert!(matches!(readers.app.change_reader_address(workspace, links[0]).await.unwrap(), Followed::Found(_)));
    assert_eq!(email().await, "new@example.com");
}

#[tokio::test]
async fn a_reader_is_erased_by_a_link_sent_to_them() {
    let (readers, _, workspace, message, ann) = with_reader().await;
    readers.app.ask_reader(workspace, message, (ReaderMail::Erase, None), &reader()).await.unwrap();
    readers.work().await;
    let (to, _, text) = readers.mails().remove(0);
    assert_eq!(to, "ann@example.com");
    let (_, asked) = readers.linked(&text, "/c/", Link::Erase);
    assert!(matches!(readers.app.erase_reader(workspace, asked).await.unwrap(), Followed::Found(_)));
    assert_eq!(readers.get(&readers.caller, &readers.at(&format!("contacts/{ann}"))).await.summary(), "404 not_found");
    assert_eq!(readers.count().await, 0);
    readers.work().await;
    assert!(matches!(readers.app.erase_reader(workspace, asked).await.unwrap(), Followed::Expired));
}

#[tokio::test]
async fn a_reader_gets_at_most_one_mail_a_week() {
    let (readers, _, workspace, message, _) = with_reader().await;
    let Followed::Found(page) = readers.app.preferences(workspace, message).await.unwrap() else { panic!("a page") };
    assert_eq!(page.weekly, Some(false));
    let shown: Vec<_> = page.lists.iter().map(|list| list.id).collect();
    let wanted = vec![readers.list.parse().unwrap()];
    let choose = async |weekly| {
        let preferences =
            Preferences { shown: shown.clone(), wanted: wanted.clone(), weekly: Some(weekly), language: None };
        let set = readers.app.set_preferences(workspace, message, &preferences, &reader()).await.unwrap();
        assert!(matches!(set, Followed::Found(())));
        match readers.app.preferences(workspace, message).await.unwrap() {
            Followed::Found(page) => page.weekly,
            _ => panic!("a page"),
        }
    };
    assert_eq!(choose(true).await, Some(true));
    assert_eq!(readers.members("confirmed").await.len(), 1);
    // The campaign that the link is of was the mail of this week.
    let capped = readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    assert_eq!(readers.mails().len(), 0);
    let stats = readers.get(&readers.caller, &readers.at(&format!("campaigns/{capped}/stats"))).await;
    assert_eq!(stats["skipped"]["frequency_cap"], 1, "{}", stats.body);
    readers.pass(8 * DAY).await;
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    assert_eq!(readers.mails().len(), 1);
    // Transactional mail is not counted, and the choice can be undone.
    let body = json!({"channel": "email", "to": "ann@example.com", "from_email": "shop@sandbox.test", "subject": "s", "text": "t"});
    readers.send(&body).await;
    readers.work().await;
    assert_eq!(readers.mails().len(), 1);
    assert_eq!(choose(false).await, Some(false));
    readers.campaign(json!({"list_ids": [readers.list]}), json!({})).await;
    readers.work().await;
    assert_eq!(readers.mails().len(), 1);
}
