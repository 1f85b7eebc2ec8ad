//! Posterior distribution of a rate after some trials: a Beta distribution, as a table.
//!
//! Before any trial each rate is as likely as another, Beta(1, 1); after `s` successes in `n` trials the distribution
//! is Beta(s + 1, n - s + 1). Its density is tabulated at [`POINTS`] points of the interval outside of which it is
//! negligible, so that ten million trials are as good as ten: the table follows the distribution. No special function
//! is needed, because the table is divided by its own sum, and no random numbers, so that the same counts always give
//! the same answer.

use serde::{Deserialize, Serialize};

/// Points of the table.
pub const POINTS: usize = 2048;

/// Natural logarithm of the ratio of the highest density to the lowest one in the table: below e^-32 of its highest
/// value the density is left out.
const DEPTH: f64 = 32.0;

/// Deliveries and successes of one variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trials {
    /// Delivered messages.
    pub delivered: u64,
    /// Delivered messages that were opened, or clicked; a number greater than `delivered` counts as `delivered`.
    pub successes: u64,
}

/// The distribution of a rate.
#[derive(Debug, Clone)]
pub struct Posterior {
    low: f64,
    step: f64,
    /// The probability of being at most `low + step * place`; from 0 to 1.
    cumulated: Vec<f64>,
}

/// The logarithm of a density of Beta(a + 1, b + 1), without its constant.
#[derive(Clone, Copy)]
struct LogDensity {
    a: f64,
    b: f64,
}

impl LogDensity {
    fn at(self, x: f64) -> f64 {
        // 0 times the logarithm of 0 is 0 here.
        let term = |factor: f64, log: f64| if factor == 0.0 { 0.0 } else { factor * log };
        term(self.a, x.ln()) + term(self.b, (-x).ln_1p())
    }

    /// Returns the rate with the highest density.
    fn mode(self) -> f64 {
        let all = self.a + self.b;
        if all == 0.0 { 0.5 } else { self.a / all }
    }

    /// Returns the point between the mode and `end` at which the density falls below the tabulated ones; `end` if it
    /// does not.
    fn edge(self, end: f64) -> f64 {
        let floor = self.at(self.mode()) - DEPTH;
        if self.at(end) >= floor {
            return end;
        }
        let (mut inside, mut outside) = (self.mode(), end);
        // As many steps as a number has bits.
        for _ in 0..64 {
            let middle = f64::midpoint(inside, outside);
            if self.at(middle) >= floor { inside = middle } else { outside = middle }
        }
        outside
    }
}

impl Posterior {
    /// Returns the distribution after some trials.
    #[expect(clippy::cast_precision_loss, reason = "counts of messages are far below 2^52")]
    pub fn of(trials: Trials) -> Self {
        let successes = trials.successes.min(trials.delivered);
        let density = LogDensity { a: successes as f64, b: (trials.delivered - successes) as f64 };
        let (low, high) = (density.edge(0.0), density.edge(1.0));
        let step = (high - low) / (POINTS - 1) as f64;
        let highest = density.at(density.mode());
        let height = |place: usize| {
            let x = if place == POINTS - 1 { high } else { low + step * place as f64 };
            (density.at(x) - highest).exp()
        };
        let mut cumulated = Vec::with_capacity(POINTS);
        cumulated.push(0.0);
        let (mut sum, mut before) = (0.0, height(0));
        for place in 1..POINTS {
            let here = height(place);
            sum += f64::midpoint(before, here);
            cumulated.push(sum);
            before = here;
        }
        for value in &mut cumulated {
            *value /= sum;
        }
        Self { low, step, cumulated }
    }

    /// Returns the rate at a point of the table.
    #[expect(clippy::cast_precision_loss, reason = "at most 2048")]
    fn point(&self, place: usize) -> f64 {
        self.low + self.step * place as f64
    }

    /// Returns the probability that the rate is at most `x`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and the length of the table"
    )]
    pub fn at_most(&self, x: f64) -> f64 {
        let place = (x - self.low) / self.step;
        if place <= 0.0 {
            return 0.0;
        }
        if place >= (POINTS - 1) as f64 {
            return 1.0;
        }
        let below = place as usize;
        let (low, high) = (self.cumulated[below], self.cumulated[below + 1]);
        low + (high - low) * (place - below as f64)
    }

    /// Returns the rate that is not exceeded with this probability.
    pub fn quantile(&self, probability: f64) -> f64 {
        let above = self.cumulated.partition_point(|value| *value < probability).clamp(1, POINTS - 1);
        let (low, high) = (self.cumulated[above - 1], self.cumulated[above]);
        let part = if high > low { (probability - low) / (high - low) } else { 0.0 };
        self.point(above - 1) + self.step * part
    }
}

/// Returns the probability of each rate to be the highest. They sum to 1.
///
/// Each is the integral of the rate's density times the probabilities that all others are lower, over the points of all
/// tables: wherever one of them is steep there are many points.
pub fn probabilities_best(posteriors: &[Posterior]) -> Vec<f64> {
    let mut points: Vec<f64> = posteriors.iter().flat_map(|one| (0..POINTS).map(|place| one.point(place))).collect();
    points.sort_by(f64::total_cmp);
    let mut won = vec![0.0; posteriors.len()];
    let mut before: Vec<f64> = vec![0.0; posteriors.len()];
    for x in points {
        let here: Vec<f64> = posteriors.iter().map(|one| one.at_most(x)).collect();
        for (place, won) in won.iter_mut().enumerate() {
            let others = |at: &[f64]| -> f64 {
                at.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, lower)| lower).product()
            };
            *won += (here[place] - before[place]) * f64::midpoint(others(&before), others(&here));
        }
        before = here;
    }
    let sum: f64 = won.iter().sum();
    if sum > 0.0 {
        for won in &mut won {
            *won /= sum;
        }
    }
    won
}
