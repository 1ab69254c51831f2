// SPDX-License-Identifier: Apache-2.0
//! The functions that a template may call by name, and calls of all callable values.

use super::arguments::{invalid, Arguments};
use super::budget::{claim, OVERHEAD, PAIR_SIZE};
use super::expression_values::named_of;
use super::integers;
use super::lists::items_of;
use super::loops::Loop;
use super::macros::{MacroValue, Myself};
use super::methods::{dict_pairs, map_of, Bound};
use super::namespace;
use super::python::{kind_name, to_text};
use super::strftime::strftime;
use super::values::{free, Dict, Range};
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Maximum items of a range, as in jinja2's sandbox.
const MAX_RANGE: usize = 100_000;

/// A function with its name.
struct Function {
    name: &'static str,
    call: fn(&[Value]) -> Result<Value, Error>,
}

const FUNCTIONS: [Function; 7] = [
    Function { name: "cycler", call: cycler },
    Function { name: "dict", call: dict },
    Function { name: "joiner", call: joiner },
    Function { name: "namespace", call: namespace::namespace },
    Function { name: "raise_exception", call: raise_exception },
    Function { name: "range", call: range },
    Function { name: "strftime_now", call: strftime_now },
];

/// A function as a value, by its index.
#[derive(Debug)]
struct FunctionValue(usize);

impl Object for FunctionValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match FUNCTIONS[self.0].name {
            "dict" => write!(out, "<class 'dict'>"),
            "cycler" => write!(out, "<class 'jinja2.utils.Cycler'>"),
            "joiner" => write!(out, "<class 'jinja2.utils.Joiner'>"),
            "namespace" => write!(out, "<class 'jinja2.utils.Namespace'>"),
            name => write!(out, "<function {name}>"),
        }
    }
}

/// The meaning of a name that the caller did not give.
pub fn global(name: &str) -> Option<Value> {
    if name == "self" {
        return Some(Value::from_object(Myself));
    }
    let index = FUNCTIONS.iter().position(|function| function.name == name)?;
    Some(Value::from_object(FunctionValue(index)))
}

pub fn is_dict_type(value: &Value) -> bool {
    value.downcast_object_ref::<FunctionValue>().is_some_and(|function| FUNCTIONS[function.0].name == "dict")
}

/// True if a value can be called.
pub fn is_callable(value: &Value) -> bool {
    let is = |object: &minijinja::value::DynObject| {
        object.is::<FunctionValue>()
            || object.is::<MacroValue>()
            || object.is::<Bound>()
            || object.is::<Joiner>()
            || object.is::<Loop>()
    };
    // An undefined value is callable in name only.
    value.is_undefined() || value.as_object().is_some_and(is)
}

/// `value(...)`.
pub fn call_value(value: &Value, given: &[Value]) -> Result<Value, Error> {
    if let Some(function) = value.downcast_object_ref::<FunctionValue>() {
        return (FUNCTIONS[function.0].call)(given);
    }
    if let Some(node) = value.downcast_object_ref::<MacroValue>() {
        return node.call(given);
    }
    if let Some(method) = value.downcast_object_ref::<Bound>() {
        return method.call(given);
    }
    if let Some(state) = value.downcast_object_ref::<Loop>() {
        return state.call(given);
    }
    if let Some(joiner) = value.downcast_object_ref::<Joiner>() {
        return joiner.call(given);
    }
    Err(invalid(format!("{} is no function", kind_name(value))))
}

/// `range(stop)`, `range(start, stop, step=1)`.
fn range(given: &[Value]) -> Result<Value, Error> {
    let whole =
        |value: &Value| integers::small(value).ok_or_else(|| invalid(format!("a range of {}", kind_name(value))));
    let (start, stop, step) = match given {
        [stop] => (0, whole(stop)?, 1),
        [start, stop] => (whole(start)?, whole(stop)?, 1),
        [start, stop, step] => (whole(start)?, whole(stop)?, whole(step)?),
        _ => return Err(invalid(format!("a range of {} values, one to three expected", given.len()))),
    };
    if step == 0 {
        return Err(invalid("a range with a step of 0"));
    }
    Range::new(start, stop, step, MAX_RANGE).map(Value::from_object)
}

/// `dict.fromkeys(iterable, value=None)`.
pub fn from_keys(given: &[Value]) -> Result<Value, Error> {
    let arguments = Arguments::bind(&["iterable", "value"], given)?;
    let value = arguments.given(1).cloned().unwrap_or_else(|| Value::from(()));
    let mut dict = Dict::default();
    for key in items_of(arguments.required(0)?)? {
        claim(PAIR_SIZE)?;
        dict.insert(key?, value.clone())?;
    }
    Ok(dict.into())
}

fn strftime_now(given: &[Value]) -> Result<Value, Error> {
    let arguments = Arguments::bind(&["format"], given)?;
    strftime(arguments.required_text(0)?, jiff::Zoned::now().datetime()).map(Value::from)
}

fn raise_exception(given: &[Value]) -> Result<Value, Error> {
    Err(invalid(to_text(Arguments::bind(&["message"], given)?.required(0)?)?))
}

/// `dict(value, **named)`.
fn dict(given: &[Value]) -> Result<Value, Error> {
    if named_of(given)?.0.len() > 1 {
        return Err(invalid("dict of several values, at most one expected"));
    }
    let mut flat = Vec::new();
    for value in given {
        flat.extend(dict_pairs(value)?);
    }
    map_of(&flat)
}

/// `cycler(...)`: returns its items in turn.
#[derive(Debug)]
pub struct Cycler {
    items: Vec<Value>,
    position: AtomicUsize,
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.items[self.position.load(Ordering::Relaxed)].clone())
    }
}

impl Drop for Cycler {
    fn drop(&mut self) {
        free(std::mem::take(&mut self.items));
    }
}

impl Cycler {
    pub fn method(&self, name: &str, given: &[Value]) -> Result<Value, Error> {
        Arguments::bind(&[], given)?;
        let position = self.position.load(Ordering::Relaxed);
        if name == "reset" {
            self.position.store(0, Ordering::Relaxed);
            return Ok(Value::from(()));
        }
        self.position.store((position + 1) % self.items.len(), Ordering::Relaxed);
        Ok(self.items[position].clone())
    }
}

fn cycler(items: &[Value]) -> Result<Value, Error> {
    if items.is_empty() {
        return Err(invalid("a cycler without items"));
    }
    claim(OVERHEAD + items.len() * size_of::<Value>())?;
    Ok(Value::from_object(Cycler { items: items.to_vec(), position: AtomicUsize::new(0) }))
}

/// `joiner(sep=", ")`: empty at the first call, the separator from then on.
#[derive(Debug)]
struct Joiner {
    separator: Value,
    calls: AtomicUsize,
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        free([std::mem::take(&mut self.separator)]);
    }
}

impl Joiner {
    fn call(&self, given: &[Value]) -> Result<Value, Error> {
        Arguments::bind(&[], given)?;
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        Ok(if is_first { Value::from("") } else { self.separator.clone() })
    }
}

fn joiner(given: &[Value]) -> Result<Value, Error> {
    let arguments = Arguments::bind(&["sep"], given)?;
    claim(OVERHEAD)?;
    let separator = arguments.given(0).cloned().unwrap_or_else(|| Value::from(", "));
    Ok(Value::from_object(Joiner { separator, calls: AtomicUsize::new(0) }))
}
