//! One server at a time works on a database: the real program, twice.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::support::{Server, directory, run};

#[test]
fn a_second_server_is_refused_also_through_a_link() {
    let (data, elsewhere) = (directory(), directory());
    let server = Server::dev(data.path());
    let link = elsewhere.path().join("link");
    symlink(data.path(), &link).unwrap();
    for path in [data.path(), &link] {
        let line = ["serve", "--listen", "127.0.0.1:0", "--data", path.to_str().unwrap()];
        let refused = run(line).expect(3);
        assert!(refused.stderr.contains("another messaging server works on this database"), "{refused:?}");
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_server_whose_lock_was_removed_stops_when_another_one_begins() {
    let data = directory();
    let first = Server::dev(data.path());
    fs::remove_file(data.path().join("messaging.db.lock")).unwrap();
    let second = Server::dev(data.path());
    let began = Instant::now();
    assert_eq!(first.ended(), Some(3), "it stops by itself, and says that it did not end as it should");
    assert!(began.elapsed() < Duration::from_secs(30));
    second.command(&["message", "send", "--to", "ann@example.com", "--subject", "s", "--text", "t"]).expect(0);
    assert_eq!(second.stop(), Some(0));
}
