// SPDX-License-Identifier: Apache-2.0
//! Macros that ask for the arguments which they do not name: `varargs` and `kwargs`.

use super::arguments::{invalid, split};
use super::lists::collect;
use minijinja::value::{Kwargs, Object, ObjectRepr, Tuple};
use minijinja::{Error, State, Value};
use std::sync::Arc;

/// The last two arguments of the engine's macro.
pub const EXTRA: [&str; 2] = ["varargs", "kwargs"];

#[derive(Debug)]
struct OpenMacro {
    closed: Value,
}

impl Object for OpenMacro {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.closed.get_item(key).ok()
    }

    fn call(self: &Arc<Self>, state: &mut State, given: &[Value]) -> Result<Value, Error> {
        let (positional, named) = split(given);
        let names = collect(&self.closed.get_attr("arguments")?)?;
        let count = positional.len().min(names.len() - EXTRA.len());
        let (known, unknown) = positional.split_at(count);
        let mut by_name = vec![("varargs".to_owned(), Value::from(Tuple::from(unknown)))];
        let mut others = Vec::new();
        for name in named.iter().flat_map(Kwargs::args) {
            let value: Value = named.as_ref().map(|named| named.get(name)).transpose()?.unwrap_or_default();
            match names[..names.len() - EXTRA.len()].iter().position(|known| known.as_str() == Some(name)) {
                Some(place) if place < count => return Err(invalid(format!("argument {name} is given twice"))),
                None if name != "caller" => others.push((name.to_owned(), value)),
                _ => by_name.push((name.to_owned(), value)),
            }
        }
        by_name.push(("kwargs".to_owned(), Value::from_pairs(others)));
        let closed: Vec<Value> =
            known.iter().cloned().chain([by_name.into_iter().collect::<Kwargs>().into()]).collect();
        self.closed.call(state, &closed)
    }
}

/// A macro for calls with any arguments, around one whose last arguments are `EXTRA`.
pub fn open(closed: Value) -> Value {
    Value::from_object(OpenMacro { closed })
}
