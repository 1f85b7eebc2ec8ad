//! Inserts guards into the source of a template: filters that charge the cost of expensive expressions to a budget, or
//! escape output for the place where it stands.
//!
//! The engine counts instructions, which bounds neither time nor memory: one instruction may double a
//! text, compare two long lists, or repeat a text a hundred million times. So every expression that can make
//! or scan something large is wrapped in a filter that charges its cost to the budget of the rendering (see
//! [`super::budget`]). The stored source has no guards, only the compiled one; line numbers are the same.
//!
//! The positions come from the syntax tree. It has the end of every operation but not always its begin, so the
//! opening parenthesis goes in front of the first operand.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Span, Token};

use super::gate::Tokens;
use super::positions::{self, Danger, OutputContext};

/// Charges the size of a new value, and turns an iterator that would be computed at each use into a list.
pub(super) const MADE: &str = "_guard_made";
/// Refuses everything but numbers as an operand of `*`, which would repeat texts and lists.
pub(super) const NUMBER: &str = "_guard_number";
/// Charges an operand of a comparison.
pub(super) const COMPARED: &str = "_guard_compared";
/// Charges a text that is going to be sliced or indexed.
pub(super) const INDEXED: &str = "_guard_indexed";
/// Charges a loop: the number of items times the bytes of text in its body.
pub(super) const LOOP: &str = "_guard_loop";
/// Refuses everything but plain data: a namespace that contained itself would be infinite.
pub(super) const PLAIN: &str = "_guard_plain";
/// Escapes for an attribute value without quotes.
pub(super) const UNQUOTED: &str = "_guard_unquoted";
/// Replaces a URL that runs scripts, such as `javascript:…`.
pub(super) const ADDRESS: &str = "_guard_address";
/// Prevents a scheme in the rest of a URL whose beginning is in the template.
pub(super) const ADDRESS_REST: &str = "_guard_address_rest";
/// Replaces all but harmless schemes, where the output is the scheme of a URL.
pub(super) const SCHEME: &str = "_guard_scheme";
/// Prevents output from completing a scheme that the template begins.
pub(super) const SCHEME_REST: &str = "_guard_scheme_rest";
/// Escapes for a style sheet.
pub(super) const STYLE: &str = "_guard_style";
/// Escapes for an attribute whose value is HTML, such as `srcdoc`.
pub(super) const DOCUMENT: &str = "_guard_document";
/// Replaces the `content` of a `meta` element that leads to a URL that runs scripts.
pub(super) const REFRESH: &str = "_guard_refresh";
/// Allows only the digit of a heading, as in `<h1>`.
pub(super) const LEVEL: &str = "_guard_level";
/// Allows only names of harmless tags and email addresses, right after `<`.
pub(super) const TAG: &str = "_guard_tag";
/// Escapes for a text inside a script.
pub(super) const SCRIPT: &str = "_guard_script";

/// Macros of one part.
const MAX_MACROS: usize = 50;

/// Bytes of text in the macros of one part; every running call may hold that much once.
const MAX_MACRO_TEXT: usize = 256 << 10;

/// The source with its guards. `is_markup` is true for HTML, whose outputs are escaped by place. Fails with the rule
/// that the template breaks.
pub(super) fn insert_guards(
    source: &str,
    tokens: &Tokens<'_>,
    tree: &Stmt<'_>,
    is_markup: bool,
) -> Result<String, &'static str> {
    let dangers = if is_markup { positions::dangers(source, tokens)? } else { Vec::new() };
    let mut writer = GuardWriter {
        tokens: &tokens.tokens,
        dangers: &dangers,
        inserts: Vec::new(),
        macros: 0,
        macro_text: 0,
        rule: None,
    };
    writer.statement(tree);
    if let Some(rule) = writer.rule {
        return Err(rule);
    }
    let mut inserts = writer.inserts;
    inserts.sort_by_key(|(at, _)| *at);
    let extra: usize = inserts.iter().map(|(_, text)| text.len()).sum();
    let mut out = String::with_capacity(source.len() + extra);
    let mut written = 0;
    for (at, text) in inserts {
        out.push_str(&source[written..at]);
        out.push_str(&text);
        written = at;
    }
    out.push_str(&source[written..]);
    Ok(out)
}

struct GuardWriter<'a> {
    tokens: &'a [(Token<'a>, Span)],
    dangers: &'a [(usize, OutputContext)],
    /// Texts to insert, each with the byte offset in front of which it goes; those of inner expressions first.
    inserts: Vec<(usize, String)>,
    macros: usize,
    macro_text: usize,
    /// The rule that the template breaks, as a fragment of a sentence.
    rule: Option<&'static str>,
}

fn from(span: Span) -> usize {
    span.start_offset as usize
}

fn to(span: Span) -> usize {
    span.end_offset as usize
}

/// Byte offset of the first token of an expression, without parentheses around it.
fn start_of(expr: &Expr<'_>) -> usize {
    let inner = match expr {
        Expr::Filter(filter) => filter.expr.as_ref().map(start_of),
        Expr::Test(test) => Some(start_of(&test.expr)),
        Expr::GetAttr(get) => Some(start_of(&get.expr)),
        Expr::GetItem(get) => Some(start_of(&get.expr)),
        Expr::Slice(slice) => Some(start_of(&slice.expr)),
        Expr::Call(call) => Some(start_of(&call.expr)),
        Expr::UnaryOp(unary) => Some(start_of(&unary.expr)),
        Expr::IfExpr(choice) => Some(start_of(&choice.true_expr)),
        Expr::BinOp(binary) => Some(start_of(&binary.left)),
        Expr::Compare(compare) => Some(start_of(&compare.expr)),
        Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => None,
    };
    match expr {
        // The spans of these begin at the name of the filter, or in the middle of a chain.
        Expr::Filter(_) | Expr::Test(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_) => {
            inner.unwrap_or_else(|| from(expr.span()))
        }
        _ => inner.map_or(from(expr.span()), |inner| inner.min(from(expr.span()))),
    }
}

/// The filter that an output goes through last.
fn last_filter<'e>(expr: &Expr<'e>) -> Option<&'e str> {
    match expr {
        Expr::Filter(filter) => Some(filter.name),
        _ => None,
    }
}

impl GuardWriter<'_> {
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.inserts.push((at, text.into()));
    }

    /// Wraps a range as `((…)|guard)`, so that any operator may follow.
    fn wrap(&mut self, start: usize, end: usize, guard: &str) {
        self.insert(start, "((");
        self.insert(end, format!(")|{guard})"));
    }

    fn index_at(&self, offset: usize) -> usize {
        self.tokens.partition_point(|(_, span)| from(*span) < offset)
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => {
                self.expression(&emit.expr);
                self.output(from(emit.span()), to(emit.span()), last_filter(&emit.expr));
            }
            Stmt::ForLoop(for_loop) => {
                if for_loop.recursive {
                    self.rule = Some("loops cannot be recursive");
                }
                self.expression(&for_loop.iter);
                self.optional(for_loop.filter_expr.as_ref());
                self.statements(&for_loop.body);
                self.statements(&for_loop.else_body);
                self.loop_items(from(for_loop.span()), text_of(&for_loop.body));
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                for (_, value) in &with.assignments {
                    self.expression(value);
                }
                self.statements(&with.body);
            }
            Stmt::Set(set) => {
                self.expression(&set.expr);
                if matches!(set.target, Expr::GetAttr(_)) {
                    self.namespace_value(from(set.span()));
                }
            }
            Stmt::SetBlock(set) => {
                if matches!(set.target, Expr::GetAttr(_)) {
                    self.rule = Some("a block of text can only be set to a plain name");
                }
                self.optional(set.filter.as_ref());
                self.statements(&set.body);
            }
            Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled);
                self.statements(&escape.body);
            }
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter);
                self.statements(&filter.body);
            }
            Stmt::Macro(declared) => {
                self.count_macro(text_of(&declared.body));
                declared.defaults.iter().for_each(|default| self.expression(default));
                self.statements(&declared.body);
            }
            Stmt::CallBlock(block) => {
                self.count_macro(text_of(&block.macro_decl.body));
                self.arguments(&block.call.args);
                self.expression(&block.call.expr);
                self.statements(&block.macro_decl.body);
            }
            Stmt::Do(call) => {
                self.arguments(&call.call.args);
                self.expression(&call.call.expr);
            }
            // The gate has refused statements that load other templates.
            Stmt::EmitRaw(_)
            | Stmt::Block(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_)
            | Stmt::Extends(_)
            | Stmt::Include(_) => {}
        }
    }

    fn count_macro(&mut self, text: usize) {
        self.macros += 1;
        self.macro_text += text;
        if self.macro_text > MAX_MACRO_TEXT {
            self.rule = Some("has more than 256 KiB of text in macros");
        }
        if self.macros > MAX_MACROS {
            self.rule = Some("has more than 50 macros");
        }
    }

    /// Guards the items of the loop whose statement begins at `start`; `text` is the bytes of text in its body.
    fn loop_items(&mut self, start: usize, text: usize) {
        let keyword = self.index_at(start);
        let is_outside = |depth: i32| depth == 0;
        let Some(after_in) =
            self.find(keyword, |token, depth| is_outside(depth) && matches!(token, Token::Ident("in")))
        else {
            return;
        };
        let until = self.find(after_in + 1, |token, depth| {
            is_outside(depth) && matches!(token, Token::Ident("if" | "recursive") | Token::BlockEnd)
        });
        if let Some(until) = until.filter(|until| *until > after_in + 1) {
            self.insert(from(self.tokens[after_in + 1].1), "(");
            self.insert(to(self.tokens[until - 1].1), format!(")|{LOOP}({text})"));
        }
    }

    /// Index of the first token from `index` on that fits within its tag. `fits` also gets the number of open brackets.
    fn find(&self, index: usize, fits: impl Fn(&Token<'_>, i32) -> bool) -> Option<usize> {
        let mut depth = 0;
        for (at, (token, _)) in self.tokens.iter().enumerate().skip(index) {
            match token {
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                _ => {}
            }
            if fits(token, depth) {
                return Some(at);
            }
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::BlockEnd | Token::VariableEnd => return None,
                _ => {}
            }
        }
        None
    }

    /// Guards the value that is assigned to a namespace, in the statement that begins at `start`.
    fn namespace_value(&mut self, start: usize) {
        let keyword = self.index_at(start);
        let is_assignment = |token: &Token<'_>, depth: i32| depth == 0 && matches!(token, Token::Assign);
        if let Some((_, value)) = self.find(keyword, is_assignment).and_then(|at| self.tokens.get(at + 1)) {
            let start = from(*value);
            let end = self.end_of_tag(start);
            self.wrap(start, end, PLAIN);
        }
    }

    /// Byte offset at which the last token inside the tag around `start` ends.
    fn end_of_tag(&self, start: usize) -> usize {
        let index = self.index_at(start);
        let end = self.tokens[index..]
            .iter()
            .position(|(token, _)| matches!(token, Token::BlockEnd | Token::VariableEnd))
            .map_or(self.tokens.len(), |length| index + length);
        end.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, |(_, span)| to(*span))
    }

    /// Guards an output that stands where the usual HTML escapes do not suffice, such as a URL or a script.
    ///
    /// An output that its author marks as `safe`, and `tojson` inside a script, are left alone. The results of macros
    /// and blocks are not, because their parts were escaped for another place.
    fn output(&mut self, start: usize, end: usize, last_filter: Option<&str>) {
        let Ok(found) = self.dangers.binary_search_by_key(&start, |(at, _)| *at) else { return };
        let OutputContext { danger, unquoted } = self.dangers[found].1;
        let is_trusted = match last_filter {
            Some("safe") => true,
            Some("tojson") => danger == Some(Danger::Script) && !unquoted,
            _ => false,
        };
        if is_trusted {
            return;
        }
        let guard = danger.map(|danger| match danger {
            Danger::Address => ADDRESS,
            Danger::AddressRest => ADDRESS_REST,
            Danger::Scheme => SCHEME,
            Danger::SchemeRest => SCHEME_REST,
            Danger::Script => SCRIPT,
            Danger::Style => STYLE,
            Danger::Document => DOCUMENT,
            Danger::Refresh => REFRESH,
            Danger::Level => LEVEL,
            Danger::Tag => TAG,
        });
        let guards: Vec<_> = guard.into_iter().chain(unquoted.then_some(UNQUOTED)).collect();
        let opened = to(self.tokens[self.index_at(start)].1);
        // A space, because `{{` may be followed by a sign that the engine reads as part of the tag.
        self.insert(opened, " (");
        self.insert(end, format!(")|{}", guards.join("|")));
    }

    fn optional(&mut self, expr: Option<&Expr<'_>>) {
        if let Some(expr) = expr {
            self.expression(expr);
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            let (CallArg::Pos(expr) | CallArg::Kwarg(_, expr) | CallArg::PosSplat(expr) | CallArg::KwargSplat(expr)) =
                argument;
            self.expression(expr);
        }
    }

    fn expression(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::UnaryOp(unary) => self.expression(&unary.expr),
            Expr::GetAttr(get) => self.expression(&get.expr),
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr);
                self.expression(&choice.true_expr);
                self.optional(choice.false_expr.as_ref());
            }
            Expr::Filter(filter) => {
                self.optional(filter.expr.as_ref());
                self.arguments(&filter.args);
            }
            Expr::Test(test) => {
                self.expression(&test.expr);
                self.arguments(&test.args);
            }
            Expr::Call(call) => {
                self.expression(&call.expr);
                self.arguments(&call.args);
                self.wrap(start_of(expr), to(call.span()), MADE);
            }
            Expr::List(list) => {
                list.items.iter().for_each(|item| self.expression(item));
                self.wrap(from(list.span()), to(list.span()), MADE);
            }
            Expr::Tuple(tuple) => {
                tuple.items.iter().for_each(|item| self.expression(item));
                self.wrap(from(tuple.span()), to(tuple.span()), MADE);
            }
            Expr::Map(map) => {
                map.keys.iter().chain(&map.values).for_each(|item| self.expression(item));
                self.wrap(from(map.span()), to(map.span()), MADE);
            }
            Expr::GetItem(get) => {
                self.expression(&get.expr);
                self.expression(&get.subscript_expr);
                if !matches!(&get.subscript_expr, Expr::Const(key) if key.value.as_str().is_some()) {
                    self.indexed(start_of(expr), to(get.span()));
                }
            }
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                for bound in [&slice.start, &slice.stop, &slice.step] {
                    self.optional(bound.as_ref());
                }
                self.indexed(start_of(expr), to(slice.span()));
                self.wrap(start_of(expr), to(slice.span()), MADE);
            }
            Expr::BinOp(binary) => {
                self.expression(&binary.left);
                self.expression(&binary.right);
                let (start, end) = (from(binary.span()), to(binary.span()));
                match binary.op {
                    BinOpKind::Concat | BinOpKind::Add => self.wrap(start, end, MADE),
                    BinOpKind::Mul => {
                        if let Some(operator) = self
                            .operators(start, end, |token| {
                                matches!(token, Token::Mul | Token::Div | Token::FloorDiv | Token::Mod)
                            })
                            .pop()
                        {
                            self.insert(operator, format!("|{NUMBER} "));
                            self.insert(end, format!("|{NUMBER}"));
                        }
                    }
                    BinOpKind::Eq
                    | BinOpKind::Ne
                    | BinOpKind::Lt
                    | BinOpKind::Lte
                    | BinOpKind::Gt
                    | BinOpKind::Gte
                    | BinOpKind::In => self.comparison(start, end),
                    BinOpKind::ScAnd
                    | BinOpKind::ScOr
                    | BinOpKind::Sub
                    | BinOpKind::Div
                    | BinOpKind::FloorDiv
                    | BinOpKind::Rem
                    | BinOpKind::Pow => {}
                }
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr);
                compare.ops.iter().for_each(|op| self.expression(&op.expr));
                self.comparison(from(compare.span()), to(compare.span()));
            }
        }
    }

    /// Guards the value that is indexed or sliced by brackets that end at `end`.
    fn indexed(&mut self, start: usize, end: usize) {
        let last = self.tokens.partition_point(|(_, span)| to(*span) < end);
        let Some((token, _)) = self.tokens.get(last) else { return };
        let opening = if matches!(token, Token::BracketClose) {
            let mut depth = 0;
            self.tokens[..=last].iter().rposition(|(token, _)| {
                match token {
                    Token::BracketClose => depth += 1,
                    Token::BracketOpen => depth -= 1,
                    _ => {}
                }
                depth == 0
            })
        } else {
            // `list.0`: the dot stands before the number.
            last.checked_sub(1)
        };
        if let Some(opening) = opening {
            let before = from(self.tokens[opening].1);
            self.wrap(start, before, INDEXED);
        }
    }

    /// Guards both operands of every comparison up to `end`. `before` is the token in front of the first operand, where
    /// the span in the tree begins.
    fn comparison(&mut self, before: usize, end: usize) {
        let Some((_, first)) = self.tokens.get(self.index_at(before) + 1) else { return };
        let start = from(*first);
        let is_comparison = |token: &Token<'_>| {
            matches!(
                token,
                Token::Eq | Token::Ne | Token::Lt | Token::Lte | Token::Gt | Token::Gte | Token::Ident("in")
            )
        };
        for operator in self.operators(start, end, is_comparison) {
            // `not in` is one operator.
            let index = self.index_at(operator);
            let negated = index.checked_sub(1).and_then(|before| self.tokens.get(before));
            let at = match negated {
                Some((Token::Ident("not"), span)) if from(*span) >= start => from(*span),
                _ => operator,
            };
            self.insert(at, format!("|{COMPARED} "));
        }
        self.insert(end, format!("|{COMPARED}"));
    }

    /// Byte offsets of the wanted operators between `start` and `end`, without those in brackets.
    fn operators(&self, start: usize, end: usize, wanted: impl Fn(&Token<'_>) -> bool) -> Vec<usize> {
        let (mut depth, mut found) = (0, Vec::new());
        for (token, span) in self.tokens[self.index_at(start)..].iter().take_while(|(_, span)| to(*span) <= end) {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
                token if depth == 0 && wanted(token) => found.push(from(*span)),
                _ => {}
            }
        }
        found
    }
}

/// Bytes of text that one iteration of a loop writes, without inner loops: these are charged on their own.
fn text_of(statements: &[Stmt<'_>]) -> usize {
    statements
        .iter()
        .map(|statement| match statement {
            Stmt::EmitRaw(raw) => raw.raw.len(),
            Stmt::IfCond(condition) => text_of(&condition.true_body) + text_of(&condition.false_body),
            Stmt::WithBlock(with) => text_of(&with.body),
            Stmt::SetBlock(set) => text_of(&set.body),
            Stmt::AutoEscape(escape) => text_of(&escape.body),
            Stmt::FilterBlock(filter) => text_of(&filter.body),
            Stmt::CallBlock(block) => text_of(&block.macro_decl.body),
            Stmt::ForLoop(for_loop) => text_of(&for_loop.else_body),
            _ => 0,
        })
        .sum()
}
