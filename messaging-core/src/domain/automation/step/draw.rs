//! The draw of a split: the same contact takes the same branch of a node every time.

use ring::digest::{Context, SHA256};

use crate::domain::automation::graph::Share;
use crate::ids::{AutomationId, ContactId};

/// Returns the drawn number, from 0 to below 1: the first 8 bytes of SHA-256 over the ids of the automation, the node
/// and the contact, one after another as texts, as a fraction of 2^64 (contract section 13.4).
#[expect(clippy::cast_precision_loss, reason = "53 of 64 bits are more than enough of a share")]
pub(super) fn draw(automation: AutomationId, node: &str, contact: ContactId) -> f64 {
    let mut context = Context::new(&SHA256);
    for part in [&automation.to_string(), node, &contact.to_string()] {
        context.update(part.as_bytes());
    }
    let digest = context.finish();
    let first: [u8; 8] = std::array::from_fn(|place| digest.as_ref()[place]);
    // Without the last 11 bits, which a fraction cannot hold and which might round it up to 1.
    (u64::from_be_bytes(first) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the first branch whose cumulated share exceeds the drawn number.
#[expect(clippy::cast_precision_loss, reason = "weights are at most 10^12")]
pub(super) fn branch(shares: &[Share], drawn: f64) -> &str {
    let total: u64 = shares.iter().map(|share| share.weight.millionths()).sum();
    let mut below = 0;
    let found = shares.iter().find(|share| {
        below += share.weight.millionths();
        below as f64 / total as f64 > drawn
    });
    found.or(shares.last()).map_or("", |share| &share.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[f64]) -> Vec<Share> {
        let share = |(place, weight): (usize, &f64)| Share {
            name: ["a", "b", "c"][place].to_owned(),
            weight: (*weight).try_into().unwrap(),
        };
        weights.iter().enumerate().map(share).collect()
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "what is lost is less than what is tolerated")]
    fn the_draw_follows_from_the_ids() {
        let automation = "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let contact = "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let digest =
            ring::digest::digest(&SHA256, b"aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGHsplitcon_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
        let first = u64::from_be_bytes(digest.as_ref()[..8].try_into().unwrap());
        let drawn = draw(automation, "split", contact);
        assert!((drawn - first as f64 / 2_f64.powi(64)).abs() < 1e-15, "{drawn}");
        assert!((0.0..1.0).contains(&drawn));
        assert!((drawn - draw(automation, "other", contact)).abs() > 1e-9);
    }

    #[test]
    fn the_first_branch_takes_what_its_share_exceeds() {
        let shares = shares(&[1.0, 2.0, 1.0]);
        let taken = [0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 0.999_999].map(|drawn| branch(&shares, drawn));
        assert_eq!(taken, ["a", "a", "b", "b", "b", "c", "c"]);
    }

    #[test]
    fn shares_come_out_as_weighted() {
        let (shares, mut taken) = (shares(&[0.1, 0.9]), [0_u32; 2]);
        let automation = "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        for n in 0..10_000_u128 {
            let contact = crate::ids::Id::from_bytes(n.to_be_bytes());
            taken[usize::from(branch(&shares, draw(automation, "s", contact)) == "b")] += 1;
        }
        assert!((900..1100).contains(&taken[0]), "{taken:?}");
    }
}
