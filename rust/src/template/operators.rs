// SPDX-License-Identifier: Apache-2.0
//! The operators by which a small template could grow a text or list, or work, without limit.

use super::arguments::invalid;
use super::budget::{List, Text};
use super::compare::{contains, equal, order};
use super::lists::{collect, items_of};
use super::methods::{dict_pairs, map_of};
use super::percent::percent;
use super::python::{kind_name, to_repr};
use super::strings::clamp;
use super::texts::push_escaped;
use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};
use std::sync::OnceLock;

/// The engine's own operator, for numbers and for its error messages.
fn plain(expression: &'static str, a: Value, b: Value) -> Result<Value, Error> {
    static ENGINE: OnceLock<Environment<'static>> = OnceLock::new();
    let engine = ENGINE.get_or_init(Environment::new);
    engine.compile_expression(expression)?.eval(minijinja::context! { a => a, b => b })
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// A list or tuple, like the value that it was made from.
fn like(model: &Value, items: List) -> Value {
    if model.is_tuple() {
        Value::from(Tuple::from(items.into_vec()))
    } else {
        items.into()
    }
}

/// `a + b`; a text marked as safe escapes the other one.
pub fn add(a: Value, b: Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        let is_markup = a.is_safe() || b.is_safe();
        let mut out = Text::default();
        for (text, escape) in [(left, is_markup && !a.is_safe()), (right, is_markup && !b.is_safe())] {
            if escape {
                push_escaped(&mut out, text)?;
            } else {
                out.push(text)?;
            }
        }
        let sum = out.into_string();
        return Ok(if is_markup { Value::from_safe_string(sum) } else { Value::from(sum) });
    }
    if is_list(&a) && is_list(&b) && a.is_tuple() == b.is_tuple() {
        let mut sum = List::default();
        for item in items_of(&a)?.chain(items_of(&b)?) {
            sum.push(item?)?;
        }
        return Ok(like(&a, sum));
    }
    match (a.as_i64(), b.as_i64(), a.is_integer() && b.is_integer()) {
        (Some(x), Some(y), true) if x.checked_add(y).is_some() => Ok(Value::from(x + y)),
        _ => plain("a + b", a, b),
    }
}

/// `a * b`; texts and lists repeat.
pub fn multiply(a: Value, b: Value) -> Result<Value, Error> {
    let repeats = |v: &Value| v.as_str().is_some() || is_list(v);
    let (model, times) = match (repeats(&a), repeats(&b)) {
        (true, false) => (&a, &b),
        (false, true) => (&b, &a),
        _ => return plain("a * b", a, b),
    };
    let Some(times) = times.as_i64().filter(|_| times.is_integer()) else {
        return plain("a * b", a, b);
    };
    let times = times.max(0) as usize;
    if let Some(text) = model.as_str() {
        let mut out = Text::default();
        out.push_repeated(text, times)?;
        return Ok(Value::from(out.into_string()));
    }
    let once = collect(model)?;
    let mut product = List::default();
    for item in (0..if once.is_empty() { 0 } else { times }).flat_map(|_| &once) {
        product.push(item.clone())?;
    }
    Ok(like(model, product))
}

/// `a % b`: a text on the left is a format.
pub fn modulo(a: Value, b: Value) -> Result<Value, Error> {
    match a.as_str() {
        Some(format) => percent(format, &b).map(Value::from),
        None => plain("a % b", a, b),
    }
}

fn bound(value: &Value) -> Result<Option<i64>, Error> {
    match value.kind() {
        ValueKind::None => Ok(None),
        _ if value.is_integer() => Ok(Some(i64::try_from(value.clone())?)),
        _ => Err(invalid(format!("a slice up to {}", kind_name(value)))),
    }
}

/// Which of `length` items `[start:stop:step]` chooses: the first one, the step and the count.
fn chosen(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> (usize, usize) {
    let is_forward = step > 0;
    if is_forward {
        let (first, end) = (clamp(start.unwrap_or(0), length), clamp(stop.unwrap_or(i64::MAX), length));
        return (first, end.saturating_sub(first).div_ceil(step as usize));
    }
    // Backwards, positions count from one before the first item, which none stands for.
    let after = |position: i64| if position < 0 { position.saturating_add(length as i64) } else { position };
    let place = |position: i64| after(position).clamp(-1, length as i64 - 1);
    let first = start.map_or(length as i64 - 1, place);
    let end = stop.map_or(-1, place);
    let count = (first - end).max(0) as usize;
    (first.max(0) as usize, count.div_ceil(step.unsigned_abs() as usize))
}

/// `value[start:stop:step]`.
pub fn slice(value: Value, start: Value, stop: Value, step: Value) -> Result<Value, Error> {
    let (start, stop, step) = (bound(&start)?, bound(&stop)?, bound(&step)?.unwrap_or(1));
    if step == 0 {
        return Err(invalid("a slice with a step of 0"));
    }
    let stride = step.unsigned_abs() as usize;
    if let Some(text) = value.as_str() {
        let length = text.chars().count();
        let (first, count) = chosen(length, start, stop, step);
        let sliced = if step > 0 {
            Text::from_chars(text.chars().skip(first).step_by(stride).take(count))
        } else {
            Text::from_chars(text.chars().rev().skip(length.saturating_sub(first + 1)).step_by(stride).take(count))
        };
        return Ok(Value::from(sliced?));
    }
    if !is_list(&value) {
        return Err(invalid(format!("a slice of {}", kind_name(&value))));
    }
    let mut sliced = List::default();
    let items = if value.kind() == ValueKind::Seq { None } else { Some(collect(&value)?) };
    let length = items.as_ref().map_or_else(|| value.len().unwrap_or(0), Vec::len);
    let (first, count) = chosen(length, start, stop, step);
    for place in 0..count {
        let at = if step > 0 { first + place * stride } else { first - place * stride };
        sliced.push(items.as_ref().map_or_else(|| value.get_item_by_index(at), |items| Ok(items[at].clone()))?)?;
    }
    Ok(like(&value, sliced))
}

type Comparison = fn(&Value, &Value) -> Result<bool, Error>;

/// The comparisons, in the order in which the engine numbers them.
pub const COMPARISONS: [Comparison; 8] = [
    equal,
    |a, b| Ok(!equal(a, b)?),
    |a, b| Ok(order(a, b)?.is_lt()),
    |a, b| Ok(order(a, b)?.is_le()),
    |a, b| Ok(order(a, b)?.is_gt()),
    |a, b| Ok(order(a, b)?.is_ge()),
    |item, container| contains(container, item),
    |item, container| Ok(!contains(container, item)?),
];

/// `loop.changed(...)`: the loop compares without bounds, so it gets the values as one text.
pub fn changed(state: &mut State, object: Value, values: Rest<Value>) -> Result<Value, Error> {
    object.call_method(state, "changed", &[Value::from(to_repr(&Value::from(values.0))?)])
}

/// The arguments `*a, *b` of one call.
pub fn splat(lists: Rest<Value>) -> Result<Value, Error> {
    let mut all = List::default();
    for list in lists.iter() {
        for item in items_of(list)? {
            all.push(item?)?;
        }
    }
    Ok(all.into())
}

/// The arguments `**a, **b` of one call.
pub fn splat_named(maps: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut flat = List::default();
    for map in maps.into_values() {
        if map.kind() != ValueKind::Map {
            return Err(invalid(format!("** of {}", kind_name(&map))));
        }
        for item in dict_pairs(&map)? {
            flat.push(item)?;
        }
    }
    map_of(&flat.into_vec())
}
