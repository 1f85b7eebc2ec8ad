//! Moments that follow from dates of contacts. Every test begins on 2026-01-31 at 09:15 UTC.

use serde_json::{Value, json};

use super::{DAY, HOUR, Journeys, MINUTE, ends};

/// Enters on a day of the attribute `born`, with more of the trigger's configuration.
fn on_birthday(more: Value) -> Value {
    let mut config = json!({"attribute": "born"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"kind": "date", "config": config})
}

impl Journeys {
    /// A contact with a date.
    async fn born(&self, name: &str, born: &str, more: Value) -> String {
        let mut body = json!({"attributes": {"born": born}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.contact(name, body).await
    }

    /// Lets time pass an hour at a time, and answers when runs began.
    async fn entries(&self, id: &str, hours: u32) -> Vec<String> {
        for _ in 0..hours {
            self.pass(HOUR).await;
        }
        let mut entered: Vec<_> =
            self.runs(id).await.iter().map(|run| run["entered_at"].as_str().unwrap().to_owned()).collect();
        entered.sort();
        entered
    }
}

#[tokio::test]
async fn a_day_of_a_contact_comes_at_its_time_in_its_zone_every_year() {
    let journeys = Journeys::start().await;
    journeys.born("ann", "1990-02-01", json!({"timezone": "Europe/Berlin"})).await;
    journeys.born("bob", "1991-02-02T23:30:00Z", json!({})).await;
    journeys.born("later", "2028-02-01", json!({})).await;
    journeys.born("bad", "soon", json!({})).await;
    let id = journeys.active(on_birthday(json!({})), ends(), json!({"re_entry": "after_exit"})).await;
    let entered = journeys.entries(&id, 72).await;
    assert_eq!(entered, ["2026-02-01T08:00:00.000Z", "2026-02-02T09:00:00.000Z"]);
    // A year later, without the workers having been away for long.
    for _ in 0..365 {
        journeys.pass(DAY).await;
    }
    assert_eq!(journeys.runs(&id).await.len(), 4);
}

#[tokio::test]
async fn a_date_that_does_not_repeat_comes_once_with_its_offset() {
    let journeys = Journeys::start().await;
    journeys.born("ann", "2026-02-04", json!({})).await;
    journeys.born("old", "2020-02-04", json!({})).await;
    let trigger = on_birthday(json!({"repeat": "once", "offset_days": -3, "time": "18:30"}));
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    assert_eq!(journeys.entries(&id, 48).await, ["2026-02-01T18:30:00.000Z"]);
}

#[tokio::test]
async fn the_29th_of_february_falls_on_the_28th_before_the_offset() {
    let journeys = Journeys::start().await;
    journeys.born("ann", "2024-02-29", json!({})).await;
    let id = journeys.active(on_birthday(json!({"offset_days": -26})), ends(), json!({})).await;
    assert_eq!(journeys.entries(&id, 72).await, ["2026-02-02T09:00:00.000Z"]);
}

#[tokio::test]
async fn a_moment_before_the_activation_or_before_the_change_that_set_it_does_not_count() {
    let journeys = Journeys::start().await;
    // Today, a quarter of an hour ago.
    journeys.born("ann", "1990-01-31", json!({})).await;
    let bob = journeys.contact("bob", json!({})).await;
    let id = journeys.active(on_birthday(json!({})), ends(), json!({"re_entry": "always"})).await;
    journeys.change(&bob, json!({"attributes": {"born": "1990-01-31"}})).await;
    assert_eq!(journeys.entries(&id, 24).await, [""; 0]);
    // For tomorrow it is not too late.
    journeys.change(&bob, json!({"attributes": {"born": "1990-02-02"}})).await;
    journeys.born("cat", "1990-02-02", json!({})).await;
    let expected = ["2026-02-02T09:00:00.000Z"; 2];
    assert_eq!(journeys.entries(&id, 48).await, expected);
}

#[tokio::test]
async fn a_date_that_was_changed_or_removed_comes_no_more_and_one_that_comes_back_comes_once() {
    let journeys = Journeys::start().await;
    let ann = journeys.born("ann", "1990-02-01", json!({})).await;
    let bob = journeys.born("bob", "1990-02-01", json!({})).await;
    let cat = journeys.born("cat", "1990-02-01", json!({})).await;
    let id = journeys.active(on_birthday(json!({})), ends(), json!({"re_entry": "always"})).await;
    journeys.change(&ann, json!({"attributes": {"born": null}})).await;
    journeys.change(&bob, json!({"attributes": {"born": "1990-02-03"}})).await;
    for born in ["1990-02-04", "1990-02-01"] {
        journeys.change(&cat, json!({"attributes": {"born": born}})).await;
        journeys.pass(MINUTE).await;
    }
    let entered = journeys.entries(&id, 30).await;
    assert_eq!(
        (entered.as_slice(), journeys.told_of(&id, &cat).await.as_str()),
        (&["2026-02-01T09:00:00.000Z".to_owned()][..], "exited x exit")
    );
}

#[tokio::test]
async fn moments_that_nobody_came_to_count_for_a_day() {
    let journeys = Journeys::start().await;
    for (name, born) in [("ann", "1990-02-09"), ("bob", "1990-02-10"), ("cat", "1990-02-11")] {
        journeys.born(name, born, json!({})).await;
    }
    let id = journeys.active(on_birthday(json!({})), ends(), json!({})).await;
    // The server is away until 2026-02-10 at 09:15.
    journeys.pass(10 * DAY).await;
    let entered = journeys.entries(&id, 0).await;
    assert_eq!(entered, ["2026-02-10T09:00:00.000Z"]);
    // Away with moments that were written down already: one of them is too old by then.
    journeys.pass(2 * DAY).await;
    assert_eq!(journeys.entries(&id, 0).await, ["2026-02-10T09:00:00.000Z"]);
}

#[tokio::test]
async fn a_moment_during_a_pause_does_not_count_and_one_after_it_does() {
    let journeys = Journeys::start().await;
    let bob = journeys.contact("bob", json!({})).await;
    journeys.born("ann", "1990-02-01", json!({})).await;
    let id = journeys.active(on_birthday(json!({})), ends(), json!({})).await;
    journeys.act(&id, "pause").await;
    // This change is not announced to any worker.
    journeys.change(&bob, json!({"attributes": {"born": "1990-02-02"}})).await;
    journeys.pass(DAY).await;
    journeys.act(&id, "activate").await;
    assert_eq!(journeys.entries(&id, 24).await, ["2026-02-02T09:00:00.000Z"]);
}
