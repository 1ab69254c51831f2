// SPDX-License-Identifier: Apache-2.0
//! Python's string methods where minijinja-contrib's `pycompat` lacks them, differs from Python or has no bounds.

use super::operators::{check_format, join, replace};
use minijinja::value::{from_args, Tuple, ValueKind};
use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat;

/// `str.isspace`: Unicode white space and the four ASCII separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `str.splitlines(keepends)`.
pub fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_line_break) {
        let width =
            if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(0, char::len_utf8) };
        lines.push(&rest[..at + if keep_ends { width } else { 0 }]);
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

fn strip_left<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    text.trim_start_matches(|c| chars.map_or_else(|| is_space(c), |set| set.contains(c)))
}

fn strip_right<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    text.trim_end_matches(|c| chars.map_or_else(|| is_space(c), |set| set.contains(c)))
}

/// `str.strip(chars)`.
pub fn strip<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    strip_right(strip_left(text, chars), chars)
}

/// `str.split(None, limit)`: runs of white space separate; the piece after the last cut keeps its tail.
fn split_space(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = if pieces.len() < limit { rest.find(is_space) } else { None };
        let (piece, tail) = rest.split_at(end.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = tail.trim_start_matches(is_space);
    }
    pieces
}

/// `str.rsplit(None, limit)`.
fn rsplit_space(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        let last_space = if pieces.len() < limit { rest.char_indices().rfind(|&(_, c)| is_space(c)) } else { None };
        let start = last_space.map_or(0, |(at, c)| at + c.len_utf8());
        pieces.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    pieces.reverse();
    pieces
}

fn split(text: &str, separator: Option<&str>, limit: Option<i64>, from_right: bool) -> Result<Value, Error> {
    let limit = limit.filter(|&n| n >= 0).map_or(usize::MAX - 1, |n| n as usize);
    let pieces = match (separator, from_right) {
        (Some(""), _) => return Err(Error::new(minijinja::ErrorKind::InvalidOperation, "empty separator")),
        (None, false) => split_space(text, limit),
        (None, true) => rsplit_space(text, limit),
        (Some(by), false) => text.splitn(limit + 1, by).collect(),
        (Some(by), true) => {
            let mut pieces: Vec<&str> = text.rsplitn(limit + 1, by).collect();
            pieces.reverse();
            pieces
        }
    };
    Ok(pieces.into_iter().map(Value::from).collect())
}

/// `str.partition` and `str.rpartition`.
fn partition(text: &str, separator: &str, from_right: bool) -> Value {
    let found = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match (found, from_right) {
        (Some((before, after)), _) => [before, separator, after],
        (None, false) => [text, "", ""],
        (None, true) => ["", "", text],
    };
    Value::from(Tuple::from(parts.map(Value::from)))
}

fn string_method(text: &str, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            Value::from(match name {
                "lstrip" => strip_left(text, chars),
                "rstrip" => strip_right(text, chars),
                _ => strip(text, chars),
            })
        }
        "split" | "rsplit" => {
            let (separator, limit, options): (Option<&str>, Option<i64>, minijinja::value::Kwargs) = from_args(args)?;
            let separator = separator.or(options.get("sep")?);
            let limit = limit.or(options.get("maxsplit")?);
            options.assert_all_used()?;
            split(text, separator, limit, name == "rsplit")?
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            split_lines(text, keep_ends.unwrap_or(false)).into_iter().map(Value::from).collect()
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(text, separator, name == "rpartition")
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            Value::from(replace(text, old, new, count)?)
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            Value::from(join(items, text)?)
        }
        "format" => {
            check_format(text)?;
            return Ok(None);
        }
        _ => return Ok(None),
    }))
}

/// Methods on values, as `Environment::set_unknown_method_callback` wants them.
pub fn call(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let (ValueKind::String, Some(text)) = (value.kind(), value.as_str()) {
        if let Some(result) = string_method(text, name, args)? {
            return Ok(result);
        }
    }
    pycompat::unknown_method_callback(state, value, name, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(split_lines("a\r\nb\rc\x0bd\u{2028}e\n", false), ["a", "b", "c", "d", "e"]);
        assert_eq!(split_lines("a\r\n\nb", true), ["a\r\n", "\n", "b"]);
        assert!(split_lines("", false).is_empty());
    }

    #[test]
    fn white_space_separates() {
        assert_eq!(split_space(" a\x1fb  c ", usize::MAX), ["a", "b", "c"]);
        assert_eq!(split_space(" a b  c ", 1), ["a", "b  c "]);
        assert_eq!(split_space("  ", 1), Vec::<&str>::new());
        assert_eq!(rsplit_space(" a b  c ", 1), [" a b", "c"]);
        assert_eq!(rsplit_space("a b", usize::MAX), ["a", "b"]);
    }
}
