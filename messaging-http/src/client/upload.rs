//! Uploads of a file, a piece at a time.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use http_body::Frame;
use http_body_util::{BodyExt as _, Either, StreamBody};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::{Client, ClientError, Success};

/// Bytes that are read and sent at a time.
const PIECE: usize = 64 << 10;

/// Longest time of an upload, the same as that for which its link is valid.
const TIMEOUT: Duration = Duration::from_hours(1);

impl Client {
    /// Uploads a file to a URL that the API returned for it, without credentials. `sent` gets the number of further
    /// bytes sent.
    pub async fn upload(
        url: &str,
        content_type: &str,
        file: &Path,
        length: u64,
        sent: impl Fn(u64) + Send + 'static,
    ) -> Result<Success, ClientError> {
        let content_type = HeaderValue::try_from(content_type).map_err(|_| ClientError::Url)?;
        let client = Self::new(url)?.timeout(TIMEOUT);
        let open = File::open(file).await.map_err(|error| ClientError::File(error.into()))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type), (CONTENT_LENGTH, HeaderValue::from(length))]);
        // No more than was announced, even if the file grows.
        let pieces = stream::try_unfold((open.take(length), sent), |(mut open, sent)| async move {
            let mut piece = vec![0; PIECE];
            let read = open.read(&mut piece).await?;
            piece.truncate(read);
            sent(read as u64);
            Ok::<_, io::Error>((read > 0).then(|| (Frame::data(Bytes::from(piece)), (open, sent))))
        });
        client.exchange(Method::PUT, "", Either::Right(StreamBody::new(pieces).boxed_unsync()), headers).await
    }
}
