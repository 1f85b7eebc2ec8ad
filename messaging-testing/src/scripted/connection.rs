//! Peer's side of one connection.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::script::{Action, Received, Shared, Situation, Stage, Subject, lock};

/// Maximum octets of a content; the connection of a client that sends more is closed.
const MAX_CONTENT: u64 = 128 * 1024 * 1024;

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

struct Connection {
    shared: Arc<Shared>,
    stream: BufReader<Box<dyn Duplex>>,
    number: usize,
    source: IpAddr,
    ehlo: String,
    is_tls: bool,
    username: Option<String>,
    from: Option<(String, Vec<String>)>,
    recipients: Vec<String>,
}

/// Continuation of the conversation at a stage, by the peer's script.
enum StageOutcome {
    /// The stage continues as usual, with this answer in place of the usual one if there is one.
    Usual(Option<String>),
    /// The stage is done as usual, and the connection ends without a reply.
    Mute,
    /// The stage has answered already.
    Done,
}

/// Serves until QUIT; any other end is an error.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream, number: usize, is_implicit: bool) -> io::Result<()> {
    let source = stream.peer_addr()?.ip();
    let mut stream: Box<dyn Duplex> = Box::new(stream);
    if let Some(acceptor) = shared.acceptor.as_ref().filter(|_| is_implicit) {
        stream = Box::new(acceptor.accept(stream).await?);
    }
    let connection = Connection {
        shared,
        stream: BufReader::new(stream),
        number,
        source,
        ehlo: String::new(),
        is_tls: is_implicit,
        username: None,
        from: None,
        recipients: Vec::new(),
    };
    connection.run().await
}

fn hang_up<T>() -> io::Result<T> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

impl Connection {
    async fn run(mut self) -> io::Result<()> {
        self.stage(Stage::Greeting, "220 scripted.test ESMTP").await?;
        loop {
            let line = self.line().await?;
            let verb = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
            self.shared.note_command(&line);
            let is_pipelined = !self.stream.buffer().is_empty();
            lock(&self.shared.log).pipelined += usize::from(is_pipelined);
            if matches!(verb.as_str(), "EHLO" | "HELO") {
                self.ehlo = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            match verb.as_str() {
                "EHLO" => drop(self.stage(Stage::Ehlo, &self.capabilities()).await?),
                "HELO" => drop(self.stage(Stage::Helo, "250 scripted.test").await?),
                "STARTTLS" if self.shared.config.starts_tls => self = self.start_tls().await?,
                "AUTH" => self.authenticate(&line).await?,
                "MAIL" => self.mail(&line).await?,
                "RCPT" => self.rcpt(&line).await?,
                "DATA" => self.data().await?,
                "RSET" => {
                    self.from = None;
                    self.stage(Stage::Rset, "250 2.0.0 forgotten").await?;
                }
                "QUIT" => {
                    // Noted before the reply: the client may open its next connection as soon as it has that.
                    if let Some(policy) = &self.shared.policy {
                        policy.ended(self.number);
                    }
                    return self.say("221 2.0.0 bye").await;
                }
                _ => self.say("500 5.5.2 what").await?,
            }
        }
    }

    fn capabilities(&self) -> String {
        let config = &self.shared.config;
        if config.no_ehlo {
            return "500 5.5.2 what".to_owned();
        }
        let mut lines = vec!["scripted.test".to_owned()];
        lines.push(config.size.map_or_else(|| "SIZE".to_owned(), |size| format!("SIZE {size}")));
        lines.extend((!config.no_pipelining).then(|| "PIPELINING".to_owned()));
        lines.extend((!config.no_eight_bit).then(|| "8BITMIME".to_owned()));
        lines.extend((!config.no_utf8).then(|| "SMTPUTF8".to_owned()));
        lines.extend((config.starts_tls && !self.is_tls).then(|| "STARTTLS".to_owned()));
        lines.extend(config.login.as_ref().map(|_| format!("AUTH {}", config.mechanisms.join(" "))));
        let (last, others) = lines.split_last().expect("the name is there");
        others.iter().fold(String::new(), |text, line| text + "250-" + line + "\n") + "250 " + last
    }

    async fn start_tls(mut self) -> io::Result<Self> {
        if !self.stage(Stage::StartTls, "220 2.0.0 go").await? {
            return Ok(self);
        }
        let Some(acceptor) = self.shared.acceptor.clone() else { return hang_up() };
        let secured = acceptor.accept(self.stream.into_inner()).await?;
        Ok(Self { stream: BufReader::new(Box::new(secured)), is_tls: true, ..self })
    }

    async fn authenticate(&mut self, line: &str) -> io::Result<()> {
        let mut words = line.split(' ').skip(1);
        let mechanism = words.next().unwrap_or_default().to_ascii_uppercase();
        let initial = words.next().map(str::to_owned);
        if !self.shared.config.mechanisms.contains(&mechanism) {
            return self.say("504 5.5.4 not offered").await;
        }
        let decode = |text: String| String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()).into_owned();
        let given = if mechanism == "PLAIN" {
            let secret = match initial {
                Some(secret) => secret,
                None => self.ask("334 ").await?,
            };
            let secret = decode(secret);
            let mut parts = secret.split('\0').skip(1).map(str::to_owned);
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        } else {
            let username = decode(self.ask("334 VXNlcm5hbWU6").await?);
            (username, decode(self.ask("334 UGFzc3dvcmQ6").await?))
        };
        if self.shared.config.login.as_ref() == Some(&given) {
            if self.stage(Stage::Auth, "235 2.7.0 welcome").await? {
                self.username = Some(given.0);
            }
            Ok(())
        } else {
            self.say("535 5.7.8 no").await
        }
    }

    async fn ask(&mut self, question: &str) -> io::Result<String> {
        self.say(question).await?;
        let line = self.line().await?;
        self.shared.note_command(&line);
        Ok(line)
    }

    async fn mail(&mut self, line: &str) -> io::Result<()> {
        if self.from.is_some() {
            return self.say("503 5.5.1 a transaction is open").await;
        }
        let (path, rest) = path(line);
        let subject = Subject { from: &path, ..Subject::default() };
        let outcome = self.outcome_about(Stage::Mail, subject).await?;
        if self.finish(outcome, "250 2.1.0 ok").await? {
            self.from = Some((path, rest.split_whitespace().map(str::to_ascii_uppercase).collect()));
            self.recipients.clear();
        }
        Ok(())
    }

    async fn rcpt(&mut self, line: &str) -> io::Result<()> {
        let Some((from, parameters)) = self.from.take() else {
            return self.say("503 5.5.1 MAIL first").await;
        };
        let (path, _) = path(line);
        let usual = self.shared.recipient(&path).unwrap_or_else(|| "250 2.1.5 ok".to_owned());
        let named = [path];
        let subject = Subject { from: &from, recipients: &named, ..Subject::default() };
        let outcome = self.outcome_about(Stage::Rcpt, subject).await?;
        self.from = Some((from, parameters));
        if self.finish(outcome, &usual).await? {
            self.recipients.extend(named);
        }
        Ok(())
    }

    async fn data(&mut self) -> io::Result<()> {
        let usual = if self.recipients.is_empty() || self.from.is_none() { "503 5.5.1 RCPT first" } else { "354 go" };
        if !self.stage(Stage::Data, usual).await? {
            return Ok(());
        }
        let mut content = Vec::new();
        let mut is_first = true;
        loop {
            let start = content.len();
            let left = MAX_CONTENT.saturating_sub(content.len() as u64);
            if (&mut self.stream).take(left).read_until(b'\n', &mut content).await? == 0 {
                return hang_up();
            }
            if is_first && !matches!(self.outcome(Stage::Content).await?, StageOutcome::Usual(None)) {
                return hang_up();
            }
            is_first = false;
            // Only CRLF, dot, CRLF ends the content.
            let is_line_start = start == 0 || content[..start].ends_with(b"\r\n");
            if is_line_start && &content[start..] == b".\r\n" {
                content.truncate(start);
                break;
            }
            if is_line_start && content[start] == b'.' {
                content.remove(start);
            }
        }
        let (from, parameters) = self.from.take().unwrap_or_default();
        let recipients = std::mem::take(&mut self.recipients);
        if recipients.is_empty() {
            return self.stage(Stage::Dot, "554 5.5.1 nobody").await.map(drop);
        }
        let message = Received {
            from,
            parameters,
            recipients,
            content,
            is_tls: self.is_tls,
            username: self.username.clone(),
            connection: self.number,
        };
        let subject = Subject { from: &message.from, recipients: &message.recipients, content: &message.content };
        let outcome = self.outcome_about(Stage::Dot, subject).await?;
        let is_taken = match &outcome {
            StageOutcome::Usual(answer) => answer.as_ref().is_none_or(|answer| answer.starts_with('2')),
            StageOutcome::Mute => true,
            StageOutcome::Done => false,
        };
        if is_taken {
            self.shared.note_message(message);
        }
        self.finish(outcome, "250 2.0.0 taken").await.map(drop)
    }

    /// Runs a stage; returns true if the usual effect is to follow.
    async fn stage(&mut self, stage: Stage, usual: &str) -> io::Result<bool> {
        let outcome = self.outcome(stage).await?;
        self.finish(outcome, usual).await
    }

    async fn outcome(&mut self, stage: Stage) -> io::Result<StageOutcome> {
        self.outcome_about(stage, Subject::default()).await
    }

    /// Returns the action of the script, or else of the policy.
    fn action(&self, stage: Stage, subject: Subject<'_>) -> Option<Action> {
        let policy = self.shared.policy.as_ref();
        self.shared.action(stage).or_else(|| {
            let (connection, source, ehlo, is_tls) = (self.number, self.source, self.ehlo.as_str(), self.is_tls);
            policy?.decide(&Situation { stage, connection, source, ehlo, is_tls, subject })
        })
    }

    async fn outcome_about(&mut self, stage: Stage, subject: Subject<'_>) -> io::Result<StageOutcome> {
        match self.action(stage, subject) {
            None => Ok(StageOutcome::Usual(None)),
            Some(Action::Reply(lines)) => Ok(StageOutcome::Usual(Some(lines))),
            Some(Action::ReplyAndClose(lines)) => {
                self.say(&lines).await?;
                hang_up()
            }
            Some(Action::Close) => hang_up(),
            Some(Action::LoseReply) => Ok(StageOutcome::Mute),
            Some(Action::Raw(octets)) => {
                self.stream.write_all(&octets).await?;
                self.stream.flush().await?;
                Ok(StageOutcome::Done)
            }
            Some(Action::Flood(line)) => loop {
                self.say(&line).await?;
            },
            Some(Action::Wait(gate)) => {
                gate.pass().await;
                Ok(StageOutcome::Usual(None))
            }
        }
    }

    async fn finish(&mut self, outcome: StageOutcome, usual: &str) -> io::Result<bool> {
        match outcome {
            StageOutcome::Usual(answer) => {
                let answer = answer.as_deref().unwrap_or(usual);
                self.say(answer).await?;
                Ok(answer.starts_with(['2', '3']))
            }
            StageOutcome::Mute => hang_up(),
            StageOutcome::Done => Ok(false),
        }
    }

    async fn say(&mut self, lines: &str) -> io::Result<()> {
        let text: String = lines.split('\n').flat_map(|line| [line, "\r\n"]).collect();
        self.stream.write_all(text.as_bytes()).await?;
        self.stream.flush().await
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line).await? == 0 {
            return hang_up();
        }
        let line = line.strip_suffix(b"\r\n").unwrap_or(&line);
        Ok(String::from_utf8_lossy(line).into_owned())
    }
}

/// Returns the path of a command, and the text behind it.
fn path(line: &str) -> (String, &str) {
    let (_, rest) = line.split_once('<').unwrap_or_default();
    let (path, rest) = rest.split_once('>').unwrap_or_default();
    (path.to_owned(), rest)
}
