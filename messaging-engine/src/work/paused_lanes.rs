//! Lanes of accounts that are left alone are not claimed, and of accounts with a rate only as much as may leave soon.
//!
//! Of the other channels that is the whole lane. Mail through a relay has a lane for each domain, and those that
//! nobody knows yet give some jobs, which are put back.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::message::simulator;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Claim, StoreError};

use crate::app::App;
use crate::app::account_pauses::Account;
use crate::app::account_rates::Room;
use crate::jobs::lanes;
use crate::work::lanes::Lanes;

/// Has a claim leave out the lanes of accounts that are left alone under their present settings; answers how many.
pub(super) async fn hold(app: &App, known: &Lanes, claim: &mut Claim) -> Result<usize, StoreError> {
    let mut paused_lanes = 0;
    for (Account { workspace, channel, name }, paused, until) in app.account_pauses().closed(claim.monotonic) {
        // Another process may have given new settings.
        if !app.provider(workspace, channel).await?.is_some_and(|present| present.is_same(&paused)) {
            app.account_pauses().forget(&[(workspace, channel)]);
            continue;
        }
        if name.is_some() {
            // Others share the lane; its messages are put back one by one.
            continue;
        }
        for lane in of_account(known, workspace, channel) {
            claim.shares.remove(&lane);
            paused_lanes += 1;
            match claim.hold.iter_mut().find(|(held, _)| *held == lane) {
                Some((_, held_until)) => *held_until = until.max(*held_until),
                None => claim.hold.push((lane, until)),
            }
        }
    }
    for (account, paced, room) in app.account_rates().rooms(claim.monotonic) {
        let Account { workspace, channel, name } = account;
        // Mail of a relay, and what goes over one of several accounts, has other lanes or shares them.
        if name.is_some() || channel == Channel::Email {
            continue;
        }
        if !app.provider(workspace, channel).await?.is_some_and(|present| present.is_same(&paced)) {
            app.account_rates().forget(&[(workspace, channel)]);
            continue;
        }
        for lane in of_account(known, workspace, channel) {
            if claim.hold.iter().any(|(held, _)| *held == lane) {
                continue;
            }
            match room {
                Room::NotBefore(time) => {
                    claim.shares.remove(&lane);
                    claim.hold.push((lane, time));
                }
                Room::Left(room) => {
                    let share = claim.shares.get(&lane).copied().unwrap_or(claim.per_lane);
                    claim.shares.insert(lane, share.min(room));
                }
            }
        }
    }
    Ok(paused_lanes)
}

fn of_account(known: &Lanes, workspace: WorkspaceId, channel: Channel) -> Vec<Lane> {
    if channel != Channel::Email {
        return JobClass::ALL.map(|class| Lane::new(class, workspace, channel.as_str())).to_vec();
    }
    let is_of_account = |lane: &&Lane| {
        let domain = lane.resource().strip_prefix(lanes::EMAIL);
        lane.flow().workspace == Some(workspace) && domain.is_some_and(|domain| domain != simulator::DOMAIN)
    };
    known.known().filter(is_of_account).cloned().collect()
}
