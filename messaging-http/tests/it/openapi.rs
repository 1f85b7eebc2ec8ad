//! The checked-in OpenAPI document is the one the server serves.

use std::path::Path;

#[test]
fn the_checked_in_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let made = messaging_http::openapi::text();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = kept.lines().zip(made.lines()).enumerate().find(|(_, (kept, made))| kept != made);
    assert!(
        kept == made,
        "docs/openapi.json is not what the operations say (first difference: {difference:?}); \
         run `UPDATE=1 cargo test -p messaging-http openapi` and look at the diff"
    );
}
