//! Plan of a seed: the requests with their times, and the faults.

use std::time::Duration;

use messaging_core::ports::store::StoreHealth;

use crate::dice::Dice;
use crate::fixture::Fixture;
use crate::requests::{self, Planned};

/// A day in milliseconds.
const A_DAY: i64 = 86_400_000;

/// Number of awaits of a process among which the one to end or freeze at is chosen.
const POINTS: u64 = 2500;

/// Everything that is decided before a run begins.
#[derive(Debug)]
pub(crate) struct SimulationPlan {
    pub(crate) seed: u64,
    /// Processes on the one database: 1 or 2.
    pub(crate) processes: usize,
    pub(crate) store: StoreRates,
    /// The mail servers, by the number of their domain.
    pub(crate) peers: Vec<PeerRates>,
    pub(crate) receiver: ReceiverRates,
    pub(crate) account: AccountRates,
    pub(crate) crashes: Vec<Crash>,
    pub(crate) freezes: Vec<Freeze>,
    pub(crate) outages: Vec<Outage>,
    pub(crate) jumps: Vec<Jump>,
    /// Interval of the sweeps of expired rows.
    pub(crate) sweep_every: Duration,
    /// True if automations are among the requests.
    pub(crate) has_automations: bool,
    pub(crate) requests: Vec<Planned>,
}

/// Rates of faults of the store, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct StoreRates {
    pub(crate) call_refused: u64,
    pub(crate) commit_refused: u64,
    pub(crate) conflict: u64,
    pub(crate) unknown: u64,
    pub(crate) lease_lost: u64,
}

/// Rates of faults of a mail server, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct PeerRates {
    pub(crate) slow: u64,
    pub(crate) unreachable: u64,
    pub(crate) deferred: u64,
    pub(crate) refused: u64,
    pub(crate) reply_lost: u64,
    /// An accepted message comes back as undeliverable.
    pub(crate) returned: u64,
}

/// Rates of faults of the account at the provider, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct AccountRates {
    /// It asks for a pause.
    pub(crate) throttled: u64,
    /// It refuses the account's credentials.
    pub(crate) refused: u64,
}

/// Rates of faults of the receiver of webhooks, in thousandths.
#[derive(Debug, Default)]
pub(crate) struct ReceiverRates {
    pub(crate) slow: u64,
    pub(crate) unreachable: u64,
    pub(crate) refused: u64,
    pub(crate) reply_lost: u64,
}

/// A process ends at an await and starts again.
#[derive(Debug)]
pub(crate) struct Crash {
    pub(crate) process: usize,
    pub(crate) at_point: u64,
}

/// A process stands still at an await.
#[derive(Debug)]
pub(crate) struct Freeze {
    pub(crate) process: usize,
    pub(crate) at_point: u64,
    pub(crate) length: Duration,
}

/// The store accepts no writes, or not all.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) at: Duration,
    pub(crate) length: Duration,
    pub(crate) health: StoreHealth,
}

/// The clock is changed.
#[derive(Debug)]
pub(crate) struct Jump {
    pub(crate) at: Duration,
    pub(crate) millis: i64,
}

impl SimulationPlan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64, fixture: &Fixture) -> Self {
        let mut dice = Dice::new(seed, 1);
        let dice = &mut dice;
        let processes = if dice.chance(500) { 2 } else { 1 };
        // Seconds during which requests come; some runs are a burst.
        let span = *dice.pick(&[5, 120, 1200]);
        let store = StoreRates {
            call_refused: rate(dice, 20),
            commit_refused: rate(dice, 150),
            conflict: rate(dice, 150),
            unknown: rate(dice, 80),
            lease_lost: rate(dice, 400),
        };
        let peers = (0..requests::DOMAINS).map(|_| PeerRates {
            slow: rate(dice, 300),
            unreachable: rate(dice, 300),
            deferred: rate(dice, 300),
            refused: rate(dice, 60),
            reply_lost: rate(dice, 250),
            returned: rate(dice, 100),
        });
        let peers = peers.collect();
        let receiver = ReceiverRates {
            slow: rate(dice, 300),
            unreachable: rate(dice, 300),
            refused: rate(dice, 300),
            reply_lost: rate(dice, 200),
        };
        let crashes =
            (0..several(dice, 600, 4)).map(|_| Crash { process: dice.index(processes), at_point: point(dice) });
        let crashes = crashes.collect();
        let freezes = if processes == 2 { several(dice, 600, 3) } else { 0 };
        let freezes = (0..freezes).map(|_| Freeze {
            process: dice.index(processes),
            at_point: point(dice),
            length: *dice.pick(&[
                Duration::from_secs(20),
                Duration::from_mins(30),
                Duration::from_mins(61),
                Duration::from_hours(3),
            ]),
        });
        let freezes = freezes.collect();
        let outages = (0..several(dice, 300, 2)).map(|_| Outage {
            at: dice.span(0, span),
            length: dice.span(1, 600),
            health: *dice.pick(&[
                StoreHealth::Full,
                StoreHealth::IoError,
                StoreHealth::BelowReserve,
                StoreHealth::ReserveUsed,
            ]),
        });
        let outages = outages.collect();
        let jumps = (0..several(dice, 300, 3)).map(|_| Jump {
            at: dice.span(0, span * 2),
            millis: *dice.pick(&[-30 * 86_400, -86_400, -3600, -70, 70, 3600, 6 * 3600]) * 1000,
        });
        let jumps: Vec<_> = jumps.collect();
        let sweep_every = if dice.chance(300) { Duration::from_mins(5) } else { Duration::from_hours(6) };
        // A campaign takes a hundred times as many steps as a message.
        let has_campaigns = seed % 16 == 15;
        let count = 6 + dice.index(24);
        let mut requests = requests::plan(dice, fixture, has_campaigns, count, span);
        // Their jobs check every hour as long as anything else is left to do.
        let has_automations = seed % 32 == 7;
        if has_automations {
            requests.append(&mut requests::automations::plan(&mut Dice::new(seed, 3), fixture, span));
            requests.sort_by_key(|request| request.at);
        }
        let account = AccountRates { throttled: rate(dice, 100), refused: rate(dice, 60) };
        Self {
            seed,
            processes,
            store,
            peers,
            receiver,
            account,
            crashes,
            freezes,
            outages,
            // A run that waits for a month checks every hour.
            jumps: jumps.into_iter().filter(|jump: &Jump| !has_automations || jump.millis > -A_DAY).collect(),
            sweep_every,
            has_automations,
            requests,
        }
    }
}

/// Most runs have few faults: a rate is 0 in six of ten runs, else up to `most`.
fn rate(dice: &mut Dice, most: u64) -> u64 {
    if dice.chance(600) { 0 } else { dice.below(most + 1) }
}

/// None, or up to `most`, with a chance of `per_mille` that there are any.
fn several(dice: &mut Dice, per_mille: u64, most: usize) -> usize {
    if dice.chance(per_mille) { 1 + dice.index(most) } else { 0 }
}

/// An await of a process, early ones more often.
fn point(dice: &mut Dice) -> u64 {
    let bound = 1 + dice.below(POINTS);
    1 + dice.below(bound)
}
