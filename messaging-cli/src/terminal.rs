//! Questions to the person at the terminal.

use std::io::{self, IsTerminal as _, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::Failure;
use crate::output;

/// Bytes of an answer, at most.
const MAX_ANSWER: u64 = 16 << 10;

/// Returns true if a person can be asked: questions go to standard error, answers come from standard input.
pub(crate) fn has_somebody() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, and returns a line from standard input without its end.
pub(crate) fn ask(question: &str) -> Result<String, Failure> {
    if has_somebody() {
        output::prompt(question);
    }
    line()
}

/// Like `ask`, without showing what is typed.
pub(crate) fn ask_secretly(question: &str) -> Result<String, Failure> {
    if !has_somebody() {
        return line();
    }
    output::prompt(question);
    let _quiet = Quiet::begin()?;
    let answer = line();
    output::note("");
    answer
}

/// Asks before an action that cannot be undone; if nobody can be asked, the answer is yes.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    if !has_somebody() {
        return Ok(());
    }
    let answer = ask(&format!("{question} [y/N] "))?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::Failed("not confirmed; nothing was done (--yes does not ask)".to_owned()))
}

/// Reads one line, a byte at a time so that the rest stays for the next reader.
fn line() -> Result<String, Failure> {
    let unreadable = |error| Failure::usage(format!("cannot read standard input: {error}"));
    let mut bytes = Vec::new();
    for byte in io::stdin().lock().take(MAX_ANSWER).bytes() {
        match byte.map_err(unreadable)? {
            b'\n' => break,
            byte => bytes.push(byte),
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))?;
    Ok(text.trim_end_matches('\r').to_owned())
}

/// A terminal that shows nothing of what is typed until this is dropped.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| Failure::usage(format!("cannot hide what is typed: {error}"));
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
