// SPDX-License-Identifier: Apache-2.0
//! `namespace()`: the only kind of value that a template can change, and that can therefore come to hold itself. So can
//! the record of a function whose macros it holds. All are emptied when the rendering ends; otherwise such a cycle
//! would never be freed.

use super::arguments::invalid;
use super::budget::{claim, OVERHEAD, PAIR_SIZE};
use super::evaluate::Record;
use super::methods::dict_pairs;
use super::python::kind_name;
use super::values::free;
use indexmap::IndexMap;
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, Value};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Debug, Default)]
pub struct Namespace(Mutex<IndexMap<String, Value>>);

thread_local! {
    static ALL: RefCell<Vec<Holder>> = const { RefCell::new(Vec::new()) };
}

/// An object that may come to hold itself.
pub enum Holder {
    Namespace(Weak<Namespace>),
    Record(Weak<Record>),
}

/// Empties the holder when the rendering ends.
pub fn remember(holder: Holder) {
    ALL.with_borrow_mut(|all| all.push(holder));
}

impl Drop for Namespace {
    fn drop(&mut self) {
        free(std::mem::take(&mut *self.values()).into_values());
    }
}

impl Namespace {
    fn values(&self) -> MutexGuard<'_, IndexMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The variable `name`, undefined if there is none.
    pub fn get(&self, name: &str) -> Value {
        self.values().get(name).cloned().unwrap_or_default()
    }

    fn set(&self, name: &str, value: Value) -> Result<(), Error> {
        if name.starts_with('_') {
            return Err(invalid(format!("{name} in a namespace: names there start with no underscore")));
        }
        let mut values = self.values();
        let old = match values.get_mut(name) {
            Some(known) => Some(std::mem::replace(known, value)),
            None => {
                claim(name.len() + PAIR_SIZE)?;
                values.insert(name.to_owned(), value)
            }
        };
        drop(values);
        // Freed without the lock, since it may hold this namespace.
        drop(old);
        Ok(())
    }
}

impl Object for Namespace {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.values().get(key).cloned()
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<Namespace object>")
    }
}

/// `namespace(mapping, **named)`.
pub fn namespace(given: &[Value]) -> Result<Value, Error> {
    let namespace = Arc::new(Namespace::default());
    claim(2 * OVERHEAD)?;
    for values in given {
        for pair in dict_pairs(values)?.chunks_exact(2) {
            let name = pair[0].as_str().ok_or_else(|| invalid(format!("{} as a name", kind_name(&pair[0]))))?;
            claim(name.len() + PAIR_SIZE)?;
            namespace.set(name, pair[1].clone())?;
        }
    }
    remember(Holder::Namespace(Arc::downgrade(&namespace)));
    Ok(Value::from_dyn_object(namespace))
}

/// `{% set namespace.name = value %}`.
pub fn set(value: Value, namespace: Value, name: &str) -> Result<(), Error> {
    check(&namespace)?;
    namespace.downcast_object_ref::<Namespace>().map_or(Ok(()), |namespace| namespace.set(name, value))
}

/// Refuses values without assignable attributes.
pub fn check(value: &Value) -> Result<(), Error> {
    match value.downcast_object_ref::<Namespace>() {
        Some(_) => Ok(()),
        None => Err(invalid(format!("only a namespace can be assigned to, not {}", kind_name(value)))),
    }
}

/// Empties all holders of the rendering on this thread.
pub fn clear_all() {
    for holder in ALL.take() {
        match holder {
            Holder::Namespace(namespace) => {
                let values = namespace.upgrade().map(|namespace| std::mem::take(&mut *namespace.values()));
                free(values.into_iter().flat_map(IndexMap::into_values));
            }
            Holder::Record(record) => free(record.upgrade().map(|record| record.take()).into_iter().flatten()),
        }
    }
}
