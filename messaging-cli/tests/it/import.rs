//! `contact import`, by a server and without one.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Server, directory, run, wait_or_tell};

const TEXT: &str = "E-Mail;Name;phone\r\nann@example.com;Ann;+14155550123\r\nnobody;Bob;\r\nann@example.com;Anna;\r\n";

fn file(directory: &TempDir, text: &str) -> String {
    let path: PathBuf = directory.path().join("people.csv");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_imported_by_a_server() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let file = file(&files, TEXT);
    let refused = files.path().join("refused.csv");
    let refused = refused.to_str().unwrap();
    let mapping = ["--map", "E-Mail=email", "--map", "Name=attributes.name"];
    let words = ["contact", "import", &file, "--dedup-keys", "email", "--errors", refused];
    let ran = server.command(&[&words[..], &mapping, &["--json"]].concat()).expect(0);
    let import = ran.json();
    assert_eq!((&import["status"], &import["filename"]), (&json!("completed"), &json!("people.csv")));
    assert_eq!([&import["created"], &import["updated"], &import["failed"]], [1, 1, 1]);
    let error = json!({"row": 3, "column": "E-Mail", "code": "invalid_format", "message": "not an email address"});
    assert_eq!(import["errors"], json!([error]));
    let report = "row,column,code,message\r\n3,E-Mail,invalid_format,not an email address\r\n";
    assert_eq!(fs::read_to_string(refused).unwrap(), report);

    let ran = server.command(&[&words[..], &mapping].concat()).expect(0);
    assert_eq!(ran.stdout, "0 created, 2 updated, 1 refused\n");
    assert!(ran.stderr.contains("row 3, E-Mail: not an email address (invalid_format)"), "{}", ran.stderr);
    let id = import["import_id"].as_str().unwrap();
    assert_eq!(server.command(&["import", "errors", id]).expect(0).stdout, report);

    // Nothing in it is a contact.
    let ran = server.command(&["contact", "import", &file, "--map", "phone="]).expect(1);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no column is an external_id"), "{ran:?}");
    assert!(ran.stderr.contains("say in --map which they are"), "{ran:?}");
    let ran = server.command(&["contact", "import", &file, "--map", "phone=", "--json"]).expect(1);
    assert_eq!(ran.json()["status"], "failed");
    let ran = server.command(&["contact", "import", &file, "--map", "E-Mail=mail", "--json"]).expect(1);
    assert_eq!(ran.json()["error"]["details"]["errors"][0]["pointer"], "/mapping/E-Mail");
    server.command(&["contact", "import", "/does/not/exist.csv"]).expect(2);
    server.command(&["contact", "import", &file, "--map", "email"]).expect(2);
    server.command(&["contact", "import", &file, "--dedup-keys", "name"]).expect(2);
}

#[test]
fn a_file_is_imported_without_a_server_and_beside_one() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let path = data.path().to_str().unwrap();
    let file = file(&files, TEXT);
    let import = |expected: [u64; 3]| {
        let words = ["contact", "import", &file, "--map", "E-Mail=email", "--data", path, "--json"];
        let import = run(words).expect(0).json();
        assert_eq!(
            [&import["created"], &import["updated"], &import["failed"]].map(|count| count.as_u64().unwrap()),
            expected
        );
        // A server beside the command removes the file in a job that ends after the import.
        wait_or_tell(|| match fs::read_dir(data.path().join("uploads")).unwrap().count() {
            0 => Ok(()),
            files => Err(format!("{files} files are left")),
        });
    };
    import([1, 1, 1]);
    assert_eq!(server.stop(), Some(0));
    import([0, 2, 1]);
    // The job that is left finds nothing to do.
    let server = Server::dev(data.path());
    import([0, 2, 1]);
    let listed = server.command(&["import", "list", "--json"]).expect(0).json();
    assert!(listed["data"].as_array().unwrap().iter().all(|import| import["status"] == "completed"));
}

#[test]
fn columns_that_nobody_named_become_attributes_and_none_is_lost_silently() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let text = "email,First name,Age,Member since,Notes\r\nann@example.com,Ann,31,2025-01-31,likes tea\r\nbob@example.com,Bob,,,\r\n";
    let file = file(&files, text);
    let import = |more: &[&str]| server.command(&[&["contact", "import", &file], more].concat());

    let dry = import(&["--dry-run", "--json"]).expect(0).json();
    assert_eq!(dry["rows"][0]["contact"]["attributes"]["Age"], "31");
    assert_eq!((&dry["columns"][2]["type"], &dry["columns"][2]["guess"]), (&json!("string"), &json!("number")));
    let dry = import(&["--dry-run", "--declare-fields", "--json"]).expect(0).json();
    assert_eq!(dry["rows"][0]["row"], 2);
    let expected = json!({"Age": 31, "Notes": "likes tea", "first_name": "Ann", "member_since": "2025-01-31"});
    assert_eq!(dry["rows"][0]["contact"]["attributes"], expected);
    let none = server.command(&["contact", "list", "--json"]).expect(0).json();
    assert_eq!(
        (&none["data"], &server.command(&["custom-field", "list", "--json"]).expect(0).json()["data"]),
        (&json!([]), &json!([]))
    );

    let chosen = import(&["--attributes", "Age,Notes"]).expect(0);
    assert_eq!(chosen.stdout, "2 created, 0 updated, 0 refused; not imported: First name, Member since\n");
    assert!(chosen.stderr.contains("column Age: attribute Age (string)"), "{chosen:?}");
    assert!(chosen.stderr.contains("--declare-fields would make these custom fields: Age number"), "{chosen:?}");
    import(&["--attributes", "Nonsense"]).expect(2);
    for more in [&[][..], &["--dry-run"]] {
        let refused = import(&[&["--map", "Plna=attributes.tier"], more].concat()).expect(2);
        let told = "--map: the file has no column \"Plna\"; it has email, First name, Age, Member since, Notes";
        assert!(refused.stderr.contains(told), "{refused:?}");
    }
    let none = import(&["--attributes", "none", "--json"]).expect(0).json();
    assert_eq!(none["not_imported"], json!(["First name", "Age", "Member since", "Notes"]));

    // Custom fields are declared only on request, and not for an import that is refused.
    let fields = || server.command(&["custom-field", "list", "--format", "{{ key }} {{ type }}"]).expect(0).stdout;
    import(&["--declare-fields", "--map", "Notes=nonsense"]).expect(1);
    assert_eq!(fields(), "");
    let all = import(&["--declare-fields", "--json"]).expect(0).json();
    assert_eq!((&all["not_imported"], all["attributes"].as_array().map(Vec::len)), (&json!([]), Some(4)));
    let ann = server.command(&["contact", "list", "--email", "ann@example.com", "--json"]).expect(0).json();
    assert_eq!(ann["data"][0]["attributes"], expected);
    let fields = fields();
    let mut fields: Vec<_> = fields.lines().collect();
    fields.sort_unstable();
    assert_eq!(fields, ["Age number", "member_since date"]);
}

#[test]
fn a_long_header_is_a_label_in_part() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let file = file(&files, &format!("email,{}\nann@example.com,7\n", "x".repeat(300)));
    server.command(&["contact", "import", &file, "--declare-fields"]).expect(0);
    let fields = server.command(&["custom-field", "list", "--json"]).expect(0).json();
    assert_eq!(fields["data"][0]["label"], "x".repeat(200));
}
