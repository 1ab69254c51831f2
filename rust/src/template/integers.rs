// SPDX-License-Identifier: Apache-2.0
//! Numbers with Python's arithmetic: integers are limited only by memory, and compare exactly with floats.

use super::arguments::invalid;
use super::python::kind_name;
use super::syntax::Operator;
use minijinja::value::{Object, ObjectRepr, ValueKind};
use minijinja::{Error, Value};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum digits of an integer that is read or written, as in Python.
const MAX_DIGITS: usize = 4300;
/// Maximum bits of an integer that is computed.
const MAX_BITS: u64 = 1 << 18;

/// An integer beyond 128 bits.
#[derive(Debug)]
struct Big(BigInt);

impl Object for Big {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0)
    }
}

fn big_of(value: &Value) -> Option<&BigInt> {
    value.downcast_object_ref::<Big>().map(|big| &big.0)
}

pub fn is_big(value: &Value) -> bool {
    big_of(value).is_some()
}

/// True if the value is a Python int, but no bool.
pub fn is_integer(value: &Value) -> bool {
    value.is_integer() || is_big(value)
}

pub fn is_float(value: &Value) -> bool {
    value.kind() == ValueKind::Number && !value.is_integer()
}

/// The value of an integer or bool.
pub fn integer(value: &Value) -> Option<BigInt> {
    if value.kind() == ValueKind::Bool {
        return Some(BigInt::from(u8::from(value.is_true())));
    }
    if value.is_integer() {
        return i128::try_from(value.clone()).ok().map(BigInt::from);
    }
    big_of(value).cloned()
}

/// The value of an integer or bool of 64 bits.
pub fn small(value: &Value) -> Option<i64> {
    match value.kind() {
        ValueKind::Bool => Some(i64::from(value.is_true())),
        _ if value.is_integer() => value.as_i64(),
        _ => None,
    }
}

fn small128(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        _ if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

pub fn from_i128(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

pub fn from_big(number: BigInt) -> Value {
    i128::try_from(&number).map_or_else(|_| Value::from_object(Big(number)), from_i128)
}

/// An integer from its digits, which may have a sign.
pub fn parse(digits: &str, base: u32) -> Option<Value> {
    if base == 10 && digits.len() > MAX_DIGITS + 1 || digits.len() > MAX_BITS as usize {
        return None;
    }
    BigInt::parse_bytes(digits.as_bytes(), base).map(from_big)
}

/// `str(integer)`.
pub fn write(value: &Value) -> Result<String, Error> {
    match big_of(value) {
        Some(number) => {
            // A decimal digit has at least three bits.
            let digits = if number.bits() as usize > 4 * MAX_DIGITS { String::new() } else { number.to_string() };
            let length = digits.trim_start_matches('-').len();
            if length == 0 || length > MAX_DIGITS {
                return Err(invalid(format!("an integer of more than {MAX_DIGITS} digits as text")));
            }
            Ok(digits)
        }
        None => Ok(value.to_string()),
    }
}

pub fn big_to_float(number: &BigInt) -> f64 {
    // The parser of floats rounds correctly.
    number.to_string().parse().unwrap_or(f64::NAN)
}

/// A number as a float.
pub fn float(value: &Value) -> Result<f64, Error> {
    let number = match (integer(value), value.kind()) {
        (Some(number), _) if number.bits() <= 53 => small(value).map_or(0.0, |number| number as f64),
        (Some(number), _) if number.bits() > 1024 => f64::INFINITY,
        (Some(number), _) => big_to_float(&number),
        (None, ValueKind::Number) => return Ok(f64::try_from(value.clone())?),
        _ => return Err(invalid(format!("{} as a number", kind_name(value)))),
    };
    if number.is_infinite() {
        return Err(invalid("an integer that is too large for a float"));
    }
    Ok(number)
}

/// The integer part of a finite float.
pub fn from_float(number: f64) -> Option<Value> {
    if !number.is_finite() {
        return None;
    }
    let number = number.trunc();
    if number.abs() < 1e30 {
        return Some(from_i128(number as i128));
    }
    // Beyond 2^53 the shortest digits are not exact.
    BigInt::parse_bytes(format!("{number:.0}").as_bytes(), 10).map(from_big)
}

pub fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool) || is_big(value)
}

/// Compares two numbers; none if one is no number or NaN.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (small128(a), small128(b)) {
        return Some(a.cmp(&b));
    }
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_float(&a, f64::try_from(b.clone()).ok()?),
        (None, Some(b)) => compare_with_float(&b, f64::try_from(a.clone()).ok()?).map(Ordering::reverse),
        (None, None) => f64::try_from(a.clone()).ok()?.partial_cmp(&f64::try_from(b.clone()).ok()?),
    }
}

fn compare_with_float(number: &BigInt, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let Some(whole) = from_float(float).and_then(|whole| integer(&whole)) else {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    };
    Some(number.cmp(&whole).then(0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

fn zero() -> Error {
    invalid("a division by zero")
}

/// `a // b` and `a % b` of floats.
fn divide_floats(a: f64, b: f64) -> Result<(f64, f64), Error> {
    if b == 0.0 {
        return Err(zero());
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    } else if rest == 0.0 {
        rest = 0f64.copysign(b);
    }
    let floor = if quotient == 0.0 { 0f64.copysign(a / b) } else { quotient.floor() };
    Ok((if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest))
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Value, Error> {
    Ok(Value::from(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 => return Err(zero()),
        Operator::Divide => a / b,
        Operator::FloorDivide => divide_floats(a, b)?.0,
        Operator::Modulo => divide_floats(a, b)?.1,
        Operator::Power => power(a, b)?,
    }))
}

fn power(a: f64, b: f64) -> Result<f64, Error> {
    if a == 0.0 && b < 0.0 {
        return Err(zero());
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err(invalid("a power that is no real number"));
    }
    let result = a.powf(b);
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(invalid("a power that is too large for a float"));
    }
    Ok(result)
}

fn integers(operator: Operator, a: &BigInt, b: &BigInt) -> Result<Value, Error> {
    let is_zero = b.sign() == Sign::NoSign;
    if a.bits().saturating_add(b.bits()) > MAX_BITS {
        return Err(invalid("an integer that is too large"));
    }
    Ok(match operator {
        Operator::Add => from_big(a + b),
        Operator::Subtract => from_big(a - b),
        Operator::Multiply => from_big(a * b),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if is_zero => return Err(zero()),
        Operator::Divide => Value::from(quotient(a, b)?),
        Operator::FloorDivide | Operator::Modulo => {
            let (mut quotient, mut rest) = (a / b, a % b);
            if rest.sign() != Sign::NoSign && rest.sign() != b.sign() {
                quotient -= 1;
                rest += b;
            }
            from_big(if operator == Operator::FloorDivide { quotient } else { rest })
        }
        Operator::Power if b.sign() == Sign::Minus => {
            return floats(operator, float(&from_big(a.clone()))?, float(&from_big(b.clone()))?)
        }
        Operator::Power => {
            let exponent = u32::try_from(b).unwrap_or(u32::MAX);
            if a.bits() > 1 && a.bits().saturating_mul(exponent.into()) > MAX_BITS {
                return Err(invalid("an integer that is too large"));
            }
            // The powers of 0, 1 and -1 take turns.
            from_big(a.pow(if a.bits() > 1 || is_zero { exponent } else { 2 - u32::from(b.bit(0)) }))
        }
    })
}

/// `a / b`, rounded once.
fn quotient(a: &BigInt, b: &BigInt) -> Result<f64, Error> {
    if a.bits() <= 53 && b.bits() <= 53 {
        return Ok(big_to_float(a) / big_to_float(b));
    }
    // The rounding depends on 66 bits of the quotient, and a bit for the remainder.
    let shift = 66 - (a.bits() as i64 - b.bits() as i64);
    let (a_shifted, b_shifted) =
        if shift >= 0 { (a << shift as u64, b.clone()) } else { (a.clone(), b << shift.unsigned_abs()) };
    let mut whole: BigInt = (&a_shifted / &b_shifted) << 1;
    if (&a_shifted % &b_shifted).sign() != Sign::NoSign {
        whole += if whole.sign() == Sign::Minus { -1 } else { 1 };
    }
    let scale = i32::try_from(-(shift + 1)).map_err(|_| invalid("a quotient that is too large"))?;
    // In two steps, since a single power may exceed the range of floats although the result does not.
    let result = big_to_float(&whole) * 2f64.powi(scale / 2) * 2f64.powi(scale - scale / 2);
    if result.is_infinite() {
        return Err(invalid("a quotient that is too large for a float"));
    }
    Ok(result)
}

/// An operator on two numbers; none if one is no number.
pub fn arithmetic(operator: Operator, a: &Value, b: &Value) -> Result<Option<Value>, Error> {
    if let (Some(x), Some(y)) = (small(a), small(b)) {
        let quick = match operator {
            Operator::Add => x.checked_add(y),
            Operator::Subtract => x.checked_sub(y),
            Operator::Multiply => x.checked_mul(y),
            _ => None,
        };
        if let Some(result) = quick {
            return Ok(Some(Value::from(result)));
        }
    }
    if !is_number(a) || !is_number(b) {
        return Ok(None);
    }
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => integers(operator, &a, &b).map(Some),
        _ => floats(operator, float(a)?, float(b)?).map(Some),
    }
}

pub fn negative(value: &Value) -> Result<Value, Error> {
    match integer(value) {
        Some(number) => Ok(from_big(-number)),
        None if is_float(value) => Ok(Value::from(-f64::try_from(value.clone())?)),
        None => Err(invalid(format!("- before {}", kind_name(value)))),
    }
}
