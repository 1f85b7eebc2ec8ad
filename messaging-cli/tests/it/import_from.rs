//! `import-from`: exports of other products, written here the way those products write them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, Server, directory, run};

/// A directory with files.
fn export(files: &[(&str, &str)]) -> TempDir {
    let directory = directory();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// An installation without a server at work, on whose database the commands work.
struct Installation {
    data: TempDir,
}

impl Installation {
    fn new() -> Self {
        let data = directory();
        // Makes the workspace that the commands find.
        assert_eq!(Server::dev(data.path()).stop(), Some(0));
        Self { data }
    }

    fn command(&self, words: &[&str]) -> Ran {
        run([words, &["--data", self.data.path().to_str().unwrap()]].concat())
    }

    fn import(&self, product: &str, export: &Path, more: &[&str]) -> Value {
        let words = [&["import-from", product, export.to_str().unwrap(), "--json"], more].concat();
        self.command(&words).expect(0).json()
    }

    /// All resources of a kind, without those that an installation begins with.
    fn all(&self, noun: &str) -> Vec<Value> {
        let page = self.command(&[noun, "list", "--limit", "200", "--json"]).expect(0).json();
        page["data"].as_array().unwrap().clone()
    }

    /// Everything that an import changes, as the API shows it.
    fn everything(&self) -> Value {
        json!(["contact", "list", "suppression", "template"].map(|noun| self.all(noun)))
    }

    fn contact(&self, email: &str) -> Value {
        let all = self.all("contact");
        all.into_iter().find(|contact| contact["email"] == email).unwrap_or_else(|| panic!("no contact {email}"))
    }

    /// The names of the lists that a contact is on.
    fn lists_of(&self, email: &str) -> Vec<String> {
        let (contact, lists) = (self.contact(email), self.all("list"));
        let is_member = |list: &&Value| contact["list_ids"].as_array().unwrap().contains(&list["id"]);
        let mut names: Vec<_> =
            lists.iter().filter(is_member).map(|list| list["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// Addresses with why they are suppressed.
    fn suppressed(&self) -> Vec<String> {
        let text = |one: &Value| format!("{} {}", one["address"], one["reason"]).replace('"', "");
        let mut all: Vec<_> = self.all("suppression").iter().map(text).collect();
        all.sort();
        all
    }

    fn rendered(&self, template: &str, email: &str) -> String {
        let contact = self.contact(email);
        let words = ["template", "render", template, "--contact-id", contact["id"].as_str().unwrap()];
        self.command(&words).expect(0).stdout
    }
}

fn names_with(all: &Value, members: [&str; 2]) -> Vec<String> {
    let of = |one: &Value| format!("{} {}", one[members[0]], one[members[1]]).replace('"', "");
    all.as_array().unwrap().iter().map(of).collect()
}

fn listmonk() -> TempDir {
    let subscribers = "uuid,email,name,attributes,status,created_at,updated_at\r\n\
        9d1c0001-aaaa,Ann@Example.com,Ann Ødegård,\"{\"\"city\"\": \"\"Oslo\"\", \"\"shoe size\"\": 38}\",enabled,2024-02-01 10:00:00 +0000 UTC,2024-02-01 10:00:00 +0000 UTC\r\n\
        9d1c0002-aaaa,bob@example.com,\"Bob \"\"Bo\"\" Berg\",{},blocklisted,2024-02-01 10:00:00 +0000 UTC,2024-02-01 10:00:00 +0000 UTC\r\n\
        9d1c0003-aaaa,not an address,Xaver,{},enabled,2024-02-01 10:00:00 +0000 UTC,2024-02-01 10:00:00 +0000 UTC\r\n\
        9d1c0004-aaaa,,Nobody,{},enabled,2024-02-01 10:00:00 +0000 UTC,2024-02-01 10:00:00 +0000 UTC\r\n\
        9d1c0005-aaaa,cyd@example.com,Cyd,{},disabled,2024-02-01 10:00:00 +0000 UTC,2024-02-01 10:00:00 +0000 UTC\r\n";
    let membership = |name: &str, status: &str, optin: &str| json!({"name": name, "subscription_status": status, "optin": optin, "type": "public"});
    let people = json!({"data": {"query": "", "total": 2, "per_page": 50, "page": 1, "results": [
        {"id": 1, "uuid": "9d1c0001-aaaa", "email": "ann@example.com", "name": "Ann Ødegård", "status": "enabled",
         "attribs": {"city": "Oslo", "shoe size": 38},
         "lists": [membership("News", "confirmed", "double"), membership("VIP", "unconfirmed", "double")]},
        {"id": 6, "uuid": "9d1c0006-aaaa", "email": "dan@example.com", "name": "Dan", "status": "enabled", "attribs": {},
         "lists": [membership("News", "unconfirmed", "single")]}]}});
    let lists =
        json!({"data": {"results": [{"id": 1, "name": "News"}, {"id": 2, "name": "VIP"}, {"id": 3, "name": "Empty"}]}});
    let bounce = |email: &str, kind: &str| json!({"type": kind, "email": email, "source": "api", "meta": {}});
    let bounces = json!({"data": {"results": [bounce("dan@example.com", "hard"), bounce("ann@example.com", "soft"),
        bounce("eve@example.com", "complaint")], "total": 3}});
    let body = "<p>Hi {{ .Subscriber.FirstName | default \"there\" }} of {{ .Subscriber.Attribs.city }}</p>\n\
        {{ if eq .Subscriber.Attribs.city \"Oslo\" }}<p>Hei</p>{{ end }}{{ TrackView }}\
        <a href=\"{{ UnsubscribeURL }}\">{{ L.T \"email.unsub\" }}</a>";
    let templates = json!({"data": [
        {"id": 1, "name": "Welcome", "type": "tx", "subject": "Welcome, {{ .Subscriber.Name }}", "body": body},
        {"id": 2, "name": "Old", "type": "campaign", "subject": "", "body": "<p>\n{{ now | date \"2006\" }}</p>"}]});
    export(&[
        ("subscribers.csv", subscribers),
        ("subscribers.json", &people.to_string()),
        ("lists.json", &lists.to_string()),
        ("bounces.json", &bounces.to_string()),
        ("templates.json", &templates.to_string()),
        ("readme.txt", "notes"),
    ])
}

#[test]
fn an_export_of_listmonk_is_brought_over_and_a_second_time_changes_nothing() {
    let (installation, export) = (Installation::new(), listmonk());
    let refused = installation.data.path().join("refused.csv");
    let more = ["--errors", refused.to_str().unwrap()];
    let first = installation.import("listmonk", export.path(), &more);
    let counts = |report: &Value| (report["contacts"].clone(), report["suppressions"].clone());
    assert_eq!(
        counts(&first),
        (
            json!({"read": 6, "created": 4, "updated": 1, "refused": 1}),
            json!({"read": 3, "created": 3, "already_listed": 0, "refused": 0})
        ),
        "{first}"
    );
    assert_eq!(names_with(&first["lists"], ["name", "result"]), ["Empty created", "News created", "VIP created"]);
    assert_eq!(names_with(&first["templates"], ["name", "result"]), ["Welcome created", "Old refused"]);
    let reason = "html, line 2: {{ now | date \"2006\" }}: now is not understood";
    assert_eq!(first["templates"][1]["reason"], reason);
    let errors = fs::read_to_string(&refused).unwrap();
    let lines = [
        "file,row,code,message",
        "subscribers.csv,4,invalid_format,email: not an email address",
        "subscribers.csv,5,required,there is no email address",
    ];
    let mut written: Vec<_> = errors.lines().collect();
    written.sort_unstable();
    assert_eq!(written, lines);
    assert_eq!(first["refused"]["count"], 2);
    let notes = first["notes"].to_string();
    for note in ["readme.txt is not read", "bounces.json: 1 soft bounces", "subscribers.json: 1 memberships"] {
        assert!(notes.contains(note), "{notes}");
    }

    let ann = installation.contact("ann@example.com");
    assert_eq!(ann["consent"]["marketing_email"], true);
    let attributes = json!({"city": "Oslo", "shoe_size": 38, "name": "Ann Ødegård", "first_name": "Ann",
        "last_name": "Ødegård", "listmonk_uuid": "9d1c0001-aaaa"});
    assert_eq!(ann["attributes"], attributes);
    for (email, consent, suppressed) in [
        ("bob@example.com", false, json!(["email"])),
        ("cyd@example.com", false, json!([])),
        ("dan@example.com", true, json!(["email"])),
    ] {
        let contact = installation.contact(email);
        assert_eq!(
            (&contact["consent"]["marketing_email"], &contact["suppressed_channels"]),
            (&json!(consent), &suppressed),
            "{email}"
        );
    }
    assert_eq!(installation.contact("bob@example.com")["attributes"]["name"], "Bob \"Bo\" Berg");
    assert_eq!(
        [installation.lists_of("ann@example.com"), installation.lists_of("dan@example.com")],
        [["News"], ["News"]]
    );
    let suppressed = ["bob@example.com unsubscribe", "dan@example.com bounce", "eve@example.com complaint"];
    assert_eq!(installation.suppressed(), suppressed);
    let shown = installation.rendered("Welcome", "ann@example.com");
    assert!(shown.contains("<p>Hi Ann of Oslo</p>\n<p>Hei</p>") && shown.contains(">Unsubscribe</a>"), "{shown}");

    let before = installation.everything();
    let second = installation.import("listmonk", export.path(), &[]);
    assert_eq!(
        counts(&second),
        (
            json!({"read": 6, "created": 0, "updated": 5, "refused": 1}),
            json!({"read": 3, "created": 0, "already_listed": 3, "refused": 0})
        )
    );
    assert_eq!(names_with(&second["lists"], ["name", "result"]), ["Empty found", "News found", "VIP found"]);
    assert_eq!(names_with(&second["templates"], ["name", "result"]), ["Welcome unchanged", "Old refused"]);
    assert_eq!(installation.everything(), before);
}

#[test]
fn a_dry_run_needs_neither_server_nor_database_and_says_what_would_be_refused() {
    let export = listmonk();
    let empty = directory();
    let words = ["import-from", "listmonk", export.path().to_str().unwrap(), "--dry-run"];
    let dry = |more: &[&str]| {
        let mut command = crate::support::program();
        command.args(words).args(more).current_dir(empty.path());
        command.output().unwrap()
    };
    let output = dry(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["files"].as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|file| {
            ["rows", "contacts", "suppressions", "left_out", "refused"].map(|name| file[name].as_u64().unwrap())
        })
        .collect();
    // bounces.json, lists.json, subscribers.csv, subscribers.json
    assert_eq!(rows, [[3, 0, 2, 1, 0], [3, 0, 0, 0, 0], [5, 3, 1, 0, 2], [2, 2, 0, 1, 0]], "{report}");
    assert_eq!((&report["dry_run"], &report["contacts"]["read"]), (&json!(true), &json!(5)));
    assert_eq!(report["refused"]["first"][0]["row"], 4);
    assert_eq!(names_with(&report["templates"], ["name", "result"]), ["Welcome read", "Old refused"]);
    assert!(report["notes"].to_string().contains("contacts whose address was there before: 1"), "{report}");

    let output = dry(&[]);
    let (told, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(told.starts_with("FILE") && told.contains("lists: Empty (read), News (read), VIP (read)"), "{told}");
    assert!(said.contains("template Old (templates.json) is left out: html, line 2"), "{said}");
    assert!(said.contains("subscribers.csv, row 4: email: not an email address (invalid_format)"), "{said}");
    assert_eq!(empty.path().read_dir().unwrap().count(), 0);
}

#[test]
fn who_left_one_audience_of_mailchimp_is_not_won_back_by_another() {
    let installation = Installation::new();
    let columns = "\"Email Address\",\"First Name\",\"Last Name\",\"Favorite colour\",MEMBER_RATING,OPTIN_TIME,CONFIRM_IP,TIMEZONE,LAST_CHANGED,LEID,EUID,NOTES,TAGS";
    let subscribed = format!(
        "\u{feff}{columns}\n\
         ann@example.com,Ann,Åberg,\"blue, deep\",4,\"2021-03-04 10:11:12\",192.0.2.7,Europe/Oslo,\"2024-01-01 00:00:00\",1,a1,,\"\"\"gold\"\",\"\"early bird\"\"\"\n\
         broken@,Bea,,,2,,,,,2,b2,,\n\
         fay@example.com,Fay,,red,2,,,,,3,c3,\"likes \"\"tea\"\"\",\n"
    );
    let unsubscribed = format!(
        "{columns},UNSUB_TIME,UNSUB_REASON\nlee@example.com,Lee,,,2,,,,,4,d4,,,\"2023-01-01 00:00:00\",NORMAL\n"
    );
    let cleaned = format!("{columns},CLEAN_TIME\nold@example.com,Old,,,2,,,,,5,e5,,,\"2023-01-01 00:00:00\"\n");
    let shop = format!(
        "{columns}\nlee@example.com,Lee,,,2,,,,,4,d4,,\nann@example.com,Ann,Åberg,\"blue, deep\",4,\"2021-03-04 10:11:12\",192.0.2.7,Europe/Oslo,,1,a1,,\"\"\"gold\"\",\"\"early bird\"\"\"\n"
    );
    let spring = "<html><head><title>*|MC:SUBJECT|*</title></head><body><!--*|IF:MC_PREVIEW_TEXT|*--><i>*|MC_PREVIEW_TEXT|*</i><!--*|END:IF|*-->\n\
        <p>Dear *|IF:FNAME|**|FNAME|**|ELSE:|*friend*|END:IF|*</p><p>*|FAVORITE_COLOUR|*</p>\n\
        <p>*|LIST:ADDRESS|*</p><a href=\"*|UNSUB|*\">Leave</a></body></html>";
    let export = export(&[
        ("Club/subscribed_email_audience_export_1a2b.csv", &subscribed),
        ("Club/unsubscribed_email_audience_export_1a2b.csv", &unsubscribed),
        ("Club/cleaned_email_audience_export_1a2b.csv", &cleaned),
        ("Shop/subscribed_email_audience_export_3c4d.csv", &shop),
        ("templates/spring.html", spring),
        ("templates/odd.html", "<p>\n\n*|ARCHIVE|*</p>"),
    ]);
    let set = ["--set", "LIST:ADDRESS=1 High Street, Leeds"];
    let report = installation.import("mailchimp", export.path(), &set);
    assert_eq!(report["contacts"], json!({"read": 7, "created": 4, "updated": 2, "refused": 1}), "{report}");
    assert_eq!(names_with(&report["templates"], ["name", "result"]), ["odd refused", "spring created"], "{report}");
    assert!(report["templates"][0]["reason"].as_str().unwrap().starts_with("html, line 3: *|ARCHIVE|*"), "{report}");
    assert_eq!(installation.suppressed(), ["lee@example.com unsubscribe", "old@example.com bounce"]);
    let consent = |email: &str| installation.contact(email)["consent"]["marketing_email"].clone();
    assert_eq!(consent("ann@example.com"), true);
    assert_eq!(consent("lee@example.com"), false);
    assert_eq!(consent("old@example.com"), Value::Null);
    let ann = installation.contact("ann@example.com");
    assert_eq!((&ann["tags"], &ann["timezone"]), (&json!(["gold", "early bird"]), &json!("Europe/Oslo")));
    let attributes = json!({"first_name": "Ann", "last_name": "Åberg", "favorite_colour": "blue, deep",
        "optin_time": "2021-03-04 10:11:12", "confirm_ip": "192.0.2.7"});
    assert_eq!(ann["attributes"], attributes);
    assert_eq!(installation.contact("fay@example.com")["attributes"]["notes"], "likes \"tea\"");
    assert_eq!(installation.lists_of("ann@example.com"), ["Club", "Shop"]);
    assert_eq!(installation.lists_of("lee@example.com"), ["Shop"]);
    let shown = installation.rendered("spring", "ann@example.com");
    for part in ["Dear Ann</p><p>blue, deep</p>", "1 High Street, Leeds", "<title></title>"] {
        assert!(shown.contains(part), "{shown}");
    }
    let before = installation.everything();
    let again = installation.import("mailchimp", export.path(), &set);
    assert_eq!(again["contacts"], json!({"read": 7, "created": 0, "updated": 6, "refused": 1}));
    assert_eq!(installation.everything(), before);
}

#[test]
fn an_export_of_sendgrid_is_brought_over_by_a_server() {
    let data = directory();
    let server = Server::dev(data.path());
    let contacts = "EMAIL,FIRST_NAME,LAST_NAME,CITY,PHONE_NUMBER,EXTERNAL_ID,CONTACT_ID,CREATED_AT,Plan\n\
        ann@example.com,Ann,Ånes,\"Oslo, NO\",+4722334455,u-1,7c01,2024-01-01T00:00:00Z,pro\n\
        bob@example.com,Bob,,,+4722334455,,7c02,2024-01-01T00:00:00Z,\n\
        nobody at home,,,,,,7c03,2024-01-01T00:00:00Z,\n";
    let buyers = "email,first_name,contact_id\r\nbob@example.com,Bob,7c02\r\n";
    let html = "<p>Hello {{insert first_name \"default=you\"}}</p>{{#if items}}<ul>{{#each items}}<li>{{this.name}}: {{price}}</li>{{/each}}</ul>{{/if}}<a href=\"{{{unsubscribe}}}\">x</a>";
    let receipt = json!({"id": "d-1", "name": "Receipt", "generation": "dynamic", "versions": [
        {"id": "v1", "active": 0, "subject": "Old", "html_content": "{{formatDate x}}"},
        {"id": "v2", "active": 1, "subject": "Order {{order.id}}", "html_content": html, "plain_content": "Order {{order.id}}"}]});
    let list = json!({"result": [{"id": "d-2", "name": "Listed only", "generation": "dynamic", "versions": [{"id": "v3", "active": 1, "subject": "x"}]}]});
    let export = export(&[
        ("contacts_export.csv", contacts),
        ("lists/Buyers.csv", buyers),
        (
            "suppression_bounces.csv",
            "status,reason,email,created\n5.1.1,\"550 5.1.1 user, unknown\",gone@example.com,1700000000\n",
        ),
        ("suppression_spam_reports.csv", "email,ip,created\neve@example.com,192.0.2.1,1700000000\n"),
        ("suppression_unsubscribes.json", &json!([{"created": 1_700_000_000, "email": "Bob@example.com"}]).to_string()),
        ("suppression_invalid_emails.csv", "reason,email,created\nbad,\"x@\",1\nno mx,z@example.net,1\n"),
        ("suppression_blocks.csv", "status,reason,email,created\n4.0.0,busy,ann@example.com,1\n"),
        ("templates/receipt.json", &receipt.to_string()),
        ("templates/list.json", &list.to_string()),
    ]);
    let import =
        || server.command(&["import-from", "sendgrid", export.path().to_str().unwrap(), "--json"]).expect(0).json();
    let report = import();
    // Bob is in both files of contacts and in the file of unsubscribed contacts.
    assert_eq!(report["contacts"], json!({"read": 6, "created": 3, "updated": 2, "refused": 1}), "{report}");
    assert_eq!(report["suppressions"], json!({"read": 4, "created": 4, "already_listed": 0, "refused": 0}));
    assert_eq!(names_with(&report["templates"], ["name", "result"]), ["Listed only refused", "Receipt created"]);
    let found = |email: &str| {
        let page = server.command(&["contact", "list", "--email", email, "--json"]).expect(0).json();
        page["data"][0].clone()
    };
    let ann = found("ann@example.com");
    assert_eq!((&ann["external_id"], &ann["consent"]["marketing_email"]), (&json!("u-1"), &Value::Null));
    // People who share a telephone stay two people.
    assert_eq!((&ann["phone"], &ann["attributes"]["phone_number"]), (&Value::Null, &json!("+4722334455")));
    assert_eq!((&ann["attributes"]["city"], &ann["attributes"]["plan"]), (&json!("Oslo, NO"), &json!("pro")));
    let bob = found("bob@example.com");
    assert_eq!((&bob["consent"]["marketing_email"], bob["list_ids"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!(found("eve@example.com")["consent"]["marketing_email"], false);
    let page = server.command(&["suppression", "list", "--json"]).expect(0).json();
    let mut listed = names_with(&page["data"], ["address", "reason"]);
    listed.sort();
    let expected = [
        "bob@example.com unsubscribe",
        "eve@example.com complaint",
        "gone@example.com bounce",
        "z@example.net invalid",
    ];
    assert_eq!(listed, expected);
    let vars = export.path().join("vars");
    fs::write(&vars, r#"{"items":[{"name":"Tea","price":3}],"order":{"id":17}}"#).unwrap();
    let shown = server.command(&["template", "render", "Receipt", "--vars", vars.to_str().unwrap()]).expect(0).stdout;
    assert!(shown.contains("<p>Hello you</p><ul><li>Tea: 3</li></ul>"), "{shown}");
    fs::remove_file(vars).unwrap();
    let again = import();
    assert_eq!(again["contacts"], json!({"read": 6, "created": 0, "updated": 5, "refused": 1}));
    assert_eq!(again["suppressions"]["already_listed"], 4);
    assert_eq!(found("ann@example.com"), ann);
    assert_eq!(found("bob@example.com"), bob);
}

#[test]
fn files_of_our_own_formats_are_brought_over_in_many_requests() {
    let installation = Installation::new();
    installation.command(&["custom-field", "create", "--key", "age", "--type", "number", "--json"]).expect(0);
    installation.command(&["list", "create", "--name", "VIP", "--json"]).expect(0);
    let mut contacts = String::from("\u{feff}email;external_id;attributes.age;consent.marketing_email;lists\r\n");
    for n in 0..2_300 {
        write!(contacts, "user-{n}@example.com;u-{n};{};true;\"All;Half {}\"\r\n", n % 90, n % 2).unwrap();
    }
    contacts.push_str("user-7@example.com;u-8;1;true;\r\n;;;maybe;\r\nx@example.com;x;old;true;\r\n");
    let export = export(&[
        ("contacts.csv", &contacts),
        ("lists/VIP.csv", "email\nuser-1@example.com\n"),
        (
            "suppressions.csv",
            "channel,address,reason\nemail,user-2@example.com,unsubscribe\nsms,+14155550123,bounce\nsms,nobody,bounce\nemail,a@example.com,silly\n",
        ),
        ("templates/hello/template.toml", "name = \"Hello\"\nsubject = \"Hi {{ name }}\"\n"),
        ("templates/hello/template.txt", "Hello {{ name }}"),
        ("templates/broken/template.toml", "subject = \"Hi\"\n"),
        ("templates/broken/template.html", "{{ broken"),
    ]);
    let report = installation.import("csv-dir", export.path(), &[]);
    assert_eq!(report["contacts"], json!({"read": 2303, "created": 2300, "updated": 1, "refused": 2}), "{report}");
    assert_eq!(report["suppressions"], json!({"read": 4, "created": 2, "already_listed": 0, "refused": 2}));
    assert_eq!(
        names_with(&report["lists"], ["name", "result"]),
        ["All created", "Half 0 created", "Half 1 created", "VIP found"]
    );
    assert_eq!(names_with(&report["templates"], ["name", "result"]), ["broken refused", "Hello created"]);
    assert_eq!(report["refused"]["count"], 5);
    let listed = installation.all("list");
    let count = |name: &str| listed.iter().find(|list| list["name"] == name).unwrap()["contact_count"].clone();
    assert_eq!(["All", "Half 0", "Half 1", "VIP"].map(count), [2300, 1150, 1150, 1]);
    let page = |email: &str| {
        let page = installation.command(&["contact", "list", "--email", email, "--json"]).expect(0).json();
        page["data"][0].clone()
    };
    let (one, two) = (page("user-1@example.com"), page("user-2@example.com"));
    assert_eq!((&one["attributes"]["age"], &one["consent"]["marketing_email"]), (&json!(1), &json!(true)));
    assert_eq!((&two["consent"]["marketing_email"], &two["suppressed_channels"]), (&json!(false), &json!(["email"])));
    let again = installation.import("csv-dir", export.path(), &[]);
    assert_eq!(again["contacts"], json!({"read": 2303, "created": 0, "updated": 2301, "refused": 2}));
    assert_eq!([page("user-1@example.com"), page("user-2@example.com")], [one, two]);
    assert_eq!(installation.all("list"), listed);
}

#[test]
fn what_cannot_be_read_is_said_and_changes_nothing() {
    let installation = Installation::new();
    let refused = |product: &str, files: &[(&str, &str)], words: &[&str]| {
        let export = export(files);
        let ran = installation.command(&["import-from", product, export.path().to_str().unwrap()]).expect(2);
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {ran:?}");
        }
        assert_eq!(ran.stdout, "");
    };
    let good = ("subscribers-1.csv", "email,status\nann@example.com,blocklisted\n");
    refused("listmonk", &[("people.csv", "email\n")], &["holds no file of listmonk", "subscribers*.csv"]);
    refused(
        "listmonk",
        &[good, ("subscribers-2.csv", "name,status\nAnn,enabled\n")],
        &["subscribers-2.csv", "no column email", "name, status"],
    );
    refused(
        "listmonk",
        &[good, ("subscribers-2.csv", "email,status\n\"ann@example.com,enabled\n")],
        &["quotation mark in row 2"],
    );
    refused("listmonk", &[good, ("subscribers.json", "{\"data\":")], &["subscribers.json", "not the JSON"]);
    refused("mailchimp", &[("subscribed_1.csv", "")], &["subscribed_1.csv", "it is empty"]);
    refused("csv-dir", &[("contacts.csv", "name\nAnn\n")], &["no column email or phone or external_id"]);
    let ran = installation.command(&["import-from", "sendgrid", "/does/not/exist"]).expect(2);
    assert!(ran.stderr.contains("there is no directory /does/not/exist"), "{ran:?}");
    let latin = directory();
    fs::write(latin.path().join("contacts.csv"), b"email,first_name\nann@example.com,\xC5se\n").unwrap();
    let ran = installation.command(&["import-from", "sendgrid", latin.path().to_str().unwrap(), "--json"]).expect(2);
    assert_eq!(ran.json()["error"]["code"], "usage");
    assert!(ran.stderr.contains("not UTF-8 (row 2)"), "{ran:?}");
    run(["import-from", "hubspot", "/tmp"]).expect(2);
    assert_eq!(installation.everything(), json!([[], [], [], []]));

    // Two lists with the same name are ambiguous.
    for _ in 0..2 {
        installation.command(&["list", "create", "--name", "News", "--json"]).expect(0);
    }
    let before = installation.everything();
    refused("listmonk", &[good, ("lists/News.csv", good.1)], &["several lists are called News"]);
    assert_eq!(installation.everything(), before);
}
