// SPDX-License-Identifier: Apache-2.0
//! Methods and items of values as Python and its sandbox have them: a method comes before a key of the same name, a
//! missing key may be a method, and a method is a value itself.

use super::arguments::{invalid, Arguments};
use super::braces::{braces, braces_of};
use super::budget::{check_time, claim, OVERHEAD, PAIR_SIZE};
use super::compare::{check_key, equal};
use super::lists::{collect, items_of, pairs};
use super::python::kind_name;
use super::strings::{self, clamp};
use minijinja::value::{Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use std::sync::Arc;

type Method = fn(&Value, &Arguments) -> Result<Value, Error>;

const DICT_METHODS: &[(&str, &[&str], Method)] = &[
    ("copy", &[], |dict, _| Ok(dict.clone())),
    ("get", &["key", "default"], get),
    ("items", &[], |dict, _| pairs(dict).map(Value::from)),
    ("keys", &[], |dict, _| collect(dict).map(Value::from)),
    ("values", &[], values),
];

const LIST_METHODS: &[(&str, &[&str], Method)] = &[
    ("copy", &[], |list, _| Ok(list.clone())),
    ("count", &["value"], count),
    ("index", &["value", "start", "stop"], index),
];

/// Methods of strings that are in no table.
const FORMAT: &str = "format";
const FORMAT_MAP: &str = "format_map";

fn get(dict: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let key = arguments.required(0)?;
    check_key(key)?;
    let found = Some(dict.get_item(key)?).filter(|value| !value.is_undefined());
    Ok(found.or_else(|| arguments.given(1).cloned()).unwrap_or_else(|| Value::from(())))
}

fn values(dict: &Value, _: &Arguments) -> Result<Value, Error> {
    collect(dict)?.iter().map(|key| dict.get_item(key)).collect::<Result<Vec<Value>, Error>>().map(Value::from)
}

fn count(list: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let wanted = arguments.required(0)?;
    let mut count = 0;
    for item in items_of(list)? {
        count += usize::from(equal(&item?, wanted)?);
    }
    Ok(Value::from(count))
}

fn index(list: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let wanted = arguments.required(0)?;
    let length = list.len().unwrap_or(usize::MAX);
    let start = clamp(arguments.integer(1)?.unwrap_or(0), length);
    let stop = clamp(arguments.integer(2)?.unwrap_or(i64::MAX), length);
    for (i, item) in items_of(list)?.enumerate().take(stop).skip(start) {
        if equal(&item?, wanted)? {
            return Ok(Value::from(i));
        }
    }
    Err(invalid("the value is not in the list"))
}

/// Whether the value is what Python calls a dict; loops and macros only look like one.
fn is_dict(value: &Value) -> bool {
    value.kind() == ValueKind::Map && value.as_object().is_some_and(|object| object.type_name().contains("Map<"))
}

fn container_methods(value: &Value) -> &'static [(&'static str, &'static [&'static str], Method)] {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => LIST_METHODS,
        _ if is_dict(value) => DICT_METHODS,
        _ => &[],
    }
}

fn has_method(value: &Value, name: &str) -> bool {
    match value.as_str() {
        Some(_) => [FORMAT, FORMAT_MAP].contains(&name) || strings::METHODS.iter().any(|row| row.0 == name),
        None => container_methods(value).iter().any(|row| row.0 == name),
    }
}

/// Whether some value has a method of this name.
pub fn is_method(name: &str) -> bool {
    has_method(&Value::from(""), name) || DICT_METHODS.iter().chain(LIST_METHODS).any(|row| row.0 == name)
}

/// Calls a method, as `Environment::set_unknown_method_callback` wants it.
pub fn call(_: &mut State, value: &Value, name: &str, given: &[Value]) -> Result<Value, Error> {
    check_time()?;
    if let Some(text) = value.as_str() {
        match name {
            FORMAT => return braces(text, given).map(Value::from),
            FORMAT_MAP => return braces_of(text, Arguments::bind(&["mapping"], given)?.required(0)?).map(Value::from),
            _ => {}
        }
        if let Some((_, names, method)) = strings::METHODS.iter().find(|row| row.0 == name) {
            return method(text, &Arguments::bind(names, given)?);
        }
    }
    match container_methods(value).iter().find(|row| row.0 == name) {
        Some((_, names, method)) => method(value, &Arguments::bind(names, given)?),
        None => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// `value.name` that was not called.
#[derive(Debug)]
struct Bound {
    value: Value,
    name: String,
}

impl Object for Bound {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State, given: &[Value]) -> Result<Value, Error> {
        call(state, &self.value, &self.name, given)
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<built-in method {}>", self.name)
    }
}

fn bound(value: &Value, name: &str) -> Option<Value> {
    has_method(value, name).then(|| Value::from_object(Bound { value: value.clone(), name: name.to_owned() }))
}

/// `value.name`.
pub fn attribute(value: Value, name: &str) -> Result<Value, Error> {
    bound(&value, name).map_or_else(|| value.get_attr(name), Ok)
}

/// `value|attr(name)`: what is no attribute in Python is none here.
pub fn only_attribute(value: &Value, name: &str) -> Result<Value, Error> {
    let has_items = is_dict(value) || value.as_str().is_some();
    let found = if has_items { Ok(Value::UNDEFINED) } else { value.get_attr(name) };
    bound(value, name).map_or(found, Ok)
}

/// `value[key]`.
pub fn item(value: &Value, key: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Map => check_key(key)?,
        _ => check_time()?,
    }
    let found = value.get_item(key)?;
    match key.as_str() {
        Some(name) if found.is_undefined() => Ok(bound(value, name).unwrap_or(found)),
        _ => Ok(found),
    }
}

/// A map from keys and values that take turns.
pub fn map_of(given: &[Value]) -> Result<Value, Error> {
    claim(OVERHEAD + given.len() / 2 * PAIR_SIZE)?;
    let mut pairs = Vec::with_capacity(given.len() / 2);
    for pair in given.chunks_exact(2) {
        check_key(&pair[0])?;
        pairs.push((pair[0].clone(), pair[1].clone()));
    }
    Ok(Value::from_pairs(pairs))
}

/// The pairs of `dict(value)`: of a mapping, or pairs as they are.
pub fn dict_pairs(value: &Value) -> Result<Vec<Value>, Error> {
    let wanted = |pair: &Value| invalid(format!("a dict of {}, pairs expected", kind_name(pair)));
    let pairs = if value.kind() == ValueKind::Map { pairs(value)? } else { collect(value)? };
    let mut flat = Vec::new();
    for pair in &pairs {
        let mut items = items_of(pair)?;
        let (Some(key), Some(value), None) = (items.next(), items.next(), items.next()) else {
            return Err(wanted(pair));
        };
        flat.extend([key?, value?]);
    }
    Ok(flat)
}
