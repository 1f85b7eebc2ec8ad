//! Assignment of a campaign's recipients to its variants.
//!
//! Contract sections 12.1 and 12.5. First the sizes: shares of the recipients by largest remainder, exact within 1.
//! Then each recipient in turn is drawn from what is left of the sizes, without putting back: the sizes come out
//! exactly, every split is as likely as another, and all that has to be remembered is how many are left of each.
//! The draws are not random but follow from the campaign's id and the recipient's place, so that after a crash
//! everybody is drawn again as before.

use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use super::settings::Weight;
use crate::ids::{CampaignId, Id};

/// Returns the shares of a total by weight, in the order of the weights, by largest remainder; of equal remainders the
/// earlier comes first. They sum to the total, and each is its exact share rounded down or up. Empty without weights.
pub fn sizes(total: u64, weights: &[Weight]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(weight.millionths())).sum();
    let exact = |weight: &Weight| u128::from(total) * u128::from(weight.millionths());
    let whole = |weight: &Weight| u64::try_from(exact(weight) / all).unwrap_or(total);
    let mut sizes: Vec<u64> = weights.iter().map(whole).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|place| std::cmp::Reverse(exact(&weights[*place]) % all));
    // Fewer are left than there are weights.
    let left = total - sizes.iter().sum::<u64>();
    for place in by_remainder.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        sizes[place] += 1;
    }
    sizes
}

/// Returns shares of which none is empty, as far as the total allows: an empty one takes one from the largest.
pub fn sizes_of_at_least_one(total: u64, weights: &[Weight]) -> Vec<u64> {
    let mut sizes = sizes(total, weights);
    for place in 0..sizes.len() {
        let largest = (0..sizes.len()).rev().max_by_key(|place| sizes[*place]).filter(|place| sizes[*place] > 1);
        if let Some(largest) = largest.filter(|_| sizes[place] == 0) {
            sizes[largest] -= 1;
            sizes[place] += 1;
        }
    }
    sizes
}

/// Returns the size of the test group: a percentage of the recipients, half up, at least one for each variant. At most
/// all recipients; then nobody remains and there is no test.
pub fn test_group(recipients: u64, percent: u32, variants: usize) -> u64 {
    let share = (u128::from(recipients) * u128::from(percent) + 50) / 100;
    let share = u64::try_from(share).unwrap_or(recipients);
    share.max(variants as u64).min(recipients)
}

/// A split of recipients that are drawn one after another.
///
/// Its size depends on the number of variants, not of recipients. A place is drawn only once: a split that is stored
/// with the place that was reached continues after a crash as if there had been none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    campaign: CampaignId,
    /// Number of recipients drawn so far, which is also the place of the next one.
    place: u64,
    /// Recipients of each variant that are still to be drawn.
    left: Vec<u64>,
}

impl Split {
    /// Returns a split into sizes with nobody drawn yet.
    pub const fn new(campaign: CampaignId, sizes: Vec<u64>) -> Self {
        Self { campaign, place: 0, left: sizes }
    }

    /// Returns the number of recipients drawn so far, which is also the place of the next one.
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// Returns the number of recipients of each variant that are still to be drawn.
    pub fn left(&self) -> &[u64] {
        &self.left
    }

    /// Draws the next recipient and returns the index of its size. `None` once all were drawn.
    pub fn draw(&mut self) -> Option<usize> {
        let total: u64 = self.left.iter().sum();
        if total == 0 {
            return None;
        }
        let mut drawn = self.number_below(total);
        self.place += 1;
        for (place, left) in self.left.iter_mut().enumerate() {
            if drawn < *left {
                *left -= 1;
                return Some(place);
            }
            drawn -= *left;
        }
        unreachable!("what was drawn is less than what was left")
    }

    /// Returns a number below `bound`, each as likely as another, that follows from campaign and place.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a number of 128 bits")]
    fn number_below(&self, bound: u64) -> u64 {
        let key = self.campaign.to_bytes();
        for attempt in 0_u64.. {
            let mut hasher = SipHasher24::new_with_key(&key);
            hasher.write_u64(self.place);
            hasher.write_u64(attempt);
            let wide = u128::from(hasher.finish()) * u128::from(bound);
            let (high, low) = ((wide >> 64) as u64, wide as u64);
            // Some results have one more hash that leads to them than others: these hashes are left out.
            if low >= bound.wrapping_neg() % bound {
                return high;
            }
        }
        unreachable!("one attempt in two is good")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights(numbers: &[f64]) -> Vec<Weight> {
        numbers.iter().map(|number| Weight::try_from(*number).unwrap()).collect()
    }

    fn campaign(number: u128) -> CampaignId {
        CampaignId::from_bytes(number.to_be_bytes())
    }

    #[test]
    fn sizes_follow_the_weights() {
        let sizes = |total, numbers: &[f64]| super::sizes(total, &weights(numbers));
        assert_eq!(sizes(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(sizes(10, &[1.0, 3.0]), [3, 7]);
        assert_eq!(sizes(1000, &[0.1, 0.2, 0.7]), [100, 200, 700]);
        assert_eq!(sizes(2, &[1.0, 1.0, 1.0]), [1, 1, 0]);
        assert_eq!(sizes(0, &[1.0, 2.0]), [0, 0]);
        assert_eq!(sizes(7, &[5.0]), [7]);
        assert_eq!(sizes(7, &[]), [0_u64; 0]);
        assert_eq!(sizes(10_000_000, &[0.000_001, 1_000_000.0]), [0, 10_000_000]);
    }

    #[test]
    fn nobody_of_the_test_goes_without() {
        let sizes = |total, numbers: &[f64]| sizes_of_at_least_one(total, &weights(numbers));
        assert_eq!(sizes(3, &[100.0, 1.0, 1.0]), [1, 1, 1]);
        assert_eq!(sizes(10, &[100.0, 1.0, 1.0]), [8, 1, 1]);
        assert_eq!(sizes(2, &[1.0, 1.0, 1.0]), [1, 1, 0]);
        assert_eq!(sizes(6, &[1.0, 1.0]), [3, 3]);
    }

    #[test]
    fn the_test_group_is_rounded_half_up() {
        assert_eq!(test_group(1000, 20, 2), 200);
        assert_eq!(test_group(25, 10, 2), 3);
        assert_eq!(test_group(24, 10, 2), 2);
        assert_eq!(test_group(10, 1, 5), 5);
        assert_eq!(test_group(3, 90, 5), 3);
        assert_eq!(test_group(0, 50, 2), 0);
        assert_eq!(test_group(u64::MAX, 90, 2), 16_602_069_666_338_596_454);
    }

    #[test]
    fn the_same_campaign_is_drawn_the_same_and_another_is_not() {
        let draws = |number| {
            let mut split = Split::new(campaign(number), vec![500, 300, 200]);
            std::iter::from_fn(move || split.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert_eq!(draws(1).len(), 1000);
    }

    /// Over many campaigns each place gets each variant as often as its share: within five standard deviations of a
    /// fixed set of campaigns, so that the result is the same in each run.
    #[test]
    fn every_place_is_as_likely_as_another() {
        let campaigns = 4000;
        let mut first = [0_u32; 20];
        for number in 0..campaigns {
            let mut split = Split::new(campaign(number << 32 | 7), vec![5, 15]);
            for first in &mut first {
                *first += u32::from(split.draw() == Some(0));
            }
        }
        // A quarter of 4,000 with a deviation of 27.
        assert!(first.iter().all(|count| count.abs_diff(1000) < 137), "{first:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sizes_are_within_one_of_the_share(
            total in 0_u64..20_000_000, millionths in prop::collection::vec(1_u64..1_000_000_000_000, 1..6),
        ) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^52")]
            let weights: Vec<_> =
                millionths.iter().map(|one| Weight::try_from(*one as f64 / 1e6).unwrap()).collect();
            let sizes = sizes(total, &weights);
            prop_assert_eq!(sizes.iter().sum::<u64>(), total);
            let all: u128 = weights.iter().map(|weight| u128::from(weight.millionths())).sum();
            for (size, weight) in sizes.iter().zip(&weights) {
                let share = u128::from(total) * u128::from(weight.millionths());
                prop_assert!((u128::from(*size) * all).abs_diff(share) < all);
            }
            let group = sizes_of_at_least_one(total, &weights);
            prop_assert_eq!(group.iter().sum::<u64>(), total);
            prop_assert!(total < weights.len() as u64 || group.iter().all(|size| *size > 0));
        }

        /// A split resumed from any stored state draws the same again, however often later draws were lost.
        #[test]
        fn a_crash_changes_nothing(
            number in any::<u128>(), total in 1_u64..400, parts in prop::collection::vec(1_u32..50, 1..6),
            crashes in prop::collection::vec((1_usize..60, 0_usize..60), 0..8),
        ) {
            let weights: Vec<_> = parts.iter().map(|part| Weight::try_from(f64::from(*part)).unwrap()).collect();
            let sizes = sizes(total, &weights);
            let mut undisturbed = Split::new(campaign(number), sizes.clone());
            let expected: Vec<_> = std::iter::from_fn(|| undisturbed.draw()).collect();
            let mut stored = serde_json::to_string(&Split::new(campaign(number), sizes.clone())).unwrap();
            let mut kept = Vec::new();
            for (committed, lost) in crashes {
                let mut split: Split = serde_json::from_str(&stored).unwrap();
                kept.extend(std::iter::from_fn(|| split.draw()).take(committed));
                stored = serde_json::to_string(&split).unwrap();
                let _ = std::iter::from_fn(|| split.draw()).take(lost).count();
            }
            let mut split: Split = serde_json::from_str(&stored).unwrap();
            kept.extend(std::iter::from_fn(|| split.draw()));
            prop_assert_eq!(&kept, &expected);
            prop_assert_eq!(split.place(), total);
            for (place, size) in sizes.iter().enumerate() {
                prop_assert_eq!(kept.iter().filter(|drawn| **drawn == place).count() as u64, *size);
            }
        }
    }
}
