//! The reference page: the OpenAPI document as plain HTML, with nothing loaded from anywhere.

mod schema;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use self::schema::{kind, members, resolve};
use crate::openapi::examples::{self, Example};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const STYLE: &str = include_str!("docs_page/style.css");

/// The script for searching and opening; without it the page shows the same, closed.
pub(crate) const SCRIPT: &str = include_str!("docs_page/search.js");

/// The page of a document.
pub(crate) fn render(document: &Value) -> String {
    let mut page = String::with_capacity(1024 * 1024);
    let title = text(&document["info"]["title"]);
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} API</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\
         <h1>{title} API</h1><p>{}</p><p>Send <code>Authorization: Bearer …</code> with an API key or a session \
         token, and bodies as <code>application/json</code>. The same as a machine reads it: \
         <a href=\"{base}/openapi.json\">{base}/openapi.json</a>.</p><nav>",
        prose(&document["info"]["description"]),
        base = text(&document["servers"][0]["url"]),
    );
    let groups = by_tag(document);
    let tags: Vec<_> = document["tags"].as_array().into_iter().flatten().collect();
    for tag in &tags {
        let _ = write!(page, "<a href=\"#{0}\">{0}</a>", text(&tag["name"]));
    }
    page.push_str(
        "<a href=\"#errors\">errors</a></nav>\
         <input id=\"search\" type=\"search\" hidden placeholder=\"Search operations, paths and members\" aria-label=\"Search\">",
    );
    let recorded = examples::recorded();
    for tag in &tags {
        let name = text(&tag["name"]);
        let _ = write!(page, "<section><h2 id=\"{name}\">{name}</h2><p>{}</p>", prose(&tag["description"]));
        for (path, method, operation) in groups.get(tag["name"].as_str().unwrap_or_default()).into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            write_operation(
                &mut page,
                document,
                path,
                method,
                operation,
                recorded.get(id).unwrap_or(&Example::default()),
            );
        }
        page.push_str("</section>");
    }
    write_errors(&mut page, document);
    let _ = writeln!(page, "<script>{SCRIPT}</script></body></html>");
    page
}

type Row<'a> = (&'a str, &'static str, &'a Value);

fn by_tag(document: &Value) -> BTreeMap<&str, Vec<Row<'_>>> {
    let mut groups = BTreeMap::<&str, Vec<Row<'_>>>::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = operations.get(method) {
                let tag = operation["tags"][0].as_str().unwrap_or_default();
                groups.entry(tag).or_default().push((path, method, operation));
            }
        }
    }
    groups
}

fn write_operation(
    page: &mut String,
    document: &Value,
    path: &str,
    method: &str,
    operation: &Value,
    example: &Example<'_>,
) {
    let mut inside = String::new();
    let _ = write!(inside, "<p>{}", prose(&operation["description"]));
    if let Some(command) = operation["x-command"].as_str() {
        let _ = write!(inside, " Command: <code>{}</code>.", escape(command));
    }
    inside.push_str("</p><div class=\"columns\"><div>");
    write_parameters(&mut inside, document, &operation["parameters"]);
    if let Some(body) = operation.get("requestBody") {
        let optional = if body["required"] == true { "" } else { " (may be left out)" };
        let _ = write!(inside, "<h4>Body{optional}</h4>");
        let order = example.request.map_or("", |request| request.get());
        let types = body["content"].as_object().into_iter().flatten();
        if let Some((_, json)) = types.clone().find(|(media_type, _)| *media_type == "application/json") {
            write_schema(&mut inside, document, &json["schema"], order, true);
        } else {
            let names: Vec<_> = types.map(|(media_type, _)| escape(media_type)).collect();
            let _ = write!(inside, "<p>The file itself: {}.</p>", names.join(", "));
        }
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        if !status.starts_with('2') {
            continue;
        }
        let _ = write!(inside, "<h4>Answer {} {}</h4>", escape(status), text(&response["description"]));
        for (media, content) in response["content"].as_object().into_iter().flatten() {
            if let Some(schema) = content.get("schema") {
                write_schema(&mut inside, document, schema, example.answer.map_or("", |answer| answer.get()), false);
            } else {
                let _ = write!(inside, "<p><code>{}</code></p>", escape(media));
            }
        }
    }
    let refused: Vec<_> = operation["responses"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|status| !status.starts_with('2'))
        .map(|status| format!("<a href=\"#error-{0}\">{0}</a>", escape(status)))
        .collect();
    let _ = write!(inside, "<p>May also answer {}.</p></div><div>", refused.join(", "));
    for (title, example) in [("Request", example.request), ("Answer", example.answer)] {
        if let Some(example) = example {
            let _ = write!(inside, "<h4>{title}</h4><pre>{}</pre>", escape(&examples::text(example)));
        }
    }
    inside.push_str("</div></div>");
    let id = text(&operation["operationId"]);
    let summary = text(&operation["summary"]);
    let words = format!("{id} {method} {path} {summary} {}", member_names(&inside)).to_lowercase();
    let _ = write!(
        page,
        "<details class=\"operation\" id=\"{id}\" data-words=\"{}\"><summary><a class=\"link\" href=\"#{id}\" \
         title=\"Link to this operation\">#</a><span class=\"method\">{method}</span><code>{}</code> \
         <span>{summary}</span></summary>{inside}</details>",
        escape(&words),
        escape(path),
    );
}

/// The names in the tables of a part of the page, for the search.
fn member_names(html: &str) -> String {
    let names = html.split("<td><code>").skip(1).filter_map(|rest| rest.split('<').next());
    names.collect::<Vec<_>>().join(" ")
}

/// Writes the meaning of each error status, with its codes.
fn write_errors(page: &mut String, document: &Value) {
    page.push_str(
        "<section><h2 id=\"errors\">errors</h2><p>A refusal is <code>{\"error\":{\"code\",\"message\",\"request_id\",\
         \"details\"}}</code>. Codes never change; messages may.</p><table>",
    );
    for response in document["components"]["responses"].as_object().into_iter().flat_map(Map::values) {
        let status = text(&response["x-status"]);
        let _ = write!(
            page,
            "<tr id=\"error-{status}\"><td><code>{status}</code></td><td>{}</td></tr>",
            prose(&response["description"])
        );
    }
    page.push_str("</table></section>");
}

/// Writes the members of a schema as a table. Required ones are marked in bodies; answers always have all members.
fn write_schema(page: &mut String, document: &Value, schema: &Value, example: &str, is_body: bool) {
    let rows = members(document, schema, example);
    if rows.is_empty() {
        let _ = write!(page, "<p><code>{}</code></p>", escape(&kind(document, schema)));
        return;
    }
    page.push_str("<table>");
    for row in rows {
        let mark =
            if is_body && row.is_required { " <span class=\"required\" title=\"required\">*</span>" } else { "" };
        let _ = write!(
            page,
            "<tr><td><code>{}</code>{mark}</td><td><code>{}</code></td><td>{}</td></tr>",
            escape(&row.path),
            escape(&row.kind),
            prose(&Value::String(row.about)),
        );
    }
    page.push_str("</table>");
}

fn write_parameters(page: &mut String, document: &Value, parameters: &Value) {
    let parameters = parameters.as_array().map(Vec::as_slice).unwrap_or_default();
    if parameters.is_empty() {
        return;
    }
    page.push_str("<h4>Parameters</h4><table>");
    for parameter in parameters {
        let parameter = resolve(document, parameter);
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td>{}{}</td><td><code>{}</code></td><td>{}</td></tr>",
            text(&parameter["name"]),
            text(&parameter["in"]),
            if parameter["required"] == true { ", required" } else { "" },
            escape(&kind(document, &parameter["schema"])),
            prose(&parameter["description"]),
        );
    }
    page.push_str("</table>");
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

/// Text whose `code` is marked as in Markdown.
fn prose(value: &Value) -> String {
    let mut html = String::new();
    for (place, part) in text(value).split('`').enumerate() {
        let _ = if place % 2 == 1 { write!(html, "<code>{part}</code>") } else { write!(html, "{part}") };
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_operation_and_loads_nothing() {
        let page = render(&crate::openapi::document());
        for endpoint in messaging_engine::ops::all() {
            assert!(page.contains(&format!("id=\"{}\"", endpoint.id)), "{}", endpoint.id);
        }
        for loading in ["<script src", " src=", "@import", "url(", "<link", "fetch("] {
            assert!(!page.contains(loading), "{loading}");
        }
    }

    #[test]
    fn what_comes_from_the_document_is_escaped() {
        let document =
            serde_json::json!({"info": {"title": "<b>", "description": "`<i>`"}, "servers": [{"url": "/v1"}]});
        let page = render(&document);
        assert!(page.contains("<h1>&lt;b&gt; API</h1><p><code>&lt;i&gt;</code></p>"), "{page}");
    }
}
