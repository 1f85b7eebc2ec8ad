//! Which variant of an A/B test wins, and how sure that is.
//!
//! Contract section 12.5. The rule is plain: the highest rate wins, compared as fractions, and of equal ones the
//! earlier. Beside it stands what a person wants to know: the probability of each variant to be the best, and the
//! interval that its true rate lies in. Both come from posteriors ([`posterior`]) and hold for any number of
//! variants, which comparisons of pairs do not.

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

/// What a probability of being best amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WinnerVerdict")]
pub enum Verdict {
    /// At least 0.95.
    Clear,
    /// At least 0.8.
    Likely,
    /// Less.
    Open,
}

impl Verdict {
    /// The verdict on a probability.
    pub fn of(probability: f64) -> Self {
        match probability {
            sure if sure >= 0.95 => Self::Clear,
            likely if likely >= 0.8 => Self::Likely,
            _ => Self::Open,
        }
    }
}

/// What follows from the trials when the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The variant at this place wins.
    Winner(usize),
    /// A person decides.
    ByPerson,
}

/// The scores of all variants, in their order.
pub fn scores(variants: &[Trials]) -> Vec<Score> {
    let posteriors: Vec<_> = variants.iter().map(|trials| Posterior::of(*trials)).collect();
    let probabilities = posterior::probabilities_best(&posteriors);
    let score = |(posterior, probability): (&Posterior, f64)| Score {
        probability_best: rounded(probability),
        interval: (rounded(posterior.quantile(0.025)), rounded(posterior.quantile(0.975))),
    };
    posteriors.iter().zip(probabilities).map(score).collect()
}

fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

/// The variant that wins when the wait is over.
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

/// The place of the highest rate; of equal ones the earlier. `None` without variants.
pub fn best(variants: &[Trials]) -> Option<usize> {
    let mut best = None;
    for (place, trials) in variants.iter().enumerate() {
        if best.is_none_or(|best: usize| by_rate(*trials, variants[best]) == Ordering::Greater) {
            best = Some(place);
        }
    }
    best
}

/// Compares rates without rounding; nothing delivered is a rate of 0.
fn by_rate(one: Trials, other: Trials) -> Ordering {
    let part = |of: Trials, by: Trials| {
        let (successes, delivered) = if of.delivered == 0 { (0, 1) } else { (of.successes, by.delivered.max(1)) };
        u128::from(successes) * u128::from(delivered)
    };
    part(one, other).cmp(&part(other, one))
}

#[cfg(test)]
mod tests;
