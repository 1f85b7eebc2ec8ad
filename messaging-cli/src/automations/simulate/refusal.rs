//! Errors of a simulation as failures of the command, in the form of API errors.

use bytes::Bytes;
use http::StatusCode;
use messaging_engine::Error;
use messaging_http::standalone::rehearsal::FilesFault;

use crate::failure::Failure;
use crate::reply::Reply;

/// Returns the error inside `fault`, without the file or item that it is about.
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

/// Turns an error of the engine into a failure that looks like a refusal by the API.
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
