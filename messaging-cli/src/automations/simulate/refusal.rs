//! What the engine refuses of a simulation, as if the API had refused it.

use bytes::Bytes;
use http::StatusCode;
use messaging_engine::Error;
use messaging_http::standalone::rehearsal::FilesFault;

use crate::failure::Failure;
use crate::reply::Reply;

/// What was wrong with what no file says.
pub(super) fn source_of(fault: FilesFault) -> Error {
    match fault {
        FilesFault::Automation(error)
        | FilesFault::Template(_, error)
        | FilesFault::Contact(_, error)
        | FilesFault::Event(_, error)
        | FilesFault::DryRun(error) => error,
        other => Error::Internal(Box::new(other)),
    }
}

/// What the engine refuses is shown as if the API had refused it.
pub(super) fn refused(error: Error) -> Failure {
    if let Error::Internal(cause) = &error {
        return Failure::unreachable("the simulation failed", cause.as_ref());
    }
    Failure::Refused(Reply {
        status: StatusCode::from_u16(error.status().as_u16()).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY),
        content_type: Some("application/json".to_owned()),
        retry_after: None,
        replayed: false,
        body: Bytes::from(error.to_body("-").to_string()),
    })
}
