//! Admits and calls operations: the part of a front end that matters here.

use messaging_core::ids::WorkspaceId;
use messaging_engine::ops::{self, Request};
use messaging_engine::{App, Caller, Error};
use serde_json::Value;

use crate::requests::Call;

/// The answer that a caller gets to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) replayed: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// Calls an operation in a workspace, as its operator.
pub(crate) async fn call(app: &App, workspace: WorkspaceId, call: &Call, key: Option<&str>) -> Result<Answer, Error> {
    let endpoint = ops::all().iter().find(|endpoint| endpoint.id == call.operation).ok_or(Error::RouteNotFound)?;
    let mut parameters: Vec<_> = call.path.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if endpoint.is_in_workspace() {
        parameters.push(("workspace_id".to_owned(), workspace.to_string()));
    }
    let caller = Caller::Operator(Some(workspace));
    let admitted = app.admit(caller, endpoint, &parameters, None).await?;
    let body = if call.body.is_null() { Vec::new() } else { call.body.to_string().into_bytes() };
    let request = Request {
        path: &ops::fill_path(endpoint.path, &parameters),
        path_parameters: parameters,
        body: body.into(),
        idempotency_key: key.map(str::as_bytes),
        ..Request::default()
    };
    let answer = admitted.run(request).await?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Ok(Answer { status: answer.status.as_u16(), body, replayed: answer.replayed })
}
