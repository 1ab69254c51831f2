// SPDX-License-Identifier: Apache-2.0
//! Filters over lists. `List` counts their results against the budget.

use super::arguments::{invalid, split, Arguments};
use super::budget::{claim, paid, Exceeded, List, Text, MAX_ITEMS, OVERHEAD, PAIR_SIZE};
use super::compare::{order, order_at, order_items, Order};
use super::filters::{apply_filter, perform_test};
use super::methods;
use super::operators::add;
use super::python::{kind_name, to_text, write_str};
use super::values::{self, dict_of, generator, list as list_of, slice_of, tuple};
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub type Items = Box<dyn Iterator<Item = Result<Value, Error>> + Send + Sync>;

/// The items of a list or tuple.
struct ListItems {
    list: Value,
    place: usize,
}

impl Iterator for ListItems {
    type Item = Result<Value, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = slice_of(&self.list)?.get(self.place)?.clone();
        self.place += 1;
        Some(Ok(item))
    }
}

/// The items of a value that Python can iterate over.
pub fn items_of(value: &Value) -> Result<Items, Error> {
    if slice_of(value).is_some() {
        return Ok(Box::new(ListItems { list: value.clone(), place: 0 }));
    }
    match value.kind() {
        ValueKind::None => Err(invalid("none is not iterable")),
        _ => Ok(Box::new(value.try_iter()?.checked())),
    }
}

/// The items for a filter that treats any false value as empty.
fn items_if_any(value: &Value) -> Result<Items, Error> {
    items_of(if value.is_true() { value } else { &Value::UNDEFINED })
}

/// `list(value)`.
pub fn collect(value: &Value) -> Result<Vec<Value>, Error> {
    let mut out = List::default();
    for item in items_of(value)? {
        out.push(item?)?;
    }
    Ok(out.into_vec())
}

fn pair(first: Value, second: Value) -> Value {
    tuple(vec![first, second])
}

/// `dict.items()`.
pub fn pairs(map: &Value) -> Result<Vec<Value>, Error> {
    let mut out = List::default();
    for (key, value) in dict_of(map).into_iter().flat_map(values::Dict::pairs) {
        claim(OVERHEAD)?;
        out.push(pair(key.clone(), value.clone()))?;
    }
    Ok(out.into_vec())
}

/// Follows `a.0.b` from an item.
fn attribute(item: &Value, path: &Value, default: Option<&Value>) -> Result<Value, Error> {
    let Some(text) = path.as_str() else {
        return methods::item(item, path);
    };
    let mut found = item.clone();
    for part in text.split('.') {
        found = methods::item(&found, &part.parse::<u32>().map_or_else(|_| Value::from(part), Value::from))?;
        if let (true, Some(default)) = (found.is_undefined(), default) {
            found = default.clone();
        }
    }
    Ok(found)
}

fn fold_case(value: Value, case_sensitive: bool) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) if !case_sensitive => Ok(Value::from(paid(text.to_lowercase())?)),
        _ => Ok(value),
    }
}

/// The sort key of an item: itself, an attribute, or a list of several attributes.
fn sort_key(item: &Value, path: Option<&Value>, case_sensitive: bool) -> Result<Value, Error> {
    match path.and_then(|path| path.as_str()) {
        Some(paths) if paths.contains(',') => {
            let mut keys = List::default();
            for path in paths.split(',') {
                keys.push(fold_case(attribute(item, &Value::from(path), None)?, case_sensitive)?)?;
            }
            Ok(keys.into())
        }
        _ => {
            let key = path.map_or_else(|| Ok(item.clone()), |path| attribute(item, path, None))?;
            fold_case(key, case_sensitive)
        }
    }
}

/// Sorts stably; returns the first error of a comparison.
fn sort_by_key(items: &mut [(Value, Value)], reverse: bool, order: Order) -> Result<(), Error> {
    let mut failure = None;
    items.sort_by(|(a, _), (b, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        order(a, b, 0).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    failure.map_or(Ok(()), Err)
}

fn keyed(value: &Value, path: Option<&Value>, case_sensitive: bool) -> Result<Vec<(Value, Value)>, Error> {
    let with_key = |item| Ok((sort_key(&item, path, case_sensitive)?, item));
    collect(value)?.into_iter().map(with_key).collect()
}

fn second_of(items: Vec<(Value, Value)>) -> Value {
    list_of(items.into_iter().map(|(_, item)| item).collect())
}

pub fn list(value: &Value, _: &Arguments) -> Result<Value, Error> {
    collect(value).map(list_of)
}

pub fn length(value: &Value, _: &Arguments) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::from(0));
    }
    let length = value.len().ok_or_else(|| invalid(format!("{} has no length", kind_name(value))))?;
    Ok(Value::from(length))
}

pub fn first(value: &Value, _: &Arguments) -> Result<Value, Error> {
    items_of(value)?.next().unwrap_or(Ok(Value::UNDEFINED))
}

pub fn last(value: &Value, _: &Arguments) -> Result<Value, Error> {
    if values::is_once(value) {
        return Err(invalid("the last item of what is not reversible"));
    }
    match slice_of(value) {
        Some(items) => Ok(items.last().cloned().unwrap_or_default()),
        None => items_of(value)?.last().unwrap_or(Ok(Value::UNDEFINED)),
    }
}

pub fn reverse(value: &Value, _: &Arguments) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Value::from(Text::from_chars(text.chars().rev())?));
    }
    let mut items = collect(value)?;
    items.reverse();
    let name = match value.kind() {
        _ if values::is_once(value) => return Ok(list_of(items)),
        ValueKind::Map => "dict_reversekeyiterator",
        _ => "list_reverseiterator",
    };
    Ok(values::iterator(items, name))
}

/// `items(value)`: the pairs of a dict; empty for an undefined value.
pub fn items(value: &Value, _: &Arguments) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::Map => pairs(value).map(generator),
        _ => Err(invalid(format!("items of {}, a mapping expected", kind_name(value)))),
    }
}

/// `dictsort(value, case_sensitive=False, by="key", reverse=False)`.
pub fn dictsort(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let place = match arguments.text(1)? {
        None | Some("key") => 0,
        Some("value") => 1,
        Some(by) => return Err(invalid(format!("dictsort by {by}, key or value expected"))),
    };
    if value.kind() != ValueKind::Map {
        return Err(invalid(format!("dictsort of {}, a mapping expected", kind_name(value))));
    }
    let mut sorted = keyed(&list_of(pairs(value)?), Some(&Value::from(place)), arguments.flag(0, false))?;
    sort_by_key(&mut sorted, arguments.flag(2, false), order_at)?;
    Ok(second_of(sorted))
}

/// `sort(value, reverse=False, case_sensitive=False, attribute=None)`.
pub fn sort(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let mut sorted = keyed(value, arguments.get(2), arguments.flag(1, false))?;
    sort_by_key(&mut sorted, arguments.flag(0, false), order_items)?;
    Ok(second_of(sorted))
}

/// `unique(value, case_sensitive=False, attribute=None)`.
pub fn unique(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let mut seen = values::Dict::default();
    let mut out = List::default();
    for (key, item) in keyed(value, arguments.get(1), arguments.flag(0, false))? {
        if seen.get(&key).is_none() {
            claim(PAIR_SIZE)?;
            seen.insert(key, Value::from(()))?;
            out.push(item)?;
        }
    }
    Ok(generator(out.into_vec()))
}

fn extreme(value: &Value, arguments: &Arguments, wanted: Ordering) -> Result<Value, Error> {
    let mut best: Option<(Value, Value)> = None;
    for (key, item) in keyed(value, arguments.get(1), arguments.flag(0, false))? {
        let is_better = best.as_ref().map_or(Ok(true), |(top, _)| Ok::<_, Error>(order(&key, top)? == wanted))?;
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

/// `min(value, case_sensitive=False, attribute=None)`.
pub fn min(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    extreme(value, arguments, Ordering::Less)
}

/// `max(value, case_sensitive=False, attribute=None)`.
pub fn max(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    extreme(value, arguments, Ordering::Greater)
}

/// `sum(value, attribute=None, start=0)`.
pub fn sum(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let mut total = arguments.given(1).cloned().unwrap_or_else(|| Value::from(0));
    for item in items_of(value)? {
        let item = item?;
        let part = arguments.get(0).map_or(Ok(item.clone()), |path| attribute(&item, path, None))?;
        total = add(&total, &part)?;
    }
    Ok(total)
}

/// `join(value, d="", attribute=None)`.
pub fn join(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let separator = arguments.as_text(0, "")?;
    let mut out = Text::default();
    for (i, item) in items_of(value)?.enumerate() {
        let item = item?;
        let item = arguments.get(1).map_or(Ok(item.clone()), |path| attribute(&item, path, None))?;
        out.push(if i > 0 { &separator } else { "" })?;
        write_str(&mut out, &item)?;
    }
    Ok(Value::from(out.into_string()))
}

fn pieces(arguments: &Arguments) -> Result<usize, Error> {
    match arguments.count(0, 0)? {
        0 => Err(invalid("a count of 0")),
        count if count > MAX_ITEMS => Err(Exceeded::Size.into()),
        count => Ok(count),
    }
}

/// `batch(value, linecount, fill_with=None)`: rows of `linecount` items.
pub fn batch(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let width = pieces(arguments)?;
    let (mut rows, mut row) = (List::default(), List::default());
    for item in items_of(value)? {
        if row.len() == width {
            rows.push(std::mem::take(&mut row).into())?;
        }
        row.push(item?)?;
    }
    if row.len() > 0 {
        while let (true, Some(fill)) = (row.len() < width, arguments.get(1)) {
            row.push(fill.clone())?;
        }
        rows.push(row.into())?;
    }
    Ok(generator(rows.into_vec()))
}

/// `slice(value, slices, fill_with=None)`: this many columns, the first ones longer.
pub fn slice(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let count = pieces(arguments)?;
    let items = collect(value)?;
    let (length, longer) = (items.len() / count, items.len() % count);
    let mut columns = List::default();
    let mut rest = items.into_iter();
    for number in 0..count {
        let mut column = List::default();
        for item in rest.by_ref().take(length + usize::from(number < longer)) {
            column.push(item)?;
        }
        if let (true, Some(fill)) = (number >= longer, arguments.get(1)) {
            column.push(fill.clone())?;
        }
        columns.push(column.into())?;
    }
    Ok(generator(columns.into_vec()))
}

/// One group of `groupby`: a pair whose parts also have names.
#[derive(Debug)]
struct Group {
    grouper: Value,
    list: Value,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (key.as_usize(), key.as_str()) {
            (Some(0), _) | (_, Some("grouper")) => Some(self.grouper.clone()),
            (Some(1), _) | (_, Some("list")) => Some(self.list.clone()),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}

/// `groupby(value, attribute, default=None, case_sensitive=False)`.
pub fn groupby(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let path = arguments.required(0)?;
    let mut sorted = Vec::new();
    for item in collect(value)? {
        let grouper = attribute(&item, path, arguments.get(1))?;
        let key = fold_case(grouper.clone(), arguments.flag(2, false))?;
        claim(OVERHEAD)?;
        sorted.push((key, pair(grouper, item)));
    }
    sort_by_key(&mut sorted, false, order_at)?;
    let mut groups = List::default();
    for group in sorted.chunk_by(|(a, _), (b, _)| order(a, b).is_ok_and(|order| order == Ordering::Equal)) {
        let grouper = group[0].1.get_item_by_index(0)?;
        let list = group.iter().map(|(_, pair)| pair.get_item_by_index(1)).collect::<Result<Vec<Value>, Error>>()?;
        groups.push(Value::from_object(Group { grouper, list: list_of(list) }))?;
    }
    Ok(groups.into())
}

/// `map(value, attribute=..., default=None)` or `map(value, filter, ...)`.
pub fn map(value: &Value, given: &[Value]) -> Result<Value, Error> {
    let (positional, named) = split(given);
    let path: Option<Value> = named.as_ref().map(|named| named.get("attribute")).transpose()?.flatten();
    let mut out = List::default();
    if let (Some(path), [], Some(named)) = (path, positional, &named) {
        let default = named.get::<Option<Value>>("default")?.filter(|value| !value.is_none());
        named.assert_all_used()?;
        for item in items_if_any(value)? {
            out.push(attribute(&item?, &path, default.as_ref())?)?;
        }
        return Ok(generator(out.into_vec()));
    }
    let Some(filter) = positional.first().and_then(|name| name.as_str()) else {
        return Err(invalid("map needs a filter's name or an attribute"));
    };
    for item in items_if_any(value)? {
        out.push(apply_filter(filter, &item?, &given[1..])?)?;
    }
    Ok(generator(out.into_vec()))
}

/// The items that a filter of the `select` family keeps.
#[derive(Clone, Copy)]
pub struct Selection {
    pub by_attribute: bool,
    pub keeps: bool,
}

/// `select(value, test, ...)` and `reject`; with an attribute's name before the test `selectattr` and `rejectattr`.
pub fn select(value: &Value, given: &[Value], selection: Selection) -> Result<Value, Error> {
    let (path, given) = match given.split_first() {
        Some((path, rest)) if selection.by_attribute => (Some(path), rest),
        None if selection.by_attribute => return Err(invalid("an attribute's name is missing")),
        _ => (None, given),
    };
    let mut out = List::default();
    for item in items_if_any(value)? {
        let item = item?;
        let tested = path.map_or(Ok(item.clone()), |path| attribute(&item, path, None))?;
        let is_true = match given.split_first() {
            None => tested.is_true(),
            Some((test, rest)) => perform_test(&to_text(test)?, &tested, rest)?,
        };
        if is_true == selection.keeps {
            out.push(item)?;
        }
    }
    Ok(generator(out.into_vec()))
}
