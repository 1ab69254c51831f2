// SPDX-License-Identifier: Apache-2.0
//! Compares values as Python does, in bounded time: a value may contain another one many times.

use super::arguments::invalid;
use super::budget::{work, work_on};
use super::integers;
use super::lists::items_of;
use super::python::{kind_name, too_deep, MAX_DEPTH};
pub use super::values::check_key;
use super::values::{dict_of, is_tuple, range_of, slice_of};
use minijinja::tests::is_sameas;
use minijinja::value::ValueKind;
use minijinja::{Error, Value};
use std::cmp::Ordering;

fn is_list(value: &Value) -> bool {
    slice_of(value).is_some() || range_of(value).is_some()
}

/// True if both are lists, tuples or ranges of one kind, which compare with each other.
fn are_alike(a: &Value, b: &Value) -> bool {
    is_tuple(a) == is_tuple(b) && range_of(a).is_some() == range_of(b).is_some()
}

/// The value's text; bytes are none.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|_| value.kind() == ValueKind::String)
}

/// The work of a comparison beside reading texts, so that comparisons of shared values end.
const COST: usize = 64;

fn step(a: &Value, b: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let length = |value: &Value| value.as_str().map_or(0, str::len);
    Ok(work(COST + length(a).min(length(b)))?)
}

/// `a == b`.
pub fn equal(a: &Value, b: &Value) -> Result<bool, Error> {
    equal_at(a, b, 0)
}

fn equal_at(a: &Value, b: &Value, depth: usize) -> Result<bool, Error> {
    if let (Some(left), Some(right)) = (text_of(a), text_of(b)) {
        work(COST + left.len().min(right.len()))?;
        return Ok(left == right);
    }
    step(a, b, depth)?;
    if is_list(a) && is_list(b) {
        return Ok(are_alike(a, b) && order_lists(a, b, depth, equal_or_greater)? == Ordering::Equal);
    }
    if integers::is_number(a) && integers::is_number(b) {
        return Ok(integers::compare(a, b) == Some(Ordering::Equal));
    }
    let (Some(left), Some(right)) = (dict_of(a), dict_of(b)) else {
        // Other objects equal only themselves.
        return Ok(if a.as_object().is_some() { is_sameas(a, b) } else { b.as_object().is_none() && a == b });
    };
    if left.pairs().count() != right.pairs().count() {
        return Ok(false);
    }
    for (key, value) in left.pairs() {
        let is_same = right.get(key).map_or(Ok(false), |other| equal_at(value, &other, depth + 1))?;
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two items for a list comparison that needs only equality.
fn equal_or_greater(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    Ok(if equal_at(a, b, depth)? { Ordering::Equal } else { Ordering::Greater })
}

/// A comparison at a nesting depth.
pub type Order = fn(&Value, &Value, usize) -> Result<Ordering, Error>;

/// The first differing pair decides, then the length.
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

/// Equal items need no order: [none, 1] is below [none, 2].
pub fn order_items(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    if equal_at(a, b, depth)? {
        Ok(Ordering::Equal)
    } else {
        order_at(a, b, depth)
    }
}

/// The order for `<` and `sort`; an error for values that Python does not order.
pub fn order(a: &Value, b: &Value) -> Result<Ordering, Error> {
    order_at(a, b, 0)
}

/// `order` inside values nested to this depth.
pub fn order_at(a: &Value, b: &Value, depth: usize) -> Result<Ordering, Error> {
    step(a, b, depth)?;
    if integers::is_number(a) && integers::is_number(b) {
        // Nothing is below or above NaN.
        return integers::compare(a, b).ok_or_else(|| invalid(NOT_ORDERED));
    }
    if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
        return Ok(x.cmp(y));
    }
    if is_list(a) && is_list(b) && are_alike(a, b) && range_of(a).is_none() {
        return order_lists(a, b, depth, order_items);
    }
    Err(invalid(format!("{} and {} have no order", kind_name(a), kind_name(b))))
}

const NOT_ORDERED: &str = "NaN has no order";

/// True if `a < b` or the like holds, which it never does for NaN.
pub fn holds(a: &Value, b: &Value, wanted: fn(Ordering) -> bool) -> Result<bool, Error> {
    if integers::is_number(a) && integers::is_number(b) {
        return Ok(integers::compare(a, b).is_some_and(wanted));
    }
    order(a, b).map(wanted)
}

/// `item in container`.
pub fn contains(container: &Value, item: &Value) -> Result<bool, Error> {
    if let Some(text) = container.as_str() {
        // Bytes are UTF-8 here, but not text.
        let part = item.as_str().filter(|_| item.kind() == ValueKind::String && container.kind() == ValueKind::String);
        let part = part.ok_or_else(|| invalid(format!("{} in a string", kind_name(item))))?;
        work_on(container)?;
        return Ok(text.contains(part));
    }
    if let Some(dict) = dict_of(container) {
        return match item.as_str() {
            Some(name) => Ok(dict.has_text(name)),
            None => check_key(item).map(|()| dict.get(item).is_some()),
        };
    }
    for other in items_of(container)? {
        if equal(&other?, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
