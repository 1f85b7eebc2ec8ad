//! Filters and functions of templates, with their costs.
//!
//! They are the engine's own. A guard before each charges the data that it will read, and one after it the data that it
//! made; for a few, whose arguments determine the size of the result, that size is checked first.

use std::borrow::Cow;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions};

use super::address;
use super::budget::{self, charge, charge_tree, made};
use super::escape;
use super::guard;

/// Largest argument that determines the size of a result: the width of an indentation, the size of a batch.
const MAX_COUNT: i64 = 10_000;

/// All arguments of a filter, named ones as the last value.
type Arguments = Rest<ValueOrKwargs>;

/// Adds the filters and functions to an environment.
pub(super) fn install(env: &mut Environment<'static>) {
    guards(env);
    macro_rules! cheap {
        ($($name:literal => $filter:expr,)+) => {$(
            let original = Value::from_function($filter);
            env.add_filter($name, move |state: &mut State<'_, '_>, arguments: Arguments| {
                original.call(state, &arguments.into_values())
            });
        )+};
    }
    // These read one item, or a number.
    cheap! {
        "length" => filters::length, "count" => filters::length, "first" => filters::first,
        "int" => filters::int, "float" => filters::float, "abs" => filters::abs, "bool" => filters::bool,
        "attr" => filters::attr,
    }
    macro_rules! costly {
        ($($name:literal => $filter:expr,)+) => {$(
            let original = Value::from_function($filter);
            env.add_filter($name, move |state: &mut State<'_, '_>, arguments: Arguments| {
                let arguments = arguments.into_values();
                arguments.iter().try_for_each(|argument| charge_tree(state, argument))?;
                before($name, state, &arguments)?;
                let made_value = original.call(state, &arguments)?;
                made(state, made_value)
            });
        )+};
    }
    costly! {
        "safe" => filters::safe, "lower" => filters::lower, "upper" => filters::upper,
        "title" => filters::title, "capitalize" => filters::capitalize, "replace" => filters::replace,
        "dictsort" => filters::dictsort, "items" => filters::items, "reverse" => filters::reverse,
        "trim" => filters::trim, "join" => filters::join, "split" => filters::split, "lines" => filters::lines,
        "round" => filters::round, "last" => filters::last, "min" => filters::min, "max" => filters::max,
        "sort" => filters::sort, "list" => filters::list, "string" => filters::string,
        "batch" => filters::batch, "slice" => filters::slice, "sum" => filters::sum, "indent" => filters::indent,
        "select" => filters::select, "reject" => filters::reject, "selectattr" => filters::selectattr,
        "rejectattr" => filters::rejectattr, "map" => filters::map, "groupby" => filters::groupby,
        "unique" => filters::unique, "chain" => filters::chain, "zip" => filters::zip,
        "pprint" => filters::pprint, "format" => filters::format, "tojson" => filters::tojson,
        "urlencode" => filters::urlencode,
    }
    env.add_filter("default", or_default);
    env.add_filter("d", or_default);
    env.add_filter("escape", escaped);
    env.add_filter("e", escaped);
    let range = Value::from_function(functions::range);
    env.add_function("range", move |state: &mut State<'_, '_>, arguments: Arguments| {
        let numbers = range.call(state, &arguments.into_values())?;
        made(state, numbers)
    });
    let namespace = Value::from_function(functions::namespace);
    env.add_function("namespace", move |state: &mut State<'_, '_>, arguments: Arguments| {
        let arguments = arguments.into_values();
        arguments.iter().try_for_each(|argument| budget::plain(state, argument, 0))?;
        namespace.call(state, &arguments)
    });
    // It prints the internals of the engine.
    env.remove_global("debug");
    // Not in the language of section 11, and of no use without filters and tests as values.
    env.remove_test("filter");
    env.remove_test("test");
}

/// Adds the guards that [`guard::insert_guards`] writes.
fn guards(env: &mut Environment<'static>) {
    env.add_filter(guard::MADE, |state: &mut State<'_, '_>, value: Value| made(state, value));
    env.add_filter(guard::NUMBER, |value: Value| match value.kind() {
        ValueKind::Number | ValueKind::Bool => Ok(value),
        ValueKind::Undefined => {
            Err(Error::new(ErrorKind::UndefinedError, "`*` multiplies numbers, and one is missing"))
        }
        _ => Err(Error::new(ErrorKind::InvalidOperation, "`*` multiplies numbers only")),
    });
    env.add_filter(guard::COMPARED, |state: &mut State<'_, '_>, value: Value| {
        charge_tree(state, &value).map(|()| value)
    });
    env.add_filter(guard::INDEXED, |state: &mut State<'_, '_>, value: Value| {
        let length = value.as_str().map_or(1, str::len);
        charge(state, length as u64).map(|()| value)
    });
    env.add_filter(guard::LOOP, |state: &mut State<'_, '_>, value: Value, text: u64| {
        budget::each(state, &value, text).map(|()| value)
    });
    env.add_filter(guard::PLAIN, |state: &mut State<'_, '_>, value: Value| {
        budget::plain(state, &value, 0).map(|()| value)
    });
    env.add_filter(guard::UNQUOTED, |state: &mut State<'_, '_>, value: Value| special(state, value, escape::unquoted));
    env.add_filter(guard::SCRIPT, |state: &mut State<'_, '_>, value: Value| special(state, value, escape::script));
    env.add_filter(guard::STYLE, |state: &mut State<'_, '_>, value: Value| special(state, value, escape::style));
    env.add_filter(guard::DOCUMENT, |state: &mut State<'_, '_>, value: Value| special(state, value, escape::document));
    for (name, rewrite) in [
        (guard::ADDRESS, address::whole as fn(&str) -> Cow<'_, str>),
        (guard::ADDRESS_REST, address::rest),
        (guard::SCHEME, address::scheme),
        (guard::SCHEME_REST, address::scheme_rest),
        (guard::REFRESH, address::refresh),
        (guard::LEVEL, address::level),
        (guard::TAG, address::tag),
    ] {
        env.add_filter(name, move |state: &mut State<'_, '_>, value: Value| rewritten(state, value, rewrite));
    }
}

/// Rewrites an output; whether it is escaped later stays as it was.
fn rewritten(state: &mut State<'_, '_>, value: Value, rewrite: fn(&str) -> Cow<'_, str>) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Undefined | ValueKind::None | ValueKind::Number) {
        return Ok(value);
    }
    let text = escape::printed(state, &value)?;
    let new = match rewrite(&text) {
        Cow::Borrowed(same) if same == text => return Ok(value),
        new => new.into_owned(),
    };
    made(state, if value.is_safe() { Value::from_safe_string(new) } else { Value::from(new) })
}

/// Escapes an output in its own way.
fn special(state: &mut State<'_, '_>, value: Value, escape: fn(&str) -> String) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Undefined | ValueKind::None | ValueKind::Number) {
        return Ok(value);
    }
    let text = escape::printed(state, &value)?;
    // A quote becomes ten bytes where markup stands inside an attribute.
    budget::room(state, 10 * text.len() as u64)?;
    made(state, Value::from_safe_string(escape(&text)))
}

/// Checks the size of the result for filters whose arguments determine it.
fn before(name: &str, state: &mut State<'_, '_>, arguments: &[Value]) -> Result<(), Error> {
    let too_large = |value: &Value| value.as_i64().is_some_and(|number| !(-MAX_COUNT..=MAX_COUNT).contains(&number));
    let texts: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    let first = arguments.first().and_then(Value::as_str);
    budget::room(state, first.map_or(0, |text| growth(name, text, texts.get(1).copied())))?;
    match name {
        "indent" | "batch" | "slice" | "tojson" | "round" => {
            let named = arguments.last().filter(|last| last.is_kwargs());
            let named = named.into_iter().flat_map(|named| {
                let names = ["width", "linecount", "count", "slices", "indent", "precision"];
                names.into_iter().filter_map(|name| named.get_attr(name).ok())
            });
            let given: Vec<Value> = arguments.iter().skip(1).cloned().chain(named).collect();
            if given.iter().any(too_large) {
                return Err(Error::new(ErrorKind::InvalidOperation, "a number is larger than 10000"));
            }
            let lines = texts.first().map_or(1, |text| text.matches('\n').count() as u64 + 1);
            let most = given.iter().filter_map(Value::as_i64).max().unwrap_or(4).unsigned_abs();
            if name == "tojson" && given.iter().any(|given| given.as_i64().is_some()) {
                // Every item has a line of its own that is indented.
                let value = arguments.first().map_or(0, lines_of);
                budget::room(state, value.saturating_mul(most))?;
            }
            charge(state, if name == "indent" { lines.saturating_mul(most) } else { most.saturating_mul(32) })
        }
        "replace" => match texts[..] {
            [text, from, to, ..] => {
                let found = if from.is_empty() { text.chars().count() + 1 } else { text.len() / from.len() };
                // Escapes make a text at most six times as long.
                charge(state, (found as u64).saturating_mul(6 * to.len() as u64))
            }
            _ => Ok(()),
        },
        "join" => {
            let items = arguments.first().and_then(Value::len).unwrap_or(0) as u64;
            let between = texts.last().map_or(0, |text| text.len() as u64);
            charge(state, items.saturating_mul(6 * between))
        }
        "format" if texts.first().is_some_and(|text| has_long_number(text)) || arguments.iter().any(too_wide) => {
            Err(Error::new(ErrorKind::InvalidOperation, "a width is larger than 999"))
        }
        // Every placeholder may print the longest value, or a width of three digits.
        "format" => {
            let signs = texts.first().map_or(0, |text| text.matches('%').count() as u64);
            budget::room(state, signs.saturating_mul(999.max(longest(arguments.get(1..).unwrap_or_default()))))
        }
        // A test or filter runs for every item.
        "select" | "reject" | "selectattr" | "rejectattr" | "map" => {
            let items = arguments.first().and_then(Value::len).unwrap_or(0);
            (0..items).try_for_each(|_| arguments.iter().skip(1).try_for_each(|argument| charge_tree(state, argument)))
        }
        _ => Ok(()),
    }
}

/// Returns the maximum number of bytes that a filter makes from a text.
fn growth(name: &str, text: &str, separator: Option<&str>) -> u64 {
    /// Bytes of memory that an item of a list takes.
    const ITEM: u64 = 32;
    let count = |count: usize| (count as u64 + 1).saturating_mul(ITEM);
    match name {
        "tojson" | "replace" | "join" => budget::spelled(text),
        "urlencode" => 3 * text.len() as u64,
        "upper" | "lower" | "title" | "capitalize" if !text.is_ascii() => 3 * text.len() as u64,
        "lines" => count(text.matches('\n').count()),
        "split" => match separator {
            Some(separator) if !separator.is_empty() => count(text.matches(separator).count()),
            Some(_) => count(text.chars().count()),
            None => count(text.split_whitespace().count()),
        },
        "list" | "batch" | "slice" | "sort" | "unique" | "zip" | "chain" | "map" | "select" | "reject" => {
            count(text.chars().count())
        }
        _ => 0,
    }
}

/// Counts the lines of a value as indented JSON, each as often as it is indented. The value was walked before, so that
/// its depth is bounded.
fn lines_of(value: &Value) -> u64 {
    fn count(value: &Value, depth: u64) -> u64 {
        let inner = match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                value.try_iter().map_or(0, |items| items.map(|item| count(&item, depth + 1)).sum())
            }
            ValueKind::Map => value.try_iter().map_or(0, |keys| {
                keys.filter_map(|key| value.get_item(&key).ok()).map(|item| count(&item, depth + 1)).sum()
            }),
            _ => 0,
        };
        inner + 2 * depth
    }
    count(value, 0)
}

/// Returns the size, in bytes, of the longest value among arguments, named ones included.
fn longest(arguments: &[Value]) -> u64 {
    let of = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len) as u64;
    arguments.iter().map(of).max().unwrap_or(0).saturating_mul(6)
}

/// True if a text has a number of more than three digits, which a format would take for a width.
fn has_long_number(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 3) || text.contains('*')
}

fn too_wide(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('%') && has_long_number(text))
}

/// Filter `default`: also for `null`, because a request says so when it has no value. With `true` as the second
/// argument also for empty values.
fn or_default(value: Value, arguments: Arguments) -> Value {
    let arguments = arguments.into_values();
    let named = |name: &str| {
        let last = arguments.last().filter(|last| last.is_kwargs())?;
        last.get_attr(name).ok().filter(|value| !value.is_undefined())
    };
    let positional = |index: usize| arguments.get(index).filter(|value| !value.is_kwargs()).cloned();
    let fallback = positional(0).or_else(|| named("default_value")).unwrap_or_else(|| Value::from(""));
    let also_empty = positional(1).or_else(|| named("boolean")).is_some_and(|flag| flag.is_true());
    let is_missing = value.is_undefined() || value.is_none() || (also_empty && !value.is_true());
    if is_missing { fallback } else { value }
}

/// Filter `escape`: as values are escaped by default.
fn escaped(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if value.is_safe() {
        return Ok(value);
    }
    charge_tree(state, &value)?;
    let text = escape::printed(state, &value)?;
    let mut out = String::with_capacity(text.len());
    escape::html(&mut out, &text).map_err(|_| Error::new(ErrorKind::WriteFailure, "cannot be escaped"))?;
    made(state, Value::from_safe_string(out))
}
