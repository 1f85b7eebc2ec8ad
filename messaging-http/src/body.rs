//! Reading bodies: bounded in size, in time, and in memory over all requests together.
//!
//! A body costs its length while it is read, and about twice as much again while the operation decodes it. Small bodies
//! are not counted. Every other one takes its announced length from a [`BodyBudget`] before a byte of it is read, and
//! keeps it until the operation is done; a request that waits for its turn holds no memory, because nothing is read
//! from its socket. Few long bodies are decoded at once. The memory of a decoded body follows from the number of its
//! values: they are counted first and have a budget of their own.
//!
//! Memory is shared (contract section 22): a workspace may hold as much as it leaves free, and all callers of one
//! network seven eighths of everything, so that bodies that never arrive block only their own sender.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::input::count_values;
use messaging_engine::Error;
use messaging_engine::fair_semaphore::{Bounds, Cap, FairSemaphore, Overloaded, Owner, Permit, Share};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Bodies up to this length are not counted.
const SMALL: u64 = 64 * 1024;

/// Bodies from this length on are decoded a few at a time.
const LONG: usize = 1 << 20;

/// Number of long bodies that are decoded at once.
const LONG_AT_ONCE: u64 = 2;

/// Requests that may wait for memory, or for their turn to be decoded.
const WAITING: usize = 1024;

/// Requests of one workspace or network that may wait for memory, or for their turn to be decoded.
const WAITING_OF_ONE: usize = 256;

/// Memory that a value of a body may take once it is decoded: the only member of an object has a separate node of a
/// tree.
const BYTES_OF_VALUE: u64 = 384;

/// Bodies of up to this many values are not counted.
const FEW_VALUES: usize = 256;

/// Share of the memory that callers of one network may hold, whatever their workspaces.
const OF_ONE_NETWORK: Cap = Cap::Eighths(7);

/// Time a request waits for memory before it is refused.
const WAIT: Duration = Duration::from_secs(20);

/// `Retry-After` of a refused request, in seconds.
const RETRY_AFTER: u64 = 2;

/// Bounds of the time a body takes to arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyTimes {
    /// Longest time between two pieces.
    pub(crate) stall: Duration,
    /// Longest time from the first piece to the last.
    pub(crate) total: Duration,
    /// Bytes a second: a slower body is given up once the time of a pause is over.
    pub(crate) least_rate: u64,
}

impl BodyTimes {
    /// Returns the time within which a body must have ended if this many bytes have arrived.
    fn allowed(self, received: u64) -> Duration {
        let earned = Duration::from_secs(received / self.least_rate.max(1));
        self.stall.saturating_add(earned).min(self.total)
    }
}

/// The sender of a request body: the owner whose share of memory it counts against, and the network it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    /// The workspace or person of the request; `None` if everybody may call the operation.
    pub(crate) owner: Option<Owner>,
    /// The network that the request comes from.
    pub(crate) network: CallerNetwork,
}

impl Sender {
    fn shares(self, of_owner: Cap, of_network: Cap) -> Vec<Share> {
        let network = Owner::Network(self.network);
        match self.owner {
            Some(owner) => {
                vec![Share { owner, cap: of_owner }, Share { owner: network, cap: of_network }]
            }
            None => vec![Share { owner: network, cap: of_owner }],
        }
    }
}

/// The memory that bodies may take.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes: FairSemaphore,
    values: FairSemaphore,
    long: FairSemaphore,
}

/// The bytes of a body with their permit of the budget. The permit is returned with the last copy of the bytes, which
/// may be in a thread that still decodes them after their request has ended.
struct BudgetedBytes {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that hold a permit as long as any copy of them exists.
pub(crate) fn holding(bytes: Bytes, permit: Option<Permit>) -> Bytes {
    match permit {
        Some(permit) => Bytes::from_owner(BudgetedBytes { bytes, _permit: permit }),
        None => bytes,
    }
}

/// Failure to read a body.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// Answered with an error.
    Refused(Error),
    /// The body did not arrive in time.
    TimedOut,
    /// The peer broke the protocol, or went away and does not read the answer either.
    Broken,
}

impl From<Error> for BodyError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl BodyBudget {
    /// A budget of this many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let semaphore =
            |permits| FairSemaphore::new(Bounds { permits, waiting: WAITING, waiting_of_one: WAITING_OF_ONE });
        Self { bytes: semaphore(bytes), values: semaphore(bytes / BYTES_OF_VALUE), long: semaphore(LONG_AT_ONCE) }
    }

    /// Number of times that a request has waited for memory or for its turn.
    pub(crate) fn waits(&self) -> u64 {
        self.bytes.waits() + self.values.waits() + self.long.waits()
    }

    /// Bytes taken at the moment.
    pub(crate) fn used(&self) -> u64 {
        self.bytes.held()
    }

    /// Takes memory for a body that is read elsewhere; nothing for a small one.
    pub(crate) async fn hold(&self, length: u64, sender: Sender) -> Result<Option<Permit>, Error> {
        if length <= SMALL {
            return Ok(None);
        }
        // A body larger than the whole budget gets all of it.
        let shares = sender.shares(Cap::AsMuchAsIsLeft, OF_ONE_NETWORK);
        in_time(self.bytes.acquire(shares, length)).await.map(Some)
    }

    /// Waits for the turn to decode a body; only long bodies wait.
    pub(crate) async fn turn(&self, length: usize, sender: Sender) -> Result<Option<Permit>, Error> {
        if length < LONG {
            return Ok(None);
        }
        // A turn ends soon, so nothing is kept back for others: they are next.
        in_time(self.long.acquire(sender.shares(Cap::All, Cap::All), 1)).await.map(Some)
    }

    /// The body with its turn to be decoded.
    pub(crate) async fn in_turn(&self, body: Bytes, sender: Sender) -> Result<Bytes, Error> {
        let turn = self.turn(body.len(), sender).await?;
        Ok(holding(body, turn))
    }

    /// Counts the values of a body that is JSON, and takes the memory for them. A request that waits here holds memory
    /// for the bytes, but never waits for one that wants more bytes.
    async fn count(&self, body: Bytes, sender: Sender) -> Result<Bytes, Error> {
        if !matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
            return Ok(body);
        }
        let counted = if body.len() as u64 <= SMALL {
            count_values(&body)
        } else {
            let text = body.clone();
            spawn_blocking(move || count_values(&text)).await.map_err(Error::internal)?
        };
        let values = counted.ok_or(Error::TooManyValues)?;
        if values <= FEW_VALUES {
            return Ok(body);
        }
        let shares = sender.shares(Cap::AsMuchAsIsLeft, OF_ONE_NETWORK);
        let permit = in_time(self.values.acquire(shares, values as u64)).await?;
        Ok(holding(body, Some(permit)))
    }

    /// Reads a body that must be JSON if it is not empty.
    pub(crate) async fn receive<B>(
        &self,
        body: B,
        limit: usize,
        is_json: bool,
        times: BodyTimes,
        sender: Sender,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let body = self.receive_bytes(body, limit, is_json, times, sender).await?;
        Ok(self.count(body, sender).await?)
    }

    async fn receive_bytes<B>(
        &self,
        body: B,
        limit: usize,
        is_json: bool,
        times: BodyTimes,
        sender: Sender,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = body.size_hint().exact();
        match announced {
            Some(0) => return Ok(Bytes::new()),
            Some(length) if length > limit as u64 => return Err(Error::PayloadTooLarge { limit }.into()),
            Some(_) if !is_json => return Err(Error::UnsupportedMediaType.into()),
            _ => {}
        }
        let mut held = self.hold(announced.unwrap_or(0), sender).await?;
        let mut pieces = Pieces::new(body, times);
        let Some(first) = pieces.next().await? else { return Ok(Bytes::new()) };
        if !is_json {
            return Err(Error::UnsupportedMediaType.into());
        }
        if announced == Some(first.len() as u64) {
            return Ok(holding(first, held));
        }
        let mut whole =
            Vec::with_capacity(announced.map_or(first.len(), |length| usize::try_from(length).unwrap_or(0)));
        let mut piece = Some(first);
        while let Some(bytes) = piece {
            if whole.len() + bytes.len() > limit {
                return Err(Error::PayloadTooLarge { limit }.into());
            }
            let counted = announced.is_some() || held.is_some();
            if !counted && (whole.len() + bytes.len()) as u64 > SMALL {
                // No length was announced: take the maximum, so that no request ever waits for memory while it holds
                // some.
                held = self.hold(limit as u64, sender).await?;
            }
            whole.extend_from_slice(&bytes);
            piece = pieces.next().await?;
        }
        Ok(holding(whole.into(), held))
    }
}

/// Reads and drops the rest of a body, if it is short: then the connection can be used again. Returns true if the end
/// was reached.
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

async fn in_time(permit: impl Future<Output = Result<Permit, Overloaded>>) -> Result<Permit, Error> {
    match timeout(WAIT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Error::Unavailable { retry_after: RETRY_AFTER }),
    }
}

/// The body of a request, of any type.
pub(crate) type RequestBody = dyn Body<Data = Bytes, Error = Broken> + Send + Unpin;

/// A body that broke off. The peer is gone, so the reason is not kept.
#[derive(Debug)]
pub(crate) struct Broken;

/// Any body as a [`RequestBody`].
pub(crate) struct Erased<B>(pub(crate) B);

impl<B: Body + Unpin> Body for Erased<B> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        // Nothing is copied where the data is `Bytes` already.
        let whole = |frame: Frame<B::Data>| frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
        Poll::Ready(frame.map(|frame| frame.map(whole).map_err(|_| Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The pieces of a body, in time.
pub(crate) struct Pieces<B> {
    body: B,
    times: BodyTimes,
    began: Option<Instant>,
    received: u64,
}

impl<B: Body<Data = Bytes> + Unpin> Pieces<B> {
    pub(crate) const fn new(body: B, times: BodyTimes) -> Self {
        Self { body, times, began: None, received: 0 }
    }

    /// The next piece that is not empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        // Most bodies arrive together with their head; a timer is made only for those that do not.
        let mut timer: Pin<&mut Option<Sleep>> = pin!(None);
        poll_fn(|cx| {
            loop {
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) if !data.is_empty() => {
                            self.received += data.len() as u64;
                            return Poll::Ready(Ok(Some(data)));
                        }
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
                timer.set(Some(sleep_until((now + self.times.stall).min(began + self.times.allowed(self.received)))));
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
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    const TIMES: BodyTimes = BodyTimes { stall: Duration::from_secs(1), total: Duration::from_secs(5), least_rate: 10 };

    fn sender(number: u8) -> Sender {
        Sender { owner: None, network: CallerNetwork::of([192, 0, 2, number].into()) }
    }

    fn chunked(pieces: Vec<Bytes>) -> impl Body<Data = Bytes, Error = std::convert::Infallible> + Unpin {
        StreamBody::new(futures_util::stream::iter(pieces.into_iter().map(|piece| Ok(http_body::Frame::data(piece)))))
    }

    #[tokio::test]
    async fn announced_and_chunked_bodies_arrive_whole() {
        let budget = BodyBudget::new(1 << 20);
        let announced = budget.receive(Full::from("{}"), 10, true, TIMES, sender(1)).await.unwrap();
        assert_eq!(announced, "{}");
        let pieces = vec![Bytes::from(vec![b'a'; 50_000]), Bytes::new(), Bytes::from(vec![b'b'; 50_000])];
        let received = budget.receive(chunked(pieces), 200_000, true, TIMES, sender(1)).await.unwrap();
        assert_eq!(received.len(), 100_000);
        assert_eq!(budget.used(), 200_000);
        drop(received);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn what_is_too_long_or_no_json_is_refused() {
        let budget = BodyBudget::new(1 << 20);
        let refused = |result: Result<Bytes, BodyError>| match result {
            Err(BodyError::Refused(error)) => error.code(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(budget.receive(Full::from("12345"), 4, false, TIMES, sender(1)).await), "payload_too_large");
        assert_eq!(
            refused(budget.receive(Full::from("1234"), 4, false, TIMES, sender(1)).await),
            "unsupported_media_type"
        );
        let pieces = || vec![Bytes::from("123"), Bytes::from("45")];
        assert_eq!(refused(budget.receive(chunked(pieces()), 4, true, TIMES, sender(1)).await), "payload_too_large");
        assert_eq!(
            refused(budget.receive(chunked(pieces()), 9, false, TIMES, sender(1)).await),
            "unsupported_media_type"
        );
        assert!(budget.receive(chunked(vec![]), 4, false, TIMES, sender(1)).await.unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_given_up() {
        let budget = BodyBudget::new(1 << 20);
        let stalled = StreamBody::new(futures_util::stream::pending::<Result<http_body::Frame<Bytes>, String>>());
        assert!(matches!(budget.receive(stalled, 4, true, TIMES, sender(1)).await, Err(BodyError::TimedOut)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_memory_in_time_is_told_to_come_back() {
        let budget = BodyBudget::new(100_000);
        let body = || Full::from(vec![b'a'; 90_000]).boxed();
        let first = budget.receive(body(), 1 << 20, true, TIMES, sender(1)).await.unwrap();
        let second = budget.receive(body(), 1 << 20, true, TIMES, sender(2)).await;
        assert!(matches!(second, Err(BodyError::Refused(Error::Unavailable { .. }))));
        drop(first);
        assert!(budget.receive(body(), 1 << 20, true, TIMES, sender(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_sender_leaves_memory_for_others() {
        let budget = BodyBudget::new(1 << 20);
        let workspace =
            |number: u8| Sender { owner: Some(Owner::Workspace(WorkspaceId::from_bytes([number; 16]))), ..sender(9) };
        let body = || Full::from(vec![b'a'; 200 << 10]).boxed();
        let take = async |sender| budget.receive(body(), 1 << 20, true, TIMES, sender).await;
        let _held = (take(workspace(1)).await.unwrap(), take(workspace(1)).await.unwrap());
        // It would hold more than it leaves free; the same network may, for another workspace.
        assert!(matches!(take(workspace(1)).await, Err(BodyError::Refused(Error::Unavailable { .. }))));
        let _other = take(workspace(2)).await.unwrap();
        let _third = take(workspace(3)).await.unwrap();
        assert!(take(workspace(4)).await.is_err(), "an eighth is for other networks");
        assert!(take(sender(2)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn values_are_counted_and_held_as_long_as_the_bytes() {
        let budget = BodyBudget::new(1000 * BYTES_OF_VALUE);
        let body = |values: usize| Full::from(format!("[{}]", vec!["0"; values - 1].join(",")));
        let take = async |values| budget.receive(body(values), 1 << 20, true, TIMES, sender(1)).await;
        let few = take(FEW_VALUES).await.unwrap();
        assert_eq!(budget.values.held(), 0);
        let many = take(900).await.unwrap();
        assert_eq!((budget.values.held(), budget.used()), (900, 0));
        assert!(matches!(take(300).await, Err(BodyError::Refused(Error::Unavailable { .. }))));
        let copy = many.slice(1..);
        drop((few, many));
        assert_eq!(budget.values.held(), 900);
        drop(copy);
        assert_eq!(budget.values.held(), 0);
        assert!(matches!(take(100_001).await, Err(BodyError::Refused(Error::TooManyValues))));
        // A body that is no JSON has no values.
        let text = budget.receive(Full::from(",".repeat(2000)), 1 << 20, true, TIMES, sender(1)).await.unwrap();
        assert_eq!((text.len(), budget.values.held()), (2000, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_given_up() {
        let budget = BodyBudget::new(1 << 20);
        let trickle = |bytes: usize| {
            StreamBody::new(Box::pin(futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some((Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from(vec![b'a'; bytes]))), ()))
            })))
        };
        let began = Instant::now();
        // Twenty bytes a second are required and ten arrive: it ends after the first pause and the time that its bytes
        // earned.
        let slow = budget.receive(trickle(1), 1 << 20, true, BodyTimes { least_rate: 20, ..TIMES }, sender(1)).await;
        assert!(matches!(slow, Err(BodyError::TimedOut)));
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        // However fast, it ends after the total time.
        let fast = budget.receive(trickle(100), 1 << 20, true, TIMES, sender(1)).await;
        assert!(matches!(fast, Err(BodyError::TimedOut)));
        assert!(began.elapsed() >= TIMES.total, "{:?}", began.elapsed());
    }
}
