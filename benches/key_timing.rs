//! Test for a timing leak: response times must not reveal which prefixes of API keys exist.
//!
//! Refuses wrong secrets with a known prefix and with unknown ones, alternating at random, and prints Welch's t of the
//! two samples: above 4.5 or below -4.5 they can be told apart.

use std::time::Instant;

use messaging_benches::median;
use messaging_benches::product::Product;
use messaging_core::domain::security::api_key::generate;
use messaging_core::ports::clock::{Entropy as _, SystemEntropy};

/// Keys that exist.
const KEYS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tries = if std::env::args().any(|argument| argument == "--test") { 100 } else { 5000 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(tries))
}

#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
async fn measure(tries: usize) -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let product = Product::open(&directory.path().join("bench.db")).await?;
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        keys.push(product.key().await?);
    }
    let known = keys.first().and_then(|key| key.split_once('.')).ok_or("a key has two parts")?.0.to_owned();
    let entropy = SystemEntropy::default();
    let (mut of_known, mut of_unknown) = (Vec::new(), Vec::new());
    while of_known.len() < tries || of_unknown.len() < tries {
        let (prefix, secret) = generate(&entropy);
        let mut coin = [0];
        entropy.fill(&mut coin);
        let (prefix, sample) =
            if coin[0] & 1 == 0 { (known.as_str(), &mut of_known) } else { (prefix.as_str(), &mut of_unknown) };
        let token = format!("{prefix}.{secret}");
        let began = Instant::now();
        let refused = product.app.authenticate(&token).await.is_err();
        let took = began.elapsed().as_secs_f64() * 1e6;
        if !refused {
            return Err("a wrong secret was taken".into());
        }
        if sample.len() < tries {
            sample.push(took);
        }
    }
    let t = welch(&of_known, &of_unknown);
    let medians = (median(of_known), median(of_unknown));
    println!("{tries} tries each: known {:.1} us, unknown {:.1} us (medians), Welch t {t:.2}", medians.0, medians.1);
    Ok(())
}

/// Welch's t: the difference of the means in units of its standard error.
fn welch(one: &[f64], other: &[f64]) -> f64 {
    let moments = |sample: &[f64]| {
        #[expect(clippy::cast_precision_loss, reason = "samples are small")]
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let ((mean_one, error_one), (mean_other, error_other)) = (moments(one), moments(other));
    (mean_one - mean_other) / (error_one + error_other).sqrt()
}
