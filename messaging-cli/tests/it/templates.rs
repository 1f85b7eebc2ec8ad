//! Templates as files.

use std::fs;

use serde_json::Value;

use crate::support::{Server, directory};

#[test]
fn templates_are_pushed_pulled_and_rendered() {
    let data = directory();
    let server = Server::dev(data.path());
    let files = directory();
    let write = |path: &str, text: &str| {
        let path = files.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("order/template.toml", "name = \"Order\"\nsubject = \"Order {{ id }}\"\n");
    write("order/template.html", "<p>Hi {{ name }}</p>\n");
    write("code/template.toml", "channel = \"sms\"\n");
    write("code/template.txt", "Your code is {{ code }}");
    let body = "<mj-body><mj-section><mj-column><mj-text>{{ a }}</mj-text></mj-column></mj-section></mj-body>";
    write("news/template.toml", "subject = \"News\"\ninline_css = false\n");
    write("news/template.mjml", &format!("<mjml>{body}</mjml>"));
    write("notes.txt", "no template");
    let directory_of = files.path().to_str().unwrap();
    let push = || server.command(&["template", "push", directory_of, "--json"]).expect(0);
    let results = |ran: &Value| -> Vec<String> {
        let rows = ran["data"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {} {}", row["folder"], row["version"], row["result"]).replace('"', "")).collect()
    };
    let pushed = push();
    assert_eq!(results(&pushed.json()), ["code 1 created", "news 1 created", "order 1 created"]);
    assert!(pushed.stderr.contains("order: there is no unsubscribe_url"), "{pushed:?}");
    assert_eq!(results(&push().json()), ["code 1 unchanged", "news 1 unchanged", "order 1 unchanged"]);
    write("order/template.txt", "Hello {{ name }}");
    assert_eq!(results(&push().json()), ["code 1 unchanged", "news 1 unchanged", "order 2 changed"]);

    let vars = files.path().join("vars.json");
    fs::write(&vars, r#"{"name":"Ann <3","id":17}"#).unwrap();
    let vars = vars.to_str().unwrap();
    let shown = server.command(&["template", "render", "Order", "--vars", vars]).expect(0);
    assert_eq!(shown.stdout, "<p>Hi Ann &lt;3</p>\n");
    let text = server.command(&["template", "render", "Order", "--vars", vars, "--part", "text"]).expect(0);
    assert_eq!(text.stdout, "Hello Ann <3\n");
    let missing = server.command(&["template", "render", "code", "--json"]).expect(0);
    assert_eq!(missing.json()["missing_variables"][0], "code");
    assert!(missing.stderr.contains("code"));
    server.command(&["template", "render", "nosuch"]).expect(2);

    let pulled = directory();
    let target = pulled.path().join("new");
    let pull = |target: &std::path::Path| {
        server.command(&["template", "pull", target.to_str().unwrap(), "--json"]).expect(0).json()
    };
    assert_eq!(pull(&target)["data"].as_array().unwrap().len(), 3);
    let read = |path: &str| fs::read_to_string(target.join(path)).unwrap();
    assert_eq!(read("order/template.html"), "<p>Hi {{ name }}</p>\n");
    assert_eq!(read("order/template.txt"), "Hello {{ name }}");
    assert_eq!(read("news/template.mjml"), format!("<mjml>{body}</mjml>"));
    assert!(!target.join("news/template.html").exists());
    assert!(read("news/template.toml").contains("inline_css = false"));
    let back = server.command(&["template", "push", target.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(results(&back), ["code 1 unchanged", "news 1 unchanged", "order 2 unchanged"]);
    // The folder of another name stays the template's.
    fs::rename(target.join("order"), target.join("mine")).unwrap();
    pull(&target);
    assert!(target.join("mine/template.html").exists() && !target.join("order").exists());

    write("order/template.html", "{{ broken");
    let refused = server.command(&["template", "push", directory_of]).expect(1);
    assert!(refused.stderr.contains("line 1") && refused.stderr.contains("order"), "{refused:?}");
    write("code/template.toml", "chanel = \"sms\"\n");
    let unread = server.command(&["template", "push", directory_of]).expect(2);
    assert!(unread.stderr.contains("template.toml"), "{unread:?}");
}
