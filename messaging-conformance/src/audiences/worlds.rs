//! Random test of audiences: the verdicts of the store on the contacts of random workspaces are compared with the
//! verdicts of filters and rules in memory.

use std::collections::HashSet;

use messaging_core::domain::campaign::audience::{
    AudienceCounts, AudienceVerdict, ContactFacts, agrees, claim, shares_addresses, verdict,
};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::domain::segment::StoredFilter;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::ContactId;
use messaging_core::ports::store::Store;
use messaging_core::ports::store::audiences::{AudiencePreview, AudienceQuery};

use super::super::segments::kept::{StoredFacts, World};
use super::super::segments::random;
use super::asked::{contact_verdicts, pieces, preview};

/// Number of audiences that are compared in each workspace.
const AUDIENCES: usize = 12;

/// Compares the verdicts on random audiences, in a random workspace that `seed` determines.
pub(super) async fn verdicts_are_those_of_the_rules(store: &dyn Store, seed: u64) {
    let mut world = World::begin(store, seed).await;
    for _ in 0..20 {
        world.happen().await;
    }
    // Oldest first, because the older of two contacts with one address is the recipient.
    let mut everybody = world.stored_facts().await;
    everybody.reverse();
    for number in 0..AUDIENCES {
        let (query, filters) = random_audience(&mut world);
        let place = format!("seed {seed}, audience {number}: {query:?}, filters {filters:?}");
        let expected = expected_verdicts(&world, &query, &everybody).await;
        let workspace = world.workspace;
        assert_eq!(contact_verdicts(store, workspace, &query).await, expected, "{place}");
        let counted = AudiencePreview { counts: counts(&expected), exact: true, knows_duplicates: true };
        assert_eq!(preview(store, workspace, &query).await, counted, "{place}");
        let zoned = pieces(store, workspace, &query)
            .await
            .iter()
            .flat_map(|piece| &piece.zones)
            .map(|(_, bits)| bits.len())
            .sum::<u32>();
        let matched: HashSet<_> = expected.iter().map(|(contact, _)| *contact).collect();
        let with_zone =
            everybody.iter().filter(|one| matched.contains(&one.contact.id) && one.contact.timezone.is_some());
        assert_eq!(zoned as usize, if query.wants_zones { with_zone.count() } else { 0 }, "{place}");
    }
}

/// Returns a random audience, and the JSON of its filters for the message of a failure.
fn random_audience(world: &mut World<'_>) -> (AudienceQuery, Vec<String>) {
    let channel = Channel::parse(random::channel(&mut world.dice)).expect("a channel");
    let dice = &mut world.dice;
    let lists = world.named.lists.iter().copied().filter(|_| dice.percent(50)).collect();
    let segments = world.named.segments.iter().copied().filter(|_| dice.percent(40)).collect();
    let excluded = world.named.lists.iter().copied().filter(|_| dice.percent(25)).collect();
    let viber = if dice.percent(50) { ViberService::Bot } else { ViberService::Business };
    let filters: Vec<StoredFilter> =
        (0..dice.below(3)).map(|_| random::filter(&mut world.dice, &world.named)).collect();
    let query = AudienceQuery {
        channel,
        viber,
        lists,
        segments,
        filters: filters.iter().map(|filter| Filter::clone(filter.tree())).collect(),
        excluded,
        now: world.present.now,
        zone: world.present.zone.clone(),
        wants_zones: world.dice.percent(50),
    };
    (query, filters.iter().map(|filter| filter.json().to_owned()).collect())
}

/// Returns the verdict of the rules on each contact that is in a list or segment of the audience, or matches a filter.
async fn expected_verdicts(
    world: &World<'_>,
    query: &AudienceQuery,
    everybody: &[StoredFacts],
) -> Vec<(ContactId, AudienceVerdict)> {
    // Addresses of the recipients found so far.
    let mut taken = HashSet::new();
    let mut verdicts = Vec::new();
    for one in everybody {
        let contact = &one.contact;
        let matches = query.lists.iter().any(|list| contact.list_ids.contains(list))
            || query.segments.iter().any(|segment| one.segments.contains(segment))
            || query.filters.iter().any(|filter| filter.matches(one.facts(), &world.present));
        if !matches {
            continue;
        }
        let addresses: Vec<String> = contact
            .addresses(query.channel, query.viber)
            .iter()
            .map(|address| address::normalize(query.channel, address))
            .collect();
        let suppressed = world.store.suppressed(world.workspace, query.channel, &addresses).await.unwrap();
        let free: Vec<String> = addresses
            .iter()
            .filter(|address| suppressed.iter().all(|entry| entry.record.address != **address))
            .cloned()
            .collect();
        let mut facts = ContactFacts {
            is_excluded: query.excluded.iter().any(|list| contact.list_ids.contains(list)),
            has_address: !addresses.is_empty(),
            is_suppressed: free.is_empty(),
            has_consent: agrees(query.channel, contact.consent),
            is_duplicate: false,
        };
        if shares_addresses(query.channel, query.viber) && verdict(facts) == AudienceVerdict::Recipient {
            match claim(free, |address| taken.contains(address)) {
                Some(free) => taken.extend(free),
                None => facts.is_duplicate = true,
            }
        }
        verdicts.push((contact.id, verdict(facts)));
    }
    verdicts
}

fn counts(verdicts: &[(ContactId, AudienceVerdict)]) -> AudienceCounts {
    let of = |wanted| verdicts.iter().filter(|(_, verdict)| *verdict == wanted).count() as u64;
    AudienceCounts {
        recipients: of(AudienceVerdict::Recipient),
        excluded: of(AudienceVerdict::Excluded),
        no_address: of(AudienceVerdict::NoAddress),
        suppressed: of(AudienceVerdict::Suppressed),
        no_consent: of(AudienceVerdict::NoConsent),
        duplicates: of(AudienceVerdict::Duplicate),
    }
}
