//! Operations by a server, over HTTP.

use super::Reply;
use crate::failure::Failure;
use crate::request::Request;

/// A server and the credentials for it.
pub(super) struct Server {}

impl Server {
    /// A server by its address.
    pub(super) fn new(_url: &str, _credential: Option<&str>, _workspace: Option<&str>) -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Carries out a request.
    pub(super) async fn call(&self, _request: &Request, _path: &[(String, String)]) -> Result<Reply, Failure> {
        Err(Failure::Unreachable("not yet".to_owned()))
    }
}
