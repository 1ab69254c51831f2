// SPDX-License-Identifier: Apache-2.0
//! Methods and items of values as in Python and its sandbox. A method comes before a key of that name, a missing key
//! may be a method, and a method is a value itself.

use super::arguments::{invalid, Arguments};
use super::braces::{braces, braces_of};
use super::budget::{claim, work_on, OVERHEAD, PAIR_SIZE};
use super::compare::{check_key, equal};
use super::expression_values::named_of;
use super::functions::{self, Cycler};
use super::integers;
use super::lists::{collect, items_of, pairs};
use super::loops::{self, Loop};
use super::namespace::Namespace;
use super::python::kind_name;
use super::strings::{self, clamp};
use super::texts::keep_mark;
use super::values::{dict_of, free, is_list, slice_of, view, Dict};
use minijinja::value::{Object, ObjectRepr, ValueKind};
use minijinja::{Error, Value};
use std::sync::Arc;

type Method = fn(&Value, &Arguments) -> Result<Value, Error>;

const DICT_METHODS: &[(&str, &[&str], Method)] = &[
    ("copy", &[], |dict, _| Ok(dict.clone())),
    ("get", &["key", "default"], get),
    ("items", &[], |dict, _| pairs(dict).map(|items| view("dict_items", items))),
    ("keys", &[], |dict, _| collect(dict).map(|keys| view("dict_keys", keys))),
    ("values", &[], values),
];

const LIST_METHODS: &[(&str, &[&str], Method)] = &[
    ("copy", &[], |list, _| Ok(list.clone())),
    ("count", &["value"], count),
    ("index", &["value", "start", "stop"], index),
];

const INTEGER_METHODS: Methods = &[
    ("bit_length", &[], |value, _| Ok(Value::from(integers::integer(value).map_or(0, |number| number.bits())))),
    ("bit_count", &[], |value, _| {
        let ones = |number: num_bigint::BigInt| number.magnitude().count_ones();
        Ok(Value::from(integers::integer(value).map_or(0, ones)))
    }),
    ("conjugate", &[], |value, _| Ok(value.clone())),
];

const FLOAT_METHODS: Methods = &[
    ("conjugate", &[], |value, _| Ok(value.clone())),
    ("is_integer", &[], |value, _| Ok(Value::from(f64::try_from(value.clone())?.fract() == 0.0))),
];

const BYTES_METHODS: Methods = &[("decode", &["encoding", "errors"], strings::decode)];

/// A method of strings that is in no table.
const FORMAT: &str = "format";
const FORMAT_MAP: &str = "format_map";

fn get(dict: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let key = arguments.required(0)?;
    check_key(key)?;
    let found = dict_of(dict).and_then(|dict| dict.get(key));
    Ok(found.or_else(|| arguments.given(1).cloned()).unwrap_or_else(|| Value::from(())))
}

fn values(dict: &Value, _: &Arguments) -> Result<Value, Error> {
    let values: Vec<Value> = dict_of(dict).into_iter().flat_map(Dict::pairs).map(|(_, value)| value.clone()).collect();
    claim(OVERHEAD + values.len() * size_of::<Value>())?;
    Ok(view("dict_values", values))
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

fn is_dict(value: &Value) -> bool {
    dict_of(value).is_some()
}

type Methods = &'static [(&'static str, &'static [&'static str], Method)];

fn methods_of(value: &Value) -> Methods {
    match value.kind() {
        ValueKind::Map if is_dict(value) => DICT_METHODS,
        // Tuples and ranges have all but the first.
        ValueKind::Seq if is_list(value) => LIST_METHODS,
        ValueKind::Seq => &LIST_METHODS[1..],
        _ if integers::is_integer(value) => INTEGER_METHODS,
        ValueKind::Number => FLOAT_METHODS,
        ValueKind::Bytes => BYTES_METHODS,
        _ => &[],
    }
}

fn has(methods: Methods, name: &str) -> bool {
    methods.iter().any(|row| row.0 == name)
}

pub fn has_method(value: &Value, name: &str) -> bool {
    // Most values with attributes are messages.
    if is_dict(value) {
        return has(DICT_METHODS, name);
    }
    match value.as_str().filter(|_| value.kind() == ValueKind::String) {
        Some(_) => [FORMAT, FORMAT_MAP].contains(&name) || strings::METHODS.iter().any(|row| row.0 == name),
        None if value.is_undefined() => false,
        None if has(methods_of(value), name) => true,
        None if value.downcast_object_ref::<Loop>().is_some() => loops::METHODS.contains(&name),
        None if value.downcast_object_ref::<Cycler>().is_some() => ["next", "reset"].contains(&name),
        None => functions::is_dict_type(value) && name == "fromkeys",
    }
}

/// Calls a method.
pub fn call(value: &Value, name: &str, given: &[Value]) -> Result<Value, Error> {
    work_on(value)?;
    if let Some(text) = value.as_str().filter(|_| value.kind() == ValueKind::String) {
        match name {
            FORMAT => return braces(text, given).map(Value::from),
            FORMAT_MAP => return braces_of(text, Arguments::bind(&["mapping"], given)?.required(0)?).map(Value::from),
            _ => {}
        }
        if let Some((_, names, method)) = strings::METHODS.iter().find(|row| row.0 == name) {
            return method(text, &Arguments::bind(names, given)?).map(|made| keep_mark(value, made));
        }
    }
    if let Some(state) = value.downcast_object_ref::<Loop>() {
        return state.method(name, given);
    }
    if let Some(cycler) = value.downcast_object_ref::<Cycler>() {
        return cycler.method(name, given);
    }
    if functions::is_dict_type(value) {
        return functions::from_keys(given);
    }
    match methods_of(value).iter().find(|row| row.0 == name) {
        Some((_, names, method)) => method(value, &Arguments::bind(names, given)?),
        None => Err(invalid(format!("{} has no method {name}", kind_name(value)))),
    }
}

/// `value.name` without a call.
#[derive(Debug)]
pub struct Bound {
    value: Value,
    name: String,
}

impl Object for Bound {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<built-in method {}>", self.name)
    }
}

impl Bound {
    pub fn call(&self, given: &[Value]) -> Result<Value, Error> {
        call(&self.value, &self.name, given)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        free([std::mem::take(&mut self.value)]);
    }
}

fn bound(value: &Value, name: &str) -> Option<Value> {
    has_method(value, name).then(|| Value::from_object(Bound { value: value.clone(), name: name.to_owned() }))
}

/// The attribute of a value that only looks names up: a key of a dict, a variable of a namespace. None for all others.
pub fn member(value: &Value, name: &str) -> Option<Value> {
    if let Some(dict) = dict_of(value) {
        return dict.get_text(name).filter(|_| !has(DICT_METHODS, name));
    }
    value.downcast_object_ref::<Namespace>().map(|namespace| namespace.get(name))
}

/// `value.name`.
pub fn attribute(value: &Value, name: &str) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(invalid(format!("the attribute {name} of an undefined value")));
    }
    if let Some(found) = bound(value, name) {
        return Ok(found);
    }
    match dict_of(value) {
        Some(dict) => Ok(dict.get_text(name).unwrap_or_default()),
        None => attribute_but_methods(value, name),
    }
}

/// `value|attr(name)`: undefined unless it is an attribute in Python.
pub fn only_attribute(value: &Value, name: &str) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(invalid("an attribute of an undefined value"));
    }
    if let Some(found) = bound(value, name) {
        return Ok(found);
    }
    attribute_but_methods(value, name)
}

fn attribute_but_methods(value: &Value, name: &str) -> Result<Value, Error> {
    if let Some(state) = value.downcast_object_ref::<Loop>() {
        return state.attribute(name);
    }
    if is_dict(value) || slice_of(value).is_some() || value.as_str().is_some() {
        return Ok(Value::UNDEFINED);
    }
    if integers::is_number(value) && ["real", "imag"].contains(&name) {
        return match name {
            "real" => super::operators::positive(value),
            _ => integers::arithmetic(super::syntax::Operator::Multiply, value, &Value::from(0))
                .map(Option::unwrap_or_default),
        };
    }
    Ok(value.as_object().and_then(|object| object.get_value_by_str(name)).unwrap_or_default())
}

/// `value[key]`.
pub fn item(value: &Value, key: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(invalid("an item of an undefined value"));
    }
    let found = match dict_of(value) {
        Some(dict) => dict.get(key),
        None => list_item(value, key),
    };
    match (found, key.as_str()) {
        (Some(found), _) => Ok(found),
        (None, Some(name)) if !is_dict(value) => only_attribute(value, name),
        (None, Some(name)) => Ok(bound(value, name).unwrap_or_default()),
        _ => Ok(Value::UNDEFINED),
    }
}

fn list_item(value: &Value, key: &Value) -> Option<Value> {
    let index = integers::small(key)?;
    if let Some(text) = value.as_str() {
        let at = usize::try_from(if index < 0 { text.chars().count() as i64 + index } else { index }).ok()?;
        return text.chars().nth(at).map(|c| Value::from(c.to_string()));
    }
    match value.kind() {
        ValueKind::Seq => value.as_object()?.get_value(key),
        _ => None,
    }
}

/// A dict from alternating keys and values.
pub fn map_of(given: &[Value]) -> Result<Value, Error> {
    claim(OVERHEAD + given.len() / 2 * PAIR_SIZE)?;
    let mut dict = Dict::default();
    for pair in given.chunks_exact(2) {
        dict.insert(pair[0].clone(), pair[1].clone())?;
    }
    Ok(dict.into())
}

/// The pairs of `dict(value)`: of a mapping, or from a list of pairs.
pub fn dict_pairs(value: &Value) -> Result<Vec<Value>, Error> {
    let wanted = |pair: &Value| invalid(format!("a dict of {}, pairs expected", kind_name(pair)));
    if value.is_undefined() {
        return Err(invalid("a dict of an undefined value"));
    }
    if value.is_kwargs() {
        let (_, named) = named_of(std::slice::from_ref(value))?;
        return Ok(named.into_iter().flat_map(|(name, value)| [Value::from(name), value]).collect());
    }
    let pairs = if is_dict(value) { pairs(value)? } else { collect(value)? };
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
