//! Accounts that ask for a pause, have too many requests, or refuse our credentials: their messages wait, or are sent
//! more slowly.

use std::time::Duration;

use messaging_testing::fakes::{Case, FakeHttp, FakeSmpp, FakeTwilio, FakeVonage, Order, Refusal, Wait};
use serde_json::Value;

use super::Texts;

const SECOND: Duration = Duration::from_secs(1);

const TAKEN: Case = Case::Accepted(&[], Order::InOrder);

impl Texts {
    async fn statuses(&self, ids: &[String]) -> Vec<Value> {
        let mut statuses = Vec::new();
        for id in ids {
            statuses.push(self.report(id).await["status"].clone());
        }
        statuses
    }

    /// Messages of others, who are to wait.
    async fn others(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(self.accept(&format!("+999001{number:03}12")).await);
        }
        ids
    }
}

#[tokio::test]
async fn an_account_that_answers_429_rests_for_as_long_as_it_says() {
    let twilio = FakeTwilio::new("AC1", "t0ken");
    let vonage = FakeVonage::with_example_key("app", "secret");
    let http = FakeHttp::new(None);
    let beds = [
        Texts::by("twilio", twilio.clone(), |url| twilio.settings(url)).await,
        Texts::by("vonage", vonage.clone(), |url| vonage.settings(url)).await,
        Texts::by("http", http.clone(), |url| http.settings(url)).await,
    ];
    for (texts, fake) in beds {
        for (wait, seconds) in [
            (Wait::Seconds, 7),
            // 24 hours are granted; the message would have expired by then.
            (Wait::Absurd, 86_400),
        ] {
            let before = fake.requests().len();
            fake.next(Case::Refused(Refusal::Throttled(wait)));
            let first = texts.send("+9990010112").await;
            assert_eq!(texts.fate(&first).await, "deferred: deferred queued");
            let shown = texts.channel().await;
            assert_eq!(shown["status"], "throttled", "{shown}");
            assert!(shown["error"].is_string(), "{shown}");
            let mut waiting = texts.others(10).await;
            texts.work().await;
            texts.pass(SECOND * (seconds - 1)).await;
            assert_eq!(fake.requests().len(), before + 1, "{wait:?}: the whole lane waits");
            assert_eq!(texts.statuses(&waiting).await, vec![Value::from("queued"); 10], "waiting is no attempt");
            if wait == Wait::Absurd {
                break;
            }
            // Waiting jobs check again every few seconds.
            texts.pass(SECOND).await;
            for _ in 0..60 {
                texts.pass(SECOND).await;
            }
            waiting.push(first);
            assert_eq!(texts.statuses(&waiting).await, vec![Value::from("sent"); 11], "{wait:?}");
            assert_eq!(fake.requests().len(), before + 12, "{wait:?}");
            assert_eq!(texts.channel().await["status"], "active");
        }
    }
}

#[tokio::test]
async fn an_account_that_names_no_time_goes_on_more_slowly() {
    for wait in [Wait::Absent, Wait::Unreadable] {
        let http = FakeHttp::new(None);
        let (texts, fake) = Texts::by("http", http.clone(), |url| http.settings(url)).await;
        fake.next(Case::Refused(Refusal::Throttled(wait)));
        let first = texts.send("+9990010112").await;
        assert_eq!(texts.fate(&first).await, "deferred: deferred queued");
        assert_eq!(texts.channel().await["status"], "throttled");
        let others = texts.others(10).await;
        texts.work().await;
        let before = fake.requests().len();
        assert!((2..5).contains(&before), "{wait:?}: {before}");
        // The message itself waits by the schedule, five seconds and some jitter.
        texts.pass(SECOND * 6).await;
        for _ in 0..60 {
            texts.pass(SECOND).await;
        }
        assert_eq!(texts.fate(&first).await, "sent: deferred queued sent");
        assert_eq!(texts.statuses(&others).await, vec![Value::from("sent"); 10], "{wait:?}");
        assert_eq!(texts.channel().await["status"], "active");
    }
}

#[tokio::test]
async fn a_max_rate_spreads_what_leaves() {
    let http = FakeHttp::new(None);
    let with_rate = |url: &str| {
        let mut settings = http.settings(url);
        settings["max_rate"] = 10.into();
        settings
    };
    let (texts, fake) = Texts::by("http", http.clone(), with_rate).await;
    let began = std::time::Instant::now();
    let ids = texts.others(30).await;
    texts.work().await;
    let mut passed = 0;
    while fake.requests().len() < 30 {
        // At most ten in any second of the product's clock, plus those that were waiting for their turn.
        let sent = u32::try_from(fake.requests().len()).unwrap();
        assert!(sent <= 10 * passed + 21, "{sent} after {passed} s");
        assert!(began.elapsed() + SECOND * passed >= SECOND * sent.saturating_sub(1) / 10);
        passed += 1;
        assert!(passed < 10);
        texts.pass(SECOND).await;
    }
    assert_eq!(texts.statuses(&ids).await, vec![Value::from("sent"); 30], "waiting is no attempt");
}

#[tokio::test]
async fn a_message_center_that_throttles_is_sent_to_more_slowly() {
    let texts = Texts::start().await;
    let center = FakeSmpp::start("us", "secret").await.unwrap();
    texts.set("smpp", &center.settings()).await;
    let first = texts.send("+9990000020").await;
    assert_eq!(texts.fate(&first).await, "deferred: deferred queued");
    assert_eq!((center.parts().len(), &texts.channel().await["status"]), (1, &Value::from("throttled")));
    let waiting = texts.others(10).await;
    for _ in 0..60 {
        texts.pass(SECOND).await;
    }
    assert_eq!(texts.statuses(&waiting).await, vec![Value::from("sent"); 10]);
}

#[tokio::test]
async fn a_pause_that_is_asked_for_lets_nobody_leave_who_is_not_on_the_way() {
    /// Messages of a lane that are sent before the first of them has an answer.
    const ON_THE_WAY: usize = 24;
    const MANY: usize = 100;
    let (texts, fake) = Texts::by_twilio().await;
    let ids = texts.others(MANY).await;
    (0..ON_THE_WAY).for_each(|_| fake.next(Case::Refused(Refusal::Throttled(Wait::Seconds))));
    texts.work().await;
    let left = fake.requests().len();
    assert!(left <= ON_THE_WAY, "{left}");
    texts.pass(SECOND * 6).await;
    assert_eq!(fake.requests().len(), left, "nobody follows");
    for _ in 0..ON_THE_WAY * 2 {
        texts.pass(Duration::from_mins(1)).await;
    }
    assert_eq!(texts.statuses(&ids).await, vec![Value::from("sent"); MANY]);
    assert_eq!(fake.requests().len(), MANY + ON_THE_WAY, "once for each answer, and never besides");
}

#[tokio::test]
async fn an_account_that_is_refused_stops_and_new_settings_are_tried_at_once() {
    let (texts, fake) = Texts::by_twilio().await;
    fake.next(Case::Refused(Refusal::Auth));
    let first = texts.send("+9990000012").await;
    assert_eq!(texts.fate(&first).await, "deferred: deferred queued");
    assert_eq!(texts.meta(&first, "deferred").await["provider_code"], "20003");
    assert_eq!(texts.channel().await["status"], "failing");
    let waiting = texts.others(10).await;
    texts.pass(Duration::from_secs(299)).await;
    assert_eq!(fake.requests().len(), 1, "nothing goes over the account");
    // One probes, and is refused again.
    fake.next(Case::Refused(Refusal::Auth));
    texts.pass(Duration::from_secs(1)).await;
    texts.pass(Duration::from_secs(200)).await;
    assert_eq!(fake.requests().len(), 2);
    fake.next(TAKEN);
    let api = FakeTwilio::new("AC1", "t0ken");
    texts.set("twilio", &api.settings(&fake.url())).await;
    texts.pass(Duration::from_mins(10)).await;
    assert_eq!(texts.statuses(&waiting).await, vec![Value::from("sent"); 10]);
    assert_eq!(texts.listed("+9990000012").await, "");
    assert_eq!(texts.channel().await["status"], "active");
}
