// SPDX-License-Identifier: Apache-2.0
//! Writes values as Python does: `str`, `repr` and `json.dumps`. All output counts against the budget.

use super::arguments::{invalid, Arguments};
use super::budget::{Exceeded, Text};
use super::compare::order;
use super::integers;
use super::texts::margin;
use super::values::{dict_of, is_tuple, range_of, view_of, Dict};
use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// Containers nested deeper than this are refused, as by Python's recursion limit.
pub const MAX_DEPTH: usize = 900;

pub fn too_deep() -> Error {
    invalid("value is nested too deeply")
}

/// The name of a value's kind in messages.
pub fn kind_name(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => "an undefined value".into(),
        ValueKind::None => "none".into(),
        kind => format!("a {kind}"),
    }
}

pub use super::integers::is_float;

/// `repr(float)`: the shortest digits that read back exactly, with an exponent outside 1e-4 .. 1e16.
pub fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{x}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

fn number(value: &Value) -> Result<String, Error> {
    match is_float(value) {
        true => Ok(float_repr(f64::try_from(value.clone())?)),
        false => integers::write(value),
    }
}

/// `str(value)`.
pub fn write_str(out: &mut Text, value: &Value) -> Result<(), Error> {
    match value.as_str().filter(|_| value.kind() == ValueKind::String) {
        Some(text) => Ok(out.push(text)?),
        None if value.is_undefined() => Ok(()),
        None => write_repr(out, value, 0),
    }
}

/// `str.isprintable` of one character: Rust's own escaping follows this rule, except for a mark that starts a text.
pub fn is_printable(c: char) -> bool {
    (' '..='~').contains(&c) || !['a', c].iter().collect::<String>().escape_debug().skip(1).any(|c| c == '\\')
}

/// `repr(str)`.
fn write_quoted(out: &mut Text, text: &str) -> Result<(), Exceeded> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let quote_text = quote.to_string();
    out.push(&quote_text)?;
    for c in text.chars() {
        match c {
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            c if c == quote || c == '\\' => out.push(&format!("\\{c}"))?,
            c if is_printable(c) => out.push(c.encode_utf8(&mut [0; 4]))?,
            c => match c as u32 {
                code @ ..=0xff => out.push(&format!("\\x{code:02x}"))?,
                code @ ..=0xffff => out.push(&format!("\\u{code:04x}"))?,
                code => out.push(&format!("\\U{code:08x}"))?,
            },
        }
    }
    out.push(&quote_text)
}

/// `repr(bytes)`.
fn write_bytes(out: &mut Text, bytes: &[u8]) -> Result<(), Exceeded> {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    out.push(&format!("b{quote}"))?;
    for &byte in bytes {
        match byte {
            b'\n' => out.push("\\n")?,
            b'\r' => out.push("\\r")?,
            b'\t' => out.push("\\t")?,
            b'\\' => out.push("\\\\")?,
            b' '..=b'~' if char::from(byte) == quote => out.push(&format!("\\{quote}"))?,
            b' '..=b'~' => out.push(char::from(byte).encode_utf8(&mut [0; 4]))?,
            _ => out.push(&format!("\\x{byte:02x}"))?,
        }
    }
    out.push(quote.encode_utf8(&mut [0; 4]))
}

/// `repr(value)`.
fn write_repr(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    if let Some((name, items)) = view_of(value) {
        out.push(&format!("{name}("))?;
        write_repr(out, items, depth + 1)?;
        return Ok(out.push(")")?);
    }
    if let Some(text) = range_of(value).map(ToString::to_string) {
        return Ok(out.push(&text)?);
    }
    match value.kind() {
        ValueKind::Number => out.push(&number(value)?)?,
        _ if integers::is_big(value) => out.push(&number(value)?)?,
        ValueKind::Bytes => write_bytes(out, value.as_bytes().unwrap_or(&[]))?,
        ValueKind::Iterable => out.push(&value.to_string())?,
        ValueKind::String if value.is_safe() => {
            out.push("Markup(")?;
            write_quoted(out, value.as_str().unwrap_or(""))?;
            out.push(")")?;
        }
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or(""))?,
        ValueKind::Map => {
            out.push("{")?;
            for (i, (key, item)) in dict_of(value).into_iter().flat_map(Dict::pairs).enumerate() {
                out.push(if i > 0 { ", " } else { "" })?;
                write_repr(out, key, depth + 1)?;
                out.push(": ")?;
                write_repr(out, item, depth + 1)?;
            }
            out.push("}")?;
        }
        ValueKind::Seq => {
            let (open, close) = if is_tuple(value) { ("(", ")") } else { ("[", "]") };
            out.push(open)?;
            let mut count = 0;
            for item in value.try_iter()? {
                out.push(if count > 0 { ", " } else { "" })?;
                write_repr(out, &item, depth + 1)?;
                count += 1;
            }
            out.push(if is_tuple(value) && count == 1 { "," } else { "" })?;
            out.push(close)?;
        }
        ValueKind::Undefined => out.push("Undefined")?,
        _ => out.push(&value.to_string())?,
    }
    Ok(())
}

/// `str(value)` as a new text.
pub fn to_text(value: &Value) -> Result<String, Error> {
    let mut out = Text::default();
    write_str(&mut out, value)?;
    Ok(out.into_string())
}

/// `repr(value)` as a new text.
pub fn to_repr(value: &Value) -> Result<String, Error> {
    let mut out = Text::default();
    write_repr(&mut out, value, 0)?;
    Ok(out.into_string())
}

/// `json.dumps` with the options that templates may give.
struct Json {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

impl Json {
    fn newline(&self, out: &mut Text, depth: usize) -> Result<(), Exceeded> {
        if let Some(indent) = &self.indent {
            out.push("\n")?;
            for _ in 0..depth {
                out.push(indent)?;
            }
        }
        Ok(())
    }

    fn string(&self, out: &mut Text, text: &str) -> Result<(), Exceeded> {
        out.push("\"")?;
        for c in text.chars() {
            match c {
                '"' => out.push("\\\"")?,
                '\\' => out.push("\\\\")?,
                '\n' => out.push("\\n")?,
                '\r' => out.push("\\r")?,
                '\t' => out.push("\\t")?,
                '\u{8}' => out.push("\\b")?,
                '\u{c}' => out.push("\\f")?,
                c if (c as u32) < 0x20 || (self.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push(&format!("\\u{unit:04x}"))?;
                    }
                }
                c => out.push(c.encode_utf8(&mut [0; 4]))?,
            }
        }
        out.push("\"")
    }

    fn scalar(&self, value: &Value) -> Result<Option<String>, Error> {
        Ok(Some(match value.kind() {
            ValueKind::None => "null".into(),
            ValueKind::Bool => if value.is_true() { "true" } else { "false" }.into(),
            _ if integers::is_number(value) => match number(value)?.as_str() {
                "nan" => "NaN".into(),
                "inf" => "Infinity".into(),
                "-inf" => "-Infinity".into(),
                plain => plain.into(),
            },
            _ => return Ok(None),
        }))
    }

    fn key(&self, key: &Value) -> Result<String, Error> {
        let text = key.as_str().map_or_else(|| self.scalar(key), |text| Ok(Some(text.to_owned())))?;
        text.ok_or_else(|| {
            let kind = key.kind();
            invalid(format!("tojson: a key of type {kind} is no JSON key"))
        })
    }

    fn map(&self, out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
        let mut pairs: Vec<&(Value, Value)> = dict_of(value).into_iter().flat_map(Dict::pairs).collect();
        let mut failure = None;
        if self.sort_keys {
            pairs.sort_by(|a, b| {
                order(&a.0, &b.0).unwrap_or_else(|error| {
                    failure = Some(error);
                    std::cmp::Ordering::Equal
                })
            });
        }
        if let Some(error) = failure {
            return Err(error);
        }
        out.push("{")?;
        for (i, (key, item)) in pairs.iter().enumerate() {
            out.push(if i > 0 { &self.item_separator } else { "" })?;
            self.newline(out, depth + 1)?;
            self.string(out, &self.key(key)?)?;
            out.push(&self.key_separator)?;
            self.write(out, item, depth + 1)?;
        }
        if !pairs.is_empty() {
            self.newline(out, depth)?;
        }
        Ok(out.push("}")?)
    }

    fn list(&self, out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
        out.push("[")?;
        let mut is_empty = true;
        for item in value.try_iter()? {
            out.push(if is_empty { "" } else { &self.item_separator })?;
            is_empty = false;
            self.newline(out, depth + 1)?;
            self.write(out, &item, depth + 1)?;
        }
        if !is_empty {
            self.newline(out, depth)?;
        }
        Ok(out.push("]")?)
    }

    fn write(&self, out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        if let Some(text) = value.as_str() {
            return Ok(self.string(out, text)?);
        }
        if let Some(text) = self.scalar(value)? {
            return Ok(out.push(&text)?);
        }
        match value.kind() {
            ValueKind::Map => self.map(out, value, depth),
            ValueKind::Seq if range_of(value).is_none() => self.list(out, value, depth),
            kind => {
                let text = format!("tojson: a value of type {kind} is not JSON serializable");
                Err(invalid(text))
            }
        }
    }
}

/// The filter `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let indent = arguments.get(1).map(|_| margin(arguments, 1, 0)).transpose()?;
    let mut style = Json {
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        ensure_ascii: arguments.flag(0, false),
        sort_keys: arguments.flag(3, false),
        indent,
    };
    if let Some(pair) = arguments.get(2) {
        let pair: Vec<Value> = pair.try_iter()?.take(3).collect();
        let [Some(item), Some(key)] = [0, 1].map(|i| pair.get(i).and_then(|v| v.as_str())) else {
            return Err(invalid("tojson: separators must be two strings"));
        };
        (style.item_separator, style.key_separator) = (item.into(), key.into());
    }
    let mut out = Text::default();
    style.write(&mut out, value, 0)?;
    Ok(Value::from(out.into_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_in_python() {
        let cases = [
            (1e20, "1e+20"),
            (1e16, "1e+16"),
            (9999999999999998.0, "9999999999999998.0"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (x, text) in cases {
            assert_eq!(float_repr(x), text);
        }
    }

    #[test]
    fn only_printable_characters_are_quoted_as_they_are() {
        for c in ['a', 'é', '中', '😀', '\u{301}', '~'] {
            assert!(is_printable(c), "{c:?}");
        }
        for c in ['\0', '\x7f', '\u{a0}', '\u{200b}', '\u{2028}', '\u{3000}', '\u{e000}', '\u{10ffff}'] {
            assert!(!is_printable(c), "{c:?}");
        }
    }
}
