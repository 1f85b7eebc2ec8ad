//! Calls of the operations on one kind of resource, for commands that need several of them.

use messaging_engine::ops::Endpoint;
use serde_json::Value;

use crate::command::operation;
use crate::failure::Failure;
use crate::request::Request;
use crate::target::Target;

/// Number of resources that are read, at most; a workspace with more is not kept in files.
const MAX_RESOURCES: usize = 2_000;

/// The operations on one kind of resource.
pub(crate) struct Resources {
    /// The noun of the commands.
    pub(crate) noun: &'static str,
    /// The server or database on which they are carried out.
    pub(crate) target: Target,
}

/// An operation by the words of its command.
pub(crate) fn endpoint(noun: &'static str, verb: &str) -> Result<&'static Endpoint, Failure> {
    operation::endpoint(&[noun, verb]).ok_or_else(|| Failure::usage(format!("this version has no {noun} {verb}")))
}

impl Resources {
    /// Calls an operation, and hands back its answer.
    pub(crate) async fn call(
        &self,
        verb: &str,
        id: Option<&str>,
        query: &[(&str, &str)],
        body: Value,
    ) -> Result<Value, Failure> {
        self.call_of(self.noun, verb, id, query, body).await
    }

    /// Calls an operation on another kind of resource, on the same server or database, and returns its answer.
    async fn call_of(
        &self,
        noun: &'static str,
        verb: &str,
        id: Option<&str>,
        query: &[(&str, &str)],
        body: Value,
    ) -> Result<Value, Failure> {
        let mut request = Request::new(endpoint(noun, verb)?);
        request.path.extend(id.map(|id| ("id".to_owned(), id.to_owned())));
        request.query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !body.is_null() {
            request.body = body.to_string().into();
        }
        let reply = self.target.call(&request).await?;
        if !reply.status.is_success() {
            return Err(Failure::Refused(reply));
        }
        Ok(serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    /// Returns all resources of the kind, as the listing shows them.
    pub(crate) async fn list(&self) -> Result<Vec<Value>, Failure> {
        self.all(self.noun).await
    }

    /// Returns all resources of another kind on the same server or database.
    pub(crate) async fn all(&self, noun: &'static str) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = vec![("limit", "200")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let mut page = self.call_of(noun, "list", None, &query, Value::Null).await?;
            if let Value::Array(items) = page["data"].take() {
                all.extend(items);
            }
            cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
            if all.len() > MAX_RESOURCES {
                return Err(Failure::usage(format!("the workspace has more than {MAX_RESOURCES} {noun}s")));
            }
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Creates the resource of a file, or changes the one of `matching` that exists. Returns it, and the action taken.
    pub(crate) async fn save(
        &self,
        file: &str,
        matching: &[&Value],
        body: Value,
    ) -> Result<(Value, &'static str), Failure> {
        let (saved, result) = match matching {
            [] => (self.call("create", None, &[], body).await, "created"),
            [one] => {
                let saved = self.call("update", one["id"].as_str(), &[], body).await;
                let is_new = saved.as_ref().is_ok_and(|saved| saved["version"] != one["version"]);
                (saved, if is_new { "changed" } else { "unchanged" })
            }
            several => {
                let ids: Vec<_> = several.iter().filter_map(|one| one["id"].as_str()).collect();
                let (noun, ids) = (self.noun, ids.join(", "));
                return Err(Failure::usage(format!("{file}: several {noun}s have this name: {ids}")));
            }
        };
        let refused = |_: &Failure| crate::output::note(&format!("{file} is not accepted; what came before it is"));
        Ok((saved.inspect_err(refused)?, result))
    }
}
