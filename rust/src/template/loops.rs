// SPDX-License-Identifier: Apache-2.0
//! The items of a loop, its variable `loop`, and loops that call themselves. Items are produced one by one: a test sees
//! the changes of earlier iterations.

use super::arguments::{invalid, Arguments};
use super::budget::{enter_call, Text};
use super::compare::equal;
use super::evaluate::{Frame, Record, Run};
use super::lists::{items_of, Items};
use super::namespace::{remember, Holder};
use super::syntax::For;
use super::values::list;
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, Value};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// The items that pass a loop's test.
struct Tested {
    run: Arc<Run>,
    record: Arc<Record>,
    node: Arc<For>,
    items: Items,
    is_entered: bool,
}

impl Tested {
    fn passes(&mut self, item: &Value) -> Result<bool, Error> {
        let frame = Frame { run: &self.run, record: &self.record };
        if !std::mem::replace(&mut self.is_entered, true) {
            frame.enter(&self.node.test_scope);
        }
        frame.assign(&self.node.test_target, item.clone())?;
        self.node.test.as_ref().map_or(Ok(true), |test| frame.holds(test))
    }
}

impl Iterator for Tested {
    type Item = Result<Value, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.items.next()? {
                Ok(item) => item,
                error => return Some(error),
            };
            match self.passes(&item) {
                Ok(true) => return Some(Ok(item)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The items of a loop.
pub fn items(frame: &Frame, node: &Arc<For>, iterable: &Value) -> Result<Items, Error> {
    let items = items_of(iterable)?;
    if node.test.is_none() {
        return Ok(items);
    }
    // The record may hold the loop, and the loop the record.
    remember(Holder::Record(Arc::downgrade(frame.record)));
    let (run, record, node) = (frame.run.clone(), frame.record.clone(), node.clone());
    Ok(Box::new(Tested { run, record, node, items, is_entered: false }))
}

/// The state with which a recursive loop runs once more.
#[derive(Debug)]
pub struct Recursion {
    run: Arc<Run>,
    record: Arc<Record>,
    node: Arc<For>,
    depth: usize,
}

struct State {
    items: Items,
    /// The number of items, if it is known beforehand.
    length: Option<usize>,
    index: i64,
    before: Option<Value>,
    current: Option<Value>,
    after: Option<Value>,
    changed: Option<Vec<Value>>,
}

impl State {
    fn peek(&mut self) -> Result<Option<Value>, Error> {
        if self.after.is_none() {
            self.after = self.items.next().transpose()?;
        }
        Ok(self.after.clone())
    }

    fn length(&mut self) -> Result<i64, Error> {
        if let Some(length) = self.length {
            return Ok(length as i64);
        }
        let rest = self.items.by_ref().collect::<Result<Vec<Value>, Error>>()?;
        let length = rest.len() + (self.index + 1) as usize + usize::from(self.after.is_some());
        self.items = Box::new(rest.into_iter().map(Ok));
        self.length = Some(length);
        Ok(length as i64)
    }
}

/// The variable `loop`.
pub struct Loop {
    state: Mutex<State>,
    again: Option<Recursion>,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<LoopContext>")
    }
}

pub const METHODS: [&str; 2] = ["changed", "cycle"];

impl Loop {
    pub fn new(items: Items, length: Option<usize>, again: Option<Recursion>) -> Self {
        let state = State { items, length, index: -1, before: None, current: None, after: None, changed: None };
        Loop { state: Mutex::new(state), again }
    }

    /// Fails if the loop's own test asks.
    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(invalid("a loop that asks for itself while it looks for an item")),
        }
    }

    pub fn advance(&self) -> Result<Option<Value>, Error> {
        let mut state = self.state()?;
        let next = match state.after.take() {
            Some(item) => Some(item),
            None => state.items.next().transpose()?,
        };
        if let Some(item) = &next {
            state.index += 1;
            state.before = state.current.replace(item.clone());
        }
        Ok(next)
    }

    /// `loop.name`.
    pub fn attribute(&self, name: &str) -> Result<Value, Error> {
        let depth = self.again.as_ref().map_or(0, |again| again.depth) as i64;
        let mut state = self.state()?;
        let number = match name {
            "depth0" => depth,
            "depth" => depth + 1,
            "index0" => state.index,
            "index" => state.index + 1,
            "length" => state.length()?,
            "revindex" => state.length()? - state.index,
            "revindex0" => state.length()? - state.index - 1,
            "first" => return Ok(Value::from(state.index == 0)),
            "last" => return Ok(Value::from(state.peek()?.is_none())),
            "previtem" if state.index == 0 => return Ok(Value::UNDEFINED),
            "previtem" => return Ok(state.before.clone().unwrap_or_default()),
            "nextitem" => return Ok(state.peek()?.unwrap_or_default()),
            _ => return Ok(Value::UNDEFINED),
        };
        Ok(Value::from(number))
    }

    pub fn method(&self, name: &str, given: &[Value]) -> Result<Value, Error> {
        if given.last().is_some_and(Value::is_kwargs) {
            Arguments::bind(&[], given)?;
        }
        let mut state = self.state()?;
        if name == "cycle" {
            if given.is_empty() {
                return Err(invalid("no items for cycling given"));
            }
            return Ok(given[state.index.max(0) as usize % given.len()].clone());
        }
        let is_same = match &state.changed {
            Some(old) => equal(&list(old.clone()), &list(given.to_vec()))?,
            None => false,
        };
        if !is_same {
            state.changed = Some(given.to_vec());
        }
        Ok(Value::from(!is_same))
    }

    /// `loop(iterable)`.
    pub fn call(&self, given: &[Value]) -> Result<Value, Error> {
        let arguments = Arguments::bind(&["iterable"], given)?;
        let Some(again) = &self.again else {
            return Err(invalid("the loop must be recursive to be called"));
        };
        let depth = again.depth + 1;
        recurse(&again.run, &again.record, &again.node, arguments.required(0)?, depth).map(Value::from)
    }
}

impl Object for Loop {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.attribute(key.as_str()?).ok()
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let attribute = |name| self.attribute(name).unwrap_or_default();
        write!(out, "<LoopContext {}/{}>", attribute("index"), attribute("length"))
    }
}

/// The output of a recursive loop for these items; `record` belongs to the function around it.
pub fn recurse(
    run: &Arc<Run>,
    record: &Arc<Record>,
    node: &Arc<For>,
    iterable: &Value,
    depth: usize,
) -> Result<String, Error> {
    let _call = enter_call()?;
    let inner = Record::new(node.slots, Some(record.clone()))?;
    let again = Recursion { run: run.clone(), record: record.clone(), node: node.clone(), depth };
    let mut out = Text::default();
    Frame { run, record: &inner }.loop_over(node, iterable, Some(again), &mut out)?;
    Ok(out.into_string())
}
