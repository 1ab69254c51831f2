// SPDX-License-Identifier: Apache-2.0
//! The functions that a template may call by name.

use super::arguments::{invalid, Arguments};
use super::budget::{claim, OVERHEAD};
use super::methods::{dict_pairs, map_of};
use super::namespace;
use super::python::to_text;
use super::strftime::strftime;
use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn strftime_now(format: &str) -> Result<String, Error> {
    strftime(format, jiff::Zoned::now().datetime())
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    Err(invalid(to_text(&message)?))
}

/// `dict(value, **named)`.
fn dict(given: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut flat = Vec::new();
    for value in given.into_values() {
        flat.extend(dict_pairs(&value)?);
    }
    map_of(&flat)
}

/// `cycler(...)`: gives its items in turn.
#[derive(Debug)]
struct Cycler {
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

    fn call_method(self: &Arc<Self>, _: &mut State, name: &str, given: &[Value]) -> Result<Value, Error> {
        Arguments::bind(&[], given)?;
        let position = self.position.load(Ordering::Relaxed);
        match name {
            "next" => {
                self.position.store((position + 1) % self.items.len(), Ordering::Relaxed);
                Ok(self.items[position].clone())
            }
            "reset" => {
                self.position.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(minijinja::ErrorKind::UnknownMethod.into()),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

fn cycler(items: Rest<Value>) -> Result<Value, Error> {
    if items.is_empty() {
        return Err(invalid("a cycler without items"));
    }
    claim(OVERHEAD + items.len() * size_of::<Value>())?;
    Ok(Value::from_object(Cycler { items: items.0, position: AtomicUsize::new(0) }))
}

/// `joiner(sep=", ")`: nothing at the first call, the separator from then on.
#[derive(Debug)]
struct Joiner {
    separator: Value,
    calls: AtomicUsize,
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State, given: &[Value]) -> Result<Value, Error> {
        Arguments::bind(&[], given)?;
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        Ok(if is_first { Value::from("") } else { self.separator.clone() })
    }
}

fn joiner(given: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let arguments = Arguments::bind(&["sep"], &given.into_values())?;
    claim(OVERHEAD)?;
    let separator = arguments.given(0).cloned().unwrap_or_else(|| Value::from(", "));
    Ok(Value::from_object(Joiner { separator, calls: AtomicUsize::new(0) }))
}

pub fn add_functions(environment: &mut Environment) {
    environment.add_function("cycler", cycler);
    environment.add_function("dict", dict);
    environment.add_function("joiner", joiner);
    environment.add_function("namespace", namespace::namespace);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("range", minijinja::functions::range);
    environment.add_function("strftime_now", strftime_now);
}
