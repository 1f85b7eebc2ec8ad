//! Rules for second copies: the cases in which a message or call may arrive twice.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use messaging_testing::{HttpRequest, ScriptedHttpServer, ScriptedSmtpServer};

use super::count;
use crate::support::wait_for;

/// Path of the request that [`wait_for_web`] sends.
const KNOCK: &str = "/knock";

/// Number of arrivals of each item at each kill, and the items that the server had reported as done by then.
///
/// An item that arrives again after a kill was being sent at it: its outcome was not stored. So an item arrives at most
/// once between two kills, and never again after a kill at which the server had reported it as done. The number of
/// items being sent depends on the disk: outcomes wait for a commit while the connection already carries the next.
#[derive(Debug, Default)]
pub(super) struct Copies(Vec<(HashMap<String, usize>, HashSet<String>)>);

impl Copies {
    /// Notes a kill of a server that had reported `done`; everything it sent has arrived.
    pub(super) fn killed(&mut self, arrived: impl IntoIterator<Item = String>, done: HashSet<String>) {
        self.0.push((count(arrived), done));
    }

    /// Checks all arrivals until the end, and returns the number of second copies.
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

/// Number of arrivals beyond the first of each item.
pub(super) fn second_copies<T: Eq + Hash>(count: &HashMap<T, usize>) -> usize {
    count.values().map(|count| count - 1).sum()
}

/// Waits until no connection of the killed server to a mail server is open.
pub(super) fn wait_for_sink(sink: &ScriptedSmtpServer) {
    knock(sink.address(), "");
    wait_for(|| (sink.open() == 0).then_some(()));
}

/// Waits until no connection of the killed server to a web server is open.
pub(super) fn wait_for_web(server: &ScriptedHttpServer) {
    knock(server.address(), &format!("GET {KNOCK} HTTP/1.1\r\nHost: receiver\r\n\r\n"));
    wait_for(|| (server.open() == 0).then_some(()));
}

/// The requests that a web server received.
pub(super) fn requests(server: &ScriptedHttpServer) -> impl Iterator<Item = HttpRequest> {
    server.requests().into_iter().filter(|request| request.target != KNOCK)
}

/// Connects and waits for the first octet: every earlier connection has been accepted then.
fn knock(address: SocketAddr, words: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
}

/// The mails that a server received, each as its recipient and its whole header field `Message-ID`.
pub(super) fn mails(sink: &ScriptedSmtpServer) -> Vec<(String, String)> {
    let named = sink.messages().into_iter().map(|received| {
        let content = String::from_utf8(received.content).unwrap();
        let field = content.lines().find(|line| line.starts_with("Message-ID: <")).expect("every mail has one");
        (received.recipients.join(" "), field.to_owned())
    });
    named.collect()
}

/// The ids of the messages that a server received.
pub(super) fn mailed(sink: &ScriptedSmtpServer) -> impl Iterator<Item = String> {
    mails(sink).into_iter().map(|(_, field)| message_id(&field))
}

/// The message that a `Message-ID` names.
pub(super) fn message_id(field: &str) -> String {
    field.trim_start_matches("Message-ID: <").split('@').next().unwrap().to_owned()
}
