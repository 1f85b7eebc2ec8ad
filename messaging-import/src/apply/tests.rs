use std::collections::{HashMap, VecDeque};
use std::fs;
use std::sync::Mutex;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::{Product, ReadOptions, read};

/// Error of an API that does not answer.
#[derive(Debug, thiserror::Error)]
#[error("nobody answers")]
struct Away;

/// An API that answers as scripted; unless scripted, it accepts everything.
#[derive(Default)]
struct Scripted {
    lists: Vec<Value>,
    next: Mutex<HashMap<Operation, VecDeque<Result<Answer, Away>>>>,
    calls: Mutex<Vec<Call>>,
}

fn answer(status: u16, body: &Value) -> Answer {
    let status = StatusCode::from_u16(status).unwrap();
    Answer { status, content_type: None, retry_after: None, body: Bytes::from(body.to_string()) }
}

impl Scripted {
    fn next(&self, operation: Operation, outcome: Result<Answer, Away>) {
        self.next.lock().unwrap().entry(operation).or_default().push_back(outcome);
    }

    fn called(&self) -> Vec<Operation> {
        self.calls.lock().unwrap().iter().map(|call| call.operation).collect()
    }
}

impl Api for Arc<Scripted> {
    type Error = Away;

    async fn call(&self, call: &Call) -> Result<Answer, Away> {
        self.calls.lock().unwrap().push(call.clone());
        let next = self.next.lock().unwrap().get_mut(&call.operation).and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| {
            let count = call.body["contacts"].as_array().map_or(0, Vec::len);
            Ok(answer(201, &json!({"id": "lst_1", "created": count, "updated": 0, "failed": 0, "results": []})))
        })
    }

    async fn all(&self, listing: Operation) -> Result<Vec<Value>, Away> {
        Ok(if listing == Operation::ListLists { self.lists.clone() } else { Vec::new() })
    }

    fn is_unreachable(_: &Away) -> bool {
        true
    }
}

/// Returns an export with a list of two people, one of whom is suppressed.
fn export() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("lists")).unwrap();
    fs::write(directory.path().join("lists/News.csv"), "email\nann@example.com\nbob@example.com\n").unwrap();
    fs::write(directory.path().join("suppressions.csv"), "address,reason\nbob@example.com,bounce\n").unwrap();
    directory
}

/// Imports the export; returns the result and the rows that were refused.
async fn bring(api: &Arc<Scripted>) -> (Result<Applied, ApplyError<Away>>, Vec<Value>) {
    let directory = export();
    let plan = read(Product::CsvDir, directory.path(), &ReadOptions::default()).unwrap();
    let survey = Survey::of(&plan, None, |_| {}).unwrap();
    let mut refused = Refused::new(None).unwrap();
    let applied = apply(Arc::clone(api), (Arc::new(plan), Arc::new(survey)), &mut refused, &|_| {}).await;
    (applied, refused.finish().unwrap().1)
}

#[tokio::test]
async fn suppressions_come_before_contacts_and_these_are_on_the_new_list() {
    let api = Arc::new(Scripted::default());
    let (applied, refused) = bring(&api).await;
    let applied = applied.unwrap();
    assert_eq!(api.called(), [Operation::CreateList, Operation::CreateSuppression, Operation::BulkUpsertContacts]);
    assert_eq!(applied.lists, [json!({"name": "News", "id": "lst_1", "result": "created"})]);
    assert_eq!(applied.suppressions, Tally { created: 1, ..Tally::default() });
    assert_eq!(applied.contacts, Tally { created: 2, ..Tally::default() });
    assert!(refused.is_empty());
    let calls = api.calls.lock().unwrap();
    assert_eq!(calls[2].body["contacts"][0], json!({"email": "ann@example.com", "list_ids": ["lst_1"]}));
}

#[tokio::test]
async fn what_the_api_refuses_of_a_row_is_told_with_the_row() {
    let api = Arc::new(Scripted::default());
    let fault = json!({"code": "identifier_conflict", "message": "taken"});
    api.next(Operation::CreateSuppression, Ok(answer(422, &json!({"error": fault}))));
    let results = json!([{"index": 1, "status": "error", "error": fault}]);
    let report = json!({"created": 0, "updated": 1, "failed": 1, "results": results});
    api.next(Operation::BulkUpsertContacts, Ok(answer(200, &report)));
    let (applied, refused) = bring(&api).await;
    let applied = applied.unwrap();
    assert_eq!(applied.suppressions, Tally { refused: 1, ..Tally::default() });
    assert_eq!(applied.contacts, Tally { known: 1, refused: 1, ..Tally::default() });
    let row = |file: &str, row: u64| json!({"file": file, "row": row, "code": fault["code"], "message": "taken"});
    assert_eq!(refused, [row("suppressions.csv", 2), row("lists/News.csv", 3)]);
}

#[tokio::test]
async fn a_refusal_of_everything_ends_it() {
    let api = Arc::new(Scripted::default());
    api.next(Operation::BulkUpsertContacts, Ok(answer(403, &json!({"error": {"code": "forbidden"}}))));
    let (applied, _) = bring(&api).await;
    assert!(matches!(applied, Err(ApplyError::Refused(answer)) if answer.status == StatusCode::FORBIDDEN));
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says() {
    let api = Arc::new(Scripted::default());
    let busy = Answer { retry_after: Some("3".to_owned()), ..answer(429, &Value::Null) };
    api.next(Operation::CreateList, Ok(busy));
    let start = Instant::now();
    bring(&api).await.0.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(api.called()[..2], [Operation::CreateList; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_waited_for_once_it_has_answered() {
    let api = Arc::new(Scripted::default());
    api.next(Operation::CreateList, Err(Away));
    let (applied, _) = bring(&api).await;
    assert!(matches!(applied, Err(ApplyError::Api(Away))));
    assert_eq!(api.called().len(), 1);

    let api = Arc::new(Scripted::default());
    api.next(Operation::CreateSuppression, Err(Away));
    bring(&api).await.0.unwrap();
    assert_eq!(api.called().len(), 4);
}

#[tokio::test]
async fn lists_of_one_name_are_told_before_anything_is_changed() {
    let list = |id: &str| json!({"id": id, "name": "News"});
    let api = Arc::new(Scripted { lists: vec![list("lst_1"), list("lst_2")], ..Scripted::default() });
    let error = bring(&api).await.0.unwrap_err();
    assert_eq!(error.to_string(), "several lists are called News: lst_1, lst_2; rename all but one");
    assert!(api.called().is_empty());
}
