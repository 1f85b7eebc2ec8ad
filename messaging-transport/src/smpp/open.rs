//! Opens sessions: connects to a message center and binds.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use messaging_core::domain::delivery::outcome::{Answer, OutcomeClass, Response, Scope};
use messaging_core::ports::transport::TransportError;
use rusmpp::pdus::BindTransceiver;
use rusmpp::types::COctetString;
use rusmpp::values::InterfaceVersion;
use rusmpp::{Command, CommandId, CommandStatus};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::codec::Framed;
use url::Url;

use super::answer;
use super::codec::PduCodec;
use super::settings::Account;
use crate::dns::Dns;
use crate::guard::{Guard, Refusal, private_address};
use crate::smtp::Tls;

/// Time limit for connecting to one address.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Time limit of a TLS handshake, and of a bind.
const STEP_TIME: Duration = Duration::from_secs(10);

/// A connection, with or without TLS.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection that carries PDUs.
pub(super) type Link = Framed<Box<dyn Duplex>, PduCodec>;

/// Opener of sessions, which connects and binds as a transceiver.
pub(super) struct Opener {
    pub(super) guard: Guard,
    pub(super) dns: Dns,
    pub(super) tls: Tls,
}

impl Opener {
    /// Opens a link that is bound as a transceiver. The first PDU has the sequence number 1.
    pub(super) async fn open(&self, account: &Account) -> Result<Link, Answer> {
        let stream = self.connect(account).await?;
        let stream: Box<dyn Duplex> = if account.is_tls {
            let secured = self.tls.handshake(stream, &account.host, STEP_TIME).await;
            Box::new(secured.map_err(|error| of_transport(&error))?)
        } else {
            Box::new(stream)
        };
        let mut link = Framed::new(stream, PduCodec);
        timeout(STEP_TIME, bind(&mut link, account)).await.map_err(|_| unreachable("the bind was not answered"))??;
        Ok(link)
    }

    async fn connect(&self, account: &Account) -> Result<TcpStream, Answer> {
        let Account { host, port, .. } = account;
        let bare = host.trim_matches(['[', ']']);
        let spelled = if bare.contains(':') { format!("[{bare}]") } else { bare.to_owned() };
        let url =
            Url::parse(&format!("https://{spelled}:{port}")).map_err(|_| refused("the host is not well formed"))?;
        let addresses = self.guard.resolve(&url, &self.dns).await.map_err(|refusal| match refusal {
            Refusal::NotPublic => refused(&private_address(host)),
            Refusal::Unknown => unreachable("the name does not resolve"),
        })?;
        for address in addresses {
            if let Ok(Ok(stream)) = timeout(CONNECT_TIME, TcpStream::connect(address)).await {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
        }
        Err(unreachable("the connection failed"))
    }
}

async fn bind(link: &mut Link, account: &Account) -> Result<(), Answer> {
    let malformed = |_| refused("system_id or password is too long");
    let request = BindTransceiver::builder()
        .system_id(COctetString::from_string(account.system_id.clone()).map_err(malformed)?)
        .password(COctetString::from_string(account.password.clone()).map_err(malformed)?)
        .interface_version(InterfaceVersion::Smpp3_4)
        .build();
    let lost = || unreachable("the connection broke within the bind");
    link.send(Command::new(CommandStatus::EsmeRok, 1, request)).await.map_err(|_| lost())?;
    loop {
        let header = link.next().await.ok_or_else(lost)?.map_err(|_| lost())?.header();
        match (header.id, header.status) {
            (CommandId::BindTransceiverResp, 0) => return Ok(()),
            (CommandId::BindTransceiverResp | CommandId::GenericNack, status) => return Err(answer::bound(status)),
            _ => {}
        }
    }
}

fn unreachable(text: &str) -> Answer {
    Answer::new(OutcomeClass::Retry(Scope::Account), Response::of_text(text))
}

fn refused(text: &str) -> Answer {
    Answer::new(OutcomeClass::Auth, Response::of_text(text))
}

fn of_transport(error: &TransportError) -> Answer {
    Answer::new(error.class(), Response::of_text(&error.to_string()))
}
