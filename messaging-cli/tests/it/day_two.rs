//! The page about the second month, run as it stands there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Server, directory, run, wait_for};

/// The shell blocks of the page.
fn script() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/day-two.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_chores_of_the_second_month_work_word_for_word() {
    let (data, work) = (directory(), directory());
    let at = |name: &str| work.path().join(name);
    let path = |name: &str| at(name).to_str().unwrap().to_owned();
    for name in ["etc", "live", "backups", "bin"] {
        fs::create_dir(at(name)).unwrap();
    }
    // A workspace with the sandbox, then a server with settings in a file.
    let first = Server::dev(data.path());
    let (dev, workspace) = (first.dev_json(), first.dev_json()["workspace_id"].as_str().unwrap().to_owned());
    assert_eq!(first.stop(), Some(0));
    fs::write(at("etc/messaging.toml"), "hostname = \"mail.example.com\"\nlog = \"warn\"\n").unwrap();
    let server = Server::configured(data.path(), &at("etc/messaging.toml"), &at("log"));
    let admin = ["--data", data.path().to_str().unwrap()];
    let key = ["admin", "create-key", "--workspace", &workspace, "--name", "shop", "--scopes", "messages:send"];
    run([&key[..], &admin].concat()).expect(0);
    fs::write(at("customers.csv"), "email,plan,age,notes\nann@example.com,pro,31,x\nben@example.com,free,,\n").unwrap();
    for name in ["live/fullchain.pem", "live/privkey.pem"] {
        fs::write(at(name), name).unwrap();
    }
    // Stands for systemd.
    fs::write(at("bin/systemctl"), format!("#!/bin/sh\nkill -HUP {}\n", server.process_id())).unwrap();
    Command::new("chmod").args(["755", &path("bin/systemctl")]).status().unwrap();

    let url = format!("http://{}/v1", server.address);
    let api_key = dev["api_key"].as_str().unwrap();
    let api = |line: &[&str]| run([line, &["--url", &url, "--api-key", api_key]].concat()).expect(0);
    let send = ["message", "send", "--to", "softbounce@simulator.invalid", "--subject", "Hi", "--text", "Hi", "-q"];
    let lost = api(&send).stdout.trim().to_owned();
    let look = ["message", "list", "--status", "bounced", "--quiet"];
    wait_for(|| (api(&look).stdout.trim() == lost).then_some(()));

    let script = script()
        .replace("/var/lib/messaging", data.path().to_str().unwrap())
        .replace("/var/backups/messaging", &path("backups"))
        .replace("/etc/letsencrypt/live/mail.example.com", &path("live"))
        .replace("/etc/messaging", &path("etc"))
        // The user of the package need not be on this machine.
        .replace(" -o messaging -g messaging", "");
    let program = Path::new(env!("CARGO_BIN_EXE_messaging")).parent().unwrap();
    let ran = Command::new("bash")
        .args(["-euc", &script])
        .current_dir(work.path())
        .env("PATH", format!("{}:{}:{}", path("bin"), program.display(), std::env::var("PATH").unwrap()))
        .env("MESSAGING_URL", &url)
        .env("MESSAGING_API_KEY", api_key)
        .env("XDG_CONFIG_HOME", work.path())
        .output()
        .unwrap();
    let (told, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}\n{said}");

    // Each chore has had the effect that the page describes.
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    assert!(read("shop.key").starts_with("mk_live_"), "{told}");
    let mode = fs::metadata(at("shop.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let keys = ["admin", "list-keys", "--workspace", &workspace, "--format", "{{ name }} {{ revoked_at is none }}"];
    let keys = run([&keys[..], &admin].concat()).expect(0).stdout;
    assert!(keys.contains("shop false\n") && keys.contains("shop-2 true\n"), "{keys}");
    assert!(read("not-delivered.csv").contains(&lost), "{told}");
    assert!(told.contains(&lost) && read("week.jsonl").contains(&lost), "{told}");
    assert!(read("contacts.csv").contains(",ann@example.com,"), "{told}");
    assert!(told.contains("2 created, 0 updated, 0 refused; not imported: notes"), "{told}\n{said}");
    assert!(told.contains("ann@example.com pro\n"), "{told}");
    assert_eq!(read("etc/tls.crt"), "live/fullchain.pem");
    assert_eq!(fs::read_dir(at("backups")).unwrap().count(), 1);
    wait_for(|| server.text("/health").starts_with("HTTP/1.1 200").then_some(()));
}
