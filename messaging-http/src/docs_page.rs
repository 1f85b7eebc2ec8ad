//! The reference page: the OpenAPI document as plain HTML, with nothing loaded from anywhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#2563eb}\
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem}\
h1{margin:.5rem 0}h2{border-bottom:1px solid var(--line);margin-top:2.5rem;text-transform:capitalize}\
nav a{display:inline-block;margin-right:1rem}a{color:var(--accent)}\
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:.25rem .75rem}\
summary{cursor:pointer;padding:.25rem 0}summary span{opacity:.8}\
code,pre{font:14px/1.5 ui-monospace,monospace}\
pre{background:var(--soft);border-radius:6px;overflow-x:auto;padding:.75rem}\
.method{display:inline-block;font-weight:700;min-width:4.5rem;text-transform:uppercase}\
table{border-collapse:collapse;width:100%}td,th{border-top:1px solid var(--line);padding:.25rem .5rem;text-align:left;vertical-align:top}\
h4{margin:.75rem 0 .25rem}";

/// Schemas are shown this deep; recursion would never end.
const MAX_DEPTH: usize = 8;

/// The page of a document.
pub(crate) fn render(document: &Value) -> String {
    let mut page = String::with_capacity(64 * 1024);
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
    let tags: Vec<_> =
        document["tags"].as_array().into_iter().flatten().filter_map(|tag| tag["name"].as_str()).collect();
    for tag in &tags {
        let _ = write!(page, "<a href=\"#{0}\">{0}</a>", escape(tag));
    }
    page.push_str("</nav>");
    for tag in &tags {
        let _ = write!(page, "<h2 id=\"{0}\">{0}</h2>", escape(tag));
        for (path, method, operation) in groups.get(tag).into_iter().flatten() {
            write_operation(&mut page, document, path, method, operation);
        }
    }
    page.push_str("</body></html>\n");
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

fn write_operation(page: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let _ = write!(
        page,
        "<details id=\"{id}\"><summary><span class=\"method\">{method}</span><code>{}</code> <span>{}</span></summary>\
         <p>{}</p>",
        escape(path),
        text(&operation["summary"]),
        prose(&operation["description"]),
        id = text(&operation["operationId"]),
    );
    if let Some(command) = operation["x-command"].as_str() {
        let _ = write!(page, "<p>Command: <code>{}</code></p>", escape(command));
    }
    write_parameters(page, document, &operation["parameters"]);
    if let Some(body) = operation.get("requestBody") {
        let optional = if body["required"] == true { "" } else { " (may be left out)" };
        let _ = write!(page, "<h4>Body{optional}</h4>");
        write_schema(page, document, &body["content"]["application/json"]["schema"]);
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        if !status.starts_with('2') {
            continue;
        }
        let _ = write!(page, "<h4>Answer {} {}</h4>", escape(status), text(&response["description"]));
        for (media, content) in response["content"].as_object().into_iter().flatten() {
            if let Some(schema) = content.get("schema") {
                write_schema(page, document, schema);
            } else {
                let _ = write!(page, "<p><code>{}</code></p>", escape(media));
            }
        }
    }
    let refused: Vec<_> = operation["responses"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|status| !status.starts_with('2'))
        .map(String::as_str)
        .collect();
    let _ = write!(page, "<p>May also answer {}.</p></details>", refused.join(", "));
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

fn write_schema(page: &mut String, document: &Value, schema: &Value) {
    let mut lines = String::new();
    outline(&mut lines, document, schema, 0);
    let _ = write!(page, "<pre>{}</pre>", escape(lines.trim_end()));
}

/// Writes a schema as an indented outline: one line per member.
fn outline(lines: &mut String, document: &Value, schema: &Value, depth: usize) {
    let schema = unwrap_list(document, schema);
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(members) = schema["properties"].as_object().filter(|_| depth < MAX_DEPTH) else {
        if depth == 0 {
            let _ = writeln!(lines, "{}", kind(document, schema));
        }
        return;
    };
    for (name, member) in members {
        let resolved = resolve(document, member);
        let about = member["description"].as_str().or_else(|| resolved["description"].as_str()).unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        let mark = if required.contains(&name.as_str()) { "*" } else { "" };
        let _ = writeln!(lines, "{}{name}{mark}: {}   {about}", "  ".repeat(depth), kind(document, member));
        outline(lines, document, member, depth + 1);
    }
}

/// The schema whose members are worth showing: that of an item for a list, the other one of a nullable.
fn unwrap_list<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolve(document, schema);
    if let Some(items) = schema.get("items") {
        return unwrap_list(document, items);
    }
    match one_of(schema) {
        Some(choices) if choices.len() == 1 => unwrap_list(document, choices[0]),
        _ => schema,
    }
}

/// The choices of an `anyOf` or `oneOf`, null aside.
fn one_of(schema: &Value) -> Option<Vec<&Value>> {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    Some(choices.iter().filter(|choice| choice["type"] != "null").collect())
}

/// A schema in a word or two.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().map(short).collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return short(only);
    }
    if let Some(choices) = one_of(schema) {
        let mut kinds: Vec<_> = choices.iter().map(|choice| kind(document, choice)).collect();
        kinds.dedup();
        return kinds.join(" | ");
    }
    let names: Vec<_> = match &schema["type"] {
        Value::String(only) => vec![only.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any"],
    };
    let names = names.into_iter().map(|name| match (name, schema["format"].as_str()) {
        ("array", _) => format!("[{}]", kind(document, &schema["items"])),
        ("string", Some(format)) => format.to_owned(),
        (name, _) => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(" | ")
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?)) {
        Some(target) => target,
        None => value,
    }
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
        for loading in ["<script", "src=", "@import", "url(", "<link"] {
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
