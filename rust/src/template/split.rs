// SPDX-License-Identifier: Apache-2.0
//! Python's string methods that split a text.

use super::arguments::{invalid, Arguments};
use super::budget::List;
use super::values::{list, tuple};
use minijinja::{Error, Value};

/// `str.isspace`: Unicode white space and the four ASCII separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The lines of `str.splitlines(keepends)`.
pub fn split_lines(text: &str, keep_ends: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let Some(at) = rest.find(is_line_break) else {
            return Some(std::mem::take(&mut rest)).filter(|line| !line.is_empty());
        };
        let width =
            if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(0, char::len_utf8) };
        let line = &rest[..at + if keep_ends { width } else { 0 }];
        rest = &rest[at + width..];
        Some(line)
    })
}

pub fn strip_left<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    text.trim_start_matches(|c| chars.map_or_else(|| is_space(c), |set| set.contains(c)))
}

pub fn strip_right<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    text.trim_end_matches(|c| chars.map_or_else(|| is_space(c), |set| set.contains(c)))
}

/// `str.strip(chars)`.
pub fn strip<'a>(text: &'a str, chars: Option<&str>) -> &'a str {
    strip_right(strip_left(text, chars), chars)
}

/// The pieces of `str.split(None, limit)`: runs of white space separate; the last piece keeps its trailing space.
pub fn split_space(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start_matches(is_space);
    (0..).map_while(move |count| {
        let end = if count < limit { rest.find(is_space) } else { None };
        let (piece, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail.trim_start_matches(is_space);
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

/// The pieces of `str.rsplit(None, limit)`, the last one first.
fn rsplit_space(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_end_matches(is_space);
    (0..).map_while(move |count| {
        let space = if count < limit { rest.char_indices().rfind(|&(_, c)| is_space(c)) } else { None };
        let (head, piece) = rest.split_at(space.map_or(0, |(at, c)| at + c.len_utf8()));
        rest = head.trim_end_matches(is_space);
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

fn list_of<'a>(pieces: impl Iterator<Item = &'a str>) -> Result<Vec<Value>, Error> {
    let mut list = List::default();
    for piece in pieces {
        list.push_text(piece)?;
    }
    Ok(list.into_vec())
}

fn limit(arguments: &Arguments) -> Result<usize, Error> {
    Ok(arguments.integer(1)?.filter(|&n| n >= 0).map_or(usize::MAX - 1, |n| n as usize))
}

fn separator(arguments: &Arguments) -> Result<Option<&str>, Error> {
    match arguments.text(0)? {
        Some("") => Err(invalid("empty separator")),
        separator => Ok(separator),
    }
}

/// `str.split(sep=None, maxsplit=-1)`.
pub fn split(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let limit = limit(arguments)?;
    let pieces = match separator(arguments)? {
        Some(by) => list_of(text.splitn(limit + 1, by)),
        None => list_of(split_space(text, limit)),
    };
    pieces.map(list)
}

/// `str.rsplit(sep=None, maxsplit=-1)`.
pub fn rsplit(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let limit = limit(arguments)?;
    let mut pieces = match separator(arguments)? {
        Some(by) => list_of(text.rsplitn(limit + 1, by))?,
        None => list_of(rsplit_space(text, limit))?,
    };
    pieces.reverse();
    Ok(list(pieces))
}

/// `str.splitlines(keepends=False)`.
pub fn splitlines(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    list_of(split_lines(text, arguments.flag(0, false))).map(list)
}

fn separator_of(arguments: &Arguments) -> Result<&str, Error> {
    Some(arguments.required_text(0)?).filter(|by| !by.is_empty()).ok_or_else(|| invalid("empty separator"))
}

fn parts(parts: [&str; 3]) -> Result<Value, Error> {
    list_of(parts.into_iter()).map(tuple)
}

/// `str.partition(sep)`.
pub fn partition(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let by = separator_of(arguments)?;
    parts(text.split_once(by).map_or([text, "", ""], |(before, after)| [before, by, after]))
}

/// `str.rpartition(sep)`.
pub fn rpartition(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let by = separator_of(arguments)?;
    parts(text.rsplit_once(by).map_or(["", "", text], |(before, after)| [before, by, after]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        let lines = |text, keep_ends| split_lines(text, keep_ends).collect::<Vec<_>>();
        assert_eq!(lines("a\r\nb\rc\x0bd\u{2028}e\n", false), ["a", "b", "c", "d", "e"]);
        assert_eq!(lines("a\r\n\nb", true), ["a\r\n", "\n", "b"]);
        assert!(lines("", false).is_empty());
    }

    #[test]
    fn white_space_separates() {
        let split = |text, limit| split_space(text, limit).collect::<Vec<_>>();
        let rsplit = |text, limit| rsplit_space(text, limit).collect::<Vec<_>>();
        assert_eq!(split(" a\x1fb  c ", usize::MAX), ["a", "b", "c"]);
        assert_eq!(split(" a b  c ", 1), ["a", "b  c "]);
        assert!(split("  ", 1).is_empty());
        assert_eq!(rsplit(" a b  c ", 1), ["c", " a b"]);
        assert_eq!(rsplit("a b", usize::MAX), ["b", "a"]);
    }
}
