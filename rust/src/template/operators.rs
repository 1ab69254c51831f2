// SPDX-License-Identifier: Apache-2.0
//! `+` and `*` with bounds, and `replace`, `join`, `indent`: the operations by which a small template could grow a text
//! without limit.

use super::budget::{claim, Text, TooLarge, MAX_ITEMS, MAX_TEXT};
use super::methods::split_lines;
use super::python::{to_text, write_str};
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::sync::OnceLock;

/// The engine's own filter `format`; a template cannot write a name with a space.
pub const FORMAT: &str = " format";

/// The engine's own operator, for numbers and for its error messages.
fn plain(expression: &'static str, a: Value, b: Value) -> Result<Value, Error> {
    static ENGINE: OnceLock<Environment<'static>> = OnceLock::new();
    let engine = ENGINE.get_or_init(Environment::new);
    engine.compile_expression(expression)?.eval(minijinja::context! { a => a, b => b })
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !value.is_tuple()
}

/// As Python's Markup escapes what is added to it.
fn push_escaped(out: &mut Text, text: &str) -> Result<(), TooLarge> {
    for c in text.chars() {
        match c {
            '&' => out.push("&amp;")?,
            '<' => out.push("&lt;")?,
            '>' => out.push("&gt;")?,
            '"' => out.push("&#34;")?,
            '\'' => out.push("&#39;")?,
            c => out.push(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(())
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
    if is_list(&a) && is_list(&b) {
        let items: Vec<Value> = a.try_iter()?.chain(b.try_iter()?).take(MAX_ITEMS + 1).collect();
        if items.len() > MAX_ITEMS {
            return Err(TooLarge.into());
        }
        claim(items.len() * size_of::<Value>())?;
        return Ok(Value::from(items));
    }
    if a.is_tuple() || b.is_tuple() {
        let items = a.len().unwrap_or(0).saturating_add(b.len().unwrap_or(0));
        claim(items.saturating_mul(size_of::<Value>()))?;
    }
    match (a.as_i64(), b.as_i64(), a.is_integer() && b.is_integer()) {
        (Some(x), Some(y), true) if x.checked_add(y).is_some() => Ok(Value::from(x + y)),
        _ => plain("a + b", a, b),
    }
}

/// `a * b`; texts and lists repeat.
pub fn multiply(a: Value, b: Value) -> Result<Value, Error> {
    let repeats = |v: &Value| v.as_str().is_some() || matches!(v.kind(), ValueKind::Seq | ValueKind::Iterable);
    let (items, times) = match (repeats(&a), repeats(&b)) {
        (true, false) => (&a, &b),
        (false, true) => (&b, &a),
        _ => return plain("a * b", a, b),
    };
    let Some(times) = times.as_i64().filter(|_| times.is_integer()) else {
        return plain("a * b", a, b);
    };
    let times = times.max(0) as usize;
    if let Some(text) = items.as_str() {
        let mut out = Text::default();
        out.push_repeated(text, times)?;
        return Ok(Value::from(out.into_string()));
    }
    let count = items.len().unwrap_or(MAX_ITEMS).saturating_mul(times);
    if count > MAX_ITEMS {
        return Err(TooLarge.into());
    }
    claim(count * size_of::<Value>())?;
    if times == 0 || items.is_tuple() {
        return plain("a * b", items.clone(), Value::from(times));
    }
    let once: Vec<Value> = items.try_iter()?.collect();
    Ok((0..times).flat_map(|_| once.iter().cloned()).collect())
}

/// `a % b`: a text on the left is a format.
pub fn modulo(state: &mut State, a: Value, b: Value) -> Result<Value, Error> {
    let Some(format) = a.as_str() else {
        return plain("a % b", a, b);
    };
    check_format(format)?;
    let arguments: Vec<Value> = if b.is_tuple() { b.try_iter()?.collect() } else { vec![b] };
    state.apply_filter(FORMAT, &[std::slice::from_ref(&a), &arguments[..]].concat())
}

/// The filter `format(text, ...)`.
pub fn format_filter(state: &mut State, format: Value, arguments: Rest<Value>) -> Result<Value, Error> {
    check_format(format.as_str().unwrap_or(""))?;
    state.apply_filter(FORMAT, &[std::slice::from_ref(&format), &arguments[..]].concat())
}

/// The filter `int(value, default=0)`.
pub fn int_filter(value: Value, default: Option<Value>) -> Value {
    let default = default.unwrap_or_else(|| Value::from(0));
    if value.is_integer() {
        return value;
    }
    let text = value.as_str().map(|text| text.trim().replace('_', ""));
    if let Some(whole) = text.as_ref().and_then(|text| text.parse::<i64>().ok()) {
        return Value::from(whole);
    }
    let number = text.map_or_else(|| f64::try_from(value).ok(), |text| text.parse().ok());
    let fits = |x: &f64| x.abs() < i64::MAX as f64;
    number.filter(fits).map_or(default, |x| Value::from(x.trunc() as i64))
}

/// The filter `float(value, default=0.0)`.
pub fn float_filter(value: Value, default: Option<Value>) -> Value {
    let default = default.unwrap_or_else(|| Value::from(0.0));
    let text = value.as_str().map(|text| text.trim().replace('_', ""));
    let number: Option<f64> = text.map_or_else(|| f64::try_from(value).ok(), |text| text.parse().ok());
    number.map_or(default, Value::from)
}

/// `text.replace(old, new, count)`.
pub fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<String, Error> {
    let limit = count.filter(|&n| n >= 0).map_or(usize::MAX, |n| n as usize);
    let found = text.matches(old).take(limit).count();
    let size = text.len().saturating_add(found.saturating_mul(new.len()));
    claim(size.min(MAX_TEXT + 1))?;
    Ok(text.replacen(old, new, limit))
}

/// `separator.join(items)`.
pub fn join(items: &Value, separator: &str) -> Result<String, Error> {
    let mut out = Text::default();
    for (i, item) in items.try_iter()?.enumerate() {
        out.push(if i > 0 { separator } else { "" })?;
        write_str(&mut out, &item)?;
    }
    Ok(out.into_string())
}

/// The filter `join(items, d="", attribute=None)`.
pub fn join_filter(
    items: Value,
    separator: Option<Value>,
    attribute: Option<Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let separator = separator.or(kwargs.get::<Option<Value>>("d")?);
    let attribute = attribute.or(kwargs.get::<Option<Value>>("attribute")?).filter(|v| !v.is_none());
    kwargs.assert_all_used()?;
    let separator = separator.map_or(Ok(String::new()), |value| to_text(&value))?;
    let Some(attribute) = attribute else {
        return join(&items, &separator);
    };
    let picked: Result<Vec<Value>, Error> =
        items.try_iter()?.take(MAX_ITEMS).map(|item| item.get_item(&attribute)).collect();
    join(&Value::from(picked?), &separator)
}

/// The filter `replace(text, old, new, count=None)`.
pub fn replace_filter(text: Value, old: Value, new: Value, count: Option<i64>) -> Result<String, Error> {
    replace(&to_text(&text)?, &to_text(&old)?, &to_text(&new)?, count)
}

/// The filter `indent(text, width=4, first=False, blank=False)`.
pub fn indent_filter(
    text: &str,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let width = width.or(kwargs.get::<Option<Value>>("width")?);
    let first = first.or(kwargs.get::<Option<bool>>("first")?).unwrap_or(false);
    let blank = blank.or(kwargs.get::<Option<bool>>("blank")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    let mut margin = Text::default();
    match width {
        Some(width) if width.as_str().is_some() => write_str(&mut margin, &width)?,
        Some(width) => margin.push_repeated(" ", i64::try_from(width)?.max(0) as usize)?,
        None => margin.push("    ")?,
    }
    let text = format!("{text}\n");
    let mut out = Text::default();
    out.push(if first { margin.as_str() } else { "" })?;
    for (i, line) in split_lines(&text, false).into_iter().enumerate() {
        let is_indented = i > 0 && (blank || !line.is_empty());
        out.push(if i > 0 { "\n" } else { "" })?;
        out.push(if is_indented { margin.as_str() } else { "" })?;
        out.push(line)?;
    }
    Ok(out.into_string())
}

/// Filters that make `count` pieces: refuses counts that no prompt needs.
pub fn check_count(count: &Value) -> Result<(), Error> {
    match count.as_usize() {
        Some(n) if n > MAX_ITEMS => Err(TooLarge.into()),
        _ => Ok(()),
    }
}

/// `%`-formatting and `str.format` pad to the width that the format asks for.
pub fn check_format(format: &str) -> Result<(), Error> {
    let mut digits = 0;
    for c in format.chars() {
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 5 || c == '*' {
            return Err(Error::new(ErrorKind::InvalidOperation, "format width is too large"));
        }
    }
    Ok(())
}
