//! The rows: whom they are about, and which are refused.

use messaging_engine::work::sweep::sweep;

use super::*;

/// `created updated failed`
fn counts(import: &Value) -> String {
    assert_eq!(import["status"], "completed", "{import}");
    let [created, updated, failed] = ["created", "updated", "failed"].map(|name| import[name].as_u64().unwrap());
    assert_eq!(import["total_rows"].as_u64(), Some(created + updated + failed));
    format!("{created} {updated} {failed}")
}

#[tokio::test]
async fn rows_follow_one_another() {
    let fixture = ImportFixture::new().await;
    let text = "external_id,email,attributes.plan,tags\n\
                u-1,a@example.com,pro,x\n\
                ,A@example.com,,y\n\
                u-1,b@example.com,free,\n\
                u-2,a@example.com,,\n\
                u-1,a@example.com,,\n";
    let import = fixture.import(text.as_bytes(), json!({})).await;
    assert_eq!(counts(&import), "2 2 1");
    let contacts = fixture.all().await;
    assert_eq!((&contacts[0]["external_id"], &contacts[0]["email"]), (&json!("u-1"), &json!("b@example.com")));
    assert_eq!((&contacts[0]["attributes"], &contacts[0]["tags"]), (&json!({"plan": "free"}), &json!(["y"])));
    assert_eq!((&contacts[1]["external_id"], &contacts[1]["email"]), (&json!("u-2"), &json!("a@example.com")));
    let holder = contacts[1]["id"].as_str().unwrap();
    let line = format!("6,email,identifier_conflict,another contact has this identifier: {holder}");
    assert_eq!(fixture.errors(&import).await, [line]);
    // Once more: everything is there already.
    let again = fixture.import(text.as_bytes(), json!({})).await;
    assert_eq!(counts(&again), "0 3 2");
}

#[tokio::test]
async fn contacts_are_looked_for_by_the_keys_alone_and_in_their_order() {
    for (keys, expected) in [
        (json!(["external_id", "email", "phone"]), "0 1 0"),
        // The email address is unknown, and a new contact would have the number of the existing one.
        (json!(["email"]), "0 0 1"),
        (json!(["phone"]), "0 1 0"),
        (json!(["phone", "external_id"]), "0 1 0"),
    ] {
        let fixture = ImportFixture::new().await;
        fixture.import(b"external_id,email,phone\nu-1,a@example.com,+14155550101\n", json!({})).await;
        let import = fixture.import(b"email,phone\nnew@example.com,+14155550101\n", json!({"dedup_keys": keys})).await;
        assert_eq!(counts(&import), expected, "{keys}");
    }
    // The row names two contacts: the first key chooses one, and the other identifier is taken.
    for (keys, column) in [(["email", "external_id"], "external_id"), (["external_id", "email"], "email")] {
        let fixture = ImportFixture::new().await;
        fixture.import(b"external_id,email\nu-1,\n,a@example.com\n", json!({})).await;
        let import = fixture.import(b"external_id,email\nu-1,a@example.com\n", json!({"dedup_keys": keys})).await;
        assert_eq!(counts(&import), "0 0 1");
        assert!(fixture.errors(&import).await[0].starts_with(&format!("2,{column},identifier_conflict,")));
    }
}

#[tokio::test]
async fn refused_rows_are_told_by_row_and_column() {
    let fixture = ImportFixture::new().await;
    for (key, kind) in [("age", "number"), ("vip", "boolean"), ("since", "date")] {
        let path = format!("/workspaces/{}/custom-fields", fixture.workspace);
        assert_eq!(fixture.bed.post(&fixture.owner, &path, json!({"key": key, "type": kind})).await.summary(), "201");
    }
    let lists = format!("/workspaces/{}/lists", fixture.workspace);
    let list = fixture.bed.post(&fixture.owner, &lists, json!({"name": "News"})).await;
    let list = list["id"].as_str().unwrap();
    let text = format!(
        "Mail,=Age,VIP,Since,Lists,Sms,free\n\
         a@example.com,31,yes,2026-01-31,{list},no,17\n\
         nobody,x,maybe,yesterday,lst_1;{list},2,\n\
         ,1,,,,,\n\
         b@example.com,1,,,,,,more\n\
         \n\
         c@example.com\n"
    );
    let mapping = json!({"Mail": "email", "=Age": "attributes.age", "VIP": "attributes.vip", "Since": "attributes.since",
        "Lists": "list_ids", "Sms": "consent.sms", "free": "attributes.free"});
    let import = fixture.import(text.as_bytes(), json!({"mapping": mapping})).await;
    assert_eq!(counts(&import), "2 0 3");
    let mut errors = fixture.errors(&import).await;
    errors[..6].sort();
    assert_eq!(
        errors,
        [
            "3,\"'=Age\",invalid_type,this custom field is a number",
            "3,Lists,not_found,no such list in this workspace",
            "3,Mail,invalid_format,not an email address",
            "3,Since,invalid_format,\"this custom field is a date, YYYY-MM-DD\"",
            "3,Sms,invalid_type,\"must be true, false, 1, 0, yes or no\"",
            "3,VIP,invalid_type,this custom field is true or false",
            "4,,required,\"one of external_id, email, phone is required\"",
            "5,,syntax,\"has more cells than the header; quote cells that hold the delimiter\"",
        ]
    );
    let contacts = fixture.all().await;
    assert_eq!(contacts[0]["attributes"], json!({"age": 31, "vip": true, "since": "2026-01-31", "free": "17"}));
    assert_eq!((&contacts[0]["list_ids"], &contacts[0]["consent"]["sms"]), (&json!([list]), &json!(false)));
    // The report stays for thirty days.
    fixture.bed.clock.advance(24 * 30 * HOUR);
    sweep(&fixture.bed.app).await.unwrap();
    assert_eq!(fixture.errors(&import).await.len(), 8);
    fixture.bed.clock.advance(Duration::from_millis(1));
    sweep(&fixture.bed.app).await.unwrap();
    assert_eq!(fixture.errors(&import).await, [""; 0]);
    assert_eq!(fixture.look(&import).await["failed"], 3);
}

/// A file of so many rows; every `again`th row is about a contact of the row half as far down.
fn large(rows: u32, again: u32) -> String {
    let row = |n: u32| {
        let user = if n % again == again - 1 { n / 2 } else { n };
        format!("u-{user},user-{user}@example.com,{n}\n")
    };
    let rows: String = (0..rows).map(row).collect();
    format!("external_id,email,attributes.n\n{rows}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_file_is_like_many_short_ones() {
    let text = large(7_000, 50);
    let one = ImportFixture::new().await;
    let import = one.import(text.as_bytes(), json!({})).await;
    assert_eq!(counts(&import), "6930 70 0");

    let many = ImportFixture::new().await;
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<_> = rows.lines().collect();
    let mut updated = 0;
    for rows in rows.chunks(900) {
        let part = format!("{header}\n{}\n", rows.join("\n"));
        updated += many.import(part.as_bytes(), json!({})).await["updated"].as_u64().unwrap();
    }
    assert_eq!(updated, 70);
    let state = async |fixture: &ImportFixture| {
        let mut contacts = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = fixture.bed.get(&fixture.owner, &format!("{}?limit=200{cursor}", fixture.contacts())).await;
            let of_page = page["data"].as_array().unwrap().iter();
            contacts.extend(of_page.map(|contact| {
                [&contact["external_id"], &contact["email"], &contact["attributes"]["n"]].map(Value::to_string)
            }));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return contacts,
            }
        }
    };
    assert_eq!(state(&one).await, state(&many).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_change_meanwhile_is_not_lost() {
    let fixture = std::sync::Arc::new(ImportFixture::new().await);
    let text = large(6_000, 100);
    let announced = fixture.announce(text.as_bytes(), json!({})).await.body;
    upload(&fixture.bed.app, &announced, text.as_bytes()).await.unwrap();
    let working = tokio::spawn({
        let fixture = std::sync::Arc::clone(&fixture);
        async move { fixture.bed.app.run_until_idle().await }
    });
    let bulk = format!("{}/bulk", fixture.contacts());
    let mut by_us = 0;
    for round in 0..30_u32 {
        let item =
            |n: u32| json!({"email": format!("user-{}@example.com", (round * 199 + n * 37) % 6_000), "tags": ["ours"]});
        let contacts: Value = (0..20).map(item).collect();
        let reply = fixture.bed.post(&fixture.owner, &bulk, json!({"contacts": contacts})).await;
        assert_eq!((reply.summary().as_str(), &reply["failed"]), ("200", &json!(0)));
        by_us += reply["created"].as_u64().unwrap();
    }
    working.await.unwrap().unwrap();
    let import = fixture.look(&announced).await.body;
    let created = import["created"].as_u64().unwrap();
    assert_eq!((&import["status"], &import["failed"]), (&json!("completed"), &json!(0)));
    assert_eq!(created + import["updated"].as_u64().unwrap(), 6_000);
    assert_eq!(fixture.bed.store.contact_count(fixture.workspace).await.unwrap(), created + by_us);
    let tagged = fixture.bed.get(&fixture.owner, &format!("{}?tag=ours&limit=200", fixture.contacts())).await;
    assert_eq!(tagged["data"].as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn a_row_that_swallows_the_rest_is_refused() {
    let fixture = ImportFixture::new().await;
    let import = fixture
        .import(b"email,attributes.note\na@example.com,fine\nb@example.com,\"open\nc@example.com,x\n", json!({}))
        .await;
    assert_eq!(counts(&import), "1 0 1");
    let message = "\"a quotation mark is not closed; what follows it counts as part of this row\"";
    assert_eq!(fixture.errors(&import).await, [format!("3,,syntax,{message}")]);
}

#[tokio::test]
async fn nothing_of_an_erased_contact_is_left() {
    let fixture = ImportFixture::new().await;
    let text =
        "email,phone\nerased@example.com,nonsense\nerased@example.com,+14155550199\nb@example.com,+14155550199\n";
    let import = fixture.import(text.as_bytes(), json!({"dedup_keys": ["email"]})).await;
    assert_eq!(counts(&import), "1 0 2");
    let id = fixture.all().await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(fixture.bed.delete(&fixture.owner, &format!("{}/{id}", fixture.contacts())).await.summary(), "204");
    fixture.bed.app.run_until_idle().await.unwrap();
    fixture.bed.clock.advance(HOUR);
    fixture.bed.app.run_until_idle().await.unwrap();
    fixture.bed.store.close().await;
    let mut directories = vec![fixture.bed.directory.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            for address in [&b"erased@example.com"[..], b"4155550199"] {
                assert!(!bytes.windows(address.len()).any(|window| window == address), "{}", path.display());
            }
        }
    }
}
