//! When something may come a second time.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use messaging_testing::{HttpRequest, ScriptedHttpServer, ScriptedSmtpServer};

use super::count;
use crate::support::wait_for;

/// Where the request of [`wait_for_web`] goes.
const KNOCK: &str = "/knock";

/// What had arrived at each kill, and whose arrival the server had told by then.
///
/// What a kill makes come again was under way at it: its outcome was not stored. So a thing comes at most once between
/// two kills, and never again after a kill at which the server called it done. How many are under way depends on the
/// disk: outcomes wait for a commit while the connection already carries the next.
#[derive(Debug, Default)]
pub(super) struct Copies(Vec<(HashMap<String, usize>, HashSet<String>)>);

impl Copies {
    /// A server was killed that had told `done` before; nothing of what it sent is on its way any more.
    pub(super) fn killed(&mut self, arrived: impl IntoIterator<Item = String>, done: HashSet<String>) {
        self.0.push((count(arrived), done));
    }

    /// Checks everything that arrived until the end, and answers how many second copies there are.
    pub(super) fn check(self, arrived: &HashMap<String, usize>) -> usize {
        let end = [(arrived.clone(), HashSet::new())];
        let mut before = HashMap::new();
        for (number, (now, _)) in self.0.iter().chain(&end).enumerate() {
            for (id, times) in now {
                let more = times - before.get(id).copied().unwrap_or_default();
                assert!(more <= 1, "{id} came {more} times after kill {number}, without another kill");
            }
            before.clone_from(now);
        }
        for (number, (before, done)) in self.0.iter().enumerate() {
            let again: Vec<_> = done.iter().filter(|id| before.get(*id) != arrived.get(*id)).collect();
            assert!(again.is_empty(), "called done before kill {}, and came again: {again:?}", number + 1);
        }
        second_copies(arrived)
    }
}

/// How many there are beyond one of each.
pub(super) fn second_copies<T: Eq + Hash>(count: &HashMap<T, usize>) -> usize {
    count.values().map(|count| count - 1).sum()
}

/// Waits until nothing is on its way to a mail server from somebody who was killed.
pub(super) fn wait_for_sink(sink: &ScriptedSmtpServer) {
    knock(sink.address(), "");
    wait_for(|| (sink.open() == 0).then_some(()));
}

/// Waits until nothing is on its way to a web server from somebody who was killed.
pub(super) fn wait_for_web(server: &ScriptedHttpServer) {
    knock(server.address(), &format!("GET {KNOCK} HTTP/1.1\r\nHost: receiver\r\n\r\n"));
    wait_for(|| (server.open() == 0).then_some(()));
}

/// The requests that a web server took.
pub(super) fn requests(server: &ScriptedHttpServer) -> impl Iterator<Item = HttpRequest> {
    server.requests().into_iter().filter(|request| request.target != KNOCK)
}

/// Connects and waits for the first octet: every connection from before has been accepted then.
fn knock(address: SocketAddr, words: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
}

/// The mails that a server took, each by its recipient and its whole header field `Message-ID`.
pub(super) fn mails(sink: &ScriptedSmtpServer) -> Vec<(String, String)> {
    let named = sink.messages().into_iter().map(|received| {
        let content = String::from_utf8(received.content).unwrap();
        let field = content.lines().find(|line| line.starts_with("Message-ID: <")).expect("every mail has one");
        (received.recipients.join(" "), field.to_owned())
    });
    named.collect()
}

/// The ids of the messages that a server took.
pub(super) fn mailed(sink: &ScriptedSmtpServer) -> impl Iterator<Item = String> {
    mails(sink).into_iter().map(|(_, field)| message_id(&field))
}

/// The message that a `Message-ID` names.
pub(super) fn message_id(field: &str) -> String {
    field.trim_start_matches("Message-ID: <").split('@').next().unwrap().to_owned()
}
