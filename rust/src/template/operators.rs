// SPDX-License-Identifier: Apache-2.0
//! Python's operators on texts, lists and numbers.

use super::arguments::invalid;
use super::budget::{claim, List, Text, OVERHEAD};
use super::integers;
use super::percent::percent;
use super::python::kind_name;
use super::strings::clamp;
use super::syntax::Operator;
use super::texts::{keep_mark, push_escaped};
use super::values::{is_tuple, part, range_of, slice_of, tuple};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

fn is_sequence(value: &Value) -> bool {
    slice_of(value).is_some()
}

/// A list, or a tuple if `model` is one.
fn like(model: &Value, items: List) -> Value {
    if is_tuple(model) {
        tuple(items.into_vec())
    } else {
        items.into()
    }
}

fn name_of(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Modulo => "%",
        Operator::Power => "**",
    }
}

/// An operator on numbers only.
pub fn numbers(operator: Operator, a: &Value, b: &Value) -> Result<Value, Error> {
    let result = integers::arithmetic(operator, a, b)?;
    result.ok_or_else(|| invalid(format!("{} {} {}", kind_name(a), name_of(operator), kind_name(b))))
}

/// `+value`.
pub fn positive(value: &Value) -> Result<Value, Error> {
    integers::negative(value).and_then(|negative| integers::negative(&negative))
}

/// `a + b`; a text marked as safe escapes the other one.
pub fn add(a: &Value, b: &Value) -> Result<Value, Error> {
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
    if let (Some(left), Some(right), true) = (slice_of(a), slice_of(b), is_tuple(a) == is_tuple(b)) {
        let mut sum = List::default();
        for item in left.iter().chain(right) {
            sum.push(item.clone())?;
        }
        return Ok(like(a, sum));
    }
    numbers(Operator::Add, a, b)
}

/// `a * b`; texts and lists repeat.
pub fn multiply(a: &Value, b: &Value) -> Result<Value, Error> {
    let repeats = |v: &Value| v.as_str().is_some() || is_sequence(v);
    let (model, times) = match (repeats(a), repeats(b)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        _ => return numbers(Operator::Multiply, a, b),
    };
    let Some(times) = integers::small(times) else {
        return numbers(Operator::Multiply, a, b);
    };
    let times = times.max(0) as usize;
    if let Some(text) = model.as_str() {
        let mut out = Text::default();
        out.push_repeated(text, times)?;
        let product = out.into_string();
        return Ok(if model.is_safe() { Value::from_safe_string(product) } else { Value::from(product) });
    }
    let once = slice_of(model).unwrap_or(&[]);
    let mut product = List::default();
    for item in (0..if once.is_empty() { 0 } else { times }).flat_map(|_| once) {
        product.push(item.clone())?;
    }
    Ok(like(model, product))
}

/// `a % b`: a text on the left is a format.
pub fn modulo(a: &Value, b: &Value) -> Result<Value, Error> {
    match a.as_str() {
        Some(format) => percent(format, b).map(Value::from),
        None => numbers(Operator::Modulo, a, b),
    }
}

fn bound(value: &Value) -> Result<Option<i64>, Error> {
    match value.kind() {
        ValueKind::None => Ok(None),
        _ => match integers::integer(value) {
            // Anything beyond 64 bits is beyond any list.
            Some(number) => {
                Ok(Some(i64::try_from(&number).unwrap_or(if number < 0.into() { i64::MIN } else { i64::MAX })))
            }
            None => Err(invalid(format!("a slice up to {}", kind_name(value)))),
        },
    }
}

/// The items of `length` that `[start:stop:step]` selects: the first one and the count.
fn chosen(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> (usize, usize) {
    let is_forward = step > 0;
    if is_forward {
        let (first, end) = (clamp(start.unwrap_or(0), length), clamp(stop.unwrap_or(i64::MAX), length));
        return (first, end.saturating_sub(first).div_ceil(step as usize));
    }
    // Backwards, positions count from one before the first item.
    let after = |position: i64| if position < 0 { position.saturating_add(length as i64) } else { position };
    let place = |position: i64| after(position).clamp(-1, length as i64 - 1);
    let first = start.map_or(length as i64 - 1, place);
    let end = stop.map_or(-1, place);
    let count = (first - end).max(0) as usize;
    (first.max(0) as usize, count.div_ceil(step.unsigned_abs() as usize))
}

/// True if the value can be sliced.
pub fn is_sliceable(value: &Value) -> bool {
    value.as_str().is_some() || range_of(value).is_some() || slice_of(value).is_some()
}

/// `value[start:stop:step]`.
pub fn slice(value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
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
        return Ok(keep_mark(value, Value::from(sliced?)));
    }
    if let Some(range) = range_of(value) {
        let length = value.len().unwrap_or(0);
        let (first, count) = chosen(length, start, stop, step);
        return Ok(range.slice(first, count, step));
    }
    let Some(items) = slice_of(value) else {
        return Err(invalid(format!("a slice of {}", kind_name(value))));
    };
    let (first, count) = chosen(items.len(), start, stop, step);
    if step == 1 {
        claim(2 * OVERHEAD)?;
        return Ok(part(value, first, count));
    }
    let mut sliced = List::default();
    for place in 0..count {
        let at = if step > 0 { first + place * stride } else { first - place * stride };
        sliced.push(items[at].clone())?;
    }
    Ok(like(value, sliced))
}
