//! Queue of the attempts that wait for a turn in a lane. Flows take turns, so that a mailing does not delay other mail.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;

use messaging_core::domain::delivery::fair_turns::{FairTurns, Places};
use messaging_core::domain::delivery::lane::Flow;
use tokio::sync::oneshot;

/// Maximum number of attempts that wait in one lane; further ones are put off at once.
pub(super) const MAX_WAITING: usize = 1024;

/// Maximum number of waiting attempts of one flow, so that others may wait as well.
pub(super) const MAX_OF_FLOW: usize = MAX_WAITING / 4 * 3;

/// A bounded queue for each flow.
pub(super) struct WaitQueue<T> {
    /// Queues by flow; empty ones are removed.
    queues: BTreeMap<Flow, VecDeque<oneshot::Sender<T>>>,
    count: usize,
    turns: FairTurns,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), count: 0, turns: FairTurns::default() }
    }
}

impl<T> WaitQueue<T> {
    /// Adds an attempt to the queue; `None` if too many wait.
    pub(super) fn push(&mut self, flow: Flow) -> Option<oneshot::Receiver<T>> {
        if self.is_full(flow) {
            self.drop_gone();
        }
        if self.is_full(flow) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        self.queues.entry(flow).or_default().push_back(sender);
        self.count += 1;
        Some(receiver)
    }

    /// Takes out the next attempt.
    pub(super) fn pop(&mut self) -> Option<oneshot::Sender<T>> {
        let flows: Vec<_> = self.queues.keys().copied().collect();
        let (no_limits, weights) = (HashMap::new(), HashMap::new());
        let places = Places { all: 1, bulk: 1, per_flow: 1, flows: &no_limits, weights: &weights };
        let Self { queues, turns, .. } = self;
        let mut next = None;
        let shared = turns.share(places, &flows, |flow, _| {
            next = queues.get_mut(&flow).and_then(VecDeque::pop_front);
            if queues.get(&flow).is_some_and(VecDeque::is_empty) {
                queues.remove(&flow);
            }
            Ok::<_, Infallible>(usize::from(next.is_some()))
        });
        shared.unwrap_or_else(|never| match never {});
        self.count -= usize::from(next.is_some());
        next
    }

    fn is_full(&self, flow: Flow) -> bool {
        self.count >= MAX_WAITING || self.queues.get(&flow).is_some_and(|queue| queue.len() >= MAX_OF_FLOW)
    }

    /// Removes attempts that were given up.
    fn drop_gone(&mut self) {
        self.queues.retain(|_, queue| {
            queue.retain(|waiting| !waiting.is_closed());
            !queue.is_empty()
        });
        self.count = self.queues.values().map(VecDeque::len).sum();
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::lane::JobClass;
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    fn flow(class: JobClass, workspace: u8) -> Flow {
        Flow { class, workspace: Some(WorkspaceId::from_bytes([workspace; 16])) }
    }

    #[test]
    fn a_mailing_keeps_no_other_mail_waiting() {
        let mut waiting = WaitQueue::default();
        let (mailing, own, other) =
            (flow(JobClass::Bulk, 1), flow(JobClass::Transactional, 1), flow(JobClass::Transactional, 2));
        let mut receivers = Vec::new();
        for flow in [vec![mailing; 20], vec![own; 10], vec![other; 2]].concat() {
            receivers.push((flow, waiting.push(flow).unwrap()));
        }
        let mut order = Vec::new();
        for number in 0..receivers.len() {
            waiting.pop().unwrap().send(number).unwrap();
            let served = receivers.iter_mut().find_map(|(flow, turn)| Some((*flow, turn.try_recv().ok()?)));
            order.push(served.unwrap().0);
        }
        assert!(waiting.pop().is_none());
        assert_eq!(order[..8], [own, other, own, other, own, own, own, mailing]);
        assert_eq!(order[8..14], [own, own, own, own, own, mailing]);
    }

    #[test]
    fn the_queue_is_bounded_and_one_flow_does_not_fill_it() {
        let mut waiting = WaitQueue::<()>::default();
        let (mailing, other) = (flow(JobClass::Bulk, 1), flow(JobClass::Transactional, 1));
        let first: Vec<_> = (0..MAX_OF_FLOW).map(|_| waiting.push(mailing).unwrap()).collect();
        assert!(waiting.push(mailing).is_none());
        let second: Vec<_> = (MAX_OF_FLOW..MAX_WAITING).map(|_| waiting.push(other).unwrap()).collect();
        assert!(waiting.push(other).is_none() && waiting.push(flow(JobClass::Bulk, 2)).is_none());
        drop(first);
        assert!(waiting.push(mailing).is_some());
        assert_eq!(waiting.len(), second.len() + 1);
    }
}
