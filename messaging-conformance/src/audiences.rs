//! Audiences of campaigns: finding and storing them.

mod asked;
mod worlds;

use std::collections::HashSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use messaging_core::changes::{AudienceRow, DocumentKey, Expect, Write};
use messaging_core::domain::audience::contact::{Consent, Contact};
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{
    AudienceCounts, AudienceSet, AudienceVerdict, address_digest, number_at, place_of,
};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::segment::{Segment, SegmentKind};
use messaging_core::ids::{CampaignId, ListId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};
use messaging_core::time::Timestamp;
use serde_json::json;

use self::asked::{contact_verdicts, pieces, preview, verdicts};
use self::worlds::verdicts_are_those_of_the_rules;
use super::sample::{at, campaign, contact, contact_list, id, object, segment, suppression};
use super::segments::keeping::calculate;
use super::segments::{add_contact, query as filter};
use super::{put, refuse};

/// Number of random worlds that are tested, unless the environment says otherwise.
const WORLDS: u64 = 6;
/// Variable with the number of worlds.
const WORLDS_VARIABLE: &str = "AUDIENCE_WORLDS";

/// An audience of nobody.
fn nobody(channel: Channel) -> AudienceQuery {
    AudienceQuery {
        channel,
        viber: ViberService::Business,
        lists: Vec::new(),
        segments: Vec::new(),
        filters: Vec::new(),
        excluded: Vec::new(),
        now: at(0),
        zone: TimeZone::UTC,
        wants_zones: false,
    }
}

fn join(workspace: WorkspaceId, list: ListId, contact: &Contact) -> Write {
    Write::JoinList(workspace, list, contact.id, at(0))
}

/// Each verdict is found, for contacts named by lists, segments and filters.
pub async fn each_verdict_is_found(store: &dyn Store) {
    use AudienceVerdict::{Excluded, NoAddress, NoConsent, Recipient, Suppressed};

    let workspace = id();
    let [news, sales, unwanted] = [(); 3].map(|()| contact_list(workspace));
    let [ann, bob, carl, dora, emil] = [(); 5].map(|()| contact(workspace));
    let bob = Contact { email: None, ..bob };
    let carl = Contact { consent: Consent { marketing_email: None, sms: Some(true) }, ..carl };
    let address = dora.email.clone().expect("an address");
    let lists = [&news, &sales, &unwanted].map(|list| Write::put(list.clone(), Expect::Absent));
    put(store, lists).await;
    put(store, [&ann, &bob, &carl, &dora, &emil].map(add_contact)).await;
    put(
        store,
        [
            join(workspace, news.id, &ann),
            join(workspace, sales.id, &ann),
            join(workspace, news.id, &bob),
            join(workspace, sales.id, &carl),
            join(workspace, sales.id, &dora),
            join(workspace, news.id, &emil),
            join(workspace, unwanted.id, &emil),
            Write::PutSuppression(suppression(workspace, Channel::Email, &address), Expect::Absent),
            Write::PutSuppression(suppression(workspace, Channel::Sms, &address), Expect::Absent),
        ],
    )
    .await;
    let query = AudienceQuery {
        lists: vec![news.id, sales.id],
        excluded: vec![unwanted.id],
        wants_zones: true,
        ..nobody(Channel::Email)
    };
    let expected =
        [(ann.id, Recipient), (bob.id, NoAddress), (carl.id, NoConsent), (dora.id, Suppressed), (emil.id, Excluded)];
    assert_eq!(contact_verdicts(store, workspace, &query).await, expected);
    let counts =
        AudienceCounts { recipients: 1, excluded: 1, no_address: 1, suppressed: 1, no_consent: 1, duplicates: 0 };
    let counted = AudiencePreview { counts, exact: true, knows_duplicates: true };
    assert_eq!(preview(store, workspace, &query).await, counted);
    let zones = pieces(store, workspace, &query).await.remove(0).zones;
    assert_eq!(
        zones.iter().map(|(zone, bits)| (zone.as_str(), bits.len())).collect::<Vec<_>>(),
        [("Europe/Berlin", 5)]
    );

    // The phone number is another address, with a consent of its own.
    let by_phone = AudienceQuery { channel: Channel::Viber, ..query.clone() };
    let expected = [NoConsent, NoConsent, Recipient, NoConsent, Excluded];
    assert_eq!(
        contact_verdicts(store, workspace, &by_phone).await.iter().map(|(_, verdict)| *verdict).collect::<Vec<_>>(),
        expected
    );

    // A static segment and a filter name contacts as well; a removed one names nobody.
    let kept = Segment { kind: SegmentKind::Static, ..segment(workspace) };
    put(store, [Write::PutSegment(Box::new(kept.clone()), Expect::Absent)]).await;
    let consenting = filter(&json!({"type": "consent", "channel": "sms", "value": true}));
    calculate(store, workspace, kept.id, &consenting).await;
    let by_segment = AudienceQuery { segments: vec![kept.id], ..nobody(Channel::Sms) };
    assert_eq!(contact_verdicts(store, workspace, &by_segment).await, [(carl.id, Recipient)]);
    let by_filter = AudienceQuery { filters: vec![consenting.filter], ..nobody(Channel::Sms) };
    assert_eq!(contact_verdicts(store, workspace, &by_filter).await, [(carl.id, Recipient)]);
    put(store, [Write::DeleteSegment(workspace, kept.id), Write::Delete(DocumentKey::List(workspace, sales.id))]).await;
    assert_eq!(contact_verdicts(store, workspace, &by_segment).await, []);
    assert_eq!(
        contact_verdicts(store, workspace, &query).await,
        [(ann.id, Recipient), (bob.id, NoAddress), (emil.id, Excluded)]
    );
    put(store, [Write::Delete(DocumentKey::List(workspace, unwanted.id)), Write::DeleteContact(workspace, ann.id)])
        .await;
    assert_eq!(contact_verdicts(store, workspace, &query).await, [(bob.id, NoAddress), (emil.id, Recipient)]);
}

/// A bot on Viber sends to the ids that Viber gave its users, which several contacts may share; a business sends to
/// phone numbers.
pub async fn a_bot_on_viber_sends_to_its_users(store: &dyn Store) {
    use AudienceVerdict::{Duplicate, NoAddress, Recipient, Suppressed};

    let workspace = id();
    let list = contact_list(workspace);
    let users = [Some("user="), None, Some("user="), Some("+37120000009"), Some("a b")];
    let contacts = users.map(|user| {
        let attributes = object(&json!({ "viber_id": user })).into();
        let consent = Consent { marketing_email: None, sms: Some(true) };
        Contact { phone: None, attributes, consent, ..contact(workspace) }
    });
    put(store, [Write::put(list.clone(), Expect::Absent)]).await;
    put(store, contacts.iter().map(add_contact)).await;
    put(store, contacts.iter().map(|contact| join(workspace, list.id, contact))).await;
    let by_bot = AudienceQuery { lists: vec![list.id], viber: ViberService::Bot, ..nobody(Channel::Viber) };
    let verdicts = async |query: &AudienceQuery| {
        let verdicts = contact_verdicts(store, workspace, query).await;
        verdicts.into_iter().map(|(_, verdict)| verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&by_bot).await, [Recipient, NoAddress, Duplicate, NoAddress, NoAddress]);
    let numbers: Vec<u64> = self::verdicts(store, workspace, &by_bot).await.iter().map(|(number, _)| *number).collect();
    let read = store.campaign_recipients(workspace, id(), Channel::Viber, ViberService::Bot, &numbers[..2]).await;
    let read: Vec<_> = read.unwrap().into_iter().map(|one| one.address).collect();
    assert_eq!(read, [Some("user=".to_owned()), None]);
    put(store, [Write::PutSuppression(suppression(workspace, Channel::Viber, "user="), Expect::Absent)]).await;
    assert_eq!(verdicts(&by_bot).await, [Suppressed, NoAddress, Suppressed, NoAddress, NoAddress]);
    let by_number = AudienceQuery { viber: ViberService::Business, ..by_bot };
    assert_eq!(verdicts(&by_number).await, [NoAddress; 5]);
}

/// Verdicts in small random worlds equal those of the rules, contact by contact; a preview counts the same.
pub async fn verdicts_are_those_of_filters_and_rules(store: &dyn Store) {
    let wanted = std::env::var(WORLDS_VARIABLE).unwrap_or_default();
    for seed in 0..wanted.parse().unwrap_or(WORLDS) {
        verdicts_are_those_of_the_rules(store, seed).await;
    }
}

/// Of contacts with one address the first gets the campaign; a contact that has another free address gets it too.
pub async fn the_first_of_those_with_an_address_gets_it(store: &dyn Store) {
    use AudienceVerdict::{Duplicate, Recipient, Suppressed};

    let workspace = id();
    let list = contact_list(workspace);
    put(store, [Write::put(list.clone(), Expect::Absent)]).await;
    let with =
        |tokens: &[&str]| Contact { attributes: object(&json!({"push_token": tokens})).into(), ..contact(workspace) };
    let contacts = [
        with(&["gone"]),
        with(&["a", "gone"]),
        with(&["b", "a"]),
        with(&["a", "b"]),
        with(&["a", "gone"]),
        with(&["c", "b"]),
    ];
    put(store, contacts.iter().map(add_contact)).await;
    put(store, contacts.iter().map(|contact| join(workspace, list.id, contact))).await;
    put(store, [Write::PutSuppression(suppression(workspace, Channel::Push, "gone"), Expect::Absent)]).await;
    let query = AudienceQuery { lists: vec![list.id], ..nobody(Channel::Push) };
    let expected = [Suppressed, Recipient, Recipient, Duplicate, Duplicate, Recipient];
    let found: Vec<_> = verdicts(store, workspace, &query).await.into_iter().map(|(_, verdict)| verdict).collect();
    assert_eq!(found, expected);
    let counts = AudienceCounts { recipients: 3, suppressed: 1, duplicates: 2, ..AudienceCounts::default() };
    let counted = AudiencePreview { counts, exact: true, knows_duplicates: true };
    assert_eq!(preview(store, workspace, &query).await, counted);
    let piece = pieces(store, workspace, &query).await.remove(0);
    let digest = |token| address_digest(workspace, Channel::Push, token);
    assert_eq!(piece.addresses[1].1, [digest("b"), digest("a")], "the suppressed one is left out, the order is kept");

    // Each recipient gets it at an address of its own.
    let campaign = stored_campaign(store, workspace).await;
    let mut found = store.audience_piece(workspace, &Arc::new(query), None).await.unwrap();
    let claims = found.facts.find_duplicates(&found.addresses, &mut HashSet::new());
    let judged = found.facts.judge();
    let recipients = judged.set(Recipient);
    let numbers: Vec<u64> = recipients.iter().map(|place| number_at(found.piece, place)).collect();
    let leave_out =
        |piece, entries: &[(u16, u64)]| Write::LeaveOutAddresses(workspace, campaign, piece, entries.to_vec());
    let addresses = async || {
        let read = store
            .campaign_recipients(workspace, campaign, Channel::Push, ViberService::Business, &numbers)
            .await
            .unwrap();
        read.into_iter().map(|one| one.address.unwrap()).collect::<Vec<_>>()
    };
    put(store, [leave_out(found.piece + 1, &[(recipients.iter().next().unwrap(), digest("a"))])]).await;
    assert_eq!(addresses().await, ["a", "b", "c"], "another piece");
    put(store, [leave_out(found.piece, &claims.left_out)]).await;
    assert_eq!((claims.taken.len(), addresses().await), (3, vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
    // The second and the third contact have the address of the one before in first place.
    let swapped = [(&contacts[2], ["a", "b"]), (&contacts[5], ["b", "c"])].map(|(contact, tokens)| {
        let attributes = object(&json!({"push_token": tokens})).into();
        Write::put_contact(Contact { attributes, ..contact.clone() }, Expect::Revision(1))
    });
    put(store, swapped).await;
    assert_eq!(addresses().await, ["a", "b", "c"]);
    let left_in = async |of: &Contact, tokens: [&str; 3]| {
        let tokens = tokens.map(ToOwned::to_owned).to_vec();
        store.addresses_left_in(workspace, campaign, Channel::Push, of.id, tokens).await.unwrap()
    };
    assert_eq!(left_in(&contacts[2], ["a", "b", "new"]).await, ["b", "new"]);
    assert_eq!(left_in(&contacts[1], ["a", "b", "new"]).await, ["a", "b", "new"], "those of another contact");
    put(store, [Write::ForgetLeftOut(workspace, id()), Write::ForgetLeftOut(id(), campaign)]).await;
    assert_eq!(addresses().await, ["a", "b", "c"]);
    put(store, [leave_out(found.piece, &[])]).await;
    assert_eq!(addresses().await, ["a", "a", "b"]);
    put(store, [leave_out(found.piece, &claims.left_out), Write::ForgetLeftOut(workspace, campaign)]).await;
    assert_eq!(addresses().await, ["a", "a", "b"]);
    refuse(store, [Write::LeaveOutAddresses(id(), campaign, 0, vec![(1, 1)])]).await;
}

/// Nothing of another workspace is found: neither by its lists and segments nor by its pieces, campaigns and numbers.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let [home, away]: [WorkspaceId; 2] = [id(), id()];
    let [ann, bob] = [contact(home), contact(away)];
    let (list, theirs) = (contact_list(home), contact_list(away));
    let static_of = |workspace| Segment { kind: SegmentKind::Static, ..segment(workspace) };
    let (own, kept) = (static_of(home), static_of(away));
    put(store, [&list, &theirs].map(|list| Write::put(list.clone(), Expect::Absent))).await;
    put(store, [&own, &kept].map(|segment| Write::PutSegment(Box::new(segment.clone()), Expect::Absent))).await;
    put(store, [&ann, &bob].map(add_contact)).await;
    put(store, [join(home, list.id, &ann), join(away, theirs.id, &bob)]).await;
    let everybody = filter(&json!({}));
    calculate(store, home, own.id, &everybody).await;
    calculate(store, away, kept.id, &everybody).await;
    let of_all = |query| AudienceQuery { lists: vec![list.id, theirs.id], segments: vec![own.id, kept.id], ..query };
    let mut queries = vec![of_all(nobody(Channel::Email))];
    queries.push(AudienceQuery { filters: vec![everybody.filter], ..of_all(nobody(Channel::Email)) });
    for query in queries {
        assert_eq!(contact_verdicts(store, home, &query).await, [(ann.id, AudienceVerdict::Recipient)]);
        assert_eq!(preview(store, home, &query).await.counts.matched(), 1);
        let foreign = pieces(store, away, &query).await.remove(0).piece;
        for piece in [foreign, 0, foreign + 1, u64::MAX, u64::MAX >> 16, u64::MAX >> 17] {
            let found = store.audience_piece(home, &Arc::new(query.clone()), Some(piece)).await.unwrap();
            assert!(found.facts.matched.is_empty() && found.addresses.is_empty() && found.zones.is_empty(), "{piece}");
        }
        let (number, _) = verdicts(store, away, &query).await[0];
        assert_eq!(
            store.campaign_recipients(home, id(), Channel::Email, ViberService::Bot, &[number]).await.unwrap(),
            []
        );
        // Excluding a list of another workspace excludes nobody.
        let excluded = AudienceQuery { excluded: vec![theirs.id], ..query };
        assert_eq!(contact_verdicts(store, home, &excluded).await, [(ann.id, AudienceVerdict::Recipient)]);
    }
    // A workspace without contacts.
    let nowhere = id();
    assert_eq!(verdicts(store, nowhere, &of_all(nobody(Channel::Email))).await, []);
    assert_eq!(preview(store, nowhere, &of_all(nobody(Channel::Email))).await.counts, AudienceCounts::default());

    let (ours, campaign_away) = (stored_campaign(store, home).await, stored_campaign(store, away).await);
    let row = row(home, campaign_away, AudienceSet::TestGroup, 7, [1]);
    refuse(store, [Write::PutAudience(Box::new(row))]).await;
    refuse(store, [Write::TakeAddresses(home, campaign_away, vec![1])]).await;
    put(store, [Write::TakeAddresses(home, ours, vec![1, 2]), Write::ForgetAddresses(away, ours)]).await;
    assert!(store.taken_addresses(away, ours, vec![1]).await.unwrap().is_empty());
    assert_eq!(store.taken_addresses(home, ours, vec![1]).await.unwrap(), [1]);
}

async fn stored_campaign(store: &dyn Store, workspace: WorkspaceId) -> CampaignId {
    let campaign = campaign(workspace);
    let id = campaign.id;
    put(store, [Write::put(Box::new(campaign), Expect::Absent)]).await;
    id
}

fn row(
    workspace_id: WorkspaceId,
    campaign_id: CampaignId,
    set: AudienceSet,
    piece: u64,
    places: impl IntoIterator<Item = u16>,
) -> AudienceRow {
    AudienceRow { workspace_id, campaign_id, piece, set, bits: places.into_iter().collect::<Bits>() }
}

/// Stored sets come back by kind and in the order of pieces; a later one replaces an earlier one.
pub async fn sets_round_trip(store: &dyn Store) {
    let workspace = id();
    let [campaign, other] = [stored_campaign(store, workspace).await, stored_campaign(store, workspace).await];
    let sets = [
        AudienceSet::Left(AudienceVerdict::Excluded),
        AudienceSet::Left(AudienceVerdict::Duplicate),
        AudienceSet::Recipients(Timestamp::from_millis(-5)),
        AudienceSet::Recipients(at(0)),
        AudienceSet::Recipients(at(1)),
        AudienceSet::TestGroup,
    ];
    let mut rows = Vec::new();
    for (n, set) in (1_u16..).zip(sets) {
        for piece in [1 << 24, (1 << 24) + 1, (1 << 24) + 900] {
            rows.push(row(workspace, campaign, set, piece, (0..n * 1000).step_by(usize::from(n))));
        }
        rows.push(row(workspace, other, set, 1 << 24, [n]));
    }
    put(store, rows.iter().map(|row| Write::PutAudience(Box::new(row.clone())))).await;
    let kept = async |set, from, limit| store.audience_rows(workspace, campaign, set, from, limit).await.unwrap();
    for set in sets {
        let expected: Vec<_> =
            rows.iter().filter(|row| row.set == set && row.campaign_id == campaign).cloned().collect();
        assert_eq!(kept(set, 0, 10).await, expected);
        assert_eq!(kept(set, 0, 2).await, expected[..2]);
        assert_eq!(kept(set, (1 << 24) + 1, 1).await, expected[1..2]);
        assert_eq!(kept(set, (1 << 24) + 2, 10).await, expected[2..]);
        assert_eq!(kept(set, u64::MAX, 10).await, []);
        assert_eq!(store.audience_rows(id(), campaign, set, 0, 10).await.unwrap(), []);
    }
    assert_eq!(kept(AudienceSet::Left(AudienceVerdict::NoConsent), 0, 10).await, []);
    assert_eq!(kept(AudienceSet::Recipients(at(2)), 0, 10).await, []);
    let first = row(workspace, campaign, sets[0], 1 << 24, [65_535]);
    let emptied = row(workspace, campaign, sets[0], (1 << 24) + 1, []);
    put(store, [Write::PutAudience(Box::new(first.clone())), Write::PutAudience(Box::new(emptied))]).await;
    assert_eq!(kept(sets[0], 0, 10).await, [first, rows[2].clone()]);
}

/// All sets of a contact are found, and those of its neighbors are not.
pub async fn the_sets_of_a_contact_are_found(store: &dyn Store) {
    let workspace = id();
    let [ann, bob] = [contact(workspace), contact(workspace)];
    put(store, [&ann, &bob].map(add_contact)).await;
    let everybody = AudienceQuery { filters: vec![filter(&json!({})).filter], ..nobody(Channel::Email) };
    let numbers: Vec<u64> = verdicts(store, workspace, &everybody).await.iter().map(|(number, _)| *number).collect();
    let ((piece, of_ann), (_, of_bob)) = (place_of(numbers[0]), place_of(numbers[1]));
    let campaign = stored_campaign(store, workspace).await;
    let rows = [
        row(workspace, campaign, AudienceSet::Left(AudienceVerdict::Suppressed), piece, [of_bob]),
        row(workspace, campaign, AudienceSet::Recipients(at(1)), piece, [of_bob]),
        row(workspace, campaign, AudienceSet::Recipients(at(2)), piece, [of_ann]),
        row(workspace, campaign, AudienceSet::Recipients(at(2)), piece + 1, [of_bob]),
        row(workspace, campaign, AudienceSet::TestGroup, piece, [of_ann, of_bob]),
    ];
    put(store, rows.map(|row| Write::PutAudience(Box::new(row)))).await;
    let sets = async |contact| store.audience_sets_of(workspace, campaign, contact).await.unwrap();
    assert_eq!(sets(ann.id).await, [AudienceSet::Recipients(at(2)), AudienceSet::TestGroup]);
    assert_eq!(
        sets(bob.id).await,
        [AudienceSet::Left(AudienceVerdict::Suppressed), AudienceSet::Recipients(at(1)), AudienceSet::TestGroup]
    );
    assert_eq!(sets(id()).await, []);
    assert_eq!(store.audience_sets_of(id(), campaign, ann.id).await.unwrap(), []);
}

/// Addresses that a campaign took stay taken until they are removed.
pub async fn taken_addresses_are_found(store: &dyn Store) {
    let workspace = id();
    let [campaign, other] = [stored_campaign(store, workspace).await, stored_campaign(store, workspace).await];
    put(store, [Write::TakeAddresses(workspace, campaign, vec![9, 3, u64::MAX, 3])]).await;
    put(
        store,
        [Write::TakeAddresses(workspace, campaign, vec![]), Write::TakeAddresses(workspace, campaign, vec![4, 0])],
    )
    .await;
    put(store, [Write::TakeAddresses(workspace, other, vec![5])]).await;
    let taken = async |digests: &[u64]| {
        let mut taken = store.taken_addresses(workspace, campaign, digests.to_vec()).await.unwrap();
        taken.sort_unstable();
        taken
    };
    assert_eq!(taken(&[8, 9, 5, 4, 3, u64::MAX, 1, 0, 0]).await, [0, 3, 4, 9, u64::MAX]);
    assert!(taken(&[1, 2, 5]).await.is_empty());
    assert!(taken(&[]).await.is_empty());
    put(store, [Write::ForgetAddresses(workspace, campaign), Write::ForgetAddresses(workspace, id())]).await;
    assert!(taken(&[9, 3, 4, 0]).await.is_empty());
    assert_eq!(store.taken_addresses(workspace, other, vec![5]).await.unwrap(), [5]);
}

/// Contacts are read by number, with the address of the channel.
pub async fn recipients_are_read_by_number(store: &dyn Store) {
    let workspace = id();
    let attributes = object(&json!({"push_token": ["one", "two"], "telegram_chat_id": 5}));
    let [ann, bob, carl] = [(); 3].map(|()| contact(workspace));
    let ann = Contact { attributes: attributes.into(), timezone: None, ..ann };
    let carl = Contact { email: None, ..carl };
    put(store, [&ann, &bob, &carl].map(add_contact)).await;
    let everybody = AudienceQuery { filters: vec![filter(&json!({})).filter], ..nobody(Channel::Email) };
    let numbers: Vec<u64> = verdicts(store, workspace, &everybody).await.iter().map(|(number, _)| *number).collect();
    let [of_ann, of_bob, of_carl] = numbers[..] else { panic!("three contacts") };
    let read = async |channel, numbers: &[u64]| {
        let read = store.campaign_recipients(workspace, id(), channel, ViberService::Business, numbers).await.unwrap();
        read.into_iter().map(|one| (one.number, one.contact_id, one.address, one.timezone)).collect::<Vec<_>>()
    };
    assert_eq!(
        read(Channel::Email, &[of_carl, of_ann, of_ann + 5, of_ann]).await,
        [(of_ann, ann.id, ann.email.clone(), None), (of_carl, carl.id, None, carl.timezone.clone())]
    );
    put(store, [Write::DeleteContact(workspace, bob.id)]).await;
    assert_eq!(read(Channel::Sms, &[of_bob, of_carl]).await, [(of_carl, carl.id, carl.phone.clone(), carl.timezone)]);
    let address = async |channel| read(channel, &[of_ann]).await.remove(0).2.expect("an address");
    assert_eq!([address(Channel::Push).await, address(Channel::Telegram).await], ["one", "5"]);
    // Of several addresses, one that is not suppressed is chosen, if there is one.
    put(store, [Write::PutSuppression(suppression(workspace, Channel::Push, "one"), Expect::Absent)]).await;
    assert_eq!(address(Channel::Push).await, "two");
    put(store, [Write::PutSuppression(suppression(workspace, Channel::Push, "two"), Expect::Absent)]).await;
    assert_eq!(address(Channel::Push).await, "one");
}

/// The audience of a removed campaign is removed with its rows.
pub async fn a_removed_campaign_lets_its_audience_go(store: &dyn Store) {
    let workspace = id();
    let campaign = stored_campaign(store, workspace).await;
    let rows = (0..5).map(|piece| row(workspace, campaign, AudienceSet::TestGroup, piece, [1]));
    put(store, rows.map(|row| Write::PutAudience(Box::new(row)))).await;
    put(store, [Write::TakeAddresses(workspace, campaign, vec![1])]).await;
    put(store, [Write::Delete(DocumentKey::Campaign(workspace, campaign))]).await;
    assert_eq!(store.audience_rows(workspace, campaign, AudienceSet::TestGroup, 0, 9).await.unwrap(), []);
    assert!(store.taken_addresses(workspace, campaign, vec![1]).await.unwrap().is_empty());
    let mut forgotten = 0;
    loop {
        let gone = store.forget_campaign_rows(at(0), 2).await.unwrap();
        assert!(gone <= 2, "{gone}");
        forgotten += gone;
        if gone == 0 {
            break;
        }
    }
    assert_eq!(forgotten, 7, "five sets, the addresses, the campaign");
}
