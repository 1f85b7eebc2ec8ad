//! Callers: they send requests, wait, and repeat them if that is safe.

use std::sync::Arc;
use std::time::Duration;

use messaging_engine::{App, Error};
use serde_json::Value;

use crate::fixture::Fixture;
use crate::front_end::{self, Answer};
use crate::process::Cluster;
use crate::requests::Planned;
use crate::world::World;

/// Time after which a caller hangs up.
const PATIENCE: Duration = Duration::from_secs(50);

/// Number of tries after which a caller gives up.
const MAX_TRIES: usize = 60;

/// Result of a try, as the caller knows it.
enum Try {
    /// An answer that a repetition would not change.
    Answered(Answer),
    /// Refused for good, with this status.
    Refused(u16),
    /// Nothing was done.
    NotDone,
    /// The connection was lost, or the server says that the outcome is unknown.
    Unknown,
}

/// Makes a request as its plan says. `index` is its place in the plan.
pub(crate) async fn make(world: Arc<World>, cluster: Arc<Cluster>, index: usize) {
    let planned = &world.plan.requests[index];
    tokio::time::sleep(planned.at.saturating_sub(world.clock.elapsed())).await;
    let one = ask_until_known(&world, &cluster, index, planned);
    if planned.is_doubled {
        let other = ask_until_known(&world, &cluster, index, planned);
        futures_util::future::join(one, other).await;
    } else {
        one.await;
    }
    if let Some((file, _)) = &planned.call.file {
        upload(&world, &cluster, index, file.as_bytes()).await;
    }
    if let Some(wait) = planned.repeat_after
        && world.ledger().requests[index].success.is_some()
    {
        tokio::time::sleep(wait).await;
        ask_until_known(&world, &cluster, index, planned).await;
    }
}

async fn ask_until_known(world: &Arc<World>, cluster: &Cluster, index: usize, planned: &Planned) {
    for _ in 0..MAX_TRIES {
        match ask(world, cluster, index, planned).await {
            Try::Answered(answer) => return keep(world, index, planned, &answer),
            Try::Refused(status) => return refused(world, index, planned, status),
            Try::NotDone => {}
            Try::Unknown => {
                world.ledger().requests[index].unknown += 1;
                if planned.key.is_none() {
                    return;
                }
            }
        }
        let pause = world.draw(|dice| dice.span(1, 20));
        tokio::time::sleep(pause).await;
    }
    // The outcome of a request whose caller hung up is unknown.
    world.ledger().requests[index].unknown += 1;
}

async fn ask(world: &Arc<World>, cluster: &Cluster, index: usize, planned: &Planned) -> Try {
    {
        let mut ledger = world.ledger();
        let now = ledger.moment();
        ledger.requests[index].first_asked.get_or_insert(now);
    }
    let wish = world.draw(|dice| dice.index(8));
    let running = cluster.any(wish).await;
    let workspace = Fixture::shared().workspace;
    running.life.note(format_args!("request {index} {}", planned.call.operation));
    let call = front_end::call(&running.app, workspace, &planned.call, planned.key.as_deref());
    let answered = tokio::select! {
        biased;
        () = running.life.over() => None,
        answer = call => Some(answer),
        () = tokio::time::sleep(PATIENCE) => None,
    };
    let Some(answered) = answered else {
        world.note(format_args!("request {index}: connection lost"));
        return Try::Unknown;
    };
    match answered {
        Ok(answer) => {
            world.note(format_args!("request {index}: {} {} {}", answer.status, answer.replayed, answer.body));
            Try::Answered(answer)
        }
        Err(Error::Unavailable { .. } | Error::IdempotencyInProgress | Error::RateLimited { .. }) => {
            world.note(format_args!("request {index}: not done"));
            Try::NotDone
        }
        Err(Error::OutcomeUnknown { .. }) => {
            world.note(format_args!("request {index}: outcome unknown"));
            Try::Unknown
        }
        Err(error) => {
            let status = error.status().as_u16();
            world.note(format_args!("request {index}: refused, {status}: {error}"));
            if status >= 500 {
                world
                    .ledger()
                    .broken(format!("request {index} {} is answered {status}: {error:?}", planned.call.operation));
            }
            Try::Refused(status)
        }
    }
}

/// Sends the file of an announced import, until it is known that it arrived.
async fn upload(world: &Arc<World>, cluster: &Cluster, index: usize, file: &[u8]) {
    let announced = world.ledger().requests[index].success.clone();
    let Some((_, announced)) = announced else { return };
    let announced: Value = serde_json::from_str(&announced).unwrap_or_default();
    let Some(token) = announced["upload_url"].as_str().and_then(|url| url.rsplit('/').next()) else { return };
    for _ in 0..MAX_TRIES {
        let wish = world.draw(|dice| dice.index(8));
        let running = cluster.any(wish).await;
        let sent = tokio::select! {
            biased;
            () = running.life.over() => None,
            sent = send_file(&running.app, token, file) => Some(sent),
            () = tokio::time::sleep(PATIENCE) => None,
        };
        world.note(format_args!("request {index}: upload ends with {sent:?}"));
        match sent {
            Some(Ok(())) => {
                world.ledger().requests[index].is_uploaded = true;
                return;
            }
            // An earlier upload, whose answer was lost, has succeeded; or it is too late.
            Some(Err(Error::LinkExpired)) => return,
            Some(Err(Error::Internal(error))) => {
                world.ledger().broken(format!("request {index}: an upload ends with {error:?}"));
                return;
            }
            _ => {}
        }
        let pause = world.draw(|dice| dice.span(1, 20));
        tokio::time::sleep(pause).await;
    }
}

async fn send_file(app: &App, token: &str, file: &[u8]) -> Result<(), Error> {
    let mut uploading = app.receive_upload(token, None).await?;
    for piece in file.chunks(10_000) {
        uploading.add(piece).await?;
    }
    uploading.finish().await.map(|_| ())
}

/// Compares a successful answer with the first one.
fn keep(world: &World, index: usize, planned: &Planned, answer: &Answer) {
    let mut ledger = world.ledger();
    let now = ledger.moment();
    let given = (answer.status, answer.body.clone());
    let record = &mut ledger.requests[index];
    if !answer.replayed {
        record.fresh_successes += 1;
    }
    let told = match &record.success {
        None => {
            record.success = Some(given);
            record.known_at = Some(now);
            if let Some(id) = answer.json()["message_id"].as_str().and_then(|id| id.parse().ok()) {
                record.messages.push(id);
            }
            return;
        }
        Some(first) if *first == given => return,
        Some(first) => format!("{first:?}, then {given:?}"),
    };
    let operation = planned.call.operation;
    ledger.broken(format!("request {index} {operation} with one Idempotency-Key is answered {told}"));
}

fn refused(world: &World, index: usize, planned: &Planned, status: u16) {
    let mut ledger = world.ledger();
    if planned.key.is_some() && ledger.requests[index].success.is_some() {
        ledger.broken(format!("request {index} {} was answered, then refused with {status}", planned.call.operation));
    }
}
