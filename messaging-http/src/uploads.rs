//! Files for imports: `PUT /uploads/{token}`.
//!
//! Contract section 6.4. The token is the only credential. The body is passed on as it arrives and is never in memory
//! as a whole, so neither the limit of bodies nor their budget applies; its length was announced when the link was
//! made.

use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode};
use http_body::Body as _;
use messaging_engine::App;
use messaging_engine::ops::imports::ImportView;

use crate::body::{BodyError, BodyTimes, Pieces, RequestBody};
use crate::reply::{self, Reply};

/// The path.
pub(crate) const ROUTE: &str = "/uploads/{token}";

/// The method.
pub(crate) const METHOD: Method = Method::PUT;

/// Longest time for a file to arrive, the same as that for which its link is valid.
const TOTAL: Duration = Duration::from_hours(1);

/// Receives a file. Adds the number of bytes to `received`.
pub(crate) async fn answer(
    app: &App,
    token: &str,
    client: IpAddr,
    body: &mut RequestBody,
    times: BodyTimes,
    received: &mut u64,
) -> Result<Reply, BodyError> {
    let mut uploading = app.receive_upload(token, Some(client)).await?;
    if let Some(length) = body.size_hint().exact() {
        uploading.expect(length)?;
    }
    let mut pieces = Pieces::new(body, BodyTimes { total: TOTAL, ..times });
    while let Some(bytes) = pieces.next().await? {
        *received += bytes.len() as u64;
        uploading.add(&bytes).await?;
    }
    let import = ImportView::of(uploading.finish().await?, app.now(), None);
    let text = serde_json::to_vec(&import).map_err(messaging_engine::Error::internal)?;
    Ok(reply::json(StatusCode::ACCEPTED, text.into()))
}
