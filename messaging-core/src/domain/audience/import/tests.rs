use std::fmt::Write as _;

use super::*;

fn import() -> Import {
    Import {
        status_on_lists: NewStatus::Confirmed,
        id: "imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        filename: "a.csv".to_owned(),
        size_bytes: 1,
        sha256: "0".repeat(64),
        mapping: Mapping::new(),
        dedup_keys: IdentifierKind::ALL.to_vec(),
        state: ImportState::AwaitingUpload,
        total_rows: None,
        created: 0,
        updated: 0,
        failed: 0,
        created_at: Timestamp::from_millis(0),
    }
}

#[test]
fn every_state_against_every_move() {
    let upload = "blb_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let (early, late) = (Timestamp::from_millis(3_599_999), Timestamp::from_millis(3_600_000));
    let states = [
        ImportState::AwaitingUpload,
        ImportState::Processing { upload, cursor: Cursor::default() },
        ImportState::Completed { at: early },
        ImportState::Failed { at: early, reason: String::new() },
        ImportState::Expired,
    ];
    let mut grid = String::new();
    for state in states {
        for now in [early, late] {
            let import = Import { state: state.clone(), ..import() };
            let status = import.status(now);
            let uploaded = import
                .clone()
                .uploaded(upload, now)
                .map_or_else(|error| error.code().to_owned(), |import| format!("{:?}", import.status(now)));
            let expired = import.expire(now).map(|import| import.status(now));
            writeln!(grid, "{status:?} upload: {uploaded} expire: {expired:?}").unwrap();
        }
    }
    insta::assert_snapshot!(grid, @"
    AwaitingUpload upload: Processing expire: None
    Expired upload: link_expired expire: Some(Expired)
    Processing upload: link_expired expire: None
    Processing upload: link_expired expire: None
    Completed upload: link_expired expire: None
    Completed upload: link_expired expire: None
    Failed upload: link_expired expire: None
    Failed upload: link_expired expire: None
    Expired upload: link_expired expire: None
    Expired upload: link_expired expire: None
    ");
}
