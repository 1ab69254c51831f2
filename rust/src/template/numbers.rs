// SPDX-License-Identifier: Apache-2.0
//! Filters that make numbers.

use super::arguments::{invalid, Arguments};
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, State, Value};

fn refuse_undefined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        Err(invalid("a number of an undefined value"))
    } else {
        Ok(())
    }
}

/// Python allows single underscores between digits.
fn without_underscores(text: &str) -> Option<String> {
    let is_misplaced = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!is_misplaced).then(|| text.replace('_', ""))
}

/// `int(text, base)`; base 0 reads the prefix.
fn parse_int(text: &str, base: i64) -> Option<i128> {
    let text = without_underscores(text.trim())?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let prefixes = [("0b", 2), ("0o", 8), ("0x", 16)];
    let lower = digits.to_ascii_lowercase();
    let found = prefixes.iter().find(|(prefix, radix)| lower.starts_with(prefix) && [0, *radix].contains(&base));
    let (digits, radix) =
        found.map_or((digits, if base == 0 { 10 } else { base }), |(_, radix)| (&digits[2..], *radix));
    if !(2..=36).contains(&radix) || !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let size = i128::from_str_radix(digits, radix as u32).ok()?;
    Some(if text.starts_with('-') { -size } else { size })
}

fn parse_float(text: &str) -> Option<f64> {
    without_underscores(text.trim())?.parse().ok()
}

fn as_float(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::String => value.as_str().and_then(parse_float),
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        _ => f64::try_from(value.clone()).ok(),
    }
}

/// An integer in the form that is usual for its size, as comparisons and keys expect.
fn integer(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

/// `int(value, default=0, base=10)`.
pub fn int(_: &mut State, value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    if value.is_integer() {
        return Ok(value.clone());
    }
    let base = arguments.integer(1)?.unwrap_or(10);
    if let Some(whole) = value.as_str().and_then(|text| parse_int(text, base)) {
        return Ok(integer(whole));
    }
    let number = as_float(value).filter(|x| x.abs() < i128::MAX as f64);
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(0));
    Ok(number.map_or_else(default, |x| integer(x.trunc() as i128)))
}

/// `float(value, default=0.0)`.
pub fn float(_: &mut State, value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(0.0));
    Ok(as_float(value).map_or_else(default, Value::from))
}

/// `abs(value)`.
pub fn abs(_: &mut State, value: &Value, _: &Arguments) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(Value::from(i64::from(value.is_true()))),
        _ => minijinja::filters::abs(value.clone()),
    }
}

/// `round(value, precision=0, method="common")`: always a float, but for an integer that is rounded as usual.
pub fn round(_: &mut State, value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    let (precision, method) = (arguments.integer(0)?.unwrap_or(0).clamp(-400, 400), arguments.text(1)?);
    let value = if value.kind() == ValueKind::Bool { integer(i128::from(value.is_true())) } else { value.clone() };
    minijinja::filters::round(
        value,
        Some(precision as i32),
        method,
        Kwargs::from_iter(std::iter::empty::<(&str, Value)>()),
    )
}
