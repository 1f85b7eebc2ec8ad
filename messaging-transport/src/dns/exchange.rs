//! One question to one server: over UDP, and over TCP where the answer does not fit a datagram.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_resolver::proto::op::{Edns, Message, MessageType, Query};
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

/// Octets of an answer over UDP that no network cuts into pieces.
const UDP_PAYLOAD: u16 = 1232;

/// A question for the records of one type, by a number that cannot be foreseen. It asks for no recursion.
pub(crate) fn question(name: &Name, kind: RecordType) -> Message {
    let mut question = Message::query();
    question.metadata.recursion_desired = false;
    question.add_query(Query::query(name.clone(), kind));
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_PAYLOAD).set_version(0);
    question.edns = Some(edns);
    question
}

/// Sends a question and reads its answer in full; waits for as long as the caller does.
pub(crate) async fn exchange(server: SocketAddr, question: &Message) -> io::Result<Message> {
    let octets = question.to_vec().map_err(io::Error::other)?;
    let is_answer = |octets: &[u8]| match Message::from_vec(octets) {
        Ok(answer) => {
            let of_question = answer.metadata.id == question.metadata.id && answer.queries == question.queries;
            (of_question && answer.metadata.message_type == MessageType::Response).then_some(answer)
        }
        Err(_) => None,
    };
    let own: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((own, 0)).await?;
    // Only this server is heard.
    socket.connect(server).await?;
    socket.send(&octets).await?;
    let mut buffer = [0; 4096];
    let answer = loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some(answer) = is_answer(&buffer[..length]) {
            break answer;
        }
    };
    if !answer.metadata.truncation {
        return Ok(answer);
    }
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(octets.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &octets].concat()).await?;
    let mut whole = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut whole).await?;
    is_answer(&whole).ok_or_else(|| io::Error::other("the answer is not to the question"))
}
