//! Limits on the cost of one rendering.
//!
//! Three bounds apply together: instructions (counted by the engine), work (bytes and items that are made, compared or
//! searched; counted here), and the length of the output. Work is charged before it is done if its size is known, so
//! that refused values are never made. Values are walked as trees, because that is the cost of printing or comparing
//! them: a list that holds itself twice and is put into another twice grows as fast as one that was written out.

use minijinja::value::{DynObject, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// Bounds of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of the engine.
    pub fuel: u64,
    /// Bytes made and searched, with items counted as `ITEM`.
    pub work: u64,
}

impl Limits {
    /// Limits of any rendering: some tenths of a second.
    pub const WHOLE: Self = Self { fuel: 1_000_000, work: 16 << 20 };
    /// Limits of a rendering that others wait for: some milliseconds.
    pub const SHORT: Self = Self { fuel: 20_000, work: 1 << 20 };
}

/// Maximum size of a rendered part, in bytes.
pub(crate) const MAX_OUTPUT: usize = 2 << 20;

/// Bytes that an item of a list counts as.
const ITEM: u64 = 32;

/// Maximum nesting depth of lists and maps; JSON nests at most 128 deep, and a template adds a few.
const MAX_DEPTH: usize = 160;

/// Work that is left; kept in the state of a rendering.
#[derive(Debug)]
struct Left(u64);

/// Name under which the limit is passed to the rendering.
pub(crate) const WORK: &str = "_guard_work";

/// Charges work, and fails if there is none left.
pub fn charge(state: &mut State<'_, '_>, cost: u64) -> Result<(), Error> {
    if state.get_extension::<Left>().is_none() {
        let whole = state.lookup(WORK).and_then(|limit| u64::try_from(limit).ok());
        state.get_or_insert_extension(Left(whole.unwrap_or(Limits::WHOLE.work)));
    }
    let Some(left) = state.get_extension_mut::<Left>() else { return Ok(()) };
    match left.0.checked_sub(cost) {
        Some(rest) => {
            left.0 = rest;
            Ok(())
        }
        None => Err(too_much()),
    }
}

/// Fails if this many more bytes exceed the work that is left; the bytes are charged when they are made.
pub fn room(state: &mut State<'_, '_>, bytes: u64) -> Result<(), Error> {
    charge(state, 0)?;
    match state.get_extension_mut::<Left>() {
        Some(left) if left.0 < bytes => Err(too_much()),
        _ => Ok(()),
    }
}

/// Returns the maximum size, in bytes, of a text in a list that is printed or becomes JSON: quotes and control
/// characters are spelled with up to six characters.
pub fn spelled(text: &str) -> u64 {
    let cost = |byte: u8| match byte {
        b'"' | b'\'' | b'\\' | b'<' | b'>' | b'&' | 0..=31 | 127 => 6,
        128.. => 3,
        _ => 1,
    };
    text.bytes().map(cost).sum()
}

/// Returns the error for too much work.
fn too_much() -> Error {
    Error::new(ErrorKind::OutOfFuel, "makes or looks through too much data")
}

/// Charges the cost of a walk through a value.
pub(crate) fn charge_tree(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match cheap(value) {
        Some(cost) => charge(state, cost),
        None => walk(state, value, 0),
    }
}

/// Returns the cost of a value that holds no others; `None` for other values.
fn cheap(value: &Value) -> Option<u64> {
    match value.as_str() {
        Some(text) => Some(text.len() as u64),
        // A large float is printed with all its digits.
        None if value.kind() == ValueKind::Number && !value.is_integer() => {
            Some(if f64::try_from(value.clone()).is_ok_and(|n| n != 0.0 && !(1e-9..1e18).contains(&n.abs())) {
                330
            } else {
                1
            })
        }
        None if value.as_object().is_none() => Some(1),
        None => None,
    }
}

fn walk(state: &mut State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    charge(state, ITEM)?;
    if let Some(text) = value.as_str() {
        return charge(state, spelled(text));
    }
    if let Some(cost) = cheap(value) {
        return charge(state, cost);
    }
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "lists are nested too deeply"));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()? {
                walk(state, &item, depth + 1)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                walk(state, &value.get_item(&key)?, depth + 1)?;
                walk(state, &key, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Charges the result of an operation. A list that would be computed anew at every access is materialized, so that
/// lists of lists of lists stay shallow.
pub fn made(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if let Some(cost) = cheap(&value) {
        return charge(state, cost).map(|()| value);
    }
    match value.kind() {
        ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()? {
                charge(state, ITEM)?;
                walk(state, &item, 0)?;
                items.push(item);
            }
            Ok(Value::from(items))
        }
        ValueKind::Seq => walk(state, &value, 0).map(|()| value),
        // Only plain maps: a namespace may change, and a macro holds no data.
        ValueKind::Map if !is_special(&value) => walk(state, &value, 0).map(|()| value),
        _ => Ok(value),
    }
}

/// True if a value is one of the engine's own objects.
pub(crate) fn is_special(value: &Value) -> bool {
    let special = |object: &DynObject| {
        let name = object.type_name();
        name.contains("Namespace") || name.contains("Macro") || name.contains("Loop") || name.contains("Module")
    };
    value.as_object().is_some_and(special)
}

/// Fails if a value is not plain data all the way down.
pub fn plain(state: &mut State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    charge(state, ITEM)?;
    if is_special(value) {
        return Err(Error::new(ErrorKind::InvalidOperation, "a namespace holds plain values only"));
    }
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "lists are nested too deeply"));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()? {
                plain(state, &item, depth + 1)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                plain(state, &value.get_item(&key)?, depth + 1)?;
            }
        }
        ValueKind::Plain => {
            return Err(Error::new(ErrorKind::InvalidOperation, "a namespace holds plain values only"));
        }
        _ => {}
    }
    Ok(())
}

/// Charges a loop over a value.
pub fn each(state: &mut State<'_, '_>, value: &Value, text: u64) -> Result<(), Error> {
    let items = match value.as_str() {
        Some(text) => text.len() as u64,
        None => value.len().map_or(0, |items| items as u64),
    };
    charge(state, items.saturating_mul(text.saturating_add(ITEM)))
}
