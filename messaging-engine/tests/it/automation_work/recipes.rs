//! The recipes of the documentation, run exactly as on the page.

use serde_json::{Value, json};

use super::{DAY, HOUR, Journeys, MINUTE};

const PAGE: &str = include_str!("../../../../docs/automations/recipes.md");

/// The recipe with a name, from the page.
fn recipe(name: &str) -> Value {
    let (_, rest) = PAGE.split_once(&format!("Save as `automations/{name}.json`:\n\n```json\n")).unwrap();
    serde_json::from_str(rest.split("```").next().unwrap()).unwrap()
}

impl Journeys {
    /// Activates a recipe; its templates are made with their names as subjects.
    async fn recipe(&self, name: &str, lists: &[(&str, &str)]) -> String {
        let mut text = recipe(name).to_string();
        for rest in text.clone().split("\"template_id\":\"").skip(1) {
            let named = rest.split('"').next().unwrap();
            if named.starts_with("tpl_") || !text.contains(&format!("\"template_id\":\"{named}\"")) {
                continue;
            }
            assert!(PAGE.contains(&format!("mail \"{named}\" ")), "{named} is made on the page");
            let template = self.template(named).await;
            text = text.replace(&format!("\"template_id\":\"{named}\""), &format!("\"template_id\":\"{template}\""));
        }
        for (named, id) in lists {
            text = text.replace(&format!("\"{named}\""), &format!("\"{id}\""));
        }
        let id = self.id_of("automations", serde_json::from_str(&text).unwrap()).await;
        self.act(&id, "activate").await;
        self.work().await;
        id
    }

    async fn story_of(&self, id: &str, contact: &str) -> String {
        let runs = self.runs(id).await;
        let run = runs.iter().find(|run| run["contact_id"] == contact).unwrap();
        self.history(id, run).await
    }

    async fn pass_days(&self, days: u32) {
        for _ in 0..days {
            self.pass(DAY).await;
        }
    }
}

#[tokio::test]
async fn the_welcome_greets_at_once_and_teaches_two_days_later_in_the_morning() {
    let journeys = Journeys::start().await;
    let list = journeys.id_of("lists", json!({"name": "Newsletter"})).await;
    let id = journeys.recipe("welcome", &[("Newsletter", &list)]).await;
    let ann = journeys.contact("ann", json!({"list_ids": [list], "timezone": "America/New_York"})).await;
    let bob = journeys.contact("bob", json!({"list_ids": [list]})).await;
    journeys.work().await;
    assert_eq!(journeys.mail_to("ann"), ["Welcome"]);
    journeys.change(&bob, json!({"list_ids": []})).await;
    // 2026-02-02 at 13:59 UTC: a minute before nine in New York.
    journeys.pass(2 * DAY).await;
    journeys.pass(4 * HOUR + 44 * MINUTE).await;
    assert_eq!(journeys.mail_to("ann"), ["Welcome"]);
    journeys.pass(MINUTE).await;
    assert_eq!(journeys.mail_to("ann"), ["Welcome", "First steps"]);
    assert_eq!(journeys.mail_to("bob"), ["Welcome"]);
    assert_eq!(
        journeys.story_of(&id, &ann).await,
        "entered, sent greet, waiting two-days, continued two-days, waiting morning, continued morning, sent teach, \
         completed teach"
    );
    assert_eq!(
        journeys.story_of(&id, &bob).await,
        "entered, sent greet, waiting two-days, exited two-days exit_condition"
    );
}

/// The outcomes of runs, sorted.
fn sorted(told: &str) -> Vec<&str> {
    let mut told: Vec<_> = told.split(", ").collect();
    told.sort_unstable();
    told
}

#[tokio::test]
async fn the_cart_reminds_of_each_cart_that_is_not_ordered_and_not_at_night() {
    let journeys = Journeys::start().await;
    let id = journeys.recipe("cart", &[]).await;
    for name in ["ann", "bob", "cat"] {
        journeys.contact(name, json!({})).await;
    }
    for cart in ["a1", "a2"] {
        journeys.event("cart_updated", "ann", json!({"cart_id": cart})).await;
    }
    journeys.work().await;
    journeys.pass(HOUR).await;
    journeys.event("order_placed", "ann", json!({"cart_id": "a1"})).await;
    journeys.pass(HOUR).await;
    // Both entered at the same moment, so their order is not defined.
    assert_eq!(sorted(&journeys.told(&id).await), ["completed remind", "completed two-hours goal"]);
    assert_eq!(journeys.mail_to("ann"), ["Cart"]);
    // At 21:15: the reminders wait for the morning, and one cart is ordered in the night.
    journeys.pass(10 * HOUR).await;
    for name in ["bob", "cat"] {
        journeys.event("cart_updated", name, json!({"cart_id": name})).await;
    }
    journeys.pass(3 * HOUR).await;
    journeys.event("order_placed", "cat", json!({"cart_id": "cat"})).await;
    journeys.pass(8 * HOUR).await;
    assert_eq!((journeys.mail_to("bob"), journeys.mail_to("cat")), (vec!["Cart".to_owned()], Vec::new()));
    let expected = ["completed remind", "completed remind", "completed remind goal", "completed two-hours goal"];
    assert_eq!(sorted(&journeys.told(&id).await), expected);
}

#[tokio::test]
async fn the_win_back_writes_to_those_who_bought_nothing_for_sixty_days() {
    let journeys = Journeys::start().await;
    let id = journeys.recipe("win-back", &[]).await;
    let ann = journeys.contact("ann", json!({})).await;
    let bob = journeys.contact("bob", json!({})).await;
    for name in ["ann", "bob"] {
        journeys.event("order_placed", name, json!({})).await;
    }
    journeys.pass_days(40).await;
    journeys.event("order_placed", "bob", json!({})).await;
    journeys.pass_days(21).await;
    assert_eq!((journeys.mail_to("ann"), journeys.mail_to("bob")), (vec!["We miss you".to_owned()], Vec::new()));
    journeys.pass_days(14).await;
    assert_eq!(journeys.mail_to("ann"), ["We miss you", "Last call"]);
    assert_eq!(
        journeys.story_of(&id, &ann).await,
        "entered, waiting silence, continued silence, sent miss, waiting clicked, continued clicked timeout, sent last, \
         changed lapsed, completed lapsed"
    );
    assert_eq!(journeys.told_of(&id, &bob).await, "completed silence goal, waiting silence");
    let contact = journeys.get(&journeys.caller, &journeys.at(&format!("contacts/{ann}"))).await;
    assert_eq!(contact["tags"], json!(["lapsed"]));
}

#[tokio::test]
async fn the_birthday_comes_every_year_at_nine_on_the_clock_of_the_contact() {
    let journeys = Journeys::start().await;
    let id = journeys.recipe("birthday", &[]).await;
    let leap = json!({"attributes": {"birthday": "1992-02-29"}, "timezone": "Asia/Tokyo"});
    let ann = journeys.contact("ann", leap).await;
    journeys.work().await;
    journeys.pass_days(27).await;
    assert_eq!(journeys.mail_to("ann"), [""; 0]);
    journeys.pass_days(2).await;
    assert_eq!(journeys.mail_to("ann"), ["Birthday"]);
    assert_eq!(journeys.runs(&id).await[0]["entered_at"], "2026-02-28T00:00:00.000Z");
    assert_eq!(journeys.story_of(&id, &ann).await, "entered, sent congratulate, completed congratulate");
    journeys.pass_days(365).await;
    assert_eq!(journeys.mail_to("ann"), ["Birthday", "Birthday"]);
}

#[tokio::test]
async fn the_onboarding_leads_to_its_goal_and_stops_there() {
    let journeys = Journeys::start().await;
    let id = journeys.recipe("onboarding", &[]).await;
    let ann = journeys.contact("ann", json!({"attributes": {"plan": "pro"}})).await;
    let bob = journeys.contact("bob", json!({"attributes": {"plan": "free"}})).await;
    let cat = journeys.contact("cat", json!({"attributes": {"plan": "pro"}})).await;
    journeys.work().await;
    journeys.pass_days(1).await;
    journeys.event("project_created", "cat", json!({})).await;
    journeys.pass_days(4).await;
    assert_eq!(journeys.mail_to("ann"), ["Set up", "Need a hand"]);
    assert_eq!(
        (journeys.mail_to("bob"), journeys.mail_to("cat")),
        (vec!["Set up".to_owned()], vec!["Set up".to_owned()])
    );
    let begin = "entered, waiting day-one, continued day-one, sent set-up, waiting three-days, ";
    let asked = "continued three-days, branched paid ";
    assert_eq!(journeys.story_of(&id, &ann).await, format!("{begin}{asked}yes, sent help, completed help"));
    assert_eq!(journeys.story_of(&id, &bob).await, format!("{begin}{asked}no, exited free free"));
    assert_eq!(journeys.story_of(&id, &cat).await, format!("{begin}completed three-days goal"));
    let stats = journeys.get(&journeys.caller, &journeys.at(&format!("automations/{id}/stats"))).await;
    assert_eq!((&stats["completed"], &stats["exited"], &stats["active"]), (&json!(2), &json!(1), &json!(0)));
}
