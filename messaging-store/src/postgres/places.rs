//! Places, which divide the lanes among the processes, and their owners.

use messaging_core::domain::delivery::lane::Lane;

/// The number of places that lanes are divided into.
pub(super) const PLACES: i16 = 256;

/// Number of routed variants of a lane that are tried to find one in a place of a given process. With a hundred
/// processes about one in a hundred fits.
const ROUTES: u16 = 4096;

/// The place of a lane, which never changes. Lanes that share pace or turns are in the same place: the lanes of a
/// domain, of a webhook and its backlog, and those of a workspace that name nothing of their own. A routed variant of a
/// lane is in another place.
pub(crate) fn place_of(lane: &Lane) -> i16 {
    let hash = match (lane.resource().split_once(':'), lane.flow().workspace) {
        (Some((_, name)), _) => match lane.route() {
            Some(route) => hash(format!("{name}~{route}").as_bytes()),
            None => hash(name.as_bytes()),
        },
        (None, Some(workspace)) => hash(workspace.to_string().as_bytes()),
        (None, None) => hash(lane.resource().as_bytes()),
    };
    i16::from(hash.to_be_bytes()[0])
}

/// Returns the lane or its first routed variant that is in one of these places.
pub(super) fn lane_in(lane: &Lane, places: &[i16]) -> Option<Lane> {
    if places.is_empty() {
        return None;
    }
    let beside = (0..ROUTES).map(|route| lane.routed(route));
    std::iter::once(lane.unrouted()).chain(beside).find(|lane| places.contains(&place_of(lane)))
}

/// Number of the advisory lock of a lane.
pub(super) fn lock_of(lane: &Lane) -> i64 {
    hash(lane.as_str().as_bytes()).cast_signed()
}

/// Returns the owner of a place among the terms of the workers: as few places as possible change hands when one comes
/// or goes.
pub(super) fn owner(place: i16, terms: &[i64]) -> Option<i64> {
    let weight = |term: i64| hash(&[&place.to_be_bytes()[..], &term.to_be_bytes()].concat());
    terms.iter().copied().max_by_key(|term| (weight(*term), *term))
}

/// A hash that is the same in every version and on every machine (FNV-1a, mixed at the end).
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    for (shift, factor) in [(33, 0xff51_afd7_ed55_8ccd_u64), (33, 0xc4ce_b9fe_1a85_ec53)] {
        hash = (hash ^ (hash >> shift)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use messaging_core::domain::delivery::lane::JobClass;
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    #[test]
    fn what_shares_pace_or_turns_lies_together() {
        let lane = |class, n, resource: &str| place_of(&Lane::new(class, WorkspaceId::from_bytes([n; 16]), resource));
        let (t, b) = (JobClass::Transactional, JobClass::Bulk);
        assert_eq!(lane(t, 1, "email:a.example"), lane(b, 2, "email:a.example"));
        assert_eq!(lane(t, 1, "webhook:x"), lane(t, 1, "webhook-backlog:x"));
        assert_eq!(lane(t, 1, "segments"), lane(t, 1, "segment-changes"));
        assert_eq!(lane(t, 1, "sms"), lane(b, 1, "sms"));
        // These values are stored in databases.
        let known = ["email:a.example", "imports", "upkeep:contents"].map(|text| place_of(&text.into()));
        assert_eq!(known, [26, 62, 108]);
    }

    #[test]
    fn every_process_has_a_lane_beside_each() {
        // So few terms that each has a place.
        let terms: Vec<i64> = (1..=20).collect();
        let lane = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([1; 16]), "email:a.example").of_sender("cmp_1");
        for term in &terms {
            let places: Vec<i16> = (0..PLACES).filter(|place| owner(*place, &terms) == Some(*term)).collect();
            let Some(found) = lane_in(&lane, &places) else { panic!("{term} has {places:?}") };
            assert!(places.contains(&place_of(&found)));
            assert_eq!(
                (found.resource(), found.sender(), found.unrouted()),
                ("email:a.example", Some("cmp_1"), lane.clone())
            );
            // The search also leads back to the lane itself.
            assert_eq!(lane_in(&found, &[place_of(&lane)]), Some(lane.clone()));
        }
        assert_eq!(lane_in(&lane, &[]), None);
    }

    #[test]
    fn few_places_change_hands() {
        let owners = |terms: &[i64]| (0..PLACES).map(|place| owner(place, terms).unwrap()).collect::<Vec<_>>();
        let (two, three) = (owners(&[3, 9]), owners(&[3, 9, 12]));
        let mut counts = BTreeMap::new();
        for (before, after) in two.iter().zip(&three) {
            assert!(before == after || *after == 12);
            *counts.entry(*after).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| (55..=120).contains(count)), "{counts:?}");
        assert_eq!(owner(7, &[]), None);
    }
}
