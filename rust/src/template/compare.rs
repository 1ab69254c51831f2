// SPDX-License-Identifier: Apache-2.0
//! Values compared as Python compares them, in bounded time: a value may hold another one many times over.

use super::arguments::invalid;
use super::budget::{check_time, claim};
use super::lists::items_of;
use super::python::{kind_name, too_deep, MAX_DEPTH};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};
use std::cmp::Ordering;

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// Python's True and False are numbers.
fn number(value: &Value) -> Option<Value> {
    match value.kind() {
        ValueKind::Bool => Some(Value::from(i64::from(value.is_true()))),
        ValueKind::Number => Some(value.clone()),
        _ => None,
    }
}

/// What a comparison costs of the budget, so that those of shared values come to an end.
const COST: usize = 512;

fn step(a: &Value, b: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    Ok(claim(COST + length(a).min(length(b)))?)
}

/// `a == b`.
pub fn equal(a: &Value, b: &Value) -> Result<bool, Error> {
    equal_at(a, b, 0)
}

fn equal_at(a: &Value, b: &Value, depth: usize) -> Result<bool, Error> {
    step(a, b, depth)?;
    if is_list(a) && is_list(b) {
        return Ok(a.is_tuple() == b.is_tuple() && order_lists(a, b, depth, equal_or_greater)? == Ordering::Equal);
    }
    if a.kind() != ValueKind::Map || b.kind() != ValueKind::Map {
        return Ok(a == b);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in items_of(a)? {
        let key = key?;
        let (left, right) = (a.get_item(&key)?, b.get_item(&key)?);
        if right.is_undefined() || !equal_at(&left, &right, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two items for a list comparison that asks for nothing but equality.
fn equal_or_greater(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    Ok(if equal_at(a, b, depth)? { Ordering::Equal } else { Ordering::Greater })
}

/// A comparison at a depth.
pub type Order = fn(&Value, &Value, usize) -> Result<Ordering, Error>;

/// The first pair that differs decides, then the length.
fn order_lists(a: &Value, b: &Value, depth: usize, order_items: Order) -> Result<Ordering, Error> {
    let (mut left, mut right) = (items_of(a)?, items_of(b)?);
    loop {
        match (left.next().transpose()?, right.next().transpose()?) {
            (None, None) => return Ok(Ordering::Equal),
            (None, Some(_)) => return Ok(Ordering::Less),
            (Some(_), None) => return Ok(Ordering::Greater),
            (Some(x), Some(y)) => match order_items(&x, &y, depth + 1)? {
                Ordering::Equal => {}
                different => return Ok(different),
            },
        }
    }
}

/// Items that are equal need no order: [none, 1] is below [none, 2].
pub fn order_items(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    if equal_at(a, b, depth)? {
        Ok(Ordering::Equal)
    } else {
        order_at(a, b, depth)
    }
}

/// The order that `<` and `sort` go by; an error for values that Python does not order.
pub fn order(a: &Value, b: &Value) -> Result<Ordering, Error> {
    order_at(a, b, 0)
}

/// `order` inside values that are nested so deep.
pub fn order_at(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    step(a, b, depth)?;
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        return Ok(x.cmp(&y));
    }
    if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
        return Ok(x.cmp(y));
    }
    if is_list(a) && is_list(b) && a.is_tuple() == b.is_tuple() {
        return order_lists(a, b, depth, order_items);
    }
    Err(invalid(format!("{} and {} have no order", kind_name(a), kind_name(b))))
}

/// `item in container`.
pub fn contains(container: &Value, item: &Value) -> Result<bool, Error> {
    if let Some(text) = container.as_str() {
        let part = item.as_str().ok_or_else(|| invalid(format!("{} in a string", kind_name(item))))?;
        check_time()?;
        return Ok(text.contains(part));
    }
    if container.kind() == ValueKind::Map {
        check_key(item)?;
        return Ok(!container.get_item(item)?.is_undefined());
    }
    for other in items_of(container)? {
        if equal(&other?, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses what cannot be a key of a dict, and pays for reading the key.
pub fn check_key(key: &Value) -> Result<(), Error> {
    check_key_at(key, 0)
}

fn check_key_at(key: &Value, depth: usize) -> Result<(), Error> {
    if key.is_tuple() {
        step(key, key, depth)?;
        return items_of(key)?.try_for_each(|item| check_key_at(&item?, depth + 1));
    }
    match key.kind() {
        ValueKind::String => Ok(claim(key.as_str().map_or(0, str::len))?),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => Err(invalid(format!("{} as a key", kind_name(key)))),
        _ => Ok(()),
    }
}
