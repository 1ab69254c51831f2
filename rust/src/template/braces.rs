// SPDX-License-Identifier: Apache-2.0
//! Python's `format.format(...)`.

use super::arguments::{invalid, split};
use super::budget::Text;
use super::integers;
use super::python::{is_float, to_repr, to_text, write_str};
use super::spec::{wrong_value, Format, Spec};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// The arguments of `str.format`.
struct Fields<'a> {
    positional: &'a [Value],
    named: Value,
    /// Number of fields without a name so far.
    automatic: usize,
}

fn colon_spec(text: &str) -> Result<Spec, Error> {
    let mut spec = Spec::new();
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let mut rest = text;
    if let (Some(fill), Some('<' | '>' | '^' | '=')) = (first, second) {
        (spec.fill, spec.align) = (fill, second);
        rest = &text[fill.len_utf8() + 1..];
    }
    let mut format = Format(rest.chars().peekable());
    spec.align = spec.align.or_else(|| format.take("<>^="));
    spec.plus = match format.take("+- ") {
        Some('+') => "+",
        Some(' ') => " ",
        _ => "",
    };
    spec.is_alternate = format.take("#").is_some();
    if format.take("0").is_some() && spec.align.is_none() {
        (spec.fill, spec.align) = ('0', Some('='));
    }
    spec.width = format.number()?.unwrap_or(0);
    spec.grouping = format.take(",_");
    if format.take(".").is_some() {
        spec.precision = Some(format.number()?.ok_or_else(|| invalid("a precision is missing"))?);
    }
    spec.kind = format.0.next();
    match format.0.next() {
        None => Ok(spec),
        Some(_) => Err(invalid(format!("invalid format {text}"))),
    }
}

fn write_formatted(out: &mut Text, value: &Value, spec_text: &str) -> Result<(), Error> {
    if spec_text.is_empty() {
        return write_str(out, value);
    }
    let spec = colon_spec(spec_text)?;
    let is_whole = integers::integer(value).is_some();
    match (value.kind(), spec.kind) {
        (ValueKind::String, None | Some('s')) => {
            let spec = Spec { align: spec.align.filter(|&align| align != '='), ..spec };
            spec.write_text(out, value.as_str().unwrap_or(""), '<')
        }
        (_, Some('c')) if is_whole => spec.write_char(out, value),
        (_, None | Some('d' | 'n' | 'b' | 'o' | 'x' | 'X')) if is_whole && spec.precision.is_none() => {
            spec.write_number(out, spec.integer(value)?)
        }
        (ValueKind::Number, None) if is_float(value) => spec.write_number(out, spec.float_of(value)?),
        (ValueKind::Number | ValueKind::Bool, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%')) => {
            spec.write_number(out, spec.float_of(value)?)
        }
        _ => Err(wrong_value(spec.kind.or(Some(':')), value)),
    }
}

impl Fields<'_> {
    /// The value of `0.name[key]`.
    fn find(&mut self, path: &str) -> Result<Value, Error> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (name, mut rest) = path.split_at(end);
        let by_place = |place: usize| self.positional.get(place).cloned();
        let value = match (name.is_empty(), name.parse()) {
            (true, _) => {
                self.automatic += 1;
                by_place(self.automatic - 1)
            }
            (false, Ok(place)) => by_place(place),
            (false, Err(_)) => Some(self.named.get_item(&Value::from(name))?).filter(|value| !value.is_undefined()),
        };
        let mut value = value.ok_or_else(|| invalid(format!("the format has no argument {path}")))?;
        while let Some(c) = rest.chars().next() {
            let (key, tail) = match c {
                '[' => rest[1..].split_once(']').ok_or_else(|| invalid("a field without its ]"))?,
                _ => rest[1..].split_at(rest[1..].find(['.', '[']).unwrap_or(rest.len() - 1)),
            };
            let is_index = c == '[' && key.bytes().all(|byte| byte.is_ascii_digit());
            let index = key.parse::<u32>().ok().filter(|_| is_index);
            value = value.get_item(&index.map_or_else(|| Value::from(key), Value::from))?;
            rest = tail;
        }
        Ok(value)
    }

    /// Writes a format; fields may contain fields, one level deep.
    fn write(&mut self, out: &mut Text, format: &str, depth: usize) -> Result<(), Error> {
        let mut format = Format(format.chars().peekable());
        while let Some(c) = format.0.next() {
            if (c == '{' || c == '}') && format.0.next_if_eq(&c).is_some() {
                out.push(c.encode_utf8(&mut [0; 4]))?;
            } else if c == '}' || (c == '{' && depth > 1) {
                return Err(invalid(format!("a format with a single {c}")));
            } else if c == '{' {
                self.write_field(out, &field(&mut format)?, depth)?;
            } else {
                out.push(c.encode_utf8(&mut [0; 4]))?;
            }
        }
        Ok(())
    }

    fn write_field(&mut self, out: &mut Text, field: &str, depth: usize) -> Result<(), Error> {
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let (path, conversion) = name.split_once('!').unwrap_or((name, ""));
        let value = self.find(path)?;
        let value = match conversion {
            "" => value,
            "s" => Value::from(to_text(&value)?),
            "r" | "a" => Value::from(to_repr(&value)?),
            _ => return Err(invalid(format!("unknown conversion !{conversion}"))),
        };
        let mut spec_text = Text::default();
        self.write(&mut spec_text, spec, depth + 1)?;
        write_formatted(out, &value, spec_text.as_str())
    }
}

/// The text of a field up to its closing brace.
fn field(format: &mut Format) -> Result<String, Error> {
    let (mut text, mut open) = (String::new(), 1);
    for c in format.0.by_ref() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Ok(text);
        }
        text.push(c);
    }
    Err(invalid("a format with a single {"))
}

fn write_braces(format: &str, positional: &[Value], named: Value) -> Result<String, Error> {
    let mut out = Text::default();
    Fields { positional, named, automatic: 0 }.write(&mut out, format, 0)?;
    Ok(out.into_string())
}

/// `format.format(...)`.
pub fn braces(format: &str, given: &[Value]) -> Result<String, Error> {
    let (positional, named) = split(given);
    write_braces(format, positional, named.map_or_else(|| Value::from(()), Value::from))
}

/// `format.format_map(mapping)`.
pub fn braces_of(format: &str, mapping: &Value) -> Result<String, Error> {
    write_braces(format, &[], mapping.clone())
}
