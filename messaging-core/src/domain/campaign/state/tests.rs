use serde_json::{Value, json};

use super::*;
use crate::domain::campaign::CampaignPlan;
use crate::domain::campaign::check::{ReferenceTarget, ResolvedReference};
use crate::domain::campaign::input::CampaignInput;
use crate::domain::campaign::schedule::{SenderState, has_stalled};
use crate::domain::channel::Channel;
use crate::domain::template::Parts;
use crate::input;

const TEMPLATE: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
const OTHER: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ";
const LIST: &str = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    time("2026-05-01T12:00:00Z")
}

fn plan(more: Value) -> CampaignPlan {
    let mut body =
        json!({"name": "Spring", "channel": "email", "template_id": TEMPLATE, "audience": {"list_ids": [LIST]}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let input: CampaignInput = input::body(body.to_string().as_bytes()).unwrap();
    input.into_plan(&mut Violations::new())
}

pub(in crate::domain::campaign) fn test_plan() -> CampaignPlan {
    plan(json!({"kind": "ab_test", "variants": [{}, {}],
        "settings": {"ab_test": {"test_percent": 20, "wait_minutes": 240}}}))
}

pub(in crate::domain::campaign) fn campaign(plan: CampaignPlan, status: CampaignStatus) -> Campaign {
    Campaign {
        id: "cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        plan,
        status,
        phase: None,
        scheduled_at: None,
        wall_time: None,
        schedule_called_at: None,
        started_at: None,
        completed_at: None,
        recipients: None,
        test_sent_at: None,
        winner: None,
        scores: Vec::new(),
        pause_reason: None,
        failure_reason: None,
        sending_domains: Vec::new(),
        created_at: time("2026-04-01T00:00:00Z"),
        updated_at: time("2026-04-01T00:00:00Z"),
    }
}

pub(in crate::domain::campaign) fn draft() -> Campaign {
    campaign(plan(json!({})), CampaignStatus::Draft)
}

/// Results of the look-up when every object exists.
fn all_there(plan: &CampaignPlan) -> Vec<ResolvedReference> {
    let parts = Parts { subject: true, html: true, text: false };
    plan.references()
        .into_iter()
        .map(|(pointer, reference)| {
            let target = match reference {
                super::super::Reference::Template(_) => ReferenceTarget::Template { channel: Channel::Email, parts },
                _ => ReferenceTarget::Other,
            };
            ResolvedReference { pointer, reference, target }
        })
        .collect()
}

fn schedule(campaign: &Campaign, body: Value) -> Result<Campaign, Refusal> {
    let found = all_there(&campaign.plan);
    let ready = Readiness { found: &found, sender: SenderState::Verified, channel_is_configured: true };
    let input = match input::body::<ScheduleInput>(body.to_string().as_bytes()) {
        Ok(input) => input,
        Err(crate::DomainError::Invalid(violations)) => return Err(violations.into()),
        Err(error) => panic!("{error}"),
    };
    campaign.schedule(&input, &ready, now())
}

fn told(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(violations) => violations
            .as_slice()
            .iter()
            .map(|one| {
                let one = serde_json::to_value(one).unwrap();
                format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
            .join(", "),
        Refusal::State { status, allowed } => format!("{} {status} {allowed:?}", refusal.code()),
        _ => refusal.code().to_owned(),
    }
}

/// The table of contract section 12.2, with the changes by the system.
#[test]
fn every_status_against_every_move() {
    type Move = fn(&Campaign) -> Option<Campaign>;
    let moves: [(&str, Move); 11] = [
        ("schedule", |campaign| schedule(campaign, json!({"send_now": true})).ok()),
        ("pause", |campaign| campaign.pause(now()).ok()),
        ("cancel", |campaign| campaign.cancel(now()).ok()),
        ("unschedule", |campaign| campaign.unschedule(now()).ok()),
        ("change", |campaign| campaign.check_change().ok().map(|()| campaign.clone())),
        ("delete", |campaign| campaign.check_delete().ok().map(|()| campaign.clone())),
        ("begin", |campaign| campaign.begin(now())),
        ("frozen", |campaign| Campaign { started_at: Some(now()), ..campaign.clone() }.frozen(5, true, now())),
        ("finish", |campaign| Campaign { recipients: Some(5), ..campaign.clone() }.finish(0, now())),
        ("fail", |campaign| campaign.fail(FailureReason::Internal, now())),
        ("hold back", |campaign| campaign.hold_back(PauseReason::Restored, now())),
    ];
    let grid: String = CampaignStatus::ALL
        .iter()
        .map(|status| {
            let from = Campaign { scheduled_at: Some(now()), ..campaign(plan(json!({})), *status) };
            let cell = |(name, go): &(&str, Move)| go(&from).map(|to| format!("{name}→{}", to.status.as_str()));
            format!("{}: {}\n", status.as_str(), moves.iter().filter_map(cell).collect::<Vec<_>>().join(" "))
        })
        .collect();
    insta::assert_snapshot!(grid, @r"
    draft: schedule→scheduled change→draft delete→draft frozen→draft
    scheduled: schedule→scheduled pause→paused cancel→cancelled unschedule→draft begin→sending frozen→scheduled hold back→paused
    sending: pause→paused cancel→cancelled frozen→sending finish→sent fail→failed hold back→paused
    paused: schedule→scheduled cancel→cancelled unschedule→draft frozen→paused
    sent: 
    failed: 
    cancelled: delete→cancelled
    ");
}

#[test]
fn a_refusal_names_where_it_would_be_possible() {
    let sent = campaign(plan(json!({})), CampaignStatus::Sent);
    let told = |refused: Result<Campaign, Refusal>| told(&refused.unwrap_err());
    assert_eq!(told(schedule(&sent, json!({}))), r#"invalid_state sent ["draft", "scheduled", "paused"]"#);
    assert_eq!(told(sent.pause(now())), r#"invalid_state sent ["scheduled", "sending"]"#);
    assert_eq!(told(sent.cancel(now())), r#"invalid_state sent ["scheduled", "sending", "paused"]"#);
    assert_eq!(told(sent.unschedule(now())), r#"invalid_state sent ["scheduled", "paused"]"#);
    assert_eq!(told(sent.check_change().map(|()| sent.clone())), r#"invalid_state sent ["draft"]"#);
    assert_eq!(told(sent.check_delete().map(|()| sent.clone())), r#"invalid_state sent ["draft", "cancelled"]"#);
}

#[test]
fn fields_come_before_the_state_and_the_state_before_the_campaign() {
    let told = |campaign: &Campaign, body: Value| told(&schedule(campaign, body).unwrap_err());
    let sent = campaign(plan(json!({"audience": {}})), CampaignStatus::Sent);
    let both = json!({"at": "2026-06-01T00:00:00Z", "send_now": true});
    assert_eq!(told(&sent, both.clone()), "/at conflict");
    assert_eq!(told(&sent, json!({"send_now": true, "by_timezone": true})), "/by_timezone conflict");
    assert_eq!(told(&sent, json!({"at": "2027-05-01T12:00:00.001Z"})), "/at out_of_range");
    assert_eq!(told(&sent, json!({"at": "2026-06-01"})), "/at invalid_format");
    assert!(told(&sent, json!({})).starts_with("invalid_state"));
    assert!(told(&sent, json!({"at": "2026-05-01T11:58:59Z"})).starts_with("invalid_state"));

    let nobody = campaign(plan(json!({"audience": {"exclude_list_ids": [LIST]}})), CampaignStatus::Draft);
    assert_eq!(told(&nobody, json!({})), "schedule_time_required");
    assert_eq!(told(&nobody, json!({"send_now": false})), "schedule_time_required");
    assert_eq!(told(&nobody, json!({"at": "2026-05-01T11:58:59.999Z"})), "schedule_in_past");
    assert_eq!(told(&nobody, json!({"at": "2026-05-01T11:59:00Z"})), "audience_empty");
    assert_eq!(told(&nobody, json!({"send_now": true})), "audience_empty");
}

#[test]
fn a_campaign_that_is_not_ready_is_refused() {
    let draft = draft();
    let input = ScheduleInput { send_now: Some(true), ..ScheduleInput::default() };
    let found = all_there(&draft.plan);
    let with = |found: &[ResolvedReference], sender, channel_is_configured| {
        told(&draft.schedule(&input, &Readiness { found, sender, channel_is_configured }, now()).unwrap_err())
    };
    assert_eq!(with(&found, SenderState::Missing, false), "sender_missing");
    assert_eq!(with(&found, SenderState::NotVerified, false), "sender_domain_not_verified");
    assert_eq!(with(&found, SenderState::Verified, false), "channel_not_configured");
    let mut lacking = found.clone();
    lacking[1].target = ReferenceTarget::Nothing;
    assert_eq!(with(&lacking, SenderState::Missing, false), "/audience/list_ids/0 not_found");
    let parts = Parts { html: true, ..Parts::default() };
    lacking[0].target = ReferenceTarget::Template { channel: Channel::Email, parts };
    assert_eq!(with(&lacking, SenderState::Missing, false), "/audience/list_ids/0 not_found, /template_id required");
}

#[test]
fn each_variant_needs_its_parts() {
    let parts = |subject, html| {
        let parts = Parts { subject, html, text: false };
        ReferenceTarget::Template { channel: Channel::Email, parts }
    };
    let told = |more: Value, first: ReferenceTarget, second: ReferenceTarget| {
        let draft = campaign(plan(more), CampaignStatus::Draft);
        let mut found = all_there(&draft.plan);
        for one in &mut found {
            match one.reference {
                super::super::Reference::Template(id) if id.to_string() == TEMPLATE => one.target = first,
                super::super::Reference::Template(_) => one.target = second,
                _ => {}
            }
        }
        let ready = Readiness { found: &found, sender: SenderState::Verified, channel_is_configured: true };
        let input = ScheduleInput { send_now: Some(true), ..ScheduleInput::default() };
        draft.schedule(&input, &ready, now()).map_or_else(|refusal| told(&refusal), |_| String::new())
    };
    let (whole, no_subject, no_body) = (parts(true, true), parts(false, true), parts(true, false));
    assert_eq!(told(json!({}), no_subject, whole), "/template_id required");
    assert_eq!(told(json!({"subject_override": "Hi"}), no_subject, whole), "");
    assert_eq!(told(json!({"subject_override": "Hi"}), no_body, whole), "/template_id required");
    let two = |a: Value, b: Value| json!({"kind": "ab_test", "variants": [a, b]});
    assert_eq!(told(two(json!({"subject": "Hi"}), json!({"subject": "Ho"})), no_subject, whole), "");
    assert_eq!(told(two(json!({"subject": "Hi"}), json!({})), no_subject, whole), "/template_id required");
    assert_eq!(told(two(json!({"template_id": OTHER}), json!({})), whole, no_body), "/variants/0/template_id required");
    // A template that no recipient gets may lack any part.
    let both_other = two(json!({"template_id": OTHER}), json!({"template_id": OTHER}));
    assert_eq!(told(both_other, no_body, whole), "");
}

#[test]
fn when_it_begins() {
    let at = |body: Value| schedule(&draft(), body).unwrap();
    let now_at_once = at(json!({"send_now": true}));
    assert_eq!((now_at_once.scheduled_at, now_at_once.starts_at()), (Some(now()), Some(now())));
    assert_eq!(now_at_once.schedule_called_at, Some(now()));

    let later = at(json!({"at": "2026-06-01T09:00:00+02:00"}));
    assert_eq!((later.starts_at(), later.wall_time), (Some(time("2026-06-01T07:00:00Z")), None));
    assert!(!later.is_due(time("2026-06-01T06:59:59.999Z")) && later.is_due(time("2026-06-01T07:00:00Z")));

    let zoned = at(json!({"at": "2026-06-01T09:00:00.250+02:00", "by_timezone": true}));
    assert_eq!(zoned.wall_time.unwrap().to_string(), "2026-06-01T09:00:00.25");
    assert_eq!(zoned.scheduled_at, Some(time("2026-06-01T07:00:00.250Z")));
    assert_eq!(zoned.starts_at(), Some(time("2026-05-31T19:00:00.250Z")));

    // A year ahead is allowed; a minute back counts as now. Letters may be lower case.
    assert!(schedule(&draft(), json!({"at": "2027-05-01T12:00:00Z"})).is_ok());
    assert!(schedule(&draft(), json!({"at": "2026-05-01t11:59:00z"})).unwrap().is_due(now()));
}

#[test]
fn a_written_time_is_answered_as_it_was_written() {
    for text in ["2026-06-01T09:00:00.250+02:00", "2026-06-01T09:00:00.000-09:30", "2026-06-01T09:00:00.000+00:00"] {
        let input: ScheduleInput = serde_json::from_value(json!({"at": text})).unwrap();
        assert_eq!(serde_json::to_value(&input).unwrap()["at"], text);
    }
}

#[test]
fn a_paused_campaign_goes_on_without_a_time() {
    let scheduled = schedule(&draft(), json!({"at": "2026-06-01T09:00:00+02:00", "by_timezone": true})).unwrap();
    let unbegun = schedule(&scheduled.pause(now()).unwrap(), json!({})).unwrap();
    assert_eq!((unbegun.scheduled_at, unbegun.wall_time, unbegun.pause_reason), (Some(now()), None, None));

    let begun = scheduled.begin(time("2026-06-01T00:00:00Z")).unwrap();
    let paused = begun.pause(now()).unwrap();
    assert_eq!(paused.pause_reason, Some(PauseReason::User));
    assert!(paused.unschedule(now()).is_err());
    let resumed = schedule(&paused, json!({})).unwrap();
    assert_eq!((resumed.wall_time, resumed.started_at), (begun.wall_time, begun.started_at));
    assert_eq!(resumed.starts_at(), Some(now()));
    assert!(resumed.unschedule(now()).is_err());
    assert_eq!(resumed.begin(now()).unwrap().started_at, begun.started_at);

    let again = schedule(&paused, json!({"at": "2026-06-02T00:00:00Z", "by_timezone": true}));
    assert_eq!(told(&again.unwrap_err()), "/by_timezone conflict");
    // The objects of a frozen campaign are not looked up again.
    let ready = Readiness { found: &[], sender: SenderState::Verified, channel_is_configured: true };
    assert!(paused.schedule(&ScheduleInput::default(), &ready, now()).is_ok());
    let unverified = Readiness { sender: SenderState::NotVerified, ..ready };
    let refused = paused.schedule(&ScheduleInput::default(), &unverified, now()).unwrap_err();
    assert_eq!(refused.code(), "sender_domain_not_verified");
}

#[test]
fn a_test_goes_through_its_phases() {
    let begun = schedule(&campaign(test_plan(), CampaignStatus::Draft), json!({"send_now": true})).unwrap();
    let begun = begun.begin(now()).unwrap();
    assert_eq!(begun.phase, None);
    assert_eq!(begun.frozen(3, false, now()).unwrap().phase, None);
    let testing = begun.frozen(100, true, now()).unwrap();
    assert_eq!((testing.phase, testing.recipients), (Some(CampaignPhase::Testing), Some(100)));
    assert_eq!((testing.frozen(9, true, now()), testing.winner_due_at(), testing.finish(0, now())), (None, None, None));
    assert!(testing.declare_winner("A", Vec::new(), now()).is_err());

    let waiting = testing.test_sent(now()).unwrap();
    assert_eq!(waiting.winner_due_at(), Some(time("2026-05-01T16:00:00Z")));
    assert_eq!((waiting.test_sent(now()), waiting.finish(0, now())), (None, None));
    let paused = waiting.pause(now()).unwrap();
    assert_eq!(told(&paused.declare_winner("C", Vec::new(), now()).unwrap_err()), "/variant not_found");
    let refused = testing.declare_winner("B", Vec::new(), now()).unwrap_err();
    assert_eq!(told(&refused), r#"invalid_state sending ["scheduled", "sending", "paused"]"#);

    let decided = paused.declare_winner("B", Vec::new(), now()).unwrap();
    assert_eq!((decided.phase, decided.winner), (Some(CampaignPhase::Winner), Some(1)));
    assert_eq!((decided.status, decided.winner_due_at()), (CampaignStatus::Paused, None));
    assert!(decided.declare_winner("A", Vec::new(), now()).is_err());
    let resumed = schedule(&decided, json!({})).unwrap().begin(now()).unwrap();
    assert_eq!(resumed.finish(1, now()), None);
    let sent = resumed.finish(0, now()).unwrap();
    assert_eq!((sent.phase, sent.winner, sent.completed_at), (None, Some(1), Some(now())));
    assert_eq!(waiting.decided(2, Vec::new(), now()), None);
}

#[test]
fn nobody_left_is_sent_at_once() {
    let begun = schedule(&draft(), json!({"send_now": true})).unwrap().begin(now()).unwrap();
    assert_eq!(begun.finish(0, now()), None, "not before the audience is known");
    let sent = begun.frozen(0, false, now()).unwrap().finish(0, now()).unwrap();
    assert_eq!((sent.status, sent.recipients), (CampaignStatus::Sent, Some(0)));
}

#[test]
fn what_is_far_too_late_waits_for_a_person() {
    let scheduled = schedule(&draft(), json!({"at": "2026-05-02T00:00:00Z"})).unwrap();
    assert!(!scheduled.is_stale(time("2026-05-02T06:00:00Z")));
    assert!(scheduled.is_stale(time("2026-05-02T06:00:00.001Z")));
    // At UTC+14 it was due long before anybody scheduled it.
    let zoned = schedule(&draft(), json!({"at": "2026-05-01T12:00:00Z", "by_timezone": true})).unwrap();
    assert!(zoned.is_due(now()) && !zoned.is_stale(time("2026-05-01T18:00:00Z")));
    assert!(zoned.is_stale(time("2026-05-01T18:00:00.001Z")));
    assert!(!draft().is_stale(now()));
    assert!(!has_stalled(now(), time("2026-05-01T18:00:00Z")) && has_stalled(now(), time("2026-05-01T18:00:01Z")));
    let held = scheduled.hold_back(PauseReason::Stale, now()).unwrap();
    assert_eq!((held.status, held.pause_reason), (CampaignStatus::Paused, Some(PauseReason::Stale)));
}
