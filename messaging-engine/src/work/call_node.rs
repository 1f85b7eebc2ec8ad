//! Job that makes the web request of an automation run: three tries, then the run continues by the branch of the
//! outcome.
//!
//! Contract sections 13.3, 13.4 "Nodes" and 15.4. The outcome is written to the run, which is then due.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use messaging_core::changes::{AutomationWrite, Changes, Expect, PutRun, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::automation::graph::{Call, NodeKind};
use messaging_core::domain::automation::run::{CallEnd, Held, Run};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::webhook::delivery::DeliveryError;
use messaging_core::ports::fetch::{FetchRequest, Protocol};
use messaging_core::ports::store::{CommitError, StoreError, Stored};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::jobs::call_node::CallNode;
use crate::services::texts::{TextFault, values_of_run};
use crate::work::automation::{aside, failed};
use crate::work::job::{Job, JobContext, JobError, back_off_after_conflict};

/// Time limit for a call (contract section 13.3).
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// Bytes of an answer that are read: it is not used.
const MAX_ANSWER: usize = 1 << 10;
/// Largest size of a request's body in bytes.
const MAX_BODY: usize = 256 << 10;
/// Waits before a call is tried again, by the number of failed tries.
const RETRIES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// Wait for a contact that is not found: it is being merged into another, or erased with its runs.
const UNKNOWN_FOR: Duration = Duration::from_secs(5);
/// Header that is the same for the tries of one visit.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Job for CallNode {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        match self.clone().call(cx).await {
            // The run would wait for ever if it were not ended.
            Err(JobError::Commit(why @ CommitError::Refused(_))) => self.fail(cx, &why).await,
            outcome => outcome,
        }
    }
}

impl CallNode {
    async fn call(self, cx: &JobContext) -> Result<(), JobError> {
        let store = cx.app.store();
        let Some(Stored { record: run, .. }) = self.awaiting(cx).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let Some(Stored { record: contact, .. }) = store.contact(run.workspace_id, run.contact_id).await? else {
            return Ok(cx.put_back(UNKNOWN_FOR, false).await?);
        };
        let plan = cx.app.automation_plan(run.workspace_id, run.automation_id, run.version).await?;
        let node = plan.as_ref().and_then(|plan| plan.graph.nodes.iter().find(|node| node.id == self.node_id));
        let Some(NodeKind::Webhook(call)) = node.map(|node| &node.kind) else {
            return self.end(cx, CallEnd::Broken("the node is not in the graph".to_owned())).await;
        };
        let shown = Redactor::new(plan.as_ref().is_some_and(|plan| !plan.masked));
        let request = match self.request(&cx.app, call, &run, (&contact, shown)).await {
            Ok(request) => request,
            Err(TextFault::Busy) => return Err(StoreError::Unavailable.into()),
            Err(TextFault::Broken(why)) => return self.end(cx, CallEnd::Broken(why)).await,
        };
        if !cx.app.may_send_from(self.workspace_id) {
            // The outcome could not be stored, and the receiver would be called again; or another server may have
            // called it.
            return Err(StoreError::Unavailable.into());
        }
        cx.hold().await?;
        let end = match cx.app.fetch().fetch(request).await {
            Ok(fetched) => CallEnd::Answered(fetched.status.as_u16()),
            Err(error) => CallEnd::Failed(word(error.into())),
        };
        match RETRIES.get(usize::from(self.failed)).filter(|_| !end.is_success()) {
            Some(wait) => {
                let next = Self { failed: self.failed + 1, ..self };
                cx.again_at(cx.app.now() + *wait, &next, Changes::default()).await
            }
            None => self.end(cx, end).await,
        }
    }

    /// Returns the run, if it still waits for this call.
    async fn awaiting(&self, cx: &JobContext) -> Result<Option<Stored<Run>>, StoreError> {
        let found = cx.app.store().run(self.workspace_id, self.automation_id, self.run_id).await?;
        Ok(found.filter(|stored| self.is_awaited(&stored.record)))
    }

    /// Writes the outcome of the call into the run, which continues.
    async fn end(self, cx: &JobContext, end: CallEnd) -> Result<(), JobError> {
        let told = |Stored { record, revision }: Stored<Run>, now| {
            let run = Run { held: Some(Held::Called(end.clone())), due_at: Some(now), ..record };
            let expect = Expect::Revision(revision);
            let (steps, messages) = (Vec::new(), Vec::new());
            vec![Write::Automation(AutomationWrite::PutRun(Box::new(PutRun { run, expect, steps, messages })))]
        };
        self.settle(cx, told).await
    }

    /// Ends the run, because the store refuses the outcome of the call.
    async fn fail(&self, cx: &JobContext, why: &CommitError) -> Result<(), JobError> {
        let ended = |stored: Stored<Run>, now| vec![aside(&cx.app, &stored.record, why), failed(&stored, now, why)];
        self.settle(cx, ended).await
    }

    /// Finishes the job with the changed run, if that still waits for it.
    async fn settle(
        &self,
        cx: &JobContext,
        writes: impl Fn(Stored<Run>, Timestamp) -> Vec<Write> + Send + Sync,
    ) -> Result<(), JobError> {
        let mut tries = 0;
        loop {
            let awaiting = self.awaiting(cx).await?;
            let changes = awaiting.into_iter().flat_map(|stored| writes(stored, cx.app.now())).collect();
            match cx.finish(changes).await {
                // A change of the contact meanwhile may have ended the run.
                Err(CommitError::Conflict) => {
                    tries += 1;
                    back_off_after_conflict(&cx.app, tries).await;
                }
                ended => return Ok(ended?),
            }
        }
    }

    async fn request(
        &self,
        app: &App,
        call: &Call,
        run: &Run,
        (contact, shown): (&Contact, Redactor),
    ) -> Result<FetchRequest, TextFault> {
        let values = values_of_run(&run.event, &Map::new(), contact, shown);
        let mut headers = HeaderMap::new();
        let mut is_json = true;
        let body = match &call.body {
            None => json!({
                "run_id": run.id, "automation_id": run.automation_id, "contact_id": run.contact_id, "event": run.event,
            })
            .to_string(),
            Some(Value::String(text)) => {
                is_json = false;
                app.render_text(text, &values).await?
            }
            Some(body) => app.render_value(body, &values).await?.to_string(),
        };
        if body.len() > MAX_BODY {
            return Err(TextFault::Broken(format!("the body came out longer than {MAX_BODY} bytes")));
        }
        let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, source) in &call.headers {
            let fault = || TextFault::Broken(format!("header {name} came out as none"));
            let value = app.render_text(source, &values).await?;
            let name: HeaderName = name.parse().map_err(|_| fault())?;
            headers.insert(name, HeaderValue::from_str(value.trim()).map_err(|_| fault())?);
        }
        let key = HeaderValue::from_str(&self.idempotency_key()).expect("ids are visible ASCII");
        headers.insert(IDEMPOTENCY_KEY, key);
        Ok(FetchRequest {
            protocol: Protocol::Http1,
            method: if call.is_put { Method::PUT } else { Method::POST },
            url: call.url.clone(),
            headers,
            body: Bytes::from(body),
            time_limit: TIME_LIMIT,
            body_limit: MAX_ANSWER,
            redirects: 0,
        })
    }
}

/// Returns the word of contract section 15.3 for an error.
fn word(error: DeliveryError) -> String {
    let word = serde_json::to_value(error).ok();
    word.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
