//! The decision on which variant of an A/B test wins, and the scores that say how sure it is.
//!
//! Contract section 12.5. The rule is simple: the highest rate wins, compared as fractions, and of equal ones the
//! earlier. For people there are also the probability of each variant to be the best, and the interval that its true
//! rate lies in. Both come from posteriors ([`posterior`]) and hold for any number of variants, which comparisons of
//! pairs do not.

pub mod posterior;

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::posterior::Posterior;
use super::settings::{AbTest, Otherwise, WinnerMetric};

pub use self::posterior::Trials;

/// Score of a variant in an A/B test: its probability of being the best, and the interval of its true rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// The probability that its true rate is the highest, rounded to 4 decimals.
    pub probability_best: f64,
    /// The equal-tailed interval that its true rate lies in with a probability of 95 %, rounded to 4 decimals.
    pub interval: (f64, f64),
}

/// Verdict on how sure it is that a variant is the best, by its probability of being so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WinnerVerdict")]
pub enum Verdict {
    /// The probability is at least 0.95.
    Clear,
    /// The probability is at least 0.8.
    Likely,
    /// The probability is less than 0.8.
    Open,
}

impl Verdict {
    /// Returns the verdict on a probability.
    pub fn of(probability: f64) -> Self {
        match probability {
            sure if sure >= 0.95 => Self::Clear,
            likely if likely >= 0.8 => Self::Likely,
            _ => Self::Open,
        }
    }
}

/// Decision on an A/B test when its wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The variant at this index, counted from 0, wins.
    Winner(usize),
    /// A person has to choose.
    ByPerson,
}

/// Returns the scores of all variants, in their order.
pub fn scores(variants: &[Trials]) -> Vec<Score> {
    let posteriors: Vec<_> = variants.iter().map(|trials| Posterior::of(*trials)).collect();
    let probabilities = posterior::probabilities_best(&posteriors);
    let score = |(posterior, probability): (&Posterior, f64)| Score {
        probability_best: rounded(probability),
        interval: (rounded(posterior.quantile(0.025)), rounded(posterior.quantile(0.975))),
    };
    posteriors.iter().zip(probabilities).map(score).collect()
}

/// Rounds a number to 4 decimals.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

/// Decides an A/B test when its wait is over; `scores` are those of `variants`. The variant with the highest rate wins,
/// if its probability reaches the least that the test demands; otherwise the test's fallback applies. A test whose
/// metric is manual, or that has no variants, is left to a person.
pub fn choose(variants: &[Trials], scores: &[Score], test: &AbTest) -> Choice {
    let Some(best) = best(variants).filter(|_| test.winner_metric != WinnerMetric::Manual) else {
        return Choice::ByPerson;
    };
    let is_sure = test.min_probability.is_none_or(|least| scores[best].probability_best >= least);
    match test.otherwise {
        _ if is_sure => Choice::Winner(best),
        Otherwise::Manual => Choice::ByPerson,
        Otherwise::First => Choice::Winner(0),
    }
}

/// Returns the index of the variant with the highest rate, counted from 0; of equal ones the earlier. `None` without
/// variants.
pub fn best(variants: &[Trials]) -> Option<usize> {
    let mut best = None;
    for (index, trials) in variants.iter().enumerate() {
        if best.is_none_or(|best: usize| by_rate(*trials, variants[best]) == Ordering::Greater) {
            best = Some(index);
        }
    }
    best
}

/// Compares the rates of two variants without rounding: a/b is to c/d as a·d is to c·b. A variant without deliveries
/// has a rate of 0.
fn by_rate(one: Trials, other: Trials) -> Ordering {
    // The successes of one variant times the deliveries of the other.
    let cross_product = |of: Trials, by: Trials| {
        let (successes, delivered) = if of.delivered == 0 { (0, 1) } else { (of.successes, by.delivered.max(1)) };
        u128::from(successes) * u128::from(delivered)
    };
    cross_product(one, other).cmp(&cross_product(other, one))
}

#[cfg(test)]
mod tests;
