//! Names that a template uses.
//!
//! Contract section 11: in the order in which they are first seen, without system names, without names that are used
//! only inside the sections of lists. By the contract's wording, the latter include a name that is used in a loop's
//! body although the loop does not bind it.

use std::collections::BTreeMap;

use minijinja::machinery::ast::{CallArg, Expr, Stmt};

/// Names whose values the system provides (contract section 11).
pub(crate) const SYSTEM: [&str; 8] =
    ["contact", "unsubscribe_url", "preferences_url", "archive_url", "workspace", "campaign", "message_id", "event"];

/// Maximum number of names of one part.
const MAX_NAMES: usize = 1000;

/// Names, filters and tests that a source uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names that need values, with their members: `order.id`.
    pub variables: Vec<String>,
    /// System names with their members: `contact.email`.
    pub system: Vec<String>,
    /// True if any value is looked up that is not the system's, loops included.
    pub asks_values: bool,
    /// Filters, with the offset of the first use.
    pub filters: BTreeMap<String, usize>,
    /// Tests, with the offset of the first use.
    pub tests: BTreeMap<String, usize>,
}

impl Names {
    /// True if the source uses this system name or one of its members.
    pub fn uses_system(&self, name: &str) -> bool {
        self.system.iter().any(|used| used == name || used.split('.').next() == Some(name))
    }
}

/// Finds the names that a source uses.
pub fn names(tree: &Stmt<'_>) -> Names {
    let mut finder = Finder { found: Names::default(), bound: vec![Vec::new()], loops: 0 };
    finder.statement(tree);
    finder.found
}

/// Names that the engine has in every template.
const BUILT_IN: [&str; 5] = ["range", "dict", "namespace", "loop", "caller"];

struct Finder<'a> {
    found: Names,
    /// The names that are bound, innermost scope last.
    bound: Vec<Vec<&'a str>>,
    /// Number of loops around the current place.
    loops: usize,
}

impl<'a> Finder<'a> {
    fn bind(&mut self, target: &Expr<'a>) {
        match target {
            Expr::Var(var) => {
                if let Some(scope) = self.bound.last_mut() {
                    scope.push(var.id);
                }
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item)),
            _ => {}
        }
    }

    fn scoped(&mut self, look: impl FnOnce(&mut Self)) {
        self.bound.push(Vec::new());
        look(self);
        self.bound.pop();
    }

    fn statements(&mut self, statements: &[Stmt<'a>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'a>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::ForLoop(for_loop) => {
                self.expression(&for_loop.iter);
                self.loops += 1;
                self.scoped(|finder| {
                    finder.bind(&for_loop.target);
                    finder.optional(for_loop.filter_expr.as_ref());
                    finder.statements(&for_loop.body);
                });
                self.loops -= 1;
                self.scoped(|finder| finder.statements(&for_loop.else_body));
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => self.scoped(|finder| {
                for (target, value) in &with.assignments {
                    finder.expression(value);
                    finder.bind(target);
                }
                finder.statements(&with.body);
            }),
            Stmt::Set(set) => {
                self.expression(&set.expr);
                self.bind(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.optional(set.filter.as_ref());
                self.scoped(|finder| finder.statements(&set.body));
                self.bind(&set.target);
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
                if let Some(scope) = self.bound.last_mut() {
                    scope.push(declared.name);
                }
                self.scoped(|finder| {
                    declared.defaults.iter().for_each(|default| finder.expression(default));
                    declared.args.iter().for_each(|argument| finder.bind(argument));
                    finder.statements(&declared.body);
                });
            }
            Stmt::CallBlock(block) => {
                self.expression(&block.call.expr);
                self.arguments(&block.call.args);
                self.scoped(|finder| {
                    block.macro_decl.args.iter().for_each(|argument| finder.bind(argument));
                    finder.statements(&block.macro_decl.body);
                });
            }
            Stmt::Do(call) => {
                self.expression(&call.call.expr);
                self.arguments(&call.call.args);
            }
            Stmt::EmitRaw(_)
            | Stmt::Block(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_)
            | Stmt::Extends(_)
            | Stmt::Include(_) => {}
        }
    }

    fn optional(&mut self, expr: Option<&Expr<'a>>) {
        if let Some(expr) = expr {
            self.expression(expr);
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'a>]) {
        for argument in arguments {
            let (CallArg::Pos(expr) | CallArg::Kwarg(_, expr) | CallArg::PosSplat(expr) | CallArg::KwargSplat(expr)) =
                argument;
            self.expression(expr);
        }
    }

    /// Records a name with the members that are accessed.
    fn use_name(&mut self, root: &str, members: &[&str]) {
        if self.bound.iter().any(|scope| scope.contains(&root)) {
            return;
        }
        let path = std::iter::once(root).chain(members.iter().copied()).collect::<Vec<_>>().join(".");
        let is_system = SYSTEM.contains(&root);
        self.found.asks_values |= !is_system && !BUILT_IN.contains(&root);
        if !is_system && (self.loops > 0 || BUILT_IN.contains(&root)) {
            return;
        }
        let list = if is_system { &mut self.found.system } else { &mut self.found.variables };
        if list.len() < MAX_NAMES && !list.contains(&path) {
            list.push(path);
        }
    }

    fn expression(&mut self, expr: &Expr<'a>) {
        match expr {
            Expr::Var(var) => self.use_name(var.id, &[]),
            Expr::Const(_) => {}
            Expr::UnaryOp(unary) => self.expression(&unary.expr),
            Expr::BinOp(binary) => {
                self.expression(&binary.left);
                self.expression(&binary.right);
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr);
                compare.ops.iter().for_each(|op| self.expression(&op.expr));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.true_expr);
                self.expression(&choice.test_expr);
                self.optional(choice.false_expr.as_ref());
            }
            Expr::Filter(filter) => {
                self.optional(filter.expr.as_ref());
                let at = filter.span().start_offset as usize;
                self.found.filters.entry(filter.name.to_owned()).or_insert(at);
                self.arguments(&filter.args);
            }
            Expr::Test(test) => {
                self.expression(&test.expr);
                self.found.tests.entry(test.name.to_owned()).or_insert(test.span().start_offset as usize);
                self.arguments(&test.args);
            }
            Expr::GetAttr(_) | Expr::GetItem(_) => self.member(expr),
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                for bound in [&slice.start, &slice.stop, &slice.step] {
                    self.optional(bound.as_ref());
                }
            }
            Expr::Call(call) => {
                // A method is not a member: the value that it is called on is needed.
                match &call.expr {
                    Expr::GetAttr(method) => self.expression(&method.expr),
                    other => self.expression(other),
                }
                self.arguments(&call.args);
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => map.keys.iter().chain(&map.values).for_each(|item| self.expression(item)),
        }
    }

    /// Reads `a.b`, `a["b"]` and mixtures; an access by a computed name or a number ends the path.
    fn member(&mut self, expr: &Expr<'a>) {
        let mut members: Vec<String> = Vec::new();
        let mut current = expr;
        loop {
            match current {
                Expr::GetAttr(get) => {
                    members.push(get.name.to_owned());
                    current = &get.expr;
                }
                Expr::GetItem(get) => {
                    match &get.subscript_expr {
                        Expr::Const(key) if key.value.as_str().is_some_and(|key| !key.contains('.')) => {
                            members.push(key.value.as_str().unwrap_or_default().to_owned());
                        }
                        other => {
                            self.expression(other);
                            members.clear();
                        }
                    }
                    current = &get.expr;
                }
                Expr::Var(var) => {
                    let members: Vec<&str> = members.iter().rev().map(String::as_str).collect();
                    return self.use_name(var.id, &members);
                }
                other => return self.expression(other),
            }
        }
    }
}
