// SPDX-License-Identifier: Apache-2.0
//! Runs a template's statements. Every statement and expression is a step that checks the budget (budget.rs).

use super::arguments::{invalid, set_line};
use super::budget::{claim, step, Text, OVERHEAD};
use super::functions;
use super::lists::items_of;
use super::loops::{self, Loop};
use super::macros::{caller_of, macro_value, render_block, run_macro};
use super::methods::member;
use super::namespace;
use super::python::write_str;
use super::scopes::resolve;
use super::syntax::{Captured, For, If, Load, Node, Scope, Slot, Stmt, Target, Template, With};
use super::texts::push_escaped;
use super::values::{self, Dict};
use super::{parser, python};
use minijinja::{Error, Value};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    static IS_ESCAPING: Cell<bool> = const { Cell::new(false) };
}

/// True if output is escaped here, as `{% autoescape %}` says.
pub fn is_escaping() -> bool {
    IS_ESCAPING.get()
}

/// The variables of one call of one function.
#[derive(Debug)]
pub struct Record {
    slots: Mutex<Vec<Option<Value>>>,
    parent: Option<Arc<Record>>,
}

impl Record {
    pub fn new(slots: u32, parent: Option<Arc<Record>>) -> Result<Arc<Self>, Error> {
        claim(OVERHEAD + slots as usize * size_of::<Option<Value>>())?;
        Ok(Arc::new(Record { slots: Mutex::new(vec![None; slots as usize]), parent }))
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Option<Value>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, slot: Slot) -> Option<&Record> {
        let mut record = self;
        for _ in 0..slot.up {
            record = record.parent.as_deref()?;
        }
        Some(record)
    }

    pub fn get(&self, slot: Slot) -> Option<Value> {
        self.at(slot)?.slots().get(slot.index as usize)?.clone()
    }

    /// The attribute `name` of a variable, if that is what `methods::member` finds.
    pub fn member(&self, slot: Slot, name: &str) -> Option<Value> {
        member(self.at(slot)?.slots().get(slot.index as usize)?.as_ref()?, name)
    }

    pub fn set(&self, index: u32, value: Option<Value>) {
        let old = match self.slots().get_mut(index as usize) {
            Some(slot) => std::mem::replace(slot, value),
            None => None,
        };
        // Freed without the lock, since a macro in it may hold this record.
        drop(old);
    }

    pub fn unset(&self, index: u32) {
        let old = self.slots().get_mut(index as usize).and_then(Option::take);
        drop(old);
    }

    /// Takes all variables out.
    pub fn take(&self) -> impl Iterator<Item = Value> {
        std::mem::take(&mut *self.slots()).into_iter().flatten()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        values::free(self.take());
    }
}

/// One rendering of a template.
#[derive(Debug)]
pub struct Run {
    pub template: Arc<Template>,
    /// A dict of the caller's variables, and for a block of those of the template around it.
    variables: Value,
}

impl Run {
    fn resolve(&self, name: &str) -> Option<Value> {
        match values::dict_of(&self.variables).and_then(|variables| variables.get_text(name)) {
            Some(value) => Some(value),
            None => functions::global(name),
        }
    }

    /// This rendering with the variables of the outermost scope, for a block.
    pub fn within(&self, root: &Record) -> Result<Arc<Self>, Error> {
        let mut variables = Dict::default();
        for (key, value) in values::dict_of(&self.variables).into_iter().flat_map(Dict::pairs) {
            variables.insert(key.clone(), value.clone())?;
        }
        for (name, index) in &self.template.exported {
            if let Some(value) = root.get(Slot { up: 0, index: *index }) {
                variables.insert(Value::from(name.as_str()), value)?;
            }
        }
        Ok(Arc::new(Run { template: self.template.clone(), variables: variables.into() }))
    }
}

pub enum Flow {
    Next,
    Break,
    Continue,
}

/// The position of the rendering: a function's record.
pub struct Frame<'a> {
    pub run: &'a Arc<Run>,
    pub record: &'a Arc<Record>,
}

impl Frame<'_> {
    pub fn enter(&self, scope: &Scope) {
        for (index, load) in &scope.loads {
            match load {
                Load::Parameter => {}
                Load::Resolve(name) => self.record.set(*index, self.run.resolve(name)),
                Load::Alias(slot) => self.record.set(*index, self.record.get(*slot)),
                Load::Missing => self.record.unset(*index),
            }
        }
    }

    pub fn leave(&self, scope: &Scope) {
        scope.loads.iter().for_each(|(index, _)| self.record.unset(*index));
    }

    pub fn assign(&self, target: &Target, value: Value) -> Result<(), Error> {
        match target {
            Target::Name(variable) => self.record.set(variable.slot.index, Some(value)),
            Target::Attribute(variable, name) => {
                namespace::set(value, self.record.get(variable.slot).unwrap_or_default(), name)?;
            }
            Target::Tuple(targets) => {
                let mut items = items_of(&value)?;
                for target in targets {
                    let item = items.next().transpose()?;
                    self.assign(target, item.ok_or_else(|| invalid("too few values to unpack"))?)?;
                }
                if items.next().is_some() {
                    return Err(invalid("too many values to unpack"));
                }
            }
        }
        Ok(())
    }

    /// Checks that attributes are assigned only to namespaces.
    fn check_namespaces(&self, target: &Target) -> Result<(), Error> {
        match target {
            Target::Name(_) => Ok(()),
            Target::Attribute(variable, _) => namespace::check(&self.record.get(variable.slot).unwrap_or_default()),
            Target::Tuple(targets) => targets.iter().try_for_each(|target| self.check_namespaces(target)),
        }
    }

    pub fn run_all(&self, nodes: &[Node], out: &mut Text) -> Result<Flow, Error> {
        for node in nodes {
            match self.statement(node, out)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&self, node: &Node, out: &mut Text) -> Result<Flow, Error> {
        set_line(node.line);
        let _level = step()?;
        match &node.stmt {
            Stmt::Data(text) => out.push(text)?,
            Stmt::Emit(expr) => emit(out, &self.value(expr)?)?,
            Stmt::If(node) => return self.if_statement(node, out),
            Stmt::For(node) => return self.for_statement(node, out),
            Stmt::With(node) => return self.with(node, out),
            Stmt::Set(target, expr) => {
                self.check_namespaces(target)?;
                let value = self.value(expr)?;
                self.assign(target, value)?;
            }
            Stmt::SetBlock(node) => return self.set_block(node),
            Stmt::FilterBlock(node) => return self.filter_block(node, out),
            Stmt::AutoEscape(enabled, body, scope) => return self.autoescape(enabled, body, scope, out),
            Stmt::Macro(index) => {
                let node = &self.run.template.macros[*index];
                self.record.set(node.variable.slot.index, Some(macro_value(self, *index)));
            }
            Stmt::CallBlock(call, index) => {
                let result = self.call_with(call, Some(caller_of(self, *index)))?;
                let text = result.as_str().ok_or_else(|| invalid("a call block whose call gives no text"))?;
                out.push(text)?;
            }
            Stmt::Generation(index) => out.push(&run_macro(self.run, self.record, *index, &[], "")?)?,
            Stmt::Block(index) => render_block(self.run, self.record, *index, out)?,
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Elsewhere(tag) => return Err(invalid(format!("{tag}, which needs a second template"))),
        }
        Ok(Flow::Next)
    }

    fn if_statement(&self, node: &If, out: &mut Text) -> Result<Flow, Error> {
        if self.holds(&node.test)? {
            return self.run_all(&node.body, out);
        }
        for other in &node.others {
            if self.holds(&other.test)? {
                return self.run_all(&other.body, out);
            }
        }
        self.run_all(&node.otherwise, out)
    }

    fn for_statement(&self, node: &Arc<For>, out: &mut Text) -> Result<Flow, Error> {
        let iterable = self.value(&node.iterable)?;
        if node.is_recursive {
            out.push(&loops::recurse(self.run, self.record, node, &iterable, 0)?)?;
            return Ok(Flow::Next);
        }
        self.loop_over(node, &iterable, None, out)
    }

    /// Runs a loop's body for each item; a recursive loop calls itself by `again`.
    pub fn loop_over(
        &self,
        node: &Arc<For>,
        iterable: &Value,
        again: Option<loops::Recursion>,
        out: &mut Text,
    ) -> Result<Flow, Error> {
        let mut items = loops::items(self, node, iterable)?;
        let mut is_complete = false;
        if let Some(slot) = node.loop_slot {
            // With a test the number of items is known only at the end.
            let length = if node.test.is_some() { None } else { iterable.len() };
            let state = Arc::new(Loop::new(items, length, again));
            let value = Value::from_dyn_object(state.clone());
            while let Some(item) = state.advance()? {
                self.assign(&node.target, item)?;
                self.record.set(slot, Some(value.clone()));
                match self.iteration(node, out)? {
                    Flow::Next => is_complete = true,
                    Flow::Break => break,
                    Flow::Continue => {}
                }
            }
        } else {
            while let Some(item) = items.next().transpose()? {
                self.assign(&node.target, item)?;
                match self.iteration(node, out)? {
                    Flow::Next => is_complete = true,
                    Flow::Break => break,
                    Flow::Continue => {}
                }
            }
        }
        self.leave(&node.body_scope);
        // As in jinja2, only a completed iteration counts.
        if !is_complete && !node.otherwise.is_empty() {
            self.enter(&node.otherwise_scope);
            let flow = self.run_all(&node.otherwise, out)?;
            self.leave(&node.otherwise_scope);
            return Ok(flow);
        }
        Ok(Flow::Next)
    }

    fn iteration(&self, node: &For, out: &mut Text) -> Result<Flow, Error> {
        let _level = step()?;
        self.enter(&node.body_scope);
        self.run_all(&node.body, out)
    }

    fn with(&self, node: &With, out: &mut Text) -> Result<Flow, Error> {
        self.enter(&node.scope);
        for (target, value) in node.targets.iter().zip(&node.values) {
            let value = self.value(value)?;
            self.assign(target, value)?;
        }
        let flow = self.run_all(&node.body, out)?;
        self.leave(&node.scope);
        Ok(flow)
    }

    fn set_block(&self, node: &Captured) -> Result<Flow, Error> {
        self.enter(&node.scope);
        let mut captured = Text::default();
        let flow = self.run_all(&node.body, &mut captured)?;
        if !matches!(flow, Flow::Next) {
            return Ok(flow);
        }
        let content = markup_if_escaping(captured);
        let value =
            node.filter.as_ref().map_or(Ok(content.clone()), |filter| self.filtered(filter, content.clone()))?;
        let value = match value.as_str() {
            Some(text) if is_escaping() && !value.is_safe() => Value::from_safe_string(text.to_owned()),
            _ => value,
        };
        if let Some(target) = &node.target {
            self.assign(target, value)?;
        }
        self.leave(&node.scope);
        Ok(Flow::Next)
    }

    fn filter_block(&self, node: &Captured, out: &mut Text) -> Result<Flow, Error> {
        self.enter(&node.scope);
        let mut captured = Text::default();
        let flow = self.run_all(&node.body, &mut captured)?;
        if !matches!(flow, Flow::Next) {
            return Ok(flow);
        }
        if let Some(filter) = &node.filter {
            let result = self.filtered(filter, markup_if_escaping(captured))?;
            let text = result.as_str().ok_or_else(|| invalid("a filter block whose filter gives no text"))?;
            out.push(text)?;
        }
        self.leave(&node.scope);
        Ok(Flow::Next)
    }

    fn autoescape(
        &self,
        enabled: &super::syntax::Expr,
        body: &[Node],
        scope: &Scope,
        out: &mut Text,
    ) -> Result<Flow, Error> {
        self.enter(scope);
        let before = IS_ESCAPING.replace(self.value(enabled)?.is_true());
        let flow = self.run_all(body, out);
        IS_ESCAPING.set(before);
        self.leave(scope);
        flow
    }
}

fn markup_if_escaping(captured: Text) -> Value {
    match is_escaping() {
        true => Value::from_safe_string(captured.into_string()),
        false => Value::from(captured.into_string()),
    }
}

fn emit(out: &mut Text, value: &Value) -> Result<(), Error> {
    if is_escaping() && !value.is_safe() {
        Ok(push_escaped(out, &python::to_text(value)?)?)
    } else {
        write_str(out, value)
    }
}

/// Compiles a template to a tree whose names are bound.
pub fn compile(source: &str) -> Result<Template, Error> {
    let mut template = parser::parse(source)?;
    resolve(&mut template)?;
    Ok(template)
}

/// The template's output with these variables, a dict.
pub fn render(template: &Arc<Template>, variables: Value) -> Result<String, Error> {
    IS_ESCAPING.set(false);
    let run = Arc::new(Run { template: template.clone(), variables });
    let record = Record::new(template.slots, None)?;
    namespace::remember(namespace::Holder::Record(Arc::downgrade(&record)));
    let frame = Frame { run: &run, record: &record };
    frame.enter(&template.scope);
    let mut out = Text::default();
    frame.run_all(&template.body, &mut out)?;
    Ok(out.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::budget::worked;

    /// The work of a template over a history of this many messages.
    fn work_of(source: &str, messages: usize) -> usize {
        let message = || {
            let mut dict = Dict::default();
            dict.insert(Value::from("role"), Value::from("user")).unwrap();
            Value::from(dict)
        };
        let mut variables = Dict::default();
        variables.insert(Value::from("messages"), values::list((0..messages).map(|_| message()).collect())).unwrap();
        let template = Arc::new(compile(source).unwrap());
        let before = worked();
        render(&template, variables.into()).unwrap();
        worked() - before
    }

    #[test]
    fn work_grows_with_the_history_and_not_with_its_square() {
        let bodies = [
            "{% for later in messages[loop.index:] %}{{ later.role }}{% break %}{% endfor %}",
            "{% set rest = messages[loop.index:] %}{{ rest[0].role if rest[1:] }}",
            "{{ messages[:loop.index][-1].role }}",
        ];
        for body in bodies {
            let source = format!("{{% for message in messages %}}{body}{{% endfor %}}");
            let (short, long) = (work_of(&source, 1000), work_of(&source, 4000));
            assert!(long < 5 * short, "{body}: {short} and {long}");
        }
    }
}
