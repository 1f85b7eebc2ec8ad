//! Runs of automations, entries of contacts, moments of dates, and their counts.

use std::time::Duration;

use messaging_core::changes::{
    AutomationWrite, Condition, CountNodes, DateFire, Expect, ExpectEntries, JobWrite, MoveRuns, PutDateFires, PutRun,
    RunKey, Write,
};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::automation::Automation;
use messaging_core::domain::automation::history::{RunStep, StepOutcome};
use messaging_core::domain::automation::note::EntrySubscription;
use messaging_core::domain::automation::run::{Entry, KEPT_AFTER_END, Run, RunStatus};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{AutomationCounts, NodeCounts, RunFilter, Store, Stored};
use messaging_core::time::Timestamp;
use serde_json::{Map, json};

use super::automation_samples::{create, entered_by, lanes, put_run, shard_of, standing, step};
use super::sample::{at, automation, claim, contact, enqueue, handles, id, object, product_event, run};
use super::segments::add_contact;
use super::{all_pages, first, put, refuse};

fn ended(run: &Run, status: RunStatus, at: Timestamp) -> Run {
    Run { status, ended_at: Some(at), due_at: None, held: None, exit_reason: Some("goal".to_owned()), ..run.clone() }
}

fn refused(run: &Run) -> Run {
    let failed = ended(run, RunStatus::Failed, run.entered_at);
    Run { node_id: None, steps: 0, exit_reason: Some("daily_limit".to_owned()), ..failed }
}

/// Creates an automation and some contacts.
async fn begin(store: &dyn Store, contacts: usize) -> (Automation, Vec<Contact>) {
    let one = automation(id());
    let contacts: Vec<_> = (0..contacts).map(|_| contact(one.workspace_id)).collect();
    put(store, [create(&one)].into_iter().chain(contacts.iter().map(add_contact))).await;
    (one, contacts)
}

/// A run comes back as it was put, in every state.
pub async fn runs_round_trip(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let full = run(&one, &people[0]);
    let bare = Run {
        status: RunStatus::Active,
        node_id: None,
        due_at: Some(at(0)),
        event: Map::new(),
        entry_event: None,
        key: None,
        held: None,
        ..full.clone()
    };
    let late = Run { entry_event: Some(id()), entered_at: at(12), arrived_at: at(3), ..full.clone() };
    let ended = RunStatus::ALL.into_iter().filter(|status| !status.is_open()).map(|status| ended(&full, status, at(9)));
    for other in [full.clone(), bare, late, refused(&full)].into_iter().chain(ended) {
        let other = Run { id: id(), ..other };
        put(store, [put_run(&other, Expect::Absent)]).await;
        let read = store.run(one.workspace_id, one.id, other.id).await.unwrap();
        assert_eq!(read, Some(Stored { record: other, revision: 1 }));
    }
}

/// A run changes under its revision; its contact and its automation must be there.
pub async fn a_run_changes_with_its_revision(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let mut waiting = run(&one, &people[0]);
    refuse(store, [put_run(&waiting, Expect::Revision(1))]).await;
    put(store, [put_run(&waiting, Expect::Absent)]).await;
    refuse(store, [put_run(&waiting, Expect::Absent)]).await;
    waiting = Run { steps: 9, due_at: None, arrived_at: at(900), held: None, ..standing(&waiting, "other") };
    put(store, [put_run(&waiting, Expect::Revision(1))]).await;
    refuse(store, [put_run(&waiting, Expect::Revision(1))]).await;
    let read = async || store.run(one.workspace_id, one.id, waiting.id).await.unwrap();
    assert_eq!(read().await, Some(Stored { record: waiting.clone(), revision: 2 }));
    let over = ended(&waiting, RunStatus::Exited, at(950));
    put(store, [put_run(&over, Expect::Revision(2))]).await;
    assert_eq!(read().await, Some(Stored { record: over, revision: 3 }));
    refuse(store, [put_run(&Run { id: id(), contact_id: id(), ..waiting.clone() }, Expect::Absent)]).await;
    refuse(store, [put_run(&Run { id: id(), automation_id: id(), ..waiting.clone() }, Expect::Absent)]).await;
    refuse(store, [put_run(&Run { id: id(), workspace_id: id(), ..waiting }, Expect::Absent)]).await;
}

/// Due runs are found by shard, the longest due first, and so is the time when the next one is due.
pub async fn due_runs_come_in_their_order_by_share(store: &dyn Store) {
    let (one, people) = begin(store, 12).await;
    let mut runs = Vec::new();
    for (n, person) in (0_i64..).zip(&people) {
        let due_at = (n != 5).then(|| at(1_000 - 50 * n));
        runs.push(Run { due_at, ..run(&one, person) });
    }
    put(store, runs.iter().map(|run| put_run(run, Expect::Absent))).await;
    let workspace = one.workspace_id;
    let mut seen = Vec::new();
    for shard in 0..4 {
        let all = store.due_runs(workspace, one.id, shard, at(1_000), 99).await.unwrap();
        assert!(all.is_sorted_by_key(|run| run.record.due_at), "{all:?}");
        let next = messaging_core::ports::store::Automations::next_run_due(store, workspace, one.id, shard).await;
        assert_eq!(next.unwrap(), all.first().and_then(|run| run.record.due_at));
        if let Some(second) = all.get(1) {
            let early = store.due_runs(workspace, one.id, shard, second.record.due_at.unwrap(), 99).await.unwrap();
            assert_eq!(early, all[..2]);
            let before = second.record.due_at.unwrap() - std::time::Duration::from_millis(1);
            assert_eq!(store.due_runs(workspace, one.id, shard, before, 99).await.unwrap(), all[..1]);
            assert_eq!(store.due_runs(workspace, one.id, shard, at(1_000), 1).await.unwrap(), all[..1]);
        }
        seen.extend(all.into_iter().map(|run| run.record.id));
    }
    seen.sort_unstable();
    let due: Vec<_> = runs.iter().filter(|run| run.due_at.is_some()).map(|run| run.id).collect();
    assert_eq!(seen, due, "each contact belongs to one share");
    let shard = shard_of(store, &one, people[0].id).await;
    put(store, [put_run(&ended(&runs[0], RunStatus::Completed, at(1)), Expect::Revision(1))]).await;
    let left = store.due_runs(workspace, one.id, shard, at(1_000), 99).await.unwrap();
    assert!(left.iter().all(|run| run.record.id != runs[0].id));
}

/// Every condition of a listing narrows it, and its pages are exact while runs are added.
pub async fn runs_are_listed_by_state_contact_and_node(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let workspace = one.workspace_id;
    let mut expected: Vec<Run> = Vec::new();
    for n in 0..12 {
        let one = standing(&run(&one, &people[n % 2]), ["a", "b", "c"][n % 3]);
        let one = if n % 4 == 0 { ended(&one, RunStatus::Exited, at(9)) } else { one };
        put(store, [put_run(&one, Expect::Absent)]).await;
        expected.insert(0, one);
    }
    let statuses = [None, Some(RunStatus::Waiting), Some(RunStatus::Exited), Some(RunStatus::Failed)];
    for status in statuses {
        for contact_id in [None, Some(people[0].id), Some(people[1].id), Some(id())] {
            for node in [None, Some("a"), Some("c"), Some("nowhere")] {
                let wanted = RunFilter { status, contact_id, node_id: node.map(ToOwned::to_owned) };
                let listed =
                    all_pages(2, async |page| store.runs(workspace, one.id, &wanted, page).await, async || ()).await;
                let fits = |run: &&Run| {
                    status.is_none_or(|status| run.status == status)
                        && contact_id.is_none_or(|id| run.contact_id == id)
                        && node.is_none_or(|node| run.node_id.as_deref() == Some(node))
                };
                let fitting: Vec<_> = expected.iter().filter(fits).collect();
                assert_eq!(listed.iter().collect::<Vec<_>>(), fitting, "{wanted:?}");
            }
        }
    }
    let add = async || put(store, [put_run(&run(&one, &people[0]), Expect::Absent)]).await;
    let listed = all_pages(5, async |page| store.runs(workspace, one.id, &RunFilter::default(), page).await, add).await;
    assert_eq!(listed, expected);
    let mut open = store.open_runs(workspace, one.id, &[people[1].id, id(), people[0].id]).await.unwrap();
    let of_first = open.iter().take_while(|run| run.record.contact_id == people[1].id).count();
    open[of_first..].iter().for_each(|run| assert_eq!(run.record.contact_id, people[0].id));
    open.truncate(of_first);
    let oldest: Vec<_> =
        expected.iter().rev().filter(|run| run.status.is_open() && run.contact_id == people[1].id).collect();
    assert_eq!(open.iter().map(|run| &run.record).collect::<Vec<_>>(), oldest);
}

/// The steps of a run that waits where it began are derived, whether it still waits, moved to another contact, went on
/// or ended.
pub async fn the_first_wait_of_a_run_is_told(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let workspace = one.workspace_id;
    let told = async |run: &Run| {
        store.run_steps(RunKey { workspace_id: workspace, automation_id: one.id, run_id: run.id }).await.unwrap()
    };
    for arrives in [0, 250] {
        let begun = run(&one, &people[0]);
        let begun = Run { arrived_at: begun.entered_at + Duration::from_millis(arrives), ..begun };
        let until = object(&json!({"until": begun.due_at}));
        let first = [
            RunStep { at: begun.entered_at, ..step(StepOutcome::Entered, None) },
            RunStep { at: begun.arrived_at, detail: until, ..step(StepOutcome::Waiting, Some("w")) },
        ];
        // Any deviation from the usual first steps is stored and read as it was put.
        let otherwise = [
            vec![first[0].clone(), RunStep { reason: Some("x".to_owned()), ..first[1].clone() }],
            vec![first[0].clone(), RunStep { detail: object(&json!({})), ..first[1].clone() }],
            vec![first[1].clone()],
            vec![],
        ];
        let put_with = |run: &Run, expect, steps: &[RunStep]| {
            Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
                run: run.clone(),
                expect,
                steps: steps.to_vec(),
                messages: Vec::new(),
            })))
        };
        for steps in otherwise {
            let other = Run { id: id(), ..begun.clone() };
            put(store, [put_with(&other, Expect::Absent, &steps)]).await;
            assert_eq!(told(&other).await, steps);
        }
        put(store, [put_with(&begun, Expect::Absent, &first)]).await;
        assert_eq!(told(&begun).await, first);
        let next =
            RunStep { at: at(6_000), branch: Some("next".to_owned()), ..step(StepOutcome::Continued, Some("w")) };
        let later = Run { due_at: Some(at(9_000)), arrived_at: at(6_000), ..standing(&begun, "other") };
        refuse(store, [put_with(&later, Expect::Revision(2), std::slice::from_ref(&next))]).await;
        assert_eq!(told(&begun).await, first);
        put(store, [put_with(&later, Expect::Revision(1), std::slice::from_ref(&next))]).await;
        assert_eq!(told(&begun).await, [first[0].clone(), first[1].clone(), next.clone()]);
        let over = ended(&later, RunStatus::Completed, at(9_000));
        put(store, [put_with(&over, Expect::Revision(2), &[])]).await;
        assert_eq!(told(&begun).await, [first[0].clone(), first[1].clone(), next]);
        let moved = Run { id: id(), contact_id: people[1].id, ..begun };
        put(store, [put_with(&moved, Expect::Absent, &first)]).await;
        if arrives > 0 {
            put(store, merge(workspace, &people[1], &people[0])).await;
            assert_eq!(told(&moved).await, first);
            let moved = Run { contact_id: people[0].id, ..moved };
            put(store, [put_with(&ended(&moved, RunStatus::Exited, at(10)), Expect::Revision(2), &[])]).await;
            assert_eq!(told(&moved).await, first);
        }
    }
}

/// The steps of a run come back in their order, and its messages lead to it.
pub async fn steps_and_messages_are_kept_with_a_run(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let waiting = run(&one, &people[0]);
    let full = RunStep {
        branch: Some("yes".to_owned()),
        reason: Some("no_consent".to_owned()),
        detail: object(&json!({"leaves": [{"pointer": "/and/0", "held": true}], "ü": null})),
        ..step(StepOutcome::Branched, Some("c"))
    };
    let reason_alone = RunStep { reason: Some("x".to_owned()), ..step(StepOutcome::Skipped, Some("s")) };
    let all: Vec<_> = StepOutcome::ALL.into_iter().map(|outcome| step(outcome, None)).collect();
    let (first_message, second_message) = (id(), id());
    let put_with = |run: &Run, expect, steps: &[RunStep], message| {
        let messages = vec![(message, "s".to_owned())];
        Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
            run: run.clone(),
            expect,
            steps: steps.to_vec(),
            messages,
        })))
    };
    put(store, [put_with(&waiting, Expect::Absent, &all, first_message)]).await;
    put(store, [put_with(&waiting, Expect::Revision(1), &[full.clone(), reason_alone.clone()], second_message)]).await;
    refuse(store, [put_with(&waiting, Expect::Revision(1), &all, id())]).await;
    let key = RunKey { workspace_id: one.workspace_id, automation_id: one.id, run_id: waiting.id };
    let expected: Vec<_> = all.into_iter().chain([full, reason_alone]).collect();
    assert_eq!(store.run_steps(key).await.unwrap(), expected);
    for message in [first_message, second_message] {
        assert_eq!(store.run_of_message(one.workspace_id, message).await.unwrap(), Some(key));
        assert_eq!(store.run_of_message(id(), message).await.unwrap(), None);
    }
    assert_eq!(store.run_of_message(one.workspace_id, id()).await.unwrap(), None);
    assert_eq!(store.run_steps(RunKey { run_id: id(), ..key }).await.unwrap(), []);
}

fn entry(run: &Run, key: Option<&str>, open: u32) -> Entry {
    Entry {
        workspace_id: run.workspace_id,
        automation_id: run.automation_id,
        contact_id: run.contact_id,
        key: key.map(ToOwned::to_owned),
        entered_at: run.entered_at,
        open,
    }
}

fn put_entry(entry: &Entry, expect: Expect) -> Write {
    Write::Automation(AutomationWrite::PutEntry(Box::new(entry.clone()), expect))
}

/// An entry belongs to a contact and a value of the key, changes under its revision, and counts the open runs.
pub async fn entries_change_with_their_revision(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let keyless = Run { key: None, ..run(&one, &people[0]) };
    let keyed = |key: &str| Run { id: id(), key: Some(key.to_owned()), ..keyless.clone() };
    let over = ended(&keyed("null"), RunStatus::Completed, at(9));
    let (first_run, second_run) = (keyed("null"), keyed("null"));
    put(store, [&keyless, &first_run, &second_run, &over].map(|run| put_run(run, Expect::Absent))).await;
    let plain = entry(&keyless, None, 1);
    let null = entry(&keyless, Some("null"), 2);
    put(store, [put_entry(&plain, Expect::Absent), put_entry(&null, Expect::Absent)]).await;
    refuse(store, [put_entry(&plain, Expect::Absent)]).await;
    refuse(store, [put_entry(&Entry { contact_id: id(), ..plain.clone() }, Expect::Absent)]).await;
    let keys = [
        (people[0].id, Some("null".to_owned())),
        (people[1].id, None),
        (people[0].id, None),
        (people[0].id, Some("1".to_owned())),
    ];
    let read = async || store.entries(one.workspace_id, one.id, &keys).await.unwrap();
    let stored = |record: &Entry, revision| Some(Stored { record: record.clone(), revision });
    assert_eq!(read().await, [stored(&null, 1), None, stored(&plain, 1), None]);
    let later = Entry { entered_at: at(500), ..null.clone() };
    put(
        store,
        [
            put_entry(&later, Expect::Revision(1)),
            put_run(&ended(&first_run, RunStatus::Exited, at(9)), Expect::Revision(1)),
        ],
    )
    .await;
    refuse(store, [put_entry(&later, Expect::Revision(1))]).await;
    assert_eq!(read().await[0], stored(&Entry { open: 1, ..later }, 2));
    assert_eq!(store.entries(id(), one.id, &keys).await.unwrap(), [None, None, None, None]);
}

/// The entries of a contact after a time are counted, without refused ones.
pub async fn entries_of_a_day_are_counted(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let at_time = |n: i64| Run { id: id(), entered_at: at(n), entry_event: None, ..run(&one, &people[0]) };
    let mut runs: Vec<_> = [10, 20, 30].map(at_time).into();
    runs.push(ended(&at_time(40), RunStatus::Completed, at(50)));
    runs.push(refused(&at_time(60)));
    put(store, runs.iter().map(|run| put_run(run, Expect::Absent))).await;
    let since = async |n| {
        let asked = [(people[1].id, at(0)), (people[0].id, at(n)), (id(), at(n))];
        store.entries_since(one.workspace_id, one.id, &asked).await.unwrap()
    };
    assert_eq!(since(9).await, [0, 4, 0]);
    assert_eq!(since(10).await, [0, 3, 0]);
    assert_eq!(since(40).await, [0, 0, 0]);
    assert_eq!(store.entries_since(id(), one.id, &[(people[0].id, at(0))]).await.unwrap(), [0]);
}

/// A commit by which a contact enters is refused if there were too many entries, with any keys, or if the refusal is
/// listed already.
pub async fn a_commit_expects_how_often_somebody_has_entered(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let at_time = |n: i64, key: &str| Run {
        id: id(),
        entered_at: at(n),
        entry_event: None,
        key: Some(key.to_owned()),
        ..run(&one, &people[0])
    };
    let expect = |contact_id, since, refused: Option<&str>, fewer_than| {
        Write::Expect(Condition::Entries(Box::new(ExpectEntries {
            workspace_id: one.workspace_id,
            automation_id: one.id,
            contact_id,
            since: at(since),
            refused: refused.map(ToOwned::to_owned),
            fewer_than,
        })))
    };
    let ann = people[0].id;
    put(store, [expect(ann, 0, None, 1), expect(ann, 0, Some("daily_limit"), 1)]).await;
    put(store, [10, 20, 30].map(|n| put_run(&at_time(n, &n.to_string()), Expect::Absent))).await;
    put(store, [expect(ann, 0, None, 4), expect(ann, 10, None, 3), expect(people[1].id, 0, None, 1)]).await;
    for (since, fewer_than) in [(0, 3), (0, 1), (10, 2), (29, 1)] {
        refuse(store, [expect(ann, since, None, fewer_than)]).await;
    }
    put(store, [put_run(&refused(&at_time(40, "x")), Expect::Absent)]).await;
    put(store, [expect(ann, 0, None, 4), expect(ann, 0, Some("depth"), 1), expect(ann, 40, Some("daily_limit"), 1)])
        .await;
    refuse(store, [expect(ann, 39, Some("daily_limit"), 1)]).await;
}

/// A moment of a date is kept once, is due in its order, and is taken once.
pub async fn dates_fire_once(store: &dyn Store) {
    let (one, people) = begin(store, 3).await;
    let workspace = one.workspace_id;
    let fire = |n: usize, due: i64| DateFire { contact_id: people[n].id, due_at: at(due) };
    let keep = |fires: Vec<DateFire>| {
        [Write::Automation(AutomationWrite::PutDateFires(Box::new(PutDateFires {
            workspace_id: workspace,
            automation_id: one.id,
            fires,
        })))]
    };
    let gone = DateFire { contact_id: id(), due_at: at(1) };
    put(store, keep(vec![fire(0, 30), fire(0, 20), fire(1, 10), fire(0, 30), gone])).await;
    put(store, [put_run(&Run { due_at: Some(at(25)), ..run(&one, &people[0]) }, Expect::Absent)]).await;
    let shard = shard_of(store, &one, people[0].id).await;
    let due = async |now: i64| store.due_dates(workspace, one.id, shard, at(now), 9).await.unwrap();
    let next = async || messaging_core::ports::store::Automations::next_run_due(store, workspace, one.id, shard).await;
    assert_eq!(due(19).await, []);
    assert_eq!(due(20).await, [fire(0, 20)]);
    assert_eq!(due(99).await, [fire(0, 20), fire(0, 30)]);
    assert_eq!(store.due_dates(workspace, one.id, shard, at(99), 1).await.unwrap(), [fire(0, 20)]);
    assert_eq!(next().await.unwrap(), Some(at(20)));
    let take = |fire: DateFire| [Write::Automation(AutomationWrite::TakeDateFire(workspace, one.id, fire))];
    refuse(store, take(fire(0, 21))).await;
    put(store, take(fire(0, 20))).await;
    refuse(store, take(fire(0, 20))).await;
    assert_eq!(next().await.unwrap(), Some(at(25)), "of a run");
    put(store, keep(vec![fire(0, 20)])).await;
    assert_eq!(due(99).await, [fire(0, 30)], "one that was taken is not kept again");
    let week = 8 * 86_400_000;
    assert_eq!(store.forget_automation_rows(at(week), 9).await.unwrap(), 1);
    put(store, keep(vec![fire(0, 20)])).await;
    assert_eq!(due(99).await, [fire(0, 20), fire(0, 30)]);
    put(store, [Write::DeleteContact(workspace, people[1].id)]).await;
}

/// Counts of runs and of nodes equal the rows, whatever happens and whatever is refused.
pub async fn counts_follow_the_runs(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let workspace = one.workspace_id;
    let new = || run(&one, &people[0]);
    let count = |node: &str, branch: &str| {
        let entered = vec![(node.to_owned(), 2), ("other".to_owned(), 1)];
        let branches = vec![((node.to_owned(), branch.to_owned()), 1), ((node.to_owned(), "no".to_owned()), 2)];
        Write::Automation(AutomationWrite::CountNodes(workspace, one.id, Box::new(CountNodes { entered, branches })))
    };
    let (first_run, second_run, third_run) = (new(), standing(&new(), "b"), new());
    put(store, [&first_run, &second_run, &third_run].map(|run| put_run(run, Expect::Absent))).await;
    put(store, [put_run(&refused(&new()), Expect::Absent), count("w", "yes"), count("w", "yes")]).await;
    refuse(store, [count("w", "yes"), put_run(&new(), Expect::Absent), put_run(&third_run, Expect::Absent)]).await;
    put(store, [put_run(&standing(&first_run, "b"), Expect::Revision(1))]).await;
    put(store, [put_run(&ended(&third_run, RunStatus::Exited, at(9)), Expect::Revision(1))]).await;
    let counts = store.automation_counts(workspace, one.id).await.unwrap();
    assert_eq!(counts.runs, [0, 2, 0, 1, 0]);
    let node = |node: &str, entered, waiting, branches: &[(&str, u64)]| NodeCounts {
        node_id: node.to_owned(),
        entered,
        waiting,
        branches: branches.iter().map(|(branch, taken)| ((*branch).to_owned(), *taken)).collect(),
    };
    let mut nodes = counts.nodes;
    nodes.sort_by(|a, b| a.node_id.cmp(&b.node_id));
    assert_eq!(nodes, [node("b", 0, 2, &[]), node("other", 2, 0, &[]), node("w", 4, 0, &[("no", 4), ("yes", 2)])]);
    assert_eq!(store.automation_counts(id(), one.id).await.unwrap(), AutomationCounts::default());
    put(store, [Write::Automation(AutomationWrite::CountNodes(workspace, id(), Box::default()))]).await;
}

/// The job of a shard of the contacts is due when one of its runs or moments is, unless it is the job that commits.
pub async fn a_job_is_due_when_its_run_is(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let waiting = Run { due_at: Some(at(500)), ..run(&one, &people[0]) };
    put(store, lanes(&one).iter().map(|lane| enqueue(lane.as_str(), 9_000))).await;
    put(store, [put_run(&waiting, Expect::Absent)]).await;
    assert_eq!(store.claim(claim(499)).await.unwrap(), []);
    let claimed = store.claim(claim(500)).await.unwrap();
    let shard = shard_of(store, &one, people[0].id).await;
    let lane = lanes(&one)[usize::from(shard)].clone();
    let job = handles(&claimed).pop().expect("a job");
    assert_eq!((claimed.len(), job.lane.as_str()), (1, lane.as_str()));
    // Its own commit does not wake it.
    let later = messaging_core::changes::Reschedule { due_at: at(8_000), at: at(510), payload: bytes::Bytes::new() };
    let again = Run { due_at: Some(at(700)), ..waiting };
    put(store, [put_run(&again, Expect::Revision(1)), Write::Job(JobWrite::Reschedule(job, later))]).await;
    assert_eq!(store.claim(claim(7_999)).await.unwrap(), []);
    let fires = vec![DateFire { contact_id: people[0].id, due_at: at(600) }];
    let keep = PutDateFires { workspace_id: one.workspace_id, automation_id: one.id, fires };
    put(store, [Write::Automation(AutomationWrite::PutDateFires(Box::new(keep)))]).await;
    assert_eq!(store.claim(claim(600)).await.unwrap().len(), 1);
}

fn merge(workspace_id: WorkspaceId, from: &Contact, to: &Contact) -> [Write; 2] {
    [
        Write::Automation(AutomationWrite::MoveRuns(MoveRuns { workspace_id, from: from.id, to: to.id })),
        Write::DeleteContact(workspace_id, from.id),
    ]
}

/// After a merge both runs continue, with entries, moments and notes, and a job that works on one has to decide again.
pub async fn runs_of_a_merged_contact_go_on(store: &dyn Store) {
    let one = automation(id());
    let workspace = one.workspace_id;
    let (ann, bob, carl) = (contact(workspace), contact(workspace), contact(workspace));
    put(store, [entered_by(&one, EntrySubscription::Event("x".to_owned()))]).await;
    put(store, [&carl, &ann, &bob].map(add_contact)).await;
    let (of_ann, of_bob) = (Run { key: None, ..run(&one, &ann) }, Run { key: None, ..run(&one, &bob) });
    put(store, [&of_ann, &of_bob].map(|run| put_run(run, Expect::Absent))).await;
    put(store, [put_entry(&entry(&of_ann, None, 1), Expect::Absent)]).await;
    let later = Entry { entered_at: at(77), ..entry(&of_bob, None, 1) };
    let only_bobs = entry(&of_bob, Some("1"), 0);
    put(store, [put_entry(&later, Expect::Absent), put_entry(&only_bobs, Expect::Absent)]).await;
    let fires = vec![DateFire { contact_id: bob.id, due_at: at(600) }];
    put(
        store,
        [Write::Automation(AutomationWrite::PutDateFires(Box::new(PutDateFires {
            workspace_id: workspace,
            automation_id: one.id,
            fires,
        })))],
    )
    .await;
    let events = [product_event(&ann, "x"), product_event(&bob, "x"), product_event(&bob, "x")];
    put(store, [Write::AppendProductEvents(events.to_vec())]).await;
    put(store, merge(workspace, &bob, &ann)).await;
    assert!(!store.has_left_runs(workspace, bob.id).await.unwrap());
    let shard = shard_of(store, &one, ann.id).await;
    let moved = Run { contact_id: ann.id, ..of_bob.clone() };
    let due = store.due_runs(workspace, one.id, shard, at(9_999), 9).await.unwrap();
    let due: Vec<_> = due.into_iter().map(|run| (run.record, run.revision)).collect();
    assert_eq!(due, [(of_ann.clone(), 1), (moved.clone(), 2)]);
    refuse(store, [put_run(&of_bob, Expect::Revision(1))]).await;
    refuse(store, [put_run(&moved, Expect::Revision(1))]).await;
    put(store, [put_run(&moved, Expect::Revision(2))]).await;
    let keys = [(ann.id, None), (ann.id, Some("1".to_owned()))];
    let entries = store.entries(workspace, one.id, &keys).await.unwrap();
    let known: Vec<_> = entries.iter().flatten().map(|entry| (entry.record.entered_at, entry.record.open)).collect();
    assert_eq!(known, [(at(77), 2), (of_bob.entered_at, 0)]);
    refuse(store, [put_entry(&entry(&of_ann, None, 1), Expect::Revision(1))]).await;
    let fires = store.due_dates(workspace, one.id, shard, at(9_999), 9).await.unwrap();
    assert_eq!(fires, [DateFire { contact_id: ann.id, due_at: at(600) }]);
    let notes = store.automation_notes(workspace, one.id, shard, 9).await.unwrap();
    let told: Vec<_> = notes.iter().map(|(_, note, _)| (note.contact_id, note.cause.clone())).collect();
    let cause = |n: usize| messaging_core::domain::automation::note::Cause::Event(events[n].id);
    assert_eq!(told, [(ann.id, cause(0)), (ann.id, cause(1)), (ann.id, cause(2))]);
    // Nothing to move, and a contact that does not exist.
    put(store, merge(workspace, &carl, &ann)).await;
    put(store, merge(workspace, &contact(workspace), &ann)).await;
}

/// Runs of an erased contact are not found any more and are deleted a few at a time, with all their rows.
pub async fn runs_of_an_erased_contact_are_deleted(store: &dyn Store) {
    let (one, people) = begin(store, 2).await;
    let workspace = one.workspace_id;
    let runs: Vec<_> = (0..5).map(|_| run(&one, &people[0])).collect();
    put(store, runs.iter().map(|run| put_run(run, Expect::Absent))).await;
    put(store, [put_run(&run(&one, &people[1]), Expect::Absent)]).await;
    put(store, [put_entry(&entry(&runs[0], None, 0), Expect::Absent)]).await;
    put(store, [Write::DeleteContact(workspace, people[0].id)]).await;
    assert!(store.has_left_runs(workspace, people[0].id).await.unwrap());
    assert!(!store.has_left_runs(id(), people[0].id).await.unwrap());
    assert!(!store.has_left_runs(workspace, people[1].id).await.unwrap());
    for shard in 0..4 {
        let due = store.due_runs(workspace, one.id, shard, at(99_999), 9).await.unwrap();
        assert!(due.iter().all(|run| run.record.contact_id == people[1].id));
    }
    assert_eq!(store.run(workspace, one.id, runs[0].id).await.unwrap(), None);
    refuse(store, [put_run(&runs[0], Expect::Revision(1))]).await;
    let mut commits = 0;
    while store.has_left_runs(workspace, people[0].id).await.unwrap() {
        put(
            store,
            [
                Write::Automation(AutomationWrite::DeleteRuns(id(), people[0].id, 2)),
                Write::Automation(AutomationWrite::DeleteRuns(workspace, people[0].id, 2)),
            ],
        )
        .await;
        commits += 1;
    }
    assert_eq!(commits, 3);
    put(store, [Write::Automation(AutomationWrite::DeleteRuns(workspace, people[0].id, 2))]).await;
    let key = RunKey { workspace_id: workspace, automation_id: one.id, run_id: runs[0].id };
    assert_eq!(store.run_steps(key).await.unwrap(), []);
    let counts = store.automation_counts(workspace, one.id).await.unwrap();
    assert_eq!((counts.runs, counts.nodes[0].waiting), ([0, 1, 0, 0, 0], 1));
    assert_eq!(store.runs(workspace, one.id, &RunFilter::default(), first(9)).await.unwrap().items.len(), 1);
}

/// A run is removed with its steps thirty days after its end, and stays counted.
pub async fn ended_runs_are_forgotten(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let (open, old, new) = (run(&one, &people[0]), run(&one, &people[0]), run(&one, &people[0]));
    let (old, new) = (ended(&old, RunStatus::Completed, at(99)), ended(&new, RunStatus::Completed, at(100)));
    put(store, [&open, &old, &new].map(|run| put_run(run, Expect::Absent))).await;
    assert_eq!(store.forget_automation_rows(at(100) + KEPT_AFTER_END, 9).await.unwrap(), 1);
    let left = store.runs(one.workspace_id, one.id, &RunFilter::default(), first(9)).await.unwrap().items;
    assert_eq!(left, [new, open]);
    let key = RunKey { workspace_id: one.workspace_id, automation_id: one.id, run_id: old.id };
    assert_eq!(store.run_steps(key).await.unwrap(), []);
    assert_eq!(store.automation_counts(one.workspace_id, one.id).await.unwrap().runs, [0, 1, 2, 0, 0]);
}

/// Runs of another workspace are not found.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (one, people) = begin(store, 1).await;
    let waiting = run(&one, &people[0]);
    put(store, [put_run(&waiting, Expect::Absent)]).await;
    let shard = shard_of(store, &one, people[0].id).await;
    let elsewhere = id();
    assert_eq!(store.run(elsewhere, one.id, waiting.id).await.unwrap(), None);
    assert_eq!(store.run(one.workspace_id, id(), waiting.id).await.unwrap(), None);
    assert_eq!(store.runs(elsewhere, one.id, &RunFilter::default(), first(9)).await.unwrap().items, []);
    assert_eq!(store.open_runs(elsewhere, one.id, &[people[0].id]).await.unwrap(), []);
    assert_eq!(store.due_runs(elsewhere, one.id, shard, at(99_999), 9).await.unwrap(), []);
    assert_eq!(store.due_dates(elsewhere, one.id, shard, at(99_999), 9).await.unwrap(), []);
    let key = RunKey { workspace_id: elsewhere, automation_id: one.id, run_id: waiting.id };
    assert_eq!(store.run_steps(key).await.unwrap(), []);
}
