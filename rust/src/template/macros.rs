// SPDX-License-Identifier: Apache-2.0
//! Macros, the callers of call blocks, and blocks: parts of a template that can be called.

use super::arguments::invalid;
use super::budget::{enter_call, Text};
use super::evaluate::{is_escaping, Frame, Record, Run};
use super::expression_values::named_of;
use super::namespace::{remember, Holder};
use super::syntax::Macro;
use super::values::{tuple, Dict};
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, Value};
use std::sync::Arc;

/// A macro with the record of the function that defined it.
#[derive(Debug)]
pub struct MacroValue {
    run: Arc<Run>,
    record: Arc<Record>,
    index: usize,
    name: String,
}

impl MacroValue {
    fn node(&self) -> &Macro {
        &self.run.template.macros[self.index]
    }

    pub fn call(&self, given: &[Value]) -> Result<Value, Error> {
        let text = run_macro(&self.run, &self.record, self.index, given, &self.name)?;
        Ok(if is_escaping() { Value::from_safe_string(text) } else { Value::from(text) })
    }
}

impl Object for MacroValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let node = self.node();
        Some(match key.as_str()? {
            "name" if self.name.is_empty() => Value::from(()),
            "name" => Value::from(self.name.as_str()),
            "arguments" => tuple(node.parameters.iter().map(|p| Value::from(p.name.as_str())).collect()),
            "catch_kwargs" => Value::from(node.kwargs_slot.is_some()),
            "catch_varargs" => Value::from(node.varargs_slot.is_some()),
            "caller" => Value::from(node.caller_slot.is_some()),
            _ => return None,
        })
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => write!(out, "<Macro anonymous>"),
            name => write!(out, "<Macro '{name}'>"),
        }
    }
}

fn value_of(frame: &Frame, index: usize, name: String) -> Value {
    // The record holds the macro, and the macro the record.
    remember(Holder::Record(Arc::downgrade(frame.record)));
    Value::from_object(MacroValue { run: frame.run.clone(), record: frame.record.clone(), index, name })
}

pub fn macro_value(frame: &Frame, index: usize) -> Value {
    value_of(frame, index, frame.run.template.macros[index].variable.name.clone())
}

/// The value of `caller` in the macro of a call block.
pub fn caller_of(frame: &Frame, index: usize) -> Value {
    value_of(frame, index, String::new())
}

/// Binds the arguments to the parameters; parameters without an argument stay unset.
fn bind(node: &Macro, record: &Record, given: &[Value], name: &str) -> Result<(), Error> {
    let (positional, mut named) = named_of(given)?;
    let count = positional.len().min(node.parameters.len());
    let mut found_caller = count == node.parameters.len() && node.parameters.iter().any(|p| p.name == "caller");
    for (parameter, value) in node.parameters.iter().zip(&positional[..count]) {
        record.set(parameter.slot.index, Some(value.clone()));
    }
    for parameter in &node.parameters[count..] {
        found_caller |= parameter.name == "caller";
        if let Some(place) = named.iter().position(|(name, _)| *name == parameter.name) {
            record.set(parameter.slot.index, Some(named.remove(place).1));
        }
    }
    if let (Some(slot), false) = (node.caller_slot, found_caller) {
        if let Some(place) = named.iter().position(|(name, _)| name == "caller") {
            record.set(slot, Some(named.remove(place).1));
        }
    }
    if let Some(slot) = node.kwargs_slot {
        let mut kwargs = Dict::default();
        for (name, value) in named {
            kwargs.insert(Value::from(name), value)?;
        }
        record.set(slot, Some(kwargs.into()));
    } else if let Some((argument, _)) = named.first() {
        return Err(invalid(format!("the macro {name} takes no argument {argument}")));
    }
    if let Some(slot) = node.varargs_slot {
        record.set(slot, Some(tuple(positional[count..].to_vec())));
    } else if positional.len() > count {
        return Err(invalid(format!("the macro {name} takes at most {count} arguments, got {}", positional.len())));
    }
    Ok(())
}

/// The output of a macro; `record` belongs to the function that defined it.
pub fn run_macro(
    run: &Arc<Run>,
    record: &Arc<Record>,
    index: usize,
    given: &[Value],
    name: &str,
) -> Result<String, Error> {
    let _call = enter_call()?;
    let node = &run.template.macros[index];
    let record = Record::new(node.slots, Some(record.clone()))?;
    bind(node, &record, given, name)?;
    let frame = Frame { run, record: &record };
    frame.enter(&node.scope);
    let first_default = node.parameters.len() - node.defaults.len();
    for (parameter, default) in node.parameters[first_default..].iter().zip(&node.defaults) {
        if record.get(parameter.slot).is_none() {
            let value = frame.value(default)?;
            record.set(parameter.slot.index, Some(value));
        }
    }
    let mut out = Text::default();
    frame.run_all(&node.body, &mut out)?;
    Ok(out.into_string())
}

/// Writes a block at its place; it sees the variables of the outermost scope.
pub fn render_block(run: &Arc<Run>, record: &Arc<Record>, index: usize, out: &mut Text) -> Result<(), Error> {
    let _call = enter_call()?;
    let run = run.within(record)?;
    let block = &run.template.blocks[index];
    let record = Record::new(block.slots, None)?;
    let frame = Frame { run: &run, record: &record };
    frame.enter(&block.scope);
    frame.run_all(&block.body, out)?;
    Ok(())
}

/// `self`, whose attributes would be blocks.
#[derive(Debug)]
pub struct Myself;

impl Object for Myself {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<TemplateReference None>")
    }
}
