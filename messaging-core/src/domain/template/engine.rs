//! Compiling the parts of a template and rendering them within limits.

use std::io;
use std::sync::LazyLock;

use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};

use super::budget::{Limits, MAX_OUTPUT};
use super::fault::Fault;
use super::variables::{self, Names};
use super::{escape, filters, gate, guard};

/// Maximum nesting depth of macros and their calls.
const MAX_CALLS: usize = 50;

/// Stack that reading and compiling a source within the limits of [`gate`] needs at most.
const STACK: usize = 16 << 20;

/// Environment that every template starts from. Templates share its filters; nothing in it reaches the host.
static BASE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Chainable);
    env.set_auto_escape_callback(|name| if name == "html" { AutoEscape::Html } else { AutoEscape::None });
    env.set_formatter(escape::print);
    env.set_recursion_limit(MAX_CALLS);
    env.set_debug(false);
    env.set_fuel(Some(Limits::SHORT.fuel));
    filters::install(&mut env);
    env
});

/// Format of a rendered part: plain text or HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Plain text: values are not escaped.
    Plain,
    /// HTML: values are escaped.
    Markup,
}

/// A compiled part.
#[derive(Debug)]
pub struct Program {
    env: Environment<'static>,
    kind: Kind,
    names: Names,
    /// True if the output has marks of links, which begin with U+0000; see [`super::links`].
    is_marked: bool,
}

/// A rendering that was stopped or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderFault {
    /// It reached its limits; with larger ones it might finish.
    Limits,
    /// Its output is too long for a part.
    TooLong,
    /// An operation failed.
    Failed(Fault),
}

impl std::fmt::Display for RenderFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limits => f.write_str("takes too long, or makes too much data"),
            Self::TooLong => f.write_str("makes more than 2 MiB"),
            Self::Failed(fault) => write!(f, "{fault}"),
        }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "text",
            Self::Markup => "html",
        }
    }
}

impl Program {
    /// Compiles a source. Needs no more stack than `on_large_stack` gives.
    pub fn compile(source: &str, kind: Kind) -> Result<Self, Fault> {
        let source_tokens = gate::tokens(source)?;
        let tree =
            parse(source, kind.name(), SyntaxConfig::default()).map_err(|error| Fault::of_engine(&error, source))?;
        let names = variables::names(&tree);
        let guarded = guard::insert_guards(source, &source_tokens, &tree, kind == Kind::Markup)
            .map_err(|rule| Fault::limit(None, rule))?;
        let mut env = BASE.clone();
        check_names(&env, &names, source)?;
        env.add_template_owned(kind.name(), guarded).map_err(|error| Fault::of_engine(&error, source))?;
        Ok(Self { env, kind, names, is_marked: false })
    }

    /// Compiles HTML with marks before its links.
    pub(super) fn compile_marked(source: &str) -> Result<Self, Fault> {
        Self::compile(source, Kind::Markup).map(|program| Self { is_marked: true, ..program })
    }

    /// Returns the names that it uses.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Renders it.
    pub fn render(&self, values: &Value, limits: Limits) -> Result<String, RenderFault> {
        // An environment has its fuel; it is cloned only for other limits, those of long renderings.
        if self.env.fuel() == Some(limits.fuel) {
            return self.render_in(&self.env, values);
        }
        let mut env = self.env.clone();
        env.set_fuel(Some(limits.fuel));
        self.render_in(&env, values)
    }

    fn render_in(&self, env: &Environment<'static>, values: &Value) -> Result<String, RenderFault> {
        let template = env.get_template(self.kind.name()).map_err(|error| failed(&error))?;
        let mut out = Bounded { bytes: Vec::with_capacity(template.source().len().min(64 << 10)), is_full: false };
        let outcome = template.render_captured_to(values.clone(), &mut out).map(drop);
        if out.is_full {
            return Err(RenderFault::TooLong);
        }
        outcome.map_err(|error| failed(&error))?;
        let text = String::from_utf8(out.bytes)
            .map_err(|_| RenderFault::Failed(Fault::limit(None, "makes something that is not text")))?;
        // No accepted text holds U+0000, but a literal in a template may.
        if text.contains('\0') && !self.is_marked {
            return Err(RenderFault::Failed(Fault::limit(None, "makes U+0000, which no text may hold")));
        }
        Ok(text)
    }
}

fn failed(error: &minijinja::Error) -> RenderFault {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.downcast_ref::<minijinja::Error>().is_some_and(|error| error.kind() == ErrorKind::OutOfFuel) {
            return RenderFault::Limits;
        }
        cause = current.source();
    }
    RenderFault::Failed(Fault::of_engine(error, ""))
}

/// Refuses unknown filters and tests. The engine would only find them when they are executed.
fn check_names(env: &Environment<'_>, names: &Names, source: &str) -> Result<(), Fault> {
    let unknown = names.filters.iter().find(|(name, _)| !has_filter(env, name)).map(|(_, at)| (*at, "no such filter"));
    let unknown = unknown
        .or_else(|| names.tests.iter().find(|(name, _)| !has_test(env, name)).map(|(_, at)| (*at, "no such test")));
    match unknown {
        Some((at, message)) => Err(Fault::at(super::fault::Position::of(source, at), message)),
        None => Ok(()),
    }
}

fn has_filter(env: &Environment<'_>, name: &str) -> bool {
    let mut state = env.empty_state();
    let outcome = state.apply_filter(name, &[]);
    !matches!(outcome, Err(error) if error.kind() == ErrorKind::UnknownFilter)
}

fn has_test(env: &Environment<'_>, name: &str) -> bool {
    let mut state = env.empty_state();
    let outcome = state.perform_test(name, &[]);
    !matches!(outcome, Err(error) if error.kind() == ErrorKind::UnknownTest)
}

/// A writer of a limited length.
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs work that recurses for nested input on a thread of its own with a large stack. The caller waits.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("template".to_owned()).stack_size(STACK);
        let running = thread.spawn_scoped(scope, work).expect("the system has a thread");
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
