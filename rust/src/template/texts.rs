// SPDX-License-Identifier: Apache-2.0
//! Filters over texts, except those that are string methods.

use super::arguments::{invalid, Arguments};
use super::budget::{Exceeded, Text};
use super::lists::{collect, items_of, pairs};
use super::python::{kind_name, to_text};
use super::split::{is_space, split_lines};
use super::strings::replaced;
use super::values::{is_tuple, list, slice_of, tuple};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// Escapes as Python's Markup does for text that is added to it.
pub fn push_escaped(out: &mut Text, text: &str) -> Result<(), Exceeded> {
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

/// Marks a method's result (a text, or a list or tuple of texts) as safe if `text` is.
pub fn keep_mark(text: &Value, made: Value) -> Value {
    if !text.is_safe() {
        return made;
    }
    if made.kind() == ValueKind::String {
        return Value::from_safe_string(made.as_str().unwrap_or("").to_owned());
    }
    let Some(items) = slice_of(&made) else { return made };
    let items = items.iter().map(|item| keep_mark(text, item.clone())).collect();
    if is_tuple(&made) {
        tuple(items)
    } else {
        list(items)
    }
}

/// `forceescape(value)`.
pub fn force_escape(value: &Value, _: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    push_escaped(&mut out, &to_text(value)?)?;
    Ok(Value::from_safe_string(out.into_string()))
}

/// `escape(value)`: a text that is marked as safe is unchanged.
pub fn escape(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    if value.is_safe() {
        Ok(value.clone())
    } else {
        force_escape(value, arguments)
    }
}

/// `safe(value)`.
pub fn safe(value: &Value, _: &Arguments) -> Result<Value, Error> {
    Ok(Value::from_safe_string(to_text(value)?))
}

/// `string(value)`.
pub fn string(value: &Value, _: &Arguments) -> Result<Value, Error> {
    if value.kind() == ValueKind::String {
        Ok(value.clone())
    } else {
        Ok(Value::from(to_text(value)?))
    }
}

/// `replace(value, old, new, count=None)`.
pub fn replace(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let (old, new) = (to_text(arguments.required(0)?)?, to_text(arguments.required(1)?)?);
    replaced(text, &old, &new, arguments.integer(2)?).map(Value::from)
}

/// `title(value)`: a word starts after white space, a hyphen or an opening bracket.
pub fn title(text: &str, _: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    let mut is_start = true;
    for c in text.chars() {
        let cased: String = if is_start { c.to_uppercase().collect() } else { c.to_lowercase().collect() };
        out.push(&cased)?;
        is_start = is_space(c) || "-({[<".contains(c);
    }
    Ok(Value::from(out.into_string()))
}

/// The text for a filter that accepts nothing else.
pub fn text_of(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| invalid(format!("{}, a string expected", kind_name(value))))
}

/// The indentation of a line: the argument as a text, or that many spaces.
pub fn margin(arguments: &Arguments, index: usize, default: usize) -> Result<String, Error> {
    let mut out = Text::default();
    match arguments.given(index).and_then(|width| width.as_str()) {
        Some(width) => out.push(width)?,
        None => out.push_repeated(" ", arguments.count(index, default)?)?,
    }
    Ok(out.into_string())
}

/// `indent(value, width=4, first=False, blank=False)`.
pub fn indent(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let text = text_of(value)?;
    let margin = margin(arguments, 0, 4)?;
    let (first, blank) = (arguments.flag(1, false), arguments.flag(2, false));
    let text = format!("{text}\n");
    let mut out = Text::default();
    out.push(if first { &margin } else { "" })?;
    for (i, line) in split_lines(&text, false).enumerate() {
        let is_indented = i > 0 && (blank || !line.is_empty());
        out.push(if i > 0 { "\n" } else { "" })?;
        out.push(if is_indented { &margin } else { "" })?;
        out.push(line)?;
    }
    Ok(Value::from(out.into_string()))
}

pub fn prefix(text: &str, count: usize) -> &str {
    &text[..text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)]
}

/// `truncate(value, length=255, killwords=False, end="...", leeway=5)`.
pub fn truncate(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let (length, end, leeway) = (arguments.count(0, 255)?, arguments.as_text(2, "...")?, arguments.count(3, 5)?);
    let room = length.checked_sub(end.chars().count());
    let room = room.ok_or_else(|| invalid(format!("truncate to {length}, at least the length of {end} expected")))?;
    if value.is_undefined() || value.len().is_some_and(|size| size <= length.saturating_add(leeway)) {
        return Ok(value.clone());
    }
    let kept = prefix(text_of(value)?, room);
    let words = kept.rsplit_once(' ').map_or(kept, |(words, _)| words);
    let mut out = Text::default();
    out.push(if arguments.flag(1, false) { kept } else { words })?;
    out.push(&end)?;
    Ok(Value::from(out.into_string()))
}

/// `wordcount(value)`: runs of letters, digits and underscores.
pub fn wordcount(text: &str, _: &Arguments) -> Result<Value, Error> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    Ok(Value::from(words.count()))
}

/// Percent-encodes; a query also encodes slashes and writes a space as a plus.
fn push_quoted(out: &mut Text, text: &str, is_query: bool) -> Result<(), Exceeded> {
    for byte in text.bytes() {
        match byte {
            b' ' if is_query => out.push("+")?,
            b'/' if !is_query => out.push("/")?,
            b'_' | b'.' | b'-' | b'~' => out.push(&char::from(byte).to_string())?,
            byte if byte.is_ascii_alphanumeric() => out.push(&char::from(byte).to_string())?,
            byte => out.push(&format!("%{byte:02X}"))?,
        }
    }
    Ok(())
}

/// `urlencode(value)`: a text, or pairs as a query.
pub fn urlencode(value: &Value, _: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    let pairs = match value.kind() {
        ValueKind::Map => pairs(value)?,
        ValueKind::Seq | ValueKind::Iterable => collect(value)?,
        _ => {
            push_quoted(&mut out, &to_text(value)?, false)?;
            return Ok(Value::from(out.into_string()));
        }
    };
    for (i, pair) in pairs.iter().enumerate() {
        let pair: Vec<Value> = items_of(pair)?.take(3).collect::<Result<_, _>>()?;
        let [key, value] = &pair[..] else { return Err(invalid("urlencode needs pairs")) };
        out.push(if i > 0 { "&" } else { "" })?;
        push_quoted(&mut out, &to_text(key)?, true)?;
        out.push("=")?;
        push_quoted(&mut out, &to_text(value)?, true)?;
    }
    Ok(Value::from(out.into_string()))
}

/// `xmlattr(value, autospace=True)`.
pub fn xmlattr(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Err(invalid("xmlattr needs a mapping"));
    }
    let mut out = Text::default();
    let mut separator = if arguments.flag(0, true) { " " } else { "" };
    for key in items_of(value)? {
        let key = key?;
        let content = value.get_item(&key)?;
        if content.is_none() || content.is_undefined() {
            continue;
        }
        let name = to_text(&key)?;
        if name.contains(|c: char| is_space(c) || "/>=".contains(c)) {
            return Err(invalid(format!("{name} is no name of an attribute")));
        }
        out.push(separator)?;
        push_escaped(&mut out, &name)?;
        out.push("=\"")?;
        push_escaped(&mut out, &to_text(&content)?)?;
        out.push("\"")?;
        separator = " ";
    }
    Ok(Value::from(out.into_string()))
}
