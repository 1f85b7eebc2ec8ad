//! A bucket of an object store with the S3 API, for the bytes of attachments.

mod http;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, Error, ObjectStore as _, ObjectStoreExt as _, RetryConfig};

use self::http::Connector;
use super::blob_rows::Objects;
use crate::files::random_name;

/// Maximum time for an operation, with its retries.
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum time during which a request is retried.
const RETRIES_END: Duration = Duration::from_secs(20);
/// Maximum number of retries of a request.
const MAX_RETRIES: usize = 3;
/// Prefix of the name of an object that is put and deleted to check the permissions.
const PROBE: &str = "messaging-probe-";

/// A bucket, and the prefix of the names of our objects in it: `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketUrl {
    bucket: String,
    /// Without a slash at either end; empty for none.
    prefix: String,
}

/// Error for a text that is not the URL of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be s3://BUCKET or s3://BUCKET/PREFIX")]
pub struct MalformedBucketUrl;

impl BucketUrl {
    /// Reads `s3://bucket/prefix`. Names of buckets are those of S3: 3 to 63 small letters, digits, points and hyphens.
    pub fn parse(text: &str) -> Result<Self, MalformedBucketUrl> {
        let rest = text.strip_prefix("s3://").ok_or(MalformedBucketUrl)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_name) || prefix.len() > 500 {
            return Err(MalformedBucketUrl);
        }
        // A name that object_store would write differently would not be found again by others.
        match Path::parse(prefix) {
            Ok(path) if path.as_ref() == prefix => Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() }),
            _ => Err(MalformedBucketUrl),
        }
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "s3://{}{slash}{}", self.bucket, self.prefix)
    }
}

/// Error for a bucket that is not usable.
#[derive(Debug, thiserror::Error)]
#[error("the bucket {url} cannot be {attempt}")]
pub struct BucketError {
    url: BucketUrl,
    attempt: &'static str,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A bucket with the client that reaches it.
#[derive(Debug, Clone)]
pub struct Bucket {
    url: BucketUrl,
    /// The URL as text.
    place: String,
    store: AmazonS3,
}

impl Bucket {
    /// Creates the client of a bucket from the variables of the AWS command line: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, and `AWS_ENDPOINT_URL` for stores other than
    /// Amazon's (with `AWS_ALLOW_HTTP=true` if it has no TLS). Without a key, the role of the machine is used.
    pub fn new(url: BucketUrl, variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, BucketError> {
        let retry =
            RetryConfig { backoff: BackoffConfig::default(), max_retries: MAX_RETRIES, retry_timeout: RETRIES_END };
        let mut builder =
            AmazonS3Builder::new().with_bucket_name(&url.bucket).with_retry(retry).with_http_connector(Connector);
        for (name, value) in variables {
            // Variables that are not about the bucket are for other programs.
            if name.starts_with("AWS_")
                && let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>()
            {
                builder = builder.with_config(key, value);
            }
        }
        match builder.build() {
            Ok(store) => Ok(Self { place: url.to_string(), url, store }),
            Err(error) => Err(BucketError { url, attempt: "used with these AWS_ variables", source: error.into() }),
        }
    }

    /// Writes, reads and deletes an object, to find out at once whether the permissions suffice.
    pub async fn check(&self) -> Result<(), BucketError> {
        // Several servers may start at the same time.
        let probe = self.path(&format!("{PROBE}{}", random_name()));
        let body = Bytes::from_static(b"messaging");
        let refused =
            |attempt| move |source: Error| BucketError { url: self.url.clone(), attempt, source: source.into() };
        let write = async { self.store.put(&probe, body.clone().into()).await };
        in_time(write).await.map_err(refused("written to"))?;
        in_time(async { self.store.get(&probe).await?.bytes().await }).await.map_err(refused("read from"))?;
        in_time(self.store.delete(&probe)).await.map_err(refused("deleted from"))
    }

    fn path_of(&self, workspace: WorkspaceId, id: BlobId) -> Path {
        self.path(&format!("{workspace}/{id}"))
    }

    fn path(&self, name: &str) -> Path {
        if self.url.prefix.is_empty() { Path::from(name) } else { Path::from(format!("{}/{name}", self.url.prefix)) }
    }

    /// Turns refusals into lasting failures; any other error may pass.
    fn failed(&self, error: Error) -> StoreError {
        match error {
            Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. } => StoreError::Failed(error.into()),
            error => {
                tracing::warn!(bucket = %self.url, error = %error, "the bucket of attachments does not work");
                StoreError::Unavailable
            }
        }
    }
}

#[async_trait]
impl Objects for Bucket {
    fn place(&self) -> &str {
        &self.place
    }

    async fn put(&self, workspace: WorkspaceId, id: BlobId, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.path_of(workspace, id);
        in_time(async { self.store.put(&path, bytes.into()).await }).await.map(drop).map_err(|error| self.failed(error))
    }

    async fn get(&self, workspace: WorkspaceId, id: BlobId, size: usize) -> Result<Bytes, StoreError> {
        let path = self.path_of(workspace, id);
        let read = async {
            let found = self.store.get(&path).await?;
            // Its content is not read first: somebody else may have put a large object there.
            if found.meta.size != size as u64 {
                return Ok(None);
            }
            found.bytes().await.map(Some)
        };
        let bytes = in_time(read).await.map_err(|error| self.failed(error))?;
        bytes.filter(|bytes| bytes.len() == size).ok_or_else(|| {
            StoreError::Failed(format!("{path} in {} is not the {size} bytes that were written", self.url).into())
        })
    }

    async fn delete(&self, blobs: &[(WorkspaceId, BlobId)]) -> Result<(), StoreError> {
        let paths: Vec<_> = blobs.iter().map(|(workspace, id)| Ok(self.path_of(*workspace, *id))).collect();
        // Up to a thousand of them are one request.
        let mut deleted = self.store.delete_stream(stream::iter(paths).boxed());
        let all = async {
            while let Some(one) = deleted.next().await {
                match one {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        in_time(all).await.map_err(|error| self.failed(error))
    }
}

/// Stops an operation that takes too long.
async fn in_time<T>(operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(PATIENCE, operation).await {
        Ok(outcome) => outcome,
        Err(elapsed) => Err(Error::Generic { store: "S3", source: elapsed.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::BucketUrl;

    #[test]
    fn buckets_are_named_as_in_s3() {
        for text in ["s3://files", "s3://files/prod", "s3://my.files-2/a/b"] {
            assert_eq!(BucketUrl::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(BucketUrl::parse("s3://files/prod/").unwrap().to_string(), "s3://files/prod");
        for text in [
            "",
            "files",
            "s3://",
            "s3://a",
            "s3://Files",
            "s3://fi_les",
            "https://files",
            "s3://files//a",
            "s3://files/../a",
            "s3://files/a\u{1}b",
        ] {
            assert!(BucketUrl::parse(text).is_err(), "{text}");
        }
    }
}
