// SPDX-License-Identifier: Apache-2.0
//! Lists, tuples, dicts, ranges, and Python's one-time iterators, as values. A template can nest them as deep as memory
//! allows, so freeing them by recursion would overflow the stack: deep values are freed later, one by one.

use super::arguments::invalid;
use super::budget::{claim, step};
use super::integers;
use crate::memory::unbounded;
use indexmap::{Equivalent, IndexMap};
use minijinja::tests::is_sameas;
use minijinja::value::{Enumerator, Object, ObjectExt, ObjectRepr, ValueKind};
use minijinja::{Error, Value};
use num_bigint::BigInt;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum nesting of tuples that are keys.
const MAX_KEY_DEPTH: usize = 100;
/// Pairs of a dict up to which comparing keys is faster than hashing one.
const MAX_SCANNED: usize = 8;
/// Maximum depth of recursion when values are freed.
const MAX_DROP_DEPTH: u32 = 100;

thread_local! {
    static DROP_DEPTH: Cell<u32> = const { Cell::new(0) };
    static POSTPONED: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a value to be freed at less depth. Never fails: if the system has no memory for that, the value is leaked.
fn postpone(value: Value) {
    let has_room = POSTPONED.with_borrow_mut(|postponed| unbounded(|| postponed.try_reserve(1).is_ok()));
    if has_room {
        POSTPONED.with_borrow_mut(|postponed| postponed.push(value));
    } else {
        std::mem::forget(value);
    }
}

/// Frees a container's content.
pub fn free(values: impl IntoIterator<Item = Value>) {
    let depth = DROP_DEPTH.get();
    if depth >= MAX_DROP_DEPTH {
        return values.into_iter().for_each(postpone);
    }
    DROP_DEPTH.set(depth + 1);
    values.into_iter().for_each(drop);
    while depth == 0 {
        let Some(value) = POSTPONED.with_borrow_mut(Vec::pop) else { break };
        drop(value);
    }
    DROP_DEPTH.set(depth);
}

fn index_of(key: &Value, length: usize) -> Option<usize> {
    let key = integers::small(key)?;
    usize::try_from(if key < 0 { key + length as i64 } else { key }).ok()
}

#[derive(Debug)]
enum Content {
    Own(Vec<Value>),
    /// Items of another list or tuple, which has its own.
    Shared(Value, std::ops::Range<usize>),
}

/// A list, or a tuple, which never changes.
#[derive(Debug)]
pub struct Items {
    content: Content,
    is_tuple: bool,
}

impl Items {
    fn as_slice(&self) -> &[Value] {
        match &self.content {
            Content::Own(items) => items,
            Content::Shared(whole, range) => slice_of(whole).and_then(|items| items.get(range.clone())).unwrap_or(&[]),
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.content, Content::Own(Vec::new())) {
            Content::Own(items) => free(items),
            Content::Shared(whole, _) => free([whole]),
        }
    }
}

impl Object for Items {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let items = self.as_slice();
        items.get(index_of(key, items.len())?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.as_slice().len())
    }
}

pub fn list(items: Vec<Value>) -> Value {
    Value::from_object(Items { content: Content::Own(items), is_tuple: false })
}

pub fn tuple(items: Vec<Value>) -> Value {
    Value::from_object(Items { content: Content::Own(items), is_tuple: true })
}

/// `count` items of a list or tuple from `first` on, which stay where they are. REQUIRES: it has them.
pub fn part(value: &Value, first: usize, count: usize) -> Value {
    let Some(items) = value.downcast_object_ref::<Items>() else { return Value::UNDEFINED };
    let content = match &items.content {
        Content::Own(_) => Content::Shared(value.clone(), first..first + count),
        Content::Shared(whole, range) => {
            Content::Shared(whole.clone(), range.start + first..range.start + first + count)
        }
    };
    Value::from_object(Items { content, is_tuple: items.is_tuple })
}

pub fn is_tuple(value: &Value) -> bool {
    value.downcast_object_ref::<Items>().is_some_and(|items| items.is_tuple)
}

pub fn is_list(value: &Value) -> bool {
    value.downcast_object_ref::<Items>().is_some_and(|items| !items.is_tuple)
}

/// The items of a list or tuple.
pub fn slice_of(value: &Value) -> Option<&[Value]> {
    value.downcast_object_ref::<Items>().map(Items::as_slice)
}

/// A value as a dict's key: equal numbers are one key, whatever their type.
#[derive(Debug)]
enum Key {
    None,
    Undefined,
    Integer(i128),
    Big(BigInt),
    Float(u64),
    Text(Value),
    Tuple(Vec<Key>),
    Object(Value),
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Key::None, Key::None) | (Key::Undefined, Key::Undefined) => true,
            (Key::Integer(a), Key::Integer(b)) => a == b,
            (Key::Big(a), Key::Big(b)) => a == b,
            (Key::Float(a), Key::Float(b)) => a == b,
            (Key::Text(a), Key::Text(b)) => a.as_str() == b.as_str(),
            (Key::Tuple(a), Key::Tuple(b)) => a == b,
            (Key::Object(a), Key::Object(b)) => is_sameas(a, b),
            _ => false,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::Text(text) => text.as_str().unwrap_or("").hash(state),
            Key::Integer(number) => number.hash(state),
            Key::Big(number) => number.hash(state),
            Key::Float(bits) => bits.hash(state),
            Key::Tuple(keys) => keys.hash(state),
            Key::None | Key::Undefined | Key::Object(_) => {}
        }
    }
}

struct TextKey<'t>(&'t str);

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key> for TextKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(key, Key::Text(text) if text.as_str() == Some(self.0))
    }
}

fn key_of(value: &Value, depth: usize) -> Result<Key, Error> {
    if value.as_str().is_some() {
        return Ok(Key::Text(value.clone()));
    }
    if let Some(number) = integers::integer(value) {
        return Ok(i128::try_from(&number).map_or(Key::Big(number), Key::Integer));
    }
    if let (true, Some(items)) = (is_tuple(value), slice_of(value)) {
        // A tuple may contain another one many times.
        let _level = step()?;
        if depth > MAX_KEY_DEPTH {
            return Err(invalid("a key that is nested too deeply"));
        }
        claim(size_of_val(items))?;
        return items.iter().map(|item| key_of(item, depth + 1)).collect::<Result<_, Error>>().map(Key::Tuple);
    }
    Ok(match value.kind() {
        ValueKind::None => Key::None,
        ValueKind::Undefined => Key::Undefined,
        ValueKind::Number => {
            let number = f64::try_from(value.clone())?;
            let is_whole = number.fract() == 0.0 && number.abs() < 1e38;
            if is_whole {
                Key::Integer(number as i128)
            } else {
                Key::Float(number.to_bits())
            }
        }
        ValueKind::Seq | ValueKind::Iterable if !is_range(value) => return Err(invalid("a list as a key")),
        ValueKind::Map => return Err(invalid("a dict as a key")),
        _ => Key::Object(value.clone()),
    })
}

/// Checks that a value can be a key.
pub fn check_key(value: &Value) -> Result<(), Error> {
    key_of(value, 0).map(|_| ())
}

#[derive(Debug, Default)]
pub struct Dict(IndexMap<Key, (Value, Value)>);

impl Drop for Dict {
    fn drop(&mut self) {
        free(std::mem::take(&mut self.0).into_values().map(|(_, value)| value));
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get_text(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|dict| Box::new(dict.0.values().map(|(key, _)| key.clone())))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

impl Dict {
    pub fn insert(&mut self, key: Value, value: Value) -> Result<(), Error> {
        match self.0.entry(key_of(&key, 0)?) {
            // The first key and the last value stay.
            indexmap::map::Entry::Occupied(mut entry) => entry.get_mut().1 = value,
            indexmap::map::Entry::Vacant(entry) => {
                entry.insert((key, value));
            }
        }
        Ok(())
    }

    pub fn get(&self, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some(text) => self.text_pair(text),
            None => self.0.get(&key_of(key, 0).ok()?),
        }
        .map(|(_, value)| value.clone())
    }

    fn text_pair(&self, key: &str) -> Option<&(Value, Value)> {
        if self.0.len() > MAX_SCANNED {
            return self.0.get(&TextKey(key));
        }
        self.0.iter().find(|(known, _)| TextKey(key).equivalent(known)).map(|(_, pair)| pair)
    }

    pub fn get_text(&self, key: &str) -> Option<Value> {
        self.text_pair(key).map(|(_, value)| value.clone())
    }

    pub fn has_text(&self, key: &str) -> bool {
        self.text_pair(key).is_some()
    }

    pub fn pairs(&self) -> impl Iterator<Item = &(Value, Value)> {
        self.0.values()
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Value {
        Value::from_object(dict)
    }
}

pub fn dict_of(value: &Value) -> Option<&Dict> {
    value.downcast_object_ref::<Dict>()
}

/// `range(...)`.
#[derive(Clone, Debug)]
pub struct Range {
    start: i64,
    stop: i64,
    step: i64,
    length: usize,
}

impl Range {
    /// A range of at most `most` items. REQUIRES: the step is not 0.
    pub fn new(start: i64, stop: i64, step: i64, most: usize) -> Result<Self, Error> {
        let (span, stride) = (i128::from(stop) - i128::from(start), i128::from(step));
        let length = if (span > 0) == (stride > 0) { (span.abs() + stride.abs() - 1) / stride.abs() } else { 0 };
        match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Range { start, stop, step, length }),
            _ => Err(invalid(format!("a range of {length} items, at most {most} expected"))),
        }
    }

    fn at(&self, index: usize) -> i64 {
        self.start + self.step * index as i64
    }

    /// `count` items from `first` on, each `stride` after the one before.
    pub fn slice(&self, first: usize, count: usize, stride: i64) -> Value {
        let start = self.start + self.step * first as i64;
        let step = self.step * stride;
        let stop = start + step * count as i64;
        Value::from_object(Range { start, stop, step, length: count })
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = index_of(key, self.length)?;
        (index < self.length).then(|| Value::from(self.at(index)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.length)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.step {
            1 => write!(out, "range({}, {})", self.start, self.stop),
            step => write!(out, "range({}, {}, {step})", self.start, self.stop),
        }
    }
}

pub fn range_of(value: &Value) -> Option<&Range> {
    value.downcast_object_ref::<Range>()
}

fn is_range(value: &Value) -> bool {
    range_of(value).is_some()
}

/// An iterator that yields its items once: a generator or another one of Python's.
#[derive(Debug)]
pub struct Once {
    items: Mutex<VecDeque<Value>>,
    /// Its type's name in Python.
    pub name: &'static str,
}

impl Once {
    fn next(&self) -> Option<Value> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        free(std::mem::take(self.items.get_mut().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl Object for Once {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let once = self.clone();
        Enumerator::Iter(Box::new(std::iter::from_fn(move || once.next())))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<{} object>", self.name)
    }
}

/// A generator, as in Python, over these items.
pub fn generator(items: Vec<Value>) -> Value {
    iterator(items, "generator")
}

pub fn iterator(items: Vec<Value>, name: &'static str) -> Value {
    Value::from_object(Once { items: Mutex::new(items.into()), name })
}

pub fn is_once(value: &Value) -> bool {
    value.downcast_object_ref::<Once>().is_some()
}

/// `dict.keys()`, `dict.values()` and `dict.items()`: they are no lists, but have a length.
#[derive(Debug)]
pub struct View {
    /// Its type's name in Python.
    pub name: &'static str,
    items: Value,
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.items.is_true()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|view| Box::new(slice_of(&view.items).unwrap_or(&[]).iter().cloned()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.items.len()
    }
}

pub fn view(name: &'static str, items: Vec<Value>) -> Value {
    Value::from_object(View { name, items: list(items) })
}

/// The name and the items of a view.
pub fn view_of(value: &Value) -> Option<(&'static str, &Value)> {
    value.downcast_object_ref::<View>().map(|view| (view.name, &view.items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::here;
    use crate::memory::{held, Bounds};
    use std::time::Duration;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(list(Vec::new()), |inner, _| list(vec![inner.clone(), inner]))
    }

    #[test]
    fn values_are_freed_where_nothing_more_may_be_allocated() {
        let before = held();
        for bytes in [0, 64, 1000] {
            let values = nested(10_000);
            let bounds = Bounds { bytes, time: Duration::from_secs(60) };
            assert!(here(bounds, move || Ok(drop(values))).is_ok());
        }
        assert!(held() - before < 64 << 10, "{} bytes are lost", held() - before);
    }
}
