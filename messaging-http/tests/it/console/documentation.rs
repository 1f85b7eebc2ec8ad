//! The reference page of the API in a browser.

use super::filled;
use super::page::Page;

#[tokio::test]
async fn a_link_into_the_reference_opens_its_operation_and_the_search_finds_others() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let shown = "[...document.querySelectorAll('details.operation:not([hidden])')]
        .filter((operation) => !operation.closest('section').hidden).map((operation) => operation.id)";
    page.browser.open(&format!("{}/docs#sendMessage", page.origin)).await;
    let opened = "return [...document.querySelectorAll('details.operation[open]')].map((operation) => operation.id)";
    assert_eq!(page.browser.run(opened, &[]).await, serde_json::json!(["sendMessage"]));
    let search = "const field = document.getElementById('search');
        field.value = 'merge contacts';
        field.dispatchEvent(new Event('input'));
        return field.hidden";
    assert_eq!(page.browser.run(search, &[]).await, false);
    let found = page.browser.run(&format!("return {shown}"), &[]).await;
    let found: Vec<_> = found.as_array().unwrap().iter().filter_map(|id| id.as_str()).collect();
    assert!(found.contains(&"mergeContacts") && found.len() < 10, "{found:?}");
    assert_eq!(page.faults().await, [""; 0]);
}
