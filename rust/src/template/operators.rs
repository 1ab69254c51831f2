// SPDX-License-Identifier: Apache-2.0
//! `+` and `*` with bounds, and `replace`, `join`, `indent`: the operations by which a small template could grow a text
//! without limit.

use super::budget::{claim, Text, TooLarge, MAX_ITEMS, MAX_TEXT};
use super::methods::split_lines;
use super::python::write_str;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use std::sync::OnceLock;

/// The engine's own operator, for numbers and for its error messages.
fn plain(expression: &'static str, a: Value, b: Value) -> Result<Value, Error> {
    static ENGINE: OnceLock<Environment<'static>> = OnceLock::new();
    let engine = ENGINE.get_or_init(Environment::new);
    engine.compile_expression(expression)?.eval(minijinja::context! { a => a, b => b })
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !value.is_tuple()
}

/// `a + b`.
pub fn add(a: Value, b: Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        let mut out = Text::default();
        out.push(left)?;
        out.push(right)?;
        return Ok(Value::from(out.into_string()));
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
    let mut text = Text::default();
    if let Some(separator) = &separator {
        write_str(&mut text, separator)?;
    }
    let Some(attribute) = attribute else {
        return join(&items, text.as_str());
    };
    let picked: Result<Vec<Value>, Error> =
        items.try_iter()?.take(MAX_ITEMS).map(|item| item.get_item(&attribute)).collect();
    join(&Value::from(picked?), text.as_str())
}

/// The filter `replace(text, old, new, count=None)`.
pub fn replace_filter(text: Value, old: Value, new: Value, count: Option<i64>) -> Result<String, Error> {
    let as_text = |value: &Value| -> Result<String, Error> {
        let mut out = Text::default();
        write_str(&mut out, value)?;
        Ok(out.into_string())
    };
    replace(&as_text(&text)?, &as_text(&old)?, &as_text(&new)?, count)
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
