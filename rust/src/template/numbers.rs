// SPDX-License-Identifier: Apache-2.0
//! Filters that return numbers.

use super::arguments::{invalid, Arguments};
use super::integers;
use super::python::{is_float, kind_name};
use super::syntax::Operator;
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

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
fn parse_int(text: &str, base: i64) -> Option<Value> {
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
    let size = integers::parse(digits, radix as u32)?;
    if text.starts_with('-') {
        integers::negative(&size).ok()
    } else {
        Some(size)
    }
}

fn parse_float(text: &str) -> Option<f64> {
    without_underscores(text.trim())?.parse().ok()
}

pub fn as_float(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::String => value.as_str().and_then(parse_float),
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        _ => integers::float(value).ok(),
    }
}

/// `int(value, default=0, base=10)`.
pub fn int(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    if integers::is_integer(value) {
        return Ok(value.clone());
    }
    let base = arguments.integer(1)?.unwrap_or(10);
    if let Some(whole) = value.as_str().and_then(|text| parse_int(text, base)) {
        return Ok(whole);
    }
    let number = as_float(value);
    if let (Some(false), ValueKind::Number) = (number.map(f64::is_finite), value.kind()) {
        return Err(invalid("an integer of a number that is not finite"));
    }
    let number = number.and_then(integers::from_float);
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(0));
    Ok(number.unwrap_or_else(default))
}

/// `float(value, default=0.0)`.
pub fn float(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(0.0));
    Ok(as_float(value).map_or_else(default, Value::from))
}

/// `abs(value)`.
pub fn abs(value: &Value, _: &Arguments) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Number if is_float(value) => Ok(Value::from(f64::try_from(value.clone())?.abs())),
        _ => match integers::integer(value) {
            Some(number) => Ok(integers::from_big(number.magnitude().clone().into())),
            None => Err(invalid(format!("abs of {}", kind_name(value)))),
        },
    }
}

fn ten_to(power: i64) -> Result<Value, Error> {
    integers::arithmetic(Operator::Power, &Value::from(10), &Value::from(power)).map(Option::unwrap_or_default)
}

fn operate(operator: Operator, a: &Value, b: &Value) -> Result<Value, Error> {
    super::operators::numbers(operator, a, b)
}

/// Python's `round(value, digits)`: halves go to the even neighbour.
fn rounded(value: &Value, digits: i64) -> Result<Value, Error> {
    if let Some(number) = integers::integer(value) {
        if digits >= 0 {
            return Ok(integers::from_big(number));
        }
        let unit = integers::integer(&ten_to(-digits)?).unwrap_or_default();
        let (half, rest) = (&unit / 2, ((&number % &unit) + &unit) % &unit);
        let floor = number - &rest;
        let is_odd = (&floor / &unit).bit(0);
        let goes_up = rest > half || (rest == half && is_odd);
        return Ok(integers::from_big(if goes_up { floor + unit } else { floor }));
    }
    let number = integers::float(value)?;
    if digits > 330 || !number.is_finite() {
        return Ok(Value::from(number));
    }
    if digits >= 0 {
        // The formatter rounds the exact value.
        let text = format!("{number:.*}", digits as usize);
        return Ok(Value::from(text.parse::<f64>().unwrap_or(number)));
    }
    if digits < -310 {
        return Ok(Value::from(0f64.copysign(number)));
    }
    let power = 10f64.powi(-digits as i32);
    let scaled = number / power;
    let whole = scaled.round_ties_even();
    Ok(Value::from(whole * power))
}

/// `round(value, precision=0, method="common")`.
pub fn round(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    refuse_undefined(value)?;
    let (digits, method) = (arguments.integer(0)?.unwrap_or(0).clamp(-400, 400), arguments.text(1)?);
    let toward: fn(f64) -> f64 = match method {
        None | Some("common") => return rounded(value, digits),
        Some("ceil") => f64::ceil,
        Some("floor") => f64::floor,
        Some(method) => return Err(invalid(format!("round by {method}, common, ceil or floor expected"))),
    };
    let power = ten_to(digits)?;
    let scaled = operate(Operator::Multiply, value, &power)?;
    let whole = match integers::is_integer(&scaled) {
        true => scaled,
        false => integers::from_float(toward(integers::float(&scaled)?)).ok_or_else(|| invalid("round of infinity"))?,
    };
    operate(Operator::Divide, &whole, &power)
}
