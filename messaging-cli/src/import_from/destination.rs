//! The server or database of the command line as the [`Api`] that an import calls.

use messaging_engine::ops::{self, Endpoint};
use messaging_import::{Answer, Api, Call, Operation};
use serde_json::Value;

use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;
use crate::resources::Resources;

/// The server or database that an export is brought over to.
pub(super) struct Destination(pub(super) Resources);

/// The API operation that an import names by its id; a usage error if this version lacks it.
fn endpoint(operation: Operation) -> Result<&'static Endpoint, Failure> {
    let found = ops::all().iter().find(|endpoint| endpoint.id == operation.id());
    found.ok_or_else(|| Failure::usage(format!("this version has no operation {}", operation.id())))
}

impl Api for Destination {
    type Error = Failure;

    async fn call(&self, call: &Call) -> Result<Answer, Failure> {
        let mut request = Request::new(endpoint(call.operation)?);
        request.path.extend(call.id.iter().map(|id| ("id".to_owned(), id.clone())));
        request.body = call.body.to_string().into();
        let Reply { status, content_type, retry_after, replayed: _, body } = self.0.target.call(&request).await?;
        Ok(Answer { status, content_type, retry_after, body })
    }

    async fn all(&self, listing: Operation) -> Result<Vec<Value>, Failure> {
        let noun = endpoint(listing)?.cli.split(' ').next().unwrap_or_default();
        self.0.all(noun).await
    }

    fn is_unreachable(error: &Failure) -> bool {
        matches!(error, Failure::Unreachable(_))
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        let Answer { status, content_type, retry_after, body } = answer;
        Self { status, content_type, retry_after, replayed: false, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_an_import_is_one_of_the_api() {
        for operation in Operation::ALL {
            let endpoint = endpoint(operation).unwrap();
            assert_eq!(operation.id().starts_with("list"), endpoint.cli.ends_with(" list"), "{operation:?}");
        }
    }
}
