//! DNS server whose records a test sets.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, MX, NS, PTR, TLSA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use messaging_core::domain::mail::domain_name::reversed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of ports that are tried until one is free for UDP and TCP alike.
const ATTEMPTS: usize = 20;

/// Maximum size of an answer over UDP to a query without EDNS, in octets.
const PLAIN_UDP_LIMIT: u16 = 512;

/// Maximum number of names that are looked up for a query, its own and those that aliases lead to.
const MAX_ALIASES: usize = 8;

/// Failure with which queries about a name are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsFailure {
    /// SERVFAIL.
    ServFail,
    /// REFUSED.
    Refused,
    /// No answer at all.
    Silence,
    /// The records, but without the AA bit, as from a cache.
    NotAuthoritative,
}

/// DNS server that is authoritative for every zone, over UDP and TCP on one loopback port; stops when dropped. A name
/// without records does not exist (NXDOMAIN), unless a name below it does.
#[derive(Debug)]
pub struct TestDns {
    addr: SocketAddr,
    state: Arc<Mutex<State>>,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct State {
    records: HashMap<String, HashMap<RecordType, Vec<RData>>>,
    failures: HashMap<String, DnsFailure>,
    /// Zones whose answers get the AD bit on request, as if they were signed and validated.
    signed: HashSet<String>,
    /// Seconds that an answer may be cached.
    ttl: u32,
    queries: Vec<(String, String)>,
}

impl TestDns {
    /// Starts a server without records.
    pub async fn start() -> Self {
        let (udp, tcp) = bind().await.expect("a port that is free for UDP and TCP");
        let addr = tcp.local_addr().expect("a bound socket has an address");
        let state = State {
            records: HashMap::new(),
            failures: HashMap::new(),
            signed: HashSet::new(),
            ttl: 60,
            queries: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let tasks = [
            tokio::spawn(serve_udp(udp, Arc::clone(&state))).abort_handle(),
            tokio::spawn(serve_tcp(tcp, Arc::clone(&state))).abort_handle(),
        ];
        Self { addr, state, tasks }
    }

    /// Returns the address that the server listens at.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Gives a name these TXT records in place of those it had; long ones are sent in several strings.
    pub fn txt(&self, name: &str, texts: &[&str]) {
        let strings = |text: &&str| TXT::from_bytes(text.as_bytes().chunks(255).collect());
        self.set(name, RecordType::TXT, texts.iter().map(|text| RData::TXT(strings(text))).collect());
    }

    /// Gives a name these mail exchangers in place of those it had; `.` is the null MX.
    pub fn mx(&self, name: &str, exchangers: &[(u16, &str)]) {
        let record = |(preference, host): &(u16, &str)| RData::MX(MX::new(*preference, parse(host)));
        self.set(name, RecordType::MX, exchangers.iter().map(record).collect());
    }

    /// Gives a zone these name servers in place of those it had.
    pub fn name_servers(&self, zone: &str, servers: &[&str]) {
        self.set(zone, RecordType::NS, servers.iter().map(|host| RData::NS(NS(parse(host)))).collect());
    }

    /// Gives a name these addresses in place of those it had.
    pub fn addresses(&self, name: &str, addresses: &[IpAddr]) {
        let (four, six): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv4());
        let record = |address: IpAddr| match address {
            IpAddr::V4(address) => RData::A(A(address)),
            IpAddr::V6(address) => RData::AAAA(AAAA(address)),
        };
        self.set(name, RecordType::A, four.into_iter().map(record).collect());
        self.set(name, RecordType::AAAA, six.into_iter().map(record).collect());
    }

    /// Gives an address these names (PTR) in place of those it had.
    pub fn names(&self, address: IpAddr, names: &[&str]) {
        let zone = if address.is_ipv4() { "in-addr.arpa" } else { "ip6.arpa" };
        let records = names.iter().map(|name| RData::PTR(PTR(parse(name)))).collect();
        self.set(&format!("{}.{zone}", reversed(address)), RecordType::PTR, records);
    }

    /// Gives a name these TLSA records in place of those it had: usage, selector, matching type and data.
    pub fn tlsa(&self, name: &str, records: &[(u8, u8, u8, &[u8])]) {
        let record = |(usage, selector, matching, data): &(u8, u8, u8, &[u8])| {
            RData::TLSA(TLSA::new((*usage).into(), (*selector).into(), (*matching).into(), data.to_vec()))
        };
        self.set(name, RecordType::TLSA, records.iter().map(record).collect());
    }

    /// Treats this name and those below it as signed from now on: answers have the AD bit if the query has it. No
    /// signatures are made.
    pub fn sign(&self, zone: &str) {
        self.lock().signed.insert(key(&parse(zone)));
    }

    /// Makes a name an alias (CNAME) of `target`.
    pub fn cname(&self, name: &str, target: &str) {
        self.set(name, RecordType::CNAME, vec![RData::CNAME(CNAME(parse(target)))]);
    }

    /// Removes every record of a name.
    pub fn remove(&self, name: &str) {
        self.lock().records.remove(&key(&parse(name)));
    }

    /// Answers queries about this name with `failure` from now on.
    pub fn fail(&self, name: &str, failure: DnsFailure) {
        self.lock().failures.insert(key(&parse(name)), failure);
    }

    /// Ends the failure of queries about this name.
    pub fn recover(&self, name: &str) {
        self.lock().failures.remove(&key(&parse(name)));
    }

    /// Sets the seconds that later answers may be cached; 60 unless set. Negative answers may never be cached.
    pub fn ttl(&self, seconds: u32) {
        self.lock().ttl = seconds;
    }

    /// Returns the queries so far: name and type, such as `("acme.test", "MX")`.
    pub fn queries(&self) -> Vec<(String, String)> {
        self.lock().queries.clone()
    }

    fn set(&self, name: &str, kind: RecordType, records: Vec<RData>) {
        let mut state = self.lock();
        let types = state.records.entry(key(&parse(name))).or_default();
        if records.is_empty() {
            types.remove(&kind);
        } else {
            types.insert(kind, records);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_signed(&self, name: &str) -> bool {
        self.signed.iter().any(|zone| name == zone || name.ends_with(&format!(".{zone}")))
    }
}

impl Drop for TestDns {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn parse(name: &str) -> Name {
    let mut name = Name::from_ascii(name).expect("a domain name");
    name.set_fqdn(true);
    name
}

/// Returns the name in lower case, without the final dot.
fn key(name: &Name) -> String {
    name.to_ascii().trim_end_matches('.').to_ascii_lowercase()
}

async fn bind() -> io::Result<(UdpSocket, TcpListener)> {
    let mut failed = None;
    for _ in 0..ATTEMPTS {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        match UdpSocket::bind(tcp.local_addr()?).await {
            Ok(udp) => return Ok((udp, tcp)),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

async fn serve_udp(socket: UdpSocket, state: Arc<Mutex<State>>) {
    let mut buffer = [0; 4096];
    while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
        let Some((answer, limit)) = answer(&state, &buffer[..length]) else { continue };
        let octets = match answer.to_vec() {
            Ok(octets) if octets.len() > usize::from(limit) => answer.truncate().to_vec(),
            other => other,
        };
        let _ = socket.send_to(&octets.expect("records that were built here can be written"), peer).await;
    }
}

async fn serve_tcp(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(mut stream: TcpStream, state: Arc<Mutex<State>>) -> io::Result<()> {
    loop {
        let mut question = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut question).await?;
        let Some((answer, _)) = answer(&state, &question) else { continue };
        let octets = answer.to_vec().expect("records that were built here can be written");
        stream.write_u16(u16::try_from(octets.len()).expect("an answer below 64 KiB")).await?;
        stream.write_all(&octets).await?;
    }
}

/// Returns the answer and its maximum octets over UDP; `None` for silence, and for an unreadable question.
fn answer(state: &Mutex<State>, question: &[u8]) -> Option<(Message, u16)> {
    let request = Message::from_vec(question).ok()?;
    let query = request.queries.first()?;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let mut name = key(query.name());
    state.queries.push((name.clone(), query.query_type().to_string()));
    let limit = request.edns.as_ref().map_or(PLAIN_UDP_LIMIT, |edns| edns.max_payload().max(PLAIN_UDP_LIMIT));
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    answer.metadata.recursion_desired = request.metadata.recursion_desired;
    answer.metadata.recursion_available = true;
    answer.metadata.authoritative = true;
    answer.add_query(query.clone());
    // RFC 6840 section 5.8: only a query that asks for the bit gets it.
    answer.metadata.authentic_data = request.metadata.authentic_data;
    for _ in 0..MAX_ALIASES {
        answer.metadata.authentic_data &= state.is_signed(&name);
        match state.failures.get(&name) {
            Some(DnsFailure::Silence) => return None,
            Some(DnsFailure::ServFail) => answer.metadata.response_code = ResponseCode::ServFail,
            Some(DnsFailure::Refused) => answer.metadata.response_code = ResponseCode::Refused,
            Some(DnsFailure::NotAuthoritative) => answer.metadata.authoritative = false,
            None => {}
        }
        if answer.metadata.response_code != ResponseCode::NoError {
            answer.answers.clear();
            break;
        }
        let Some(types) = state.records.get(&name) else {
            if !state.records.keys().any(|known| known.ends_with(&format!(".{name}"))) {
                answer.metadata.response_code = ResponseCode::NXDomain;
            }
            break;
        };
        let mut alias = None;
        let mut add = |kind: RecordType| {
            for data in types.get(&kind).into_iter().flatten() {
                answer.add_answer(Record::from_rdata(parse(&name), state.ttl, data.clone()));
                if let RData::CNAME(target) = data {
                    alias = Some(key(&target.0));
                }
            }
        };
        add(query.query_type());
        if query.query_type() == RecordType::CNAME {
            break;
        }
        add(RecordType::CNAME);
        match alias {
            Some(target) => name = target,
            None => break,
        }
    }
    Some((answer, limit))
}
