// SPDX-License-Identifier: Apache-2.0
//! Python's `format % arguments`.

use super::arguments::{invalid, split};
use super::budget::Text;
use super::integers;
use super::lists::collect;
use super::methods::{dict_pairs, map_of};
use super::python::{is_float, to_repr, to_text};
use super::spec::{wrong_value, Format, Spec, MAX_WIDTH};
use super::values::{is_tuple, tuple};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// The right side of `%`: values in order, or a mapping.
struct Operands<'a> {
    values: &'a [Value],
    used: usize,
}

impl Operands<'_> {
    fn next(&mut self) -> Result<&Value, Error> {
        self.used += 1;
        self.values.get(self.used - 1).ok_or_else(|| invalid("not enough arguments for the format"))
    }

    fn number(&mut self) -> Result<usize, Error> {
        let value = self.next()?;
        let number = usize::try_from(value.clone()).map_err(|_| wrong_value(Some('*'), value))?;
        if number > MAX_WIDTH {
            Err(invalid("format width is too large"))
        } else {
            Ok(number)
        }
    }
}

fn percent_spec(format: &mut Format, operands: &mut Operands) -> Result<Spec, Error> {
    let mut spec = Spec::new();
    let mut zero = false;
    while let Some(flag) = format.take("-+ #0") {
        match flag {
            '-' => spec.align = Some('<'),
            '+' => spec.plus = "+",
            ' ' if spec.plus.is_empty() => spec.plus = " ",
            '#' => spec.is_alternate = true,
            _ => zero = true,
        }
    }
    spec.width = if format.take("*").is_some() { operands.number()? } else { format.number()?.unwrap_or(0) };
    if format.take(".").is_some() {
        let precision = if format.take("*").is_some() { Some(operands.number()?) } else { format.number()? };
        spec.precision = Some(precision.unwrap_or(0));
    }
    while format.take("hlL").is_some() {}
    spec.kind = format.0.next();
    let is_number = spec.kind.is_some_and(|kind| "diouxXeEfFgG".contains(kind));
    if zero && spec.align.is_none() && is_number {
        (spec.fill, spec.align) = ('0', Some('='));
    }
    Ok(spec)
}

fn write_percent(out: &mut Text, spec: &Spec, value: &Value) -> Result<(), Error> {
    let is_number = integers::is_number(value);
    match spec.kind {
        Some('s') => spec.write_text(out, &to_text(value)?, '>'),
        Some('r' | 'a') => spec.write_text(out, &to_repr(value)?, '>'),
        Some('c') => match value.as_str() {
            Some(text) if text.chars().count() == 1 => spec.pad(out, text, '>'),
            _ => spec.write_char(out, value),
        },
        Some('d' | 'i' | 'u' | 'o' | 'x' | 'X') if is_number => {
            let is_decimal = spec.kind.is_some_and(|kind| "diu".contains(kind));
            let whole = if is_float(value) && is_decimal {
                Value::from(f64::try_from(value.clone())?.trunc() as i128)
            } else {
                value.clone()
            };
            let mut number = spec.integer(&whole)?;
            let missing = spec.precision.unwrap_or(0).saturating_sub(number.digits.len());
            number.digits.insert_str(0, &"0".repeat(missing));
            spec.write_number(out, number)
        }
        Some('e' | 'E' | 'f' | 'F' | 'g' | 'G') if is_number => spec.write_number(out, spec.float_of(value)?),
        Some(kind) if !"diouxXeEfFgG".contains(kind) => Err(invalid(format!("unsupported format %{kind}"))),
        None => Err(invalid("a format that ends in %")),
        _ => Err(wrong_value(spec.kind, value)),
    }
}

/// `format % operand`.
pub fn percent(format: &str, operand: &Value) -> Result<String, Error> {
    let values: Vec<Value> = if is_tuple(operand) { collect(operand)? } else { vec![operand.clone()] };
    let is_mapping =
        matches!(operand.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Undefined) && !is_tuple(operand);
    let mut operands = Operands { values: &values, used: 0 };
    let mut out = Text::default();
    let mut format = Format(format.chars().peekable());
    while let Some(c) = format.0.next() {
        if c != '%' {
            out.push(c.encode_utf8(&mut [0; 4]))?;
        } else if format.take("%").is_some() {
            out.push("%")?;
        } else if format.take("(").is_some() {
            let value = operand.get_item(&Value::from(format.until(')')?))?;
            if value.is_undefined() || operand.kind() != ValueKind::Map {
                return Err(invalid("the format needs a mapping with its keys"));
            }
            let spec = percent_spec(&mut format, &mut operands)?;
            write_percent(&mut out, &spec, &value)?;
        } else {
            let spec = percent_spec(&mut format, &mut operands)?;
            write_percent(&mut out, &spec, operands.next()?)?;
        }
    }
    if operands.used < values.len() && !is_mapping {
        return Err(invalid("not all arguments are used by the format"));
    }
    Ok(out.into_string())
}

/// The filter `format(text, ...)`.
pub fn format_filter(format: &Value, given: &[Value]) -> Result<Value, Error> {
    let operand = match split(given) {
        (_, None) => tuple(given.to_vec()),
        ([], Some(named)) => map_of(&dict_pairs(&Value::from(named))?)?,
        _ => return Err(invalid("a format takes arguments by position or by name, not both")),
    };
    percent(&to_text(format)?, &operand).map(Value::from)
}
