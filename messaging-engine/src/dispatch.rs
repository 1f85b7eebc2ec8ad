//! Calling an operation in this process, without HTTP.

use serde_json::{Map, Value};

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;
use crate::ops::invoke::invoke;
use crate::ops::{Operation, Output as _, Request, fill_path};

impl App {
    /// Carries out an operation in this process, without HTTP. `path` holds the path's parameters.
    pub async fn call<O: Operation>(
        &self,
        caller: &Caller,
        path: &O::Path,
        query: &O::Query,
        body: &O::Body,
    ) -> Result<O::Output, Error> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let members = |value: Value| match value {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let path_parameters: Vec<_> = members(serde_json::to_value(path).map_err(Error::internal)?)
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        // Made at once, because the serializer cannot go along to another thread.
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(
                members(serde_json::to_value(query).map_err(Error::internal)?)
                    .iter()
                    .map(|(name, value)| (name, text(value))),
            )
            .finish();
        let in_path = path_parameters.iter().find(|(name, _)| name == "workspace_id").map(|(_, id)| id.as_str());
        let (caller, workspace) = self.admit(caller.clone(), O::ACCESS, in_path, None).await?;
        let path = fill_path(O::PATH, &path_parameters);
        let answer = invoke::<O>(Request {
            app: self,
            caller: &caller,
            workspace,
            path: &path,
            query: &query,
            body: serde_json::to_vec(body).map_err(Error::internal)?.into(),
            path_parameters,
            idempotency_key: None,
            client: None,
            lenient: false,
        })
        .await?;
        O::Output::from_body(&answer.body).map_err(Error::internal)
    }
}
