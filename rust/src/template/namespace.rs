// SPDX-License-Identifier: Apache-2.0
//! `namespace()`: the one kind of value that a template can change, and so the one that can come to hold itself. All
//! are emptied when the rendering ends, or such a circle would never be freed.

use super::arguments::invalid;
use super::budget::{claim, OVERHEAD, PAIR_SIZE};
use super::methods::dict_pairs;
use super::python::kind_name;
use minijinja::value::{Object, ObjectRepr, Rest, ValueOrKwargs};
use minijinja::{Error, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Debug, Default)]
struct Namespace(Mutex<BTreeMap<String, Value>>);

thread_local! {
    static ALL: RefCell<Vec<Weak<Namespace>>> = const { RefCell::new(Vec::new()) };
}

impl Namespace {
    fn values(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &str, value: Value) -> Result<(), Error> {
        if name.starts_with('_') {
            return Err(invalid(format!("{name} in a namespace: names there start with no underscore")));
        }
        self.values().insert(name.to_owned(), value);
        Ok(())
    }
}

impl Object for Namespace {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.values().get(key.as_str()?).cloned()
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<Namespace>")
    }
}

/// `namespace(mapping, **named)`.
pub fn namespace(given: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let namespace = Arc::new(Namespace::default());
    claim(2 * OVERHEAD)?;
    for values in given.into_values() {
        for pair in dict_pairs(&values)?.chunks_exact(2) {
            let name = pair[0].as_str().ok_or_else(|| invalid(format!("{} as a name", kind_name(&pair[0]))))?;
            claim(name.len() + PAIR_SIZE)?;
            namespace.set(name, pair[1].clone())?;
        }
    }
    ALL.with_borrow_mut(|all| all.push(Arc::downgrade(&namespace)));
    Ok(Value::from_dyn_object(namespace))
}

/// `{% set namespace.name = value %}`.
pub fn set(value: Value, namespace: Value, name: &str) -> Result<(), Error> {
    match namespace.downcast_object_ref::<Namespace>() {
        Some(namespace) => namespace.set(name, value),
        None => Err(invalid(format!("only a namespace can be assigned to, not {}", kind_name(&namespace)))),
    }
}

/// Empties what the rendering on this thread has made.
pub fn clear_all() {
    for namespace in ALL.take().iter().filter_map(Weak::upgrade) {
        let values = std::mem::take(&mut *namespace.values());
        drop(values);
    }
}
