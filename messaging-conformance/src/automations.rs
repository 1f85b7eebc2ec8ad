//! Automations, their versions, and the resources they hold.

use messaging_core::changes::{Condition, DocumentKey, Expect, Write};
use messaging_core::domain::automation::note::{EntrySubscription, EventSubscription};
use messaging_core::domain::automation::{Automation, AutomationStatus, AutomationVersion, Design};
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::AutomationId;
use messaging_core::ports::store::{RunFilter, Store, Stored};
use serde_json::json;

use super::automation_samples::{create, entered_by, listening, put_run, shard_of, standing};
use super::campaigns::Named;
use super::sample::{at, automation, contact, id, object, product_event, run};
use super::segments::add_contact;
use super::{all_pages, first, put, refuse};

fn replace(automation: &Automation, revision: u32) -> Write {
    listening(automation, EventSubscription::default(), Vec::new(), Expect::Revision(revision))
}

/// An automation comes back as it was put; a revision is used once, and the id in its workspace too.
pub async fn automations_round_trip(store: &dyn Store) {
    let one = automation(id());
    put(store, [create(&one)]).await;
    let read = async || store.automation(one.workspace_id, one.id).await.unwrap();
    assert_eq!(read().await, Some(Stored { record: one.clone(), revision: 1 }));
    refuse(store, [create(&one)]).await;
    let paused = Automation { status: AutomationStatus::Paused, name: "Other".to_owned(), ..one.clone() };
    put(store, [replace(&paused, 1)]).await;
    assert_eq!(read().await, Some(Stored { record: paused.clone(), revision: 2 }));
    refuse(store, [replace(&one, 1)]).await;
    put(store, [Write::DeleteAutomation(one.workspace_id, one.id)]).await;
    assert_eq!(read().await, None);
    refuse(store, [replace(&paused, 2)]).await;
    put(store, [Write::DeleteAutomation(one.workspace_id, one.id)]).await;
}

/// Pages hold every automation once, the newest first, also when others are created meanwhile.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for n in 0..7 {
        let status = if n % 2 == 0 { AutomationStatus::Draft } else { AutomationStatus::Active };
        let one = Automation { status, ..automation(workspace) };
        put(store, [create(&one), create(&automation(id()))]).await;
        expected.insert(0, one);
    }
    for status in [None, Some(AutomationStatus::Draft), Some(AutomationStatus::Paused)] {
        let all = all_pages(
            2,
            async |page| store.automations(workspace, status, page).await,
            async || put(store, [create(&automation(workspace))]).await,
        )
        .await;
        let wanted: Vec<_> = expected.iter().filter(|one| status.is_none_or(|status| one.status == status)).collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), wanted);
    }
}

/// A version never changes; it is kept while it is the present one, and while a run names it.
pub async fn versions_are_kept_while_runs_name_them(store: &dyn Store) {
    let one = automation(id());
    let workspace = one.workspace_id;
    let ann = contact(workspace);
    put(store, [create(&one), add_contact(&ann), put_run(&run(&one, &ann), Expect::Absent)]).await;
    let mut latest = one.clone();
    for version in 2..=4 {
        let mut design = latest.design.clone();
        design.trigger = object(&serde_json::json!({"kind": "manual", "config": {}, "version": version}));
        latest = Automation { version, design, ..latest };
        put(store, [replace(&latest, version - 1)]).await;
    }
    let version = async |version| store.automation_version(workspace, one.id, version).await.unwrap();
    let whole = |of: &Automation| AutomationVersion {
        workspace_id: workspace,
        automation_id: of.id,
        version: of.version,
        design: of.design.clone(),
    };
    assert_eq!(version(1).await, Some(whole(&one)));
    assert_eq!(version(4).await, Some(whole(&latest)));
    assert!(version(2).await.is_some());
    assert_eq!(version(5).await, None);
    assert_eq!(store.forget_automation_rows(at(0), 10).await.unwrap(), 2);
    assert_eq!((version(2).await, version(3).await), (None, None));
    assert_eq!((version(1).await, version(4).await), (Some(whole(&one)), Some(whole(&latest))));
    assert_eq!(store.automation_version(id(), one.id, 1).await.unwrap(), None);
}

/// A resource that an active automation needs cannot be removed, and an automation cannot need a removed one.
pub async fn what_active_automations_need_is_held(store: &dyn Store) {
    let workspace = id();
    let named = Named::put(store, workspace).await;
    let needs =
        [Reference::List(named.list.id), Reference::Segment(named.segment.id), Reference::Template(named.template.id)];
    let holding =
        |automation: &Automation, expect| listening(automation, EventSubscription::default(), needs.to_vec(), expect);
    let draft = Automation { status: AutomationStatus::Draft, ..automation(workspace) };
    let active = Automation { status: AutomationStatus::Active, ..draft.clone() };
    let unused = needs.map(|what| Write::Expect(Condition::Unused(workspace, what)));
    put(store, [holding(&draft, Expect::Absent)].into_iter().chain(unused.clone())).await;
    put(store, [holding(&active, Expect::Revision(1))]).await;
    for (what, expectation) in needs.into_iter().zip(&unused) {
        assert_eq!(store.automations_holding(workspace, what, 9).await.unwrap(), [active.id]);
        assert_eq!(store.campaigns_holding(workspace, what, 9).await.unwrap(), []);
        assert_eq!(store.automations_holding(id(), what, 9).await.unwrap(), []);
        refuse(store, [expectation.clone()]).await;
    }
    put(store, [Write::Expect(Condition::Unused(id(), needs[0]))]).await;
    let paused = Automation { status: AutomationStatus::Paused, ..draft.clone() };
    put(store, [holding(&paused, Expect::Revision(2))].into_iter().chain(unused.clone())).await;
    put(store, [Write::Delete(DocumentKey::List(workspace, named.list.id))]).await;
    refuse(store, [holding(&active, Expect::Revision(3))]).await;
    assert_eq!(store.automations_holding(workspace, needs[1], 9).await.unwrap(), []);
    // A removed automation needs nothing.
    let other = Automation { id: id(), ..active };
    let needs = vec![Reference::Template(named.template.id)];
    put(store, [listening(&other, EventSubscription::default(), needs, Expect::Absent)]).await;
    refuse(store, [unused[2].clone()]).await;
    put(store, [Write::DeleteAutomation(workspace, other.id), unused[2].clone()]).await;
    assert_eq!(named.template.channel, Channel::Email);
}

/// A resource that a version with open runs needs cannot be removed either, whatever the automation needs by now.
pub async fn what_open_runs_need_is_held(store: &dyn Store) {
    let workspace = id();
    let named = Named::put(store, workspace).await;
    let template = Reference::Template(named.template.id);
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {"template_id": named.template.id}}]});
    let old = automation(workspace);
    let design = Design { graph: graph.as_object().unwrap().clone(), ..old.design.clone() };
    let old = Automation { design, ..old };
    let ann = contact(workspace);
    let begun = standing(&run(&old, &ann), "s");
    put(store, [create(&old), add_contact(&ann), put_run(&begun, Expect::Absent)]).await;
    let newer = Automation { version: 2, design: automation(workspace).design, ..old.clone() };
    put(store, [replace(&newer, 1)]).await;
    let unused = || [Write::Expect(Condition::Unused(workspace, template))];
    for status in [AutomationStatus::Paused, AutomationStatus::Active] {
        assert_eq!(store.automations_holding(workspace, template, 9).await.unwrap(), [old.id]);
        refuse(store, unused()).await;
        let revision = store.automation(workspace, old.id).await.unwrap().unwrap().revision;
        put(store, [replace(&Automation { status, ..newer.clone() }, revision)]).await;
    }
    let stored = store.run(workspace, old.id, begun.id).await.unwrap().unwrap();
    let (ended, _) = stored.record.exit("manual", at(99)).unwrap();
    put(store, [put_run(&ended, Expect::Revision(stored.revision))]).await;
    put(store, unused()).await;
    assert_eq!(store.automations_holding(workspace, template, 9).await.unwrap(), []);
}

/// Automations that have begun are found in every workspace, and only they.
pub async fn begun_automations_are_found_in_every_workspace(store: &dyn Store) {
    let mut begun = Vec::new();
    for _ in 0..2 {
        let workspace = id();
        for status in AutomationStatus::ALL {
            let one = Automation { status, ..automation(workspace) };
            put(store, [create(&one)]).await;
            if status != AutomationStatus::Draft {
                begun.push(one);
            }
        }
    }
    let found = async || {
        let page = async |page| store.begun_automations(page).await;
        let mut found: Vec<AutomationId> =
            all_pages(2, page, async || ()).await.into_iter().map(|automation| automation.id).collect();
        found.sort();
        found
    };
    let mut ids: Vec<_> = begun.iter().map(|one| one.id).collect();
    ids.sort();
    assert_eq!(found().await, ids);
    put(store, [Write::DeleteAutomation(begun[0].workspace_id, begun[0].id)]).await;
    ids.retain(|id| *id != begun[0].id);
    assert_eq!(found().await, ids);
}

/// A commit may expect an automation to be in a state.
pub async fn the_state_of_an_automation_is_expected(store: &dyn Store) {
    let one = automation(id());
    let expect = |status| [Write::Expect(Condition::Automation(one.workspace_id, one.id, status))];
    refuse(store, expect(AutomationStatus::Active)).await;
    put(store, [create(&one)]).await;
    put(store, expect(AutomationStatus::Active)).await;
    refuse(store, expect(AutomationStatus::Paused)).await;
    refuse(store, [Write::Expect(Condition::Automation(id(), one.id, one.status))]).await;
    put(store, [Write::DeleteAutomation(one.workspace_id, one.id)]).await;
    refuse(store, expect(AutomationStatus::Active)).await;
}

/// A removed automation is not found any more, its rows are removed a few at a time, and it gets no more notes.
pub async fn a_removed_automation_lets_its_rows_go(store: &dyn Store) {
    let (one, other) = (automation(id()), automation(id()));
    let workspace = one.workspace_id;
    let other = Automation { workspace_id: workspace, ..other };
    let ann = contact(workspace);
    let entry = || EntrySubscription::Event("cart_updated".to_owned());
    put(store, [entered_by(&one, entry()), entered_by(&other, entry()), add_contact(&ann)]).await;
    let event = || Write::AppendProductEvents(vec![product_event(&ann, "cart_updated")]);
    let mut runs = Vec::new();
    for of in [&one, &other] {
        for n in 0..5 {
            let run = standing(&run(of, &ann), &format!("n{n}"));
            put(store, [put_run(&run, Expect::Absent), event()]).await;
            runs.push(run);
        }
    }
    put(store, [Write::DeleteAutomation(workspace, one.id), event()]).await;
    let shard = shard_of(store, &other, ann.id).await;
    let notes = async |of: &Automation| store.automation_notes(workspace, of.id, shard, 99).await.unwrap().len();
    assert_eq!((notes(&one).await, notes(&other).await), (0, 11));
    assert_eq!(store.run(workspace, one.id, runs[0].id).await.unwrap(), None);
    assert_eq!(store.due_runs(workspace, one.id, shard, at(99_999), 99).await.unwrap(), []);
    assert_eq!(store.runs(workspace, one.id, &RunFilter::default(), first(9)).await.unwrap().items, []);
    refuse(store, [put_run(&runs[0], Expect::Revision(1))]).await;
    let mut forgotten = 0;
    loop {
        let gone = store.forget_automation_rows(at(0), 3).await.unwrap();
        assert!(gone <= 3);
        forgotten += gone;
        if gone == 0 {
            break;
        }
    }
    // Ten notes, five runs with inputs and steps each, a version, the automation.
    assert_eq!(forgotten, 10 + 3 * 5 + 1 + 1);
    assert_eq!(notes(&other).await, 11);
    assert_eq!(store.runs(workspace, other.id, &RunFilter::default(), first(9)).await.unwrap().items.len(), 5);
}

/// Automations of another workspace are not found.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let one = automation(id());
    put(store, [create(&one)]).await;
    let elsewhere = id();
    assert_eq!(store.automation(elsewhere, one.id).await.unwrap(), None);
    assert_eq!(store.automations(elsewhere, None, first(9)).await.unwrap().items, []);
    assert_eq!(store.automation_version(elsewhere, one.id, 1).await.unwrap(), None);
    refuse(store, [replace(&Automation { workspace_id: elsewhere, ..one.clone() }, 1)]).await;
    put(store, [Write::DeleteAutomation(elsewhere, one.id)]).await;
    assert!(store.automation(one.workspace_id, one.id).await.unwrap().is_some());
}
