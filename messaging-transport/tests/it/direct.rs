//! Delivery to scripted mail exchangers that a DNS server names.

mod conversation;
mod exchangers;
mod lanes;
mod last_look;
mod private;
mod reservation;
mod sources;
mod tls;
mod tls_policies;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::ports::transport::{
    Acceptance, Answer, Content, Email, Outcome, Outgoing, Response, Sent, Transport,
};
use messaging_testing::{Action, Gate, ScriptedSmtpServer, ScriptedSmtpServerBuilder, Stage, TestDns};
use messaging_transport::direct::{DirectDelivery, DirectDeliveryBuilder};
use messaging_transport::dns::Dns;
use messaging_transport::smtp::Timeouts;

use crate::support::{email, kind_of, outgoing};

/// Time limit that is longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit for peers that are silent on purpose.
const IMPATIENCE: Duration = Duration::from_millis(100);

const PATIENT: Timeouts = Timeouts::all(PATIENCE);

/// The domain `b.test` with mail exchangers `mx1.b.test`, `mx2.b.test`, …, in order of preference.
struct Bed {
    dns: TestDns,
    servers: Vec<ScriptedSmtpServer>,
    port: u16,
}

impl Bed {
    /// Starts exchangers that accept everything.
    async fn start(exchangers: u8) -> Self {
        let builders = (0..exchangers).map(|_| ScriptedSmtpServer::builder());
        Self::with(builders.collect()).await
    }

    /// Starts exchangers that listen at the same port, each at an address of its own.
    async fn with(builders: Vec<ScriptedSmtpServerBuilder>) -> Self {
        let mut bed = Self { dns: TestDns::start().await, servers: Vec::new(), port: 0 };
        for (builder, number) in builders.into_iter().zip(1..) {
            let server = builder.at((address(number), bed.port).into()).start().await;
            bed.port = server.port();
            bed.servers.push(server);
        }
        let count = u8::try_from(bed.servers.len()).unwrap();
        bed.exchangers("b.test", &(1..=count).collect::<Vec<_>>());
        bed
    }

    /// Gives a domain these exchangers, each preferred to the next.
    fn exchangers(&self, domain: &str, numbers: &[u8]) {
        let names: Vec<_> =
            numbers.iter().map(|number| (u16::from(*number) * 10, format!("mx{number}.b.test"))).collect();
        self.dns.mx(domain, &names.iter().map(|(value, name)| (*value, name.as_str())).collect::<Vec<_>>());
        for &number in numbers {
            self.dns.addresses(&format!("mx{number}.b.test"), &[address(number)]);
        }
    }

    fn builder(&self) -> DirectDeliveryBuilder {
        let dns = Dns::new(Some(self.dns.addr()));
        DirectDelivery::builder("client.test", dns).port(self.port).timeouts(PATIENT).allow_private(true)
    }

    fn delivery(&self) -> DirectDelivery {
        self.builder().build()
    }

    fn first(&self) -> &ScriptedSmtpServer {
        &self.servers[0]
    }

    /// Returns the number of connections that each exchanger had.
    fn connections(&self) -> Vec<usize> {
        self.servers.iter().map(ScriptedSmtpServer::connections).collect()
    }
}

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, number))
}

fn message(recipients: &[&str], email: Email) -> Outgoing {
    outgoing(recipients, Content::Email(Box::new(email)))
}

/// Sends a message and checks that every recipient gets an outcome within bounded time.
async fn attempt(delivery: &DirectDelivery, message: &Outgoing) -> Sent {
    let sent = tokio::time::timeout(3 * PATIENCE, delivery.send(message)).await.expect("every attempt ends").unwrap();
    assert_eq!(sent.outcomes.len(), message.recipients.len());
    assert!(sent.captured.is_none());
    sent
}

/// Sends the usual message and returns its outcomes in words.
async fn send(delivery: &DirectDelivery, recipients: &[&str]) -> String {
    words(&attempt(delivery, &message(recipients, email())).await)
}

/// Returns, for each recipient, the kind of outcome, the reply code and the enhanced code.
fn words(sent: &Sent) -> String {
    let word = |outcome: &Outcome| {
        let (kind, response) = match outcome {
            Outcome::Answered(Answer { class, response, .. }) => (kind_of(*class, Acceptance::Delivered), response),
            Outcome::Suppressed(reason) => return format!("suppressed {}", reason.as_str()),
            Outcome::Withheld(why) => return format!("withheld {why}"),
            Outcome::Held => return "held".to_owned(),
        };
        let code = response.code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        format!("{kind} {code} {}", response.enhanced.as_deref().unwrap_or("-"))
    };
    sent.outcomes.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn response(sent: &Sent) -> &Response {
    &sent.outcomes[0].answer().expect("a response of an exchanger").response
}

/// Returns the host and the end of each dialog.
fn ends(sent: &Sent) -> Vec<(&str, AttemptOutcome)> {
    sent.dialogs.iter().map(|dialog| (dialog.mx.as_deref().unwrap_or("-"), dialog.outcome)).collect()
}

/// Returns the transcript, with the usual port in place of the one in use.
fn transcript(dialog: &Dialog, port: u16) -> String {
    dialog.transcript.join("\n").replace(&format!(":{port}"), ":25")
}

/// An email whose content does not fit into the buffers of a socket.
fn large_email() -> Email {
    let mut email = email();
    email.text = Some("A line of text that is not short, and so on and on.\r\n".repeat(250_000));
    email
}
