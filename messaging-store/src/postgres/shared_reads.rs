//! One statement for all callers who read the same at the same time.
//!
//! The first caller waits for a connection. Callers of the same query wait for its answer until it is sent, instead of
//! a connection: a read sees everything that was committed before it was requested, because it is sent after that. So
//! the settings of a workspace are read once for a hundred of its messages that are under way, and nothing is cached.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use messaging_core::error::Chain;
use messaging_core::ports::store::StoreError;
use tokio::sync::oneshot;

use super::fault::Fault;

/// A statement, and its parameters as text.
pub(super) type Question = (&'static str, String);

type ReplySenders<A> = Vec<oneshot::Sender<Result<A, StoreError>>>;

/// Queries that were not sent yet, with the callers that wait for their answers.
#[derive(Debug)]
pub(super) struct SharedReads<A>(Mutex<HashMap<Question, ReplySenders<A>>>);

impl<A> Default for SharedReads<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<A: Clone> SharedReads<A> {
    /// Returns the answer to a query that is sent as soon as there is a connection.
    pub(super) async fn answer<C, S: Future<Output = Result<A, Fault>>>(
        &self,
        question: Question,
        connection: impl Future<Output = Result<C, Fault>>,
        send: impl FnOnce(C) -> S,
    ) -> Result<A, StoreError> {
        let asking = loop {
            match self.ask(&question) {
                Ok(asking) => break asking,
                Err(others) => {
                    if let Ok(answer) = others.await {
                        return answer;
                    }
                    // The caller that was to send the query went away.
                }
            }
        };
        let connection = connection.await;
        let waiting = asking.send();
        let answer = match connection {
            Ok(connection) => send(connection).await,
            Err(fault) => Err(fault),
        };
        let answer = answer.map_err(StoreError::from);
        for one in waiting {
            // The caller may have gone away.
            let _ = one.send(again(&answer));
        }
        answer
    }

    /// Returns the task of sending the query or, if another caller has it, a receiver for the answer.
    fn ask(&self, question: &Question) -> Result<PendingQuestion<'_, A>, oneshot::Receiver<Result<A, StoreError>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = all.get_mut(question) {
            let (sender, receiver) = oneshot::channel();
            waiting.push(sender);
            return Err(receiver);
        }
        all.insert(question.clone(), Vec::new());
        drop(all);
        Ok(PendingQuestion { all: &self.0, question: Some(question.clone()) })
    }
}

/// A query that a caller is about to send. If the caller gives up, the waiting callers ask anew.
struct PendingQuestion<'a, A> {
    all: &'a Mutex<HashMap<Question, ReplySenders<A>>>,
    /// `None` once it is sent.
    question: Option<Question>,
}

impl<A> PendingQuestion<'_, A> {
    /// Takes the callers that wait for the answer; later callers ask anew.
    fn send(mut self) -> ReplySenders<A> {
        self.take()
    }

    fn take(&mut self) -> ReplySenders<A> {
        let Some(question) = self.question.take() else { return ReplySenders::new() };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&question).unwrap_or_default()
    }
}

impl<A> Drop for PendingQuestion<'_, A> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Copies an answer for another caller.
fn again<A: Clone>(answer: &Result<A, StoreError>) -> Result<A, StoreError> {
    match answer {
        Ok(answer) => Ok(answer.clone()),
        Err(error) => Err(copy_of(error)),
    }
}

/// Copies an error for another caller.
pub(super) fn copy_of(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable => StoreError::Unavailable,
        StoreError::OutcomeUnknown => StoreError::OutcomeUnknown,
        StoreError::Failed(cause) => StoreError::Failed(Chain(cause.as_ref()).to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;

    fn question() -> Question {
        ("SELECT $1", "[7]".to_owned())
    }

    /// A result that comes when its sender is used.
    type Later<T> = oneshot::Receiver<Result<T, Fault>>;

    async fn later<T>(receiver: Later<T>) -> Result<T, Fault> {
        receiver.await.unwrap()
    }

    #[tokio::test]
    async fn who_asks_before_it_is_sent_hears_the_answer_and_who_asks_after_asks_anew() {
        let shared = SharedReads::default();
        let (connect, connection) = oneshot::channel();
        let (tell, answer) = oneshot::channel::<Result<u8, Fault>>();
        let mut first = pin!(shared.answer(question(), later(connection), |()| later(answer)));
        assert!(poll!(&mut first).is_pending());
        let mut second = pin!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(0))));
        assert!(poll!(&mut second).is_pending(), "it waits although it would have a connection");
        let other = ("SELECT $1", "[8]".to_owned());
        assert_eq!(shared.answer(other, ready(Ok(())), |()| ready(Ok(8))).await.unwrap(), 8);
        connect.send(Ok(())).unwrap();
        assert!(poll!(&mut first).is_pending());
        // A commit may come while the query is on its way: a later caller must see it.
        assert_eq!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(2))).await.unwrap(), 2);
        tell.send(Ok(1)).unwrap();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 1));
        assert!(shared.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_question_to_the_next() {
        let shared = SharedReads::default();
        {
            let mut first = pin!(shared.answer(question(), pending::<Result<(), Fault>>(), |()| ready(Ok(1))));
            assert!(poll!(&mut first).is_pending());
        }
        assert_eq!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(2))).await.unwrap(), 2);

        let mut first = Box::pin(shared.answer(question(), pending::<Result<(), Fault>>(), |()| ready(Ok(1))));
        assert!(poll!(&mut first).is_pending());
        let mut second = pin!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(3))));
        assert!(poll!(&mut second).is_pending());
        drop(first);
        assert_eq!(second.await.unwrap(), 3);

        // The caller goes away while the answer is on its way.
        let mut first = Box::pin(shared.answer(question(), ready(Ok(())), |()| pending()));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(4))).await.unwrap(), 4);
        drop(first);
        assert!(shared.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_failure_is_everybodys() {
        let shared = SharedReads::<u8>::default();
        for fault in [Fault::Unhealthy, Fault::Malformed("no number")] {
            let (connect, connection) = oneshot::channel::<Result<(), Fault>>();
            let mut first = pin!(shared.answer(question(), later(connection), |()| ready(Ok(1))));
            assert!(poll!(&mut first).is_pending());
            let mut second = pin!(shared.answer(question(), ready(Ok(())), |()| ready(Ok(2))));
            assert!(poll!(&mut second).is_pending());
            connect.send(Err(fault)).unwrap();
            assert_eq!(first.await.unwrap_err().to_string(), second.await.unwrap_err().to_string());
        }
    }
}
