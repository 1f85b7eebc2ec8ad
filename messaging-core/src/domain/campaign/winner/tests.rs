use super::*;

const fn trials(successes: u64, delivered: u64) -> Trials {
    Trials { delivered, successes }
}

#[test]
fn the_highest_rate_wins_and_of_equal_ones_the_earlier() {
    let best = |variants: &[(u64, u64)]| super::best(&variants.iter().map(|(s, n)| trials(*s, *n)).collect::<Vec<_>>());
    assert_eq!(best(&[]), None);
    assert_eq!(best(&[(0, 0), (0, 0)]), Some(0));
    assert_eq!(best(&[(0, 10), (0, 0)]), Some(0));
    assert_eq!(best(&[(0, 0), (1, 1000)]), Some(1));
    assert_eq!(best(&[(1, 3), (2, 6), (333_333, 1_000_000)]), Some(0));
    // Floating point could not tell these apart.
    assert_eq!(
        best(&[(9_999_999_999_999_998, 9_999_999_999_999_999), (9_999_999_999_999_999, 10_000_000_000_000_000)]),
        Some(1)
    );
    assert_eq!(best(&[(5, 10), (6, 10), (6, 10)]), Some(1));
}

#[test]
fn what_happens_when_the_wait_is_over() {
    let test = |winner_metric, min_probability, otherwise| AbTest {
        test_percent: 20,
        wait_minutes: 240,
        winner_metric,
        min_probability,
        otherwise,
    };
    let variants = [trials(10, 100), trials(12, 100)];
    let scores = scores(&variants);
    assert!(scores[1].probability_best > 0.6 && scores[1].probability_best < 0.75, "{scores:?}");
    let choose = |test: AbTest| super::choose(&variants, &scores, &test);
    assert_eq!(choose(test(WinnerMetric::OpenRate, None, Otherwise::Manual)), Choice::Winner(1));
    assert_eq!(choose(test(WinnerMetric::Manual, None, Otherwise::First)), Choice::ByPerson);
    assert_eq!(choose(test(WinnerMetric::ClickRate, Some(0.9), Otherwise::Manual)), Choice::ByPerson);
    assert_eq!(choose(test(WinnerMetric::ClickRate, Some(0.9), Otherwise::First)), Choice::Winner(0));
    assert_eq!(
        choose(test(WinnerMetric::ClickRate, Some(scores[1].probability_best), Otherwise::First)),
        Choice::Winner(1)
    );
}

#[test]
fn verdicts_have_their_bounds() {
    let verdicts = [0.95, 0.9499, 0.8, 0.7999].map(Verdict::of);
    assert_eq!(verdicts, [Verdict::Clear, Verdict::Likely, Verdict::Likely, Verdict::Open]);
}

/// The logarithm of the gamma function of a whole number, by Stirling's series above 20.
fn ln_gamma(n: u64) -> f64 {
    if n < 20 {
        #[expect(clippy::cast_precision_loss, reason = "small")]
        return (1..n).map(|factor| (factor as f64).ln()).sum();
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let x = n as f64;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
        + 1.0 / (1260.0 * x.powi(5))
}

fn ln_beta(a: u64, b: u64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The probability that the second of two is the better one, as a finite sum.
fn second_is_better(one: Trials, other: Trials) -> f64 {
    let (a1, b1) = (one.successes + 1, one.delivered - one.successes + 1);
    let (a2, b2) = (other.successes + 1, other.delivered - other.successes + 1);
    (0..a2)
        .map(|i| {
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let divisor = ((b2 + i) as f64).ln() + ln_beta(1 + i, b2) + ln_beta(a1, b1);
            (ln_beta(a1 + i, b1 + b2) - divisor).exp()
        })
        .sum()
}

/// Numbers that look random and are the same in each run (`SplitMix64`).
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }
}

#[test]
fn two_variants_agree_with_the_closed_form() {
    let mut number = numbers(7);
    let mut worst: f64 = 0.0;
    for pair in 0..60 {
        // From a handful of messages to some tens of thousands, also of very different sizes.
        let mut variant = || {
            let delivered = number(10_u64.pow(1 + pair % 5)) + 1;
            let rate = number(100) + 1;
            trials(number(delivered * rate / 100 + 1), delivered)
        };
        let pair = [variant(), variant()];
        let exact = second_is_better(pair[0], pair[1]);
        let found = posterior::probabilities_best(&pair.map(Posterior::of));
        worst = worst.max((found[1] - exact).abs());
        assert!((found[0] + found[1] - 1.0).abs() < 1e-12);
    }
    assert!(worst < 0.0006, "{worst}");
}

#[test]
fn intervals_have_the_known_quantiles() {
    // Beta(1, b) and Beta(a, 1) have quantiles in closed form; the others are from tables of the distribution.
    let b = 11.0_f64;
    let cases = [
        (trials(0, 0), 0.025, 0.975),
        (trials(0, 10), 1.0 - 0.975_f64.powf(1.0 / b), 1.0 - 0.025_f64.powf(1.0 / b)),
        (trials(10, 10), 0.025_f64.powf(1.0 / b), 0.975_f64.powf(1.0 / b)),
        (trials(0, 999_999), 1.0 - 0.975_f64.powf(1e-6), 1.0 - 0.025_f64.powf(1e-6)),
        (trials(1, 2), 0.0943, 0.9057),
        (trials(5, 10), 0.2338, 0.7662),
    ];
    for (trials, low, high) in cases {
        let posterior = Posterior::of(trials);
        let found = (posterior.quantile(0.025), posterior.quantile(0.975));
        assert!((found.0 - low).abs() < 5.1e-5 && (found.1 - high).abs() < 5.1e-5, "{trials:?} {found:?} {low} {high}");
    }
}

/// At ten million trials the distribution is normal for all purposes.
#[test]
fn ten_million_deliveries_are_as_good_as_ten() {
    for rate in [0.5_f64, 0.01, 0.000_1] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 10^7")]
        let one = trials((1e7 * rate) as u64, 10_000_000);
        let deviation = (rate * (1.0 - rate) / 1e7).sqrt();
        let posterior = Posterior::of(one);
        let width = posterior.quantile(0.975) - posterior.quantile(0.025);
        assert!((width / deviation - 3.92).abs() < 0.02, "{rate} {width}");
        assert!((posterior.at_most(rate) - 0.5).abs() < 0.01);
    }
    let variants = [trials(1_000_000, 10_000_000); 5];
    assert!(scores(&variants).iter().all(|score| (score.probability_best - 0.2).abs() < 1e-3));
    // Five standard deviations apart.
    let scores = scores(&[trials(1_000_000, 10_000_000), trials(1_006_709, 10_000_000)]);
    assert_eq!((scores[0].probability_best, scores[1].probability_best), (0.0, 1.0));
    assert_eq!(scores[0].interval, (0.0998, 0.1002));
}

/// A small sample beside a huge one: the steep table must not fall through the other's points.
#[test]
fn sizes_may_differ_by_any_factor() {
    let (few, many) = (trials(3, 10), trials(3_000_000, 10_000_000));
    let exact = 1.0 - Posterior::of(few).at_most(0.3);
    let found = posterior::probabilities_best(&[Posterior::of(few), Posterior::of(many)]);
    assert!((found[0] - exact).abs() < 0.0006, "{found:?} {exact}");
    let unknown = scores(&[trials(0, 0), trials(0, 0), trials(0, 0)]);
    assert!(unknown.iter().all(|score| (score.probability_best - 0.3333).abs() < 1e-9), "{unknown:?}");
    // More clicks than deliveries, after late bounces, count as all.
    assert_eq!(scores(&[trials(9, 5)]), scores(&[trials(5, 5)]));
    assert_eq!(scores(&[]), []);
}

/// More variants: the same as counting which one wins, over all points of a coarse grid.
#[test]
fn five_variants_agree_with_plain_integration() {
    let variants = [trials(20, 100), trials(22, 100), trials(25, 110), trials(5, 30), trials(2, 4)];
    let posteriors: Vec<_> = variants.iter().map(|one| Posterior::of(*one)).collect();
    let found = posterior::probabilities_best(&posteriors);
    let cells = 20_000;
    for (place, one) in posteriors.iter().enumerate() {
        let exact: f64 = (0..cells)
            .map(|cell| {
                let (low, high) = (f64::from(cell) / f64::from(cells), f64::from(cell + 1) / f64::from(cells));
                let others = posteriors.iter().enumerate().filter(|(other, _)| *other != place);
                let lower: f64 = others.map(|(_, other)| other.at_most(f64::midpoint(low, high))).product();
                (one.at_most(high) - one.at_most(low)) * lower
            })
            .sum();
        assert!((found[place] - exact).abs() < 0.0006, "{place} {found:?} {exact}");
    }
}
