//! Reading bodies: bounded in size, in time, and in memory over all requests together.
//!
//! A body costs its length while it is read, and about twice as much again while the operation decodes
//! it. Small ones are not counted. Every other one takes its announced length from a [`BodyBudget`]
//! before a byte of it is read, and keeps it until the operation is done; whoever waits for its turn
//! holds no memory, because nothing is taken from its socket. Few long bodies are decoded at once.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use messaging_core::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Bodies up to this length are not counted.
const SMALL: u64 = 64 * 1024;

/// Bodies from this length on are decoded a few at a time.
const LONG: usize = 1 << 20;

/// How many long bodies are decoded at once.
const LONG_AT_ONCE: usize = 2;

/// The budget is counted in these, because a semaphore's permits are 32-bit.
const UNIT: u64 = 1024;

/// How long a request waits for memory before it is told to come back.
const WAIT: Duration = Duration::from_secs(20);

/// What a refused request is told to wait.
const RETRY_AFTER: u64 = 2;

/// Bounds of the time a body takes to arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyTimes {
    /// Between two pieces.
    pub(crate) stall: Duration,
    /// From the first to the last.
    pub(crate) total: Duration,
}

/// The memory that bodies may take.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes: Semaphore,
    units: u32,
    long: Semaphore,
}

/// Memory taken from the budget; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Held<'a> {
    bytes: Option<SemaphorePermit<'a>>,
}

/// A body, and the memory it holds.
#[derive(Debug, Default)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: Bytes,
    _held: Held<'a>,
}

/// A body could not be read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// To be answered.
    Refused(Error),
    /// It did not arrive in time.
    TimedOut,
    /// The peer went away or broke the protocol; nobody waits for an answer.
    Broken,
}

impl From<Error> for BodyError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX >> 4).max(1);
        Self { bytes: Semaphore::new(units as usize), units, long: Semaphore::new(LONG_AT_ONCE) }
    }

    /// Bytes taken at the moment.
    pub(crate) fn used(&self) -> u64 {
        (u64::from(self.units) - self.bytes.available_permits() as u64) * UNIT
    }

    async fn hold(&self, length: u64) -> Result<Held<'_>, Error> {
        if length <= SMALL {
            return Ok(Held::default());
        }
        // One body larger than the whole budget has it for itself.
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        let bytes = in_time(self.bytes.acquire_many(units)).await?;
        Ok(Held { bytes: Some(bytes) })
    }

    /// The turn to decode a body; at once for all but long ones.
    pub(crate) async fn turn(&self, length: usize) -> Result<Option<SemaphorePermit<'_>>, Error> {
        if length < LONG {
            return Ok(None);
        }
        in_time(self.long.acquire()).await.map(Some)
    }

    /// Reads a body that must be JSON if it is not empty.
    pub(crate) async fn receive<B>(
        &self,
        body: B,
        limit: usize,
        is_json: bool,
        times: BodyTimes,
    ) -> Result<Received<'_>, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = body.size_hint().exact();
        match announced {
            Some(0) => return Ok(Received::default()),
            Some(length) if length > limit as u64 => return Err(Error::PayloadTooLarge { limit }.into()),
            Some(_) if !is_json => return Err(Error::UnsupportedMediaType.into()),
            _ => {}
        }
        let mut held = self.hold(announced.unwrap_or(0)).await?;
        let mut pieces = Pieces::new(body, times);
        let Some(first) = pieces.next().await? else { return Ok(Received::default()) };
        if !is_json {
            return Err(Error::UnsupportedMediaType.into());
        }
        if announced == Some(first.len() as u64) {
            return Ok(Received { bytes: first, _held: held });
        }
        let mut whole =
            Vec::with_capacity(announced.map_or(first.len(), |length| usize::try_from(length).unwrap_or(0)));
        let mut piece = Some(first);
        while let Some(bytes) = piece {
            if whole.len() + bytes.len() > limit {
                return Err(Error::PayloadTooLarge { limit }.into());
            }
            let counted = announced.is_some() || held.bytes.is_some();
            if !counted && (whole.len() + bytes.len()) as u64 > SMALL {
                // Nothing was announced: take the most it can become, so that nobody ever waits for
                // memory while holding some.
                held = self.hold(limit as u64).await?;
            }
            whole.extend_from_slice(&bytes);
            piece = pieces.next().await?;
        }
        Ok(Received { bytes: whole.into(), _held: held })
    }
}

/// Reads and drops what is left of a body, if that is little: then the connection can be used again.
/// Tells whether the end was reached.
pub(crate) async fn drain<B: Body<Data = Bytes> + Unpin>(body: B, times: BodyTimes) -> bool {
    if body.is_end_stream() {
        return true;
    }
    if body.size_hint().exact().is_none_or(|left| left > SMALL) {
        return false;
    }
    let mut pieces = Pieces::new(body, times);
    loop {
        match pieces.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

async fn in_time<'a>(
    permit: impl Future<Output = Result<SemaphorePermit<'a>, tokio::sync::AcquireError>>,
) -> Result<SemaphorePermit<'a>, Error> {
    match timeout(WAIT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Error::Unavailable { retry_after: RETRY_AFTER }),
    }
}

/// The pieces of a body, in time.
pub(crate) struct Pieces<B> {
    body: B,
    times: BodyTimes,
    began: Option<Instant>,
}

impl<B: Body<Data = Bytes> + Unpin> Pieces<B> {
    pub(crate) const fn new(body: B, times: BodyTimes) -> Self {
        Self { body, times, began: None }
    }

    /// The next piece that is not empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        // Most bodies arrive together with their head; a timer is made only for those that do not.
        let mut timer: Pin<&mut Option<Sleep>> = pin!(None);
        poll_fn(|cx| {
            loop {
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                        // Trailers and empty pieces.
                        _ => {}
                    },
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyError::Broken)),
                    Poll::Ready(None) => return Poll::Ready(Ok(None)),
                    Poll::Pending => break,
                }
            }
            if timer.is_none() {
                let now = Instant::now();
                let began = *self.began.get_or_insert(now);
                timer.set(Some(sleep_until((now + self.times.stall).min(began + self.times.total))));
            }
            let sleep = timer.as_mut().as_pin_mut().expect("it was just set");
            sleep.poll(cx).map(|()| Err(BodyError::TimedOut))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    const TIMES: BodyTimes = BodyTimes { stall: Duration::from_secs(1), total: Duration::from_secs(5) };

    fn chunked(pieces: Vec<Bytes>) -> impl Body<Data = Bytes, Error = std::convert::Infallible> + Unpin {
        StreamBody::new(futures_util::stream::iter(pieces.into_iter().map(|piece| Ok(http_body::Frame::data(piece)))))
    }

    #[tokio::test]
    async fn announced_and_chunked_bodies_arrive_whole() {
        let budget = BodyBudget::new(1 << 20);
        let announced = budget.receive(Full::from("{}"), 10, true, TIMES).await.unwrap();
        assert_eq!(announced.bytes, "{}");
        let pieces = vec![Bytes::from(vec![b'a'; 50_000]), Bytes::new(), Bytes::from(vec![b'b'; 50_000])];
        let received = budget.receive(chunked(pieces), 200_000, true, TIMES).await.unwrap();
        assert_eq!(received.bytes.len(), 100_000);
        assert_eq!(budget.used(), 200_000_u64.div_ceil(UNIT) * UNIT);
        drop(received);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn what_is_too_long_or_no_json_is_refused() {
        let budget = BodyBudget::new(1 << 20);
        let refused = |result: Result<Received<'_>, BodyError>| match result {
            Err(BodyError::Refused(error)) => error.code(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(budget.receive(Full::from("12345"), 4, false, TIMES).await), "payload_too_large");
        assert_eq!(refused(budget.receive(Full::from("1234"), 4, false, TIMES).await), "unsupported_media_type");
        let pieces = || vec![Bytes::from("123"), Bytes::from("45")];
        assert_eq!(refused(budget.receive(chunked(pieces()), 4, true, TIMES).await), "payload_too_large");
        assert_eq!(refused(budget.receive(chunked(pieces()), 9, false, TIMES).await), "unsupported_media_type");
        assert!(budget.receive(chunked(vec![]), 4, false, TIMES).await.unwrap().bytes.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_given_up() {
        let budget = BodyBudget::new(1 << 20);
        let stalled = StreamBody::new(futures_util::stream::pending::<Result<http_body::Frame<Bytes>, String>>());
        assert!(matches!(budget.receive(stalled, 4, true, TIMES).await, Err(BodyError::TimedOut)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_memory_in_time_is_told_to_come_back() {
        let budget = BodyBudget::new(100_000);
        let body = || Full::from(vec![b'a'; 90_000]).boxed();
        let first = budget.receive(body(), 1 << 20, true, TIMES).await.unwrap();
        let second = budget.receive(body(), 1 << 20, true, TIMES).await;
        assert!(matches!(second, Err(BodyError::Refused(Error::Unavailable { .. }))));
        drop(first);
        assert!(budget.receive(body(), 1 << 20, true, TIMES).await.is_ok());
    }
}
